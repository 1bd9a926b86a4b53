//! What went to each host lately, so that a credential which comes in pieces is
//! seen. Bounded in hosts; each window is bounded by the scan.

use std::collections::VecDeque;
use std::sync::Arc;

use outgate_dlp::{Destination, Finding, Ruleset, Window};

use crate::limits;

/// The windows of one sandbox, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Windows(VecDeque<(String, u16, Window)>);

impl Windows {
    /// What these values make together with those before them.
    pub(super) fn push(
        &mut self,
        rules: &Arc<Ruleset>,
        to: &Destination<'_>,
        values: &[&[u8]],
    ) -> Vec<Finding> {
        if values.is_empty() {
            return Vec::new();
        }
        let known =
            |(host, port, _): &(String, u16, Window)| (host.as_str(), *port) == (to.host, to.port);
        let place = self.0.iter().position(known);
        let (host, port, mut window) = place
            .and_then(|place| self.0.remove(place))
            .unwrap_or_else(|| (to.host.to_owned(), to.port, Window::new(rules, to)));
        let findings = window.push(values);
        if self.0.len() >= limits::SCAN_WINDOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((host, port, window));
        findings
    }
}
