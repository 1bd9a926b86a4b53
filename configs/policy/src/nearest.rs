//! Which rules come nearest to a question, and in what they differ from it.
//!
//! For people who wonder why something was denied. Compares rule by rule with
//! the same matching that decides, and decides nothing itself.

use std::fmt;

use crate::effect::{Effect, RuleRef};
use crate::facts::{Process, Scheme};
use crate::grammar::RuleParts;
use crate::host::Host;
use crate::policy::Policy;
use crate::question::{AskedRequest, Question, QuestionForm};
use crate::rule::{Match, NetworkTarget, Precision, Protocol, RequestFacts, Rule, RuleTarget};

/// Rules shown at most.
const NEAR_MAX: usize = 3;

/// Changes of characters between two names that may be a typing error.
const TYPING_ERRORS_MAX: usize = 2;

/// A rule that grants something like what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestRule {
    /// The rule.
    pub rule: RuleRef,
    /// Where it differs from the question; empty if it would allow it, and
    /// something else stands against that.
    pub differs: Vec<Difference>,
}

/// One part in which a rule and a question differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which part.
    pub part: RulePart,
    /// What was asked.
    pub asked: String,
    /// What the rule says.
    pub rule: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, asked, rule } = self;
        write!(
            out,
            "{}: asked for {asked}, the rule has {rule}",
            part.as_str()
        )
    }
}

/// The parts of a rule, the most telling last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RulePart {
    /// The request method.
    Method,
    /// The query of the request target.
    Query,
    /// The path of the request target, or of a Unix socket.
    Path,
    /// The executable that asks.
    Process,
    /// The protocol.
    Scheme,
    /// The port.
    Port,
    /// The host.
    Host,
}

impl RulePart {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Query => "query",
            Self::Path => "path",
            Self::Process => "process",
            Self::Scheme => "scheme",
            Self::Port => "port",
            Self::Host => "host",
        }
    }

    /// How far a rule is away that differs in this part.
    fn weight(self) -> u32 {
        match self {
            Self::Method => 1,
            Self::Query => 2,
            Self::Path => 3,
            Self::Process | Self::Scheme | Self::Port => 4,
            Self::Host => 16,
        }
    }
}

impl Policy {
    /// The rules that come nearest to allowing what is asked, nearest first.
    /// Of rules about other hosts at most one is among them, where none is
    /// about this host and the names are alike.
    pub fn nearest(&self, question: &Question, process: Process<'_>) -> Vec<NearestRule> {
        let mut found: Vec<(u32, NearestRule)> = self
            .all_rules()
            .iter()
            .filter(|rule| rule.reference.effect != Effect::Deny)
            .filter_map(|rule| {
                let mut differs = differences(rule, question)?;
                if !rule.grants_process(process) {
                    differs.push(process_difference(rule, process));
                }
                let far = differs.iter().map(|one| one.part.weight()).sum();
                let rule = rule.reference.clone();
                Some((far, NearestRule { rule, differs }))
            })
            .collect();
        found.sort_by_key(|(far, _)| *far);
        let is_there =
            |near: &NearestRule| near.differs.iter().all(|one| one.part != RulePart::Host);
        // Rules about other hosts say something only where none is about this one.
        let kept = match found.iter().filter(|(_, near)| is_there(near)).count() {
            0 => 1,
            count => count.min(NEAR_MAX),
        };
        found.truncate(kept);
        found.into_iter().map(|(_, near)| near).collect()
    }
}

