//! Values of several messages to one host, so that a credential split over
//! them is found.

use std::fmt;
use std::sync::Arc;

use crate::destination::Destination;
use crate::finding::Finding;
use crate::place::{Joined, Place};
use crate::ruleset::Ruleset;

/// The last values that went to one host.
pub struct Window {
    rules: Arc<Ruleset>,
    host: String,
    port: u16,
    values: Vec<u8>,
}

/// Most bytes of values a window keeps.
const WINDOW_BYTES_MAX: usize = 4096;

impl fmt::Debug for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    /// An empty window for values that go to `destination`.
    pub fn new(rules: &Arc<Ruleset>, destination: &Destination<'_>) -> Self {
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            port: destination.port,
            values: Vec::new(),
        }
    }

    /// Takes the values of the next message, and says what they make together
    /// with the last ones.
    pub fn push(&mut self, values: &[&[u8]]) -> Vec<Finding> {
        for value in values {
            self.values.extend_from_slice(value);
        }
        let destination = Destination {
            host: &self.host,
            port: self.port,
        };
        let report = self.rules.whole(&destination, &self.values);
        let excess = self.values.len().saturating_sub(WINDOW_BYTES_MAX);
        self.values.drain(..excess);
        let mut findings = report.findings;
        for finding in &mut findings {
            finding.place = Place::Joined(Joined::Messages);
        }
        findings
    }
}
