//! What went to each registered domain lately, whatever the host below it and its
//! port, so that a credential which comes in pieces is seen. Bounded in domains;
//! each window is bounded by the scan.

use std::collections::VecDeque;
use std::sync::Arc;

use outgate_dlp::{Destination, Finding, Piece, Ruleset, Window};

use crate::limits;

/// The windows of one sandbox, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Windows(VecDeque<Own>);

#[derive(Debug)]
struct Own {
    /// As [`Destination::registered`] says.
    domain: String,
    /// What stands for the last head that went there, host and port included.
    head: u64,
    window: Window,
}

impl Windows {
    /// What these pieces would make together with those before them.
    pub(super) fn look(&mut self, to: &Destination<'_>, pieces: &[Piece<'_>]) -> Vec<Finding> {
        let Some(own) = self.of(to) else {
            return Vec::new();
        };
        own.window.go_to(to);
        own.window.look(pieces)
    }

    /// The window that a destination has. Mostly it is the one that was used last.
    fn of(&mut self, to: &Destination<'_>) -> Option<&mut Own> {
        let domain = to.registered();
        self.0.iter_mut().rev().find(|own| own.domain == domain)
    }

    /// Whether this head, in which nothing was found, is that of the last request to the
    /// domain: then its pieces were read, and it counts as sent once more.
    pub(super) fn is_again(&mut self, to: &Destination<'_>, head: u64) -> bool {
        match self.of(to) {
            Some(own) if own.head == head => {
                own.window.again();
                true
            }
            _ => false,
        }
    }

    /// The head that went there last went there once more.
    pub(super) fn again(&mut self, to: &Destination<'_>) {
        if let Some(own) = self.of(to) {
            own.window.again();
        }
    }

    /// This head was the last that went to the domain.
    pub(super) fn remember(&mut self, to: &Destination<'_>, head: u64) {
        if let Some(own) = self.of(to) {
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
        let domain = to.registered();
        let at = self.0.iter().position(|own| own.domain == domain);
        let own = at.and_then(|at| self.0.remove(at));
        let mut own = own.unwrap_or_else(|| Own {
            domain: domain.to_owned(),
            head: 0,
            window: Window::new(rules, to),
        });
        // The policy may have changed since what came before.
        own.window.judge_by(rules);
        own.window.go_to(to);
        let findings = own.window.push(pieces);
        if self.0.len() >= limits::SCAN_WINDOWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(own);
        findings
    }
}
