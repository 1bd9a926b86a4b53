//! Modes, owners, times, extended attributes and what links say, which Landlock
//! leaves to every owner of a file, or to everybody. A held call is resolved once, to
//! an inode, and performed on that inode where a grant covers it, a write grant for a
//! change; refused everywhere else.
//!
//! Threads of their own do so: a file system may take its time (a change waits
//! for the write that the command has under way), and the supervisor must not.
//! They have no capability, as the command has none, so that the kernel asks
//! of them what it would ask of the command. They hold no lock while they work.
//! What the kernel says from memory alone, that a path leads to no link, the supervisor
//! answers itself.
//! They give pairs of sockets, too: whose numbers are written to memory, which a file
//! system may stand behind; and terminals, which are looked for among a caller's descriptors.

mod asked;
mod limits;
mod place;
mod proc;
mod queue;
mod quick;
mod read;

use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, utimensat};
use outgate_sys::attributes;
use outgate_sys::process::{Powers, give_up_capabilities};
use outgate_sys::schedule::take_short_turns;

use crate::filter::{self, Arch, attribute};
use crate::notification::Notification;
use crate::pair;
use crate::ruleset::Reach;
use crate::terminal;
use crate::visible::Visible;
use crate::writable::Granted;
use asked::{AttributeChange, AttributeRequest, NamedFile, asked};
use limits::STACK_BYTES;
use place::Base;
use proc::of_the_caller;
use queue::{CallQueue, Hands};
use read::{AttributeReader, path_of};

/// Performs held calls about attributes and links.
#[derive(Debug)]
pub(crate) struct AttributeCalls {
    calls: Arc<CallQueue<Notification>>,
    run: Arc<RunGrants>,
    /// Those of the supervisor, which it sets aside; nothing where that is not known.
    powers: Option<Powers>,
}

/// What the command may change and see.
#[derive(Debug)]
struct RunGrants {
    writable: Granted,
    visible: Visible,
    /// Root of its tree of processes.
    guardian: u32,
}

impl AttributeCalls {
    /// Starts a thread, before the command can use up what that takes.
    pub(crate) fn new(reach: Reach, guardian: i32) -> Self {
        let run = RunGrants {
            writable: reach.writable,
            visible: reach.visible,
            guardian: u32::try_from(guardian).unwrap_or(0),
        };
        let new = Self {
            calls: Arc::new(CallQueue::new()),
            run: Arc::new(run),
            powers: Powers::here().ok(),
        };
        new.calls.join();
        new.start();
        new
    }

    /// Answers a call, now or some time from now, and never waits for that. To be called by
    /// the thread that made this.
    pub(crate) fn perform(&self, call: Notification) {
        let powers = self.powers.as_ref();
        if let Some(errno) = powers.and_then(|powers| quick::refusal(&call, powers)) {
            call.fail(errno);
            return;
        }
        match self.calls.put(call, Instant::now()) {
            Ok(Hands::Enough) => {}
            Ok(Hands::Wanted) => self.start(),
            Err(call) => call.fail(Errno::EAGAIN),
        }
    }

    /// Whether a call waits for a thread.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Refuses what has waited for too long.
    pub(crate) fn tick(&self, now: Instant) {
        while let Some(call) = self.calls.overdue(now) {
            call.fail(Errno::EAGAIN);
        }
    }

    /// Starts a thread that is counted already, if there is room for one.
    fn start(&self) {
        let (calls, run) = (Arc::clone(&self.calls), Arc::clone(&self.run));
        let thread = Builder::new()
            .name("attributes".to_owned())
            .stack_size(STACK_BYTES);
        if thread.spawn(move || work(&calls, &run)).is_err() {
            for call in self.calls.leave() {
                call.fail(Errno::EAGAIN);
            }
        }
    }
}

impl Drop for AttributeCalls {
    fn drop(&mut self) {
        self.calls.close();
    }
}

/// Serves calls until nobody can put one any more.
fn work(calls: &CallQueue<Notification>, run: &RunGrants) {
    // The launcher is not dead before this thread is.
    take_short_turns();
    let powerless = give_up_capabilities();
    while let Some(call) = calls.take() {
        if terminal::is_about(&call) {
            match &powerless {
                Ok(()) => terminal::give(call),
                Err(_) => call.fail(Errno::EPERM),
            }
            continue;
        }
        let done = match &powerless {
            Ok(()) => serve(run, &call),
            Err(_) => Err(Errno::EPERM),
        };
        match done {
            Ok(value) => call.succeed(value),
            Err(errno) => call.fail(errno),
        }
    }
}

