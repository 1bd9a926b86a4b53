//! The guardian: sub-reaper of the command's tree, and what ends it. Shares the
//! launcher's memory, so it uses raw system calls on its own stack only.
//!
//! INVARIANT: nothing here waits for the launcher or for the command. Every wait is
//! for signals, with the time that is left.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::child::child;
use super::clock::{Due, GuardianClock, now, timespec};
use super::scope::SignalScope;
use super::{ChildStep, REPORT_BYTES, SharedMemory, address, prctl, sys};
use crate::raw::int;

/// Signal the guardian gets when the thread that started it dies, and nobody else but the
/// user sends: the launcher's first, without which nothing is supervised. Its other
/// threads may still wait for their turn to die, among all that the command started.
const LAUNCHER_DIED: i32 = libc::SIGUSR2;
/// Signal by which the launcher has the tree asked to end.
pub(super) const ASK: i32 = libc::SIGUSR1;
/// Signal by which the launcher has the tree killed.
///
/// All three have lower numbers than SIGCHLD, so that a stream of deaths does not
/// keep them waiting: the lowest comes first.
pub(super) const KILL: i32 = libc::SIGTERM;

/// State changes taken before time and orders are looked at again.
const TAKEN_MAX: usize = 256;
/// How long nobody may die before those who were killed are killed again.
const AGAIN: Duration = Duration::from_millis(20);

/// One signal as a bit of a mask.
const fn signal_bit(signal: i32) -> u64 {
    1_u64 << (signal.wrapping_sub(1) & 63)
}

/// What the kernel returns instead of a result.
fn error(errno: i32) -> isize {
    int(errno).cast_signed().wrapping_neg()
}

pub(super) extern "C" fn guardian(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that lives for ever.
    let shared = unsafe { &*argument.cast::<SharedMemory>() };
    let all = u64::MAX;
    sys(
        libc::SYS_rt_sigprocmask,
        [int(libc::SIG_SETMASK), address(&all), 0, 8, 0, 0],
    );
    let own = i32::try_from(sys(libc::SYS_getpid, [0; 6])).unwrap_or(-1);
    shared.guardian.store(own, Ordering::Release);
    prctl(libc::PR_SET_PDEATHSIG, int(LAUNCHER_DIED));
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    prctl(
        libc::PR_SET_NAME,
        c"outgate-guard".as_ptr().expose_provenance(),
    );
    let scope = SignalScope::enter(shared).and_then(|scope| {
        begin(shared, argument)?;
        Ok(scope)
    });
    if let Err((step, errno)) = &scope {
        shared.step.store(*step as i32, Ordering::Release);
        shared.errno.store(*errno, Ordering::Release);
    }
    let failed = shared.errno.load(Ordering::Acquire) != 0;
    keep_only_reports(shared);
    crate::schedule::go_first();
    write(shared, [0, i32::from(failed)]);
    let (false, Ok(scope)) = (failed, scope) else {
        return 1;
    };
    // A session of our own: jobs that the command leaves stopped become
    // orphaned process groups, as they would without us, and the kernel ends
    // them (setpgid(2)); and a terminal's signals do not reach us.
    sys(libc::SYS_setsid, [0; 6]);
    let mut guard = Guardian {
        shared,
        scope,
        clock: GuardianClock::new(shared.wall_time, now()),
        owed: None,
    };
    guard.watch();
    0
}

/// Clones the command; with `CLONE_VFORK` we do not run until it is done.
fn begin(shared: &SharedMemory, argument: *mut libc::c_void) -> Result<(), (ChildStep, i32)> {
    // SAFETY: the stack is fresh, `shared` lives for ever, `child` keeps the
    // rules of this module.
    let command = unsafe {
        libc::clone(
            child,
            shared.child_stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD,
            argument,
        )
    };
    if command < 0 {
        return Err((ChildStep::Clone, libc::EAGAIN));
    }
    shared.command.store(command, Ordering::Release);
    Ok(())
}

/// Leaves the shared descriptor table with nothing but the report pipe.
fn keep_only_reports(shared: &SharedMemory) {
    let keep = int(shared.reports);
    let unshare = usize::try_from(libc::CLOSE_RANGE_UNSHARE).unwrap_or(0);
    let last = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
    sys(
        libc::SYS_close_range,
        [keep.wrapping_add(1), last, unshare, 0, 0, 0],
    );
    sys(libc::SYS_close_range, [0, keep.wrapping_sub(1), 0, 0, 0, 0]);
}

/// Whether a report was taken, or nobody takes any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportTaken {
    Yes,
    Full,
}

/// Writes a report, whole or not at all (pipe(7), `PIPE_BUF`).
fn write(shared: &SharedMemory, record: [i32; 2]) -> ReportTaken {
    let arguments = [int(shared.reports), address(&record), REPORT_BYTES, 0, 0, 0];
    if sys(libc::SYS_write, arguments) == error(libc::EAGAIN) {
        ReportTaken::Full
    } else {
        ReportTaken::Yes
    }
}

/// What wait4(2) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    /// One changed its state, and was noted.
    Changed,
    /// There are some, and none changed.
    Unchanged,
    /// There are none.
    None,
}

/// The guardian once the command runs.
struct Guardian<'a> {
    shared: &'a SharedMemory,
    scope: SignalScope,
    clock: GuardianClock,
    /// The command's end, which the launcher had no room for yet.
    owed: Option<[i32; 2]>,
}

