//! Rules as values: what each covers, and whether it covers an event.
//!
//! A rule that exists can be evaluated. Granting is strict and denying is
//! wide, so each question comes in two forms. Must not know the grammar.

use std::net::IpAddr;
use std::sync::Arc;

use crate::effect::{Effect, RuleRef};
use crate::facts::{AddressSource, Process, Scheme};
use crate::host::HostPattern;
use crate::net::{Net, Ports};
use crate::path::RequestTarget;
use crate::pattern::PathPattern;
use crate::query::QueryPattern;

mod keys;

pub(crate) use keys::{Extent, RuleKeys};
pub use keys::{ShownKey, ShownValue};

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

    /// The scheme as it is written in a rule.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }

    /// The port that a rule of this protocol means when it names none.
    pub(crate) fn default_port(self) -> Option<u16> {
        match self {
            Self::Http | Self::Ws => Some(80),
            Self::Https | Self::Wss | Self::Tls => Some(443),
            Self::Tcp => None,
        }
    }

    fn is_default_port(self, port: u16) -> bool {
        self.default_port() == Some(port)
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
    pub(crate) fn of(list: &[Protocol]) -> Self {
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

/// How closely a part of a rule matches. Of all parts the least counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// In no reading.
    No,
    /// In some reading: enough to deny, to count and to look closer.
    Perhaps,
    /// In every reading: enough to let pass.
    Surely,
}

/// Which matches somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Strict,
    Loose,
    Both,
}

impl Precision {
    /// How a part matches that says what it grants and what it denies.
    pub(crate) fn judge(
        self,
        grants: impl FnOnce() -> bool,
        denies: impl FnOnce() -> bool,
    ) -> Match {
        if self != Self::Loose && grants() {
            return Match::Surely;
        }
        if self != Self::Strict && denies() {
            return Match::Perhaps;
        }
        Match::No
    }
}

/// What a rule matches.
#[derive(Debug, Clone)]
pub(crate) enum RuleTarget {
    /// Something over the network.
    Network(NetworkTarget),
    /// Unix sockets: the path as written, and its pattern.
    Unix { path: String, pattern: PathPattern },
}

impl RuleTarget {
    /// Whether requests it matches may be looked into.
    pub(crate) fn is_looked_into(&self) -> bool {
        match self {
            Self::Network(target) => {
                let closed = [Protocol::Tcp, Protocol::Tls];
                !closed.iter().any(|own| target.protocols.contains(*own))
            }
            Self::Unix { .. } => false,
        }
    }

    /// Whether what it matches passes the gateway.
    pub(crate) fn is_seen(&self) -> bool {
        match self {
            Self::Network(target) => !target.protocols.contains(Protocol::Tcp),
            Self::Unix { .. } => false,
        }
    }
}

/// The network part of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkTarget {
    pub(crate) protocols: Protocols,
    pub(crate) methods: Methods,
    pub(crate) host: HostPattern,
    pub(crate) ports: Ports,
    pub(crate) path: Option<PathPattern>,
    pub(crate) query: Vec<QueryPattern>,
    /// Special-use ranges into which a granted name may lead.
    pub(crate) addresses: Vec<Net>,
    /// Of a rule that denies: what it is not about. None of them has exceptions.
    pub(crate) except: Vec<NetworkTarget>,
}

/// How much of a destination the exceptions of a rule that denies take out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excepted {
    Nothing,
    /// Some requests.
    Some,
    All,
}

