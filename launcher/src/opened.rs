//! Which files a command opened in vain, of a run that holds every open to say so. Notes
//! paths as the command wrote them and judges them when it is over; decides nothing, and
//! opens nothing on its behalf.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use nix::fcntl::{AT_FDCWD, OFlag};
use outgate_policy::{Policy, printable};

use crate::guarded::{Access, is_guarded};
use crate::options::FileReport;
use crate::reachable::{PathPresence, Reachable, account_reads, account_writes};
use crate::text::shell_word;

/// Opens that are remembered, by path and purpose: some 2 MiB at most.
const OPENED_MAX: usize = 4096;

/// Lines about files; of more only how many.
const LINES_MAX: usize = 16;

/// Memory that programs share by name. They choose a new name each time, so that no grant of
/// one would help the next run.
const SHARED_MEMORY: &str = "/dev/shm";

/// An open, by its path and what it was for.
type Opened = (PathBuf, Access);

/// Notes what is opened.
#[derive(Debug)]
pub struct OpenedFiles {
    seen: HashSet<Opened>,
    noted: SyncSender<Opened>,
}

/// What was noted, in order.
#[derive(Debug)]
pub struct OpenedList(Receiver<Opened>);

/// What notes files and what it noted, where that is to be said.
pub(crate) fn opened(report: FileReport) -> (Option<OpenedFiles>, Option<OpenedList>) {
    match report {
        FileReport::Say => {
            let (files, list) = OpenedFiles::new();
            (Some(files), Some(list))
        }
        FileReport::Omit => (None, None),
    }
}

impl OpenedFiles {
    /// Notes nothing yet.
    fn new() -> (Self, OpenedList) {
        let (noted, list) = sync_channel(OPENED_MAX);
        let seen = HashSet::new();
        (Self { seen, noted }, OpenedList(list))
    }

    /// Notes that a thread opens a path, which may begin at a directory that it holds open.
    ///
    /// RACE: the thread waits; whoever shares its descriptors may alter where it begins, and
    /// is told nonsense about files of their own choice.
    pub(crate) fn note(&mut self, thread: u32, directory: i32, path: &[u8], flags: OFlag) {
        if path.is_empty() || flags.contains(OFlag::O_PATH) || self.seen.len() >= OPENED_MAX {
            return;
        }
        let path = Path::new(OsStr::from_bytes(path));
        let begins = || {
            let held = if directory == AT_FDCWD.as_raw_fd() {
                "cwd".to_owned()
            } else {
                format!("fd/{directory}")
            };
            std::fs::read_link(format!("/proc/{thread}/{held}"))
        };
        let path = if path.is_absolute() {
            path.to_owned()
        } else {
            match begins() {
                Ok(begins) if begins.is_absolute() => begins.join(path),
                Ok(_) | Err(_) => return,
            }
        };
        let writes = OFlag::O_WRONLY | OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_TRUNC;
        let access = if flags.intersects(writes) {
            Access::Write
        } else {
            Access::Read
        };
        let opened = (path, access);
        if !self.seen.contains(&opened) && self.noted.try_send(opened.clone()).is_ok() {
            self.seen.insert(opened);
        }
    }
}

impl OpenedList {
    /// Lines about what this account may open and this policy does not grant.
    pub(crate) fn words(self, policy: &Policy, home: Option<&OsStr>) -> Vec<String> {
        let home = home.map(|home| home.to_string_lossy().into_owned());
        let home = home.unwrap_or_default();
        let mut said = HashSet::new();
        let mut lines = Vec::new();
        // Each is named once, in the order in which they were opened.
        for (path, access) in self.0.try_iter().take(OPENED_MAX) {
            let found = refused(policy, &path, access);
            let found = found.filter(|place| said.insert((place.clone(), access)));
            lines.extend(found.map(|place| line(&place, access, &home)));
        }
        let Some(more) = lines.len().checked_sub(LINES_MAX) else {
            return headed(lines);
        };
        lines.truncate(LINES_MAX);
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        headed(lines)
    }
}

fn headed(lines: Vec<String>) -> Vec<String> {
    let head = match lines.len() {
        0 => "outgate: the command opened no file in vain that you may open",
        _ => "outgate: the command opened in vain, in this order (`outgate why PATH` explains):",
    };
    [head.to_owned()].into_iter().chain(lines).collect()
}

/// Where a path leads, if only the policy refuses that.
fn refused(policy: &Policy, path: &Path, access: Access) -> Option<PathBuf> {
    // What a process finds there about itself is no file that could be granted.
    if path.starts_with("/proc") {
        return None;
    }
    let found = Reachable::of(policy, path);
    let (is_granted, may) = match (access, found.presence) {
        (Access::Read, PathPresence::There) => (found.read.is_some(), account_reads(&found.place)),
        (Access::Write, PathPresence::There) => {
            (found.write.is_some(), account_writes(&found.place))
        }
        (Access::Read, PathPresence::Absent) => return None,
        (Access::Write, PathPresence::Absent) => {
            let parent = found.place.parent();
            (found.write.is_some(), parent.is_some_and(account_writes))
        }
    };
    let place = if found.place.starts_with(SHARED_MEMORY) {
        SHARED_MEMORY.into()
    } else {
        found.place
    };
    (!is_granted && may).then_some(place)
}

/// What would grant it, where nothing speaks against that: the command chose the path.
fn line(place: &Path, access: Access, home: &str) -> String {
    let text = place.to_string_lossy();
    let shown = printable(&text);
    let flag = match access {
        Access::Read => "-r",
        Access::Write => "-w",
    };
    if *shown != *text {
        return format!("  # {shown}");
    }
    if !home.is_empty() && Path::new(home).starts_with(place) {
        return format!("  # {shown}: it holds the home directory; name what is needed below it");
    }
    if !home.is_empty() && is_guarded(place, Path::new(home), |_| false) {
        return format!(
            "  # {shown}: credentials lie there, or programs start from it; look before it is granted"
        );
    }
    format!("  {flag} {}", shell_word(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_bounded_and_each_open_once() {
        let (mut files, list) = OpenedFiles::new();
        let own = std::process::id();
        for _ in 0..2 {
            for number in 0..OPENED_MAX * 2 {
                let path = format!("/x/{number}");
                files.note(own, 0, path.as_bytes(), OFlag::O_RDONLY);
            }
        }
        assert_eq!(files.seen.len(), OPENED_MAX);
        assert_eq!(list.0.try_iter().count(), OPENED_MAX);
    }

    #[test]
    fn a_path_begins_where_the_thread_says() {
        let (mut files, list) = OpenedFiles::new();
        let own = std::process::id();
        let here = std::env::current_dir().unwrap();
        let directory = std::fs::File::open("/usr").unwrap();
        let held = directory.as_raw_fd();
        files.note(own, AT_FDCWD.as_raw_fd(), b"a/b", OFlag::O_RDONLY);
        files.note(own, held, b"lib", OFlag::O_RDWR);
        files.note(own, held, b"/etc", OFlag::O_RDONLY | OFlag::O_CREAT);
        files.note(own, 9999, b"lost", OFlag::O_RDONLY);
        files.note(own, held, b"", OFlag::O_RDONLY);
        files.note(own, held, b"named", OFlag::O_PATH);
        let noted: Vec<Opened> = list.0.try_iter().collect();
        let expected = [
            (here.join("a/b"), Access::Read),
            ("/usr/lib".into(), Access::Write),
            ("/etc".into(), Access::Write),
        ];
        assert_eq!(noted, expected);
    }
}
