//! What a sandbox is judged by until the policy changes: rules, the number of their
//! generation, what scans as they say, and names as they were resolved under them.

use std::sync::Arc;

use tokio::sync::watch;

use outgate_record::Reason;

use crate::audit::Event;
use crate::origin::DialPolicy;
use crate::recorder::Governs;
use crate::refusal::Refusal;
use crate::resolve::{Resolver, System};
use crate::rules::SessionPolicies;
use crate::scan::Scans;

/// Rules, and what scans as they say.
pub(crate) type Scanned = (SessionPolicies, Arc<Scans>);

/// All that changes together with the policy.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) rules: Arc<SessionPolicies>,
    pub(crate) generation: u64,
    /// What looks for credentials.
    pub(crate) scans: Arc<Scans>,
    /// Names lead where these rules say, and are resolved anew under others.
    pub(crate) resolver: Arc<Resolver>,
}

/// The policy of a sandbox, which may be replaced while it runs.
#[derive(Debug)]
pub(crate) struct CurrentPolicy(watch::Sender<Arc<InForce>>);

impl InForce {
    fn new(system: &Arc<System>, (rules, scans): Scanned, generation: u64) -> Self {
        Self {
            resolver: Arc::new(Resolver::new(Arc::clone(system), rules.naming())),
            rules: Arc::new(rules),
            generation,
            scans,
        }
    }
}

impl CurrentPolicy {
    pub(crate) fn new(system: &Arc<System>, scanned: Scanned, generation: u64) -> Self {
        let first = InForce::new(system, scanned, generation);
        Self(watch::Sender::new(Arc::new(first)))
    }

    /// What is in force now.
    pub(crate) fn now(&self) -> Arc<InForce> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts other rules in force, under the next generation, which is returned.
    pub(crate) fn replace(&self, system: &Arc<System>, scanned: Scanned) -> u64 {
        let generation = self.generation().saturating_add(1);
        let next = InForce::new(system, scanned, generation);
        self.0.send_replace(Arc::new(next));
        generation
    }

    /// Returns once `still` refuses, which is asked now and whenever other
    /// rules are in force. For what was allowed once and goes on.
    pub(crate) async fn revoked(&self, still: impl Fn() -> Result<(), Refusal>) -> Refusal {
        let mut changes = self.0.subscribe();
        loop {
            if let Err(refusal) = still() {
                return refusal;
            }
            if changes.changed().await.is_err() {
                return Refusal::own(Reason::Ended, "a connection", "its session is over");
            }
        }
    }
}

impl Governs for CurrentPolicy {
    fn rules(&self) -> Arc<SessionPolicies> {
        Arc::clone(&self.0.borrow().rules)
    }

    fn generation(&self) -> u64 {
        self.0.borrow().generation
    }

    fn masked(&self, text: &str) -> Option<String> {
        self.now().scans.masked(text)
    }

    fn masked_event<'e>(&self, event: &Event<'e>) -> Option<Event<'e>> {
        self.now().scans.masked_event(event)
    }
}

impl DialPolicy for CurrentPolicy {
    fn opens_tls(&self) -> bool {
        self.0.borrow().rules.opens_tls()
    }

    fn names(&self) -> (Arc<SessionPolicies>, Arc<Resolver>) {
        let in_force = self.0.borrow();
        (Arc::clone(&in_force.rules), Arc::clone(&in_force.resolver))
    }
}
