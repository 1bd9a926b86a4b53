//! One poll over everything that can happen to a run, and for how long.

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{AGAIN_TICK, FilterInUse, Supervisor, TICK};

/// What a poll said, by source.
pub(super) struct SupervisorReady {
    pub(super) calls: PollFlags,
    pub(super) lifetime: PollFlags,
    pub(super) gateway: PollFlags,
    pub(super) sealed: PollFlags,
    pub(super) private: PollFlags,
    pub(super) watchers: PollFlags,
    pub(super) lookups: PollFlags,
    pub(super) connecting: Vec<PollFlags>,
}

impl SupervisorReady {
    /// Nothing happened.
    fn nothing() -> Self {
        let none = PollFlags::empty();
        Self {
            calls: none,
            lifetime: none,
            gateway: none,
            sealed: none,
            private: none,
            watchers: none,
            lookups: none,
            connecting: Vec::new(),
        }
    }
}

impl SupervisorReady {
    /// Whether anything happened.
    pub(super) fn is_something(&self) -> bool {
        let sources = [
            self.calls,
            self.gateway,
            self.sealed,
            self.private,
            self.lookups,
            self.watchers,
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
        let waits = [
            self.late.starts_in().or(tick).or(again),
            self.changes.ends_in(),
        ];
        let Some(wait) = waits.into_iter().flatten().min() else {
            return PollTimeout::NONE;
        };
        let millis = wait.as_millis().clamp(1, 60_000);
        PollTimeout::try_from(i32::try_from(millis).unwrap_or(1000)).unwrap_or(PollTimeout::ZERO)
    }

    /// One poll over everything that can happen.
    pub(super) fn wait(&self, timeout: PollTimeout) -> SupervisorReady {
        let readable = PollFlags::POLLIN;
        let lifetime = PollFd::new(self.lifetime.poll(), readable);
        // A listener whose filter nobody uses reports that for ever.
        let calls = match self.filter {
            FilterInUse::Used => PollFd::new(self.listener.as_fd(), readable),
            FilterInUse::Unused => lifetime.clone(),
        };
        let mut sources: Vec<PollFd<'_>> = vec![calls, lifetime];
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
        let watchers = sources.len();
        for watcher in self.people.each() {
            sources.push(PollFd::new(watcher, readable));
        }
        let private = sources.len();
        for listener in self.redirect.each() {
            sources.push(PollFd::new(listener.as_fd(), readable));
        }
        let connecting = sources.len();
        for waiting in &self.connecting {
            sources.push(PollFd::new(waiting.socket(), PollFlags::POLLOUT));
        }
        if poll(&mut sources, timeout).is_err() {
            // The alarm rang, and nothing came since it was set.
            self.alarm.stop();
            return SupervisorReady::nothing();
        }
        let at = |index: usize| {
            let flags = sources.get(index).and_then(PollFd::revents);
            flags.unwrap_or(PollFlags::empty())
        };
        SupervisorReady {
            calls: match self.filter {
                FilterInUse::Used => at(0),
                FilterInUse::Unused => PollFlags::empty(),
            },
            lifetime: at(1),
            gateway: gateway.map_or(PollFlags::empty(), at),
            sealed: sealed.map_or(PollFlags::empty(), at),
            lookups: lookups.map_or(PollFlags::empty(), at),
            private: (private..connecting).fold(PollFlags::empty(), |all, index| all | at(index)),
            watchers: (watchers..private).fold(PollFlags::empty(), |all, index| all | at(index)),
            connecting: (connecting..sources.len()).map(at).collect(),
        }
    }
}
