//! One file as it is: its inode and, within a bound, its content. Never follows a link, never
//! waits, never leaves the file system of the grant.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use super::limits::FILE_BYTES_MAX;

/// When an inode was changed last, in seconds and nanoseconds.
pub(super) type Moment = (i64, i64);

/// What tells one state of a file from another. The command sets every time but that of the
/// last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) changed: Moment,
    pub(super) size: i64,
    pub(super) mode: u32,
}

impl FileState {
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            size: stat.st_size,
            mode: stat.st_mode,
        }
    }

    fn kind(self) -> SFlag {
        SFlag::from_bits_truncate(self.mode) & SFlag::S_IFMT
    }

    pub(super) fn is_link(self) -> bool {
        self.kind() == SFlag::S_IFLNK
    }

    pub(super) fn is_file(self) -> bool {
        self.kind() == SFlag::S_IFREG
    }

    pub(super) fn is_directory(self) -> bool {
        self.kind() == SFlag::S_IFDIR
    }

    pub(super) fn is_program(self) -> bool {
        self.is_file() && self.mode & 0o111 != 0
    }

    /// Whether it may have been changed at or after this moment. File systems that count
    /// whole seconds are believed to the second.
    pub(super) fn is_since(self, moment: Moment) -> bool {
        let (seconds, nanoseconds) = self.changed;
        match nanoseconds {
            0 => seconds >= moment.0,
            _ => self.changed >= moment,
        }
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileContent {
    Text(Vec<u8>),
    /// A link, and what it says.
    Link(OsString),
    /// Nobody can say: no regular file, too large, not readable, or it changed meanwhile.
    Unknown(&'static str),
}

/// The way to what lies below a directory: no link, no other file system.
fn below(flags: OFlag) -> OpenHow {
    OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(
            ResolveFlag::RESOLVE_BENEATH
                | ResolveFlag::RESOLVE_NO_SYMLINKS
                | ResolveFlag::RESOLVE_NO_XDEV,
        )
}

/// Opens a directory below another, to be read.
pub(super) fn directory(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    openat2(root, path, below(OFlag::O_RDONLY | OFlag::O_DIRECTORY))
}

/// What the link at a place below another says; nothing where there is something else.
pub(super) fn link(root: BorrowedFd<'_>, path: &Path) -> Result<Option<OsString>, Errno> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let opened = openat2(root, path, below(OFlag::O_PATH))?;
    match state_of(&opened) {
        Some(state) if state.is_link() => readlinkat(&opened, "").map(Some),
        Some(_) => Ok(None),
        None => Err(Errno::EIO),
    }
}

/// Whether a place lies in memory alone (tmpfs(5)), where what a mapping writes changes no
/// time of an inode.
pub(super) fn is_in_memory(open: impl AsFd) -> bool {
    fstatfs(open).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC)
}

/// The state of an entry of a directory, which may be a link.
pub(super) fn state(directory: BorrowedFd<'_>, name: &OsStr) -> Option<FileState> {
    let stat = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    Some(FileState::of(&stat))
}

/// The state of what is open.
pub(super) fn state_of(open: impl AsFd) -> Option<FileState> {
    fstat(open).ok().map(|stat| FileState::of(&stat))
}

/// What an entry of a directory holds, which had this state a moment ago.
pub(super) fn content(directory: BorrowedFd<'_>, name: &OsStr, state: FileState) -> FileContent {
    if state.is_link() {
        let link = readlinkat(directory, name);
        return link.map_or(
            FileContent::Unknown("a link that cannot be read"),
            FileContent::Link,
        );
    }
    if !state.is_file() {
        return FileContent::Unknown("no regular file");
    }
    if u64::try_from(state.size).map_or(true, |size| size > FILE_BYTES_MAX) {
        return FileContent::Unknown("too large to be looked at");
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = openat2(directory, Path::new(name), below(flags)).map(File::from);
    let Ok(mut file) = opened else {
        return FileContent::Unknown("it cannot be read");
    };
    let is_same = |file: &File| state_of(file) == Some(state);
    if !is_same(&file) {
        return FileContent::Unknown("it changes while it is read");
    }
    let mut bytes = Vec::with_capacity(usize::try_from(state.size).unwrap_or(0));
    let read = file.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    // RACE: somebody outside may write meanwhile; the inode says so, unless they write in the
    // same tick of the clock, to the same length.
    if read.is_err() || !is_same(&file) {
        return FileContent::Unknown("it changes while it is read");
    }
    FileContent::Text(bytes)
}

/// Whether who starts a file gets rights of others: those of its owner or group, or
/// capabilities (capabilities(7)).
pub(super) fn raises(directory: &OwnedFd, name: &OsStr, state: FileState) -> bool {
    if !state.is_file() {
        return false;
    }
    let set_id = Mode::S_ISUID.bits() | Mode::S_ISGID.bits();
    if state.mode & set_id != 0 {
        return true;
    }
    let path = Path::new(&place(directory)).join(name);
    let path = CString::new(path.into_os_string().into_vec());
    state.is_program()
        && path.is_ok_and(|path| {
            outgate_sys::attributes::get(&path, c"security.capability", &mut []).is_ok()
        })
}

/// Where this process finds what it has open, whatever lies at its name by now.
pub(super) fn place(open: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", open.as_raw_fd())
}

/// The home directory of an account of this machine's own (passwd(5)): others are known to
/// services that would be told what is looked up.
pub(super) fn home_of(name: &str) -> Option<PathBuf> {
    let mut text = String::new();
    let file = File::open("/etc/passwd").ok()?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        is_it.then(|| fields.nth(4).map(PathBuf::from))?
    })
}

