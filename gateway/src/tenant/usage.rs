//! How much of a shared gateway is in use, for who runs it: by sandboxes and connections, of
//! all, of users and of tokens. No I/O.

use std::sync::atomic::Ordering;

use tokio::sync::Semaphore;

use super::{AccountKey, Capacity, GatewayTenants};

/// How much is in use of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) used: usize,
    pub(crate) limit: usize,
}

impl Share {
    fn of(places: &Semaphore, limit: usize) -> Self {
        let used = limit.saturating_sub(places.available_permits());
        Self { used, limit }
    }
}

/// What one user has in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountUsage {
    pub(crate) uid: u32,
    pub(crate) sessions: Share,
    pub(crate) flows: Share,
}

impl GatewayTenants {
    /// How much there is.
    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Sandboxes at once.
    pub(crate) fn sessions(&self) -> Share {
        Share::of(&self.sessions, self.capacity.sessions)
    }

    /// Connections at once.
    pub(crate) fn flows(&self) -> Share {
        Share::of(&self.flows, self.capacity.flows)
    }

    /// Sandboxes that were ever taken.
    pub(crate) fn taken(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Tokens with a sandbox.
    pub(crate) fn tokens(&self) -> usize {
        let Ok(accounts) = self.accounts.lock() else {
            return 0;
        };
        let tokens = accounts
            .iter()
            .filter(|(key, _)| matches!(key, AccountKey::Token(_)));
        let shares =
            tokens.map(|(_, account)| Share::of(&account.sessions, self.capacity.sessions_of_one));
        shares.filter(|share| share.used > 0).count()
    }

    /// What each user with a sandbox has in use, those with most first.
    pub(crate) fn accounts(&self) -> Vec<AccountUsage> {
        let Ok(accounts) = self.accounts.lock() else {
            return Vec::new();
        };
        let usage = accounts.iter().filter_map(|(key, account)| {
            let AccountKey::User(uid) = key else {
                return None;
            };
            Some(AccountUsage {
                uid: *uid,
                sessions: Share::of(&account.sessions, self.capacity.sessions_of_one),
                flows: Share::of(&account.flows, self.capacity.flows_of_one),
            })
        });
        let mut all: Vec<_> = usage.filter(|own| own.sessions.used > 0).collect();
        all.sort_unstable_by_key(|own| (std::cmp::Reverse(own.sessions.used), own.uid));
        all
    }
}
