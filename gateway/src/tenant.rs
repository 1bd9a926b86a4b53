//! Who shares a gateway, and what each may take of it: sessions, connections
//! and openings, of one sandbox, of one account and of all. An account is what
//! the kernel says of the other end of a socket. No I/O.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use outgate_handoff::ShareLimit;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::control::Closing;
use crate::limits;
use crate::lock;

mod capacity;
mod usage;

pub(crate) use capacity::Capacity;
pub(crate) use usage::Share;

/// What one account has taken.
#[derive(Debug)]
struct Account {
    sessions: Arc<Semaphore>,
    flows: Arc<Semaphore>,
    openings: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// Whose share something is taken of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum AccountKey {
    /// All launchers of a user.
    User(u32),
    /// The one sandbox of a token: whoever has it stands for nobody else.
    Token(String),
}

/// Everybody who shares the gateway.
#[derive(Debug)]
pub(crate) struct GatewayTenants {
    own_uid: u32,
    capacity: Capacity,
    sessions: Arc<Semaphore>,
    flows: Arc<Semaphore>,
    accounts: Mutex<HashMap<AccountKey, Arc<Account>>>,
    barred: Mutex<HashMap<u32, Bar>>,
    count: AtomicU64,
}

/// Why nobody more is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    #[error(
        "the gateway serves {0} sandboxes of this user already, its limit for one user; who runs \
         it raises that: `outgate gateway {option} N`",
        option = ShareLimit::SandboxesPerUser.option()
    )]
    Account(usize),
    #[error(
        "the gateway serves {0} sandboxes already, its limit; who runs it raises that: \
         `outgate gateway {option} N`",
        option = ShareLimit::Sandboxes.option()
    )]
    All(usize),
    #[error("the gateway is ending and takes no new sandbox; run again once it is back")]
    Ending,
    #[error(
        "the gateway serves no new sandbox of this user for {} s: a launcher handed over what is \
         neither a socket nor a path", .0.as_secs().max(1)
    )]
    Barred(Duration),
}

/// An account one of whose launchers sent what no launcher sends.
#[derive(Debug)]
struct Bar {
    /// How often, since it was last forgotten.
    times: u32,
    until: Instant,
    /// Each may take a thread for ever: its file system may never answer.
    closings: Vec<Closing>,
}

impl Bar {
    /// How much longer nobody is taken.
    fn left(&mut self, now: Instant) -> Option<Duration> {
        self.closings.retain(|closing| !closing.is_done());
        let least = if self.closings.is_empty() {
            Duration::ZERO
        } else {
            limits::BARRED_TIME
        };
        let left = self.until.saturating_duration_since(now).max(least);
        (!left.is_zero()).then_some(left)
    }

    /// Whether it was long enough ago.
    fn is_over(&mut self, now: Instant) -> bool {
        self.left(now).is_none()
            && now.saturating_duration_since(self.until) >= limits::BARRED_TIME_MAX
    }
}

impl GatewayTenants {
    /// For a gateway of the account `own_uid`.
    pub(crate) fn new(own_uid: u32, capacity: Capacity) -> Self {
        Self {
            own_uid,
            capacity,
            sessions: Arc::new(Semaphore::new(capacity.sessions)),
            flows: Arc::new(Semaphore::new(capacity.flows)),
            accounts: Mutex::default(),
            barred: Mutex::default(),
            count: AtomicU64::new(0),
        }
    }

    /// Takes one more sandbox of the account `uid`.
    pub(crate) fn admit(&self, uid: u32, now: Instant) -> Result<Tenant, Full> {
        if let Some(left) = self.barred(uid, now) {
            return Err(Full::Barred(left));
        }
        self.seat(AccountKey::User(uid), uid)
    }

    /// Takes the sandbox of a token, which has a share of its own.
    pub(crate) fn admit_token(&self, name: &str) -> Result<Tenant, Full> {
        self.seat(AccountKey::Token(name.to_owned()), self.own_uid)
    }

    fn seat(&self, key: AccountKey, uid: u32) -> Result<Tenant, Full> {
        let account = self.account(key)?;
        let seat = Arc::clone(&account.sessions)
            .try_acquire_owned()
            .map_err(|_| Full::Account(self.capacity.sessions_of_one))?;
        let seat_of_all = Arc::clone(&self.sessions)
            .try_acquire_owned()
            .map_err(|_| Full::All(self.capacity.sessions))?;
        Ok(Tenant {
            uid,
            session: self.count.fetch_add(1, Ordering::Relaxed) + 1,
            generation: generation(),
            standing: if uid == self.own_uid {
                PeerStanding::Same
            } else {
                PeerStanding::Other
            },
            capacity: self.capacity,
            flows: Arc::clone(&self.flows),
            account,
            _seats: (seat, seat_of_all),
        })
    }

