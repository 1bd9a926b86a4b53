//! How much of what a gateway needs the machine has left: space for its record, and open
//! files. Looks, and changes nothing.

use std::io;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;

/// Bytes that this user may still write on the file system of `path`.
///
/// # Errors
/// Nothing is there, or nobody may look.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let about = statvfs(path)?;
    Ok(about
        .blocks_available()
        .saturating_mul(about.fragment_size()))
}

/// How many files a process may have open that asks for all it may.
pub fn open_files_max() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(_, hard)| hard)
}
