//! Bounds that several modules keep.

use std::time::Duration;

/// How long a system call may wait, at most, while calls are served: as many
/// calls as the command makes at once wait for one another.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(1);

/// Links on one way at most, as the kernel has it (path_resolution(7)).
pub(crate) const LINKS_MAX: usize = 40;

/// Files and presets of one run at most, those extended included.
pub(crate) const DOCUMENTS_MAX: usize = 64;

/// Bytes of the largest address the kernel takes (`struct sockaddr_storage`).
pub(crate) const SOCKADDR_BYTES_MAX: usize = 128;

/// Processes of a run that are asked for their group, at most, where the process of the group's
/// number is gone.
pub(crate) const MEMBERS_MAX: usize = 4096;

/// Rules that are granted at once, at most.
pub(crate) const GRANTS_MAX: usize = 64;
