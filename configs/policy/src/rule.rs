//! Rules: the one grammar of the command line and of policy documents.
//!
//! `[METHODS " "] [SCHEME "://"] HOST [":" PORTS] [PATH] ["?" QUERY]`, or
//! `unix://PATH`. A rule that exists can be evaluated. This file parses texts
//! and must not know where they came from; faults carry offsets only.

use std::sync::Arc;

use crate::facts::{Process, Scheme};
use crate::host::{HostPattern, shown};
use crate::limits::RULE_BYTES_MAX;
use crate::net::{Net, Ports};
use crate::path::RequestTarget;
use crate::pattern::{PathPattern, QueryPattern};
use crate::rule_host::{self, SuffixWarning};
use crate::verdict::{Effect, RuleRef};

/// What a rule is about, one protocol per value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Https,
    Ws,
    Wss,
    Tls,
    Tcp,
}

impl Protocol {
    pub(crate) const ALL: [Self; 6] = [
        Self::Https,
        Self::Http,
        Self::Wss,
        Self::Ws,
        Self::Tls,
        Self::Tcp,
    ];

    fn bit(self) -> u8 {
        match self {
            Self::Http => 1,
            Self::Https => 2,
            Self::Ws => 4,
            Self::Wss => 8,
            Self::Tls => 16,
            Self::Tcp => 32,
        }
    }

    /// The port that a rule of this protocol means when it names none.
    fn is_default_port(self, port: u16) -> bool {
        match self {
            Self::Http | Self::Ws => port == 80,
            Self::Https | Self::Wss | Self::Tls => port == 443,
            Self::Tcp => false,
        }
    }
}

impl From<Scheme> for Protocol {
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Http => Self::Http,
            Scheme::Https => Self::Https,
            Scheme::Ws => Self::Ws,
            Scheme::Wss => Self::Wss,
        }
    }
}

/// A set of protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protocols(u8);

impl Protocols {
    fn of(list: &[Protocol]) -> Self {
        Self(list.iter().fold(0, |bits, protocol| bits | protocol.bit()))
    }

    pub(crate) fn contains(self, protocol: Protocol) -> bool {
        self.0 & protocol.bit() != 0
    }
}

/// The methods of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Methods {
    Any,
    List(Vec<Box<str>>),
}

/// What a rule matches.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Something over the network.
    Network(NetworkTarget),
    /// Unix sockets: the path as written, and its pattern.
    Unix { path: String, pattern: PathPattern },
}

/// The network part of a rule.
#[derive(Debug, Clone)]
pub(crate) struct NetworkTarget {
    pub(crate) protocols: Protocols,
    pub(crate) methods: Methods,
    pub(crate) host: HostPattern,
    pub(crate) ports: Ports,
    pub(crate) path: Option<PathPattern>,
    pub(crate) query: Vec<QueryPattern>,
    /// Special-use ranges into which a granted name may lead.
    pub(crate) addresses: Vec<Net>,
}

/// A rule of a policy.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) reference: RuleRef,
    pub(crate) target: Target,
    /// Executables it is limited to; empty for all.
    pub(crate) process: Vec<Box<str>>,
}

/// A request as far as rules look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) method: &'a str,
    pub(crate) target: &'a RequestTarget,
}

impl Rule {
    /// Whether the rule grants to this process. An unknown one gets nothing
    /// from a rule that names executables.
    pub(crate) fn grants_process(&self, process: Process<'_>) -> bool {
        self.process.is_empty()
            || (!process.executable.is_empty()
                && self.process.iter().any(|own| **own == *process.executable))
    }

    /// Whether the rule restricts this process. An unknown one may be any.
    pub(crate) fn restricts_process(&self, process: Process<'_>) -> bool {
        process.executable.is_empty() || self.grants_process(process)
    }
}

impl NetworkTarget {
    /// Whether a rule that grants covers the protocol on the port.
    pub(crate) fn grants_port(&self, protocol: Protocol, port: u16) -> bool {
        self.protocols.contains(protocol)
            && self.ports.contains(port, || protocol.is_default_port(port))
    }

    /// Whether a rule that denies covers the protocol on the port.
    pub(crate) fn denies_port(&self, protocol: Protocol, port: u16) -> bool {
        self.protocols.contains(protocol) && self.ports.contains(port, || true)
    }

