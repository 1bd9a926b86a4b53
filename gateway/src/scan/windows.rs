//! What went to each registered domain lately, whatever the host below it and its
//! port, so that a credential which comes in pieces is seen. Bounded in domains;
//! each window is bounded by the scan.

use std::collections::VecDeque;
use std::sync::Arc;

use outgate_dlp::{Finding, Piece, Ruleset, ScanDestination, Unscanned, Window};

use crate::limits;

/// The windows of one sandbox, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct DomainWindows(VecDeque<DomainWindow>);

#[derive(Debug)]
struct DomainWindow {
    /// As [`ScanDestination::registered`] says.
    domain: String,
    /// What stands for the last head that went there, host and port included.
    head: u64,
    /// How often it went there again since.
    again: usize,
    window: Window,
}

impl DomainWindows {
    /// What these pieces would make together with those before them.
    pub(super) fn look(&mut self, to: &ScanDestination<'_>, pieces: &[Piece<'_>]) -> Vec<Finding> {
        let Some(own) = self.of(to) else {
            return Vec::new();
        };
        own.window.go_to(to);
        own.window.look(pieces)
    }

    /// The window that a destination has. Mostly it is the one that was used last.
    fn of(&mut self, to: &ScanDestination<'_>) -> Option<&mut DomainWindow> {
        let domain = to.registered();
        self.0.iter_mut().rev().find(|own| own.domain == domain)
    }

    /// Whether this head, in which nothing was found, is that of the last request to the
    /// domain, and its pieces make nothing once more: then it counts as sent once more. The
    /// letters of a credential that are sent one by one may stand beside their like, and
    /// the last of them would be gone before it counts.
    pub(super) fn is_again<'a>(
        &mut self,
        to: &ScanDestination<'_>,
        (head, pieces): (u64, impl FnOnce() -> Vec<Piece<'a>>),
    ) -> bool {
        let Some(own) = self.of(to).filter(|own| own.head == head) else {
            return false;
        };
        if own.again < limits::SCAN_AGAIN_MAX {
            own.again = own.again.saturating_add(1);
            own.window.go_to(to);
            if !own.window.look(&pieces()).is_empty() {
                return false;
            }
        }
        own.window.again();
        true
    }

    /// What of the last pieces that went there was not looked into together with others.
    pub(super) fn missed(&mut self, to: &ScanDestination<'_>) -> Option<Unscanned> {
        self.of(to).and_then(|own| own.window.missed())
    }

    /// The head that went there last went there once more.
    pub(super) fn again(&mut self, to: &ScanDestination<'_>) {
        if let Some(own) = self.of(to) {
            own.window.again();
        }
    }

    /// This head was the last that went to the domain.
    pub(super) fn remember(&mut self, to: &ScanDestination<'_>, head: u64) {
        if let Some(own) = self.of(to).filter(|own| own.head != head) {
            own.head = head;
            own.again = 0;
        }
    }

    /// The same as [`DomainWindows::push`], less what those before them make alone.
    pub(super) fn push_news(
        &mut self,
        rules: &Arc<Ruleset>,
        to: &ScanDestination<'_>,
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
        to: &ScanDestination<'_>,
        pieces: &[Piece<'_>],
    ) -> Vec<Finding> {
        let domain = to.registered();
        let at = self.0.iter().position(|own| own.domain == domain);
        let own = at.and_then(|at| self.0.remove(at));
        let mut own = own.unwrap_or_else(|| DomainWindow {
            domain: domain.to_owned(),
            head: 0,
            again: 0,
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