impl Guardian<'_> {
    /// Waits for children, for the end of their time, for orders, and for the
    /// launcher's death. Returns when no child is left and nothing is left to
    /// remove: every process below was a child by then, so the tree is gone.
    fn watch(&mut self) {
        let wanted = [libc::SIGCHLD, LAUNCHER_DIED, ASK, KILL];
        let wanted = wanted.into_iter().fold(0, |all, one| all | signal_bit(one));
        loop {
            let children = self.reap();
            if children == Children::None && self.is_told() && removed(self.shared) {
                return;
            }
            if self.launcher_died() {
                self.end_tree();
                return clean(self.shared);
            }
            match self.clock.due(now(), self.shared.grace) {
                Due::Nothing => {}
                Due::Ask => self.ask_tree(),
                Due::Kill => self.end_tree(),
            }
            match wait_for(wanted, self.patience(children)) {
                Some(LAUNCHER_DIED) => {
                    self.end_tree();
                    return clean(self.shared);
                }
                Some(KILL) => self.end_tree(),
                Some(ASK) => self.clock.hurry(),
                Some(_) | None => {}
            }
        }
    }

    fn launcher_died(&self) -> bool {
        let parent = sys(libc::SYS_getppid, [0; 6]);
        parent != isize::try_from(self.shared.launcher).unwrap_or(-1)
    }

    /// How long to wait for a signal, at most.
    fn patience(&self, children: Children) -> Option<Duration> {
        let wait = self.clock.wait(now());
        if children == Children::Changed {
            // There may be more of them.
            Some(Duration::ZERO)
        } else if self.owed.is_some() {
            Some(wait.map_or(AGAIN, |wait| wait.min(AGAIN)))
        } else {
            wait
        }
    }

    /// Takes state changes that are there, [`TAKEN_MAX`] at most.
    fn reap(&mut self) -> Children {
        for _ in 0..TAKEN_MAX {
            let children = self.take(libc::WUNTRACED | libc::WCONTINUED);
            if children != Children::Changed {
                return children;
            }
        }
        Children::Changed
    }

    /// Takes one state change, if there is one; reports the command's.
    fn take(&mut self, options: i32) -> Children {
        let mut status = 0_i32;
        let slot = std::ptr::from_mut(&mut status).expose_provenance();
        let options = int(options | libc::WNOHANG);
        let pid = sys(libc::SYS_wait4, [int(-1), slot, options, 0, 0, 0]);
        if pid == error(libc::ECHILD) {
            return Children::None;
        }
        if pid <= 0 {
            return Children::Unchanged;
        }
        let pid = i32::try_from(pid).unwrap_or(0);
        if pid == self.shared.command.load(Ordering::Acquire) {
            let record = [pid, status];
            let passing = libc::WIFSTOPPED(status) || libc::WIFCONTINUED(status);
            if write(self.shared, record) == ReportTaken::Full && !passing {
                self.owed = Some(record);
            }
        }
        Children::Changed
    }

    /// Whether the launcher knows of the command's end, by now if it had no room.
    fn is_told(&mut self) -> bool {
        if let Some(record) = self.owed
            && write(self.shared, record) == ReportTaken::Yes
        {
            self.owed = None;
        }
        self.owed.is_none()
    }

    /// Asks every process of the tree to end, also those that were stopped.
    fn ask_tree(&self) {
        self.scope.signal(libc::SIGTERM);
        self.scope.signal(libc::SIGCONT);
    }

    /// Kills every process of the tree and waits until none is left. Once is
    /// enough ([`SignalScope`]); where nobody dies it is done again all the same.
    fn end_tree(&mut self) {
        loop {
            self.scope.signal(libc::SIGKILL);
            loop {
                match self.take(libc::__WALL) {
                    Children::None => return,
                    Children::Changed => {}
                    Children::Unchanged => {
                        if wait_for(signal_bit(libc::SIGCHLD), Some(AGAIN)).is_none() {
                            break;
                        }
                    }
                }
            }
        }
    }
}

/// Takes the next signal of `wanted`; nothing came within the time that is given.
fn wait_for(wanted: u64, time: Option<Duration>) -> Option<i32> {
    let time = time.map(timespec);
    let limit = time.as_ref().map_or(0, address);
    let arguments = [address(&wanted), 0, limit, 8, 0, 0];
    let signal = sys(libc::SYS_rt_sigtimedwait, arguments);
    i32::try_from(signal).ok().filter(|signal| *signal > 0)
}

/// Removes the run's directory while the launcher wakes up; whether it is gone.
fn removed(shared: &SharedMemory) -> bool {
    if shared.directory.is_null() {
        return true;
    }
    let path = shared.directory.expose_provenance();
    let result = sys(
        libc::SYS_unlinkat,
        [int(libc::AT_FDCWD), path, int(libc::AT_REMOVEDIR), 0, 0, 0],
    );
    result == 0 || result == error(libc::ENOENT)
}

/// Becomes the cleaner.
fn clean(shared: &SharedMemory) {
    if let Some(program) = shared.cleaner.first().filter(|p| !p.is_null()) {
        let arguments = shared.cleaner.as_ptr().wrapping_add(1).expose_provenance();
        let environment = [0_usize; 1];
        sys(
            libc::SYS_execve,
            [
                program.expose_provenance(),
                arguments,
                address(&environment),
                0,
                0,
                0,
            ],
        );
    }
}
