//! Attributes of a file: extended ones (xattr(7)), and which inode it is (statx(2)).

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{SysError, check, last_error};

/// Sets an extended attribute of what `path` leads to (setxattr(2)).
///
/// # Errors
/// As the kernel says: `ENOTSUP`, `EPERM`, `EEXIST`, `ENODATA` and others.
pub fn set(path: &CStr, name: &CStr, value: &[u8], flags: i32) -> Result<(), SysError> {
    // SAFETY: both strings end with NUL and live, the value is as long as said.
    let result = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            flags,
        )
    };
    check(result.into()).map(drop)
}

/// Copies an extended attribute of what `path` leads to into `room`, and returns its
/// bytes; without room, how many there are (getxattr(2)).
///
/// # Errors
/// As the kernel says: `ENODATA`, `ERANGE`, `ENOTSUP` and others.
pub fn get(path: &CStr, name: &CStr, room: &mut [u8]) -> Result<usize, SysError> {
    // SAFETY: both strings end with NUL and live, the room is as large as said.
    let count = unsafe {
        libc::getxattr(
            path.as_ptr(),
            name.as_ptr(),
            room.as_mut_ptr().cast(),
            room.len(),
        )
    };
    usize::try_from(count).map_err(|_| last_error())
}

/// Copies the names of the extended attributes of what `path` leads to into `room`,
/// as [`get`] does a value (listxattr(2)).
///
/// # Errors
/// As the kernel says: `ERANGE`, `ENOTSUP` and others.
pub fn list(path: &CStr, room: &mut [u8]) -> Result<usize, SysError> {
    // SAFETY: the string ends with NUL and lives, the room is as large as said.
    let count = unsafe { libc::listxattr(path.as_ptr(), room.as_mut_ptr().cast(), room.len()) };
    usize::try_from(count).map_err(|_| last_error())
}

/// Removes an extended attribute of what `path` leads to (removexattr(2)).
///
/// # Errors
/// As the kernel says: `ENOTSUP`, `EPERM`, `ENODATA` and others.
pub fn remove(path: &CStr, name: &CStr) -> Result<(), SysError> {
    // SAFETY: both strings end with NUL and live.
    let result = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
    check(result.into()).map(drop)
}

/// Which inode a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatInode {
    /// Its type and mode.
    pub mode: u32,
    /// Number of its device.
    pub device: u64,
    /// Its own number.
    pub number: u64,
}

/// Which inode `file` leads to, as this machine knows it: a file system that asks
/// another process, or another machine, is not asked (`AT_STATX_DONT_SYNC`).
///
/// # Errors
/// As the kernel says: `EBADF`, `ENOMEM`.
pub fn inode(file: BorrowedFd<'_>) -> Result<StatInode, SysError> {
    // SAFETY: all-zero bytes are a valid value of this plain struct.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is empty and static, the struct live and writable.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
            libc::STATX_TYPE | libc::STATX_MODE | libc::STATX_INO,
            &raw mut stat,
        )
    };
    check(result.into())?;
    Ok(StatInode {
        mode: stat.stx_mode.into(),
        device: libc::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        number: stat.stx_ino,
    })
}
