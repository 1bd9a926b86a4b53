//! The command's processes: exit status, stops, signals, wall time, and the
//! point at which none is left.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigEvent, SigevNotify, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::time::ClockId;
use nix::unistd::{Pid, getpgid, getpgrp, getpid, getsid};
use outgate_sys::spawn::{GuardianOrder, GuardianReport, REPORT_BYTES, StateChange, order};

use crate::process::signal_tree;

/// The shortest time that a timer takes: with none it would not be set.
const WAKE_MIN: Duration = Duration::from_millis(1);

/// Between two signals that continue this process: as long as nobody minds that it stopped.
const WAKE_AGAIN_TIME: Duration = Duration::from_secs(1);

/// Between SIGTERM and SIGKILL when the wall time is over.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long the guardian's last report may be on its way, in milliseconds: it is
/// a process as any other, and on a crowded machine it waits for its turn.
const REPORT_MS: u16 = 10_000;
/// How long a guardian that closed its pipe may take to be gone, in milliseconds.
const LAST_MOMENT_MS: u16 = 100;
/// The launcher stops with the command once in this time at most: one that stops and goes on
/// all the time would keep it from hearing anybody.
const STOPPED_ONCE_IN: Duration = Duration::from_secs(1);
/// Reports read at once: more than the pipe holds (pipe(7)).
const REPORTS_MAX: usize = 16 * 1024;
/// `si_code` of signals the kernel sends, a terminal's among them.
const SI_KERNEL: i32 = 0x80;
/// How long what a command left may go on before its user is told what is waited for.
const LEFT_TIME: Duration = Duration::from_secs(1);
/// Signals that end a run; those of a terminal reach the command by themselves.
pub(crate) const FORWARDED: [Signal; 9] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// Signals by which somebody asks a program to end.
const FAREWELLS: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
];

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// With an exit status.
    Exited(u8),
    /// By a signal.
    Killed(u8),
    /// The guardian died, and the command with it.
    Lost,
}

/// Whether somebody opened a file under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leased {
    /// Somebody waits for it.
    Wanted,
    /// Nobody did.
    Unopened,
}

/// Where the run stands with its time. The guardian has a clock of its own, which
/// the command cannot keep busy; this one also wakes a launcher that is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeDeadline {
    /// No limit, or not reached.
    Running(Option<Instant>),
    /// SIGTERM was sent; SIGKILL follows.
    Ending(Option<Instant>),
    /// SIGKILL was sent.
    Killed,
}

/// What the last report about it says that the command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    GoesOn,
    /// It stands still, and the launcher did not follow it yet.
    Stopped,
}

/// Whether a person was told that the run goes on without its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftWord {
    /// The command runs.
    Early,
    /// It ended; then it is time.
    At(Instant),
    /// It was said, or need not be.
    Said,
}

/// The processes of one sandbox.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    reports: OwnedFd,
    guardian: i32,
    command: i32,
    ending: Option<Ending>,
    /// When it is said that something outlived the command.
    left: LeftWord,
    clock: TreeDeadline,
    filter: TreeFilter,
    guard: GuardianState,
    /// A signal that asked the command to end.
    farewell: Option<Signal>,
    pace: Pace,
    /// Before this the launcher stops for nobody.
    stops_again: Option<Instant>,
}

/// Whether the guardian does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuardianState {
    Alive,
    Lost,
}

/// Whether any task still runs under the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeFilter {
    Used,
    Unused,
}

impl ProcessTree {
    /// That of a command which began now.
    pub(crate) fn new(
        reports: OwnedFd,
        guardian: i32,
        command: i32,
        wall_time: Option<Duration>,
    ) -> Self {
        let until = wall_time.and_then(|time| Instant::now().checked_add(time));
        Self {
            reports,
            guardian,
            command,
            ending: None,
            left: LeftWord::Early,
            clock: TreeDeadline::Running(until),
            filter: TreeFilter::Used,
            guard: GuardianState::Alive,
            farewell: None,
            pace: Pace::GoesOn,
            stops_again: None,
        }
    }

    pub(super) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Process id of the guardian, the tree's root.
    pub(super) fn root(&self) -> u32 {
        u32::try_from(self.guardian).unwrap_or(0)
    }

    /// Whether the command ended and no task uses the filter any more.
    pub(super) fn is_empty(&self) -> bool {
        self.ending.is_some() && self.filter == TreeFilter::Unused
    }

    /// Whether a task may still use the filter.
    pub(super) fn is_filtered(&self) -> bool {
        self.filter == TreeFilter::Used
    }

    /// The kernel says that no task uses the filter.
    pub(super) fn filter_unused(&mut self) {
        self.filter = TreeFilter::Unused;
        if self.ending.is_none() {
            // The last report may still be on its way through the guardian.
            let mut polled = [PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, REPORT_MS);
            self.read_reports();
            self.ending.get_or_insert(Ending::Lost);
        }
    }

