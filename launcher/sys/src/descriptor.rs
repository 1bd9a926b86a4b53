//! Descriptors of this process: which close on exec, and which are open at all.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::{SysError, check};

/// Marks every descriptor from `first` up close-on-exec (close_range(2)).
/// KERNEL: 5.11.
///
/// # Errors
/// `EINVAL` or `ENOSYS` on older kernels.
pub fn close_on_exec_from(first: u32) -> Result<(), SysError> {
    // SAFETY: plain integers; only flags of descriptors change.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    check(result).map(drop)
}

/// Closes every descriptor in `first..=last`.
///
/// # Errors
/// `EINVAL` when the range is empty.
pub fn close_between(first: u32, last: u32) -> Result<(), SysError> {
    // SAFETY: the caller is a freshly forked helper that owns none of these
    // numbers through an `OwnedFd` it will use again.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    check(result).map(drop)
}

/// Opens `/dev/null` on every one of 0, 1, 2 that is closed, so that no later
/// descriptor lands on a standard number.
///
/// # Errors
/// Those of `open(2)`.
pub fn fill_standard() -> Result<(), SysError> {
    for number in 0..=2 {
        // SAFETY: F_GETFD reads a flag of a number, open or not.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            continue;
        }
        // SAFETY: a valid C string; the lowest free number is `number`.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        check(opened.into())?;
    }
    Ok(())
}

/// A standard stream: standard input, output or error, opened when it was closed
/// ([`fill_standard`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// 0.
    Input,
    /// 1.
    Output,
    /// 2.
    Error,
}

impl AsFd for Standard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let number = match self {
            Self::Input => 0,
            Self::Output => 1,
            Self::Error => 2,
        };
        // SAFETY: the standard numbers are owned by nobody and never closed by us.
        unsafe { BorrowedFd::borrow_raw(number) }
    }
}

/// Takes ownership of a descriptor this process inherited under `number`.
/// `None` when it is not open.
pub fn inherited(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: F_GETFD reads a flag of a number, open or not.
    if number < 3 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, above the standard ones, and named by whoever started
    // us as ours; the caller takes it once.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}