/// A rule of a policy.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) reference: RuleRef,
    pub(crate) target: RuleTarget,
    pub(crate) keys: RuleKeys,
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
        let own = &self.keys.process;
        own.is_empty()
            || (!process.executable.is_empty()
                && own.iter().any(|own| **own == *process.executable))
    }

    /// How the process matches.
    pub(crate) fn process(&self, process: Process<'_>) -> Match {
        Precision::Both.judge(
            || self.grants_process(process),
            || self.restricts_process(process),
        )
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

    /// It and its exceptions.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.except)
    }

    /// Whether it covers the protocol on the port as an exception: as a rule that grants, but
    /// that one without scheme and ports is about all of them, as the rule around it.
    pub(crate) fn excepts_port(&self, protocol: Protocol, port: u16) -> bool {
        if self.protocols == Protocols::of(&Protocol::ALL) {
            self.denies_port(protocol, port)
        } else {
            self.grants_port(protocol, port)
        }
    }

    /// How much its exceptions take out of what it denies at a host, which they name as `is`
    /// says, before a request is seen.
    pub(crate) fn excepted(
        &self,
        (protocol, port): (Protocol, u16),
        is: impl Fn(&HostPattern) -> bool,
    ) -> Excepted {
        let is_seen = !matches!(protocol, Protocol::Tcp | Protocol::Tls);
        let mut found = Excepted::Nothing;
        for own in &self.except {
            if !own.excepts_port(protocol, port) || !is(&own.host) {
                continue;
            }
            if !own.is_restricted() {
                return Excepted::All;
            }
            if is_seen {
                found = Excepted::Some;
            }
        }
        found
    }

    /// Whether an exception surely is about this request to a host that it names.
    pub(crate) fn is_excepted(
        &self,
        request: RequestFacts<'_>,
        port: u16,
        is: impl Fn(&HostPattern) -> bool,
    ) -> bool {
        let strict = Precision::Strict;
        self.except.iter().any(|own| {
            own.excepts_port(request.protocol, port)
                && is(&own.host)
                && own.method(request, strict) == Match::Surely
                && own.path(request, strict) == Match::Surely
                && own.query(request, strict) == Match::Surely
        })
    }

    /// Whether it is about some requests of a connection only.
    pub(crate) fn is_restricted(&self) -> bool {
        self.methods != Methods::Any || self.path.is_some() || !self.query.is_empty()
    }

    /// How the method of a request matches.
    pub(crate) fn method(&self, request: RequestFacts<'_>, precision: Precision) -> Match {
        let Methods::List(list) = &self.methods else {
            return Match::Surely;
        };
        precision.judge(
            || list.iter().any(|own| **own == *request.method),
            || list.iter().any(|own| is_about(own, request.method)),
        )
    }

    /// How its path matches.
    pub(crate) fn path(&self, request: RequestFacts<'_>, precision: Precision) -> Match {
        let Some(pattern) = &self.path else {
            return Match::Surely;
        };
        let Some(readings) = request.target.readings() else {
            return Match::No;
        };
        precision.judge(
            || pattern.matches_all(readings),
            || pattern.matches_any(readings),
        )
    }

    /// How its query matches.
    pub(crate) fn query(&self, request: RequestFacts<'_>, precision: Precision) -> Match {
        let query = request.target.query().unwrap_or("");
        let is_hidden = request.target.is_query_hidden();
        let grants = |pattern: &QueryPattern| {
            let mut more = request.target.more_queries();
            !is_hidden && pattern.matches_all(query) && more.all(|text| pattern.bears(text))
        };
        let denies = |pattern: &QueryPattern| {
            let mut more = request.target.more_queries();
            pattern.matches_any(query) || more.any(|text| pattern.matches_any_part(text))
        };
        precision.judge(
            || self.query.iter().all(grants),
            || is_hidden || self.query.iter().all(denies),
        )
    }

    /// Whether a name that it grants may lead to this special-use address.
    pub(crate) fn may_lead(&self, address: IpAddr, source: AddressSource) -> bool {
        match source {
            AddressSource::Pinned => self.host != HostPattern::Any,
            AddressSource::Resolved => {
                self.host == HostPattern::Localhost && self.host.grants_address(address)
                    || self
                        .addresses
                        .iter()
                        .any(|net| net.is_special() && net.contains(address))
            }
        }
    }
}

