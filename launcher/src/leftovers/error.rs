//! Why leftovers of a run cannot be shown or put back, in words.

use std::io;
use std::path::PathBuf;

/// Why leftovers cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftoversError {
    /// Nothing was kept of such a run.
    #[error("no run `{run}` left anything behind that is kept in `{directory}`")]
    None {
        /// As the user named it.
        run: String,
        /// Where was looked.
        directory: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("`{path}`")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file is none of ours.
    #[error("`{path}` holds no leftovers, or not all of them")]
    Form {
        /// Which one.
        path: PathBuf,
    },
}
