//! The words of a denial: what was denied, why, and the flag that would allow it.
//!
//! Everything shown is ASCII without controls, carries no query and no
//! resolved address. This file decides nothing.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::effect::{Effect, RuleRef};
use crate::facts::{Facts, Peer, Scheme};
use crate::grammar::{self, UNIX};
use crate::limits::SHOWN_PATH_BYTES_MAX;
use crate::other_method::OtherMethod;
use crate::path::RequestTarget;
use crate::pattern::PathPattern;
use crate::printable::printable;
use crate::rule::Protocol;
use crate::settings::Intercept;
use crate::special::{OWN_CLASS, OWN_HOST, is_never_class};
use crate::survey::{Cause, InsideLook};
use crate::verdict::{Denial, DenialReason};

/// An event as a denial names it.
pub(crate) enum DeniedEvent<'a> {
    Connection(Peer<'a>, u16),
    /// A connection whose use a question names, and the protocol that a rule
    /// has to name to allow it.
    Whole(Protocol, Peer<'a>, u16),
    Tls(Peer<'a>, u16),
    Request(RequestEvent<'a>),
    Unix(&'a str),
    Listen(SocketAddr),
}

/// A request as a denial names it.
pub(crate) struct RequestEvent<'a> {
    peer: Peer<'a>,
    port: u16,
    scheme: Scheme,
    method: &'a str,
    target: &'a RequestTarget,
}

impl<'a> DeniedEvent<'a> {
    pub(crate) fn of(facts: &Facts<'a>) -> Self {
        match *facts {
            Facts::Connect { peer, port, .. } | Facts::Dial { peer, port, .. } => {
                Self::Connection(peer, port)
            }
            Facts::Tunnel { peer, port, .. } => Self::Tls(peer, port),
            Facts::Request {
                peer,
                port,
                scheme,
                method,
                target,
                ..
            } => Self::Request(RequestEvent {
                peer,
                port,
                scheme,
                method,
                target,
            }),
            Facts::Unix { path, .. } => Self::Unix(path),
            Facts::Listen { address, .. } => Self::Listen(address),
        }
    }

    fn is_to_name(&self) -> bool {
        matches!(self, Self::Connection(Peer::Name(_), _))
    }

    fn subject(&self) -> String {
        match self {
            Self::Connection(peer, port) => format!("connection to {}:{port}", host(*peer)),
            Self::Whole(protocol, peer, port) => {
                format!("{}://{}:{port}", protocol.as_str(), host(*peer))
            }
            Self::Tls(peer, port) => format!("TLS to {}:{port}", host(*peer)),
            Self::Request(request) => format!(
                "{} {}{}",
                printable(request.method),
                request.origin(),
                shown_path(request.target.path())
            ),
            Self::Unix(path) => format!("connection to unix://{}", printable(path)),
            Self::Listen(address) => format!("listening on {address}"),
        }
    }

    /// The flag with the narrowest rule that allows the event, with these keys
    /// of its query: values are not shown, since some are secrets.
    fn flag(&self, keys: &[Box<str>]) -> Option<String> {
        // What comes back as another path, or as none, is offered to nobody.
        if let Self::Unix(path) = self
            && (printable(path) != *path
                || grammar::parse(&format!("{UNIX}{path}"), Effect::Allow).is_err())
        {
            return None;
        }
        Some(match self {
            Self::Connection(peer, port) => format!("-a '{}'", connection_rule(*peer, *port)),
            Self::Whole(protocol, peer, port) => {
                let port = match protocol {
                    Protocol::Tcp => format!(":{port}"),
                    Protocol::Http | Protocol::Ws => port_unless(*port, 80),
                    Protocol::Https | Protocol::Wss | Protocol::Tls => port_unless(*port, 443),
                };
                format!("-a '{}://{}{port}'", protocol.as_str(), meant(*peer))
            }
            Self::Tls(peer, port) => {
                format!("-a 'tls://{}{}'", meant(*peer), port_unless(*port, 443))
            }
            Self::Request(request) => {
                let path = pattern_of(request.target);
                let method = match request.scheme {
                    Scheme::Http | Scheme::Https if grammar::is_rule_method(request.method) => {
                        format!("{} ", request.method)
                    }
                    Scheme::Http | Scheme::Https | Scheme::Ws | Scheme::Wss => String::new(),
                };
                let query = query_of(keys);
                let origin = request.origin_of(&meant(request.peer));
                quoted("-a", &format!("{method}{origin}{path}{query}"))
            }
            // A rule of these would be for others too.
            Self::Unix(path) if path.contains(['*', '?', '[', '{']) => return None,
            Self::Unix(path) => quoted("-a", &format!("unix://{}", printable(path))),
            Self::Listen(address) => format!("--listen '{address}'"),
        })
    }
}

impl RequestEvent<'_> {
    fn origin(&self) -> String {
        self.origin_of(&host(self.peer))
    }

    fn origin_of(&self, host: &str) -> String {
        let port = port_unless(self.port, self.scheme.default_port());
        format!("{}://{host}{port}", self.scheme.as_str())
    }
}

/// Puts a cause into words; what is closed is so because the policy's switch
/// for TLS says it.
pub(crate) fn denial(event: &DeniedEvent<'_>, cause: Cause, intercept: Intercept) -> Denial {
    let because = match cause.reason {
        DenialReason::NeedsInspection => unseen(&cause, event, intercept),
        _ => because(&cause, event),
    };
    let flag = match cause.reason {
        DenialReason::NoRule => event.flag(&cause.query),
        DenialReason::SpecialUse if !event.is_to_name() && !is_never(&cause) => event.flag(&[]),
        DenialReason::NeedsInspection => match (event, &cause.rule) {
            (DeniedEvent::Tls(..), Some(rule)) if rule.effect == Effect::Deny => {
                (intercept == Intercept::Never).then(|| "--intercept when-needed".to_owned())
            }
            (DeniedEvent::Tls(..), _) => event.flag(&[]),
            _ => None,
        },
        DenialReason::SpecialUse
        | DenialReason::DenyRule
        | DenialReason::OnlyRule
        | DenialReason::Process
        | DenialReason::OtherMethod
        | DenialReason::Malformed => None,
    };
    let flag = flag.map(String::into_boxed_str);
    Denial {
        reason: cause.reason,
        // A rule that came near did not decide.
        rule: cause.rule.filter(|_| cause.reason != DenialReason::NoRule),
        subject: event.subject(),
        because,
        flag,
        note: None,
    }
}

/// The denial of a request whose query asks for another method; `flag` would allow that.
pub(crate) fn other_method(
    event: &DeniedEvent<'_>,
    asked: &OtherMethod,
    flag: Option<String>,
) -> Denial {
    let cause = Cause::plain(DenialReason::OtherMethod);
    Denial {
        because: asked.to_string(),
        flag: flag.map(String::into_boxed_str),
        ..denial(event, cause, Intercept::default())
    }
}

fn is_never(cause: &Cause) -> bool {
    cause.class.is_some_and(is_never_class)
}

fn because(cause: &Cause, event: &DeniedEvent<'_>) -> String {
    let rule = cause.rule.as_ref().map(shown_rule).unwrap_or_default();
    match cause.reason {
        DenialReason::NoRule if cause.rule.is_some() => format!("{rule} needs another query"),
        DenialReason::NoRule => "no rule allows it".to_owned(),
        DenialReason::DenyRule => format!("{rule} denies it"),
        DenialReason::OnlyRule => format!("{rule} allows nothing else there"),
        DenialReason::Process => {
            let mut list = String::new();
            for executable in cause.executables.iter().take(3) {
                let separator = if list.is_empty() { "" } else { ", " };
                let _ = write!(list, "{separator}{}", printable(executable));
            }
            format!("{rule} allows it for {list} only")
        }
        DenialReason::SpecialUse => {
            let class = cause.class.unwrap_or("special-use");
            let article = if class.starts_with(['a', 'e', 'i', 'o', 'u']) {
                "an"
            } else {
                "a"
            };
            if class == OWN_CLASS {
                format!("{OWN_HOST} is answered by outgate itself, on ports 80 and 443 only")
            } else if is_never(cause) {
                format!("{article} {class} address is never a destination")
            } else if event.is_to_name() {
                format!(
                    "the name leads to {article} {class} address, which only `--resolve` or the rule's own `addresses` can grant"
                )
            } else {
                format!(
                    "{article} {class} address needs a rule that names it; `*` is public hosts only"
                )
            }
        }
        DenialReason::NeedsInspection => "somebody would have to look inside".to_owned(),
        DenialReason::OtherMethod => "it asks for another method".to_owned(),
        DenialReason::Malformed => "it is malformed".to_owned(),
    }
}

/// Why what nobody looks into may not pass so.
fn unseen(cause: &Cause, event: &DeniedEvent<'_>, intercept: Intercept) -> String {
    let closed = match (event, intercept) {
        (DeniedEvent::Tls(..), Intercept::Never) => {
            "and `[tls] intercept = \"never\"` forbids to look inside"
        }
        (DeniedEvent::Tls(..), _) => "so TLS is opened to judge them",
        _ => "and what passes under a tcp:// rule is not looked at",
    };
    match &cause.rule {
        Some(rule) if rule.effect == Effect::Deny => {
            let rule = shown_rule(rule);
            format!("{rule} may deny requests inside, {closed}")
        }
        Some(rule) if cause.look == InsideLook::Scan => {
            format!("{} has its requests scanned, {closed}", shown_rule(rule))
        }
        Some(rule) => format!("{} allows some requests only, {closed}", shown_rule(rule)),
        None if intercept == Intercept::Always => {
            "`[tls] intercept = \"always\"` opens all TLS".to_owned()
        }
        None => format!("the scan or a certificate needs a look inside, {closed}"),
    }
}

/// What is built in and has no rule of the user.
pub(crate) fn built_in(text: &str) -> RuleRef {
    RuleRef {
        id: 0,
        effect: Effect::Allow,
        text: text.into(),
        place: "built in".into(),
    }
}

fn shown_rule(rule: &RuleRef) -> String {
    format!(
        "the {} rule `{}` at {}",
        rule.effect.as_str(),
        printable(&rule.text),
        printable(&rule.place)
    )
}

fn host(peer: Peer<'_>) -> String {
    match peer {
        Peer::Name(name) => name.as_str().to_owned(),
        Peer::Address(ip) => match ip.to_canonical() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        },
    }
}

/// The host as a person writes it in a rule: this machine has a name.
pub(crate) fn meant(peer: Peer<'_>) -> String {
    let itself = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    match peer {
        Peer::Address(ip) if itself.contains(&ip.to_canonical()) => "localhost".to_owned(),
        Peer::Address(_) | Peer::Name(_) => host(peer),
    }
}

pub(crate) fn connection_rule(peer: Peer<'_>, port: u16) -> String {
    let host = meant(peer);
    match port {
        80 => format!("http://{host}"),
        443 => format!("https://{host}"),
        port if host == "localhost" && !speaks_another_by_custom(port) => {
            format!("http://localhost:{port}")
        }
        _ => format!("tcp://{host}:{port}"),
    }
}

/// Where servers on a developer's machine speak something other than HTTP, which most of
/// them do: shells, mail, directories, databases, queues, caches, screens.
fn speaks_another_by_custom(port: u16) -> bool {
    matches!(
        port,
        0..=79
            | 81..=442
            | 444..=1023
            | 1025
            | 1433
            | 1521
            | 1883
            | 2181
            | 3306..=3309
            | 3389
            | 4222
            | 5432..=5440
            | 5671
            | 5672
            | 5900..=5909
            | 6379..=6399
            | 7687
            | 9042
            | 9092..=9094
            | 9418
            | 11211
            | 26379
            | 27017..=27019
            | 33060
    )
}

pub(crate) fn port_unless(port: u16, default: u16) -> String {
    if port == default {
        String::new()
    } else {
        format!(":{port}")
    }
}

/// A path as a sentence shows it: bounded.
fn shown_path(path: &str) -> String {
    match path.get(..SHOWN_PATH_BYTES_MAX) {
        Some(head) if path.len() > SHOWN_PATH_BYTES_MAX => format!("{head}..."),
        _ => path.to_owned(),
    }
}

/// The narrowest pattern that allows the path; a long one ends in `/**`, and
/// where servers disagree about the path, only the whole host would do.
pub(crate) fn pattern_of(target: &RequestTarget) -> String {
    let Some(readings) = target.readings() else {
        return String::new();
    };
    let mut pattern = target.path().replace('*', "%2A");
    if pattern.len() > SHOWN_PATH_BYTES_MAX {
        let head = pattern.get(..SHOWN_PATH_BYTES_MAX).unwrap_or("");
        let kept = head.rsplit_once('/').map_or("", |(kept, _)| kept);
        pattern = format!("{kept}/**");
    }
    match PathPattern::parse(&pattern) {
        Ok(Some(parsed)) if parsed.matches_all(readings) => pattern,
        Ok(_) | Err(_) => String::new(),
    }
}

/// Keys as a rule demands them, with any value.
fn query_of(keys: &[Box<str>]) -> String {
    let pairs: Vec<String> = keys.iter().map(|key| format!("{key}=*")).collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}

pub(crate) fn quoted(flag: &str, text: &str) -> String {
    format!("{flag} '{}'", text.replace('\'', r"'\''"))
}
