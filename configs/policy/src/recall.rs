//! Events of old runs, judged again by another policy, as far as a record holds them.
//!
//! A record holds no values of queries. What they were decides rarely, and where it might,
//! nobody guesses: the one decision function is asked twice, of a policy whose rules about
//! values deny as much as any value could have them deny, and of one whose rules allow as
//! much as any could. Where both say the same it is said; otherwise it is unknown.
//! Neither verdict leaves this file as a permit.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use crate::effect::{Effect, RuleRef};
use crate::facts::{AddressSource, Facts, Peer, Process};
use crate::host::Host;
use crate::net::Ports;
use crate::other_method::is_known_method;
use crate::path::unescape;
use crate::policy::Policy;
use crate::query::QueryPattern;
use crate::question::{Question, QuestionForm};
use crate::rule::{NetworkTarget, Rule, RuleTarget};
use crate::verdict::{Denial, DenialReason, Route, Verdict};

/// What stands for a value that is not written down.
const MASK: &str = "*";

/// A request target with each value of its query replaced by `*`, as records hold it.
pub fn without_values(target: &str) -> Cow<'_, str> {
    let Some((path, query)) = target.split_once('?') else {
        return Cow::Borrowed(target);
    };
    let mut text = path.to_owned();
    for (position, part) in query.split('&').enumerate() {
        text.push(if position == 0 { '?' } else { '&' });
        // A value without a key may be a secret as a whole.
        if let Some((key, _)) = part.split_once('=') {
            text.push_str(key);
            text.push('=');
        }
        text.push_str(MASK);
    }
    Cow::Owned(text)
}

/// Whether the values of a target's query are values to whoever reads them: none holds what
/// some server takes for a further pair or for a path, and none is a method. False where
/// there is no query.
pub fn has_plain_values(target: &str) -> bool {
    let Some((_, query)) = target.split_once('?') else {
        return false;
    };
    let is_plain = |part: &str| {
        let value = part.split_once('=').map_or(part, |(_, value)| value);
        let value = unescape(value.as_bytes());
        let divides = |byte: &u8| matches!(byte, b'&' | b';' | b'?' | b'#' | b'%' | b'[' | b']');
        let is_text = !value.iter().any(divides) && value.is_ascii();
        is_text && !std::str::from_utf8(&value).is_ok_and(is_known_method)
    };
    !query.starts_with('/') && query.split('&').all(is_plain)
}

/// What is known of the values of a query that a record masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskedValues {
    /// They are plain: see [`has_plain_values`].
    Plain,
    /// They may be anything.
    Any,
}

/// An event of an old run, as its record tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEvent(pub(crate) PastForm);

/// The kinds of past events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PastForm {
    /// A connection, and the addresses that were dialled, where they are known.
    Connect(Host, u16, Vec<IpAddr>),
    Tunnel(Host, u16),
    Request(Question, MaskedValues),
    /// A request of which no path is known.
    Somewhere(Question),
    Unix(String),
    Listen(SocketAddr),
}

/// What a policy says of a past event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PastVerdict {
    /// It would be allowed, by this rule.
    Allowed(RuleRef),
    /// It would be denied.
    Denied(Denial),
    /// It depends on what the record does not hold: what that is, in words.
    Unknown(&'static str),
}

/// Why a record cannot be judged again.
const UNREADABLE: &str = "its target is cut or masked in the record";
const NO_PATH: &str = "its path is not in the record";
const VALUES: &str = "it depends on a value of its query, which no record holds";
const INSIDE: &str = "its TLS would be opened, and what was inside is not in the record";
const ADDRESS: &str = "the address that its name led to is not in the record";
const EXECUTABLE: &str = "its executable is masked in the record";

