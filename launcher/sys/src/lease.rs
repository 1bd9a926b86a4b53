//! Leases on files (fcntl(2), "Leases"): whoever opens a file under a lease waits in
//! open(2) until its holder lets go, and the holder is told by SIGIO.

use std::os::fd::{AsFd, AsRawFd};

use crate::{SysError, check};

/// Takes a write lease on a file that nobody else has open. It ends when the last
/// descriptor of this opening closes; until then every open(2) of the file by others waits,
/// for as long as /proc/sys/fs/lease-break-time says at most, and SIGIO comes to this
/// process: it must be blocked or ignored, since it ends a process otherwise.
///
/// # Errors
/// `EAGAIN` where somebody has the file open; `EACCES` where it is another user's;
/// `EINVAL` and others where its file system has no leases.
pub fn take(file: impl AsFd) -> Result<(), SysError> {
    let number = file.as_fd().as_raw_fd();
    // SAFETY: plain integers; the descriptor is open for the call.
    let result = unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_WRLCK) };
    check(result.into()).map(drop)
}
