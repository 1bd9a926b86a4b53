//! What a record says. Built field by field by who knows the event; never
//! holds field values, content or query values.

use std::borrow::Cow;
use std::net::SocketAddr;

use outgate_dlp::{Action, Checked, Finding, Tier, Unscanned};
use outgate_handoff::{Parent, ProcessFacts};
use outgate_policy::{Denial, Enforcement, Permit, RuleRef, has_plain_values, without_values};
use outgate_record::{Alarm, Found, Kind, Outcome, Reason, Record, RuleCited, Unseen, Word};

use crate::limits;
use crate::text::{beginning, shortened};

/// One event. Made with [`Event::new`] and filled in by its owner; what tells its place in
/// the chain is filled in by who writes it.
#[derive(Debug, Clone)]
pub(crate) struct Event<'a>(Record<'a, Parent>);

impl<'a> Event<'a> {
    pub(crate) fn new(kind: Kind, verdict: Outcome, target: &'a str) -> Self {
        let alarm = match kind {
            Kind::Canary => Alarm::Raised,
            _ => Alarm::None,
        };
        Self(Record {
            kind: kind.into(),
            verdict,
            target: Cow::Borrowed(target),
            alarm,
            ..Record::default()
        })
    }

    /// What it is about.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.0.kind.known()
    }

    /// What it says so far.
    pub(super) fn parts(&self) -> &Record<'a, Parent> {
        &self.0
    }

    /// The record, without what tells its place in the chain.
    pub(super) fn record(&self) -> Record<'_, Parent> {
        self.0.clone()
    }

    pub(crate) fn process(mut self, process: &'a ProcessFacts) -> Self {
        self.0.pid = Some(process.pid);
        self.0.executable = Some(Cow::Borrowed(&process.executable));
        self.0.parents = Cow::Borrowed(&process.parents);
        self
    }

    pub(crate) fn request(mut self, method: &'a str, target: &'a str) -> Self {
        self.0.method = Some(Cow::Borrowed(method));
        self.0.path = Some(match without_values(target) {
            Cow::Borrowed(text) => Cow::Borrowed(beginning(text, limits::AUDIT_TEXT_BYTES_MAX)),
            Cow::Owned(text) => Cow::Owned(cut(&text)),
        });
        self.0.values = has_plain_values(target).then_some(Cow::Borrowed("plain"));
        self
    }

    /// A request whose target is better not written down.
    pub(crate) fn method(mut self, method: &'a str) -> Self {
        self.0.method = Some(Cow::Borrowed(method));
        self
    }

    pub(crate) fn rule(mut self, rule: &'a RuleRef) -> Self {
        self.0.rule = Some(RuleCited {
            id: rule.id,
            text: Cow::Borrowed(&rule.text),
            place: Cow::Borrowed(&rule.place),
        });
        self
    }

    pub(crate) fn denial(mut self, denial: &'a Denial) -> Self {
        self.0.reason = Some(Reason::from(denial.reason()).into());
        self.0.detail = Some(cut(denial.because()).into());
        self.0.flag = denial.hint().map(|flag| cut(&flag).into());
        match denial.rule() {
            Some(rule) => self.rule(rule),
            None => self,
        }
    }

    pub(crate) fn reason(mut self, reason: Reason, detail: &str) -> Self {
        self.0.reason = Some(reason.into());
        self.0.detail = Some(cut(detail).into());
        self
    }

    /// What was left behind: the kind of it, a word of the launcher's, and what it does.
    pub(crate) fn left(mut self, kind: &'a str, detail: &str) -> Self {
        self.0.reason = Some(Word::Other(Cow::Borrowed(kind)));
        self.detail(detail)
    }

    /// The option that would allow it.
    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.0.flag = Some(cut(flag).into());
        self
    }

    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.0.detail = Some(cut(detail).into());
        self
    }

    pub(crate) fn pins(mut self, pins: &[SocketAddr]) -> Self {
        let list: Vec<String> = pins.iter().map(ToString::to_string).collect();
        self.0.pin = Some(list.join(" ").into());
        self
    }

    pub(crate) fn finding(mut self, finding: &'a Finding) -> Self {
        self.0.finding = Some(Found {
            detector: Cow::Borrowed(&finding.detector),
            name: Cow::Borrowed(&finding.name),
            place: finding.place.to_string().into(),
            offset: finding.offset,
            chain: finding
                .chain
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .into(),
            inside: finding.inside.as_deref().map(Cow::Borrowed),
            tier: Cow::Borrowed(match finding.tier {
                Tier::Strong => "strong",
                Tier::Structured => "structured",
                Tier::Context => "context",
            }),
            checked: Cow::Borrowed(match finding.checked {
                Checked::Passed => "passed",
                Checked::Failed => "failed",
                Checked::None => "none",
            }),
            action: Cow::Borrowed(match finding.action {
                Action::Block => "block",
                Action::Warn => "warn",
            }),
            issuers: Cow::Borrowed(&finding.issuers),
            mark: Cow::Borrowed(&finding.mark),
        });
        self
    }

    /// Says at the start of a run whether there is a scan of what leaves.
    pub(crate) fn scan<S>(mut self, scan: Option<&S>) -> Self {
        self.0.scan = Some(Cow::Borrowed(if scan.is_some() { "on" } else { "off" }));
        self
    }

    /// Says at the start of a run how it is meant, where it is not as ever.
    pub(crate) fn mode(mut self, enforcement: Enforcement) -> Self {
        let word = enforcement.word();
        self.0.mode = (!word.is_empty()).then_some(Cow::Borrowed(word));
        self
    }

    /// What was let through in spite of the rules, and what they say; nothing more where they
    /// allow it.
    pub(crate) fn permit(self, permit: &'a Permit) -> Self {
        match permit.denied() {
            None => self.rule(permit.rule()),
            Some(denial) => self.passed(denial),
        }
    }

    /// What passes in spite of this denial.
    pub(crate) fn passed(self, denial: &'a Denial) -> Self {
        let mut own = self.denial(denial);
        own.0.monitor = Some(Cow::Borrowed(Outcome::Deny.token()));
        own
    }

    pub(crate) fn unscanned(mut self, unscanned: &Unscanned) -> Self {
        self.0.unscanned = Some(Unseen {
            bytes: unscanned.bytes,
            reason: unscanned.reason.to_string().into(),
        });
        self
    }

    /// What it says in words that the command may have chosen. What of a request's
    /// target may be shown was decided before.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let parents = self
            .0
            .parents
            .iter()
            .map(|parent| parent.executable.as_str());
        [
            Some(&*self.0.target),
            self.0.method.as_deref(),
            self.0.executable.as_deref(),
            self.0.detail.as_deref(),
            self.0.flag.as_deref(),
            self.0.rule.as_ref().map(|rule| &*rule.text),
            self.0.finding.as_ref().map(|found| &*found.place),
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
        cover(&mut own.0.target);
        for text in own.0.method.iter_mut().chain(&mut own.0.executable) {
            cover(text);
        }
        if let Some(rule) = &mut own.0.rule {
            cover(&mut rule.text);
        }
        if let Some(detail) = &mut own.0.detail {
            cover(detail);
        }
        if let Some(found) = &mut own.0.finding {
            cover(&mut found.place);
        }
        // Half of a flag would allow something else.
        own.0.flag = own.0.flag.filter(|flag| mask(flag).is_none());
        if own
            .0
            .parents
            .iter()
            .any(|parent| mask(&parent.executable).is_some())
        {
            for parent in own.0.parents.to_mut() {
                cover_own(&mut parent.executable);
            }
        }
        own
    }

    pub(crate) fn traffic(mut self, up: u64, down: u64, millis: u64) -> Self {
        self.0.bytes_up = Some(up);
        self.0.bytes_down = Some(down);
        self.0.duration_ms = Some(millis);
        self
    }
}

/// At most the limit's bytes, cut at a character.
fn cut(text: &str) -> String {
    shortened(text, limits::AUDIT_TEXT_BYTES_MAX)
}