    /// The status a shell would show.
    pub(super) fn status(&self) -> u8 {
        match self.ending {
            Some(Ending::Exited(status)) => status,
            Some(Ending::Killed(signal)) => signal.saturating_add(128),
            Some(Ending::Lost) | None => 125,
        }
    }

    /// Reads what the guardian saw.
    pub(super) fn read_reports(&mut self) {
        for _ in 0..REPORTS_MAX {
            let mut bytes = [0_u8; REPORT_BYTES];
            match nix::unistd::read(&self.reports, &mut bytes) {
                Ok(REPORT_BYTES) => self.changed(GuardianReport::from_bytes(bytes).change()),
                Ok(_) => return self.guardian_ended(),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn changed(&mut self, change: StateChange) {
        match change {
            StateChange::Exited(code) => self.ending = Some(Ending::Exited(code)),
            StateChange::Killed(signal) => self.ending = Some(Ending::Killed(signal)),
            StateChange::Stopped => self.pace = Pace::Stopped,
            StateChange::Continued => self.pace = Pace::GoesOn,
        }
        if self.ending.is_some() && self.left == LeftWord::Early {
            let at = Instant::now().checked_add(LEFT_TIME);
            self.left = at.map_or(LeftWord::Said, LeftWord::At);
        }
        // Who asks outgate to end means all of it, also what the command left.
        if self.ending.is_some()
            && let Some(signal) = self.farewell.take()
        {
            signal_tree(self.root(), signal);
        }
    }

    /// Whether the guardian ended with status 0, or does so in this moment: it
    /// closes its end of the pipe just before. Its status is left where it is, so
    /// that its number stays its own.
    fn guardian_is_done(&self) -> bool {
        if let Ok(pidfd) = outgate_sys::pidfd::open(self.root()) {
            let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, LAST_MOMENT_MS);
        }
        matches!(self.peek(), Ok(WaitStatus::Exited(_, 0)))
    }

    /// The state of the guardian, not taken.
    fn peek(&self) -> nix::Result<WaitStatus> {
        let id = Id::Pid(Pid::from_raw(self.guardian));
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(id, flags)
    }

    /// If the command stands still, this process stops as well, so that the shell sees it,
    /// and wakes it when it is woken. Without a terminal nobody waits for that.
    ///
    /// Comes last of all that is served, so that who wants the end was heard; one that
    /// is to end is not followed any more.
    pub(super) fn stop_with_the_command(&mut self) {
        let Some(wait) = self.until_the_stop() else {
            return;
        };
        if !wait.is_zero() {
            return;
        }
        self.pace = Pace::GoesOn;
        // Reports for which there was no room are missing.
        if !crate::process::stands_still(self.command) || std::fs::File::open("/dev/tty").is_err() {
            return;
        }
        // A command that stops itself does not stop its clock.
        let alarm = match self.until_the_end().map(wake_after) {
            None => None,
            Some(Some(alarm)) => Some(alarm),
            Some(None) => return,
        };
        let _ = kill(getpid(), Signal::SIGSTOP);
        drop(alarm);
        self.stops_again = Instant::now().checked_add(STOPPED_ONCE_IN);
        let command = Pid::from_raw(self.command);
        if getpgid(Some(command)).is_ok_and(|group| group != getpgrp()) {
            let _ = kill(command, Signal::SIGCONT);
        }
    }

    /// The guardian is gone. It ends by itself, with status 0, when nothing is
    /// left of the tree. Otherwise the tree is not supervised as promised: the
    /// command died with it, and what it left has become ours to end.
    fn guardian_ended(&mut self) {
        if self.is_empty() {
            return;
        }
        if self.ending.is_some() && self.guardian_is_done() {
            self.filter = TreeFilter::Unused;
        } else {
            self.guard = GuardianState::Lost;
            self.ending.get_or_insert(Ending::Lost);
        }
    }

    /// Kills what a dead guardian left: every child of ours but `spared`, again
    /// and again, since each death makes its children ours.
    pub(super) fn end_orphans(&mut self, spared: &[u32]) {
        if self.guard == GuardianState::Alive {
            return;
        }
        let ourselves = std::process::id();
        loop {
            let mut alive = 0_usize;
            for pid in crate::process::children(ourselves) {
                let Ok(number) = i32::try_from(pid) else {
                    continue;
                };
                if spared.contains(&pid) {
                    continue;
                }
                let pid = Pid::from_raw(number);
                let _ = kill(pid, Signal::SIGKILL);
                if waitpid(pid, None).is_ok() {
                    alive = alive.saturating_add(1);
                }
            }
            if alive == 0 {
                break;
            }
        }
        self.guard = GuardianState::Alive;
        self.filter = TreeFilter::Unused;
    }

    /// Whether it is time to say that the run goes on without its command; once, and not to
    /// who ended it.
    pub(super) fn has_left(&mut self, now: Instant) -> bool {
        let LeftWord::At(at) = self.left else {
            return false;
        };
        if now < at {
            return false;
        }
        self.left = LeftWord::Said;
        self.is_filtered() && matches!(self.clock, TreeDeadline::Running(_))
    }

    /// How long a poll may wait.
    pub(super) fn wait_at_most(&self) -> Option<Duration> {
        let (end, stop) = (self.until_the_end(), self.until_the_stop());
        let word = match self.left {
            LeftWord::At(at) => Some(at.saturating_duration_since(Instant::now())),
            LeftWord::Early | LeftWord::Said => None,
        };
        end.into_iter().chain(stop).chain(word).min()
    }

    /// How long until this process may stop with the command; `None` if it need not.
    fn until_the_stop(&self) -> Option<Duration> {
        let follows = self.pace == Pace::Stopped
            && self.ending.is_none()
            && matches!(self.clock, TreeDeadline::Running(_));
        follows.then(|| {
            self.stops_again.map_or(Duration::ZERO, |again| {
                again.saturating_duration_since(Instant::now())
            })
        })
    }

    /// How long the clock still runs.
    fn until_the_end(&self) -> Option<Duration> {
        match self.clock {
            TreeDeadline::Running(until) | TreeDeadline::Ending(until) => {
                until.map(|until| until.saturating_duration_since(Instant::now()))
            }
            TreeDeadline::Killed => None,
        }
    }

    /// Ends the tree as if its time were over.
    pub(super) fn end(&mut self) {
        if let TreeDeadline::Running(_) = self.clock {
            self.clock = TreeDeadline::Running(Some(Instant::now()));
        }
    }

    /// Kills the tree at once: nobody serves it.
    pub(super) fn kill(&mut self) {
        order(self.guardian, GuardianOrder::Kill);
        self.clock = TreeDeadline::Killed;
    }

    /// Ends the tree when its time is over.
    pub(super) fn tick(&mut self, now: Instant) {
        let over = |until: Option<Instant>| until.is_some_and(|until| now >= until);
        match self.clock {
            TreeDeadline::Running(until) if over(until) => {
                order(self.guardian, GuardianOrder::Ask);
                self.clock = TreeDeadline::Ending(now.checked_add(GRACE));
            }
            TreeDeadline::Ending(until) if over(until) => {
                order(self.guardian, GuardianOrder::Kill);
                self.clock = TreeDeadline::Killed;
            }
            TreeDeadline::Running(_) | TreeDeadline::Ending(_) | TreeDeadline::Killed => {}
        }
    }

    /// Passes signals on to the command; after its end, to what it left.
    pub(super) fn forward_signals(&mut self, signals: &SignalFd) -> Leased {
        let mut leased = Leased::Unopened;
        while let Ok(Some(info)) = signals.read_signal() {
            let number = i32::try_from(info.ssi_signo).unwrap_or(0);
            let Ok(signal) = Signal::try_from(number) else {
                continue;
            };
            if signal == Signal::SIGCHLD {
                self.reap();
                continue;
            }
            if signal == Signal::SIGIO {
                leased = Leased::Wanted;
                continue;
            }
            // A terminal sends to its whole foreground group: the command has
            // it already. Only a hang-up goes to the session's leader alone.
            let shared = info.ssi_code == SI_KERNEL
                && !(signal == Signal::SIGHUP && getsid(None) == Ok(getpid()));
            if !FORWARDED.contains(&signal) || shared {
                continue;
            }
            if self.ending.is_some() {
                signal_tree(self.root(), signal);
            } else {
                let _ = kill(Pid::from_raw(self.command), signal);
                if FAREWELLS.contains(&signal) {
                    self.farewell = Some(signal);
                }
            }
        }
        leased
    }

    /// A child of ours ended, maybe a helper: if it is the guardian, its last report comes first.
    fn reap(&mut self) {
        outgate_sys::process::reap_helpers();
        if !matches!(self.peek(), Ok(WaitStatus::StillAlive)) {
            self.read_reports();
        }
    }
}

/// Continues this process after `time`, stopped or not, and every second from
/// then on, in case it stops just after the first.
fn wake_after(time: Duration) -> Option<Timer> {
    let event = SigEvent::new(SigevNotify::SigevSignal {
        signal: Signal::SIGCONT,
        si_value: 0,
    });
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, event).ok()?;
    let first = time.max(WAKE_MIN).into();
    let rhythm = Expiration::IntervalDelayed(first, WAKE_AGAIN_TIME.into());
    timer.set(rhythm, TimerSetTimeFlags::empty()).ok()?;
    Some(timer)
}
