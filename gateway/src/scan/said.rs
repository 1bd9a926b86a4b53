//! What the scan says of a request, in records and in refusals: what kind of
//! credential, where in the request, and where it may go. Never the value, nor
//! a part of it, nor a path that holds one.

use std::collections::HashSet;
use std::sync::LazyLock;

use outgate_dlp::{
    Action, CANARY, Detectors, Finding, Joined, KNOWN_KEY, KNOWN_VALUE, Place, Scope, Text,
    Unscanned,
};
use outgate_policy::RequestTarget;
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::caller::Caller;
use crate::limits::HOSTS_SHOWN_MAX;
use crate::lock::Poisoned;
use crate::refusal::Refusal;
use crate::target::Target;

use super::host;

/// A request as it may be written down.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownRequest<'a> {
    pub(super) caller: &'a Caller,
    pub(super) target: &'a Target,
    /// Its path, unless it holds something that was found.
    pub(super) path: Option<&'a str>,
}

impl<'a> ShownRequest<'a> {
    /// What is said of these, if one of them must not leave.
    pub(super) fn refuses<'f>(
        &self,
        findings: impl Iterator<Item = &'f Finding>,
    ) -> Option<Refusal> {
        let mut refusal: Option<(u8, Refusal)> = None;
        for finding in findings {
            let said = self.found(finding);
            // Of two words about one value, those about the user's own help more.
            let rank = rank(finding);
            let helps = refusal.as_ref().is_none_or(|(other, _)| *other < rank);
            if finding.action == Action::Block && helps {
                refusal = Some((rank, said));
            }
        }
        refusal.map(|(_, said)| said)
    }

    /// A request whose target was looked at.
    pub(super) fn clean(caller: &'a Caller, target: &'a Target) -> Self {
        Self {
            caller,
            target,
            path: target.path().map(RequestTarget::path),
        }
    }

    /// Records a finding, and makes the refusal of it.
    pub(super) fn found(&self, finding: &Finding) -> Refusal {
        let origin = self.target.origin();
        let subject = format!("{} {origin}", self.target.method);
        let told = ToldFinding::of(finding, &subject, Some(&host(&self.target.host)));
        let told = match self.caller.rules().above() {
            None => told,
            Some(_) => told.of_gateway(),
        };
        let outcome = match finding.action {
            Action::Block => Outcome::Deny,
            Action::Warn => Outcome::Note,
        };
        let event = told.event(self.event(told.kind, &origin, outcome));
        self.write(&event.finding(finding));
        told.refusal
    }

    /// Records what could not be scanned, and makes the refusal of it.
    pub(super) fn unscanned(&self, unscanned: &Unscanned, outcome: Outcome) -> Refusal {
        let because = format!("it cannot be scanned for credentials: {}", unscanned.reason);
        let origin = self.target.origin();
        let event = self.event(Kind::Finding, &origin, outcome);
        let event = event
            .reason(Reason::Unscannable, &because)
            .unscanned(unscanned);
        self.write(&event);
        self.refusal(Reason::Unscannable, &because)
    }

    /// What is said where nobody knows what went before.
    pub(super) fn refusal_of(&self, poisoned: Poisoned) -> Refusal {
        let subject = format!("{} {}", self.target.method, self.target.origin());
        poisoned.refusal(Reason::Unscannable, &subject)
    }

    fn event<'e>(&'e self, kind: Kind, origin: &'e str, outcome: Outcome) -> Event<'e> {
        let event = Event::new(kind, outcome, origin).process(self.caller.process());
        let method = self.target.method.as_str();
        match self.path {
            Some(path) => event.request(method, path),
            None => event.method(method),
        }
    }

    /// A record that cannot be written changes nothing here: what is refused
    /// stays refused, and what passes asks for a record of its own.
    fn write(&self, event: &Event<'_>) {
        self.caller.recorder().record(event).ok();
    }

    fn refusal(&self, reason: Reason, because: &str) -> Refusal {
        let subject = format!("{} {}", self.target.method, self.target.origin());
        Refusal::own(reason, &subject, because)
    }
}

/// What is told about a finding.
#[derive(Debug)]
pub(crate) struct ToldFinding {
    /// What its record is about.
    pub(crate) kind: Kind,
    reason: Reason,
    detail: String,
    flag: Option<String>,
    /// What the command and the person hear.
    pub(crate) refusal: Refusal,
}

impl ToldFinding {
    /// What is told where `subject` carries a finding to a host, or where that
    /// would be nobody's to allow.
    pub(crate) fn of(finding: &Finding, subject: &str, host: Option<&str>) -> Self {
        let place = placed(finding);
        let home = homes(finding, host.unwrap_or("a name server"));
        if finding.detector == CANARY {
            let source = source(&finding.name);
            let detail = format!(
                "it carries the canary in {source} ({finding}), {place}: a false credential that \
                 only this run has, so something in it looks for credentials and sends them"
            );
            // Who sent it need not know what it took.
            let because = format!("credential {place}; it may go nowhere");
            return Self {
                kind: Kind::Canary,
                reason: Reason::Canary,
                refusal: Refusal::own(Reason::Credential, subject, &because).alarm(&detail),
                detail,
                flag: None,
            };
        }
        let what = if rank(finding) > 0 {
            source(&finding.name)
        } else {
            finding.name.to_string()
        };
        let detail = format!("{what} ({finding}) {place}; {home}");
        let flag = host.and_then(|host| repair(finding, host));
        let refusal = Refusal::own(Reason::Credential, subject, &detail).advise(flag.clone());
        Self {
            kind: Kind::Finding,
            reason: Reason::Credential,
            detail,
            flag,
            refusal,
        }
    }