    /// Whether it is about some requests of a connection only.
    pub(crate) fn is_restricted(&self) -> bool {
        self.methods != Methods::Any || self.path.is_some() || !self.query.is_empty()
    }

    /// Whether a rule that grants covers method, path and query.
    pub(crate) fn grants_request(&self, request: RequestFacts<'_>) -> bool {
        let method = match &self.methods {
            Methods::Any => true,
            Methods::List(list) => list.iter().any(|own| **own == *request.method),
        };
        let query = request.target.query().unwrap_or("");
        method
            && self.path.as_ref().is_none_or(|pattern| {
                let readings = request.target.readings();
                readings.is_some_and(|readings| pattern.matches_all(readings))
            })
            && self.query.iter().all(|pattern| pattern.matches_all(query))
    }

    /// Whether a rule that denies covers method, path and query.
    pub(crate) fn denies_request(&self, request: RequestFacts<'_>) -> bool {
        let method = match &self.methods {
            Methods::Any => true,
            Methods::List(list) => list
                .iter()
                .any(|own| own.eq_ignore_ascii_case(request.method)),
        };
        let query = request.target.query().unwrap_or("");
        method
            && self.path.as_ref().is_none_or(|pattern| {
                let readings = request.target.readings();
                readings.is_some_and(|readings| pattern.matches_any(readings))
            })
            && self.query.iter().all(|pattern| pattern.matches_any(query))
    }
}

/// A fault or a warning of a rule: where in its text (in bytes), what, and the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleError {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl RuleError {
    pub(crate) fn new(offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn shifted(self, by: usize) -> Self {
        Self {
            offset: self.offset + by,
            ..self
        }
    }
}

/// A parsed rule and what to warn of.
pub(crate) type Parsed = (Target, Option<RuleError>);

/// Makes a target from the text of a rule.
///
/// # Errors
/// The text does not follow the grammar, can never match, or grants more
/// than a rule may.
pub(crate) fn parse(text: &str, effect: Effect) -> Result<Parsed, RuleError> {
    if text.len() > RULE_BYTES_MAX {
        return Err(RuleError::new(
            0,
            format!(
                "the rule has {} bytes, more than {RULE_BYTES_MAX}",
                text.len()
            ),
            "split it into several rules",
        ));
    }
    if text.trim() != text || text.is_empty() {
        return Err(RuleError::new(
            0,
            format!(
                "the rule `{}` is empty or has spaces around it",
                shown(text)
            ),
            "a rule looks like `GET api.example.org/repos/**`",
        ));
    }
    let (methods, target, offset) = match text.split_once(' ') {
        Some((before, _)) if before.contains(['.', '/', '?', ':']) => {
            return Err(RuleError::new(
                before.len(),
                format!("the rule `{}` holds a space", shown(text)),
                "a space only follows the methods; write `%20` in paths and queries",
            ));
        }
        Some((methods, target)) => (parse_methods(methods)?, target, methods.len() + 1),
        None => (Methods::Any, text, 0),
    };
    if target.contains(' ') {
        return Err(RuleError::new(
            offset,
            format!("the rule `{}` has more than one space", shown(text)),
            "methods are separated by commas, and one space follows them: `GET,HEAD api.example.org`",
        ));
    }
    parse_target(target, methods, effect).map_err(|error| error.shifted(offset))
}

fn parse_methods(text: &str) -> Result<Methods, RuleError> {
    if text == "*" {
        return Ok(Methods::Any);
    }
    let mut list = Vec::new();
    let mut offset = 0;
    for method in text.split(',') {
        if !is_method_name(method) {
            let upper = method.to_ascii_uppercase();
            let hint = if is_method_name(&upper) {
                format!("methods are case-sensitive: write `{upper}`")
            } else {
                "methods are separated by commas: `GET,HEAD`, or `*` for all".to_owned()
            };
            return Err(RuleError::new(
                offset,
                format!("`{}` is not a method", shown(method)),
                hint,
            ));
        }
        if !is_rule_method(method) {
            return Err(RuleError::new(
                offset,
                format!("a rule for `{method}` can never match: such requests are always refused"),
                "remove the method",
            ));
        }
        list.push(method.into());
        offset += method.len() + 1;
    }
    Ok(Methods::List(list))
}

