//! One sandbox as the gateway knows it: policy, names, records, open flows.
//! Nothing is shared between sessions except the machine's own name files.
//! Knows no protocol of the network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use outgate_handoff::ToLauncher;
use outgate_policy::{Host, HostName, Inspect, Proxies};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::audit::{Audit, AuditError, Event, Kind, Noted, Outcome};
use crate::broker::Secrets;
use crate::budget::Budgets;
use crate::confine;
use crate::control::{Control, ControlError};
use crate::destination::{Destination, Party};
use crate::known::{Canaries, Possessions};
use crate::limits;
use crate::names::{self, NameTable};
use crate::origin::Pool;
use crate::refusal::Refusal;
use crate::resolve::{Pin, ResolveError, System};
use crate::rules::Rules;
use crate::scan::{Scan, Scans};
use crate::tenant::{SharedSlot, Standing, Tenant, Turn};
use crate::tls::Tls;

mod denials;
mod in_force;
mod turn;
mod unopened;
mod words;

use denials::Denials;
use in_force::InForce;
use turn::turn;
use unopened::Unopened;

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) sandbox: String,
    pub(crate) rules: Rules,
    pub(crate) audit: Audit,
    pub(crate) control: Arc<Control>,
    pub(crate) system: Arc<System>,
    pub(crate) proxies: Arc<Proxies>,
    /// What opens TLS; nothing where the policy never opens it.
    pub(crate) tls: Option<Arc<Tls>>,
    /// What stays outside; nothing where the policy has no secrets.
    pub(crate) secrets: Option<Arc<Secrets>>,
    /// What looks for credentials; nothing where the policy turns it off.
    pub(crate) scans: Arc<Scans>,
    /// What is known of the user's secrets.
    pub(crate) possessions: Arc<Possessions>,
    pub(crate) tenant: Option<Tenant>,
}

/// One sandbox. Lives as long as its control connection.
#[derive(Debug)]
pub(crate) struct Session {
    in_force: watch::Sender<Arc<InForce>>,
    audit: Audit,
    control: Arc<Control>,
    system: Arc<System>,
    proxies: Arc<Proxies>,
    tls: Option<Arc<Tls>>,
    secrets: Option<Arc<Secrets>>,
    possessions: Arc<Possessions>,
    names: Mutex<NameTable>,
    origins: Pool,
    denials: Mutex<Denials>,
    budgets: Budgets,
    unopened: Mutex<Unopened>,
    flows: Arc<Semaphore>,
    flows_max: usize,
    questions: Arc<Semaphore>,
    tenant: Option<Tenant>,
    tasks: Mutex<JoinSet<()>>,
    ending: watch::Sender<Stage>,
}

/// Rules, and what scans as they say.
pub(crate) type Scanned = (Rules, Arc<Scans>);

/// A place among the connections served at once, given back when dropped.
#[derive(Debug)]
pub(crate) struct FlowSlot {
    _own: OwnedSemaphorePermit,
    _shared: Option<SharedSlot>,
}

