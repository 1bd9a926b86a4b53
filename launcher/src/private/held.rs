//! A directory that is opened once, and what is made in it: by its descriptor, one name after
//! the other, through no link. Where a command may write, a path leads anywhere by the time
//! that somebody walks it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// How directories are opened: to be named, never through a link.
pub(super) const DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// How files are made: where there is nothing.
const NEW_FILE: OFlag = OFlag::O_RDWR
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// An open directory, and what it was called then.
#[derive(Debug, Clone)]
pub struct HeldDirectory {
    path: PathBuf,
    directory: Arc<OwnedFd>,
}

impl HeldDirectory {
    pub(super) fn new(path: PathBuf, directory: OwnedFd) -> Self {
        let directory = Arc::new(directory);
        Self { path, directory }
    }

    /// Opens the directory that a path leads to now.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = DIRECTORY.difference(OFlag::O_NOFOLLOW);
        Ok(Self::new(
            path.to_owned(),
            open(path, flags, Mode::empty())?,
        ))
    }

    /// Its path, as long as nobody moved it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which this process reaches it, wherever it lies by now.
    pub fn reach(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()))
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.directory
    }

    /// Makes a file that is not there yet, for its owner alone, and the directories to it.
    ///
    /// # Errors
    /// `EEXIST` where something lies there; `ENOTDIR` where a link lies on the way.
    pub(crate) fn make(&self, path: &Path) -> io::Result<File> {
        self.reached(path, |directory, name| {
            let mode = Mode::S_IRUSR | Mode::S_IWUSR;
            Ok(File::from(openat(directory, name, NEW_FILE, mode)?))
        })
    }

    /// Makes a file with this content, or puts it in the place of what lies there at once.
    ///
    /// # Errors
    /// As of [`Self::make`], and those of write(2).
    pub(crate) fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self.make(path) {
            Ok(mut file) => file.write_all(content),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let draft = path.with_extension(format!("new-{}", std::process::id()));
                self.make(&draft)?.write_all(content)?;
                let from = draft.file_name().unwrap_or_default().to_owned();
                self.reached(path, |directory, name| {
                    Ok(renameat(directory, &*from, directory, name)?)
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a name away.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.reached(path, |directory, name| {
            Ok(unlinkat(directory, name, UnlinkatFlags::NoRemoveDir)?)
        })
    }

    /// Does something with a name in the directory that the path before it leads to.
    fn reached<T>(
        &self,
        path: &Path,
        act: impl FnOnce(&OwnedFd, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut names = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                _ => return Err(io::ErrorKind::InvalidFilename.into()),
            }
        }
        let (last, above) = names.split_last().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut within: Option<OwnedFd> = None;
        for name in above {
            let from = within.as_ref().unwrap_or(&self.directory).as_fd();
            match mkdirat(from, *name, Mode::S_IRWXU) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            within = Some(openat(from, *name, DIRECTORY, Mode::empty())?);
        }
        act(within.as_ref().unwrap_or(&self.directory), last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_replaces_nothing_follows_nothing_and_stays_below() {
        let name = format!("outgate-held-{}", std::process::id());
        let around = std::env::temp_dir().join(name);
        let (place, victim) = (around.join("place"), around.join("victim"));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::create_dir_all(&victim).unwrap();
        let held = HeldDirectory::open(&place).unwrap();
        let put = |path: &str, text: &str| held.put(Path::new(path), text.as_bytes());
        put(".x/y", "content").unwrap();
        assert!(held.make(Path::new(".x/y")).is_err());
        for path in ["../x", "/x", "", "a/../../x", "."] {
            assert!(put(path, "x").is_err(), "{path}");
        }
        std::os::unix::fs::symlink(&victim, place.join("link")).unwrap();
        assert!(put("link/new", "x").is_err());
        put("link", "instead").unwrap();
        put("link", "again").unwrap();
        // Its name may lead elsewhere by now.
        std::fs::rename(&place, around.join("moved")).unwrap();
        std::os::unix::fs::symlink(&victim, &place).unwrap();
        put("late", "x").unwrap();
        held.remove(Path::new(".x/y")).unwrap();
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
        let text = |name: &str| std::fs::read_to_string(around.join("moved").join(name));
        assert_eq!(text("link").unwrap(), "again");
        assert_eq!(text("late").unwrap(), "x");
        assert!(text(".x/y").is_err());
        std::fs::remove_dir_all(&around).unwrap();
    }
}
