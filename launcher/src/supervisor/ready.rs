//! One poll over everything that can happen to a run, and for how long.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{AGAIN_TICK, Supervisor, TICK};
use crate::presence::Presence;

/// What a poll said, by source.
pub(super) struct Ready {
    pub(super) calls: PollFlags,
    pub(super) reports: PollFlags,
    pub(super) signals: PollFlags,
    pub(super) gateway: PollFlags,
    pub(super) sealed: PollFlags,
    pub(super) private: PollFlags,
    pub(super) lookups: PollFlags,
    pub(super) asked: PollFlags,
    pub(super) connecting: Vec<PollFlags>,
}

impl Ready {
    /// Nothing happened.
    fn nothing() -> Self {
        let none = PollFlags::empty();
        Self {
            calls: none,
            reports: none,
            signals: none,
            gateway: none,
            sealed: none,
            private: none,
            lookups: none,
            asked: none,
            connecting: Vec::new(),
        }
    }
}

impl Ready {
    /// Whether anything happened.
    pub(super) fn is_something(&self) -> bool {
        let sources = [
            self.calls,
            self.gateway,
            self.sealed,
            self.private,
            self.lookups,
            self.asked,
        ];
        let one = sources.iter().chain(&self.connecting);
        one.copied().any(|flags| !flags.is_empty())
    }
}

impl Supervisor<'_> {
    /// How long the next poll may wait.
    pub(super) fn timeout(&self) -> PollTimeout {
        let tick = self.is_waiting().then_some(TICK);
        let again = self.link.may_come_back().then_some(AGAIN_TICK);
        let tick = self.late.starts_in().or(tick).or(again);
        let deadline = self.tree.wait_at_most();
        match (tick, deadline) {
            (None, None) => PollTimeout::NONE,
            (one, other) => {
                let wait = one
                    .unwrap_or(Duration::MAX)
                    .min(other.unwrap_or(Duration::MAX));
                let millis = wait.as_millis().clamp(1, 60_000);
                PollTimeout::try_from(i32::try_from(millis).unwrap_or(1000))
                    .unwrap_or(PollTimeout::ZERO)
            }
        }
    }

    /// One poll over everything that can happen.
    pub(super) fn wait(&self, timeout: PollTimeout) -> Ready {
        let readable = PollFlags::POLLIN;
        // A listener whose filter nobody uses reports that for ever, and so does
        // a pipe whose guardian is gone.
        let silent = PollFd::new(self.signals.as_fd(), PollFlags::empty());
        let calls = if self.tree.is_filtered() {
            PollFd::new(self.listener.as_fd(), readable)
        } else {
            silent.clone()
        };
        let reports = if self.tree.is_empty() {
            silent
        } else {
            PollFd::new(self.tree.reports(), readable)
        };
        let mut sources: Vec<PollFd<'_>> =
            vec![calls, reports, PollFd::new(self.signals.as_fd(), readable)];
        let gateway = self.link.poll().map(|(socket, full)| {
            let mut events = readable;
            events.set(PollFlags::POLLOUT, full);
            sources.push(PollFd::new(socket, events));
            sources.len().saturating_sub(1)
        });
        let sealed = self.sealed.poll().map(|socket| {
            sources.push(PollFd::new(socket, readable));
            sources.len().saturating_sub(1)
        });
        let lookups = self.lookups.poll().map(|socket| {
            sources.push(PollFd::new(socket, readable));
            sources.len().saturating_sub(1)
        });
        let private = sources.len();
        for listener in self.redirect.each() {
            sources.push(PollFd::new(listener.as_fd(), readable));
        }
        let asked = sources.len();
        for socket in self.presence.iter().flat_map(Presence::each) {
            sources.push(PollFd::new(socket, readable));
        }
        let connecting = sources.len();
        for waiting in &self.connecting {
            sources.push(PollFd::new(waiting.socket(), PollFlags::POLLOUT));
        }
        if poll(&mut sources, timeout).is_err() {
            // The alarm rang, and nothing came since it was set.
            self.alarm.stop();
            return Ready::nothing();
        }
        let at = |index: usize| {
            let flags = sources.get(index).and_then(PollFd::revents);
            flags.unwrap_or(PollFlags::empty())
        };
        Ready {
            calls: at(0),
            reports: at(1),
            signals: at(2),
            gateway: gateway.map_or(PollFlags::empty(), at),
            sealed: sealed.map_or(PollFlags::empty(), at),
            lookups: lookups.map_or(PollFlags::empty(), at),
            private: (private..asked).fold(PollFlags::empty(), |all, index| all | at(index)),
            asked: (asked..connecting).fold(PollFlags::empty(), |all, index| all | at(index)),
            connecting: (connecting..sources.len()).map(at).collect(),
        }
    }
}
