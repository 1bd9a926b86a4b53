//! The private temporary directory of a run: made before it, removed after it,
//! by the launcher or, when that was killed, by the cleaner.
//!
//! The command may write there, and above it where a grant reaches so far. So the directory
//! is opened once, when it is made: all that is made, written and removed in it goes by that
//! descriptor, whatever its name leads to by then (`private/held.rs`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

mod held;
mod removal;

pub use held::HeldDirectory;

use held::DIRECTORY;
use removal::empty;

/// How long the removal may keep the launcher, some 100,000 files: the cleaner goes on with
/// what is left then.
const REMOVAL_TIME: Duration = Duration::from_secs(2);

/// How long the cleaner may take, beside whatever the user does by then.
const SWEEP_TIME: Duration = Duration::from_mins(10);

/// First argument that makes outgate remove a private directory and nothing else. The
/// directory follows, and what tells it from any other at its path.
pub const SWEEP: &str = "--sweep-private-directory";
/// How every private directory's name starts.
const PREFIX: &str = "outgate-";

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    held: HeldDirectory,
    entry: DirectoryEntry,
    /// When its removal has to be over: counted from its beginning, once for all attempts.
    until: OnceLock<Option<Instant>>,
}

/// Where a directory stands.
#[derive(Debug)]
struct DirectoryEntry {
    parent: OwnedFd,
    name: OsString,
}

/// What is left of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remains {
    Nothing,
    Something,
}