    /// Takes no more sandboxes of this account for a while, longer each time, and
    /// not before what it sent is closed: else it could leave us with a thread in
    /// an endless close(2) for every session that it begins.
    pub(crate) fn bar(&self, uid: u32, closing: Closing, now: Instant) {
        // Where it is not known who is barred, everybody is.
        let Ok(mut barred) = lock::held(&self.barred) else {
            return;
        };
        // Accounts that were quiet since are forgotten. Beyond that, one entry per
        // account that exists; the kernel has no more names.
        barred.retain(|_, bar| !bar.is_over(now));
        let bar = barred.entry(uid).or_insert(Bar {
            times: 0,
            until: now,
            closings: Vec::new(),
        });
        let longer = 1_u32.checked_shl(bar.times).unwrap_or(u32::MAX);
        let time = limits::BARRED_TIME.saturating_mul(longer);
        bar.until = now + time.min(limits::BARRED_TIME_MAX);
        bar.times = bar.times.saturating_add(1);
        bar.closings.push(closing);
    }

    /// How much longer this account is barred.
    fn barred(&self, uid: u32, now: Instant) -> Option<Duration> {
        let Ok(mut barred) = lock::held(&self.barred) else {
            return Some(limits::BARRED_TIME_MAX);
        };
        barred.get_mut(&uid)?.left(now)
    }

    fn account(&self, key: AccountKey) -> Result<Arc<Account>, Full> {
        let share = self.capacity;
        let mut accounts = self.accounts.lock().map_err(|_| Full::All(0))?;
        if let Some(account) = accounts.get(&key) {
            return Ok(Arc::clone(account));
        }
        // Accounts without a sandbox are forgotten, so there are never more
        // than sandboxes.
        accounts.retain(|_, account| Arc::strong_count(account) > 1);
        let account = Arc::new(Account {
            sessions: Arc::new(Semaphore::new(share.sessions_of_one)),
            flows: Arc::new(Semaphore::new(share.flows_of_one)),
            openings: Arc::new(Semaphore::new(limits::SHARED_OPENINGS_MAX)),
            turn: Arc::new(Semaphore::new(1)),
        });
        accounts.insert(key, Arc::clone(&account));
        Ok(account)
    }
}

/// A number that no session before had, also not of a gateway before.
fn generation() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(2, |now| u64::try_from(now.as_millis()).unwrap_or(2))
}

/// Whose rights the gateway has, seen from a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerStanding {
    /// Those of the launcher's own account.
    Same,
    /// Another account's, which may be more.
    Other,
}

/// One sandbox of a shared gateway; its places are free again when dropped.
#[derive(Debug)]
pub(crate) struct Tenant {
    uid: u32,
    session: u64,
    generation: u64,
    standing: PeerStanding,
    capacity: Capacity,
    flows: Arc<Semaphore>,
    account: Arc<Account>,
    _seats: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// A place among the connections of an account and of all.
#[derive(Debug)]
pub(crate) struct SharedSlot {
    _account: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// The turn of an account to judge one request.
#[derive(Debug)]
pub(crate) struct Turn(Option<OwnedSemaphorePermit>);

impl Turn {
    /// One that nobody waits for.
    pub(crate) fn free() -> Self {
        Self(None)
    }

    /// Ends it behind everything that others have ready: so each account
    /// judges one request while every other gets to judge one.
    pub(crate) async fn end(self) {
        if self.0.is_some() {
            tokio::task::yield_now().await;
        }
    }
}

impl Tenant {
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Number of the session, from 1.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn standing(&self) -> PeerStanding {
        self.standing
    }

    /// Connections of this sandbox at once.
    pub(crate) fn flows_max(&self) -> usize {
        self.capacity.flows_of_sandbox
    }

    /// What one sandbox may keep and have.
    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// A place among the connections of the account and of all.
    ///
    /// # Errors
    /// The limit that leaves none.
    pub(crate) fn flow_slot(&self) -> Result<SharedSlot, ShareLimit> {
        let account = Arc::clone(&self.account.flows).try_acquire_owned();
        let account = account.map_err(|_| ShareLimit::ConnectionsPerUser)?;
        let all = Arc::clone(&self.flows).try_acquire_owned();
        let all = all.map_err(|_| ShareLimit::Connections)?;
        Ok(SharedSlot {
            _account: account,
            _all: all,
        })
    }

    /// The account's turn to judge a request: one at a time.
    pub(crate) async fn turn(&self) -> Turn {
        Turn(Arc::clone(&self.account.turn).acquire_owned().await.ok())
    }

