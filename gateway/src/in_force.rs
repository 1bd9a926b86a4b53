//! What a sandbox is judged by until the policy changes: rules, the number of their
//! generation, what scans as they say, and names as they were resolved under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use outgate_record::Reason;

use crate::audit::Event;
use crate::origin::DialPolicy;
use crate::recorder::Governs;
use crate::refusal::Refusal;
use crate::resolve::{Resolver, System};
use crate::rules::SessionPolicies;
use crate::scan::Scans;
use crate::tasks::UnderWay;

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
pub(crate) struct CurrentPolicy {
    now: watch::Sender<Arc<InForce>>,
    /// What goes on and may be revoked is under way.
    under_way: Arc<UnderWay>,
    /// Nothing new passes, and nothing that goes on is revoked any more.
    winds_down: AtomicBool,
}

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
    pub(crate) fn new(
        system: &Arc<System>,
        (scanned, generation): (Scanned, u64),
        under_way: Arc<UnderWay>,
    ) -> Self {
        let first = InForce::new(system, scanned, generation);
        Self {
            now: watch::Sender::new(Arc::new(first)),
            under_way,
            winds_down: AtomicBool::new(false),
        }
    }

    /// From here on what goes on is not revoked by rules under which nothing new passes.
    pub(crate) fn wind_down(&self) {
        self.winds_down.store(true, Ordering::Relaxed);
    }

    /// What is finished before the gateway ends.
    pub(crate) fn under_way(&self) -> &Arc<UnderWay> {
        &self.under_way
    }

    /// What is in force now.
    pub(crate) fn now(&self) -> Arc<InForce> {
        Arc::clone(&self.now.borrow())
    }

    /// Puts other rules in force, under the next generation, which is returned.
    pub(crate) fn replace(&self, system: &Arc<System>, scanned: Scanned) -> u64 {
        let generation = self.generation().saturating_add(1);
        let next = InForce::new(system, scanned, generation);
        self.now.send_replace(Arc::new(next));
        generation
    }

    /// Returns once `still` refuses, which is asked now and whenever other
    /// rules are in force. For what was allowed once and goes on.
    pub(crate) async fn revoked(&self, still: impl Fn() -> Result<(), Refusal>) -> Refusal {
        let _piece = self.under_way.begin();
        let mut changes = self.now.subscribe();
        loop {
            if !self.winds_down.load(Ordering::Relaxed)
                && let Err(refusal) = still()
            {
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
        Arc::clone(&self.now.borrow().rules)
    }

    fn generation(&self) -> u64 {
        self.now.borrow().generation
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
        self.now.borrow().rules.opens_tls()
    }

    fn names(&self) -> (Arc<SessionPolicies>, Arc<Resolver>) {
        let in_force = self.now.borrow();
        (Arc::clone(&in_force.rules), Arc::clone(&in_force.resolver))
    }
}
