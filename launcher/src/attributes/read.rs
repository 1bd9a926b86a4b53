//! What links say and which extended attributes files have, for who may know it:
//! where a grant covers the inode, and of a link also where it leads to a grant or
//! above one. The answer is written to the caller's memory, once.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, readlinkat};
use nix::sys::stat::{FileStat, SFlag, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use outgate_sys::attributes;
use outgate_sys::memory::Memory;

use super::asked::{Buffer, NamedFile, Read};
use super::place::{Base, followed};
use super::{is_unnamed, named};
use crate::notification::Notification;
use crate::visible::Visible;

/// Who wants to read something, and what the run may see.
pub(super) struct AttributeReader<'a> {
    pub(super) visible: &'a Visible,
    /// Root of the tree of the run's processes.
    pub(super) guardian: u32,
    /// The thread that called.
    pub(super) thread: u32,
}

impl AttributeReader<'_> {
    /// Performs a call, and returns what it returns: a number of bytes.
    pub(super) fn perform(
        &self,
        call: &Notification,
        asked: &NamedFile,
        (read, buffer): (&Read, Buffer),
    ) -> Result<i64, Errno> {
        let place = Base::of(self.thread, asked)?.resolve(asked)?;
        let (bytes, count) = match read {
            Read::Link => {
                let mut text = self.link(&place, asked)?;
                text.truncate(buffer.size);
                let count = text.len();
                (text, count)
            }
            Read::Attribute(name) => {
                let file = self.file(&place)?;
                value(buffer.size, |room| attributes::get(&file, name, room))?
            }
            Read::AttributeNames => {
                let file = self.file(&place)?;
                value(buffer.size, |room| attributes::list(&file, room))?
            }
        };
        if !bytes.is_empty() {
            deliver(call, buffer.address, &bytes)?;
        }
        i64::try_from(count).map_err(|_| Errno::EIO)
    }

    /// What a link says. Anything else is none, as everybody can see.
    fn link(&self, place: &OwnedFd, asked: &NamedFile) -> Result<Vec<u8>, Errno> {
        let stat = fstat(place)?;
        if stat.st_mode & SFlag::S_IFMT.bits() != SFlag::S_IFLNK.bits() {
            return Err(match asked {
                NamedFile::Path(..) => Errno::EINVAL,
                NamedFile::Directory(_) | NamedFile::Descriptor(_) => Errno::ENOENT,
            });
        }
        let path = path_of(place.as_fd())?;
        if fstatfs(place)?.filesystem_type() == PROC_SUPER_MAGIC {
            return self.proc_link(place, path.to_str().ok_or(Errno::EACCES)?);
        }
        self.covered_link(place, path)
    }

    /// What a link says that tells everybody the same, and was found at `path`.
    pub(super) fn covered_link(
        &self,
        link: &OwnedFd,
        path: impl AsRef<Path>,
    ) -> Result<Vec<u8>, Errno> {
        let path = path.as_ref();
        let is_known = self.visible.covers(path) || self.leads_to_a_grant(path);
        let text = readlinkat(link, "")?.into_vec();
        // Such as /dev/stdin, which leads to a grant of nobody's.
        if is_known || text.starts_with(b"/proc/self/") {
            Ok(text)
        } else {
            Err(Errno::EACCES)
        }
    }

    /// Whether a hidden link is a part of the way to a grant.
    ///
    /// RACE: the way there may be turned, in as far as the command may write it: so
    /// may the command make a way of its own that says the same.
    fn leads_to_a_grant(&self, path: &Path) -> bool {
        let target = followed(path).and_then(|target| path_of(target.as_fd()));
        target.is_ok_and(|target| {
            let target = Path::new(&target);
            self.visible.covers(target) || self.visible.is_above(target)
        })
    }

    /// A name for a file whose attributes the command may know.
    fn file(&self, place: &OwnedFd) -> Result<CString, Errno> {
        let path = path_of(place.as_fd())?;
        let stat = fstat(place)?;
        if !is_unnamed(&stat, path.as_bytes()) && !self.visible.covers(Path::new(&path)) {
            // As on a file system that has none.
            return Err(Errno::EOPNOTSUPP);
        }
        CString::new(named(place)).map_err(|_| Errno::EINVAL)
    }

    /// Whether the name of an inode is the command's to know.
    pub(super) fn may_know(&self, stat: &FileStat, path: &[u8]) -> bool {
        let name = Path::new(OsStr::from_bytes(path));
        is_unnamed(stat, path) || self.visible.covers(name) || self.visible.is_above(name)
    }
}

/// The kernel's path of an inode that this process has open.
pub(super) fn path_of(place: BorrowedFd<'_>) -> Result<OsString, Errno> {
    readlinkat(
        AT_FDCWD,
        format!("/proc/self/fd/{}", place.as_raw_fd()).as_str(),
    )
}

/// What a call says that fills `room` bytes at most; without room it says only how
/// many there are.
fn value(
    room: usize,
    fill: impl FnOnce(&mut [u8]) -> std::io::Result<usize>,
) -> Result<(Vec<u8>, usize), Errno> {
    let mut bytes = vec![0; room];
    let count = fill(&mut bytes).map_err(|error| {
        let errno = error.raw_os_error();
        errno.map_or(Errno::EIO, Errno::from_raw)
    })?;
    bytes.truncate(count);
    Ok((bytes, count))
}

/// Writes to the caller's memory. It is taken in hand before it is asked whether the
/// call is held, and stays the same: what executes or gets the caller's number
/// afterwards has another.
fn deliver(call: &Notification, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let memory = Memory::of(call.held().thread).map_err(|_| Errno::EACCES)?;
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    memory.write(address, bytes).map_err(|_| Errno::EFAULT)
}
