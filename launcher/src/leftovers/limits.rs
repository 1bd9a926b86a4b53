//! Limits of the look for leftovers, each with its unit and reason.

use std::time::Duration;

/// Directories read before the command starts, nearest first: the work tree's own and a
/// layer or two below it. The start of a run must not wait for a large tree.
pub(super) const START_DIRECTORIES_MAX: usize = 96;

/// Time for them. What was not reached is judged by the times of its inodes at the end.
pub(super) const START_TIME: Duration = Duration::from_millis(2);

/// Entries of directories seen before the command starts.
pub(super) const START_ENTRIES_MAX: usize = 8 * 1024;

/// Entries seen at the end: several large work trees.
pub(super) const END_ENTRIES_MAX: usize = 1_000_000;

/// Directories read at the end.
pub(super) const END_DIRECTORIES_MAX: usize = 200_000;

/// Time for the look at the end.
pub(super) const END_TIME: Duration = Duration::from_secs(1);

/// Directories inside one another: no work tree of people is deeper.
pub(super) const DEPTH_MAX: usize = 64;

/// Bytes of one file that are read: settings are smaller by far.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of all files together that are kept in memory while the command runs.
pub(super) const START_BYTES_MAX: u64 = 4 << 20;

/// Files whose content is kept while the command runs.
pub(super) const START_FILES_MAX: usize = 512;

/// Bytes of all files together that are read at the end.
pub(super) const END_BYTES_MAX: u64 = 64 << 20;

/// Leftovers of one run that are told and recorded: beyond, there is a flood, and the look
/// counts as incomplete.
pub(super) const LEFTOVERS_MAX: usize = 256;

/// Lines told at the end of a run.
pub(super) const LINES_MAX: usize = 5;

/// Bytes of a path in a line.
pub(super) const SHOWN_BYTES_MAX: usize = 160;

/// Values inside one another in a JSON document.
pub(super) const JSON_DEPTH_MAX: usize = 64;

/// Bytes of the file in which leftovers of a run are kept.
pub(super) const KEPT_BYTES_MAX: u64 = 160 << 20;

/// Runs whose leftovers are kept, as many as records of runs.
pub(super) const KEPT_RUNS_MAX: usize = 64;

/// Lines of one file that are compared line by line.
pub(super) const DIFF_LINES_MAX: usize = 2000;

/// Lines of one difference that are shown.
pub(super) const DIFF_SHOWN_MAX: usize = 400;
