//! The guardian's scope for signals (landlock(7), `LANDLOCK_SCOPE_SIGNAL`): a
//! Landlock domain that restricts nothing else. The command's own nests in it.
//!
//! From inside, `kill(-1)` reaches exactly what descends from the guardian, however
//! fast that multiplies: the kernel sends to all of them while it holds the lock
//! that a fork needs, and a fork with SIGKILL pending does not happen
//! (`copy_process`). It never reaches anybody else, whatever the privileges of the
//! two. And the command, in a domain deeper within, cannot signal the guardian.

use super::{ChildStep, SharedMemory, prctl, sys};
use crate::raw::int;

/// `LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF`: signals to all are refused for most,
/// which is no news for the audit log. KERNEL: 6.15.
const LOG_SAME_EXEC_OFF: usize = 1;

/// Proof that the calling process signals nobody but its own descendants.
#[derive(Debug)]
pub(super) struct SignalScope(());

impl SignalScope {
    /// Enters the scope, and proves by the launcher, which is outside, that it holds.
    /// A kernel, or a filter around us, that only says so would let a signal to all
    /// reach every process of the user.
    pub(super) fn enter(shared: &SharedMemory) -> Result<Self, (ChildStep, i32)> {
        let failed = |result: isize| {
            let errno = i32::try_from(result.wrapping_neg()).unwrap_or(libc::EINVAL);
            (ChildStep::Landlock, errno)
        };
        let refused = |errno: i32| int(errno).cast_signed().wrapping_neg();
        let launcher = int(shared.launcher);
        let reachable = || sys(libc::SYS_kill, [launcher, 0, 0, 0, 0, 0]);
        let before = reachable();
        if before != 0 {
            return Err(failed(before));
        }
        let result = prctl(libc::PR_SET_NO_NEW_PRIVS, 1);
        if result < 0 {
            return Err((ChildStep::NoNewPrivileges, failed(result).1));
        }
        let restrict = |flags| {
            let arguments = [int(shared.scope), flags, 0, 0, 0, 0];
            sys(libc::SYS_landlock_restrict_self, arguments)
        };
        let mut result = restrict(LOG_SAME_EXEC_OFF);
        if result == refused(libc::EINVAL) {
            result = restrict(0);
        }
        if result != 0 {
            return Err(failed(result));
        }
        if reachable() != refused(libc::EPERM) {
            return Err((ChildStep::Landlock, libc::EOPNOTSUPP));
        }
        Ok(Self(()))
    }

    /// Sends `signal` to every process of the tree.
    #[expect(clippy::unused_self, reason = "who has one is in the scope")]
    pub(super) fn signal(&self, signal: i32) {
        sys(libc::SYS_kill, [int(-1), int(signal), 0, 0, 0, 0]);
    }
}
