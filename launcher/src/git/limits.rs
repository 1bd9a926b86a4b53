//! Limits of what is read of git's files, each with its unit and reason.

/// Bytes of one configuration file: those of people have a few KiB.
pub(crate) const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Files that include one another, in count.
pub(crate) const FILES_MAX: usize = 32;

/// How deep they may include one another, in files: git's own limit (config.c,
/// `MAX_INCLUDE_DEPTH`).
pub(crate) const INCLUDE_DEPTH_MAX: usize = 10;

/// Entries of one file, in count.
pub(crate) const ENTRIES_MAX: usize = 4096;

/// Bytes of one value or subsection: aliases of people are scripts of some KiB.
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a `.git` file, a `gitdir` or a `commondir`: a path with a word before it
/// (PATH_MAX).
pub(crate) const LINK_BYTES_MAX: u64 = 4096 + 16;

/// Directories looked into on the way up from the working directory.
pub(crate) const DEPTH_MAX: usize = 64;

/// Entries of one directory above the working directory that are looked at for files of
/// secrets: beyond, the directory is not granted.
pub(crate) const NEIGHBOURS_MAX: usize = 4096;
