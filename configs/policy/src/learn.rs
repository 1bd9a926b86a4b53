//! The smallest policy that a person would sign, from what runs did and were denied.
//!
//! Each line has its evidence, and a note where it is riskier than it looks. A rule never
//! names more than one host. There is none for what nobody may reach by accident: services
//! of metadata, private and loopback addresses that no rule had granted, and hosts to which
//! a credential was on its way. What no rule can cover is said. The same sightings make the
//! same text, in whatever order they came. Decides nothing by itself: whether a rule covers
//! what was seen, the decision function says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::compile::compile;
use crate::denial::{connection_rule, meant, port_unless};
use crate::effect::Effect;
use crate::facts::{Peer, Process, Scheme};
use crate::grammar;
use crate::host::Host;
use crate::limits::{SIGHTING_TEXT_BYTES_MAX, SIGHTINGS_MAX};
use crate::path::RequestTarget;
use crate::policy::Policy;
use crate::printable::printable;
use crate::question::{Question, QuestionForm};
use crate::recall::{PastForm, PastVerdict, Recall};
use crate::source::{Context, Source, SourceKind};
use crate::special::{is_never_class, special_use};
use requests::{Seen, requests};

mod evidence;
mod lines;
mod lock;
mod merge;
mod requests;
mod template;

pub use evidence::{Evidence, Sighted, Sighting};
pub use lines::{LearntLine, LineKind, Risk};
pub use lock::{Lock, LockError};
pub use merge::with_rule;

/// Names under which clouds serve metadata beside the addresses for it.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
];

/// A place that requests go to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// As a rule names it, so that places sort as they read.
    host: String,
    port: u16,
    scheme: &'static str,
}

/// What is no request: a whole destination, a socket, a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Whole {
    /// The text of a rule, and the special-use addresses that its name led to.
    Rule(String, BTreeSet<String>),
    Listen(String),
}

/// Who asked for it, and how often.
type Asked = BTreeMap<String, Evidence>;

/// Gathers sightings; see the head of this file.
#[derive(Debug, Default)]
pub struct Learner<'p> {
    /// What is allowed already, and need not be learnt.
    known: Option<Recall<'p>>,
    requests: BTreeMap<Place, BTreeMap<Seen, Evidence>>,
    wholes: BTreeMap<Whole, Asked>,
    /// Of denied connections over which a request or TLS may have been told: host and port.
    unspoken: BTreeMap<Whole, (String, u16)>,
    refused: BTreeMap<String, &'static str>,
    left_out: BTreeMap<(String, &'static str), u64>,
    kept: usize,
    beyond: u64,
    total: u64,
}

/// What was learnt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learnt {
    /// The lines of a policy, in their order.
    pub lines: Vec<LearntLine>,
    /// What there is no line for, why, and how often.
    pub left_out: Vec<(String, String, u64)>,
    /// Sightings in all.
    pub total: u64,
}

impl<'p> Learner<'p> {
    /// One that learns what this policy does not allow.
    pub fn beyond(policy: &'p Policy) -> Self {
        Self {
            known: Some(Recall::new(policy)),
            ..Self::default()
        }
    }

    /// Adds something that was seen.
    pub fn add(&mut self, sighting: &Sighting<'_>) {
        self.total = self.total.saturating_add(1);
        let process = Process {
            executable: sighting.executable,
        };
        let known = self.known.as_ref();
        let known = known.map(|known| known.judge(sighting.event, process));
        if let Some(PastVerdict::Allowed(_)) = known {
            return;
        }
        match &sighting.event.0 {
            PastForm::Request(question, _) => self.request(question, sighting),
            PastForm::Somewhere(_) => self.leave_out(sighting, "its path is not in the record"),
            PastForm::Connect(host, port, dialled) => {
                self.connection(sighting, (host, *port), dialled);
            }
            PastForm::Tunnel(host, port) => self.tunnel(sighting, host, *port),
            PastForm::Unix(path) => {
                let rule = format!("unix://{path}");
                let is_plain = !path.contains('*') && printable(path) == *path;
                if is_plain && grammar::parse(&rule, Effect::Allow).is_ok() {
                    self.whole(sighting, Whole::Rule(rule, BTreeSet::new()));
                } else {
                    self.leave_out(sighting, "no rule can name this path");
                }
            }
            PastForm::Listen(address) if address.ip().to_canonical().is_loopback() => {}
            PastForm::Listen(address) => {
                self.whole(sighting, Whole::Listen(address.to_string()));
            }
        }
    }

    /// Learns no rule for a host, for this reason.
    pub fn refuse(&mut self, host: &str, why: &'static str) {
        if self.refused.len() < SIGHTINGS_MAX {
            self.refused.insert(host.to_ascii_lowercase(), why);
        }
    }