fn is_method_name(text: &str) -> bool {
    let is_method = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "-_".contains(c);
    !text.is_empty() && text.chars().all(is_method)
}

/// Whether a rule may name the method: requests with the others are always refused.
pub(crate) fn is_rule_method(text: &str) -> bool {
    is_method_name(text) && !matches!(text, "CONNECT" | "TRACE")
}

/// What the scheme of a rule covers, and what may follow it.
struct SchemeInfo {
    protocols: Protocols,
    name: &'static str,
    requests: Requests,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requests {
    /// Methods, path and query may restrict it.
    Seen,
    /// Only upgrades: every one is a GET.
    Upgrades,
    /// Nothing inside is ever seen.
    Hidden,
}

fn parse_scheme(text: &str, effect: Effect) -> Result<SchemeInfo, RuleError> {
    use Protocol::{Http, Https, Tcp, Tls, Ws, Wss};
    let denies = effect == Effect::Deny;
    let (protocols, name, requests): (&[Protocol], _, _) = match text {
        "" if denies => (&[Http, Https, Ws, Wss, Tls, Tcp], "", Requests::Seen),
        "" => (&[Http, Https], "", Requests::Seen),
        "http" if denies => (&[Http, Ws], "http", Requests::Seen),
        "http" => (&[Http], "http", Requests::Seen),
        "https" if denies => (&[Https, Wss], "https", Requests::Seen),
        "https" => (&[Https], "https", Requests::Seen),
        "ws" => (&[Ws], "ws", Requests::Upgrades),
        "wss" => (&[Wss], "wss", Requests::Upgrades),
        "tls" => (&[Tls], "tls", Requests::Hidden),
        "tcp" if denies => (&[Http, Https, Ws, Wss, Tls, Tcp], "tcp", Requests::Hidden),
        "tcp" => (&[Tcp], "tcp", Requests::Hidden),
        "udp" => {
            return Err(RuleError::new(
                0,
                "datagrams cannot leave: the command owns no socket that sends them",
                "use TCP; names are resolved for the command without any rule",
            ));
        }
        other => {
            let lower = other.to_ascii_lowercase();
            let hint = match lower.as_str() {
                "http" | "https" | "ws" | "wss" | "tls" | "tcp" | "unix" => {
                    format!("write it in lower case: `{lower}://`")
                }
                _ => "known are http, https, ws, wss, tls, tcp and unix".to_owned(),
            };
            return Err(RuleError::new(
                0,
                format!("unknown scheme `{}`", shown(other)),
                hint,
            ));
        }
    };
    Ok(SchemeInfo {
        protocols: Protocols::of(protocols),
        name,
        requests,
    })
}

fn parse_target(text: &str, methods: Methods, effect: Effect) -> Result<Parsed, RuleError> {
    let (scheme_text, rest, offset) = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?', '[', ':']) => {
            (scheme, rest, scheme.len() + 3)
        }
        _ => ("", text, 0),
    };
    if scheme_text == "unix" {
        let parsed = parse_unix(rest, &methods, effect).map_err(|error| error.shifted(offset))?;
        return Ok((parsed, None));
    }
    if scheme_text.is_empty() && offset > 0 {
        return Err(RuleError::new(
            0,
            "there is no scheme before `://`",
            "write `https://`, or leave `://` away for http and https",
        ));
    }
    let scheme = parse_scheme(scheme_text, effect)?;
    let (host_ports, path, query) = split_target(rest);
    let host = rule_host::parse(host_ports, effect).map_err(|error| error.shifted(offset))?;
    if methods != Methods::Any && scheme.requests != Requests::Seen {
        return Err(methods_fault(&scheme, &methods).shifted(0));
    }
    let hidden = scheme.requests == Requests::Hidden;
    if hidden && (!path.is_empty() || query.is_some()) {
        return Err(RuleError::new(
            offset + host_ports.len(),
            format!(
                "a {}:// rule sees no requests and cannot be limited to a path or query",
                scheme.name
            ),
            "use https:// to judge requests, or remove the path",
        ));
    }
    if scheme.name == "tcp" && host.ports == Ports::Default && effect != Effect::Deny {
        return Err(RuleError::new(
            offset + host_ports.len(),
            "a tcp:// rule needs a port",
            format!("write `tcp://{}:PORT`", shown(host_ports)),
        ));
    }
    let path_offset = offset + host_ports.len();
    let network = NetworkTarget {
        protocols: scheme.protocols,
        methods: match scheme.requests {
            Requests::Seen => methods,
            Requests::Upgrades | Requests::Hidden => Methods::Any,
        },
        host: host.pattern,
        ports: host.ports,
        path: parse_path(path).map_err(|error| error.shifted(path_offset))?,
        query: match query {
            Some(query) => QueryPattern::parse_all(query)
                .map_err(|error| pattern_fault(error, path_offset + path.len() + 1))?,
            None => Vec::new(),
        },
        addresses: Vec::new(),
    };
    let warning = host
        .warning
        .map(|SuffixWarning { message, hint }| RuleError {
            offset,
            message,
            hint: Some(hint),
        });
    Ok((Target::Network(network), warning))
}

