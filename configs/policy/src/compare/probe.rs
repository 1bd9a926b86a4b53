//! An event that one policy allows by a rule and the other denies, searched for among those
//! that the rules of both speak of. The decision function judges each; bounded, so that the
//! search may end without one.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Shown, WideningKind};
use crate::effect::Effect;
use crate::facts::{AddressSource, Facts, Peer, Process, Scheme};
use crate::grammar::{EXCEPT, RuleParts};
use crate::host::{Host, HostName, HostPattern};
use crate::net::Ports;
use crate::path::RequestTarget;
use crate::pattern::PathPattern;
use crate::policy::Policy;
use crate::question::{AskedRequest, Question, QuestionForm};
use crate::rule::{Methods, NetworkTarget, Protocol, Rule, RuleTarget};
use crate::verdict::{BudgetSpan, Permit, Verdict};

/// Texts of one kind that are tried.
const TEXTS_MAX: usize = 40;
/// What stands in the place of what a pattern leaves open.
const OPEN: &str = "outgate";

/// Texts that rules of both policies speak of, and those of the rule itself first.
struct Words {
    peers: Vec<Host>,
    ports: Vec<u16>,
    methods: Vec<String>,
    targets: Vec<String>,
    processes: Vec<String>,
    addresses: Vec<IpAddr>,
}

/// The policy that denies, and the one that allows.
type Pair<'p> = (&'p Policy, &'p Policy);

/// Searches for an event, among so many.
pub(super) fn search(
    rule: &Rule,
    (from, to): Pair<'_>,
    about: WideningKind,
    events: usize,
) -> Option<Shown> {
    let mut rules: Vec<&Rule> = vec![rule];
    rules.extend(from.all_rules().iter().chain(to.all_rules()));
    let words = Words::of(rule, &rules);
    match &rule.target {
        RuleTarget::Unix { .. } => {
            let paths = rules.iter().filter_map(|own| match &own.target {
                RuleTarget::Unix { path, .. } => Some(PathPattern::example(path, OPEN)),
                RuleTarget::Network(_) => None,
            });
            let paths: Vec<String> = paths.take(TEXTS_MAX).collect();
            paths.iter().find_map(|path| {
                words.processes.iter().find_map(|process| {
                    let process = Process {
                        executable: process,
                    };
                    let facts = Facts::Unix { process, path };
                    let question = Question {
                        form: QuestionForm::Unix(path.clone()),
                    };
                    shown(&facts, &question, (from, to))
                })
            })
        }
        RuleTarget::Network(target) => network(target, &words, (from, to), about, events),
    }
}

fn network(
    target: &NetworkTarget,
    words: &Words,
    pair: Pair<'_>,
    about: WideningKind,
    events: usize,
) -> Option<Shown> {
    let mut left = events;
    let schemes = schemes(target);
    let resources = words
        .targets
        .iter()
        .filter_map(|text| RequestTarget::parse(text).ok());
    let resources: Vec<RequestTarget> = resources.collect();
    for host in &words.peers {
        for port in &words.ports {
            for process in &words.processes {
                let asking = Asking {
                    host,
                    port: *port,
                    process: Process {
                        executable: process,
                    },
                };
                if about == WideningKind::Reach {
                    left = left.checked_sub(words.addresses.len().saturating_add(2))?;
                    let found = connections(words, asking, pair);
                    if found.is_some() {
                        return found;
                    }
                }
                for resource in &resources {
                    for (method, scheme) in pairs(&words.methods, &schemes) {
                        left = left.checked_sub(1)?;
                        let found = request(asking, (method, scheme, resource), pair, about);
                        if found.is_some() {
                            return found;
                        }
                    }
                }
            }
        }
    }
    None
}

/// Who asks for whom.
#[derive(Clone, Copy)]
struct Asking<'w> {
    host: &'w Host,
    port: u16,
    process: Process<'w>,
}

/// Each method with each scheme.
fn pairs<'w>(methods: &'w [String], schemes: &'w [Scheme]) -> Vec<(&'w str, Scheme)> {
    let all = methods
        .iter()
        .flat_map(|method| schemes.iter().map(move |scheme| (method, scheme)));
    all.map(|(method, scheme)| (method.as_str(), *scheme))
        .collect()
}

/// One request.
fn request(
    asking: Asking<'_>,
    (method, scheme, target): (&str, Scheme, &RequestTarget),
    pair: Pair<'_>,
    about: WideningKind,
) -> Option<Shown> {
    let facts = Facts::Request {
        process: asking.process,
        peer: peer(asking.host),
        port: asking.port,
        scheme,
        method,
        target,
    };
    let question = Question {
        form: QuestionForm::Request(AskedRequest {
            scheme,
            method: method.to_owned(),
            host: asking.host.clone(),
            port: asking.port,
            target: target.clone(),
        }),
    };
    match about {
        WideningKind::Reach => shown(&facts, &question, pair),
        WideningKind::Look => looser(&facts, &question, pair),
    }
}

