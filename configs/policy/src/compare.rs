//! What one policy allows that another denies.
//!
//! Each rule that lets something out is held against the other policy. Either it is plain
//! that the other grants all of it: a rule there covers each method, protocol and port, and
//! whatever may deny some of it there denies it here as well. Or an event is looked for that
//! the decision function allows here and denies there, and told. Where there is neither,
//! that is said too, so that no widening is ever left out. Values and comparison only.

use crate::effect::{Effect, RuleRef};
use crate::host::HostPattern;
use crate::net::Ports;
use crate::policy::Policy;
use crate::rule::{Methods, NetworkTarget, Protocol, Rule, RuleTarget};

mod other;
mod probe;

pub use other::OtherWidening;

/// Events that are judged in all, and for one rule, in search of one that shows a widening:
/// a second or two.
const EVENTS_MAX: usize = 200_000;
const EVENTS_OF_RULE_MAX: usize = 20_000;

/// A rule of a policy that lets something out which another policy keeps in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widening {
    /// The rule.
    pub rule: RuleRef,
    /// An event that shows it; none where none was found, and it may be none.
    pub shown: Option<Shown>,
    /// Which of its parts may differ.
    pub about: WideningKind,
}

/// An event that one policy allows and the other denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// In words.
    pub event: String,
    /// Why the other denies it.
    pub because: String,
    /// Rules of the other that come near, and in what they differ.
    pub nearest: Vec<String>,
}

/// What about a rule is wider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WideningKind {
    /// What it lets out.
    Reach,
    /// What it lets out is looked at less, or counts less.
    Look,
}

/// All that `to` allows and `from` does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Widenings {
    /// By rules.
    pub rules: Vec<Widening>,
    /// By all else: files, addresses, ports to listen on, switches.
    pub others: Vec<OtherWidening>,
}

impl Widenings {
    /// What `to` allows that `from` does not.
    pub fn between(from: &Policy, to: &Policy) -> Self {
        Self::searched(from, to, EVENTS_MAX)
    }

    /// The same, with so many events judged at most.
    fn searched(from: &Policy, to: &Policy, events_max: usize) -> Self {
        let granting = to.all_rules().iter().filter(|rule| is_granting(rule));
        let wider = granting.filter_map(|rule| {
            if !is_reached(rule, from, to) {
                Some((rule, WideningKind::Reach))
            } else if !is_looked_at(rule, from, to) {
                Some((rule, WideningKind::Look))
            } else {
                None
            }
        });
        let wider: Vec<(&Rule, WideningKind)> = wider.collect();
        let events = (events_max / wider.len().max(1)).min(EVENTS_OF_RULE_MAX);
        let widening = |(rule, about): (&Rule, WideningKind)| Widening {
            rule: rule.reference.clone(),
            shown: probe::search(rule, (from, to), about, events),
            about,
        };
        Self {
            rules: wider.into_iter().map(widening).collect(),
            others: other::between(from, to),
        }
    }

    /// Something beside rules that is different, and that a run cannot take on while it goes
    /// on; nothing where there is none.
    pub fn fixed(begun: &Policy, policy: &Policy) -> Option<OtherWidening> {
        other::fixed(begun, policy)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.others.is_empty()
    }
}

/// Whether it is plain that `from` allows all that `to` does, and looks at it as closely:
/// nothing is searched for.
pub(crate) fn is_plainly_within(from: &Policy, to: &Policy) -> bool {
    let mut granting = to.all_rules().iter().filter(|rule| is_granting(rule));
    granting.all(|rule| is_reached(rule, from, to) && is_looked_at(rule, from, to))
}

/// Whether it is plain that rules of `from` grant all that `to` lets out over the network,
/// whatever other rules deny of it.
pub(crate) fn is_plainly_granted(from: &Policy, to: &Policy) -> bool {
    let mut granting = to.all_rules().iter().filter(|rule| is_granting(rule));
    from.narrowing.is_none()
        && granting.all(|rule| match &rule.target {
            RuleTarget::Network(target) => {
                is_granted(rule, target, from, Effect::Only)
                    || is_granted(rule, target, from, Effect::Allow)
            }
            RuleTarget::Unix { .. } => false,
        })
}

fn is_granting(rule: &Rule) -> bool {
    rule.reference.effect != Effect::Deny
}

/// Whether it is plain that `from` grants all that a rule of `to` grants.
fn is_reached(rule: &Rule, from: &Policy, to: &Policy) -> bool {
    // What a project narrows is not compared rule by rule.
    if from.narrowing.is_some() {
        return false;
    }
    let granted = match &rule.target {
        RuleTarget::Unix { pattern, .. } => from.all_rules().iter().any(|own| match &own.target {
            RuleTarget::Unix { pattern: wide, .. } => {
                is_granting(own) && is_for_fewer(rule, own) && pattern.grants_within(wide)
            }
            RuleTarget::Network(_) => false,
        }),
        RuleTarget::Network(target) => {
            let keeps_only = || {
                only_rules(from).all(|(own, wide)| {
                    wide.host.is_apart(&target.host)
                        || only_rules(to)
                            .any(|(other, host)| wide.host == host.host && is_for_fewer(own, other))
                })
            };
            let has_none = || only_rules(from).all(|(_, wide)| wide.host.is_apart(&target.host));
            // An `only` rule grants whatever `only` rules there are.
            is_granted(rule, target, from, Effect::Only)
                || is_granted(rule, target, from, Effect::Allow)
                    && match rule.reference.effect {
                        Effect::Only => has_none(),
                        Effect::Allow | Effect::Deny => keeps_only(),
                    }
        }
    };
    granted
        && denials(from)
            .all(|deny| is_apart(deny, rule) || denials(to).any(|own| is_denied(deny, own)))
}

