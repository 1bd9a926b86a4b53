//! What went to each host lately, so that a credential which comes in pieces is
//! seen. Bounded in hosts; each window is bounded by the scan.

use std::collections::VecDeque;
use std::sync::Arc;

use outgate_dlp::{Destination, Finding, Piece, Ruleset, Window};

use crate::limits;

/// The windows of one sandbox, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Windows(VecDeque<Own>);

#[derive(Debug)]
struct Own {
    host: String,
    port: u16,
    /// What stands for the last head that went there.
    head: u64,
    window: Window,
}

impl Own {
    fn is_of(&self, to: &Destination<'_>) -> bool {
        (self.host.as_str(), self.port) == (to.host, to.port)
    }
}

impl Windows {
    /// What these pieces would make together with those before them.
    pub(super) fn look(&self, to: &Destination<'_>, pieces: &[Piece<'_>]) -> Vec<Finding> {
        let own = self.0.iter().find(|own| own.is_of(to));
        own.map_or_else(Vec::new, |own| own.window.look(pieces))
    }

    /// Whether this head, in which nothing was found, is that of the last request to the
    /// host: then its pieces were read, and it counts as sent once more.
    pub(super) fn is_again(&mut self, to: &Destination<'_>, head: u64) -> bool {
        // Mostly the one that was used last.
        let mut last = self.0.iter_mut().rev();
        match last.find(|own| own.is_of(to)) {
            Some(own) if own.head == head => {
                own.window.again();
                true
            }
            _ => false,
        }
    }

    /// What went last to the host went there once more.
    pub(super) fn again(&mut self, to: &Destination<'_>) {
        if let Some(own) = self.0.iter_mut().rev().find(|own| own.is_of(to)) {
            own.window.again();
        }
    }

    /// This head was the last that went to the host.
    pub(super) fn remember(&mut self, to: &Destination<'_>, head: u64) {
        if let Some(own) = self.0.iter_mut().rev().find(|own| own.is_of(to)) {
            own.head = head;
        }
    }

    /// The same as [`Windows::push`], less what those before them make alone.
    pub(super) fn push_news(
        &mut self,
        rules: &Arc<Ruleset>,
        to: &Destination<'_>,
        pieces: &[Piece<'_>],
    ) -> Vec<Finding> {
        let old = self.look(to, &[]);
        let mut found = self.push(rules, to, pieces);
        found.retain(|one| old.iter().all(|other| other.mark != one.mark));
        found
    }

    /// What these pieces make together with those before them.
    pub(super) fn push(
        &mut self,
        rules: &Arc<Ruleset>,
        to: &Destination<'_>,
        pieces: &[Piece<'_>],
    ) -> Vec<Finding> {
        let at = self.0.iter().position(|own| own.is_of(to));
        let own = at.and_then(|at| self.0.remove(at));
        let mut own = own.unwrap_or_else(|| Own {
            host: to.host.to_owned(),
            port: to.port,
            head: 0,
            window: Window::new(rules, to),
        });
        // The policy may have changed since what came before.
        own.window.judge_by(rules);
        let findings = own.window.push(pieces);
        if self.0.len() >= limits::SCAN_WINDOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(own);
        findings
    }
}
