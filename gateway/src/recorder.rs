//! What a sandbox's decisions are recorded by, and its person is told by: the record, the
//! lines on the terminal, and what of both may be shown. Nothing of it depends on what is
//! judged; whoever judges writes here first.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard};

use outgate_handoff::{LINE_BYTES_MAX, ProcessFacts, ToLauncher};
use tokio::sync::Semaphore;

use crate::audit::{Audit, AuditError, Event, Kind, Noted, Outcome};
use crate::control::ControlSocket;
use crate::limits;
use crate::refusal::Refusal;
use crate::rules::SessionPolicies;
use crate::text::shortened;
use outgate_policy::{Denial, printable};

mod denials;
mod recent;
mod turn;

use denials::DenialLines;
pub(crate) use recent::RecentDenial;
use turn::turn;

/// What is in force now, and what may be written down under it.
pub(crate) trait Governs: Debug + Send + Sync {
    /// The rules, to be asked anew for every decision.
    fn rules(&self) -> Arc<SessionPolicies>;

    /// The number of the policy, counted from the run's start.
    fn generation(&self) -> u64;

    /// A text without values that may not be written down; nothing where it has none.
    fn masked(&self, text: &str) -> Option<String>;

    /// The same of a record.
    fn masked_event<'e>(&self, event: &Event<'e>) -> Option<Event<'e>>;
}

/// The record of one sandbox, and the way to its person.
#[derive(Debug)]
pub(crate) struct Recorder {
    governs: Arc<dyn Governs>,
    audit: Audit,
    control: Arc<ControlSocket>,
    denials: Mutex<DenialLines>,
    flows: Arc<Semaphore>,
    flows_max: usize,
}

impl Recorder {
    /// `flows` has a permit for each connection that may be served, `flows_max` in all.
    pub(crate) fn new(
        governs: Arc<dyn Governs>,
        audit: Audit,
        control: Arc<ControlSocket>,
        (flows, flows_max): (Arc<Semaphore>, usize),
    ) -> Self {
        Self {
            governs,
            audit,
            control,
            denials: Mutex::default(),
            flows,
            flows_max,
        }
    }

    /// The rules in force: to be asked anew for every decision.
    pub(crate) fn rules(&self) -> Arc<SessionPolicies> {
        self.governs.rules()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.governs.generation()
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }

    pub(crate) fn control(&self) -> &Arc<ControlSocket> {
        &self.control
    }

    /// Writes the first record; nothing begins if this fails.
    ///
    /// # Errors
    /// Why it cannot be written, and what to do.
    pub(crate) fn begin(&self, event: &Event<'_>) -> Result<(), String> {
        let masked = self.governs.masked_event(event);
        let event = masked.as_ref().unwrap_or(event);
        let written = self.audit.write(self.generation(), event);
        written.map_err(|error| format!("{error} to {}", self.audit.fault()))
    }

    /// Writes a record; nothing it announces may happen if this fails.
    pub(crate) fn record(&self, event: &Event<'_>) -> Result<(), AuditError> {
        let masked = self.governs.masked_event(event);
        let event = masked.as_ref().unwrap_or(event);
        let result = self.audit.write(self.generation(), event);
        self.tell_lost(&result);
        result
    }

    /// The same, together with those of other requests that came in the same
    /// turn of the event loop: one write(2) for all of them. To be settled
    /// before what the record announces.
    pub(crate) fn note(&self, event: &Event<'_>) -> Result<Noted, AuditError> {
        let masked = self.governs.masked_event(event);
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

    /// Records what this process was refused.
    pub(crate) fn refused(&self, kind: Kind, process: &ProcessFacts, target: &str, why: &Refusal) {
        let event = Event::new(kind, Outcome::Deny, target).process(process);
        let event = match why {
            Refusal::Policy(denial) => event.denial(denial),
            Refusal::Own(own) => event.reason(own.reason, &own.because),
        };
        self.record(&event).ok();
    }

    /// Where the records go, for people.
    pub(crate) fn audit_path(&self) -> String {
        let path = self.audit.path().map(|path| path.to_string_lossy());
        path.map(std::borrow::Cow::into_owned).unwrap_or_default()
    }

    /// A text without values that may not be written down.
    pub(crate) fn masked(&self, text: &str) -> Option<String> {
        self.governs.masked(text)
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

    /// Tells the user what this program was let do in spite of the rules, in the same way.
    pub(crate) fn tell_passed(&self, program: &str, denial: &Denial) {
        let shown = denial.masked(&|text| self.masked(text));
        let line = self.denials.lock();
        let line = line.map(|mut own| own.passed(program, &shown));
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

    /// One line for the person.
    pub(crate) fn say(&self, line: &str) {
        let line = shortened(&printable(line), LINE_BYTES_MAX);
        self.control.offer(&ToLauncher::Notice { line });
    }

    /// What was refused last, the newest first.
    pub(crate) fn recent(&self) -> Vec<RecentDenial> {
        let lines = self.denials.lock();
        lines
            .map(|own| own.recent().newest_first())
            .unwrap_or_default()
    }

    /// What was refused so far; nothing where that cannot be told any more.
    pub(crate) fn denials(&self) -> Option<MutexGuard<'_, DenialLines>> {
        self.denials.lock().ok()
    }
}
