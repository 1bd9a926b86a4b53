//! Empties a directory of whatever a command left in it. Directories that it made unreadable
//! are opened up; those it made deep are moved up, so that no depth takes more than two of
//! them open at once.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{openat, renameat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::held::DIRECTORY;
use super::{PREFIX, Remains};

/// Directories that were moved up and are emptied next, at most: beyond, another look at the
/// root finds them.
const NEXT_MAX: usize = 65_536;

/// Removes what lies in `root` and below until then. `gone` removes the root itself, once
/// there is nothing in it.
pub(super) fn empty(root: &OwnedFd, until: Option<Instant>, gone: &dyn Fn() -> bool) -> Remains {
    open_up(root);
    // A name that the command took is no place to move to.
    let own = outgate_sys::process::random().unwrap_or_default();
    let mut removal = Removal {
        root,
        prefix: format!("{PREFIX}{:016x}-", u64::from_ne_bytes(own)),
        moved: 0,
        next: Vec::new(),
        until,
    };
    loop {
        let progress = removal.pass();
        if gone() {
            return Remains::Nothing;
        }
        if progress == RemovalProgress::None {
            return Remains::Something;
        }
    }
}

/// The removal of a tree.
struct Removal<'r> {
    root: &'r OwnedFd,
    /// How the names begin that directories get when they are moved up.
    prefix: String,
    moved: u64,
    /// Numbers of those that were moved up last.
    next: Vec<u64>,
    until: Option<Instant>,
}

/// Whether a pass did anything, and there is time for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemovalProgress {
    Some,
    None,
}

impl Removal<'_> {
    /// Removes what lies in the root; what lies below its directories comes up, and goes as
    /// well.
    fn pass(&mut self) -> RemovalProgress {
        let mut progress = RemovalProgress::None;
        let before = self.moved;
        for (name, kind) in entries(self.root) {
            if self.is_over() {
                return RemovalProgress::None;
            }
            if gone(self.root, &name, kind) || self.emptied(&name) {
                progress = RemovalProgress::Some;
            }
            while let Some(number) = self.next.pop() {
                if self.is_over() {
                    return RemovalProgress::None;
                }
                self.emptied(OsStr::new(&self.name(number)));
            }
        }
        if self.moved > before {
            progress = RemovalProgress::Some;
        }
        progress
    }

    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number}", self.prefix)
    }

    /// Empties a directory in the root, and removes it.
    fn emptied(&mut self, name: &OsStr) -> bool {
        let Ok(directory) = openat(self.root, name, DIRECTORY, Mode::empty()) else {
            return false;
        };
        open_up(&directory);
        for (name, kind) in entries(&directory) {
            if self.is_over() {
                return false;
            }
            if !gone(&directory, &name, kind) {
                self.move_up(&directory, &name);
            }
        }
        drop(directory);
        gone(self.root, name, EntryKind::Directory)
    }

    fn move_up(&mut self, from: &OwnedFd, name: &OsStr) {
        let up = self.name(self.moved);
        let move_up = || renameat(from, name, self.root, up.as_str()).is_ok();
        let is_up = move_up() || {
            // To be moved, a directory has to be writable itself.
            if let Ok(below) = openat(from, name, DIRECTORY, Mode::empty()) {
                open_up(&below);
            }
            move_up()
        };
        if is_up {
            if self.next.len() < NEXT_MAX {
                self.next.push(self.moved);
            }
            self.moved = self.moved.saturating_add(1);
        }
    }
}

/// What an entry of a directory was when that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Directory,
    Other,
}

/// Removes a name that is no directory, or an empty one.
fn gone(directory: &OwnedFd, name: &OsStr, kind: EntryKind) -> bool {
    let remove = |flag| unlinkat(directory, name, flag);
    match kind {
        EntryKind::Directory => remove(UnlinkatFlags::RemoveDir).is_ok(),
        EntryKind::Other => match remove(UnlinkatFlags::NoRemoveDir) {
            // Not every file system says what is one.
            Err(Errno::EISDIR | Errno::EPERM) => remove(UnlinkatFlags::RemoveDir).is_ok(),
            result => result.is_ok(),
        },
    }
}

/// Names in a directory, as far as it can be read.
fn entries(directory: &OwnedFd) -> impl Iterator<Item = (OsString, EntryKind)> + use<> {
    let entries = std::fs::read_dir(place(directory)).into_iter();
    entries.flatten().flatten().map(|entry| {
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() => EntryKind::Directory,
            _ => EntryKind::Other,
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
