//! The private temporary directory of a run: made before it, removed after it,
//! by the launcher or, when that was killed, by the cleaner.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// First argument that makes outgate remove a private directory and nothing else.
pub const SWEEP: &str = "--sweep-private-directory";
/// How every private directory's name starts.
const PREFIX: &str = "outgate-";

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub struct Private(PathBuf);

impl Private {
    /// Makes a fresh directory below `parent`, for its owner alone.
    ///
    /// # Errors
    /// Those of mkdir(2): the operator's temporary directory.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let bytes = outgate_sys::process::random()?;
        let name = format!("{PREFIX}{:016x}", u64::from_ne_bytes(bytes));
        let path = parent.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a private directory: one of our name, owned by us.
pub fn sweep(path: &Path) {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let ours = std::fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw()
    });
    if ours && name.starts_with(PREFIX) && name.len() == PREFIX.len().saturating_add(16) {
        remove(path);
    }
}

/// Directories the command made unreadable are opened up first.
fn remove(path: &Path) {
    match std::fs::remove_dir(path) {
        Ok(()) => return,
        // The guardian was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(_) => {}
    }
    if std::fs::remove_dir_all(path).is_ok() {
        return;
    }
    open_up(path, 0);
    drop(std::fs::remove_dir_all(path));
}

fn open_up(path: &Path, depth: usize) {
    use std::os::unix::fs::PermissionsExt;
    const DEPTH_MAX: usize = 64;
    if depth > DEPTH_MAX {
        return;
    }
    drop(std::fs::set_permissions(
        path,
        std::fs::Permissions::from_mode(0o700),
    ));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth.saturating_add(1));
        }
    }
}
