//! Facts to verdicts: the only caller of the policy's decision function for what leaves.
//! Each address that a name has is judged here, whatever the name is: against SSRF and DNS
//! rebinding, only what becomes a [`Vetted`] is dialled.
//! Pure: records nothing, sends nothing; whoever acts on a verdict records it first.

use outgate_handoff::ProcessFacts;
use outgate_policy::{
    Denial, DenialReason, Facts, Host, Permit, Process as Asking, Route, Verdict, Vetted,
};
use outgate_record::Reason;

use crate::destination::{Destination, Endpoint, Party, peer};
use crate::refusal::Refusal;
use crate::resolve::ResolvedPin;
use crate::rules::SessionPolicies;
use crate::target::Target;

pub(crate) fn asking(process: &ProcessFacts) -> Asking<'_> {
    Asking {
        executable: &process.executable,
    }
}

/// May anything be sent there over TCP? Tries each host that the destination
/// may be judged as; records nothing, since the question is recorded by who
/// answers it.
pub(crate) fn connect(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    destination: &Destination,
) -> Result<(Host, Permit), Refusal> {
    if let Party::Unassigned(_) = destination.party {
        return Err(Refusal::own(
            Reason::Unassigned,
            &destination.to_string(),
            "this address stands for no name",
        ));
    }
    let mut first: Option<Refusal> = None;
    let mut granted = None;
    let mut monitored = None;
    let mut denied = false;
    for host in destination.hosts() {
        let to = Endpoint {
            host: &host,
            port: destination.port,
        };
        match connect_to(rules, process, to) {
            Verdict::Allow(permit) => match permit.denied() {
                None => {
                    granted.get_or_insert((host, permit));
                }
                Some(denial) => {
                    denied |= denial.reason() == DenialReason::DenyRule;
                    monitored.get_or_insert((host, permit));
                }
            },
            // Bytes nobody looks into could be meant for any of the names.
            Verdict::Deny(denial) if denial.reason() == DenialReason::DenyRule => {
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
    // Of several names those that rules allow come first.
    if let Some(monitored) = monitored {
        return Ok(monitored);
    }
    Err(first.unwrap_or_else(|| {
        Refusal::own(Reason::NoHost, &destination.to_string(), "it has no name")
    }))
}

/// May anything be sent to this host over TCP, under this very name?
pub(crate) fn connect_to(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
) -> Verdict {
    rules.evaluate(&Facts::Connect {
        process: asking(process),
        peer: peer(host),
        port,
    })
}

/// What the rules in force say of a request; nothing may follow from it before
/// it is recorded.
pub(crate) fn judged(rules: &SessionPolicies, process: &ProcessFacts, target: &Target) -> Verdict {
    rules.evaluate(&facts(process, target))
}

/// The same of a request that another one carries, beside the verdict on that.
pub(crate) fn carried(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    (own, to): (&Target, &Target),
) -> Verdict {
    let verdict = judged(rules, process, to);
    match &verdict {
        Verdict::Allow(permit) if permit.denied().is_some() => {
            verdict.beside(&judged(rules, process, own))
        }
        Verdict::Allow(_) | Verdict::Deny(_) => verdict,
    }
}

/// What the rules would say of the request by another method; records nothing, since it
/// is not made.
pub(crate) fn by_method(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    target: &Target,
    method: &str,
) -> Verdict {
    let verdict = rules.evaluate(&Facts::Request {
        process: asking(process),
        peer: peer(&target.host),
        port: target.port,
        scheme: target.scheme,
        method,
        target: &target.resource,
    });
    match &verdict {
        Verdict::Allow(permit) if permit.denied().is_some() => {
            verdict.beside(&judged(rules, process, target))
        }
        Verdict::Allow(_) | Verdict::Deny(_) => verdict,
    }
}

/// The addresses of a host that may be dialled.
#[derive(Debug)]
pub(crate) struct VettedAddresses {
    pub(crate) vetted: Vec<Vetted>,
    /// What the rules say of one of them, where a run monitors and it passes all the same.
    pub(crate) denied: Option<Denial>,
}

/// Whether a host is let through in spite of the rules: then each request to it is marked.
fn is_marked(rules: &SessionPolicies, process: &ProcessFacts, (host, port): (&Host, u16)) -> bool {
    let verdict = connect_to(rules, process, Endpoint { host, port });
    matches!(verdict, Verdict::Allow(permit) if permit.denied().is_some())
}

/// Whether it may be about where a name leads.
fn is_of_address(denial: &Denial) -> bool {
    matches!(
        denial.reason(),
        DenialReason::SpecialUse | DenialReason::DenyRule
    )
}

/// The addresses of a host that may be dialled. Denied ones are dropped; if
/// none is left, the first denial is the answer.
pub(crate) fn dial(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    host: &Host,
    port: u16,
    pins: &[ResolvedPin],
) -> Result<VettedAddresses, Refusal> {
    let mut first = None;
    let mut vetted = Vec::new();
    let mut denied = None;
    for pin in pins {
        if rules.is_page(pin.address) {
            return Err(Refusal::own(
                Reason::Shared,
                &format!("{host}:{port}"),
                "it is the admin listener of a gateway, out of reach of every command",
            ));
        }
        let facts = Facts::Dial {
            process: asking(process),
            peer: peer(host),
            port,
            address: pin.address.ip(),
            source: pin.source,
        };
        match rules.evaluate(&facts) {
            Verdict::Allow(permit) => {
                let of_address = permit.denied().filter(|denial| is_of_address(denial));
                denied = denied.or_else(|| of_address.cloned());
                vetted.extend(permit.vetted(pin.address.port()));
            }
            Verdict::Deny(denial) => {
                first.get_or_insert(denial);
            }
        }
    }
    match first {
        Some(denial) if vetted.is_empty() => Err(Refusal::Policy(denial)),
        _ => Ok(VettedAddresses {
            vetted,
            denied: denied.filter(|_| !is_marked(rules, process, (host, port))),
        }),
    }
}

/// May raw bytes go on to this host, by this address? For what was allowed
/// once; records nothing.
pub(crate) fn still_direct(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    to: &Destination,
    (host, pin): (&Host, ResolvedPin),
) -> Result<(), Refusal> {
    let (_, permit) = connect(rules, process, to)?;
    if permit.route() != Route::Direct {
        let because = "the rules now ask for a look inside";
        return Err(Refusal::own(Reason::Policy, &to.to_string(), because));
    }
    dial(rules, process, host, to.port, &[pin]).map(drop)
}

/// The same of TLS that passes unopened.
pub(crate) fn still_unopened(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
    pin: ResolvedPin,
) -> Result<(), Refusal> {
    let facts = Facts::Tunnel {
        process: asking(process),
        peer: peer(host),
        port,
    };
    match rules.evaluate(&facts) {
        Verdict::Allow(_) => dial(rules, process, host, port, &[pin]).map(drop),
        Verdict::Deny(denial) => Err(Refusal::Policy(denial)),
    }
}

/// The same of a request that became a connection of its own.
pub(crate) fn still_requested(
    rules: &SessionPolicies,
    process: &ProcessFacts,
    target: &Target,
    pin: ResolvedPin,
) -> Result<(), Refusal> {
    match rules.evaluate(&facts(process, target)) {
        Verdict::Deny(denial) => return Err(Refusal::Policy(shown(denial, target))),
        Verdict::Allow(permit) if permit.inspect().stricter(target.mode) != target.mode => {
            let because = "the rules now ask for a closer look at what it carries";
            let subject = format!("{} {}", target.method, target.origin());
            return Err(Refusal::own(Reason::Policy, &subject, because));
        }
        Verdict::Allow(_) => {}
    }
    dial(rules, process, &target.host, target.port, &[pin]).map(drop)
}

/// A denial of a request, in words that show no more of its target than may be.
pub(crate) fn shown(denial: Denial, target: &Target) -> Denial {
    match target.path() {
        Some(_) => denial,
        None => denial.of_whole(&format!("{} {}", target.method, target.origin())),
    }
}

/// A request as the policy sees it.
pub(crate) fn facts<'a>(process: &'a ProcessFacts, target: &'a Target) -> Facts<'a> {
    Facts::Request {
        process: asking(process),
        peer: peer(&target.host),
        port: target.port,
        scheme: target.scheme,
        method: target.method.as_str(),
        target: &target.resource,
    }
}