    /// The same under a gateway's policy: no option of the run would allow it, only
    /// its operator.
    fn of_gateway(self) -> Self {
        let ask = |flag| format!("ask the gateway's operator for {flag}");
        let flag = self.flag.map(ask);
        Self {
            refusal: self.refusal.advise(flag.clone()),
            flag,
            ..self
        }
    }

    /// A record with what is told.
    pub(crate) fn event<'e>(&'e self, event: Event<'e>) -> Event<'e> {
        let event = event.reason(self.reason, &self.detail);
        match &self.flag {
            Some(flag) => event.flag(flag),
            None => event,
        }
    }
}

/// What would let a finding go to a host; nothing where nobody can.
fn repair(finding: &Finding, host: &str) -> Option<String> {
    match &*finding.detector {
        CANARY | KNOWN_KEY => None,
        KNOWN_VALUE => Some(format!("--known {}", word(&allowed(&finding.name, host)))),
        id if NEVER.contains(id) => None,
        id => {
            // As documents write it.
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host.to_owned()
            };
            Some(format!(
                "[[inspect.allow]] with detector = \"{id}\" and host = \"{host}\" in a policy file"
            ))
        }
    }
}

/// The detectors whose findings may go nowhere, whatever a policy says.
static NEVER: LazyLock<HashSet<Text>> = LazyLock::new(|| {
    let shipped = Detectors::shipped();
    let never = shipped.iter().filter(|own| own.scope == Scope::Never);
    never.map(|own| own.id.clone()).collect()
});

/// How much a finding says: a canary most, a value that the user keeps more than
/// a form.
pub(super) fn rank(finding: &Finding) -> u8 {
    match &*finding.detector {
        CANARY => 2,
        KNOWN_VALUE | KNOWN_KEY => 1,
        _ => 0,
    }
}

/// Where a value was read, in words.
fn source(label: &str) -> String {
    match label.strip_prefix('$').filter(|name| !name.contains('/')) {
        Some(name) => format!("{name} of the environment"),
        None => label.to_owned(),
    }
}

fn placed(finding: &Finding) -> String {
    let (place, offset) = (&finding.place, finding.offset);
    match &finding.inside {
        Some(inside) => format!("in the {place} at {inside} (byte {offset})"),
        None => format!("in the {place} at byte {offset}"),
    }
}

/// Where a finding may go, in words.
fn homes(finding: &Finding, host: &str) -> String {
    match &*finding.detector {
        KNOWN_KEY => "it is never sent".to_owned(),
        _ if finding.is_misplaced(host) && is_content(&finding.place) => {
            format!("it may go to {host} where clients show it, not in content")
        }
        _ if finding.is_misplaced(host) => {
            format!(
                "it may go to {host} only where clients show it, and to a customer's name only if \
                 a rule spells it out (`outgate scan --list --json` has both)"
            )
        }
        KNOWN_VALUE if finding.issuers.is_empty() => {
            format!("nothing says that it is for {host}")
        }
        _ if finding.issuers.is_empty() => "it may go nowhere".to_owned(),
        _ => format!("it may go to {}, not to {host}", few(&finding.issuers)),
    }
}

/// The first of many hosts, as many as a reader of one line looks at.
fn few(hosts: &[String]) -> String {
    match hosts.split_at_checked(HOSTS_SHOWN_MAX) {
        Some((first, rest)) if rest.len() > 1 => {
            let more = rest.len();
            format!(
                "{} and {more} more (`outgate scan --list`)",
                first.join(", ")
            )
        }
        _ => hosts.join(", "),
    }
}

/// Whether what stands there is sent to be kept.
const fn is_content(place: &Place) -> bool {
    use Joined::{Content, Messages};
    matches!(
        place,
        Place::Content | Place::Trailer(_) | Place::Message | Place::Joined(Content | Messages)
    )
}

/// The option that lets a value go to a host.
fn allowed(label: &str, host: &str) -> String {
    format!("{}@{host}", label.strip_prefix('$').unwrap_or(label))
}

/// A word as a shell reads it.
fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@~".contains(&byte);
    // A tilde at its beginning would be replaced.
    if text.bytes().all(is_plain) && !text.starts_with('~') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_can_be_pasted() {
        for (label, option) in [
            ("$MYCORP_TOKEN", "MYCORP_TOKEN@a.test"),
            ("~/.netrc", "'~/.netrc@a.test'"),
            (".env:API_TOKEN", ".env:API_TOKEN@a.test"),
            ("/a b/it's:3", "'/a b/it'\\''s:3@a.test'"),
        ] {
            assert_eq!(word(&allowed(label, "a.test")), option);
        }
    }
}
