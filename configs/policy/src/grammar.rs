//! The grammar of rules, the same on the command line and in documents.
//!
//! `[METHODS " "] [SCHEME "://"] HOST [":" PORTS] [PATH] ["?" QUERY]`, or
//! `unix://PATH`; where it denies, with ` except ` and the same behind it. Texts in, rules out. Must not know where a text came from;
//! faults carry offsets only.

use crate::effect::Effect;
use crate::host::shown;
use crate::intent;
use crate::limits::RULE_BYTES_MAX;
use crate::net::Ports;
use crate::pattern::{PathPattern, PatternError};
use crate::query::QueryPattern;
use crate::rule::{Methods, NetworkTarget, Protocol, Protocols, RuleTarget};
use crate::rule_error::RuleError;
use crate::rule_host::{self, SuffixWarning};

/// A parsed rule and what to warn of.
pub(crate) type Parsed = (RuleTarget, Option<RuleError>);

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
    let Some((main, exceptions)) = text.split_once(EXCEPT) else {
        return parse_plain(text, effect);
    };
    if effect != Effect::Deny {
        return Err(RuleError::new(
            main.len(),
            "only a rule that denies has exceptions",
            "write what is left out as a rule of its own under `deny`",
        ));
    }
    let (mut target, warning) = parse_plain(main, effect)?;
    let RuleTarget::Network(network) = &mut target else {
        return Err(RuleError::new(
            main.len(),
            "a unix:// rule has no exceptions",
            "name the sockets that are denied",
        ));
    };
    let mut offset = main.len() + EXCEPT.len();
    for text in exceptions.split(EXCEPT) {
        let excepted = parse_exception(text, network).map_err(|error| error.shifted(offset))?;
        network.except.extend(excepted);
        offset += text.len() + EXCEPT.len();
    }
    Ok((target, warning))
}

/// How a rule about a socket begins: all behind it is its path, with any blanks.
pub(crate) const UNIX: &str = "unix://";

/// What stands between a rule that denies and what it is not about.
pub(crate) const EXCEPT: &str = " except ";

/// The targets of one exception: those of a rule, or of a purpose.
fn parse_exception(text: &str, from: &NetworkTarget) -> Result<Vec<NetworkTarget>, RuleError> {
    let texts = match intent::expand(text, Effect::Deny) {
        Some(rules) => rules?,
        None => vec![text.to_owned()],
    };
    let targets = texts
        .iter()
        .map(|own| match parse_plain(own, Effect::Deny)?.0 {
            // An address may be what a name leads to.
            RuleTarget::Network(target) if target.host.is_apart(&from.host) => Err(RuleError::new(
                0,
                format!("`{}` is nothing that the rule denies", shown(text)),
                "name what is left out of it",
            )),
            RuleTarget::Network(target) => Ok(target),
            RuleTarget::Unix { .. } => Err(RuleError::new(
                0,
                "a rule about the network has no socket as an exception",
                "take it out",
            )),
        });
    targets.collect()
}

fn parse_plain(text: &str, effect: Effect) -> Result<Parsed, RuleError> {
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
    if text.starts_with(UNIX) {
        return parse_target(text, Methods::Any, effect);
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
    requests: RequestRestriction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestRestriction {
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
        "" if denies => (
            &[Http, Https, Ws, Wss, Tls, Tcp],
            "",
            RequestRestriction::Seen,
        ),
        "" => (&[Http, Https], "", RequestRestriction::Seen),
        "http" if denies => (&[Http, Ws], "http", RequestRestriction::Seen),
        "http" => (&[Http], "http", RequestRestriction::Seen),
        "https" if denies => (&[Https, Wss], "https", RequestRestriction::Seen),
        "https" => (&[Https], "https", RequestRestriction::Seen),
        "ws" => (&[Ws], "ws", RequestRestriction::Upgrades),
        "wss" => (&[Wss], "wss", RequestRestriction::Upgrades),
        "tls" => (&[Tls], "tls", RequestRestriction::Hidden),
        "tcp" if denies => (
            &[Http, Https, Ws, Wss, Tls, Tcp],
            "tcp",
            RequestRestriction::Hidden,
        ),
        "tcp" => (&[Tcp], "tcp", RequestRestriction::Hidden),
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
    if methods != Methods::Any && scheme.requests != RequestRestriction::Seen {
        return Err(methods_fault(&scheme, &methods).shifted(0));
    }
    let hidden = scheme.requests == RequestRestriction::Hidden;
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
            RequestRestriction::Seen => methods,
            RequestRestriction::Upgrades | RequestRestriction::Hidden => Methods::Any,
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
        except: Vec::new(),
    };
    let warning = host
        .warning
        .map(|SuffixWarning { message, hint }| RuleError {
            offset,
            message,
            hint: Some(hint),
        });
    Ok((RuleTarget::Network(network), warning))
}

fn methods_fault(scheme: &SchemeInfo, methods: &Methods) -> RuleError {
    let get_only = matches!(methods, Methods::List(list) if list.iter().all(|m| **m == *"GET"));
    if scheme.requests == RequestRestriction::Upgrades {
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

/// The parts of a rule that was parsed before, as its author wrote them; empty
/// where there is none. A `unix://` rule is all path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleParts<'a> {
    pub(crate) methods: &'a str,
    pub(crate) scheme: &'a str,
    /// The host with its ports.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
}

impl<'a> RuleParts<'a> {
    pub(crate) fn of(rule: &'a str) -> Self {
        let rule = rule.split_once(EXCEPT).map_or(rule, |(main, _)| main);
        let words = rule.split_once(' ').filter(|_| !rule.starts_with(UNIX));
        let (methods, target) = words.unwrap_or(("", rule));
        let (scheme, rest) = target.split_once("://").unwrap_or(("", target));
        let (host, path, query) = if scheme == "unix" {
            ("", rest, None)
        } else {
            split_target(rest)
        };
        Self {
            methods,
            scheme,
            host,
            path,
            query: query.unwrap_or(""),
        }
    }
}

fn parse_path(path: &str) -> Result<Option<PathPattern>, RuleError> {
    if path.is_empty() {
        return Ok(None);
    }
    PathPattern::parse(path).map_err(|error| pattern_fault(error, 0))
}

fn pattern_fault(error: PatternError, offset: usize) -> RuleError {
    RuleError::new(offset + error.offset, error.message, error.hint)
}

fn parse_unix(path: &str, methods: &Methods, effect: Effect) -> Result<RuleTarget, RuleError> {
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
    Ok(RuleTarget::Unix {
        path: path.to_owned(),
        pattern: PathPattern::file(inner),
    })
}
