//! What went to each host lately, so that a credential which comes in pieces is
//! seen. Bounded in hosts; each window is bounded by the scan.

use std::collections::VecDeque;
use std::sync::Arc;

use outgate_dlp::{Destination, Finding, Joined, Ruleset, Window};

use crate::limits;

/// Where values stand: those of heads and those of contents follow each other,
/// whatever stands between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Head,
    Content,
}

impl Place {
    /// What its values are together.
    const fn joined(self) -> Joined {
        match self {
            Self::Head => Joined::Heads,
            Self::Content => Joined::Messages,
        }
    }
}

/// The windows of one sandbox, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Windows(VecDeque<(String, u16, Place, Window)>);

impl Windows {
    /// What these values would make together with those before them.
    pub(super) fn look(
        &self,
        (to, place): (&Destination<'_>, Place),
        values: &[&[u8]],
    ) -> Vec<Finding> {
        let mut windows = self.0.iter();
        let own = windows
            .find(|(host, port, at, _)| (host.as_str(), *port, *at) == (to.host, to.port, place));
        own.map_or_else(Vec::new, |(.., window)| window.look(values))
    }

    /// The same as [`Windows::push`], less what those before them make alone.
    pub(super) fn push_news(
        &mut self,
        rules: &Arc<Ruleset>,
        at: (&Destination<'_>, Place),
        values: &[&[u8]],
    ) -> Vec<Finding> {
        let old = self.look(at, &[]);
        let mut found = self.push(rules, at, values);
        found.retain(|one| old.iter().all(|other| other.mark != one.mark));
        found
    }

    /// What these values make together with those before them.
    pub(super) fn push(
        &mut self,
        rules: &Arc<Ruleset>,
        (to, place): (&Destination<'_>, Place),
        values: &[&[u8]],
    ) -> Vec<Finding> {
        if values.is_empty() {
            return Vec::new();
        }
        let known = |(host, port, at, _): &(String, u16, Place, Window)| {
            (host.as_str(), *port, *at) == (to.host, to.port, place)
        };
        let at = self.0.iter().position(known);
        let (host, port, place, mut window) =
            at.and_then(|at| self.0.remove(at)).unwrap_or_else(|| {
                let window = Window::of(rules, to, place.joined());
                (to.host.to_owned(), to.port, place, window)
            });
        // The policy may have changed since what came before.
        window.judge_by(rules);
        let findings = window.push(values);
        if self.0.len() >= limits::SCAN_WINDOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((host, port, place, window));
        findings
    }
}