    /// Counts what cannot be learnt from, for this reason.
    pub fn leave_out(&mut self, sighting: &Sighting<'_>, why: &'static str) {
        self.leave(&Evidence::of(sighting).first.1, why);
    }

    /// The same of a record that is no event.
    pub fn leave(&mut self, subject: &str, why: &'static str) {
        if self.left_out.len() >= SIGHTINGS_MAX {
            self.beyond = self.beyond.saturating_add(1);
            return;
        }
        let subject = printable(subject);
        let count = self.left_out.entry((subject, why)).or_default();
        *count = count.saturating_add(1);
    }

    fn request(&mut self, question: &Question, sighting: &Sighting<'_>) {
        let QuestionForm::Request(asked) = &question.form else {
            return;
        };
        if let Some(why) = denied_class(&asked.host, sighting.sighted) {
            return self.leave_out(sighting, why);
        }
        let takes_methods = matches!(asked.scheme, Scheme::Http | Scheme::Https);
        if takes_methods && !grammar::is_rule_method(&asked.method) {
            return self.leave_out(sighting, "no rule can name this method");
        }
        let place = Place {
            host: meant(peer(&asked.host)),
            port: asked.port,
            scheme: asked.scheme.as_str(),
        };
        let seen = Seen {
            method: asked.method.clone(),
            path: asked.target.path().to_owned(),
            keys: keys(&asked.target),
            executable: executable(sighting),
        };
        let own = self.requests.entry(place).or_default();
        if !own.contains_key(&seen) {
            if self.kept >= SIGHTINGS_MAX {
                self.beyond = self.beyond.saturating_add(1);
                return;
            }
            self.kept = self.kept.saturating_add(1);
        }
        own.entry(seen).or_default().join(Evidence::of(sighting));
    }

    fn connection(
        &mut self,
        sighting: &Sighting<'_>,
        (host, port): (&Host, u16),
        dialled: &[IpAddr],
    ) {
        if let Some(why) = denied_class(host, sighting.sighted) {
            return self.leave_out(sighting, why);
        }
        let special = dialled.iter().filter(|ip| special_use(**ip).is_some());
        let special: BTreeSet<IpAddr> = special.copied().collect();
        if special.iter().any(|ip| is_never_learnt(*ip)) {
            return self.leave_out(sighting, METADATA);
        }
        let rule = match sighting.sighted {
            Sighted::Allowed | Sighted::Raw => format!("tcp://{}:{port}", meant(peer(host))),
            Sighted::Denied => connection_rule(peer(host), port),
        };
        let addresses = match host {
            Host::Name(_) => special.iter().map(ToString::to_string).collect(),
            Host::Address(_) => BTreeSet::new(),
        };
        let whole = Whole::Rule(rule, addresses);
        if sighting.sighted == Sighted::Denied {
            self.unspoken
                .insert(whole.clone(), (meant(peer(host)), port));
        }
        self.whole(sighting, whole);
    }

    fn tunnel(&mut self, sighting: &Sighting<'_>, host: &Host, port: u16) {
        if let Some(why) = denied_class(host, sighting.sighted) {
            return self.leave_out(sighting, why);
        }
        let named = meant(peer(host));
        // Unopened TLS was meant as such; of denied TLS nobody knows what it was for.
        let scheme = match sighting.sighted {
            Sighted::Allowed => "tls",
            Sighted::Denied | Sighted::Raw => "https",
        };
        let rule = format!("{scheme}://{named}{}", port_unless(port, 443));
        let whole = Whole::Rule(rule, BTreeSet::new());
        if sighting.sighted == Sighted::Denied {
            self.unspoken.insert(whole.clone(), (named, port));
        }
        self.whole(sighting, whole);
    }

    fn whole(&mut self, sighting: &Sighting<'_>, whole: Whole) {
        let by = executable(sighting);
        let own = self.wholes.get(&whole);
        if own.is_none_or(|own| !own.contains_key(&by)) {
            if self.kept >= SIGHTINGS_MAX {
                self.beyond = self.beyond.saturating_add(1);
                return;
            }
            self.kept = self.kept.saturating_add(1);
        }
        let own = self.wholes.entry(whole).or_default();
        own.entry(by).or_default().join(Evidence::of(sighting));
    }

