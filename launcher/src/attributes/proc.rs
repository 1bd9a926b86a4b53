//! Links of /proc, which tell everybody something else: of the caller what it
//! would read itself, of other processes of the run what it may ask of them, and
//! of nobody else anything (proc(5)).

use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, readlinkat};
use nix::sys::stat::fstat;

use super::asked::{FollowLast, NamedFile};
use super::limits::DESCRIPTOR_BYTES;
use super::named;
use super::place::{descriptor_name, link, place};
use super::read::{AttributeReader, path_of};
use crate::process::{is_below, leader};

/// Where /proc shows everybody himself, with what it stands for by number.
const ITSELF: [(&str, &str); 3] = [
    ("/proc/self/", "/"),
    ("/proc/thread-self/", "/task/THREAD/"),
    ("/dev/fd/", "/fd/"),
];

/// `O_PATH` (open(2)).
const PLACE: u32 = 0o1000_0000;

/// What a caller names, with the caller where it names itself: we would find
/// ourselves. Programs name files so that they have the directory of open.
pub(super) fn of_the_caller(named: NamedFile, thread: u32) -> NamedFile {
    let NamedFile::Path(directory, path, last) = named else {
        return named;
    };
    if last == FollowLast::Followed && descriptor_name(&path).is_some() {
        return NamedFile::Path(directory, path, last);
    }
    let its_own = ITSELF.iter().find_map(|(itself, number)| {
        let rest = path.strip_prefix(itself.as_bytes())?;
        let number = number.replace("THREAD", &thread.to_string());
        let mut path = format!("/proc/{thread}{number}").into_bytes();
        path.extend_from_slice(rest);
        Some(path)
    });
    let Some(path) = its_own else {
        return NamedFile::Path(directory, path, last);
    };
    match through_its_own(&path, thread) {
        Some((directory, rest)) => NamedFile::Path(directory, rest, last),
        None => NamedFile::Path(directory, path, last),
    }
}

/// The directory of the caller's that a path begins with, by a link of /proc that is
/// not the end of it, and the path from there.
fn through_its_own(path: &[u8], thread: u32) -> Option<(i32, Vec<u8>)> {
    let here = AT_FDCWD.as_raw_fd();
    let rest = path.strip_prefix(format!("/proc/{thread}/").as_bytes())?;
    let task = format!("task/{thread}/");
    let rest = rest.strip_prefix(task.as_bytes()).unwrap_or(rest);
    if let Some(rest) = rest.strip_prefix(b"root/") {
        return Some((here, [b"/", rest].concat()));
    }
    if let Some(rest) = rest.strip_prefix(b"cwd/") {
        return Some((here, [b"./", rest].concat()));
    }
    let rest = rest.strip_prefix(b"fd/")?;
    let (number, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'/')?)?;
    let number = std::str::from_utf8(number).ok()?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| digits)?;
    Some((number, [b".", rest].concat()))
}

impl AttributeReader<'_> {
    /// What a link of /proc says, which was found at `path`.
    pub(super) fn proc_link(&self, link: &OwnedFd, path: &str) -> Result<Vec<u8>, Errno> {
        let within = path.strip_prefix("/proc/").ok_or(Errno::EACCES)?;
        let thread = self.thread;
        let leader = || leader(thread).ok_or(Errno::ENOENT);
        match within {
            "self" => return Ok(leader()?.to_string().into_bytes()),
            "thread-self" => return Ok(format!("{}/task/{thread}", leader()?).into_bytes()),
            _ => {}
        }
        let (first, rest) = within.split_once('/').unwrap_or((within, ""));
        let Ok(number) = first.parse::<u32>() else {
            // The same for everybody, such as `mounts`.
            return self.covered_link(link, path);
        };
        if number == std::process::id() {
            // By way of a link to `self`, which is we here.
            let rest = match rest
                .strip_prefix("task/")
                .and_then(|own| own.split_once('/'))
            {
                Some((_, rest)) => format!("/proc/{thread}/task/{thread}/{rest}"),
                None => format!("/proc/{thread}/{rest}"),
            };
            let own = self::link(&rest)?;
            return self.process_link(&own, &rest);
        }
        if number != thread && !is_below(number, self.guardian) {
            return Err(Errno::EACCES);
        }
        // It stays the same process's, whoever has its number next.
        self.process_link(link, path)
    }

    /// What a link of a process of the run says.
    fn process_link(&self, link: &OwnedFd, path: &str) -> Result<Vec<u8>, Errno> {
        let mut parts = path
            .trim_start_matches("/proc/")
            .split('/')
            .skip(1)
            .peekable();
        if parts.next_if_eq(&"task").is_some() {
            parts.next();
        }
        match (parts.next(), parts.next(), parts.next()) {
            (Some("exe" | "cwd" | "root"), None, _) | (Some("ns"), Some(_), None) => said(link),
            (Some("fd"), Some(_), None) => self.descriptor_link(link, path),
            _ => Err(Errno::EACCES),
        }
    }

    /// What a descriptor leads to. One that is a place only (`O_PATH`) Landlock
    /// gives of anything, through any link; who has it learns no name by it.
    fn descriptor_link(&self, link: &OwnedFd, path: &str) -> Result<Vec<u8>, Errno> {
        let text = said(link)?;
        let opened = place(path)?;
        let stat = fstat(&opened)?;
        // Replaced meanwhile.
        if path_of(opened.as_fd())?.into_vec() != text {
            return Err(Errno::EACCES);
        }
        let (theirs, ours) = (described(path), described(&named(&opened)));
        let is_open = theirs
            .zip(ours)
            .is_some_and(|(theirs, ours)| theirs.flags & PLACE == 0 && theirs.file == ours.file);
        if is_open || self.may_know(&stat, &text) {
            Ok(text)
        } else {
            Err(Errno::EACCES)
        }
    }
}