/// Performs a call, and says what it returns.
fn serve(run: &RunGrants, call: &Notification) -> Result<i64, Errno> {
    let held = call.held();
    if held.number == filter::held(Arch::native()).socketpair {
        return pair::give(call).map(|()| 0);
    }
    let name = attribute(Arch::native(), held.number).ok_or(Errno::ENOSYS)?;
    let (named, request) = asked(name, call)?;
    let named = of_the_caller(named, held.thread);
    match request {
        AttributeRequest::Change(change) => {
            make(&run.writable, call, (&named, &change)).map(|()| 0)
        }
        AttributeRequest::Read(read, buffer) => {
            let reader = AttributeReader {
                visible: &run.visible,
                guardian: run.guardian,
                thread: held.thread,
            };
            reader.perform(call, &named, (&read, buffer))
        }
    }
}

fn make(
    writable: &Granted,
    call: &Notification,
    (named, change): (&NamedFile, &AttributeChange),
) -> Result<(), Errno> {
    let base = Base::of(call.held().thread, named)?;
    // What was copied and opened until here is the caller's own.
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    let judged = judge(writable, base.resolve(named)?, change)?;
    // An effect that nobody waits for any more would be nobody's.
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    perform(&judged, change)
}

/// Proof that the command may change an inode.
struct WritableInode {
    place: OwnedFd,
}

/// Whether a write grant covers the inode, or nothing has a name for it, and the
/// change is one that the command may make at all.
fn judge(
    writable: &Granted,
    place: OwnedFd,
    change: &AttributeChange,
) -> Result<WritableInode, Errno> {
    let stat = fstat(&place)?;
    let kind = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
    let path = path_of(place.as_fd())?.into_vec();
    let device = kind == SFlag::S_IFCHR || kind == SFlag::S_IFBLK;
    // Everybody's, such as /dev/null; a terminal is the run's own.
    if device && !path.starts_with(b"/dev/pts/") {
        return Err(Errno::EPERM);
    }
    if let AttributeChange::Mode(mode) = change
        && makes_set_id(*mode, kind)
    {
        return Err(Errno::EPERM);
    }
    if device && opens_to_others(change, stat.st_mode) {
        return Err(Errno::EPERM);
    }
    if !is_unnamed(&stat, &path) && !is_covered(writable, &path) {
        return Err(Errno::EACCES);
    }
    Ok(WritableInode { place })
}

/// Whether an inode of this kind and mode is a set-ID program. A directory with
/// the second bit only hands its group on (inode(7)).
fn makes_set_id(mode: u32, kind: SFlag) -> bool {
    let mode = Mode::from_bits_truncate(mode);
    mode.contains(Mode::S_ISUID) || (mode.contains(Mode::S_ISGID) && kind != SFlag::S_IFDIR)
}

/// Whether a terminal would be more of others' than it is: what its user types once the run is
/// over, they would read.
fn opens_to_others(change: &AttributeChange, now: u32) -> bool {
    match change {
        AttributeChange::Mode(mode) => mode & 0o077 & !now != 0,
        AttributeChange::Owner(..) | AttributeChange::Attribute(..) => true,
        AttributeChange::Times(..) | AttributeChange::NoAttribute(_) => false,
    }
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
fn perform(judged: &WritableInode, change: &AttributeChange) -> Result<(), Errno> {
    let name = named(&judged.place);
    let path = PathBuf::from(&name);
    let text = CString::new(name).map_err(|_| Errno::EINVAL)?;
    let done = match change {
        AttributeChange::Mode(mode) => {
            std::fs::set_permissions(&path, Permissions::from_mode(*mode))
        }
        AttributeChange::Owner(user, group) => std::os::unix::fs::chown(&path, *user, *group),
        AttributeChange::Times(access, modification) => {
            let follow = UtimensatFlags::FollowSymlink;
            utimensat(AT_FDCWD, &path, access, modification, follow)?;
            Ok(())
        }
        AttributeChange::Attribute(name, value, flags) => {
            attributes::set(&text, name, value, *flags)
        }
        AttributeChange::NoAttribute(name) => attributes::remove(&text, name),
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
