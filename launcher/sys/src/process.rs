//! This process and its helpers: attributes, forks, namespaces, signals.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::{SysError, check, last_error};

/// Hides this process from tracers and `/proc` readers of the same user
/// (PR_SET_DUMPABLE(2const)).
///
/// # Errors
/// None on kernels that exist; kept for the caller to report.
pub fn hide() -> Result<(), SysError> {
    // SAFETY: plain integers; changes an attribute of this process.
    let result = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    check(result.into()).map(drop)
}

/// Makes orphans of our descendants our children (PR_SET_CHILD_SUBREAPER(2const)).
///
/// # Errors
/// `EINVAL` before Linux 3.4.
pub fn adopt_orphans() -> Result<(), SysError> {
    // SAFETY: plain integers; changes an attribute of this process.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    check(result.into()).map(drop)
}

/// Helpers that nobody waited for yet. One that finds no room is waited for by whoever
/// comes after this process.
static HELPERS: [AtomicI32; HELPERS_MAX] = [const { AtomicI32::new(0) }; HELPERS_MAX];

/// Helpers at one time: those of the sealed network, of looks at paths, and of attempts.
const HELPERS_MAX: usize = 16;

/// Waits for helpers that have ended: they would stay dead processes as long as this one
/// lives. To be called when a child has changed its state.
pub fn reap_helpers() {
    for slot in &HELPERS {
        let pid = slot.load(Ordering::Acquire);
        // SAFETY: plain integers and a null status, which the call allows. A number that
        // stands here was not waited for, so it is a child's of ours.
        let ended = pid > 0
            && unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG | libc::__WALL) }
                != 0;
        if ended {
            slot.store(0, Ordering::Release);
        }
    }
}

/// Ends all helpers, and waits for each no longer than that: one whose thread waits in the
/// kernel, for a file system that does not answer, is left to whoever comes after.
pub fn end_helpers(wait: Duration) {
    // What is left after this is a child of ours, whose number is its own.
    reap_helpers();
    for slot in &HELPERS {
        let pid = slot.load(Ordering::Acquire);
        let Ok(number) = u32::try_from(pid) else {
            continue;
        };
        if number == 0 {
            continue;
        }
        // SAFETY: plain integers; a child of ours that was not waited for yet.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        if let Ok(process) = crate::pidfd::open(number) {
            let mut polled = libc::pollfd {
                fd: process.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let millis = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
            // SAFETY: one live entry, as said.
            unsafe { libc::poll(&raw mut polled, 1, millis) };
        }
    }
    reap_helpers();
}

/// Forks a helper that runs `body` and exits with what it returns.
///
/// The copy has this thread alone: locks that another one holds stay locked in
/// it. Those of the C library (malloc's) are free in it, and `body` must not need
/// any other that another thread may hold.
///
/// # Errors
/// `EAGAIN` or `ENOMEM` when there is no room for a process.
pub fn fork_helper(body: impl FnOnce() -> i32) -> Result<i32, SysError> {
    // SAFETY: the copy needs no lock that another thread holds, as the contract
    // demands.
    let pid = unsafe { libc::fork() };
    check(pid.into())?;
    if pid == 0 {
        // SAFETY: plain integers. A helper must not outlive us.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        let status = body();
        // SAFETY: ends this process without running the parent's destructors.
        unsafe { libc::_exit(status) };
    }
    for slot in &HELPERS {
        let free = slot.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Relaxed);
        if free.is_ok() {
            break;
        }
    }
    Ok(pid)
}

/// Which namespaces a helper makes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// A user namespace and a network namespace owned by it.
    UserAndNetwork,
    /// A network namespace only; needs `CAP_SYS_ADMIN`.
    Network,
}

/// Moves this process into new namespaces (unshare(2)).
///
/// # Errors
/// `EPERM` or `ENOSPC` where user namespaces are forbidden or used up.
pub fn leave_namespaces(namespaces: Namespaces) -> Result<(), SysError> {
    let flags = match namespaces {
        Namespaces::UserAndNetwork => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
        Namespaces::Network => libc::CLONE_NEWNET,
    };
    // SAFETY: plain integers; changes this process only.
    let result = unsafe { libc::unshare(flags) };
    check(result.into()).map(drop)
}

/// The Landlock ABI of this kernel (landlock_create_ruleset(2)); 0 = none.
pub fn landlock_abi() -> i32 {
    // SAFETY: a null ruleset with the version flag only asks for a number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0,
            1,
        )
    };
    i32::try_from(result).unwrap_or(0).max(0)
}

/// Eight random bytes (getrandom(2)).
///
/// # Errors
/// `ENOSYS` before Linux 3.17.
pub fn random() -> Result<[u8; 8], SysError> {
    let mut bytes = [0_u8; 8];
    // SAFETY: the buffer is live and as long as said. Up to 256 bytes come whole.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) == Ok(bytes.len()) {
        Ok(bytes)
    } else {
        Err(last_error())
    }
}

/// Sends a signal to the process behind `pidfd` (pidfd_send_signal(2)).
///
/// # Errors
/// `ESRCH` when it is gone.
pub fn signal(pidfd: BorrowedFd<'_>, signal: i32) -> Result<(), SysError> {
    // SAFETY: plain integers and a null info pointer, which the call allows.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::c_void>(),
            0,
        )
    };
    check(result).map(drop)
}

