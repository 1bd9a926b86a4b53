//! Rules of a Landlock ruleset that another crate made (landlock_add_rule(2)).
//! One call for each path, and its own errno: what exactly the kernel refused.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{SysError, check};

/// `LANDLOCK_RULE_PATH_BENEATH`.
const PATH_BENEATH: libc::c_int = 1;

/// `struct landlock_path_beneath_attr`: twelve bytes, without padding.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Grants `accesses` (bits of `LANDLOCK_ACCESS_FS_*`) to `object` and all below.
///
/// # Errors
/// `EINVAL`: accesses that only directories have, for something else, or that
/// the ruleset does not handle. `EBADFD`: an object no directory holds, such as
/// a pipe or a socket.
pub fn grant_path(
    ruleset: BorrowedFd<'_>,
    object: BorrowedFd<'_>,
    accesses: u64,
) -> Result<(), SysError> {
    let rule = PathBeneath {
        allowed_access: accesses,
        parent_fd: object.as_raw_fd(),
    };
    // SAFETY: the struct is live and of the shape this kind of rule takes; the
    // kernel only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0,
        )
    };
    check(result).map(drop)
}