    /// The policy. `is_shared` says of a host whether its content is of many tenants.
    pub fn learnt(&self, is_shared: &dyn Fn(&str) -> bool) -> Learnt {
        let mut learnt = Learnt {
            total: self.total,
            ..Learnt::default()
        };
        let mut left_out = self.left_out.clone();
        let mut leave = |evidence: &Evidence, why: &'static str| {
            let count = evidence.allowed.saturating_add(evidence.denied);
            let own = left_out.entry((evidence.first.1.clone(), why)).or_default();
            *own = own.saturating_add(count);
        };
        for (place, seen) in &self.requests {
            if let Some(why) = self.refused.get(host_of(&place.host)).copied() {
                for evidence in seen.values() {
                    leave(evidence, why);
                }
                continue;
            }
            let (lines, uncovered) = requests(place, seen, is_shared);
            learnt.lines.extend(lines);
            for evidence in &uncovered {
                leave(evidence, "only a rule for the whole host would cover it");
            }
        }
        for (whole, asked) in &self.wholes {
            let host = host_of_rule(whole);
            if let Some(why) = self.refused.get(host_of(&host)).copied() {
                for evidence in asked.values() {
                    leave(evidence, why);
                }
                continue;
            }
            if !self.is_spoken_for(whole) {
                learnt.lines.push(lines::whole(whole, asked, is_shared));
            }
        }
        learnt.lines.sort_by_cached_key(LearntLine::place);
        let left = left_out.into_iter();
        learnt.left_out = left
            .map(|((subject, why), count)| (subject, why.to_owned(), count))
            .collect();
        if self.beyond > 0 {
            let subject = "more of the same records".to_owned();
            let why = "they were too many to be told apart".to_owned();
            learnt.left_out.push((subject, why, self.beyond));
        }
        learnt
    }

    /// Whether a denied connection is told by the requests that were made over it.
    fn is_spoken_for(&self, whole: &Whole) -> bool {
        let Some((host, port)) = self.unspoken.get(whole) else {
            return false;
        };
        let has_requests = self
            .requests
            .keys()
            .any(|place| place.host == *host && place.port == *port);
        let is_connection =
            |rule: &str| rule.starts_with("http://") || rule.starts_with("https://");
        let Whole::Rule(rule, _) = whole else {
            return false;
        };
        let tunnel = format!("https://{host}{}", port_unless(*port, 443));
        let has_tunnel = tunnel != *rule
            && self
                .wholes
                .contains_key(&Whole::Rule(tunnel, BTreeSet::new()));
        has_requests || has_tunnel && !is_connection(rule)
    }
}

const METADATA: &str = "services of metadata hand out credentials";

/// Why no rule is learnt for a host, if none is.
fn denied_class(host: &Host, sighted: Sighted) -> Option<&'static str> {
    const PRIVATE: &str = "a private or loopback address is granted by who names it, not learnt";
    match host {
        Host::Name(name) if METADATA_NAMES.contains(&name.as_str()) => Some(METADATA),
        Host::Name(name) if name.is_local() && sighted != Sighted::Allowed => Some(PRIVATE),
        Host::Address(ip) if is_never_learnt(*ip) => Some(METADATA),
        Host::Address(ip) if special_use(*ip).is_some() && sighted != Sighted::Allowed => {
            Some(PRIVATE)
        }
        Host::Name(_) | Host::Address(_) => None,
    }
}

/// Whether no rule is learnt for an address, even if one had granted it.
fn is_never_learnt(ip: IpAddr) -> bool {
    let class = special_use(ip);
    class.is_some_and(|class| matches!(class, "metadata" | "link-local") || is_never_class(class))
}

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(ip) => Peer::Address(*ip),
    }
}

/// The executable as a rule may name it; empty where none may.
fn executable(sighting: &Sighting<'_>) -> String {
    let text = sighting.executable;
    let is_plain = text.starts_with('/')
        && !text.contains('*')
        && text.len() <= SIGHTING_TEXT_BYTES_MAX
        && !text.ends_with(" (deleted)")
        && printable(text) == text;
    if is_plain {
        text.to_owned()
    } else {
        String::new()
    }
}

/// The keys of a query that a rule may ask for.
fn keys(target: &RequestTarget) -> BTreeSet<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let parts = target.query().unwrap_or_default().split('&');
    let keys = parts.filter_map(|part| part.split_once('='));
    let keys = keys.map(|(key, _)| key.to_owned());
    keys.filter(|key| !key.is_empty() && key.bytes().all(plain))
        .collect()
}

/// The name in a host with brackets.
fn host_of(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The host that a rule for a whole destination is about; empty where it is about none.
fn host_of_rule(whole: &Whole) -> String {
    match whole {
        Whole::Rule(rule, _) => {
            let parts = grammar::RuleParts::of(rule);
            match parts.host.rsplit_once(':') {
                Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                    host.to_owned()
                }
                Some(_) | None => parts.host.to_owned(),
            }
        }
        Whole::Listen(_) => String::new(),
    }
}

/// The policy of these documents.
fn policy_of(text: &str) -> Option<Policy> {
    let source = Source {
        kind: SourceKind::Document,
        place: "learnt".to_owned(),
        text: text.to_owned(),
    };
    compile(&[source], &Context::nowhere()).ok()
}

#[cfg(test)]
mod tests;