/// What a link says to who reads it.
fn said(link: &OwnedFd) -> Result<Vec<u8>, Errno> {
    Ok(readlinkat(link, "")?.into_vec())
}

/// What the kernel says of a descriptor (proc_pid_fdinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Described {
    flags: u32,
    /// Numbers of its mount and of its inode, which together are one file's.
    file: (u64, u64),
}

/// The descriptor whose link has this path: one look, so that all is of one file.
fn described(path: &str) -> Option<Described> {
    let (process, number) = path.rsplit_once("/fd/")?;
    let mut bytes = [0_u8; DESCRIPTOR_BYTES];
    let mut file = std::fs::File::open(format!("{process}/fdinfo/{number}")).ok()?;
    let count = file.read(&mut bytes).ok()?;
    let text = std::str::from_utf8(bytes.get(..count)?).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim())
    };
    let flags = u32::from_str_radix(value("flags:")?, 8).ok()?;
    let number = |name| value(name)?.parse().ok();
    let file = (number("mnt_id:")?, number("ino:")?);
    Some(Described { flags, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_names_itself_is_named_by_number() {
        for (path, expected) in [
            ("/proc/self/exe", "/proc/7/exe"),
            ("/proc/self/task/9/cwd", "/proc/7/task/9/cwd"),
            ("/proc/thread-self/fd/3", "/proc/7/task/7/fd/3"),
            ("/dev/fd/3", "/proc/7/fd/3"),
            ("/proc/self", "/proc/self"),
            ("/proc/selfish/exe", "/proc/selfish/exe"),
            ("proc/self/exe", "proc/self/exe"),
            ("/proc/8/exe", "/proc/8/exe"),
            ("/proc/self/cwd/a", "./a"),
            ("/proc/self/cwd//a", ".//a"),
            ("/proc/self/cwd/", "./"),
            (concat!("/proc/thread-self/", "root/a"), "/a"),
            (concat!("/proc/self/", "root//a"), "//a"),
            ("/proc/self/rooted/a", "/proc/7/rooted/a"),
            ("/proc/self/fd/+3/a", "/proc/7/fd/+3/a"),
        ] {
            let named = NamedFile::Path(-100, path.as_bytes().to_vec(), FollowLast::Itself);
            let expected = NamedFile::Path(-100, expected.as_bytes().to_vec(), FollowLast::Itself);
            assert_eq!(of_the_caller(named, 7), expected, "{path}");
        }
        for (path, directory, rest) in [
            ("/proc/self/fd/3/a", 3, "./a"),
            ("/dev/fd/3//a", 3, ".//a"),
            ("/proc/thread-self/fd/12/", 12, "./"),
        ] {
            let named = NamedFile::Path(-100, path.as_bytes().to_vec(), FollowLast::Itself);
            let expected = NamedFile::Path(directory, rest.as_bytes().to_vec(), FollowLast::Itself);
            assert_eq!(of_the_caller(named, 7), expected, "{path}");
        }
    }

    #[test]
    fn a_descriptor_is_described_by_its_flags_and_its_inode() {
        let place = place("/").unwrap();
        let open = std::fs::File::open("/").unwrap();
        let inode = fstat(&open).unwrap().st_ino;
        let of = |number: i32| described(&format!("/proc/self/fd/{number}")).unwrap();
        let (place, open) = (of(place.as_raw_fd()), of(open.as_raw_fd()));
        assert_eq!((place.flags & PLACE, open.flags & PLACE), (PLACE, 0));
        assert_eq!((place.file, place.file.1), (open.file, inode));
    }
}