/// In what a rule differs; `None` if it is about something else altogether.
fn differences(rule: &Rule, question: &Question) -> Option<Vec<Difference>> {
    let parts = RuleParts::of(&rule.reference.text);
    match (&rule.target, &question.form) {
        (RuleTarget::Unix { path, pattern }, QuestionForm::Unix(asked)) => {
            let directory = |path: &str| path.rsplit_once('/').map(|(before, _)| before.to_owned());
            if pattern.matches_file(asked) {
                return Some(Vec::new());
            }
            let related = directory(path) == directory(asked);
            related.then(|| vec![difference(RulePart::Path, asked, path)])
        }
        (RuleTarget::Unix { .. }, _) | (RuleTarget::Network(_), QuestionForm::Unix(_)) => None,
        (RuleTarget::Network(target), QuestionForm::Request(asked)) => {
            let protocols = [Protocol::from(asked.scheme), Protocol::Tcp];
            let to = (&asked.host, asked.port);
            let mut out = destination(target, parts, to, &protocols)?;
            request(target, parts, asked, &mut out);
            Some(out)
        }
        (RuleTarget::Network(target), QuestionForm::Tls(host, port)) => {
            let protocols = [Protocol::Tls, Protocol::Https, Protocol::Tcp];
            destination(target, parts, (host, *port), &protocols)
        }
        (RuleTarget::Network(target), QuestionForm::Tcp(host, port)) => {
            destination(target, parts, (host, *port), &[Protocol::Tcp])
        }
    }
}

fn destination(
    target: &NetworkTarget,
    parts: RuleParts<'_>,
    (host, port): (&Host, u16),
    protocols: &[Protocol],
) -> Option<Vec<Difference>> {
    let mut out = Vec::new();
    let is_granted = match host {
        Host::Name(name) => target.host.grants_name(name),
        Host::Address(ip) => target.host.grants_address(*ip),
    };
    if !is_granted {
        let own = parts
            .host
            .split_once(':')
            .map_or(parts.host, |(own, _)| own);
        if !is_related(&host.to_string(), own) {
            return None;
        }
        out.push(difference(RulePart::Host, &host.to_string(), own));
    }
    let spoken: Vec<Protocol> = protocols
        .iter()
        .copied()
        .filter(|protocol| target.protocols.contains(*protocol))
        .collect();
    if spoken.is_empty() {
        let asked = protocols.first().map_or("", |protocol| protocol.as_str());
        let own = match parts.scheme {
            "" => "http and https",
            scheme => scheme,
        };
        out.push(difference(RulePart::Scheme, asked, own));
    }
    let fits = |protocol: &Protocol| target.grants_port(*protocol, port);
    let is_wrong_port = if spoken.is_empty() {
        !target.ports.contains(port, || true)
    } else {
        !spoken.iter().any(fits)
    };
    if is_wrong_port {
        let own = match parts.host.rsplit_once(':') {
            Some((_, ports)) if !parts.host.ends_with(']') => ports,
            _ => "the usual one of its scheme",
        };
        out.push(difference(RulePart::Port, &port.to_string(), own));
    }
    Some(out)
}

fn request(
    target: &NetworkTarget,
    parts: RuleParts<'_>,
    asked: &AskedRequest,
    out: &mut Vec<Difference>,
) {
    let facts = RequestFacts {
        protocol: asked.scheme.into(),
        method: &asked.method,
        target: &asked.target,
    };
    let is_request = matches!(asked.scheme, Scheme::Http | Scheme::Https);
    let exact = Precision::Strict;
    if is_request && target.method(facts, exact) != Match::Surely {
        out.push(difference(RulePart::Method, &asked.method, parts.methods));
    }
    if target.path(facts, exact) != Match::Surely {
        out.push(difference(RulePart::Path, asked.target.path(), parts.path));
    }
    if target.query(facts, exact) != Match::Surely {
        let own = asked.target.query().map_or("none", |_| "another one");
        out.push(difference(RulePart::Query, own, parts.query));
    }
}

fn process_difference(rule: &Rule, process: Process<'_>) -> Difference {
    let asked = match process.executable {
        "" => "any executable",
        known => known,
    };
    let own: Vec<&str> = rule.keys.process.iter().map(|own| &**own).collect();
    difference(RulePart::Process, asked, &own.join(", "))
}

fn difference(part: RulePart, asked: &str, rule: &str) -> Difference {
    Difference {
        part,
        asked: asked.to_owned(),
        rule: rule.to_owned(),
    }
}

