//! What a record says. Built field by field by who knows the event; never
//! holds field values, content or query values.

use std::borrow::Cow;
use std::net::SocketAddr;

use outgate_dlp::{Action, Checked, Finding, Tier, Unscanned};
use outgate_handoff::{Parent, Process};
use outgate_policy::{Denial, RuleRef};
use serde::{Serialize, Serializer};

use crate::limits;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Start,
    Finish,
    Connect,
    Dns,
    Request,
    Tunnel,
    Unix,
    Listen,
    Flow,
    /// Other rules are in force.
    Policy,
    /// A credential where it may not go, a placeholder of a secret where none may
    /// be, or content that nobody could look into.
    Finding,
    /// A planted credential on its way out: an alarm.
    Canary,
    /// Something that the command wrote and that runs later.
    Leftover,
    /// What may leave under a rule is nearly spent, or spent.
    Budget,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Allow,
    Deny,
    /// Neither: a statement of what was.
    Note,
}

#[derive(Debug, Clone, Serialize)]
struct Rule<'a> {
    id: u32,
    text: Cow<'a, str>,
    place: &'a str,
}

/// An ancestor as one text, written without making it first.
#[derive(Debug)]
struct Ancestor<'a>(&'a Parent);

impl Serialize for Ancestor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.0.pid, self.0.executable))
    }
}

fn ancestors<S: Serializer>(parents: &[Parent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(parents.iter().map(Ancestor))
}

fn are_none(parents: &[Parent]) -> bool {
    parents.is_empty()
}

/// One event. Made with [`Event::new`] and filled in by its owner.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Event<'a> {
    pub(super) kind: Kind,
    verdict: Outcome,
    target: Cow<'a, str>,
    /// Somebody should look at this now.
    #[serde(skip_serializing_if = "Option::is_none")]
    alarm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Rule<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "are_none", serialize_with = "ancestors")]
    parents: Cow<'a, [Parent]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_up: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_down: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Whether what leaves is looked through: `on` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scan: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<Found<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unscanned: Option<Unseen>,
}

/// What the scan found: where and of what kind, never what.
#[derive(Debug, Clone, Serialize)]
struct Found<'a> {
    detector: &'a str,
    name: &'a str,
    place: String,
    offset: u64,
    chain: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<&'a str>,
    tier: &'static str,
    checked: &'static str,
    action: &'static str,
    issuers: &'a [String],
    mark: &'a str,
}

/// What nobody could look into.
#[derive(Debug, Clone, Serialize)]
struct Unseen {
    bytes: u64,
    reason: String,
}

impl<'a> Event<'a> {
    pub(crate) fn new(kind: Kind, verdict: Outcome, target: &'a str) -> Self {
        Self {
            kind,
            verdict,
            target: Cow::Borrowed(target),
            alarm: (kind == Kind::Canary).then_some(true),
            method: None,
            path: None,
            reason: None,
            detail: None,
            rule: None,
            flag: None,
            pin: None,
            pid: None,
            executable: None,
            parents: Cow::Borrowed(&[]),
            bytes_up: None,
            bytes_down: None,
            duration_ms: None,
            scan: None,
            finding: None,
            unscanned: None,
        }
    }

    pub(crate) fn process(mut self, process: &'a Process) -> Self {
        self.pid = Some(process.pid);
        self.executable = Some(Cow::Borrowed(&process.executable));
        self.parents = Cow::Borrowed(&process.parents);
        self
    }

    pub(crate) fn request(mut self, method: &'a str, target: &'a str) -> Self {
        self.method = Some(Cow::Borrowed(method));
        self.path = Some(redacted(target));
        self
    }

    /// A request whose target is better not written down.
    pub(crate) fn method(mut self, method: &'a str) -> Self {
        self.method = Some(Cow::Borrowed(method));
        self
    }

    pub(crate) fn rule(mut self, rule: &'a RuleRef) -> Self {
        self.rule = Some(Rule {
            id: rule.id,
            text: Cow::Borrowed(&rule.text),
            place: &rule.place,
        });
        self
    }

    pub(crate) fn denial(mut self, denial: &'a Denial) -> Self {
        self.reason = Some(denial.reason().token());
        self.detail = Some(cut(denial.because()));
        self.flag = denial.hint().map(|flag| cut(&flag));
        match denial.rule() {
            Some(rule) => self.rule(rule),
            None => self,
        }
    }

    pub(crate) fn reason(mut self, token: &'a str, detail: &str) -> Self {
        self.reason = Some(token);
        self.detail = Some(cut(detail));
        self
    }

