//! One connection of the command: who opened it, where it leads, and what went over it.
//! Serves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use outgate_handoff::ProcessFacts;
use tokio::time::sleep;

use crate::audit::{Event, Kind, Outcome};
use crate::body::Traffic;
use crate::caller::Caller;
use crate::destination::Destination;
use crate::limits;
use crate::session::Session;

/// A connection, its destination and its owner.
#[derive(Debug)]
pub(crate) struct Flow {
    session: Arc<Session>,
    caller: Arc<Caller>,
    traffic: Arc<Traffic>,
    started: Instant,
    /// The generation of the policy it was judged by as a whole.
    generation: u64,
    /// Set where nothing leaves: each name is recorded, the asking is not.
    quiet: AtomicBool,
}

impl Flow {
    /// One that begins now, judged by the rules in force.
    pub(crate) fn new(session: &Arc<Session>, caller: Caller) -> Self {
        Self {
            session: Arc::clone(session),
            caller: Arc::new(caller),
            traffic: Arc::default(),
            started: Instant::now(),
            generation: session.generation(),
            quiet: AtomicBool::new(false),
        }
    }

    /// Nothing leaves on it that is not recorded otherwise: it gets no closing record.
    pub(crate) fn hush(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Who opened it, and where it leads.
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(crate) fn process(&self) -> &ProcessFacts {
        self.caller.process()
    }

    pub(crate) fn destination(&self) -> &Destination {
        self.caller.destination()
    }

    /// Whether other rules are in force than those it was judged by.
    pub(crate) fn is_judged_by_others(&self) -> bool {
        self.generation != self.session.generation()
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Returns once no content moved in either direction for too long: a
    /// request or a response that will never be complete.
    pub(crate) async fn stands_still(&self) {
        loop {
            let before = self.traffic.total();
            sleep(limits::TUNNEL_IDLE).await;
            if self.traffic.total() == before {
                return;
            }
        }
    }
}

impl Drop for Flow {
    /// The closing record: how much went each way, and how long it took.
    /// Written however the connection ends.
    fn drop(&mut self) {
        if self.quiet.load(Ordering::Relaxed) {
            return;
        }
        let target = self.destination().to_string();
        let up = self.traffic.up.load(Ordering::Relaxed);
        let down = self.traffic.down.load(Ordering::Relaxed);
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = Event::new(Kind::Flow, Outcome::Note, &target)
            .process(self.process())
            .traffic(up, down, millis);
        self.session.recorder().record(&event).ok();
    }
}
