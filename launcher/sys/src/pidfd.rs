//! Descriptors for processes and threads, and copies of their descriptors
//! (pidfd_open(2), pidfd_getfd(2), pidfd_send_signal(2)).

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::{SysError, check};

/// KERNEL: 6.9. The id names a thread, not only a thread group leader.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

fn owned(result: libc::c_long) -> Result<OwnedFd, SysError> {
    let number = check(result)?;
    let number = RawFd::try_from(number).map_err(|_| SysError::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel just returned this descriptor to us and to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A descriptor for the thread `thread`.
///
/// # Errors
/// `ESRCH` when there is none; `EINVAL` before Linux 6.9 for other threads than
/// the leader.
pub fn open_thread(thread: u32) -> Result<OwnedFd, SysError> {
    // SAFETY: plain integers in, a descriptor or an error out.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, thread, PIDFD_THREAD) })
}

/// A descriptor for the process `pid`.
///
/// # Errors
/// `ESRCH` when there is none.
pub fn open(pid: u32) -> Result<OwnedFd, SysError> {
    // SAFETY: plain integers in, a descriptor or an error out.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A copy of descriptor `number` of the process or thread behind `pidfd`,
/// close-on-exec.
///
/// # Errors
/// `EBADF`: no such descriptor there; `EPERM`: we may not trace it; `ESRCH`: it
/// is gone.
pub fn duplicate(pidfd: BorrowedFd<'_>, number: i32) -> Result<OwnedFd, SysError> {
    // SAFETY: plain integers in, a descriptor or an error out.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), number, 0) })
}