/// Has the ends of children be told, whoever started this program: where `SIGCHLD` is ignored,
/// which execve(2) hands on, the kernel forgets how they ended (wait(2), NOTES).
///
/// # Errors
/// None that a valid call can have.
pub fn hear_of_children() -> Result<(), SysError> {
    // SAFETY: the default action runs nothing of ours.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    check(if before == libc::SIG_ERR { -1 } else { 0 })?;
    Ok(())
}

/// The calling thread's signal mask, as the kernel keeps it.
///
/// # Errors
/// None that a valid call can have.
pub fn signal_mask() -> Result<crate::spawn::SignalMask, SysError> {
    let mut mask = 0_u64;
    // SAFETY: reads the current mask into a live u64, the kernel's sigset size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            std::ptr::null::<u64>(),
            &raw mut mask,
            8,
        )
    };
    check(result)?;
    Ok(crate::spawn::SignalMask(mask))
}

/// Whether this thread holds any capability, permitted or inheritable, or could
/// gain them by being root (capget(2)).
///
/// # Errors
/// None that a valid call can have.
pub fn has_capabilities() -> Result<bool, SysError> {
    // Version 3 header for ourselves; two triples of effective, permitted,
    // inheritable.
    let mut header = [0x2008_0522_u32, 0];
    let mut data = [0_u32; CAPABILITY_WORDS];
    // SAFETY: both arrays are live and of the sizes version 3 asks for.
    let result = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), data.as_mut_ptr()) };
    check(result)?;
    // SAFETY: reads the effective user id; cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    Ok(root || data.iter().any(|word| *word != 0))
}

/// Whether this thread may make network namespaces without a user namespace: it has
/// `CAP_SYS_ADMIN` (unshare(2)).
///
/// # Errors
/// None that a valid call can have.
pub fn may_make_networks() -> Result<bool, SysError> {
    // linux/capability.h
    const SYS_ADMIN: u32 = 21;
    let mut header = [0x2008_0522_u32, 0];
    let mut data = [0_u32; CAPABILITY_WORDS];
    // SAFETY: both arrays are live and of the sizes version 3 asks for.
    let result = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), data.as_mut_ptr()) };
    check(result)?;
    let [effective, ..] = data;
    Ok(effective >> SYS_ADMIN & 1 == 1)
}

/// Gives up every capability of this thread for good, so that the kernel asks of
/// it what it would ask of a command (capset(2)).
///
/// # Errors
/// None that a valid call can have.
pub fn give_up_capabilities() -> Result<(), SysError> {
    set_capabilities(&[0; CAPABILITY_WORDS])
}

/// What capabilities a thread has, for a thread that does some things without them.
#[derive(Debug)]
pub struct Powers(Option<[u32; CAPABILITY_WORDS]>);

/// Effective, permitted and inheritable ones, twice (capget(2), version 3).
const CAPABILITY_WORDS: usize = 6;

impl Powers {
    /// Those of this thread, for this thread.
    ///
    /// # Errors
    /// None that a valid call can have.
    pub fn here() -> Result<Self, SysError> {
        let mut header = [0x2008_0522_u32, 0];
        let mut data = [0_u32; CAPABILITY_WORDS];
        // SAFETY: both arrays are live and of the sizes version 3 asks for.
        let result =
            unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), data.as_mut_ptr()) };
        check(result)?;
        let is_powerful = powerless(data) != data;
        Ok(Self(is_powerful.then_some(data)))
    }

    /// Acts without them, so that the kernel asks what it would ask of a command. They come
    /// back afterwards; a thread that does not get them back goes on without.
    ///
    /// # Errors
    /// `ENOMEM`: nothing was done, or the thread did not get them back.
    pub fn set_aside<T>(&self, act: impl FnOnce() -> T) -> Result<T, SysError> {
        let Some(own) = self.0 else {
            return Ok(act());
        };
        set_capabilities(&powerless(own))?;
        let done = act();
        set_capabilities(&own).map(|()| done)
    }
}

/// The same without those that are effective.
fn powerless(mut data: [u32; CAPABILITY_WORDS]) -> [u32; CAPABILITY_WORDS] {
    let [effective, _, _, further, _, _] = &mut data;
    (*effective, *further) = (0, 0);
    data
}

/// Sets those of this thread (capset(2)).
fn set_capabilities(data: &[u32; CAPABILITY_WORDS]) -> Result<(), SysError> {
    let mut header = [0x2008_0522_u32, 0];
    // SAFETY: both arrays are live and of the sizes version 3 asks for.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), data.as_ptr()) };
    check(result).map(drop)
}

/// Ends the guardian of a run that is over, and waits for it. One that was
/// waited for already is left alone: its number may be another's by now.
pub fn end_guardian(guardian: i32) {
    if guardian <= 1 {
        return;
    }
    // SAFETY: plain integers and a null status, which the call allows.
    let waited = unsafe { libc::waitpid(guardian, std::ptr::null_mut(), libc::WNOHANG) };
    if waited == 0 {
        // SAFETY: plain integers; a child of ours that was not waited for yet.
        unsafe { libc::kill(guardian, libc::SIGKILL) };
        // SAFETY: plain integers and a null status, which the call allows.
        unsafe { libc::waitpid(guardian, std::ptr::null_mut(), 0) };
    }
}
