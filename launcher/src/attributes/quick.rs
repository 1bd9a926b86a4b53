//! Held calls that are answered at once: those that ask for what a link says where there is
//! none. Programs ask so for every part of every path that they make real (realpath(3)), and
//! a compiler does that with each file it reads.
//!
//! Everybody may know it. It is said only where the kernel knows from memory, so nothing here
//! waits for a file system; everything else goes the long way.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::stat::SFlag;
use outgate_sys::attributes::inode;
use outgate_sys::process::Powers;

use super::asked::{AttributeRequest, FollowLast, NamedFile, Read, asked};
use super::place::seen;
use crate::filter::{Arch, attribute};
use crate::notification::Notification;

/// Names of the caller itself, which for us are ours.
const ITSELF: [&[u8]; 2] = [b"/proc/", b"/dev/fd/"];

/// Why a call that asks for what a link says fails, if it does and that is known at once.
pub(super) fn refusal(call: &Notification, powers: &Powers) -> Option<Errno> {
    let name = attribute(Arch::native(), call.held().number)?;
    if name != "readlink" && name != "readlinkat" {
        return None;
    }
    let Ok((NamedFile::Path(_, path, FollowLast::Itself), AttributeRequest::Read(Read::Link, _))) =
        asked(name, call)
    else {
        return None;
    };
    if path.first() != Some(&b'/') || ITSELF.iter().any(|itself| path.starts_with(itself)) {
        return None;
    }
    // As the threads that have none would find it.
    match powers.set_aside(|| seen(&path)).ok()? {
        Ok(place) => {
            let kind = inode(place.as_fd()).ok()?.mode & SFlag::S_IFMT.bits();
            (kind != SFlag::S_IFLNK.bits()).then_some(Errno::EINVAL)
        }
        Err(errno @ (Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES | Errno::ENAMETOOLONG)) => {
            Some(errno)
        }
        Err(_) => None,
    }
}