impl PrivateDirectory {
    /// Makes a fresh directory below `parent`, for its owner alone.
    ///
    /// # Errors
    /// Those of mkdir(2): the operator's temporary directory.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let bytes = outgate_sys::process::random()?;
        let name = format!("{PREFIX}{:016x}", u64::from_ne_bytes(bytes));
        let path = parent.join(&name);
        let above = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let parent = open(parent, above, Mode::empty())?;
        mkdirat(&parent, name.as_str(), Mode::S_IRWXU)?;
        let directory = openat(&parent, name.as_str(), DIRECTORY, Mode::empty())?;
        Ok(Self {
            held: HeldDirectory::new(path, directory),
            entry: DirectoryEntry {
                parent,
                name: name.into(),
            },
            until: OnceLock::new(),
        })
    }

    /// Its path, as long as nobody moved it.
    pub fn path(&self) -> &Path {
        self.held.path()
    }

    /// The directory itself.
    pub(crate) fn held(&self) -> &HeldDirectory {
        &self.held
    }

    /// What tells it from any other that stands at its path by then.
    pub(crate) fn identity(&self) -> String {
        fstat(self.held.descriptor()).map_or_else(|_| String::new(), |found| identity(&found))
    }

    /// Removes it as far as it is now, before this is dropped.
    pub(crate) fn clear(&self) {
        self.remove();
    }

    /// Removes it. What takes longer is left to the cleaner, beside; a line says so.
    pub(crate) fn end(self) -> Option<String> {
        if self.remove() == Remains::Nothing {
            return None;
        }
        let path = self.path().display().to_string();
        let what = if sweep_beside(self.path(), &self.identity()).is_ok() {
            "is removed beside"
        } else {
            "stays"
        };
        Some(format!(
            "outgate: what the command left in its temporary directory takes more than {} s to \
             remove: `{path}` {what}",
            REMOVAL_TIME.as_secs()
        ))
    }

    fn remove(&self) -> Remains {
        let until = self
            .until
            .get_or_init(|| Instant::now().checked_add(REMOVAL_TIME));
        remove(self.held.descriptor(), &self.entry, *until)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Starts the cleaner, which outlives this process.
fn sweep_beside(path: &Path, identity: &str) -> io::Result<()> {
    // The inode that runs, whatever its name leads to by then.
    let mut cleaner = Command::new("/proc/self/exe");
    cleaner.arg0("outgate").arg(SWEEP).arg(path).arg(identity);
    cleaner.env_clear().current_dir("/").process_group(0);
    cleaner
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    cleaner.spawn().map(drop)
}

/// Removes a private directory: one of our name, owned by us, and the one that is meant.
pub fn sweep(path: &Path, meant: &OsStr) {
    let until = Instant::now().checked_add(SWEEP_TIME);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let text = name.to_str().unwrap_or_default();
    if !text.starts_with(PREFIX) || text.len() != PREFIX.len().saturating_add(16) {
        return;
    }
    let above = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(parent) = open(parent, above, Mode::empty()) else {
        return;
    };
    let Ok(directory) = openat(&parent, name, DIRECTORY, Mode::empty()) else {
        return;
    };
    let ours = fstat(&directory).is_ok_and(|found| {
        found.st_uid == nix::unistd::geteuid().as_raw() && *identity(&found) == *meant
    });
    if ours {
        let name = name.to_owned();
        remove(&directory, &DirectoryEntry { parent, name }, until);
    }
}

fn identity(found: &FileStat) -> String {
    format!("{:x}:{:x}", found.st_dev, found.st_ino)
}

/// Removes a directory with all that lies below, until then. What stands at its place
/// instead of it stays as it is.
fn remove(directory: &OwnedFd, entry: &DirectoryEntry, until: Option<Instant>) -> Remains {
    let stands = || {
        let there = fstatat(&entry.parent, &*entry.name, AtFlags::AT_SYMLINK_NOFOLLOW);
        match (there, fstat(directory)) {
            (Ok(there), Ok(own)) => identity(&there) == identity(&own),
            // The guardian was faster.
            (Err(Errno::ENOENT), _) | (_, Err(_)) => false,
            (Err(_), Ok(_)) => true,
        }
    };
    let gone =
        || !stands() || unlinkat(&entry.parent, &*entry.name, UnlinkatFlags::RemoveDir).is_ok();
    // One that was moved is emptied all the same.
    if stands() && gone() {
        return Remains::Nothing;
    }
    empty(directory, until, &gone)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn place(directory: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", directory.as_raw_fd())
    }

    /// A chain of directories deeper than any path is long, with something in each.
    fn deep(root: &Path, depth: usize) {
        let mut at = open(root, OFlag::O_PATH, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&at, "below", Mode::from_bits_truncate(0o700)).unwrap();
            std::fs::write(format!("{}/file", place(&at)), "x").unwrap();
            at = openat(&at, "below", OFlag::O_PATH, Mode::empty()).unwrap();
        }
        let closed = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(place(&at), closed).unwrap();
    }

    #[test]
    fn no_depth_is_left_behind_and_no_name_is_in_the_way() {
        let private = PrivateDirectory::create(&std::env::temp_dir()).unwrap();
        let path = private.path().to_owned();
        for number in 0..8 {
            std::fs::create_dir_all(path.join(format!("outgate-{number}/below/below"))).unwrap();
        }
        deep(&path, 2_000);
        let until = Instant::now().checked_add(SWEEP_TIME);
        let left = remove(private.held.descriptor(), &private.entry, until);
        assert_eq!(left, Remains::Nothing);
        assert!(!path.exists());
    }

    #[test]
    fn what_stands_in_its_place_stays() {
        let around = PrivateDirectory::create(&std::env::temp_dir()).unwrap();
        let private = PrivateDirectory::create(around.path()).unwrap();
        let (path, moved) = (private.path().to_owned(), around.path().join("moved"));
        std::fs::write(path.join("file"), "x").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("kept"), "x").unwrap();
        let identity = private.identity();
        sweep(&path, OsStr::new(&identity));
        drop(private);
        assert!(path.join("kept").exists());
        assert!(!moved.join("file").exists());
        let there = identity_of(&path);
        assert_ne!(there, identity);
        sweep(&path, OsStr::new(&there));
        assert!(!path.exists());
    }

    fn identity_of(path: &Path) -> String {
        identity(&nix::sys::stat::stat(path).unwrap())
    }

    #[test]
    fn what_a_link_leads_to_stays_as_it_is() {
        let outside = PrivateDirectory::create(&std::env::temp_dir()).unwrap();
        let kept = outside.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "x").unwrap();
        let mode = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(&kept, mode).unwrap();
        let private = PrivateDirectory::create(&std::env::temp_dir()).unwrap();
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