/// Connections, TLS and addresses behind a name.
fn connections(
    words: &Words,
    Asking {
        host,
        port,
        process,
    }: Asking<'_>,
    pair: Pair<'_>,
) -> Option<Shown> {
    let peer = peer(host);
    let tcp = Question {
        form: QuestionForm::Tcp(host.clone(), port),
    };
    let tls = Question {
        form: QuestionForm::Tls(host.clone(), port),
    };
    let connect = Facts::Connect {
        process,
        peer,
        port,
    };
    let tunnel = Facts::Tunnel {
        process,
        peer,
        port,
    };
    let dials = words
        .addresses
        .iter()
        .filter(|_| matches!(host, Host::Name(_)));
    let dials = dials.map(|address| Facts::Dial {
        process,
        peer,
        port,
        address: *address,
        source: AddressSource::Resolved,
    });
    shown(&connect, &tcp, pair)
        .or_else(|| shown(&tunnel, &tls, pair))
        .or_else(|| {
            dials
                .into_iter()
                .find_map(|facts| shown(&facts, &tcp, pair))
        })
}

/// The event in words, if one policy allows it and the other does not.
fn shown(facts: &Facts<'_>, question: &Question, (from, to): Pair<'_>) -> Option<Shown> {
    let Verdict::Allow(_) = to.evaluate(facts) else {
        return None;
    };
    let Verdict::Deny(denial) = from.evaluate(facts) else {
        return None;
    };
    let near = from.nearest(question, facts.process());
    let nearest = near
        .iter()
        .filter(|near| !near.differs.is_empty())
        .map(|near| {
            let differs: Vec<String> = near.differs.iter().map(ToString::to_string).collect();
            format!(
                "`{}` ({}): {}",
                near.rule.text,
                near.rule.place,
                differs.join("; ")
            )
        });
    let by = match facts.process().executable {
        "" => String::new(),
        executable => format!(", by {executable}"),
    };
    let query = match question.form {
        QuestionForm::Request(ref asked) => asked.target.query(),
        QuestionForm::Tls(..) | QuestionForm::Tcp(..) | QuestionForm::Unix(_) => None,
    };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let event = match *facts {
        Facts::Dial { address, .. } => format!("{} at {address}{by}", denial.subject()),
        _ => format!("{}{query}{by}", denial.subject()),
    };
    Some(Shown {
        event,
        because: denial.because().to_owned(),
        nearest: nearest.collect(),
    })
}

/// The event in words, if both allow it and one looks at it less.
fn looser(facts: &Facts<'_>, question: &Question, (from, to): Pair<'_>) -> Option<Shown> {
    let (Verdict::Allow(wide), Verdict::Allow(narrow)) = (to.evaluate(facts), from.evaluate(facts))
    else {
        return None;
    };
    let least = |permit: &Permit, span: BudgetSpan| {
        let budgets = permit.budgets().iter().filter(|own| own.span == span);
        budgets.map(|own| own.bytes).min().unwrap_or(u64::MAX)
    };
    let spans = [BudgetSpan::Run, BudgetSpan::Request];
    let grown = spans.map(|span| (least(&narrow, span), least(&wide, span)));
    let is_scanned_less = wide.inspect().stricter(narrow.inspect()) != wide.inspect();
    let because = if is_scanned_less {
        let (from, to) = (narrow.inspect().word(), wide.inspect().word());
        format!("findings in it were met with `{from}`, and are with `{to}`")
    } else if let Some((bytes, _)) = grown.iter().find(|(from, to)| to > from) {
        format!("{bytes} bytes of it could leave, and more can")
    } else {
        return None;
    };
    Some(Shown {
        event: question.to_string(),
        because,
        nearest: Vec::new(),
    })
}

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(ip) => Peer::Address(*ip),
    }
}

/// The schemes of requests that a rule may grant.
fn schemes(target: &NetworkTarget) -> Vec<Scheme> {
    let all = [Scheme::Https, Scheme::Http, Scheme::Wss, Scheme::Ws];
    let has = |scheme: &Scheme| target.protocols.contains(Protocol::from(*scheme));
    all.into_iter().filter(has).collect()
}

