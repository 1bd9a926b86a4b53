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

/// `struct pidfd_info` as of Linux 6.13: 64 bytes (linux/pidfd.h).
#[repr(C)]
struct Info {
    mask: u64,
    control_group: u64,
    pid: u32,
    group: u32,
    parent: u32,
    identities: [u32; 8],
    spare: u32,
}

/// `PIDFD_GET_INFO`: `_IOWR(0xff, 11, struct pidfd_info)`.
const GET_INFO: libc::c_ulong = 0xc040_ff0b;

/// Process id of the parent of the process or thread behind `pidfd`. KERNEL: 6.13.
///
/// # Errors
/// `ENOTTY` or `EINVAL` before; `ESRCH`: it is gone.
pub fn parent(pidfd: BorrowedFd<'_>) -> Result<u32, SysError> {
    // The process ids are asked for by their bit, and always given.
    let mut info = Info {
        mask: 1,
        control_group: 0,
        pid: 0,
        group: 0,
        parent: 0,
        identities: [0; 8],
        spare: 0,
    };
    // SAFETY: the struct is live, writable and of the size the number states.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    check(result.into())?;
    Ok(info.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn a_process_has_the_parent_that_proc_says() {
        let own = open_thread(std::process::id()).unwrap();
        match parent(own.as_fd()) {
            Ok(parent) => assert_eq!(parent, std::os::unix::process::parent_id()),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)),
                "{error}"
            ),
        }
    }
}
