//! Terminals that a program makes for another (pts(4)): `script`, multiplexers, consoles
//! in editors. Their other end lies in /dev/pts beside the terminals of other programs,
//! which Landlock cannot tell apart; whoever has the first end gets the other one of it,
//! opened on behalf. What the caller has no first end of, Landlock judges by its name.

use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{SFlag, fstat, major, minor};
use outgate_sys::seccomp::OnExec;
use outgate_sys::{memory, pidfd, terminal};

use crate::filter::{self, Arch};
use crate::notification::Notification;

/// Descriptors of a caller that are looked at, at most, for the one that a name leads to:
/// about a microsecond for each.
const DESCRIPTORS_MAX: usize = 4096;

/// Bytes of a terminal's path with its NUL: a number of ten digits at most.
const PATH_BYTES: usize = 24;

/// The device that makes terminals: `/dev/ptmx`.
const MAKER: (u64, u64) = (5, 2);

/// The number in a path that leads to a terminal by its name, `/dev/pts/7`.
pub(crate) fn number(path: &[u8]) -> Option<u32> {
    let digits = path.strip_prefix(b"/dev/pts/")?;
    let is_number = (1..=10).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Whether a held call asks for the other end of a terminal.
pub(crate) fn is_about(call: &Notification) -> bool {
    let numbers = filter::held(Arch::native());
    let number = call.held().number;
    number == numbers.ioctl || number == numbers.openat || Some(number) == numbers.open
}

/// Answers such a call: with the other end of the caller's own, or by leaving it to the
/// kernel, and so to Landlock.
pub(crate) fn give(call: Notification) {
    let (first, flags) = match sought(&call) {
        Ok(Some(found)) => found,
        Ok(None) => return call.pass(),
        Err(errno) => return call.fail(errno),
    };
    // What was found until here is the caller's own.
    if !call.holds() {
        return call.fail(Errno::EINTR);
    }
    let on_exec = if OFlag::from_bits_retain(flags).contains(OFlag::O_CLOEXEC) {
        OnExec::Close
    } else {
        OnExec::Keep
    };
    match terminal::peer(first.as_fd(), flags) {
        Ok(other) => call.give(other.as_fd(), on_exec),
        Err(error) => call.fail(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)),
    }
}

/// The first end that a call is about, and how the other one is to be opened. `None` where
/// the caller has none, or where this machine gives us no copy of it.
fn sought(call: &Notification) -> Result<Option<(OwnedFd, i32)>, Errno> {
    let numbers = filter::held(Arch::native());
    let held = call.held();
    let Ok(thread) = pidfd::open_thread(held.thread) else {
        return Ok(None);
    };
    if held.number == numbers.ioctl {
        let found = pidfd::duplicate(thread.as_fd(), call.int(0)).ok();
        return Ok(found.filter(is_first).map(|first| (first, call.int(2))));
    }
    let (path, flags) = if held.number == numbers.openat {
        (call.word(1), call.int(2))
    } else {
        (call.word(0), call.int(1))
    };
    let mut bytes = [0_u8; PATH_BYTES];
    let count = memory::copy(held.thread, path, &mut bytes).map_err(|_| Errno::EFAULT)?;
    let path = bytes.get(..count).unwrap_or_default();
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let Some(number) = number(path) else {
        return Ok(None);
    };
    let is_it = |first: &OwnedFd| {
        is_first(first) && terminal::number(first.as_fd()).is_ok_and(|own| own == number)
    };
    let found = makers(held.thread).find_map(|descriptor| {
        let copy = pidfd::duplicate(thread.as_fd(), descriptor).ok();
        copy.filter(is_it)
    });
    Ok(found.map(|first| (first, flags)))
}

/// Whether this is the first end of a terminal.
fn is_first(descriptor: &OwnedFd) -> bool {
    fstat(descriptor).is_ok_and(|stat| {
        let kind = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
        kind == SFlag::S_IFCHR && (major(stat.st_rdev), minor(stat.st_rdev)) == MAKER
    })
}

/// Numbers of a thread's descriptors that may be such.
fn makers(thread: u32) -> impl Iterator<Item = i32> {
    let all = std::fs::read_dir(format!("/proc/{thread}/fd"));
    let all = all.into_iter().flatten().flatten().take(DESCRIPTORS_MAX);
    all.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path.ends_with("ptmx")))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_named_by_its_number_alone() {
        for (path, expected) in [
            (&b"/dev/pts/0"[..], Some(0)),
            (b"/dev/pts/4294967295", Some(u32::MAX)),
            (b"/dev/pts/4294967296", None),
            (b"/dev/pts/", None),
            (b"/dev/pts/+1", None),
            (b"/dev/pts/1/", None),
            (b"/dev/pts/ptmx", None),
            (b"dev/pts/1", None),
            (b"/dev/pts/00000000001", None),
        ] {
            assert_eq!(number(path), expected, "{path:?}");
        }
    }

    #[test]
    fn only_the_first_end_of_a_terminal_is_one() {
        let open = |path| OwnedFd::from(std::fs::File::open(path).unwrap());
        assert!(is_first(&open("/dev/ptmx")));
        assert!(!is_first(&open("/dev/null")));
        assert!(!is_first(&open("/")));
        let own = open("/dev/ptmx");
        let found: Vec<i32> = makers(std::process::id()).collect();
        assert!(
            found.contains(&std::os::fd::AsRawFd::as_raw_fd(&own)),
            "{found:?}"
        );
    }
}