    /// The option that would allow it.
    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flag = Some(cut(flag));
        self
    }

    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.detail = Some(cut(detail));
        self
    }

    pub(crate) fn pins(mut self, pins: &[SocketAddr]) -> Self {
        let list: Vec<String> = pins.iter().map(ToString::to_string).collect();
        self.pin = Some(list.join(" "));
        self
    }

    pub(crate) fn finding(mut self, finding: &'a Finding) -> Self {
        self.finding = Some(Found {
            detector: &finding.detector,
            name: &finding.name,
            place: finding.place.to_string(),
            offset: finding.offset,
            chain: finding.chain.iter().map(ToString::to_string).collect(),
            inside: finding.inside.as_deref(),
            tier: match finding.tier {
                Tier::Strong => "strong",
                Tier::Structured => "structured",
                Tier::Context => "context",
            },
            checked: match finding.checked {
                Checked::Passed => "passed",
                Checked::Failed => "failed",
                Checked::None => "none",
            },
            action: match finding.action {
                Action::Block => "block",
                Action::Warn => "warn",
            },
            issuers: &finding.issuers,
            mark: &finding.mark,
        });
        self
    }

    /// Says at the start of a run whether there is a scan of what leaves.
    pub(crate) fn scan<S>(mut self, scan: Option<&S>) -> Self {
        self.scan = Some(if scan.is_some() { "on" } else { "off" });
        self
    }

    pub(crate) fn unscanned(mut self, unscanned: &Unscanned) -> Self {
        self.unscanned = Some(Unseen {
            bytes: unscanned.bytes,
            reason: unscanned.reason.to_string(),
        });
        self
    }

    /// What it says in words that the command may have chosen. What of a request's
    /// target may be shown was decided before.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let parents = self.parents.iter().map(|parent| parent.executable.as_str());
        [
            Some(&*self.target),
            self.method.as_deref(),
            self.executable.as_deref(),
            self.detail.as_deref(),
            self.flag.as_deref(),
            self.rule.as_ref().map(|rule| &*rule.text),
            self.finding.as_ref().map(|found| &*found.place),
        ]
        .into_iter()
        .flatten()
        .chain(parents)
    }

    /// The same with those masked that `mask` gives another text for.
    pub(crate) fn masked(&self, mask: &dyn Fn(&str) -> Option<String>) -> Self {
        let cover = |text: &mut Cow<'_, str>| {
            if let Some(masked) = mask(text) {
                *text = Cow::Owned(masked);
            }
        };
        let cover_own = |text: &mut String| {
            if let Some(masked) = mask(text) {
                *text = masked;
            }
        };
        let mut own = self.clone();
        cover(&mut own.target);
        for text in own.method.iter_mut().chain(&mut own.executable) {
            cover(text);
        }
        if let Some(rule) = &mut own.rule {
            cover(&mut rule.text);
        }
        if let Some(detail) = &mut own.detail {
            cover_own(detail);
        }
        if let Some(found) = &mut own.finding {
            cover_own(&mut found.place);
        }
        // Half of a flag would allow something else.
        own.flag = own.flag.filter(|flag| mask(flag).is_none());
        if own
            .parents
            .iter()
            .any(|parent| mask(&parent.executable).is_some())
        {
            for parent in own.parents.to_mut() {
                cover_own(&mut parent.executable);
            }
        }
        own
    }

    pub(crate) fn traffic(mut self, up: u64, down: u64, millis: u64) -> Self {
        self.bytes_up = Some(up);
        self.bytes_down = Some(down);
        self.duration_ms = Some(millis);
        self
    }
}

/// A request target with each query value replaced by `*`.
fn redacted(target: &str) -> Cow<'_, str> {
    let Some((path, query)) = target.split_once('?') else {
        return Cow::Borrowed(within(target));
    };
    let mut text = path.to_owned();
    for (position, part) in query.split('&').enumerate() {
        text.push(if position == 0 { '?' } else { '&' });
        match part.split_once('=') {
            Some((key, _)) => {
                text.push_str(key);
                text.push_str("=*");
            }
            // A value without a key may be a secret as a whole.
            None => text.push('*'),
        }
    }
    Cow::Owned(cut(&text))
}

/// At most the limit's bytes, cut at a character.
fn within(text: &str) -> &str {
    let mut end = text.len().min(limits::AUDIT_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn cut(text: &str) -> String {
    within(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_never_written() {
        for (target, text) in [
            ("/a", "/a"),
            ("/a?k=secret", "/a?k=*"),
            ("/a?k=1&secret&t=x=y", "/a?k=*&*&t=*"),
        ] {
            assert_eq!(redacted(target), text);
        }
    }
}
