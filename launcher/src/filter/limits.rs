//! The filter's limits, each with its unit and reason.

/// Instructions in a program. The kernel accepts 4096; it translates the
/// program at every start and runs it once per system call number to learn
/// which are always allowed, so length is start-up time. What a call costs is its
/// way through the tree: an allowed one takes at most 13 steps of the 421 that
/// the longest program has.
pub(super) const INSTRUCTIONS_MAX: usize = 528;

/// Spans of call numbers: two per row of the table and some to spare. The
/// compiler stops when there are more.
pub(super) const SPANS_MAX: usize = 320;

/// Instructions the interpreter accepts: what the kernel accepts (`BPF_MAXINSNS`).
pub(super) const INTERPRETED_MAX: usize = 4096;
