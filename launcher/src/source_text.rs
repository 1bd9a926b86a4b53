//! The text of a policy file, and why it cannot be had.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::limits::DOCUMENTS_MAX;
use outgate_policy::{ClientError, PolicyErrors, preset_meant, preset_names};

/// Bytes of one policy file at most.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The text of a regular file, of `FILE_BYTES_MAX` bytes at most, never waited for: a command
/// may have left a pipe or a device there.
///
/// # Errors
/// It cannot be read, is no regular file, or has more bytes.
pub fn regular(path: &Path) -> io::Result<String> {
    let large = || odd(&format!("it is larger than {FILE_BYTES_MAX} bytes"));
    let file = opened(path, OFlag::empty())?;
    text(bounded(file)?.ok_or_else(large)?)
}

/// Opens a regular file, also by further flags, and waits for nobody.
///
/// # Errors
/// It cannot be opened, or is no regular file.
pub(crate) fn opened(path: &Path, further: OFlag) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | further;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(odd("it is no regular file"))
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what.to_owned())
}

/// Why a policy text cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyTextError {
    /// A file cannot be read: whoever named it.
    #[error("policy file `{path}`")]
    File {
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A project's own file cannot be read: whoever made it.
    #[error("the project's policy file `{path}` (to go without it: --no-project)")]
    Project {
        /// The path.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is too large.
    #[error("policy file `{path}` is larger than {FILE_BYTES_MAX} bytes")]
    Large {
        /// The path.
        path: String,
    },
    /// No such preset.
    #[error("there is no shipped policy `{name}`{}", meant(name))]
    Preset {
        /// The name.
        name: String,
    },
    /// A client's configuration names no registries to allow.
    #[error("{place}: {error}")]
    Client {
        /// The preset.
        place: String,
        /// What is missing or wrong.
        error: ClientError,
    },
    /// Too many documents.
    #[error("more than {DOCUMENTS_MAX} policy documents extend one another")]
    Many,
    /// More text than a session takes: whoever wrote it.
    #[error("the policy has {what}, more than {max}")]
    Total {
        /// What there is too much of, counted.
        what: String,
        /// The limit, in the same unit.
        max: usize,
    },
    /// A document's `extends` cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
}

/// Which shipped policy a name may stand for, in words.
fn meant(name: &str) -> String {
    match preset_meant(name) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => format!("; there are: {}", preset_names().join(", ")),
    }
}

/// The bytes of a file, or `None` when there are more than the limit. What is
/// read counts: pipes and devices have no size of their own.
pub(crate) fn bounded(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = file
        .take(FILE_BYTES_MAX.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(u64::try_from(read)
        .is_ok_and(|read| read <= FILE_BYTES_MAX)
        .then_some(bytes))
}

/// Bytes of a file as text.
pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into())
}
