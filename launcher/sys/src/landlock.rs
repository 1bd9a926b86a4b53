//! Rules of a Landlock ruleset that another crate made (landlock_add_rule(2)).
//! One call for each path, and its own errno: what exactly the kernel refused.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::{SysError, check};

/// `LANDLOCK_SCOPE_SIGNAL`. KERNEL: 6.12.
const SCOPE_SIGNAL: u64 = 2;

/// `LANDLOCK_ACCESS_FS_REFER`: the one access that a ruleset refuses although it does
/// not handle it (landlock(7)). KERNEL: 5.19.
const REFER: u64 = 1 << 13;

/// `struct landlock_ruleset_attr` as of ABI 6.
#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

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

/// A ruleset that restricts nothing but signals: whoever enforces it, and what
/// descends from it, signals nobody else (landlock_create_ruleset(2)). Files are
/// moved and linked between directories as ever.
///
/// # Errors
/// `E2BIG` before ABI 6; `EOPNOTSUPP` or `ENOSYS` without Landlock; those of opening
/// the root directory.
pub fn signal_scope() -> Result<OwnedFd, SysError> {
    let attributes = RulesetAttributes {
        handled_access_fs: REFER,
        handled_access_net: 0,
        scoped: SCOPE_SIGNAL,
    };
    // SAFETY: the struct is live and as long as said; the kernel only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size_of::<RulesetAttributes>(),
            0,
        )
    };
    let number =
        RawFd::try_from(check(result)?).map_err(|_| SysError::from_raw_os_error(libc::EBADF))?;
    // SAFETY: the kernel just returned this descriptor to us and to nobody else.
    let ruleset = unsafe { OwnedFd::from_raw_fd(number) };
    let root = std::fs::File::open("/")?;
    grant_path(ruleset.as_fd(), root.as_fd(), REFER)?;
    Ok(ruleset)
}
