//! From what a caller names to an inode: its root, its directories, its
//! descriptors, opened as places only (`O_PATH`), and a path resolved once.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use super::asked::{FollowLast, NamedFile};
use super::limits::RESOLVE_TRIES;

/// Where resolution begins, or already ended.
#[derive(Debug)]
pub(super) enum Base {
    Root,
    Directory(OwnedFd),
    Found(OwnedFd),
}

impl Base {
    /// Opens what is the caller's own: its directories, its descriptors. Its root is
    /// ours, which nothing in a sandbox can change.
    pub(super) fn of(thread: u32, named: &NamedFile) -> Result<Self, Errno> {
        match named {
            NamedFile::Descriptor(number) => own(thread, *number).map(Self::Found),
            NamedFile::Directory(number) => directory(thread, *number).map(Self::Found),
            NamedFile::Path(_, path, last) if path.first() == Some(&b'/') => {
                match descriptor_name(path).filter(|_| *last == FollowLast::Followed) {
                    Some(number) => own(thread, number).map(Self::Found).map_err(|errno| {
                        if errno == Errno::EBADF {
                            Errno::ENOENT
                        } else {
                            errno
                        }
                    }),
                    None => Ok(Self::Root),
                }
            }
            NamedFile::Path(number, ..) => directory(thread, *number).map(Self::Directory),
        }
    }

    /// The inode, opened so that it can be named and nothing else.
    pub(super) fn resolve(self, named: &NamedFile) -> Result<OwnedFd, Errno> {
        let base = match self {
            Self::Found(found) => return Ok(found),
            Self::Root => None,
            Self::Directory(base) => Some(base),
        };
        let base = base.as_ref().map_or(AT_FDCWD, AsFd::as_fd);
        let NamedFile::Path(_, path, last) = named else {
            return Err(Errno::EBADF);
        };
        let mut flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        if *last == FollowLast::Itself {
            flags |= OFlag::O_NOFOLLOW;
        }
        resolved(base, OsStr::from_bytes(path), flags)
    }
}

/// Where a path leads, which is found without anybody's descriptors.
fn resolved(base: BorrowedFd<'_>, path: &OsStr, flags: OFlag) -> Result<OwnedFd, Errno> {
    // A magic link would lead to what is ours instead of the caller's.
    let resolve = ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    // EAGAIN (openat2(2)): something on the machine was renamed meanwhile.
    (0..RESOLVE_TRIES)
        .map(|_| openat2(base, path, how))
        .find(|place| !matches!(place, Err(Errno::EAGAIN)))
        .unwrap_or(Err(Errno::EACCES))
}

/// `RESOLVE_CACHED` (openat2(2)). KERNEL: 5.12.
const CACHED: ResolveFlag = ResolveFlag::from_bits_retain(0x20);

/// What lies at an absolute path, itself, as far as the kernel knows from memory: no file
/// system is asked, so that none can keep us waiting (openat2(2), `RESOLVE_CACHED`).
///
/// # Errors
/// Those of open(2); `EAGAIN` where a file system would have to be asked.
pub(super) fn seen(path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let resolve = ResolveFlag::RESOLVE_NO_MAGICLINKS | CACHED;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    openat2(AT_FDCWD, OsStr::from_bytes(path), how)
}

/// Where a path of our own leads in the end.
pub(super) fn followed(path: &Path) -> Result<OwnedFd, Errno> {
    resolved(AT_FDCWD, path.as_os_str(), OFlag::O_PATH | OFlag::O_CLOEXEC)
}

/// The link at a path of our own.
pub(super) fn link(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    resolved(AT_FDCWD, OsStr::new(path), flags)
}

/// The number in a path that names one of the caller's own descriptors.
pub(super) fn descriptor_name(path: &[u8]) -> Option<i32> {
    let places = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"];
    let path = std::str::from_utf8(path).ok()?;
    let number = places.iter().find_map(|place| path.strip_prefix(place))?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok()).flatten()
}

/// Opens what a directory argument of the caller stands for.
fn directory(thread: u32, number: i32) -> Result<OwnedFd, Errno> {
    if number == AT_FDCWD.as_raw_fd() {
        return place(&format!("/proc/{thread}/cwd"));
    }
    own(thread, number)
}

/// Opens what descriptor `number` of the caller stands for.
fn own(thread: u32, number: i32) -> Result<OwnedFd, Errno> {
    match place(&format!("/proc/{thread}/fd/{number}")) {
        Err(Errno::ENOENT) => Err(Errno::EBADF),
        opened => opened,
    }
}

/// Opens what a path of our own stands for, magic links of /proc included.
pub(super) fn place(path: &str) -> Result<OwnedFd, Errno> {
    open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::descriptor_name;

    #[test]
    fn a_descriptor_is_named_by_its_number_and_nothing_more() {
        for (path, number) in [
            ("/proc/self/fd/7", Some(7)),
            ("/proc/thread-self/fd/0", Some(0)),
            ("/dev/fd/12", Some(12)),
            ("/dev/fd/12/file", None),
            ("/dev/fd/", None),
            ("/dev/fd/-1", None),
            ("/dev/fd/+1", None),
            ("/proc/1/fd/7", None),
            ("/dev/fd/99999999999", None),
        ] {
            assert_eq!(descriptor_name(path.as_bytes()), number, "{path}");
        }
    }
}
