//! The private temporary directory of a run: made before it, removed after it,
//! by the launcher or, when that was killed, by the cleaner.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// How long the removal may keep the launcher, about a million files: what is left
/// then stays.
const REMOVAL_TIME: Duration = Duration::from_secs(20);

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

    /// Removes it as far as it is now, before this is dropped.
    pub(crate) fn clear(&self) {
        remove(&self.0);
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

/// Directories the command made unreadable are opened up; those it made deep are
/// moved up, so that no depth takes more than two of them open at once.
fn remove(path: &Path) {
    match std::fs::remove_dir(path) {
        Ok(()) => return,
        // The guardian was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(_) => {}
    }
    let until = Instant::now().checked_add(REMOVAL_TIME);
    if let Ok(root) = open(path, DIRECTORY, Mode::empty()) {
        open_up(&root);
        let mut removal = Removal {
            root,
            moved: 0,
            until,
        };
        loop {
            match removal.pass() {
                Progress::All if std::fs::remove_dir(path).is_ok() => return,
                Progress::Some | Progress::All => {}
                Progress::None => break,
            }
        }
    }
    drop(std::fs::remove_dir(path));
}

/// How directories are opened: to be named, never through a link.
const DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// The removal of a tree.
struct Removal {
    root: OwnedFd,
    moved: u64,
    until: Option<Instant>,
}

/// Whether a pass did anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Some,
    /// And nothing is left of what was there.
    All,
    None,
}

impl Removal {
    /// Removes what lies in the root; what lies below its directories comes up.
    fn pass(&mut self) -> Progress {
        let (mut removed, mut left) = (false, false);
        for (name, kind) in entries(&self.root) {
            if self.until.is_none_or(|until| Instant::now() >= until) {
                return Progress::None;
            }
            let gone = gone(&self.root, &name, kind) || {
                self.empty(&name);
                gone(&self.root, &name, kind)
            };
            removed |= gone;
            left |= !gone;
        }
        match (removed, left || self.moved > 0) {
            (false, _) => Progress::None,
            (true, true) => Progress::Some,
            (true, false) => Progress::All,
        }
    }

    /// Empties a directory in the root.
    fn empty(&mut self, name: &OsStr) {
        let Ok(directory) = openat(&self.root, name, DIRECTORY, Mode::empty()) else {
            return;
        };
        open_up(&directory);
        for (name, kind) in entries(&directory) {
            if self.until.is_none_or(|until| Instant::now() >= until) {
                return;
            }
            if gone(&directory, &name, kind) {
                continue;
            }
            // To be moved, a directory has to be writable itself.
            if let Ok(below) = openat(&directory, &*name, DIRECTORY, Mode::empty()) {
                open_up(&below);
            }
            self.moved = self.moved.saturating_add(1);
            let up = format!("{PREFIX}{}", self.moved);
            let _ = renameat(&directory, &*name, &self.root, up.as_str());
        }
    }
}

/// What an entry of a directory was when that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    Other,
}

/// Removes a name that is no directory, or an empty one.
fn gone(directory: &OwnedFd, name: &OsStr, kind: Kind) -> bool {
    let remove = |flag| unlinkat(directory, name, flag).is_ok();
    let (first, then) = match kind {
        Kind::Directory => (UnlinkatFlags::RemoveDir, UnlinkatFlags::NoRemoveDir),
        Kind::Other => (UnlinkatFlags::NoRemoveDir, UnlinkatFlags::RemoveDir),
    };
    remove(first) || remove(then)
}

/// Names in a directory, as far as it can be read.
fn entries(directory: &OwnedFd) -> impl Iterator<Item = (OsString, Kind)> + use<> {
    let entries = std::fs::read_dir(place(directory)).into_iter();
    entries.flatten().flatten().map(|entry| {
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() => Kind::Directory,
            _ => Kind::Other,
        };
        (entry.file_name(), kind)
    })
}

fn open_up(directory: &OwnedFd) {
    let is_open = |mode: u32| mode & Mode::S_IRWXU.bits() == Mode::S_IRWXU.bits();
    if fstat(directory).is_ok_and(|found| is_open(found.st_mode)) {
        return;
    }
    let permissions = std::fs::Permissions::from_mode(0o700);
    drop(std::fs::set_permissions(place(directory), permissions));
}

/// Where this process finds what it has open, whatever lies at its name by now.
fn place(directory: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", directory.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of directories deeper than any path is long, with something in each.
    fn deep(root: &Path, depth: usize) {
        let mut at = open(root, OFlag::O_PATH, Mode::empty()).unwrap();
        for _ in 0..depth {
            nix::sys::stat::mkdirat(&at, "below", Mode::from_bits_truncate(0o700)).unwrap();
            std::fs::write(format!("{}/file", place(&at)), "x").unwrap();
            at = openat(&at, "below", OFlag::O_PATH, Mode::empty()).unwrap();
        }
        let closed = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(place(&at), closed).unwrap();
    }

    #[test]
    fn no_depth_is_left_behind() {
        let private = Private::create(&std::env::temp_dir()).unwrap();
        let path = private.path().to_owned();
        deep(&path, 2_000);
        drop(private);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_link_leads_to_stays_as_it_is() {
        let outside = Private::create(&std::env::temp_dir()).unwrap();
        let kept = outside.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "x").unwrap();
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(&kept, mode).unwrap();
        let private = Private::create(&std::env::temp_dir()).unwrap();
        let closed = private.path().join("closed");
        std::fs::create_dir_all(closed.join("below")).unwrap();
        std::os::unix::fs::symlink(&kept, private.path().join("link")).unwrap();
        std::os::unix::fs::symlink(&kept, closed.join("below/link")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(&closed, mode).unwrap();
        let path = private.path().to_owned();
        drop(private);
        assert!(!path.exists());
        assert!(kept.join("file").exists());
        assert_eq!(kept.metadata().unwrap().mode() & 0o777, 0o750);
    }
}
