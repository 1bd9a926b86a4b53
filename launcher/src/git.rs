//! What git needs to work in a run: the user's settings without credentials, and
//! the directories of the repository that the working directory belongs to. Files
//! are read as git reads them; git itself is never run, and nothing that a command
//! could have written decides what the next one may reach.

mod harmless;
pub(crate) mod limits;
mod settings;
mod sources;
pub(crate) mod syntax;
mod tree;

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

pub use harmless::Suspect;
pub use settings::GitSettings;
pub(crate) use sources::{of_hosts, of_settings, of_tree, said};
pub(crate) use tree::is_looked_at;
pub use tree::{GitAccess, GitPlace, WorkTree};

/// The text of a regular file within its bound; a pipe that somebody left there holds up
/// nobody.
pub(crate) fn read_file(path: &Path) -> Option<String> {
    read_text(path, limits::FILE_BYTES_MAX)
}

pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Option<String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = file
        .take(bytes_max.saturating_add(1))
        .read_to_string(&mut text);
    let bytes = u64::try_from(read.ok()?).ok()?;
    (bytes <= bytes_max).then_some(text)
}
