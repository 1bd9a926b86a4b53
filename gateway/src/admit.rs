//! Facts to verdicts, and every verdict to the record. The only caller of the
//! policy's decision function for flows; what holds a permit got it here, and
//! it was recorded before. Sends nothing to anybody.

use outgate_handoff::Process;
use outgate_policy::{Denial, Facts, Host, Permit, Process as Asking, Reason, Route, Verdict};

use crate::audit::{AuditError, Event, Kind, Noted, Outcome};
use crate::broker::Misuse;
use crate::client_hello::Encrypted;
use crate::destination::{Destination, Party, peer};
use crate::refusal::Refusal;
use crate::resolve::Pin;
use crate::session::Session;
use crate::target::Target;

pub(crate) fn asking(process: &Process) -> Asking<'_> {
    Asking {
        executable: &process.executable,
    }
}

/// May anything be sent there over TCP? Tries each host that the destination
/// may be judged as; records nothing, since the question is recorded by who
/// answers it.
pub(crate) fn connect(
    session: &Session,
    process: &Process,
    destination: &Destination,
) -> Result<(Host, Permit), Refusal> {
    if let Party::Unassigned(_) = destination.party {
        return Err(Refusal::own(
            "unassigned",
            &destination.to_string(),
            "this address stands for no name",
        ));
    }
    let mut first: Option<Refusal> = None;
    let mut granted = None;
    let mut denied = false;
    for host in destination.hosts() {
        let facts = Facts::Connect {
            process: asking(process),
            peer: peer(&host),
            port: destination.port,
        };
        match session.rules().evaluate(&facts) {
            Verdict::Allow(permit) => {
                granted.get_or_insert((host, permit));
            }
            // Bytes nobody looks into could be meant for any of the names.
            Verdict::Deny(denial) if denial.reason() == Reason::DenyRule => {
                first = Some(Refusal::Policy(denial));
                denied = true;
            }
            Verdict::Deny(denial) => {
                first.get_or_insert(Refusal::Policy(denial));
            }
        }
    }
    match granted {
        Some((host, permit)) if !(denied && permit.route() == Route::Direct) => {
            return Ok((host, permit));
        }
        _ => {}
    }
    Err(first
        .unwrap_or_else(|| Refusal::own("no-host", &destination.to_string(), "it has no name")))
}

/// What the rules in force say of a request; nothing may follow from it before
/// it is recorded.
pub(crate) fn judged(session: &Session, process: &Process, target: &Target) -> Verdict {
    session.rules().evaluate(&facts(process, target))
}

/// Whether the request would be allowed by another method; records nothing, since it
/// is not made.
pub(crate) fn would_allow(
    session: &Session,
    process: &Process,
    target: &Target,
    method: &str,
) -> bool {
    let facts = Facts::Request {
        process: asking(process),
        peer: peer(&target.host),
        port: target.port,
        scheme: target.scheme,
        method,
        target: &target.resource,
    };
    matches!(session.rules().evaluate(&facts), Verdict::Allow(_))
}

/// May this request be sent? Recorded either way.
pub(crate) async fn request(
    session: &Session,
    process: &Process,
    target: &Target,
    verdict: Verdict,
) -> Result<Permit, Refusal> {
    let (noted, verdict) = note(session, process, target, verdict);
    let settled = match noted {
        Ok(noted) => session.settle(noted).await,
        Err(error) => Err(error),
    };
    match (verdict, settled) {
        (Verdict::Allow(permit), Ok(())) => Ok(permit),
        (Verdict::Allow(_), Err(_)) => Err(Refusal::unrecorded(&target.origin())),
        (Verdict::Deny(denial), _) => Err(Refusal::Policy(denial)),
    }
}

/// The verdict on a request as it may be shown, and its record on the way.
fn note(
    session: &Session,
    process: &Process,
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
        verdict @ Verdict::Allow(_) => verdict,
    };
    let noted = match &verdict {
        Verdict::Allow(permit) => session.note(&event(Outcome::Allow).rule(permit.rule())),
        Verdict::Deny(denial) => session.note(&event(Outcome::Deny).denial(denial)),
    };
    (noted, verdict)
}

/// Records a placeholder where none may be, and makes the refusal of it.
pub(crate) fn misused(
    session: &Session,
    process: &Process,
    target: &Target,
    misuse: &Misuse,
) -> Refusal {
    let origin = target.origin();
    let event = Event::new(Kind::Finding, Outcome::Deny, &origin)
        .process(process)
        .reason("secret", &misuse.because);
    session.record(&requested(event, target)).ok();
    let subject = format!("{} {origin}", target.method);
    Refusal::own("secret", &subject, &misuse.because)
}

/// Records a refusal.
pub(crate) fn refused(
    session: &Session,
    kind: Kind,
    process: &Process,
    target: &str,
    why: &Refusal,
) {
    let event = Event::new(kind, Outcome::Deny, target).process(process);
    let event = match why {
        Refusal::Policy(denial) => event.denial(denial),
        Refusal::Own(own) => event.reason(own.token, &own.because),
    };
    session.record(&event).ok();
}

