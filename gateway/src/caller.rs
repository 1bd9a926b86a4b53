//! Who asks: a process of the command, on a connection with one destination, and what
//! writes down and tells what it is refused. All that a filter of requests knows of the
//! connection.

use std::sync::Arc;

use outgate_handoff::ProcessFacts;

use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::destination::Destination;
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::rules::SessionPolicies;
use crate::target::Target;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Caller {
    recorder: Arc<Recorder>,
    process: ProcessFacts,
    destination: Destination,
}

impl Caller {
    pub(crate) fn new(
        recorder: &Arc<Recorder>,
        process: ProcessFacts,
        destination: Destination,
    ) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            process,
            destination,
        }
    }

    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    pub(crate) fn process(&self) -> &ProcessFacts {
        &self.process
    }

    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The rules in force: to be asked anew for every decision.
    pub(crate) fn rules(&self) -> Arc<SessionPolicies> {
        self.recorder.rules()
    }

    /// Tells the user about a refusal to this program.
    pub(crate) fn tell(&self, refusal: &Refusal) {
        self.recorder.tell_of(&self.process.executable, refusal);
    }

    /// Records a refusal of something that goes to `target`.
    pub(crate) fn refused(&self, kind: Kind, target: &str, why: &Refusal) {
        self.recorder.refused(kind, &self.process, target, why);
    }

    /// Records a refusal of a request, with its method and as much of its path as may
    /// be shown.
    pub(crate) fn refused_request(&self, target: &Target, why: &Refusal) {
        let origin = target.origin();
        let event = Event::new(Kind::Request, Outcome::Deny, &origin).process(&self.process);
        let event = match why {
            Refusal::Policy(denial) => event.denial(denial),
            Refusal::Own(own) => event.reason(own.reason, &own.because),
        };
        self.recorder.record(&requested(event, target)).ok();
    }

    /// Records and tells a refusal of this connection as a whole.
    pub(crate) fn refuse(&self, kind: Kind, refusal: &Refusal) {
        self.refused(kind, &self.destination.to_string(), refusal);
        self.tell(refusal);
    }

    /// Records what may not stand in a request, as a finding.
    pub(crate) fn found(&self, target: &Target, why: &Refusal) {
        let origin = target.origin();
        let event = Event::new(Kind::Finding, Outcome::Deny, &origin)
            .process(&self.process)
            .reason(why.reason(), why.because());
        self.recorder.record(&requested(event, target)).ok();
    }

    /// Records a placeholder where none may be, and makes the refusal of it.
    pub(crate) fn misused(&self, target: &Target, because: &str) -> Refusal {
        let subject = format!("{} {}", target.method, target.origin());
        let refusal = Refusal::own(Reason::Secret, &subject, because);
        self.found(target, &refusal);
        refusal
    }
}

/// A record of a request, with as much of its target as may be shown.
pub(crate) fn requested<'a>(event: Event<'a>, target: &'a Target) -> Event<'a> {
    let method = target.method.as_str();
    match target.path() {
        Some(resource) => event.request(method, resource.as_str()),
        None => event.method(method),
    }
}
