//! The guardian: sub-reaper of the command's tree. Shares the launcher's memory,
//! so it uses raw system calls on its own stack only.

use std::sync::atomic::Ordering;

use super::child::child;
use super::{REPORT_BYTES, Shared, Step, address, prctl, sys};
use crate::raw::int;

/// Bytes of the list of children read at once.
const LIST_BYTES: usize = 4096;

/// Signal the guardian gets when the launcher dies.
const LAUNCHER_DIED: i32 = libc::SIGUSR2;

/// One signal as a bit of a mask.
const fn signal_bit(signal: i32) -> u64 {
    1_u64 << (signal.wrapping_sub(1) & 63)
}

fn report(shared: &Shared, pid: isize, status: i32) {
    let record = [i32::try_from(pid).unwrap_or(0), status];
    let descriptor = int(shared.reports);
    sys(
        libc::SYS_write,
        [descriptor, address(&record), REPORT_BYTES, 0, 0, 0],
    );
}

pub(super) extern "C" fn guardian(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that lives for ever.
    let shared = unsafe { &*argument.cast::<Shared>() };
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
    // SAFETY: the stack is fresh, `shared` lives for ever, `child` keeps the
    // rules of this module; with CLONE_VFORK we do not run until it is done.
    let command = unsafe {
        libc::clone(
            child,
            shared.child_stack,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD,
            argument,
        )
    };
    if command < 0 {
        shared.step.store(Step::Clone as i32, Ordering::Release);
        shared.errno.store(libc::EAGAIN, Ordering::Release);
    }
    shared.command.store(command, Ordering::Release);
    let failed = shared.errno.load(Ordering::Acquire) != 0;
    keep_only_reports(shared);
    report(shared, 0, i32::from(failed));
    if failed {
        return 1;
    }
    // A session of our own: jobs that the command leaves stopped become
    // orphaned process groups, as they would without us, and the kernel ends
    // them (setpgid(2)); and a terminal's signals do not reach us.
    sys(libc::SYS_setsid, [0; 6]);
    guard(shared);
    0
}

/// Leaves the shared descriptor table with nothing but the report pipe.
fn keep_only_reports(shared: &Shared) {
    let keep = int(shared.reports);
    let unshare = usize::try_from(libc::CLOSE_RANGE_UNSHARE).unwrap_or(0);
    let last = usize::try_from(u32::MAX).unwrap_or(usize::MAX);
    sys(
        libc::SYS_close_range,
        [keep.wrapping_add(1), last, unshare, 0, 0, 0],
    );
    sys(libc::SYS_close_range, [0, keep.wrapping_sub(1), 0, 0, 0, 0]);
}

/// Waits for children, for the order to end them, and for the launcher's death.
/// Returns when no child is left and nothing is left to remove: every process
/// below was a child by then, so the tree is gone.
fn guard(shared: &Shared) {
    let wanted = signal_bit(libc::SIGCHLD) | signal_bit(LAUNCHER_DIED) | signal_bit(libc::SIGTERM);
    loop {
        if reap(shared) == Children::None && removed(shared) {
            return;
        }
        if sys(libc::SYS_getppid, [0; 6]) != isize::try_from(shared.launcher).unwrap_or(-1) {
            end_tree(shared);
            return clean(shared);
        }
        let signal = sys(libc::SYS_rt_sigtimedwait, [address(&wanted), 0, 0, 8, 0, 0]);
        if signal == int(libc::SIGTERM).cast_signed() {
            end_tree(shared);
        }
    }
}

/// Whether the guardian has children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

/// Takes every state change that is there; reports those of the command.
fn reap(shared: &Shared) -> Children {
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    loop {
        let mut status = 0_i32;
        let slot = std::ptr::from_mut(&mut status).expose_provenance();
        let pid = sys(libc::SYS_wait4, [int(-1), slot, int(options), 0, 0, 0]);
        if pid == int(libc::ECHILD).cast_signed().wrapping_neg() {
            return Children::None;
        }
        if pid <= 0 {
            return Children::Some;
        }
        note(shared, pid, status);
    }
}

/// Removes the run's directory while the launcher wakes up; whether it is gone.
fn removed(shared: &Shared) -> bool {
    if shared.directory.is_null() {
        return true;
    }
    let path = shared.directory.expose_provenance();
    let result = sys(
        libc::SYS_unlinkat,
        [int(libc::AT_FDCWD), path, int(libc::AT_REMOVEDIR), 0, 0, 0],
    );
    result == 0 || result == int(libc::ENOENT).cast_signed().wrapping_neg()
}

/// Reports a change if it is the command's.
fn note(shared: &Shared, pid: isize, status: i32) {
    if pid == isize::try_from(shared.command.load(Ordering::Acquire)).unwrap_or(-1) {
        report(shared, pid, status);
    }
}

/// Kills every descendant, as each becomes our child.
///
/// RACE: a process may fork between being listed and being killed. Its child is
/// ours at the next round, and a round is shorter than a fork: every dead child
/// is taken before the next list is made, so that lists stay short.
fn end_tree(shared: &Shared) {
    let wall = i32::from_ne_bytes(0x4000_0000_u32.to_ne_bytes());
    loop {
        kill_children();
        let mut options = wall;
        loop {
            let mut status = 0_i32;
            let slot = std::ptr::from_mut(&mut status).expose_provenance();
            let pid = sys(libc::SYS_wait4, [int(-1), slot, int(options), 0, 0, 0]);
            if pid < 0 {
                return;
            }
            if pid == 0 {
                break;
            }
            note(shared, pid, status);
            options = wall | libc::WNOHANG;
        }
    }
}

/// Becomes the cleaner.
fn clean(shared: &Shared) {
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

/// Sends SIGKILL to every child listed in `/proc/thread-self/children`
/// (proc_tid_children(5): numbers, each followed by a space).
fn kill_children() {
    let path = c"/proc/thread-self/children".as_ptr().expose_provenance();
    let flags = int(libc::O_RDONLY | libc::O_CLOEXEC);
    let directory = int(libc::AT_FDCWD);
    let file = sys(libc::SYS_openat, [directory, path, flags, 0, 0, 0]);
    if file < 0 {
        return;
    }
    let file = file.cast_unsigned();
    let mut buffer = [0_u8; LIST_BYTES];
    let mut pid = 0_usize;
    loop {
        let slot = std::ptr::from_mut(&mut buffer).expose_provenance();
        let count = sys(libc::SYS_read, [file, slot, LIST_BYTES, 0, 0, 0]);
        if count <= 0 {
            break;
        }
        for byte in buffer.iter().take(count.cast_unsigned()) {
            if byte.is_ascii_digit() {
                let digit = usize::from(byte.wrapping_sub(b'0'));
                pid = pid.wrapping_mul(10).wrapping_add(digit);
            } else {
                if pid > 1 {
                    sys(libc::SYS_kill, [pid, int(libc::SIGKILL), 0, 0, 0, 0]);
                }
                pid = 0;
            }
        }
    }
    sys(libc::SYS_close, [file, 0, 0, 0, 0, 0]);
}