/// What may happen to TLS for a host.
#[derive(Debug)]
pub(crate) enum Inside {
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
/// A greeting with a hidden name beside the open one (RFC 9849) never passes
/// unopened: the origin may take the hidden one. Where TLS is opened nobody ever
/// sees it, and browsers send one to everybody, mostly without a meaning.
pub(crate) fn inside(
    session: &Session,
    process: &Process,
    (host, port): (&Host, u16),
    encrypted: Encrypted,
) -> Inside {
    let facts = Facts::Tunnel {
        process: asking(process),
        peer: peer(host),
        port,
    };
    let target = format!("{host}:{port}");
    match session.rules().evaluate(&facts) {
        Verdict::Allow(_) if encrypted == Encrypted::Yes => {
            let because = "the greeting hides a server name (ECH), and unopened nobody can tell \
                           whom it is for; an https:// rule in the place of tls:// has it opened";
            Inside::Hidden(Refusal::own("ech", &format!("https://{target}"), because))
        }
        Verdict::Allow(permit) => {
            let event = Event::new(Kind::Tunnel, Outcome::Allow, &target)
                .process(process)
                .detail("uninspected")
                .rule(permit.rule());
            match session.record(&event) {
                Ok(()) => Inside::Pass(permit),
                Err(_) => Inside::Deny(Refusal::unrecorded(&target)),
            }
        }
        Verdict::Deny(denial) if denial.reason() == Reason::NeedsInspection => {
            Inside::Open(Refusal::Policy(denial))
        }
        Verdict::Deny(denial) => Inside::Deny(Refusal::Policy(denial)),
    }
}

/// Notes that an origin is asked which HTTP it speaks before it gets a
/// request: nothing of the command's reaches it yet.
pub(crate) fn opening(
    session: &Session,
    process: &Process,
    host: &Host,
    port: u16,
) -> Result<(), AuditError> {
    let target = format!("{host}:{port}");
    let event = Event::new(Kind::Tunnel, Outcome::Note, &target);
    session.record(&event.process(process).detail("opened"))
}

/// Notes that an origin is presented a certificate of the operator's, if it asks
/// for one: nobody knows beforehand.
pub(crate) fn presenting(
    session: &Session,
    process: &Process,
    host: &Host,
    port: u16,
) -> Result<(), AuditError> {
    let target = format!("{host}:{port}");
    let event = Event::new(Kind::Tunnel, Outcome::Note, &target);
    session.record(&event.process(process).detail("certificate presented"))
}

/// The addresses of a host that may be dialled. Denied ones are dropped; if
/// none is left, the first denial is the answer.
pub(crate) fn dial(
    session: &Session,
    process: &Process,
    host: &Host,
    port: u16,
    pins: &[Pin],
) -> Result<Vec<Pin>, Refusal> {
    let mut first = None;
    let mut vetted = Vec::new();
    for pin in pins {
        let facts = Facts::Dial {
            process: asking(process),
            peer: peer(host),
            port,
            address: pin.address.ip(),
            source: pin.source,
        };
        match session.rules().evaluate(&facts) {
            Verdict::Allow(_) => vetted.push(*pin),
            Verdict::Deny(denial) => {
                first.get_or_insert(denial);
            }
        }
    }
    match first {
        Some(denial) if vetted.is_empty() => Err(Refusal::Policy(denial)),
        _ => Ok(vetted),
    }
}

/// May raw bytes go on to this host, by this address? For what was allowed
/// once; records nothing.
pub(crate) fn still_direct(
    session: &Session,
    process: &Process,
    to: &Destination,
    (host, pin): (&Host, Pin),
) -> Result<(), Refusal> {
    let (_, permit) = connect(session, process, to)?;
    if permit.route() != Route::Direct {
        let because = "the rules now ask for a look inside";
        return Err(Refusal::own("policy", &to.to_string(), because));
    }
    dial(session, process, host, to.port, &[pin]).map(drop)
}

/// The same of TLS that passes unopened.
pub(crate) fn still_unopened(
    session: &Session,
    process: &Process,
    (host, port): (&Host, u16),
    pin: Pin,
) -> Result<(), Refusal> {
    let facts = Facts::Tunnel {
        process: asking(process),
        peer: peer(host),
        port,
    };
    match session.rules().evaluate(&facts) {
        Verdict::Allow(_) => dial(session, process, host, port, &[pin]).map(drop),
        Verdict::Deny(denial) => Err(Refusal::Policy(denial)),
    }
}

/// The same of a request that became a connection of its own.
pub(crate) fn still_requested(
    session: &Session,
    process: &Process,
    target: &Target,
    pin: Pin,
) -> Result<(), Refusal> {
    match session.rules().evaluate(&facts(process, target)) {
        Verdict::Deny(denial) => return Err(Refusal::Policy(shown(denial, target))),
        Verdict::Allow(permit) if permit.inspect().stricter(target.mode) != target.mode => {
            let because = "the rules now ask for a closer look at what it carries";
            let subject = format!("{} {}", target.method, target.origin());
            return Err(Refusal::own("policy", &subject, because));
        }
        Verdict::Allow(_) => {}
    }
    dial(session, process, &target.host, target.port, &[pin]).map(drop)
}

/// A record of a request, with as much of its target as may be shown.
fn requested<'a>(event: Event<'a>, target: &'a Target) -> Event<'a> {
    let method = target.method.as_str();
    match target.path() {
        Some(resource) => event.request(method, resource.as_str()),
        None => event.method(method),
    }
}

/// A denial of a request, in words that show no more of its target than may be.
fn shown(denial: Denial, target: &Target) -> Denial {
    match target.path() {
        Some(_) => denial,
        None => denial.of_whole(&format!("{} {}", target.method, target.origin())),
    }
}

/// A request as the policy sees it.
fn facts<'a>(process: &'a Process, target: &'a Target) -> Facts<'a> {
    Facts::Request {
        process: asking(process),
        peer: peer(&target.host),
        port: target.port,
        scheme: target.scheme,
        method: target.method.as_str(),
        target: &target.resource,
    }
}
