//! Limits of the look for leftovers, each with its unit and reason.

use std::time::Duration;

/// Directories read before the command starts, nearest first: the work tree's own and a
/// layer or two below it. The start of a run must not wait for a large tree.
pub(super) const START_DIRECTORIES_MAX: usize = 96;

/// Time for them. What was not reached is judged by the times of its inodes at the end.
pub(super) const START_TIME: Duration = Duration::from_millis(2);

/// The same where all grants lie in memory: a file there may be written through a mapping
/// without a trace in its inode, so what is not noted is not known.
pub(super) const START_TIME_IN_MEMORY: Duration = Duration::from_millis(100);

/// Directories read then.
pub(super) const START_DIRECTORIES_IN_MEMORY_MAX: usize = 8 * 1024;

/// Entries seen before the command starts, for each directory that may be read.
pub(super) const START_ENTRIES_EACH: usize = 96;

/// Entries seen at the end: several large work trees.
pub(super) const END_ENTRIES_MAX: usize = 1_000_000;

/// Directories read at the end.
pub(super) const END_DIRECTORIES_MAX: usize = 200_000;

/// Time for the look at the end.
pub(super) const END_TIME: Duration = Duration::from_secs(1);

/// Directories inside one another: no work tree of people is deeper.
pub(super) const DEPTH_MAX: usize = 64;

/// Files of settings of git that are followed beside those of the table, and of each directories
/// of hooks and programs that settings name: people have a handful.
pub(super) const SETTINGS_MAX: usize = 256;

/// Work trees and repositories from which those may be named: a directory of all that somebody
/// has.
pub(super) const TOPS_MAX: usize = 4096;

/// Words of a file with which Python starts that are looked up as modules.
pub(super) const WORDS_MAX: usize = 256;

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

/// How much longer than its share of a processor a walk may take on a machine that is busy.
pub(super) const BUSY: u32 = 8;
