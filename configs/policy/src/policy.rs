//! The compiled policy: what a launcher and a gateway ask it.
//!
//! Values and look-ups only. The decision itself is in [`crate::evaluate`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::effect::{Effect, RuleRef};
use crate::error::PolicyError;
use crate::facts::Peer;
use crate::grant::{Arguments, Environment, Filesystem, Limits, ListenGrant, Note};
use crate::host::{Below, Host, HostName, HostPattern};
use crate::net::Ports;
use crate::rule::{Methods, NetworkTarget, Protocol, Rule, RuleKeys, RuleTarget, ShownKey};
use crate::secret::Secret;
use crate::settings::{Inspect, Intercept, Settings};

/// A policy that was compiled without fault. The default one grants nothing.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub(crate) filesystem: Filesystem,
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    pub(crate) listen: Vec<ListenGrant>,
    pub(crate) audit_file: Option<String>,
    pub(crate) pins: Pins,
    pub(crate) rules: Vec<Rule>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) warnings: Vec<PolicyError>,
    pub(crate) notes: Vec<Note>,
    pub(crate) arguments: Vec<Arguments>,
    /// Where single values and pins come from, by the name of their key.
    pub(crate) places: BTreeMap<String, Arc<str>>,
    /// What a project's own documents allow of it: see [`crate::narrowing`].
    pub(crate) narrowing: Option<Box<Policy>>,
}

/// How the rules of a policy name a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// A rule or a pin spells it out.
    InFull,
    /// A wildcard covers it.
    ByPattern,
    /// No rule lets anything go to it.
    Not,
}

/// A host as a pin names it.
pub(crate) fn pinned(host: &HostName, port: Option<u16>) -> String {
    match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    }
}

/// Addresses the operator gave to names, for one port or for all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins(BTreeMap<HostName, BTreeMap<Option<u16>, PinTarget>>);

/// Where a pin leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PinTarget {
    pub(crate) address: IpAddr,
    /// `None` keeps the port that was asked for.
    pub(crate) port: Option<u16>,
}

impl Pins {
    /// Adds a pin; a later one for the same host and port replaces it.
    pub(crate) fn add(&mut self, host: HostName, port: Option<u16>, pin: PinTarget) {
        self.0.entry(host).or_default().insert(port, pin);
    }

    /// The first pin that `other` does not hold just so: its host, and the
    /// port it is for.
    fn first_beyond(&self, other: &Self) -> Option<(&HostName, Option<u16>)> {
        self.0.iter().find_map(|(host, ports)| {
            let theirs = other.0.get(host);
            let beyond = ports.iter().find(|(port, pin)| {
                let same = theirs.and_then(|theirs| theirs.get(port));
                same != Some(pin)
            });
            beyond.map(|(port, _)| (host, *port))
        })
    }

    fn find(&self, host: &HostName, port: u16) -> Option<SocketAddr> {
        let pins = self.0.get(host)?;
        let pin = pins.get(&Some(port)).or_else(|| pins.get(&None))?;
        Some(SocketAddr::new(pin.address, pin.port.unwrap_or(port)))
    }
}

/// Ports on which HTTP is usual.
const HTTP_PORTS: [u16; 4] = [80, 443, 8080, 8443];

impl Policy {
    /// What the command may read and write.
    pub fn filesystem(&self) -> &Filesystem {
        &self.filesystem
    }

    /// What whoever starts a run should know.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Arguments that programs are started with besides, in the order of the sources.
    pub fn arguments(&self) -> &[Arguments] {
        &self.arguments
    }

    /// The environment of the command.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The limits of the sandbox.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where the command may bind and listen beside loopback.
    pub fn listen(&self) -> &[ListenGrant] {
        &self.listen
    }

    /// The file for the audit records, absolute.
    pub fn audit_file(&self) -> Option<&str> {
        self.audit_file.as_deref()
    }