fn denials(policy: &Policy) -> impl Iterator<Item = &Rule> {
    policy
        .all_rules()
        .iter()
        .filter(|rule| rule.reference.effect == Effect::Deny)
}

fn only_rules(policy: &Policy) -> impl Iterator<Item = (&Rule, &NetworkTarget)> {
    policy
        .network_rules()
        .filter(|(rule, _)| rule.reference.effect == Effect::Only)
}

/// Whether a rule is for no executable that another is not for.
fn is_for_fewer(rule: &Rule, other: &Rule) -> bool {
    other.keys.process.is_empty()
        || !rule.keys.process.is_empty()
            && rule
                .keys
                .process
                .iter()
                .all(|own| other.keys.process.contains(own))
}

/// Whether rules of `from` with this effect grant each protocol, method and port of a rule.
fn is_granted(rule: &Rule, target: &NetworkTarget, from: &Policy, effect: Effect) -> bool {
    let mut protocols = Protocol::ALL
        .into_iter()
        .filter(|own| target.protocols.contains(*own));
    let methods: Vec<Option<&str>> = match &target.methods {
        Methods::Any => vec![None],
        Methods::List(list) => list.iter().map(|method| Some(&**method)).collect(),
    };
    protocols.all(|protocol| {
        let ports = ranges(&target.ports, protocol);
        methods.iter().all(|method| {
            ports.iter().all(|range| {
                let atom = Atom {
                    protocol,
                    method: *method,
                    range: *range,
                };
                from.network_rules().any(|(own, wide)| {
                    own.reference.effect == effect
                        && is_for_fewer(rule, own)
                        && covers(wide, target, atom)
                })
            })
        })
    })
}

/// One protocol, method and range of ports of a rule.
#[derive(Debug, Clone, Copy)]
struct Atom<'r> {
    protocol: Protocol,
    /// `None`: any.
    method: Option<&'r str>,
    range: (u16, u16),
}

/// The ports of a rule that grants.
fn ranges(ports: &Ports, protocol: Protocol) -> Vec<(u16, u16)> {
    match ports {
        Ports::Default => protocol
            .default_port()
            .map(|port| (port, port))
            .into_iter()
            .collect(),
        Ports::Any => vec![(1, u16::MAX)],
        Ports::List(list) => list.clone(),
    }
}

/// Whether a target grants all of another as far as this atom goes.
fn covers(wide: &NetworkTarget, target: &NetworkTarget, atom: Atom<'_>) -> bool {
    let method = match (&wide.methods, atom.method) {
        (Methods::Any, _) => true,
        (Methods::List(list), Some(method)) => list.iter().any(|own| **own == *method),
        (Methods::List(_), None) => false,
    };
    let (first, last) = atom.range;
    let ports = ranges(&wide.ports, atom.protocol);
    let path = match (&target.path, &wide.path) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(own), Some(wide)) => own.grants_within(wide),
    };
    let query = wide
        .query
        .iter()
        .all(|wide| target.query.iter().any(|own| own.is_within(wide)));
    let addresses = target.addresses.iter().all(|net| {
        let is_in =
            |own: &crate::net::Net| own.contains(net.first()) && own.prefix() <= net.prefix();
        wide.addresses.iter().any(is_in)
    });
    wide.protocols.contains(atom.protocol)
        && method
        && ports.iter().any(|(own, end)| *own <= first && last <= *end)
        && target.host.is_within(&wide.host)
        && path
        && query
        && addresses
}

/// Whether a rule that denies is plainly about nothing that another grants.
fn is_apart(deny: &Rule, rule: &Rule) -> bool {
    let is_elsewhere = match (&deny.target, &rule.target) {
        (RuleTarget::Network(deny), RuleTarget::Network(target)) => {
            // Of names those that lead there, whatever is spoken.
            let is_place = matches!(deny.host, HostPattern::Net(_) | HostPattern::Localhost);
            deny.host.is_apart(&target.host)
                || !is_place && !meet(deny, target)
                || have_other_ports(deny, target)
        }
        (RuleTarget::Unix { .. }, RuleTarget::Unix { .. }) => false,
        (RuleTarget::Unix { .. }, RuleTarget::Network(_))
        | (RuleTarget::Network(_), RuleTarget::Unix { .. }) => true,
    };
    // A process that nobody knows is denied by every rule, and granted only by those for all.
    let others = !deny.keys.process.is_empty()
        && !rule.keys.process.is_empty()
        && deny
            .keys
            .process
            .iter()
            .all(|own| !rule.keys.process.contains(own));
    is_elsewhere || others
}