/// A name as text, for people.
pub(super) fn text(bytes: &OsStr) -> String {
    String::from_utf8_lossy(bytes.as_bytes()).into_owned()
}

/// Whose a place below a directory is.
pub(super) fn owner(root: BorrowedFd<'_>, path: &Path) -> Option<u32> {
    let stat = fstatat(root, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    Some(stat.st_uid)
}

#[cfg(test)]
mod tests {
    use nix::fcntl::open;

    use super::*;

    #[test]
    fn nothing_but_a_regular_file_that_stands_still_is_read() {
        let base = nix::unistd::mkdtemp("/tmp/outgate-left-XXXXXX").unwrap();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
        let directory = open(&base, flags, Mode::empty()).unwrap();
        let read =
            |name: &str, state: FileState| content(directory.as_fd(), OsStr::new(name), state);
        let state = |name: &str| state(directory.as_fd(), OsStr::new(name)).unwrap();
        std::fs::write(base.join("a"), "one").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", base.join("link")).unwrap();
        nix::unistd::mkfifo(&base.join("fifo"), Mode::S_IRUSR).unwrap();
        let large = File::create(base.join("large")).unwrap();
        large.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(read("a", state("a")), FileContent::Text(b"one".to_vec()));
        assert_eq!(
            read("link", state("link")),
            FileContent::Link("/etc/passwd".into())
        );
        for name in ["fifo", "large"] {
            assert!(
                matches!(read(name, state(name)), FileContent::Unknown(_)),
                "{name}"
            );
        }
        // Somebody puts something else there after it was looked at.
        let before = state("a");
        std::fs::write(base.join("a"), "other").unwrap();
        assert!(matches!(read("a", before), FileContent::Unknown(_)));
        for name in ["link", "fifo"] {
            std::fs::remove_file(base.join("a")).unwrap();
            std::fs::rename(base.join(name), base.join("a")).unwrap();
            assert!(
                matches!(read("a", before), FileContent::Unknown(_)),
                "{name}"
            );
        }
        std::fs::remove_dir_all(base).unwrap();
    }
}