impl PastEvent {
    /// A connection to `HOST:PORT`, dialled at these addresses.
    ///
    /// # Errors
    /// Why it cannot be judged again.
    pub fn connection(target: &str, dialled: Vec<IpAddr>) -> Result<Self, &'static str> {
        let (host, port) = endpoint(target)?;
        Ok(Self(PastForm::Connect(host, port, dialled)))
    }

    /// TLS to `HOST:PORT` that stayed closed.
    ///
    /// # Errors
    /// Why it cannot be judged again.
    pub fn tunnel(target: &str) -> Result<Self, &'static str> {
        let (host, port) = endpoint(target)?;
        Ok(Self(PastForm::Tunnel(host, port)))
    }

    /// A request to an origin, `SCHEME://HOST[:PORT]`, for a path and a query without values.
    ///
    /// # Errors
    /// Why it cannot be judged again.
    pub fn request(
        method: &str,
        origin: &str,
        path: Option<&str>,
        values: MaskedValues,
    ) -> Result<Self, &'static str> {
        let text = format!("{method} {origin}{}", path.unwrap_or("/"));
        let question = Question::parse(&text).map_err(|_| UNREADABLE)?;
        // The asterisk of `OPTIONS *` has no path.
        if !matches!(question.form, QuestionForm::Request(_)) || path == Some(MASK) {
            return Err(UNREADABLE);
        }
        Ok(Self(match path {
            Some(_) => PastForm::Request(question, values),
            None => PastForm::Somewhere(question),
        }))
    }

    /// A connection to a Unix socket.
    pub fn unix(path: &str) -> Self {
        Self(PastForm::Unix(path.to_owned()))
    }

    /// A port that was listened on.
    ///
    /// # Errors
    /// Why it cannot be judged again.
    pub fn listen(address: &str) -> Result<Self, &'static str> {
        let address = address.parse().map_err(|_| UNREADABLE)?;
        Ok(Self(PastForm::Listen(address)))
    }
}

/// Host and port in a record.
fn endpoint(target: &str) -> Result<(Host, u16), &'static str> {
    match Question::parse(&format!("tcp://{target}")) {
        Ok(Question {
            form: QuestionForm::Tcp(host, port),
        }) => Ok((host, port)),
        Ok(_) | Err(_) => Err(UNREADABLE),
    }
}

/// Two policies between which a policy stands where something of a query is not known.
#[derive(Debug)]
struct Bounds {
    strict: Policy,
    lax: Policy,
}

impl Bounds {
    fn of(policy: &Policy, lacking: Lacking) -> Self {
        Self {
            strict: bound(policy, lacking, Bound::Strict),
            lax: bound(policy, lacking, Bound::Lax),
        }
    }
}

/// A policy that judges past events.
#[derive(Debug)]
pub struct Recall<'p> {
    policy: &'p Policy,
    /// Where plain values are masked: what each allows, all have allowed; what it denies,
    /// all have denied.
    plain: Bounds,
    /// The same where values of any kind are masked.
    any: Bounds,
    /// The same where keys are masked as well.
    keyless: Bounds,
}

