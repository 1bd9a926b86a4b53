//! Modes, owners, times and extended attributes, which Landlock leaves to every
//! owner of a file. A held call is resolved once, to an inode, and performed on
//! that inode where a write grant covers it; refused everywhere else.
//!
//! A thread of its own does so: a file system may take its time (a change waits
//! for the write that the command has under way), and the supervisor must not.
//! The thread has no capability, as the command has none, so that the kernel asks
//! of it what it would ask of the command. It holds no lock while it works.

mod asked;
mod limits;
mod place;

use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, utimensat};
use outgate_sys::attributes;
use outgate_sys::process::give_up_capabilities;

use crate::filter::{Arch, attribute};
use crate::notification::Notification;
use crate::writable::Granted;
use asked::{Change, asked};
use limits::{CALLS_MAX, STACK_BYTES};
use place::Base;

/// Performs held calls that change attributes, one after the other.
#[derive(Debug)]
pub(crate) struct Attributes {
    calls: Option<SyncSender<Notification>>,
    writable: Arc<Granted>,
}

impl Attributes {
    /// Starts the thread, before the command can use up what that takes.
    pub(crate) fn new(writable: Granted) -> Self {
        let writable = Arc::new(writable);
        let calls = start(&writable);
        Self { calls, writable }
    }

    /// Answers a call, some time from now, and never waits for that.
    pub(crate) fn perform(&mut self, call: Notification) {
        if self.calls.is_none() {
            self.calls = start(&self.writable);
        }
        let Some(calls) = &self.calls else {
            return call.fail(Errno::EAGAIN);
        };
        match calls.try_send(call) {
            Ok(()) => {}
            Err(TrySendError::Full(call)) => call.fail(Errno::EAGAIN),
            Err(TrySendError::Disconnected(call)) => {
                // The next one finds another thread.
                self.calls = None;
                call.fail(Errno::EPERM);
            }
        }
    }
}

/// The thread, if there is room for one.
fn start(writable: &Arc<Granted>) -> Option<SyncSender<Notification>> {
    let (sender, receiver) = sync_channel(CALLS_MAX);
    let writable = Arc::clone(writable);
    let thread = Builder::new()
        .name("attributes".to_owned())
        .stack_size(STACK_BYTES);
    let started = thread.spawn(move || work(&receiver, &writable));
    started.ok().map(|_| sender)
}

/// Serves calls until nobody can send one any more.
fn work(calls: &Receiver<Notification>, writable: &Granted) {
    let powerless = give_up_capabilities();
    for call in calls {
        let done = match &powerless {
            Ok(()) => change(writable, &call),
            Err(_) => Err(Errno::EPERM),
        };
        match done {
            Ok(()) => call.succeed(0),
            Err(errno) => call.fail(errno),
        }
    }
}

fn change(writable: &Granted, call: &Notification) -> Result<(), Errno> {
    let held = call.held();
    let name = attribute(Arch::native(), held.number).ok_or(Errno::ENOSYS)?;
    let (named, change) = asked(name, call)?;
    let base = Base::of(held.thread, &named)?;
    // What was copied and opened until here is the caller's own.
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    let judged = judge(writable, base.resolve(&named)?, &change)?;
    // An effect that nobody waits for any more would be nobody's.
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    perform(&judged, &change)
}

/// Proof that the command may change an inode.
struct Judged {
    place: OwnedFd,
}

/// Whether a write grant covers the inode, or nothing has a name for it, and the
/// change is one that the command may make at all.
fn judge(writable: &Granted, place: OwnedFd, change: &Change) -> Result<Judged, Errno> {
    let stat = fstat(&place)?;
    let kind = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
    let path = readlinkat(AT_FDCWD, named(&place).as_str())?.into_vec();
    let device = kind == SFlag::S_IFCHR || kind == SFlag::S_IFBLK;
    // Everybody's, such as /dev/null; a terminal is the run's own.
    if device && !path.starts_with(b"/dev/pts/") {
        return Err(Errno::EPERM);
    }
    if let Change::Mode(mode) = change
        && makes_set_id(*mode, kind)
    {
        return Err(Errno::EPERM);
    }
    if !is_unnamed(&stat, &path) && !is_covered(writable, &path) {
        return Err(Errno::EACCES);
    }
    Ok(Judged { place })
}

/// Whether an inode of this kind and mode is a set-ID program. A directory with
/// the second bit only hands its group on (inode(7)).
fn makes_set_id(mode: u32, kind: SFlag) -> bool {
    let mode = Mode::from_bits_truncate(mode);
    mode.contains(Mode::S_ISUID) || (mode.contains(Mode::S_ISGID) && kind != SFlag::S_IFDIR)
}

/// Whether an inode has no name anywhere: a pipe, a socket, memory, a file that
/// is gone. Who has a descriptor of it got that from Landlock, or brought it.
fn is_unnamed(stat: &FileStat, path: &[u8]) -> bool {
    let kinds: [&[u8]; 3] = [b"pipe:[", b"socket:[", b"anon_inode:"];
    let gone = stat.st_nlink == 0 && path.ends_with(b" (deleted)");
    gone || kinds.iter().any(|kind| path.starts_with(kind))
}

/// Whether a write grant lies around the path by which the inode was found.
///
/// RACE: the path is the kernel's own, read after the inode was found. Whoever
/// may not write the directories above an inode cannot rename them either, so
/// that what lies outside has no name within.
fn is_covered(writable: &Granted, path: &[u8]) -> bool {
    let grant = writable.around(Path::new(OsStr::from_bytes(path)));
    path.starts_with(b"/") && grant.is_some()
}

/// Where this process finds an inode that it has open.
fn named(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

/// Changes the inode, with the kernel's own result.
fn perform(judged: &Judged, change: &Change) -> Result<(), Errno> {
    let name = named(&judged.place);
    let path = PathBuf::from(&name);
    let text = CString::new(name).map_err(|_| Errno::EINVAL)?;
    let done = match change {
        Change::Mode(mode) => std::fs::set_permissions(&path, Permissions::from_mode(*mode)),
        Change::Owner(user, group) => std::os::unix::fs::chown(&path, *user, *group),
        Change::Times(access, modification) => {
            let follow = UtimensatFlags::FollowSymlink;
            utimensat(AT_FDCWD, &path, access, modification, follow)?;
            Ok(())
        }
        Change::Attribute(name, value, flags) => attributes::set(&text, name, value, *flags),
        Change::NoAttribute(name) => attributes::remove(&text, name),
    };
    done.map_err(|error| error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_hands_its_group_on() {
        for (mode, kind, made) in [
            (0o755, SFlag::S_IFREG, false),
            (0o1777, SFlag::S_IFDIR, false),
            (0o4755, SFlag::S_IFREG, true),
            (0o2755, SFlag::S_IFREG, true),
            (0o2755, SFlag::S_IFIFO, true),
            (0o2755, SFlag::S_IFDIR, false),
            (0o4755, SFlag::S_IFDIR, true),
            (0o6755, SFlag::S_IFDIR, true),
        ] {
            assert_eq!(makes_set_id(mode, kind), made, "{mode:o} {kind:?}");
        }
    }
}