    /// Whether a rule allows a Unix socket outside.
    pub fn allows_unix(&self) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.target, RuleTarget::Unix { .. }) && rule.reference.effect == Effect::Allow
        })
    }

    /// The address the operator pinned a host and port to.
    pub fn pin(&self, host: &HostName, port: u16) -> Option<SocketAddr> {
        self.pins.find(host, port)
    }

    /// The first pin of this policy that `other` does not hold just so: its
    /// host, and the port it is for, if it is for one.
    pub fn pin_beyond(&self, other: &Self) -> Option<(&HostName, Option<u16>)> {
        self.pins.first_beyond(&other.pins)
    }

    /// The pins in words, `HOST[:PORT]` and `ADDR[:PORT]`, in the order of their hosts.
    pub fn pins(&self) -> impl Iterator<Item = (String, String)> {
        self.pins.0.iter().flat_map(|(host, pins)| {
            pins.iter().map(move |(port, pin)| {
                let address = match pin.port {
                    Some(port) => SocketAddr::new(pin.address, port).to_string(),
                    None => pin.address.to_string(),
                };
                (pinned(host, *port), address)
            })
        })
    }

    /// Where a value comes from, by its key: `tls.intercept`, `limits.memory`,
    /// `environment.set.CI`, `pin.api.example.org:443`. `None` for a default.
    pub fn place(&self, key: &str) -> Option<&str> {
        self.places.get(key).map(|place| &**place)
    }

    /// To what a rule is limited beside its text: executables, and the
    /// special-use ranges its host may lead to.
    pub fn limits_of(&self, rule: &RuleRef) -> (Vec<&str>, Vec<String>) {
        let mut rules = self.rules.iter().chain(self.narrowing_rules());
        let Some(rule) = rules.find(|own| own.reference == *rule) else {
            return (Vec::new(), Vec::new());
        };
        let addresses = match &rule.target {
            RuleTarget::Network(target) => {
                target.addresses.iter().map(ToString::to_string).collect()
            }
            RuleTarget::Unix { .. } => Vec::new(),
        };
        (
            rule.keys.process.iter().map(|own| &**own).collect(),
            addresses,
        )
    }

    /// What stands beside the text of a rule of this policy.
    pub(crate) fn keys_of(&self, rule: &RuleRef) -> Option<&RuleKeys> {
        // Rules are numbered from one, in their order.
        let place = usize::try_from(rule.id).ok()?.checked_sub(1)?;
        let own = self.rules.get(place)?;
        (own.reference.id == rule.id).then_some(&own.keys)
    }

    /// The same as people and programs read it: every key but those of [`Self::limits_of`].
    pub fn shown_keys(&self, rule: &RuleRef) -> Vec<ShownKey> {
        let none = RuleKeys::default();
        self.keys_of(rule).unwrap_or(&none).shown()
    }

    /// The switches.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the rules name a host.
    pub fn naming(&self, name: &HostName) -> Naming {
        let hosts = self
            .network_rules()
            .filter(|(rule, _)| rule.reference.effect != Effect::Deny)
            .map(|(_, target)| &target.host);
        let mut naming = Naming::Not;
        for host in hosts.filter(|host| host.grants_name(name)) {
            match host {
                HostPattern::Exact(_) | HostPattern::Localhost => return Naming::InFull,
                HostPattern::AtOrBelow(own) if own == name => return Naming::InFull,
                HostPattern::Everything
                | HostPattern::Any
                | HostPattern::Below(_)
                | HostPattern::AtOrBelow(_)
                | HostPattern::Net(_) => naming = Naming::ByPattern,
            }
        }
        if self.pins.0.contains_key(name) {
            return Naming::InFull;
        }
        match naming {
            // Any name may be asked for.
            Naming::Not if self.monitors() => Naming::ByPattern,
            naming => naming,
        }
    }

    /// The names that rules and pins spell out.
    pub fn spelt(&self) -> impl Iterator<Item = &HostName> {
        let hosts = self
            .network_rules()
            .filter(|(rule, _)| rule.reference.effect != Effect::Deny)
            .map(|(_, target)| &target.host);
        let names = hosts.filter_map(|host| match host {
            HostPattern::Exact(name) | HostPattern::AtOrBelow(name) => Some(name),
            HostPattern::Localhost
            | HostPattern::Everything
            | HostPattern::Any
            | HostPattern::Below(_)
            | HostPattern::Net(_) => None,
        });
        names.chain(self.pins.0.keys())
    }

    /// The names that rules of any effect and pins spell out, in their order.
    pub fn named(&self) -> impl Iterator<Item = &HostName> {
        let rules = self.rules.iter().chain(self.narrowing_rules());
        let names = rules.filter_map(|rule| match &rule.target {
            RuleTarget::Network(target) => match &target.host {
                HostPattern::Exact(name) => Some(name),
                HostPattern::AtOrBelow(_)
                | HostPattern::Localhost
                | HostPattern::Everything
                | HostPattern::Any
                | HostPattern::Below(_)
                | HostPattern::Net(_) => None,
            },
            RuleTarget::Unix { .. } => None,
        });
        names.chain(self.pins.0.keys())
    }

    /// Whether a rule allows anything at a host of this pattern, `NAME` or `*.NAME`.
    pub fn may_reach(&self, pattern: &str) -> bool {
        let (name, below) = match pattern.strip_prefix("*.") {
            Some(name) => (name, Below::Too),
            None => (pattern, Below::Not),
        };
        let Ok(name) = HostName::parse(name) else {
            return false;
        };
        let mut allowed = self
            .network_rules()
            .filter(|(rule, _)| rule.reference.effect == Effect::Allow);
        allowed.any(|(_, target)| target.host.may_grant(&name, below))
    }

    /// All rules, in the order of the sources; those of projects come last.
    pub fn rules(&self) -> impl Iterator<Item = RuleRef> {
        let rules = self.rules.iter().chain(self.narrowing_rules());
        rules.map(|rule| rule.reference.clone())
    }

    /// The secrets that stay outside, in the order of the sources.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What is legal in the policy and yet deserves a second look.
    pub fn warnings(&self) -> &[PolicyError] {
        &self.warnings
    }

    /// The rules about some requests inside TLS, or with an inspection mode for them, where
    /// the policy forbids to look inside: such a rule allows nothing over TLS, and one that
    /// denies keeps TLS to its hosts from passing at all.
    pub fn unseen(&self) -> impl Iterator<Item = &RuleRef> {
        let is_closed = self.settings.intercept == Intercept::Never;
        let is_inside = move |rule: &Rule, target: &NetworkTarget| {
            let https = target.protocols.contains(Protocol::Https);
            let wss = target.protocols.contains(Protocol::Wss);
            let is_scanned = matches!(rule.keys.inspect, Some(Inspect::Block | Inspect::Warn));
            let is_restricted = target.parts().any(NetworkTarget::is_restricted);
            let is_some = is_restricted || !https || is_scanned;
            is_closed && (https || wss) && is_some
        };
        self.network_rules()
            .filter(move |(rule, target)| is_inside(rule, target))
            .map(|(rule, _)| &rule.reference)
    }

    /// Whether clients of this port may be expected to speak HTTP or TLS, so
    /// that a denial can be said to them.
    pub fn speaks_http(&self, port: u16) -> bool {
        let named = |rule: &Rule| match &rule.target {
            RuleTarget::Unix { .. } => false,
            RuleTarget::Network(target) => {
                matches!(target.ports, Ports::List(_))
                    && !target.protocols.contains(Protocol::Tcp)
                    && target.ports.contains(port, || false)
            }
        };
        HTTP_PORTS.contains(&port) || self.rules.iter().any(named)
    }

    /// Whether a certificate is presented to a host: then TLS to it is opened
    /// unless a `tls://` rule forbids that.
    pub(crate) fn presents(&self, peer: Peer<'_>) -> bool {
        self.settings
            .clients
            .iter()
            .any(|client| match (&client.host, peer) {
                (Host::Name(own), Peer::Name(name)) => own == name,
                (Host::Address(own), Peer::Address(address)) => *own == address.to_canonical(),
                // `localhost` is a spelling of the loopback addresses.
                (Host::Name(own), Peer::Address(address)) => {
                    own.as_str() == "localhost" && address.to_canonical().is_loopback()
                }
                (Host::Address(_), Peer::Name(_)) => false,
            })
    }

    /// Whether TLS may be opened: to look inside, or to say there what is denied. Launcher
    /// and gateway both ask this.
    pub fn opens_tls(&self) -> bool {
        self.settings.intercept != Intercept::Never
    }

    /// Whether any rule lets anything out over the network.
    pub fn has_network_rules(&self) -> bool {
        self.rules.iter().any(|rule| {
            rule.reference.effect != Effect::Deny && matches!(rule.target, RuleTarget::Network(_))
        })
    }

    /// Whether any rule lets requests inside TLS out.
    pub fn has_https_rules(&self) -> bool {
        let has = |target: &NetworkTarget| {
            let protocols = [Protocol::Https, Protocol::Wss];
            protocols
                .iter()
                .any(|protocol| target.protocols.contains(*protocol))
        };
        let mut rules = self.network_rules();
        rules.any(|(rule, target)| rule.reference.effect != Effect::Deny && has(target))
    }

    /// Whether some rule tells requests to this host by their paths or queries, as
    /// far as its name goes.
    pub fn looks_at_paths(&self, peer: Peer<'_>) -> bool {
        let is_named = |target: &NetworkTarget| match peer {
            Peer::Name(name) => target.host.grants_name(name) || target.host.denies_name(name),
            Peer::Address(ip) => target.host.grants_address(ip) || target.host.denies_address(ip),
        };
        // What a project narrows it may tell by paths too.
        self.narrowing.is_some()
            || self.network_rules().any(|(_, target)| {
                let by_path = |own: &NetworkTarget| own.path.is_some() || !own.query.is_empty();
                target.parts().any(by_path) && is_named(target)
            })
    }

    /// The methods that rules name, in order.
    pub fn named_methods(&self) -> impl Iterator<Item = &str> {
        self.network_rules()
            .flat_map(|(_, target)| target.parts())
            .flat_map(|target| match &target.methods {
                Methods::Any => &[][..],
                Methods::List(list) => list.as_slice(),
            })
            .map(AsRef::as_ref)
    }

    /// The rules about the network, in order.
    pub(crate) fn network_rules(&self) -> impl Iterator<Item = (&Rule, &NetworkTarget)> {
        self.all_rules()
            .iter()
            .filter_map(|rule| match &rule.target {
                RuleTarget::Network(target) => Some((rule, target)),
                RuleTarget::Unix { .. } => None,
            })
    }

    /// All rules, in order.
    pub(crate) fn all_rules(&self) -> &[Rule] {
        &self.rules
    }
}
