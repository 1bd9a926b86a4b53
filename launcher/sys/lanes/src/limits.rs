//! How much the searches take at most.

/// Most sets that can be told apart.
pub const SETS_MAX: usize = 16;