/// Whether a person may have meant the one by the other: a typing error, or
/// names below the same two last labels.
fn is_related(asked: &str, own: &str) -> bool {
    let own = own.trim_start_matches("*.").trim_start_matches("**.");
    let tail = |name: &str| {
        let mut labels: Vec<&str> = name.rsplit('.').take(2).collect();
        labels.reverse();
        (labels.len() == 2).then(|| labels.join("."))
    };
    let is_name = |text: &str| text.bytes().any(|b| b.is_ascii_alphabetic());
    is_name(asked)
        && is_name(own)
        && (tail(asked).is_some() && tail(asked) == tail(own)
            || crate::edits::distance(asked, own) <= TYPING_ERRORS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::source::{Source, SourceKind};

    fn policy() -> Policy {
        let source = Source {
            kind: SourceKind::Document,
            place: "agent.toml".to_owned(),
            text: r#"allow = [
"GET,HEAD http://api.example.org/repos/**",
"http://api.example.org:8080/repos/**?page=*",
"https://files.example.org",
"tcp://db.example.net:5432",
"unix:///run/agent.sock",
]
deny = ["api.example.org/secret"]
[[only]]
rule = "http://only.example.com/a"
process = ["/usr/bin/git"]
"#
            .to_owned(),
        };
        compile(&[source], &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn each_part_that_differs_is_named() {
        let policy = policy();
        for (text, want) in [
            (
                "POST http://api.example.org/repos/a",
                "GET,HEAD http://api.example.org/repos/** | method: asked for POST, the rule has GET,HEAD",
            ),
            (
                "DELETE http://api.example.org/users",
                "GET,HEAD http://api.example.org/repos/** | method: asked for DELETE, the rule has GET,HEAD | path: asked for /users, the rule has /repos/**",
            ),
            (
                "http://api.example.org:8080/repos/a",
                "http://api.example.org:8080/repos/**?page=* | query: asked for none, the rule has page=*",
            ),
            (
                "http://ap.example.net/repos/a",
                "tcp://db.example.net:5432 | host: asked for ap.example.net, the rule has db.example.net | port: asked for 80, the rule has 5432",
            ),
            (
                "http://files.example.org/",
                "https://files.example.org | scheme: asked for http, the rule has https",
            ),
            (
                "https://files.example.org:444/",
                "https://files.example.org | port: asked for 444, the rule has the usual one of its scheme",
            ),
            (
                "unix:///run/agent2.sock",
                "unix:///run/agent.sock | path: asked for /run/agent2.sock, the rule has /run/agent.sock",
            ),
            (
                "http://only.example.com/a",
                "http://only.example.com/a | process: asked for any executable, the rule has /usr/bin/git",
            ),
            ("http://elsewhere.test/", ""),
            ("unix:///tmp/x", ""),
        ] {
            let question = Question::parse(text).expect(text);
            let near = policy.nearest(&question, Process { executable: "" });
            let found: Vec<String> = near
                .iter()
                .take(1)
                .map(|near| {
                    let mut words = vec![near.rule.text.to_string()];
                    words.extend(near.differs.iter().map(ToString::to_string));
                    words.join(" | ")
                })
                .collect();
            assert_eq!(found.join(""), want, "{text}");
            assert!(near.len() <= NEAR_MAX);
        }
    }

    #[test]
    fn a_rule_without_difference_is_one_that_would_allow() {
        let policy = policy();
        for (text, executable) in [
            ("http://api.example.org/repos/a", ""),
            ("https://files.example.org/x", ""),
            ("tls://files.example.org", ""),
            ("tcp://db.example.net:5432", ""),
            ("unix:///run/agent.sock", ""),
            ("http://only.example.com/a", "/usr/bin/git"),
        ] {
            let question = Question::parse(text).expect(text);
            let near = policy.nearest(&question, Process { executable });
            let first = near.first().expect(text);
            assert_eq!(first.differs, [], "{text}");
        }
    }
}