/// Whether what is said of some protocols bears on others: what may pass unopened depends on
/// all that may be inside.
fn meet(deny: &NetworkTarget, target: &NetworkTarget) -> bool {
    use Protocol::{Http, Https, Tcp, Tls, Ws, Wss};
    let has = |target: &NetworkTarget, list: &[Protocol]| {
        list.iter().any(|own| target.protocols.contains(*own))
    };
    let closed = [Https, Wss, Tls];
    has(target, &[Tcp])
        || has(deny, &closed) && has(target, &closed)
        || has(deny, &[Http]) && has(target, &[Http])
        || has(deny, &[Ws]) && has(target, &[Ws])
}

/// Whether a rule that denies names ports of which another grants none.
fn have_other_ports(deny: &NetworkTarget, target: &NetworkTarget) -> bool {
    let Ports::List(denied) = &deny.ports else {
        return false;
    };
    let protocols = Protocol::ALL
        .into_iter()
        .filter(|own| target.protocols.contains(*own));
    let mut granted = protocols.flat_map(|protocol| ranges(&target.ports, protocol));
    granted.all(|(first, last)| denied.iter().all(|(own, end)| last < *own || *end < first))
}

/// Whether all that one rule denies another denies.
fn is_denied(deny: &Rule, other: &Rule) -> bool {
    let is_wider = match (&deny.target, &other.target) {
        (RuleTarget::Network(target), RuleTarget::Network(wide)) => {
            let mut protocols = Protocol::ALL.iter();
            let protocols = protocols
                .all(|own| !target.protocols.contains(*own) || wide.protocols.contains(*own));
            let methods = match (&target.methods, &wide.methods) {
                (_, Methods::Any) => true,
                (Methods::Any, Methods::List(_)) => false,
                (Methods::List(list), Methods::List(wide)) => list
                    .iter()
                    .all(|own| wide.iter().any(|wide| own.eq_ignore_ascii_case(wide))),
            };
            let path = match (&target.path, &wide.path) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(own), Some(wide)) => own.denies_within(wide),
            };
            let ports = match (&target.ports, &wide.ports) {
                (_, Ports::Any | Ports::Default) => true,
                (Ports::Any | Ports::Default, Ports::List(_)) => false,
                (Ports::List(list), Ports::List(wide)) => list
                    .iter()
                    .all(|(first, last)| wide.iter().any(|(own, end)| own <= first && last <= end)),
            };
            let query = wide.query.iter().all(|wide| target.query.contains(wide));
            let host = match (&target.host, &wide.host) {
                (_, HostPattern::Any) => true,
                (own, wide) => own.is_within(wide),
            };
            let except = wide.except.is_empty() || wide.except == target.except;
            protocols && methods && path && ports && query && host && except
        }
        (RuleTarget::Unix { pattern, .. }, RuleTarget::Unix { pattern: wide, .. }) => {
            pattern.grants_within(wide)
        }
        (RuleTarget::Network(_), RuleTarget::Unix { .. })
        | (RuleTarget::Unix { .. }, RuleTarget::Network(_)) => false,
    };
    is_wider && is_for_fewer(deny, other)
}

/// Whether it is plain that `to` looks at what a rule lets out as `from` does, and counts it.
fn is_looked_at(rule: &Rule, from: &Policy, to: &Policy) -> bool {
    let RuleTarget::Network(target) = &rule.target else {
        return true;
    };
    let weighs = |own: &&Rule| own.keys.look_beyond();
    let alike = |one: &Rule, other: &Rule| {
        let same = match (&one.target, &other.target) {
            (RuleTarget::Network(one), RuleTarget::Network(other)) => {
                one.protocols == other.protocols
                    && one.methods == other.methods
                    && one.host == other.host
                    && one.ports == other.ports
                    && one.path == other.path
                    && one.query == other.query
                    && one.except == other.except
            }
            _ => false,
        };
        same && one.keys.process == other.keys.process
            && one.reference.effect == other.reference.effect
    };
    let is_kept = |own: &Rule| {
        let mut others = to.all_rules().iter();
        others.any(|other| alike(own, other) && other.keys.look_as(&own.keys))
    };
    let granting = from.all_rules().iter().filter(|own| is_granting(own));
    let all_kept = granting.filter(weighs).all(|own| {
        let is_elsewhere = match &own.target {
            RuleTarget::Network(wide) => wide.host.is_apart(&target.host),
            RuleTarget::Unix { .. } => true,
        };
        is_elsewhere || is_kept(own)
    });
    // What its own word lets pass, some rule there had one for.
    let own_word = rule.keys.inspect.is_none()
        || from
            .all_rules()
            .iter()
            .any(|own| alike(own, rule) && own.keys.inspect == rule.keys.inspect);
    all_kept && own_word
}

#[cfg(test)]
mod tests;
