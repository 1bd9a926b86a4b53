//! The child between clone and exec: a prepared list of steps, no allocation, no
//! lock, no `errno`, no panic.

use std::sync::atomic::Ordering;

use super::{ChildStep, PipeSignal, ProcessGroup, SharedMemory, address, prctl, sys};
use crate::raw::int;

/// Last capability number tried when the bounding set is emptied; the kernel
/// refuses numbers it does not know.
const CAPABILITIES_MAX: usize = 63;

pub(super) extern "C" fn child(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a `Shared` that lives for ever.
    let shared = unsafe { &*argument.cast::<SharedMemory>() };
    let (step, errno) = match confine(shared) {
        Err((step, errno)) => (step, errno),
        Ok(()) => (ChildStep::Execute, execute(shared)),
    };
    shared.step.store(step as i32, Ordering::Release);
    shared.errno.store(errno, Ordering::Release);
    127
}

fn outcome(step: ChildStep, result: isize) -> Result<(), (ChildStep, i32)> {
    if result < 0 {
        let errno = i32::try_from(result.wrapping_neg()).unwrap_or(libc::EINVAL);
        return Err((step, errno));
    }
    Ok(())
}

/// The prepared steps, in the order in which each is still possible.
fn confine(shared: &SharedMemory) -> Result<(), (ChildStep, i32)> {
    outcome(
        ChildStep::ParentDeath,
        prctl(libc::PR_SET_PDEATHSIG, int(libc::SIGKILL)),
    )?;
    // RACE: a guardian that died before the line above sends no signal.
    let parent = i32::try_from(sys(libc::SYS_getppid, [0; 6])).unwrap_or(-1);
    if parent != shared.guardian.load(Ordering::Acquire) {
        return Err((ChildStep::ParentDeath, libc::ESRCH));
    }
    if shared.group == ProcessGroup::Own {
        outcome(ChildStep::Group, sys(libc::SYS_setpgid, [0; 6]))?;
    }
    for limit in &shared.limits {
        let value = [limit.soft, limit.hard];
        let resource = usize::try_from(limit.resource).unwrap_or(usize::MAX);
        outcome(
            ChildStep::Limit,
            sys(libc::SYS_prlimit64, [0, resource, address(&value), 0, 0, 0]),
        )?;
    }
    if shared.drop_capabilities {
        drop_capabilities()?;
    }
    outcome(
        ChildStep::NoNewPrivileges,
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1),
    )?;
    let ruleset = int(shared.ruleset);
    outcome(
        ChildStep::Landlock,
        sys(libc::SYS_landlock_restrict_self, [ruleset, 0, 0, 0, 0, 0]),
    )?;
    reset_signals(shared);
    let program = libc::sock_fprog {
        len: u16::try_from(shared.filter.len()).unwrap_or(0),
        filter: shared.filter.as_ptr().cast_mut().cast(),
    };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listener = sys(
        libc::SYS_seccomp,
        [
            usize::try_from(libc::SECCOMP_SET_MODE_FILTER).unwrap_or(0),
            usize::try_from(flags).unwrap_or(0),
            address(&program),
            0,
            0,
            0,
        ],
    );
    outcome(ChildStep::Filter, listener)?;
    let listener = i32::try_from(listener).unwrap_or(-1);
    shared.listener.store(listener, Ordering::Release);
    Ok(())
}

/// Empties the bounding, ambient, inheritable, permitted and effective sets
/// (capabilities(7)), so that exec gives none back, not even to root.
fn drop_capabilities() -> Result<(), (ChildStep, i32)> {
    for capability in 0..=CAPABILITIES_MAX {
        let result = prctl(libc::PR_CAPBSET_DROP, capability);
        if result == int(libc::EINVAL).cast_signed().wrapping_neg() && capability > 0 {
            break;
        }
        // Without CAP_SETPCAP the bounding set stays; no_new_privs keeps exec
        // from giving anything back all the same.
        if result == int(libc::EPERM).cast_signed().wrapping_neg() {
            break;
        }
        outcome(ChildStep::Capabilities, result)?;
    }
    let ambient = usize::try_from(libc::PR_CAP_AMBIENT_CLEAR_ALL).unwrap_or(0);
    outcome(
        ChildStep::Capabilities,
        prctl(libc::PR_CAP_AMBIENT, ambient),
    )?;
    // Version 3 header for ourselves, then two empty triples (capset(2)).
    let header = [0x2008_0522_u32, 0];
    let data = [0_u32; 6];
    outcome(
        ChildStep::Capabilities,
        sys(
            libc::SYS_capset,
            [address(&header), address(&data), 0, 0, 0, 0],
        ),
    )
}

/// The command starts with the mask and the SIGPIPE action a program expects.
fn reset_signals(shared: &SharedMemory) {
    // struct kernel_sigaction: handler, no flags, no restorer, no mask.
    let handler = match shared.pipe {
        PipeSignal::Default => libc::SIG_DFL,
        PipeSignal::Ignored => libc::SIG_IGN,
    };
    let action = [handler, 0, 0, 0];
    let pipe = int(libc::SIGPIPE);
    sys(libc::SYS_rt_sigaction, [pipe, address(&action), 0, 8, 0, 0]);
    let mask = address(&shared.mask);
    sys(
        libc::SYS_rt_sigprocmask,
        [int(libc::SIG_SETMASK), mask, 0, 8, 0, 0],
    );
}

/// Tries each path as execvp(3) does; returns the errno that says most.
fn execute(shared: &SharedMemory) -> i32 {
    let environment = shared.environment.as_ptr().expose_provenance();
    let arguments = shared.arguments.as_ptr().expose_provenance();
    let mut best = libc::ENOENT;
    for program in shared.programs.iter().filter(|p| !p.is_null()) {
        let mut result = sys(
            libc::SYS_execve,
            [program.expose_provenance(), arguments, environment, 0, 0, 0],
        );
        if result == int(libc::ENOEXEC).cast_signed().wrapping_neg() {
            let shell = shared.shell_arguments.as_ptr().expose_provenance();
            let path = c"/bin/sh".as_ptr().expose_provenance();
            result = sys(libc::SYS_execve, [path, shell, environment, 0, 0, 0]);
        }
        let errno = i32::try_from(result.wrapping_neg()).unwrap_or(libc::EINVAL);
        match errno {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => best = errno,
            _ => return errno,
        }
    }
    best
}