/// Whether a rule that denies this method is about a request with that one: of what a GET
/// would be answered with, a HEAD tells the fields (RFC 9110 9.3.2), and servers run the same
/// program for it.
fn is_about(own: &str, method: &str) -> bool {
    let is = |text: &str, other: &str| text.eq_ignore_ascii_case(other);
    is(own, method) || (is(own, "GET") && is(method, "HEAD"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::facts::{Facts, Peer};
    use crate::host::HostName;
    use crate::path::RequestTarget;
    use crate::source::{Source, SourceKind};
    use crate::verdict::Verdict;

    fn policy(text: &str) -> crate::policy::Policy {
        let source = Source {
            kind: SourceKind::Document,
            place: "agent.toml".to_owned(),
            text: text.to_owned(),
        };
        compile(&[source], &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn allows(policy: &crate::policy::Policy, text: &str) -> bool {
        let (method, url) = text.split_once(' ').expect("a method");
        let (host, path) = url.split_once('/').expect("a path");
        let name = HostName::parse(host).expect("a name");
        let target = RequestTarget::parse(&format!("/{path}")).expect("a target");
        let verdict = policy.evaluate(&Facts::Request {
            process: Process { executable: "" },
            peer: Peer::Name(&name),
            port: 80,
            scheme: Scheme::Http,
            method,
            target: &target,
        });
        matches!(verdict, Verdict::Allow(_))
    }

    #[test]
    fn what_a_path_or_an_escape_holds_of_a_query_is_judged_as_one() {
        let policy = policy(
            "allow = [\"a.test\", \"b.test/**?role=user\", \"c.test/?next=https://x/y%3Fa=1%26b=2\"]\n\
             deny = [\"a.test?admin=1\", \"a.test?x=1&y=2\"]\n",
        );
        for (request, allowed) in [
            ("GET a.test/x?a=1", true),
            ("GET a.test/x%3Fadmin=1", false),
            ("GET a.test/x%253Fadmin%253D1", false),
            ("GET a.test/x%3Fa%26admin=1?b=2", false),
            ("GET a.test/x%3Fadmin?=1", false),
            ("GET a.test/u/x%26admin=1", false),
            ("GET a.test/u/x&admin=1", false),
            ("GET a.test/u/x&admin=1/y", false),
            ("GET a.test/u/x;%61dmin=1", false),
            ("GET a.test/%FF%3F%FFadmin=1", false),
            ("GET a.test/u/x%3Fadmin=2", true),
            ("GET a.test/u/admin=1", true),
            ("GET a.test/x?a=1%26admin=1", false),
            ("GET a.test/x?admin%3D1", false),
            ("GET a.test/x?a=1%2526admin=1", false),
            ("GET a.test/x?a=http%3A%2F%2Fx%3Fadmin%3D1%23y", false),
            ("GET a.test/x?a=1%26admin=2", true),
            ("GET a.test/x%3Fx=1?y=2", false),
            ("GET a.test/x?x=1%26y%3D2", false),
            ("GET b.test/x?role=user", true),
            ("GET b.test/x?role=user&a=1%26role=admin", false),
            ("GET b.test/x?role=user&a=1%26role=user", true),
            ("GET b.test/x?role=user%26role=admin", false),
            ("GET b.test/x%3Frole=admin%26a?role=user", false),
            ("GET b.test/x&role=admin?role=user", false),
            ("GET b.test/x&y=1?role=user", true),
            ("GET b.test/x;v=1/y?role=user", true),
            (
                "GET b.test/x?role=user&to=https%3A%2F%2Fx%3Fa%3D1%26b%3D2",
                true,
            ),
            ("GET b.test/x?role=user&q=a%2Bb%26c", true),
            ("GET b.test/x%3Frole=user", false),
            ("GET b.test/x?a=1%26role=user", false),
            ("GET c.test/?next=https://x/y%3Fa=1%26b=2", true),
            ("GET c.test/?next=https%3A%2F%2Fx%2Fy%3Fa%3D1%26b%3D2", true),
            (
                "GET c.test/?next=https%3A%2F%2Fx%2Fy%3Fa%3D1%26b%3D2%26c",
                false,
            ),
            ("GET c.test/?next=https%3A%2F%2Fx%2Fy", false),
        ] {
            assert_eq!(allows(&policy, request), allowed, "{request}");
        }
        // Many separators are more than some servers count, however they are escaped.
        let many = "%26".repeat(1000);
        assert!(!allows(&policy, &format!("GET a.test/x?a={many}")));
        assert!(!allows(
            &policy,
            &format!("GET b.test/x?role=user&a={many}")
        ));
    }

    #[test]
    fn a_denied_get_is_a_denied_head() {
        let policy = policy(
            "allow = [\"a.test\", \"GET b.test\"]\n\
             deny = [\"GET a.test/x\", \"HEAD a.test/y\", \"POST a.test/z\"]\n",
        );
        for (request, allowed) in [
            ("GET a.test/x", false),
            ("HEAD a.test/x", false),
            ("head a.test/x", false),
            ("POST a.test/x", true),
            ("HEAD a.test/y", false),
            ("GET a.test/y", true),
            ("HEAD a.test/z", true),
            ("HEAD b.test/", false),
        ] {
            assert_eq!(allows(&policy, request), allowed, "{request}");
        }
    }

    #[test]
    fn a_query_that_nobody_can_read_is_denied_and_never_allowed() {
        let text = "allow = [\"a.test\", \"b.test/x?role=user\"]\ndeny = [\"a.test?admin=*\"]\n";
        let policy = policy(text);
        for (host, target, read, hidden) in [
            ("a.test", "/x?a=1", true, false),
            ("a.test", "/x?admin=1", false, false),
            ("a.test", "/x", true, true),
            ("a.test", "/x?", true, true),
            ("b.test", "/x?role=user", true, false),
            ("b.test", "/x?role=admin", false, false),
            ("b.test", "/x", false, false),
        ] {
            let name = HostName::parse(host).expect("a name");
            let plain = RequestTarget::parse(target).expect("a target");
            for (target, expected) in [(plain.clone(), read), (plain.with_hidden_query(), hidden)] {
                let verdict = policy.evaluate(&Facts::Request {
                    process: Process { executable: "" },
                    peer: Peer::Name(&name),
                    port: 80,
                    scheme: Scheme::Http,
                    method: "GET",
                    target: &target,
                });
                let found = matches!(verdict, Verdict::Allow(_));
                assert_eq!(found, expected, "{host} {target:?}");
            }
        }
    }
}