/// How far a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Ending,
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Self {
        let flows_max = match &parts.tenant {
            None => confine::flows_possible(),
            Some(tenant) => tenant.flows_max(),
        };
        let names_max = match &parts.tenant {
            None => limits::NAMES_MAX,
            Some(_) => limits::SHARED_NAMES_MAX,
        };
        let generation = parts.tenant.as_ref().map_or(1, Tenant::generation);
        let in_force = InForce::new(&parts.system, (parts.rules, parts.scans), generation);
        Self {
            in_force: watch::Sender::new(Arc::new(in_force)),
            audit: parts.audit,
            control: parts.control,
            system: parts.system,
            proxies: parts.proxies,
            tls: parts.tls,
            secrets: parts.secrets,
            possessions: parts.possessions,
            names: Mutex::new(NameTable::new(&parts.sandbox, names_max)),
            origins: Pool::default(),
            denials: Mutex::default(),
            budgets: Budgets::default(),
            unopened: Mutex::default(),
            flows: Arc::new(Semaphore::new(flows_max)),
            flows_max,
            questions: Arc::new(Semaphore::new(limits::QUESTIONS_MAX)),
            tenant: parts.tenant,
            tasks: Mutex::default(),
            ending: watch::Sender::new(Stage::Running),
        }
    }

    /// The rules in force: to be asked anew for every decision.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.in_force.borrow().rules)
    }

    /// Other rules with the scan that they ask for; what the one in force
    /// counted counts on.
    ///
    /// # Errors
    /// A sentence for the user: there is no such scan, so that nothing may pass
    /// under these rules.
    pub(crate) fn scanned(&self, rules: Rules) -> Result<Scanned, String> {
        let scans = Scans::of(&rules, self.secrets().map(Arc::as_ref), &self.possessions)?;
        Ok((rules, Arc::new(scans.after(&self.scans()))))
    }

    /// Rules under which nothing passes, and so nothing else has to be scanned.
    pub(crate) fn shut(&self) -> Scanned {
        (Rules::none(), self.scans())
    }

    /// Puts other rules in force, under the next generation, and tells the
    /// launcher. What runs goes on; what is kept for later use is dropped.
    pub(crate) async fn revise(&self, scanned: Scanned) -> Result<u64, ControlError> {
        let generation = self.generation().saturating_add(1);
        let in_force = InForce::new(&self.system, scanned, generation);
        self.in_force.send_replace(Arc::new(in_force));
        self.origins.clear();
        let event = Event::new(Kind::Policy, Outcome::Note, "").detail("other rules are in force");
        self.record(&event).ok();
        let frame = ToLauncher::Generation { generation };
        self.control.send(&frame).await.map(|()| generation)
    }

    /// Returns once `still` refuses, which is asked now and whenever other
    /// rules are in force. For what was allowed once and goes on.
    pub(crate) async fn revoked(&self, still: impl Fn() -> Result<(), Refusal>) -> Refusal {
        let mut changes = self.in_force.subscribe();
        loop {
            if let Err(refusal) = still() {
                return refusal;
            }
            if changes.changed().await.is_err() {
                return Refusal::own("ended", "a connection", "its session is over");
            }
        }
    }

    /// The operator's proxies.
    pub(crate) fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Whether the gateway has rights that the launcher's account may lack.
    pub(crate) fn standing(&self) -> Standing {
        self.tenant
            .as_ref()
            .map_or(Standing::Same, Tenant::standing)
    }

    /// What opens TLS, where the rules in force let it.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        let tls = self.tls.as_ref()?;
        self.in_force.borrow().rules.opens_tls().then_some(tls)
    }

    pub(crate) fn secrets(&self) -> Option<&Arc<Secrets>> {
        self.secrets.as_ref()
    }

    /// What looks for credentials, as the rules in force have it.
    pub(crate) fn scans(&self) -> Arc<Scans> {
        Arc::clone(&self.in_force.borrow().scans)
    }

    /// The one of them that weighs by this mode; nothing where nothing is to be
    /// scanned.
    pub(crate) fn scan(&self, mode: Inspect) -> Option<Arc<Scan>> {
        self.scans().by(mode).cloned()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.in_force.borrow().generation
    }

    pub(crate) fn origins(&self) -> &Pool {
        &self.origins
    }

    /// Writes the first record; nothing begins if this fails.
    ///
    /// # Errors
    /// Why it cannot be written, and what to do.
    pub(crate) fn begin(&self, event: &Event<'_>) -> Result<(), String> {
        let masked = self.scans().masked_event(event);
        let event = masked.as_ref().unwrap_or(event);
        let written = self.audit.write(self.generation(), event);
        written.map_err(|error| format!("{error} to {}", self.audit.fault()))
    }

    /// Writes a record; nothing it announces may happen if this fails.
    pub(crate) fn record(&self, event: &Event<'_>) -> Result<(), AuditError> {
        let masked = self.scans().masked_event(event);
        let event = masked.as_ref().unwrap_or(event);
        let result = self.audit.write(self.generation(), event);
        self.tell_lost(&result);
        result
    }

    /// The same, together with those of other requests that came in the same
    /// turn of the event loop: one write(2) for all of them. To be settled
    /// before what the record announces.
    pub(crate) fn note(&self, event: &Event<'_>) -> Result<Noted, AuditError> {
        let masked = self.scans().masked_event(event);
        let event = masked.as_ref().unwrap_or(event);
        let result = self.audit.note(self.generation(), event);
        self.tell_lost(&result);
        result
    }

    /// Returns once a record is written; nothing it announces may happen if
    /// this fails.
    pub(crate) async fn settle(&self, noted: Noted) -> Result<(), AuditError> {
        let flows = self
            .flows_max
            .saturating_sub(self.flows.available_permits());
        if flows >= limits::RECORD_TOGETHER {
            turn().await;
        }
        let result = self.audit.settle(noted);
        self.tell_lost(&result);
        result
    }

    /// Says, once, that nothing can be recorded any more.
    fn tell_lost<T>(&self, result: &Result<T, AuditError>) {
        if result.is_err() {
            self.tell(&Refusal::unrecorded("everything").because_of(&self.audit.fault()));
        }
    }

    /// Where the records go, for people.
    pub(crate) fn audit_path(&self) -> String {
        let path = self.audit.path().map(|path| path.to_string_lossy());
        path.map(std::borrow::Cow::into_owned).unwrap_or_default()
    }

    /// The address that stands for a name; `None` when there are too many.
    pub(crate) fn stand_in(&self, name: &HostName) -> Option<Ipv4Addr> {
        self.names.lock().ok()?.assign(name)
    }

    /// The same for a name that the command asks for, and whether it asked
    /// before.
    pub(crate) fn asked(&self, name: &HostName) -> (Option<Ipv4Addr>, Seen) {
        let Ok(mut names) = self.names.lock() else {
            return (None, Seen::Before);
        };
        match names.assign(name) {
            Some(address) if names.is_news(address) => (Some(address), Seen::First),
            assigned => (assigned, Seen::Before),
        }
    }

    /// The name an address stands for.
    pub(crate) fn name_of(&self, address: Ipv4Addr) -> Option<HostName> {
        self.names.lock().ok()?.name(address).cloned()
    }

    /// Whom a connection to this address is meant to reach.
    pub(crate) fn destination(&self, address: SocketAddr) -> Destination {
        let ip = address.ip().to_canonical();
        let party = match ip {
            _ if names::is_stand_in(ip) => match ip {
                IpAddr::V4(v4) => self.name_of(v4).map_or(Party::Unassigned(ip), Party::Name),
                IpAddr::V6(_) => Party::Unassigned(ip),
            },
            _ => match self.system.hosts().names(ip) {
                [] => Party::Address(ip),
                listed => Party::Listed(ip, listed.to_vec()),
            },
        };
        Destination {
            party,
            port: address.port(),
            address: SocketAddr::new(ip, address.port()),
        }
    }

    /// The addresses of an allowed name.
    pub(crate) async fn resolve(
        &self,
        name: &HostName,
        port: u16,
    ) -> Result<Vec<Pin>, ResolveError> {
        let in_force = Arc::clone(&self.in_force.borrow());
        let policy = in_force.rules.naming();
        in_force.resolver.resolve(policy, name, port).await
    }

    /// A text without values that may not be written down.
    pub(crate) fn masked(&self, text: &str) -> Option<String> {
        self.scans().masked(text)
    }

    /// A refusal in words that anybody may read.
    pub(crate) fn shown(&self, refusal: &Refusal) -> Refusal {
        refusal.masked(&|text| self.masked(text))
    }

    /// Tells the user about a refusal to nobody in particular.
    pub(crate) fn tell(&self, refusal: &Refusal) {
        self.tell_of("", refusal);
    }

    /// Tells the user about a refusal to this program, once per target and within a bound.
    pub(crate) fn tell_of(&self, program: &str, refusal: &Refusal) {
        let shown = self.shown(refusal);
        let line = self.denials.lock();
        let line = line.map(|mut own| own.refused(program, &shown));
        if let Ok(Some(line)) = line {
            self.say(&line);
        }
    }

    /// Tells the user that something is wrong with what `key` names.
    pub(crate) fn alarm(&self, key: &str, what: &str) {
        let line = self.denials.lock().map(|mut own| own.alarm(key, what));
        if let Ok(Some(line)) = line {
            self.say(&line);
        }
    }

    /// The false credentials of this run.
    pub(crate) fn canaries(&self) -> Option<&Canaries> {
        self.possessions.canaries.as_ref()
    }

    /// What may still leave where rules say how much.
    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Counts TLS that goes to a host with nobody looking into it.
    pub(crate) fn passed_unopened(&self, host: &Host) {
        let Ok(mut unopened) = self.unopened.lock() else {
            return;
        };
        unopened.add(host);
    }

    /// What nobody looked into, in words; nothing if there was none.
    pub(crate) fn unopened(&self) -> Option<String> {
        let unopened = self.unopened.lock().ok()?.words();
        let unscanned = self.scans().unscanned_bytes();
        let unscanned = (unscanned > 0)
            .then(|| format!("{unscanned} bytes left that could not be scanned for credentials"));
        match (unopened, unscanned) {
            (Some(unopened), Some(unscanned)) => Some(format!("{unopened}; {unscanned}")),
            (unopened, unscanned) => unopened.or(unscanned),
        }
    }

    /// A place among the connections served at once: of this sandbox, and in
    /// a shared gateway of its user and of all.
    pub(crate) fn flow_slot(&self) -> Option<FlowSlot> {
        let own = Arc::clone(&self.flows).try_acquire_owned().ok()?;
        let shared = match &self.tenant {
            None => None,
            Some(tenant) => Some(tenant.flow_slot()?),
        };
        Some(FlowSlot {
            _own: own,
            _shared: shared,
        })
    }

    /// A place among the questions answered at once; waits for one.
    pub(crate) async fn question_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.questions).acquire_owned().await.ok()
    }

    /// The turn to judge a request, where the judging of one account must not
    /// hold up others: policies can be made hard to judge.
    pub(crate) async fn turn(&self) -> Turn {
        match &self.tenant {
            None => Turn::free(),
            Some(tenant) => tenant.turn().await,
        }
    }

    /// Runs a task that ends with the session at the latest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(mut tasks) = self.tasks.lock() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// Waits until what the command left behind is delivered, within a bound.
    pub(crate) async fn drain(&self) {
        self.ending.send_replace(Stage::Ending);
        let all = u32::try_from(self.flows_max).unwrap_or(u32::MAX);
        let done = self.flows.acquire_many(all);
        timeout(limits::FINISH_TIME, done).await.map(drop).ok();
    }

    /// Returns once the command has ended: nobody is left to read an answer.
    pub(crate) async fn ended(&self) {
        let mut stage = self.ending.subscribe();
        stage
            .wait_for(|stage| *stage == Stage::Ending)
            .await
            .map(drop)
            .ok();
    }

    /// Ends every task of the session: all its connections are closed, and
    /// their closing records written.
    pub(crate) async fn close(&self) {
        let mut tasks = match self.tasks.lock() {
            Ok(mut tasks) => std::mem::take(&mut *tasks),
            Err(_) => JoinSet::new(),
        };
        tasks.shutdown().await;
        self.origins.clear();
    }
}

/// Whether a name was asked for before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Before,
    First,
}