impl<'p> Recall<'p> {
    /// Prepares a policy.
    pub fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            plain: Bounds::of(policy, Lacking::PlainValues),
            any: Bounds::of(policy, Lacking::Values),
            keyless: Bounds::of(policy, Lacking::Keys),
        }
    }

    /// Judges a past event of this process.
    pub fn judge(&self, event: &PastEvent, process: Process<'_>) -> PastVerdict {
        let is_masked = process.executable.contains(MASK);
        if is_masked
            && self
                .policy
                .all_rules()
                .iter()
                .any(|rule| !rule.keys.process.is_empty())
        {
            return PastVerdict::Unknown(EXECUTABLE);
        }
        match &event.0 {
            PastForm::Connect(host, port, dialled) => {
                self.connection((host, *port), process, dialled)
            }
            PastForm::Tunnel(host, port) => self.tunnel(host, *port, process),
            PastForm::Request(question, values) => self.request(question, process, *values),
            PastForm::Somewhere(question) => match to(question) {
                Some((host, port)) => match self.connection((host, port), process, &[]) {
                    denied @ PastVerdict::Denied(_) => denied,
                    PastVerdict::Allowed(_) | PastVerdict::Unknown(_) => {
                        PastVerdict::Unknown(NO_PATH)
                    }
                },
                None => PastVerdict::Unknown(NO_PATH),
            },
            PastForm::Unix(path) => said(self.policy.evaluate(&Facts::Unix { process, path })),
            PastForm::Listen(address) => said(self.policy.evaluate(&Facts::Listen {
                process,
                address: *address,
            })),
        }
    }

    /// The same of one that was denied for the address that its name led to.
    pub fn judge_special(&self, event: &PastEvent, process: Process<'_>) -> PastVerdict {
        let names = match &event.0 {
            PastForm::Connect(Host::Name(_), _, dialled) => dialled.is_empty(),
            PastForm::Request(question, _) | PastForm::Somewhere(question) => {
                matches!(to(question), Some((Host::Name(_), _)))
            }
            PastForm::Tunnel(host, _) => matches!(host, Host::Name(_)),
            PastForm::Connect(..) | PastForm::Unix(_) | PastForm::Listen(_) => false,
        };
        match self.judge(event, process) {
            PastVerdict::Allowed(_) if names => PastVerdict::Unknown(ADDRESS),
            verdict => verdict,
        }
    }

    fn connection(
        &self,
        (host, port): (&Host, u16),
        process: Process<'_>,
        dialled: &[IpAddr],
    ) -> PastVerdict {
        let peer = peer(host);
        let connect = self.policy.evaluate(&Facts::Connect {
            process,
            peer,
            port,
        });
        let mut last = match connect {
            Verdict::Allow(permit) if permit.route() != Route::Direct => {
                return PastVerdict::Allowed(permit.rule().clone());
            }
            verdict => said(verdict),
        };
        if matches!(last, PastVerdict::Denied(_)) {
            return last;
        }
        // One address that may be dialled is enough.
        for address in dialled {
            let pin = match host {
                Host::Name(name) => self.policy.pin(name, port),
                Host::Address(_) => None,
            };
            let source = match pin {
                Some(pin) if pin.ip() == *address => AddressSource::Pinned,
                Some(_) | None => AddressSource::Resolved,
            };
            last = said(self.policy.evaluate(&Facts::Dial {
                process,
                peer,
                port,
                address: *address,
                source,
            }));
            if matches!(last, PastVerdict::Allowed(_)) {
                return last;
            }
        }
        last
    }

    fn tunnel(&self, host: &Host, port: u16, process: Process<'_>) -> PastVerdict {
        let question = Question {
            form: QuestionForm::Tls(host.clone(), port),
        };
        match self.policy.answer(&question, process) {
            Verdict::Deny(denial) if denial.reason() == DenialReason::NeedsInspection => {
                PastVerdict::Unknown(INSIDE)
            }
            verdict => said(verdict),
        }
    }

    fn request(
        &self,
        question: &Question,
        process: Process<'_>,
        values: MaskedValues,
    ) -> PastVerdict {
        let QuestionForm::Request(asked) = &question.form else {
            return PastVerdict::Unknown(UNREADABLE);
        };
        let Some(query) = asked.target.query().filter(|query| !query.is_empty()) else {
            return said(self.policy.answer(question, process));
        };
        if self.may_hide(query, values, peer(&asked.host)) {
            return PastVerdict::Unknown(VALUES);
        }
        let bounds = match values {
            _ if query.split('&').any(|part| part == MASK) => &self.keyless,
            MaskedValues::Plain => &self.plain,
            MaskedValues::Any => &self.any,
        };
        let most = bounds.strict.answer(question, process);
        match (most, bounds.lax.answer(question, process)) {
            (Verdict::Allow(permit), _) => PastVerdict::Allowed(permit.rule().clone()),
            (Verdict::Deny(_), Verdict::Deny(denial)) => PastVerdict::Denied(denial),
            (Verdict::Deny(_), Verdict::Allow(_)) => PastVerdict::Unknown(VALUES),
        }
    }

    /// Whether the masked values may hold what counts as something else than a value: a
    /// method that the query asks for, or a path.
    fn may_hide(&self, query: &str, values: MaskedValues, peer: Peer<'_>) -> bool {
        let names_methods = self.policy.named_methods().next().is_some()
            || self.policy.narrowing.is_some()
            || self
                .policy
                .all_rules()
                .iter()
                .any(|rule| rule.keys.look_beyond());
        let first = query.split('&').next().unwrap_or_default();
        let is_path = first == MASK || first.starts_with('/');
        match values {
            MaskedValues::Plain => names_methods && may_name_method(query),
            MaskedValues::Any => names_methods || is_path && self.policy.looks_at_paths(peer),
        }
    }
}