impl Words {
    fn of(rule: &Rule, rules: &[&Rule]) -> Self {
        let mut words = Self {
            peers: Vec::new(),
            ports: Vec::new(),
            methods: Vec::new(),
            targets: Vec::new(),
            processes: Vec::new(),
            addresses: Vec::new(),
        };
        words
            .processes
            .extend(rule.keys.process.iter().map(ToString::to_string));
        let mut paths: Vec<String> = Vec::new();
        let mut queries: Vec<String> = vec![String::new()];
        for own in rules {
            add(
                &mut words.processes,
                own.keys.process.iter().map(ToString::to_string),
            );
            let RuleTarget::Network(target) = &own.target else {
                continue;
            };
            for part in target.parts() {
                words.network(rule, own, part);
            }
            for parts in own.reference.text.split(EXCEPT).map(RuleParts::of) {
                if !parts.path.is_empty() {
                    let one = PathPattern::example(parts.path, OPEN);
                    let deeper = PathPattern::example(parts.path, &format!("{OPEN}/{OPEN}"));
                    let none = parts.path.replace("/**", "").replace('*', OPEN);
                    add(&mut paths, [one, deeper, none]);
                }
                if !parts.query.is_empty() {
                    let query = parts.query.replace('*', OPEN);
                    let more = format!("{query}&{OPEN}=1");
                    add(&mut queries, [query, more]);
                }
            }
        }
        add(&mut paths, [format!("/{OPEN}"), "/".to_owned()]);
        add(
            &mut words.methods,
            ["GET", "POST", "OUTGATE"].map(str::to_owned),
        );
        add(&mut words.processes, [String::new(), format!("/{OPEN}")]);
        add(
            &mut words.addresses,
            [IpAddr::from([8, 8, 8, 8]), IpAddr::from([10, 0, 0, 1])],
        );
        let targets = queries.iter().flat_map(|query| {
            let mark = if query.is_empty() { "" } else { "?" };
            paths.iter().map(move |path| format!("{path}{mark}{query}"))
        });
        add(&mut words.targets, targets);
        words
    }

    /// Adds what the network part of a rule speaks of, as far as the rule in question may
    /// be about it.
    fn network(&mut self, rule: &Rule, own: &Rule, target: &NetworkTarget) {
        let RuleTarget::Network(sought) = &rule.target else {
            return;
        };
        let fits = |host: &Host| match host {
            Host::Name(name) => sought.host.grants_name(name),
            Host::Address(ip) => sought.host.grants_address(*ip),
        };
        add(
            &mut self.peers,
            hosts(&target.host).into_iter().filter(fits),
        );
        if let HostPattern::Net(net) = &target.host {
            add(&mut self.addresses, [net.first()]);
        }
        add(
            &mut self.addresses,
            target.addresses.iter().map(crate::net::Net::first),
        );
        let protocols = Protocol::ALL
            .into_iter()
            .filter(|one| sought.protocols.contains(*one));
        for protocol in protocols {
            let listed = match &target.ports {
                Ports::Default => protocol.default_port().into_iter().collect(),
                Ports::Any => vec![protocol.default_port().unwrap_or(1), 12_345],
                Ports::List(list) => list
                    .iter()
                    .flat_map(|(first, last)| [*first, *last])
                    .collect(),
            };
            let is_granted = |port: &u16| sought.grants_port(protocol, *port);
            add(&mut self.ports, listed.into_iter().filter(is_granted));
        }
        if let Methods::List(list) = &target.methods {
            let is_denied = own.reference.effect == Effect::Deny;
            let named = list.iter().flat_map(|method| {
                let head = (is_denied && **method == *"GET").then(|| "HEAD".to_owned());
                std::iter::once(method.to_string()).chain(head)
            });
            add(&mut self.methods, named);
        }
    }
}

/// Adds what is not there, within the bound.
fn add<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if list.len() >= TEXTS_MAX {
            return;
        }
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// Hosts that a pattern is about.
fn hosts(pattern: &HostPattern) -> Vec<Host> {
    let name = |text: String| HostName::parse(&text).ok().map(Host::Name);
    let names: BTreeSet<String> = match pattern {
        HostPattern::Everything | HostPattern::Any => [format!("{OPEN}.example")].into(),
        HostPattern::Localhost => ["localhost".to_owned()].into(),
        HostPattern::Exact(own) => [own.to_string()].into(),
        HostPattern::Below(own) => [format!("{OPEN}.{own}"), format!("a.{OPEN}.{own}")].into(),
        HostPattern::AtOrBelow(own) => [own.to_string(), format!("{OPEN}.{own}")].into(),
        HostPattern::Net(net) => return vec![Host::Address(net.first())],
    };
    names.into_iter().filter_map(name).collect()
}