fn methods_fault(scheme: &SchemeInfo, methods: &Methods) -> RuleError {
    let get_only = matches!(methods, Methods::List(list) if list.iter().all(|m| **m == *"GET"));
    if scheme.requests == Requests::Upgrades {
        let message = if get_only {
            format!(
                "a {}:// rule takes no methods: an upgrade is always a GET",
                scheme.name
            )
        } else {
            format!(
                "a {}:// rule with these methods can never match: an upgrade is always a GET",
                scheme.name
            )
        };
        return RuleError::new(0, message, "remove the methods");
    }
    RuleError::new(
        0,
        format!(
            "a {}:// rule sees no requests and takes no methods",
            scheme.name
        ),
        "use https:// to judge requests, or remove the methods",
    )
}

/// Splits into host with ports, path (with its slash) and query. The prefix
/// length of a range belongs to the host.
fn split_target(text: &str) -> (&str, &str, Option<&str>) {
    let (before, query) = match text.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (text, None),
    };
    let host_end = rule_host::host_end(before);
    let (host, path) = before.split_at_checked(host_end).unwrap_or((before, ""));
    (host, path, query)
}

fn parse_path(path: &str) -> Result<Option<PathPattern>, RuleError> {
    if path.is_empty() {
        return Ok(None);
    }
    PathPattern::parse(path).map_err(|error| pattern_fault(error, 0))
}

fn pattern_fault(error: crate::pattern::PatternError, offset: usize) -> RuleError {
    RuleError::new(offset + error.offset, error.message, error.hint)
}

fn parse_unix(path: &str, methods: &Methods, effect: Effect) -> Result<Target, RuleError> {
    if *methods != Methods::Any {
        return Err(RuleError::new(
            0,
            "a unix:// rule takes no methods",
            "remove the methods",
        ));
    }
    if effect == Effect::Only {
        return Err(RuleError::new(
            0,
            "`only` is about hosts and takes no unix:// rule",
            "put the rule under `allow`",
        ));
    }
    if !path.starts_with('/') && !path.starts_with("~/") {
        return Err(RuleError::new(
            0,
            format!("`{}` is not an absolute path", shown(path)),
            "write `unix:///run/agent.sock` with three slashes",
        ));
    }
    let inner = path.trim_start_matches('~');
    let wrong = inner
        .split('/')
        .skip(1)
        .find(|s| matches!(*s, "" | "." | "..") || (s.contains("**") && *s != "**"));
    if let Some(segment) = wrong {
        let segment = if segment.is_empty() {
            "an empty segment".to_owned()
        } else {
            format!("the segment `{}`", shown(segment))
        };
        return Err(RuleError::new(
            0,
            format!("a path with {segment} can never match"),
            "write the resolved path; `*` stands for any part of one segment, `**` for any number of segments",
        ));
    }
    if path.chars().any(char::is_control) {
        return Err(RuleError::new(
            0,
            "the path holds a control character",
            "remove it",
        ));
    }
    Ok(Target::Unix {
        path: path.to_owned(),
        pattern: PathPattern::file(inner),
    })
}

/// A reference to a rule.
pub(crate) fn reference(id: u32, effect: Effect, text: &str, place: Arc<str>) -> RuleRef {
    RuleRef {
        id,
        effect,
        text: Arc::from(text),
        place,
    }
}
