//! Rules that a command proposes, held against what was denied to it: by the comparison of
//! policies, and not by their texts. A rule that is no wider allows one thing that was asked
//! for and that no rule decided; whether it is granted a person says.

use std::fmt;
use std::net::IpAddr;

use crate::compare::{is_plainly_granted, is_plainly_within};
use crate::compile::compile;
use crate::host::{Host, HostName, HostPattern};
use crate::net::Ports;
use crate::pattern::PathPattern;
use crate::policy::Policy;
use crate::rule::{Methods, NetworkTarget, Protocol, Rule, RuleTarget};
use crate::source::{Context, Source, SourceKind};
use crate::special::OWN_HOST;

/// Endings of names that lead inside (RFC 6762, RFC 8375, and the name that ICANN keeps for
/// private use, under which clouds have their metadata).
const INSIDE: [&str; 3] = [".local", ".home.arpa", ".internal"];

/// Why a rule cannot be proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProposalFault {
    /// It is none.
    Unreadable(String),
    /// It allows what was not denied, or what a person has to name first.
    Wider,
}

impl fmt::Display for ProposalFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(fault) => write!(out, "it is no rule: {fault}"),
            Self::Wider => {
                out.write_str("it is wider than what was denied to this run and may be proposed")
            }
        }
    }
}

impl std::error::Error for ProposalFault {}

/// A rule that a command proposes, no wider than what was denied to it.
#[derive(Debug, Clone)]
pub struct ProposedRule {
    policy: Policy,
}

impl ProposedRule {
    /// Holds a rule against the narrowest rules of what was denied, of which only those count
    /// that [`is_proposable`] says yes to.
    ///
    /// # Errors
    /// The proposal's fault.
    pub fn new(rule: &str, denied: &[&str]) -> Result<Self, ProposalFault> {
        let policy = alone(rule).map_err(ProposalFault::Unreadable)?;
        let denied = denied.iter().filter(|own| is_proposable(own));
        let denied: Vec<Source> = denied.map(|own| source(own)).collect();
        let denied = compile(&denied, &Context::nowhere()).unwrap_or_default();
        if policy.all_rules().is_empty() || !is_plainly_within(&denied, &policy) {
            return Err(ProposalFault::Wider);
        }
        Ok(Self { policy })
    }

    /// Whether it is plain that rules of a policy allow all of it already; what others deny
    /// of it was not denied for want of a rule.
    pub fn is_granted_by(&self, policy: &Policy) -> bool {
        is_plainly_granted(policy, &self.policy)
    }
}

/// Whether the narrowest rule of a denial allows no more than one thing on a public host: one
/// method and path, or one port. A long path is cut to its beginning, and a method or a path
/// that rules cannot name stands for all of its host: those are a person's to name.
pub fn is_proposable(narrowest: &str) -> bool {
    let Ok(policy) = alone(narrowest) else {
        return false;
    };
    match policy.all_rules() {
        [rule] => is_one_thing(rule),
        _ => false,
    }
}

fn is_one_thing(rule: &Rule) -> bool {
    let RuleTarget::Network(target) = &rule.target else {
        return false;
    };
    let protocols: Vec<Protocol> = Protocol::ALL
        .into_iter()
        .filter(|own| target.protocols.contains(*own))
        .collect();
    let ports = match &target.ports {
        Ports::Default => true,
        Ports::Any => false,
        Ports::List(list) => matches!(list.as_slice(), [(first, last)] if first == last),
    };
    let is_path = || target.path.as_ref().is_some_and(PathPattern::is_literal);
    let is_use = match protocols.as_slice() {
        [Protocol::Http | Protocol::Https] => is_method(target) && is_path(),
        [Protocol::Ws | Protocol::Wss] => is_path(),
        [Protocol::Tcp] => true,
        _ => false,
    };
    is_use && ports && is_public(&target.host)
}

fn is_method(target: &NetworkTarget) -> bool {
    matches!(&target.methods, Methods::List(list) if list.len() == 1)
}