/// Whether a key of the query may ask for another method.
fn may_name_method(query: &str) -> bool {
    let mut keys = query.split('&').filter_map(|part| part.split_once('='));
    keys.any(|(key, _)| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.[]".contains(&byte);
        let lower = key.to_ascii_lowercase();
        !key.bytes().all(plain) || lower.contains("method") || lower.contains("verb")
    })
}

fn said(verdict: Verdict) -> PastVerdict {
    match verdict {
        Verdict::Allow(permit) => PastVerdict::Allowed(permit.rule().clone()),
        Verdict::Deny(denial) => PastVerdict::Denied(denial),
    }
}

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(ip) => Peer::Address(*ip),
    }
}

fn to(question: &Question) -> Option<(&Host, u16)> {
    match &question.form {
        QuestionForm::Request(asked) => Some((&asked.host, asked.port)),
        QuestionForm::Tls(host, port) | QuestionForm::Tcp(host, port) => Some((host, *port)),
        QuestionForm::Unix(_) => None,
    }
}

/// What of a query is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacking {
    /// Its values, which are values to everybody.
    PlainValues,
    /// Its values.
    Values,
    /// Its keys and values.
    Keys,
}

/// Which side of the truth a policy stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// Whatever it allows is allowed.
    Strict,
    /// Whatever it denies is denied.
    Lax,
}

/// The policy with each rule that tells queries apart by what is lacking replaced by one
/// that says the most or the least that it may say.
fn bound(policy: &Policy, lacking: Lacking, bound_: Bound) -> Policy {
    let mut policy = policy.clone();
    for rule in &mut policy.rules {
        bind(rule, lacking, bound_);
    }
    if let Some(project) = policy.narrowing.take() {
        policy.narrowing = Some(Box::new(bound(&project, lacking, bound_)));
    }
    policy
}

fn bind(rule: &mut Rule, lacking: Lacking, bound: Bound) {
    let RuleTarget::Network(target) = &mut rule.target else {
        return;
    };
    // What a rule does not deny is as good as granted.
    for except in &mut target.except {
        bind_target(except, Effect::Allow, lacking, bound);
    }
    bind_target(target, rule.reference.effect, lacking, bound);
}

fn bind_target(target: &mut NetworkTarget, effect: Effect, lacking: Lacking, bound: Bound) {
    let denies = effect == Effect::Deny;
    if target.query.is_empty() {
        return;
    }
    let has_keys = lacking != Lacking::Keys;
    let is_open = has_keys && target.query.iter().all(QueryPattern::is_any_value);
    if denies == (bound == Bound::Strict) {
        // Where it may match it does.
        if has_keys && (lacking == Lacking::PlainValues || !denies) {
            target.query.iter_mut().for_each(QueryPattern::open);
        } else {
            target.query.clear();
        }
    } else if !(is_open && (lacking == Lacking::PlainValues || denies)) {
        // Where it may not match it does not.
        never(target);
    }
}

