//! Whether a name may leave: its labels go out with the question for it, and in the ClientHello,
//! whoever asks. Records and tells what is found in one, and never the name.

use outgate_dlp::{Action, Finding};
use outgate_handoff::ProcessFacts;
use outgate_policy::HostName;
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::refusal::Refusal;
use crate::scan::{SandboxScan, ToldFinding};
use crate::session::Session;

/// What stands in records for a name that may hold a credential.
const A_NAME: &str = "a name";

/// Judges a name that is asked for, spelt as `text`.
///
/// # Errors
/// It holds a secret, something that the scan refuses, or more new labels than may leave: all
/// recorded and told already.
pub(crate) fn may_leave(
    session: &Session,
    process: Option<&ProcessFacts>,
    (name, text): (&HostName, &str),
) -> Result<(), Refusal> {
    if let Some(misuse) = session.secrets().and_then(|own| own.in_name(name.as_str())) {
        let event = Event::new(Kind::Finding, Outcome::Deny, name.as_str());
        let event = by(event.reason(Reason::Secret, &misuse.because), process);
        session.recorder().record(&event).ok();
        let refusal = Refusal::own(Reason::Secret, name.as_str(), &misuse.because);
        session.recorder().tell(&refusal);
        return Err(refusal);
    }
    match session.scan(session.rules().mode_of_name(name)) {
        Some(scan) => scanned(session, process, &scan, (name, text)),
        None => Ok(()),
    }
}

fn scanned(
    session: &Session,
    process: Option<&ProcessFacts>,
    scan: &SandboxScan,
    (name, text): (&HostName, &str),
) -> Result<(), Refusal> {
    let rules = session.rules();
    let mut blocked = None;
    for finding in &scan.name(&rules, name, text) {
        let told = told(session, process, finding);
        if finding.action == Action::Block && blocked.is_none() {
            blocked = Some(told.refusal);
        }
    }
    if let Some(refusal) = blocked {
        return Err(refusal);
    }
    let Err(because) = scan.labels(&rules, name) else {
        return Ok(());
    };
    let event = Event::new(Kind::Finding, Outcome::Deny, A_NAME).reason(Reason::Names, &because);
    session.recorder().record(&by(event, process)).ok();
    let refusal = Refusal::own(Reason::Names, A_NAME, &because);
    session.recorder().tell(&refusal);
    Err(refusal)
}

/// Records what was found in a name.
fn told(session: &Session, process: Option<&ProcessFacts>, finding: &Finding) -> ToldFinding {
    let told = ToldFinding::of(finding, A_NAME, None);
    let outcome = match finding.action {
        Action::Block => Outcome::Deny,
        Action::Warn => Outcome::Note,
    };
    let event = told.event(Event::new(told.kind, outcome, A_NAME));
    session
        .recorder()
        .record(&by(event.finding(finding), process))
        .ok();
    if finding.action == Action::Block {
        session.recorder().tell(&told.refusal);
    }
    told
}

fn by<'a>(event: Event<'a>, process: Option<&'a ProcessFacts>) -> Event<'a> {
    match process {
        Some(process) => event.process(process),
        None => event,
    }
}