fn is_public(host: &HostPattern) -> bool {
    match host {
        HostPattern::Exact(name) => is_public_name(name),
        HostPattern::Net(net) => net.is_host() && !Host::Address(net.first()).is_special(),
        HostPattern::Everything
        | HostPattern::Any
        | HostPattern::Localhost
        | HostPattern::Below(_)
        | HostPattern::AtOrBelow(_) => false,
    }
}

fn is_public_name(name: &HostName) -> bool {
    let name = name.as_str();
    let is_inside = INSIDE.iter().any(|ending| name.ends_with(ending));
    name.contains('.') && !is_inside && name != OWN_HOST && name.parse::<IpAddr>().is_err()
}

/// A policy of nothing but this rule.
fn alone(rule: &str) -> Result<Policy, String> {
    compile(&[source(rule)], &Context::nowhere()).map_err(|errors| errors.to_string())
}

fn source(rule: &str) -> Source {
    Source {
        kind: SourceKind::Allow,
        place: "a proposal".to_owned(),
        text: rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Peer, Process, Scheme};
    use crate::path::RequestTarget;
    use crate::verdict::Verdict;

    const DENIED: &[&str] = &[
        "GET https://api.test/a/b",
        "POST https://api.test/a",
        "GET http://plain.test:8080/x",
        "ws://chat.test/s",
        "tcp://shell.test:22",
        "GET https://search.test/q?term=*",
        // None of these may be proposed.
        "https://whole.test",
        "GET https://long.test/a/**",
        "GET http://10.0.0.1/",
        "GET http://169.254.169.254/latest",
        "GET http://localhost:3000/",
        "GET http://metadata.google.internal/x",
        "GET http://printer/x",
        "GET http://outgate.invalid/x",
        "tls://closed.test",
        "unix:///run/x",
        "no rule at all\u{1b}",
    ];

    fn check(rule: &str, denied: &[&str]) -> Option<ProposalFault> {
        ProposedRule::new(rule, denied).err()
    }

    #[test]
    fn what_was_denied_may_be_proposed_and_what_is_narrower() {
        for rule in [
            "GET https://api.test/a/b",
            "GET https://API.test/a/b",
            "GET https://api.test:443/a/b",
            "GET https://api.test/a/b?key=1",
            "POST https://api.test/a",
            "GET http://plain.test:8080/x",
            "ws://chat.test/s",
            "tcp://shell.test:22",
            "GET https://search.test/q?term=*",
            "GET https://search.test/q?term=a",
        ] {
            assert_eq!(check(rule, DENIED), None, "{rule}");
        }
    }

    #[test]
    fn nothing_wider_than_what_was_denied_may_be_proposed() {
        for rule in [
            "*",
            "GET https://*/a/b",
            "GET https://*.test/a/b",
            "GET https://**.api.test/a/b",
            "GET https://api.test",
            "GET https://api.test/**",
            "GET https://api.test/a/*",
            "GET https://api.test/*/b",
            "GET https://api.test/a/b/c",
            "https://api.test/a/b",
            "* https://api.test/a/b",
            "GET,POST https://api.test/a/b",
            "PUT https://api.test/a/b",
            "GET http://api.test/a/b",
            "wss://api.test/a/b",
            "tls://api.test",
            "tcp://api.test:443",
            "GET api.test/a/b",
            "GET https://api.test:*/a/b",
            "GET https://api.test:8443/a/b",
            "GET https://other.test/a/b",
            "GET https://search.test/q",
            "GET https://search.test/q?other=1",
            "tcp://shell.test:22-23",
            "tcp://shell.test:*",
            "https://whole.test",
            "GET https://whole.test/x",
            "GET https://long.test/a/**",
            "GET https://long.test/a/x",
            "GET http://10.0.0.1/",
            "GET http://169.254.169.254/latest",
            "GET http://localhost:3000/",
            "GET http://metadata.google.internal/x",
            "GET http://printer/x",
            "GET http://outgate.invalid/x",
            "tls://closed.test",
            "unix:///run/x",
            "git:push api.test/a/b",
        ] {
            assert_eq!(check(rule, DENIED), Some(ProposalFault::Wider), "{rule}");
            assert!(check(rule, &[]).is_some(), "{rule}");
        }
        for rule in [
            "",
            " ",
            "**",
            "pkg:install",
            "GET",
            "GET https://",
            "\u{1b}[2J",
            "https://api.test/a/b\nhttps://x.test",
        ] {
            assert!(check(rule, DENIED).is_some(), "{rule}");
        }
    }

    #[test]
    fn what_a_policy_grants_already_is_known() {
        let proposed = ProposedRule::new("GET https://api.test/a/b", DENIED).unwrap();
        let denying = Source {
            kind: SourceKind::Deny,
            ..source("https://api.test/c")
        };
        for (rule, granted) in [
            ("https://api.test", true),
            ("GET https://api.test/a/*", true),
            ("POST https://api.test", false),
            ("GET https://api.test/a", false),
        ] {
            assert_eq!(
                proposed.is_granted_by(
                    &compile(&[source(rule), denying.clone()], &Context::nowhere()).unwrap()
                ),
                granted,
                "{rule}"
            );
        }
    }

    /// Rules made of these parts, and what each policy lets out of requests made of them.
    #[test]
    fn a_proposed_rule_lets_out_nothing_that_was_not_denied() {
        const METHODS: [&str; 5] = ["", "* ", "GET ", "POST ", "GET,POST "];
        const SCHEMES: [&str; 5] = ["", "http://", "https://", "wss://", "tcp://"];
        const HOSTS: [&str; 6] = [
            "a.test",
            "b.test",
            "*.test",
            "a.test:443",
            "a.test:8443",
            "a.test:*",
        ];
        const PATHS: [&str; 6] = ["", "/", "/x", "/x/*", "/**", "/x?k=1"];
        let shapes = [
            "GET https://a.test/x",
            "POST https://a.test/",
            "GET https://b.test/x/y",
        ];
        let denied = compile(&shapes.map(source), &Context::nowhere()).unwrap();
        let mut taken = 0;
        for rule in METHODS.iter().flat_map(|method| {
            let hosts = SCHEMES
                .iter()
                .flat_map(|scheme| HOSTS.iter().map(move |host| (scheme, host)));
            hosts.flat_map(move |(scheme, host)| {
                PATHS
                    .iter()
                    .map(move |path| format!("{method}{scheme}{host}{path}"))
            })
        }) {
            let Ok(proposed) = ProposedRule::new(&rule, &shapes) else {
                continue;
            };
            taken += 1;
            for (method, host, path) in ["GET", "POST", "PUT"].iter().flat_map(|method| {
                let hosts = ["a.test", "b.test", "c.test"].into_iter();
                hosts.flat_map(move |host| {
                    let paths = ["/", "/x", "/x/y", "/y", "/x?k=1", "/x?k=2", "/x%2Fy", "/x/"];
                    paths.map(|path| (*method, host, path))
                })
            }) {
                for (scheme, port) in [
                    (Scheme::Http, 80),
                    (Scheme::Https, 443),
                    (Scheme::Https, 8443),
                    (Scheme::Wss, 443),
                ] {
                    let (name, target) = (
                        HostName::parse(host).unwrap(),
                        RequestTarget::parse(path).unwrap(),
                    );
                    let facts = Facts::Request {
                        process: Process {
                            executable: "/usr/bin/client",
                        },
                        peer: Peer::Name(&name),
                        port,
                        scheme,
                        method,
                        target: &target,
                    };
                    let lets =
                        |policy: &Policy| matches!(policy.evaluate(&facts), Verdict::Allow(_));
                    assert!(
                        !lets(&proposed.policy) || lets(&denied),
                        "{rule}: {method} {host}{path}"
                    );
                }
            }
        }
        assert_eq!(taken, 6, "rules that may be proposed");
    }
}
