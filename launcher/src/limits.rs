//! Bounds that several modules keep.

use std::time::Duration;

/// How long a system call may wait, at most, while calls are served: as many
/// calls as the command makes at once wait for one another.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(1);
