//! Values of several messages to one host, so that a credential split over
//! them is found.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::destination::Destination;
use crate::finding::{Action, Finding};
use crate::head;
use crate::limits;
use crate::place::Joined;
use crate::ruleset::Ruleset;

/// The last values that went to one host.
pub struct Window {
    rules: Arc<Ruleset>,
    host: String,
    port: u16,
    joined: Joined,
    values: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl fmt::Debug for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    /// An empty window for values of contents that go to `destination`.
    pub fn new(rules: &Arc<Ruleset>, destination: &Destination<'_>) -> Self {
        Self::of(rules, destination, Joined::Messages)
    }

    /// An empty window for such values, of which findings say what they are.
    pub fn of(rules: &Arc<Ruleset>, destination: &Destination<'_>, joined: Joined) -> Self {
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            port: destination.port,
            joined,
            values: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Judges what comes by other rules, together with what came before them.
    pub fn judge_by(&mut self, rules: &Arc<Ruleset>) {
        if !Arc::ptr_eq(&self.rules, rules) {
            self.rules = Arc::clone(rules);
        }
    }

    /// Takes the values of the next message, and says what they make together
    /// with the last ones. Values of a message that must not leave are forgotten:
    /// they did not arrive, and sent once more they are found once more.
    pub fn push(&mut self, values: &[&[u8]]) -> Vec<Finding> {
        let findings = self.look(values);
        if findings
            .iter()
            .any(|finding| finding.action == Action::Block)
        {
            return findings;
        }
        for value in ends(values) {
            self.bytes = self.bytes.saturating_add(value.len());
            self.values.push_back(value.to_vec());
        }
        while self.bytes > limits::WINDOW_BYTES_MAX {
            self.forget(VecDeque::pop_front);
        }
        findings
    }

    /// What these values would make together with the last ones; nothing of it
    /// is kept.
    pub fn look(&self, values: &[&[u8]]) -> Vec<Finding> {
        let destination = Destination {
            host: &self.host,
            port: self.port,
        };
        let last = self.values.iter().map(Vec::as_slice);
        let joined: Vec<&[u8]> = last.chain(ends(values)).collect();
        head::join(&self.rules, &destination, self.joined, &joined)
    }

    fn forget(&mut self, take: fn(&mut VecDeque<Vec<u8>>) -> Option<Vec<u8>>) {
        if let Some(mut value) = take(&mut self.values) {
            self.bytes = self.bytes.saturating_sub(value.len());
            value.fill(0);
        }
    }
}

/// Of a long value only the end can go on in the next.
fn ends<'a>(values: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let end = |value: &'a [u8]| {
        let start = value.len().saturating_sub(limits::WINDOW_BYTES_MAX);
        value.get(start..).unwrap_or_default()
    };
    let some = values.iter().filter(|value| !value.is_empty());
    some.copied().map(end)
}
