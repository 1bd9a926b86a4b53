//! Extended attributes of a file (xattr(7)).

use std::ffi::CStr;

use crate::{SysError, check};

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

/// Removes an extended attribute of what `path` leads to (removexattr(2)).
///
/// # Errors
/// As the kernel says: `ENOTSUP`, `EPERM`, `ENODATA` and others.
pub fn remove(path: &CStr, name: &CStr) -> Result<(), SysError> {
    // SAFETY: both strings end with NUL and live.
    let result = unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) };
    check(result.into()).map(drop)
}
