//! The thread that serves the end of a run: signals, the state of the command and its
//! time, and who asks for the run by its name. It also started the guardian, which learns
//! when this very thread dies (`launcher/sys`, `spawn/guardian.rs`).
//!
//! INVARIANT: nothing here makes a call that the command can have wait: no copy of its
//! memory, no call on a socket of its own, no descriptor put into it. All of that is the
//! supervisor's, in a thread beside (`supervisor/thread.rs`), and nothing here waits for
//! that one while a process of the command is left.

pub(crate) mod between;
mod tree;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use outgate_handoff::FromRun;
use outgate_sys::seccomp::NotificationListener;

use crate::presence::{Presence, RunRequest, answer};
use between::LifetimeEnd;
use tree::Leased;

pub(crate) use tree::{FORWARDED, GRACE, ProcessTree};

/// Who ends a run, and who else wants its end.
#[derive(Debug)]
pub(crate) struct Lifetime {
    tree: ProcessTree,
    /// Says when no task uses the filter any more; no call is taken from it here.
    listener: Arc<NotificationListener>,
    signals: SignalFd,
    presence: Option<Presence>,
    supervisor: LifetimeEnd,
}

/// What a poll said, by source.
struct LifetimeReady {
    listener: PollFlags,
    reports: PollFlags,
    signals: PollFlags,
    supervisor: PollFlags,
    asked: PollFlags,
}

impl Lifetime {
    /// That of a command which runs. `presence` is how others find it, if they can.
    pub(crate) fn new(
        tree: ProcessTree,
        listener: Arc<NotificationListener>,
        signals: SignalFd,
        presence: Option<Presence>,
        supervisor: LifetimeEnd,
    ) -> Self {
        Self {
            tree,
            listener,
            signals,
            presence,
            supervisor,
        }
    }

    /// Serves until no process of the sandbox is left, and tells the supervisor so.
    /// Returns the status that a shell would show.
    pub(crate) fn serve(&mut self) -> u8 {
        while !self.tree.is_empty() {
            self.turn();
        }
        let status = self.tree.status();
        self.supervisor.over(status);
        status
    }

    /// Waits for something to happen and serves it.
    fn turn(&mut self) {
        let ready = self.wait(self.timeout());
        if ready.listener.contains(PollFlags::POLLHUP) {
            self.tree.filter_unused();
        }
        if !ready.asked.is_empty() {
            self.serve_askers();
        }
        if !ready.reports.is_empty() {
            self.tree.read_reports();
        }
        if !ready.signals.is_empty() && self.tree.forward_signals(&self.signals) == Leased::Wanted {
            self.supervisor.certificates_wanted();
        }
        if !ready.supervisor.is_empty() {
            // Nobody serves the command's calls any more, which wait for ever.
            self.supervisor.is_lost();
            self.tree.kill();
        }
        self.tree.end_orphans(&self.supervisor.helpers());
        self.tree.tick(Instant::now());
        if self.tree.has_left(Instant::now()) {
            self.supervisor.left();
        }
        self.tree.stop_with_the_command();
    }

    /// How long the next poll may wait.
    fn timeout(&self) -> PollTimeout {
        let Some(wait) = self.tree.wait_at_most() else {
            return PollTimeout::NONE;
        };
        let millis = wait.as_millis().clamp(1, 60_000);
        PollTimeout::try_from(i32::try_from(millis).unwrap_or(1000)).unwrap_or(PollTimeout::ZERO)
    }

    fn wait(&self, timeout: PollTimeout) -> LifetimeReady {
        let readable = PollFlags::POLLIN;
        // A listener whose filter nobody uses reports that for ever, and so does a pipe whose
        // guardian is gone, and a supervisor that is.
        let silent = PollFd::new(self.signals.as_fd(), PollFlags::empty());
        let listener = if self.tree.is_filtered() {
            // That it hangs up is said unasked; a held call does not wake this thread.
            PollFd::new(self.listener.as_fd(), PollFlags::empty())
        } else {
            silent.clone()
        };
        let reports = if self.tree.is_empty() {
            silent.clone()
        } else {
            PollFd::new(self.tree.reports(), readable)
        };
        let supervisor = self.supervisor.poll();
        let supervisor = supervisor.map_or(silent, |end| PollFd::new(end, PollFlags::empty()));
        let signals = PollFd::new(self.signals.as_fd(), readable);
        let mut sources = vec![listener, reports, signals, supervisor];
        let asked = sources.len();
        for socket in self.presence.iter().flat_map(Presence::each) {
            sources.push(PollFd::new(socket, readable));
        }
        let happened = poll(&mut sources, timeout).is_ok();
        let at = |index: usize| {
            let flags = sources.get(index).and_then(PollFd::revents);
            flags.filter(|_| happened).unwrap_or(PollFlags::empty())
        };
        LifetimeReady {
            listener: at(0),
            reports: at(1),
            signals: at(2),
            supervisor: at(3),
            asked: (asked..sources.len()).fold(PollFlags::empty(), |all, index| all | at(index)),
        }
    }

    /// Tells who asks about the run, and ends it when they want that. A change of its
    /// policy is the supervisor's.
    fn serve_askers(&mut self) {
        let Some(presence) = &mut self.presence else {
            return;
        };
        let status = presence.status();
        status.held = self.supervisor.held();
        status.granted = self.supervisor.granted();
        if let Some(record) = self.supervisor.record() {
            status.record = record;
        }
        if presence.serve() == RunRequest::End {
            self.tree.end();
        }
        for wanted in presence.wanted() {
            if let Err(wanted) = self.supervisor.wants(wanted) {
                let message = "too many changes wait already; try again".to_owned();
                answer(&wanted.asker, &FromRun::Refused { message });
            }
        }
    }
}
