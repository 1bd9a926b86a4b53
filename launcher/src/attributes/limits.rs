//! Limits of held calls that change attributes, each with its unit and reason.

/// Calls that wait for the thread that performs them. Each is a thread of the
/// command that sleeps; more wait only where a file system does not answer.
pub(super) const CALLS_MAX: usize = 512;

/// Bytes of the performing thread's stack: paths and short calls.
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// Bytes of a path, with its NUL (`PATH_MAX`).
pub(super) const PATH_BYTES: usize = 4096;

/// Bytes of an extended attribute's name, with its NUL (`XATTR_NAME_MAX`).
pub(super) const NAME_BYTES: usize = 256;

/// Bytes of an extended attribute's value (`XATTR_SIZE_MAX`).
pub(super) const VALUE_BYTES_MAX: usize = 65536;

/// How often a path with `..` is resolved that cannot be while files are renamed,
/// in count, as for Unix sockets.
pub(super) const RESOLVE_TRIES: u32 = 64;
