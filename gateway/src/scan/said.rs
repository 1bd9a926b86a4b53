//! What the scan says of a request, in records and in refusals: what kind of
//! credential, where in the request, and where it may go. Never the value, nor
//! a part of it, nor a path that holds one.

use std::fmt::Write as _;

use outgate_dlp::{Action, Finding, Unscanned};

use crate::audit::{Event, Kind, Outcome};
use crate::flow::Flow;
use crate::refusal::Refusal;
use crate::target::Target;

/// A request as it may be written down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) flow: &'a Flow,
    pub(super) target: &'a Target,
    /// Its path, unless it holds something that was found.
    pub(super) path: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// A request whose target holds nothing.
    pub(super) fn clean(flow: &'a Flow, target: &'a Target) -> Self {
        Self {
            flow,
            target,
            path: Some(target.resource.path()),
        }
    }

    /// Records a finding, and makes the refusal of it.
    pub(super) fn found(&self, finding: &Finding) -> Refusal {
        let because = because(finding, &self.target.host.to_string());
        let outcome = match finding.action {
            Action::Block => Outcome::Deny,
            Action::Warn => Outcome::Note,
        };
        let origin = self.target.origin();
        let event = self.event(&origin, outcome);
        let event = event.reason("credential", &because).finding(finding);
        self.write(&event);
        self.refusal("credential", &because)
    }

    /// Records what could not be scanned, and makes the refusal of it.
    pub(super) fn unscanned(&self, unscanned: &Unscanned, outcome: Outcome) -> Refusal {
        let because = format!("it cannot be scanned for credentials: {}", unscanned.reason);
        let origin = self.target.origin();
        let event = self.event(&origin, outcome);
        let event = event.reason("unscannable", &because).unscanned(unscanned);
        self.write(&event);
        self.refusal("unscannable", &because)
    }

    fn event<'e>(&'e self, origin: &'e str, outcome: Outcome) -> Event<'e> {
        let event = Event::new(Kind::Finding, outcome, origin).process(self.flow.process());
        let method = self.target.method.as_str();
        match self.path {
            Some(path) => event.request(method, path),
            None => event.method(method),
        }
    }

    /// A record that cannot be written changes nothing here: what is refused
    /// stays refused, and what passes asks for a record of its own.
    fn write(&self, event: &Event<'_>) {
        self.flow.session().record(event).ok();
    }

    fn refusal(&self, token: &'static str, because: &str) -> Refusal {
        let subject = format!("{} {}", self.target.method, self.target.origin());
        Refusal::own(token, &subject, because)
    }
}

/// Why a finding ends a request.
pub(crate) fn because(finding: &Finding, host: &str) -> String {
    let mut text = format!("{} ({finding}) in the {}", finding.name, finding.place);
    let place = match &finding.inside {
        Some(inside) => format!(" at {inside}"),
        None => format!(" at byte {}", finding.offset),
    };
    text.push_str(&place);
    let written = if finding.issuers.is_empty() {
        write!(text, "; it may go nowhere")
    } else {
        write!(
            text,
            "; it may go to {}, not to {host}",
            finding.issuers.join(", ")
        )
    };
    // Writing into a text cannot fail.
    written.ok();
    text
}