/// A rule that covers its host and matches nothing.
fn never(target: &mut NetworkTarget) {
    target.ports = Ports::List(Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::source::{Source, SourceKind};
    use proptest::prelude::*;

    fn policy(text: &str) -> Policy {
        let source = Source {
            kind: SourceKind::Document,
            place: "p.toml".to_owned(),
            text: text.to_owned(),
        };
        compile(&[source], &context()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    const NOBODY: Process<'_> = Process { executable: "" };

    fn judged(policy: &Policy, method: &str, origin: &str, target: &str) -> PastVerdict {
        let values = if has_plain_values(target) {
            MaskedValues::Plain
        } else {
            MaskedValues::Any
        };
        let masked = without_values(target);
        match PastEvent::request(method, origin, Some(&masked), values) {
            Ok(event) => Recall::new(policy).judge(&event, NOBODY),
            Err(why) => PastVerdict::Unknown(why),
        }
    }

    fn word(verdict: &PastVerdict) -> &'static str {
        match verdict {
            PastVerdict::Allowed(_) => "allowed",
            PastVerdict::Denied(_) => "denied",
            PastVerdict::Unknown(_) => "unknown",
        }
    }

    #[test]
    fn values_are_never_written() {
        for (target, text, plain) in [
            ("/a", "/a", false),
            ("/a?k=secret", "/a?k=*", true),
            ("/a?k=1&secret&t=x=y", "/a?k=*&*&t=*", true),
            ("/a?k=a%2Fb", "/a?k=*", true),
            ("/a?k=1%26b=2", "/a?k=*", false),
            ("/a?k=1%253F", "/a?k=*", false),
            ("/a?k=delete", "/a?k=*", false),
            ("/a?/b", "/a?*", false),
        ] {
            assert_eq!(without_values(target), text);
            assert_eq!(has_plain_values(target), plain, "{target}");
        }
    }

    #[test]
    fn what_depends_on_a_masked_value_is_unknown() {
        let text = "allow = [\"GET http://a.test/x?page=*\", \"http://b.test/?lang=en\", \"http://c.test\", \"POST http://d.test\", \"http://f.test\"]\n\
                    deny = [\"http://c.test/?role=admin\", \"http://e.test\", \"http://f.test except http://f.test/?lang=en\"]\n";
        let policy = policy(text);
        for (method, origin, target, expected) in [
            ("GET", "http://a.test", "/x?page=2", "allowed"),
            ("GET", "http://a.test", "/x?page=2&more=1", "allowed"),
            ("GET", "http://a.test", "/x", "denied"),
            ("GET", "http://a.test", "/x?size=2", "denied"),
            ("GET", "http://a.test", "/x?page", "unknown"),
            ("GET", "http://b.test", "/?lang=en", "unknown"),
            ("GET", "http://b.test", "/?lang=de", "unknown"),
            ("GET", "http://b.test", "/?size=1", "denied"),
            ("GET", "http://c.test", "/", "allowed"),
            ("GET", "http://c.test", "/?role=user", "unknown"),
            ("GET", "http://c.test", "/x?role=user", "allowed"),
            ("GET", "http://c.test", "/?size=1", "allowed"),
            ("POST", "http://d.test", "/x?q=1", "allowed"),
            ("POST", "http://d.test", "/x?q=DELETE", "unknown"),
            ("POST", "http://d.test", "/x?_method=1", "unknown"),
            (
                "POST",
                "http://d.test",
                "/x?q=1%26_method=DELETE",
                "unknown",
            ),
            ("GET", "http://e.test", "/x?q=1", "denied"),
            ("GET", "http://f.test", "/?lang=en", "unknown"),
            ("GET", "http://f.test", "/?size=1", "denied"),
        ] {
            let verdict = judged(&policy, method, origin, target);
            assert_eq!(
                word(&verdict),
                expected,
                "{method} {origin}{target} {verdict:?}"
            );
        }
    }

    #[test]
    fn what_is_cut_or_masked_is_unknown() {
        let policy =
            policy("allow = [{ rule = \"http://a.test\", process = [\"/bin/x\"] }, \"b.test\"]\n");
        let recall = Recall::new(&policy);
        assert!(PastEvent::connection("*.a.test:80", Vec::new()).is_err());
        assert!(PastEvent::tunnel("a.test").is_err());
        let event = PastEvent::connection("a.test:80", Vec::new()).unwrap();
        let by = |executable| word(&recall.judge(&event, Process { executable }));
        assert_eq!(
            ["/bin/x", "/bin/*", "/bin/y"].map(by),
            ["allowed", "unknown", "denied"]
        );
        let somewhere = |origin| {
            let event = PastEvent::request("GET", origin, None, MaskedValues::Any).unwrap();
            word(&recall.judge(&event, NOBODY))
        };
        assert_eq!(somewhere("http://b.test"), "unknown");
        assert_eq!(somewhere("http://c.test"), "denied");
        let event = PastEvent::tunnel("b.test:443").unwrap();
        assert_eq!(word(&recall.judge(&event, NOBODY)), "unknown");
    }

    #[test]
    fn what_led_inside_is_judged_by_where_it_led() {
        let policy = policy(
            "allow = [\"tcp://a.test:22\", { rule = \"tcp://b.test:22\", addresses = [\"10.0.0.0/8\"] }]\n",
        );
        let recall = Recall::new(&policy);
        for (target, address, expected) in [
            ("a.test:22", "10.0.0.1", "denied"),
            ("a.test:22", "8.8.8.8", "allowed"),
            ("b.test:22", "10.0.0.1", "allowed"),
            ("c.test:22", "8.8.8.8", "denied"),
        ] {
            let event = PastEvent::connection(target, vec![address.parse().unwrap()]).unwrap();
            assert_eq!(
                word(&recall.judge(&event, NOBODY)),
                expected,
                "{target} {address}"
            );
        }
        let event = PastEvent::connection("a.test:22", Vec::new()).unwrap();
        assert_eq!(word(&recall.judge_special(&event, NOBODY)), "unknown");
        assert_eq!(word(&recall.judge(&event, NOBODY)), "allowed");
    }

    fn rule() -> impl Strategy<Value = String> {
        let method = prop_oneof![Just(""), Just("GET "), Just("POST,GET ")];
        let path = prop_oneof![Just(""), Just("/x"), Just("/**")];
        let query = prop_oneof![
            Just(""),
            Just("?a=*"),
            Just("?a=1"),
            Just("?a=*&b=2"),
            Just("?role=admin")
        ];
        (method, path, query)
            .prop_map(|(method, path, query)| format!("{method}http://a.test{path}{query}"))
    }

    fn rules() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(rule().prop_map(|rule| format!("{rule:?}")), 0..4)
    }

    fn denials() -> impl Strategy<Value = Vec<String>> {
        let except = prop_oneof![
            Just(String::new()),
            rule().prop_map(|rule| format!(" except {rule}"))
        ];
        let denial = (rule(), except).prop_map(|(rule, except)| format!("\"{rule}{except}\""));
        prop::collection::vec(denial, 0..4)
    }

    proptest! {
        #[test]
        fn what_is_said_without_the_values_holds_with_them(
            allow in rules(),
            deny in denials(),
            only in rules(),
            method in prop_oneof![Just("GET"), Just("POST"), Just("PUT")],
            path in prop_oneof![Just("/x"), Just("/y"), Just("/x%3Fa=1")],
            query in "(\\?((a|b|role|_method|c)=?(1|2|admin|GET|PUT|1%26a=2|%3Frole%3Dadmin|[a-z&;=?%2/]{0,4})&?){0,3})?",
        ) {
            let list = |rules: &[String]| rules.join(", ");
            let text = format!(
                "allow = [{}]\ndeny = [{}]\nonly = [{}]\n", list(&allow), list(&deny), list(&only)
            );
            let policy = policy(&text);
            let target = format!("{path}{query}");
            let Ok(question) = Question::parse(&format!("{method} http://a.test{target}")) else {
                return Ok(());
            };
            let truth = said(policy.answer(&question, NOBODY));
            let found = judged(&policy, method, "http://a.test", &target);
            if !matches!(found, PastVerdict::Unknown(_)) {
                prop_assert_eq!(word(&found), word(&truth), "{}", target);
            }
        }
    }
}
