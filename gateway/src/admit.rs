//! Every verdict to the record, before its effect: what holds a permit for a request or
//! a tunnel got it here. Sends nothing to anybody.

use outgate_handoff::ProcessFacts;
use outgate_policy::{Denial, DenialReason, Facts, Host, Permit, Verdict};
use outgate_record::Reason;

use crate::audit::{AuditError, Event, Kind, Noted, Outcome};
use crate::caller::requested;
use crate::client_hello::Encrypted;
use crate::decide::{asking, shown};
use crate::destination::{Endpoint, peer};
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::target::Target;

/// May this request be sent? Recorded either way.
pub(crate) async fn request(
    recorder: &Recorder,
    process: &ProcessFacts,
    target: &Target,
    verdict: Verdict,
) -> Result<Permit, Refusal> {
    let (noted, verdict) = note(recorder, process, target, verdict);
    let settled = match noted {
        Ok(noted) => recorder.settle(noted).await,
        Err(error) => Err(error),
    };
    match (verdict, settled) {
        (Verdict::Allow(permit), Ok(())) => {
            if let Some(denial) = permit.denied() {
                recorder.tell_passed(&process.executable, denial);
            }
            Ok(permit)
        }
        (Verdict::Allow(_), Err(_)) => Err(Refusal::unrecorded(&target.origin())),
        (Verdict::Deny(denial), _) => Err(Refusal::Policy(denial)),
    }
}

/// The verdict on a request as it may be shown, and its record on the way.
fn note(
    recorder: &Recorder,
    process: &ProcessFacts,
    target: &Target,
    verdict: Verdict,
) -> (Result<Noted, AuditError>, Verdict) {
    let origin = target.origin();
    let event = |outcome| {
        let event = Event::new(Kind::Request, outcome, &origin).process(process);
        requested(event, target)
    };
    let verdict = match verdict {
        Verdict::Deny(denial) => Verdict::Deny(shown(denial, target)),
        Verdict::Allow(permit) => Verdict::Allow(permit.told(|denial| shown(denial, target))),
    };
    let noted = match &verdict {
        Verdict::Allow(permit) => recorder.note(&event(Outcome::Allow).permit(permit)),
        Verdict::Deny(denial) => recorder.note(&event(Outcome::Deny).denial(denial)),
    };
    (noted, verdict)
}

/// What may happen to TLS for a host.
#[derive(Debug)]
pub(crate) enum Interception {
    /// It may pass unopened.
    Pass(Permit),
    /// It might, but it may be for another host than it says.
    Hidden(Refusal),
    /// Somebody has to look inside, for the reason that is given.
    Open(Refusal),
    /// Nothing.
    Deny(Refusal),
}

/// What may happen to TLS for this host? Recorded where it passes unopened:
/// otherwise what comes of it is.
///
/// A ClientHello with a hidden name beside the open one (RFC 9849) never passes
/// unopened: the origin may take the hidden one. Where TLS is opened nobody ever
/// sees it, and browsers send one to everybody, mostly without a meaning.
pub(crate) fn inside(
    recorder: &Recorder,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
    encrypted: Encrypted,
) -> Interception {
    let facts = Facts::Tunnel {
        process: asking(process),
        peer: peer(host),
        port,
    };
    let target = format!("{host}:{port}");
    match recorder.rules().evaluate(&facts) {
        Verdict::Allow(_) if encrypted == Encrypted::Yes => {
            let because = "the ClientHello hides a server name (ECH), and unopened nobody can tell \
                           whom it is for; an https:// rule in the place of tls:// has it opened";
            Interception::Hidden(Refusal::own(
                Reason::Ech,
                &format!("https://{target}"),
                because,
            ))
        }
        Verdict::Allow(permit) => {
            let event = Event::new(Kind::Tunnel, Outcome::Allow, &target)
                .process(process)
                .detail("uninspected")
                .rule(permit.rule());
            match recorder.record(&event) {
                Ok(()) => Interception::Pass(permit),
                Err(_) => Interception::Deny(Refusal::unrecorded(&target)),
            }
        }
        Verdict::Deny(denial) if denial.reason() == DenialReason::NeedsInspection => {
            Interception::Open(Refusal::Policy(denial))
        }
        Verdict::Deny(denial) => Interception::Deny(Refusal::Policy(denial)),
    }
}

/// Records and tells what passes in spite of what the rules say of where it leads.
pub(crate) fn passed(
    recorder: &Recorder,
    process: &ProcessFacts,
    target: &str,
    denial: &Denial,
) -> Result<(), AuditError> {
    let event = Event::new(Kind::Connect, Outcome::Allow, target).process(process);
    recorder.record(&event.passed(denial))?;
    recorder.tell_passed(&process.executable, denial);
    Ok(())
}

/// Notes that an origin is asked which HTTP it speaks before it gets a
/// request: nothing of the command's reaches it yet.
pub(crate) fn opening(
    recorder: &Recorder,
    process: &ProcessFacts,
    host: &Host,
    port: u16,
) -> Result<(), AuditError> {
    note_tunnel(recorder, process, Endpoint { host, port }, "opened")
}

/// Notes that an origin is presented a certificate of the operator's, if it asks
/// for one: nobody knows beforehand.
pub(crate) fn presenting(
    recorder: &Recorder,
    process: &ProcessFacts,
    host: &Host,
    port: u16,
) -> Result<(), AuditError> {
    note_tunnel(
        recorder,
        process,
        Endpoint { host, port },
        "certificate presented",
    )
}

/// Notes what is done with a connection to an origin, before it is done.
fn note_tunnel(
    recorder: &Recorder,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
    detail: &str,
) -> Result<(), AuditError> {
    let target = format!("{host}:{port}");
    let event = Event::new(Kind::Tunnel, Outcome::Note, &target);
    recorder.record(&event.process(process).detail(detail))
}
