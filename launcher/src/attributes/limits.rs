//! Limits of held calls about attributes and links, each with its unit and reason.

use std::time::Duration;

/// Calls that wait for a thread that performs them. Each is a thread of the
/// command that sleeps; more wait only where a file system does not answer.
pub(super) const CALLS_MAX: usize = 4096;

/// Threads that perform calls. One is enough where file systems answer; each that
/// does not keeps one.
pub(super) const THREADS_MAX: usize = 8;

/// How long a call waits for a thread: so long only where file systems keep all of
/// them.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);

/// Bytes of a performing thread's stack: paths and short calls.
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// Bytes of a path, with its NUL (`PATH_MAX`).
pub(super) const PATH_BYTES: usize = 4096;

/// Bytes of an extended attribute's name, with its NUL (`XATTR_NAME_MAX`).
pub(super) const NAME_BYTES: usize = 256;

/// Bytes of an extended attribute's value (`XATTR_SIZE_MAX`).
pub(super) const VALUE_BYTES_MAX: usize = 65536;

/// Bytes of what the kernel says of a descriptor, up to its flags and its inode
/// (proc_pid_fdinfo(5)).
pub(super) const DESCRIPTOR_BYTES: usize = 256;

/// How often a path with `..` is resolved that cannot be while files are renamed,
/// in count, as for Unix sockets.
pub(super) const RESOLVE_TRIES: u32 = 64;