    /// A place among the openings of the account; waits for one.
    pub(crate) async fn opening(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.account.openings)
            .acquire_owned()
            .await
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(sessions: usize, flows: usize) -> GatewayTenants {
        let capacity = Capacity {
            sessions,
            sessions_of_one: sessions / 2,
            flows,
            flows_of_one: flows / 2,
            flows_of_sandbox: flows / 4,
            idle_origins: 1,
            stubs: 1,
        };
        GatewayTenants::new(1, capacity)
    }

    #[test]
    fn one_account_leaves_half_to_the_others() {
        let tenants = tenants(8, 100);
        let mut taken: Vec<Tenant> = (0..4)
            .map(|_| tenants.admit(7, Instant::now()).unwrap())
            .collect();
        assert_eq!(
            tenants.admit(7, Instant::now()).unwrap_err(),
            Full::Account(4)
        );
        taken.extend((0..4).map(|_| tenants.admit(8, Instant::now()).unwrap()));
        assert_eq!(tenants.admit(9, Instant::now()).unwrap_err(), Full::All(8));
        taken.remove(0);
        taken.push(tenants.admit(7, Instant::now()).unwrap());
        let mut numbers: Vec<u64> = taken.iter().map(Tenant::session).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
    }

    #[test]
    fn connections_of_one_account_are_counted_over_its_sandboxes() {
        let tenants = tenants(8, 16);
        let (one, two) = (
            tenants.admit(7, Instant::now()).unwrap(),
            tenants.admit(7, Instant::now()).unwrap(),
        );
        let other = tenants.admit(8, Instant::now()).unwrap();
        assert_eq!(one.flows_max(), 4);
        let mut slots: Vec<_> = (0..4).map(|_| one.flow_slot().unwrap()).collect();
        slots.extend((0..4).map(|_| two.flow_slot().unwrap()));
        assert_eq!(two.flow_slot().unwrap_err(), ShareLimit::ConnectionsPerUser);
        let others: Vec<_> = (0..8).map(|_| other.flow_slot().unwrap()).collect();
        assert!(other.flow_slot().is_err());
        drop((slots, others));
        assert!(two.flow_slot().is_ok());
    }

    #[test]
    fn a_token_takes_nothing_of_another_or_of_its_user() {
        let tenants = tenants(16, 16);
        let (one, two) = (
            tenants.admit_token("a").unwrap(),
            tenants.admit_token("b").unwrap(),
        );
        let own = tenants.admit(1, Instant::now()).unwrap();
        let slots: Vec<_> = std::iter::from_fn(|| one.flow_slot().ok()).collect();
        assert_eq!(slots.len(), 8);
        assert!(two.flow_slot().is_ok() && own.flow_slot().is_ok());
    }

    #[test]
    fn accounts_without_a_sandbox_are_forgotten() {
        let tenants = tenants(4, 8);
        for uid in 0..100 {
            drop(tenants.admit(uid, Instant::now()).unwrap());
        }
        assert!(tenants.accounts.lock().unwrap().len() <= 2);
    }

    #[test]
    fn an_account_is_barred_for_a_while_and_longer_each_time() {
        let tenants = tenants(8, 16);
        let mut now = Instant::now();
        let strike = |now| {
            let (closing, until) = Closing::begin();
            drop(until);
            tenants.bar(7, closing, now);
        };
        let mut time = limits::BARRED_TIME;
        for _ in 0..40 {
            strike(now);
            assert!(tenants.admit(7, now).is_err());
            assert!(tenants.admit(8, now).is_ok(), "nobody else is");
            now += time;
            let before = now.checked_sub(Duration::from_millis(1)).unwrap();
            assert_eq!(
                tenants.admit(7, before).unwrap_err(),
                Full::Barred(Duration::from_millis(1))
            );
            assert!(tenants.admit(7, now).is_ok());
            time = (time * 2).min(limits::BARRED_TIME_MAX);
        }
        // Long quiet, and it begins anew.
        now += limits::BARRED_TIME_MAX;
        strike(now);
        assert!(tenants.admit(7, now + limits::BARRED_TIME).is_ok());
    }

    #[test]
    fn an_account_is_barred_until_what_it_sent_is_closed() {
        let tenants = tenants(8, 16);
        let now = Instant::now();
        let (closing, until) = Closing::begin();
        tenants.bar(7, closing, now);
        let late = now + 100 * limits::BARRED_TIME_MAX;
        assert!(tenants.admit(7, late).is_err());
        drop(until);
        assert!(tenants.admit(7, late).is_ok());
    }

    #[test]
    fn nobody_is_taken_once_nobody_knows_who_is_barred() {
        let tenants = tenants(4, 8);
        lock::poison(&tenants.barred);
        let refused = tenants.admit(7, Instant::now());
        assert!(matches!(refused, Err(Full::Barred(_))), "{refused:?}");
    }
}
