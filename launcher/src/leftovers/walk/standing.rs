//! What is known of directories when files are found in them. Pure.

use crate::leftovers::file::{FileState, Moment};

/// What is known of a directory when a file is found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::leftovers) enum DirectoryStanding {
    /// It was read before the command started.
    Listed,
    /// It was not; the times of inodes tell.
    Unlisted,
    /// It may have been moved here as it is, so the times of what is in it tell nothing.
    Moved,
    /// It was not there before.
    Fresh,
}

impl DirectoryStanding {
    /// That of a directory that is a repository without being called one: where nobody read
    /// it before, and something in it came or went, it may be one only now, and what lay in it
    /// before was nobody's settings.
    pub(super) fn of_repository(self, touched: Touched) -> Self {
        match self {
            Self::Unlisted if touched == Touched::Yes => Self::Moved,
            standing => standing,
        }
    }
}

/// Whether a directory was changed during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touched {
    Yes,
    No,
}

impl Touched {
    pub(super) fn by(state: FileState, since: Moment) -> Self {
        if state.is_since(since) {
            Self::Yes
        } else {
            Self::No
        }
    }
}
