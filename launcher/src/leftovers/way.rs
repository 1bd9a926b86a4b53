//! Where a path leads from a place below the grants, as the kernel would go
//! (path_resolution(7)): link by link as far as the command may have laid them. What lies
//! outside is judged by its text, since to look there may wait for ever; where the text alone
//! cannot tell, nobody knows.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use super::file;
use super::ground::Ground;
use crate::limits::LINKS_MAX;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WalkedPath {
    /// Links below the grants that are on the way, each by a path without links.
    pub(super) links: Vec<PathBuf>,
    pub(super) end: WayEnd,
}

/// What is at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WayEnd {
    /// A place below a grant, without links, whether something lies there or not.
    Inside(PathBuf),
    /// One that no grant for writing is around, by text.
    Outside(PathBuf),
    /// What depends on links outside, on who asks, or on what is not there.
    Unknown,
}

impl WalkedPath {
    /// The place, if it lies below a grant.
    pub(super) fn inside(&self) -> Option<&Path> {
        match &self.end {
            WayEnd::Inside(path) => Some(path),
            WayEnd::Outside(_) | WayEnd::Unknown => None,
        }
    }
}

/// One step's place.
enum StepPlace {
    Link(PathBuf),
    Plain,
    Absent,
    Closed,
}

impl Ground {
    /// Goes along `target`, as a link in `directory` would say it. `directory` is a path
    /// without links.
    pub(super) fn way(&self, directory: &Path, target: &Path) -> WalkedPath {
        let mut links = Vec::new();
        let end = match self.straight(directory, target) {
            Some(place) => WayEnd::Inside(place),
            None => self.end(directory, target, &mut links),
        };
        WalkedPath { links, end }
    }

    /// Where it leads, if that lies below a grant.
    pub(super) fn inside(&self, directory: &Path, target: &Path) -> Option<PathBuf> {
        self.way(directory, target).inside().map(Path::to_owned)
    }

    /// The place below a grant to which a way without a link leads, as nearly all do: one call
    /// tells.
    fn straight(&self, directory: &Path, target: &Path) -> Option<PathBuf> {
        let mut at = directory.to_owned();
        let mut parts = target.components().peekable();
        while parts.next_if_eq(&Component::ParentDir).is_some() {
            self.holding(&at)?;
            at.pop();
        }
        let is_down = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let below: Vec<Component<'_>> = parts.collect();
        if !below.iter().all(is_down) {
            return None;
        }
        at.extend(below);
        let (open, below) = self.open(&at)?;
        let there = file::link(open, &below).ok()?;
        there.is_none().then_some(at)
    }

    fn end(&self, directory: &Path, target: &Path, links: &mut Vec<PathBuf>) -> WayEnd {
        let mut at = directory.to_owned();
        let mut steps = Vec::new();
        push(&mut steps, &mut at, target);
        let mut is_absent = false;
        while let Some(name) = steps.pop() {
            if name == ".." {
                if is_absent || !(self.holding(&at).is_some() || self.is_above(&at)) {
                    return WayEnd::Unknown;
                }
                at.pop();
                continue;
            }
            at.push(name);
            if is_anybodys(&at) {
                return WayEnd::Unknown;
            }
            if is_absent {
                continue;
            }
            match self.said(&at) {
                Some(StepPlace::Link(target)) => {
                    if links.len() >= LINKS_MAX {
                        return WayEnd::Unknown;
                    }
                    links.push(at.clone());
                    at.pop();
                    push(&mut steps, &mut at, &target);
                }
                Some(StepPlace::Closed) => return WayEnd::Unknown,
                Some(StepPlace::Absent) => is_absent = true,
                Some(StepPlace::Plain) | None => {}
            }
        }
        if self.holding(&at).is_some() {
            WayEnd::Inside(at)
        } else {
            WayEnd::Outside(at)
        }
    }

    /// What lies at a place without links on the way there; nothing outside the grants.
    fn said(&self, place: &Path) -> Option<StepPlace> {
        let (open, below) = self.open(place)?;
        Some(match file::link(open, &below) {
            Ok(Some(target)) => StepPlace::Link(target.into()),
            Ok(None) => StepPlace::Plain,
            Err(Errno::ENOENT | Errno::ENOTDIR) => StepPlace::Absent,
            Err(_) => StepPlace::Closed,
        })
    }
}

/// Puts the parts of a path on top of the steps, the first one uppermost.
fn push(steps: &mut Vec<OsString>, at: &mut PathBuf, path: &Path) {
    if path.is_absolute() {
        *at = PathBuf::from("/");
    }
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    steps.extend(parts);
}

/// Whether a place is another for each process that asks: what lies below one in proc(5).
fn is_anybodys(place: &Path) -> bool {
    let Ok(below) = place.strip_prefix("/proc") else {
        return false;
    };
    let mut parts = below.components();
    let process = parts.next().map(|part| part.as_os_str().to_string_lossy());
    let is_process = process.is_some_and(|name| {
        name == "self" || name == "thread-self" || name.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_process && parts.next().is_some()
}

/// A path without `.` and `..`, by text alone: for what the user wrote.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::ground::RunPlaces;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_leads_where_the_kernel_goes_or_nobody_knows() {
        let base = nix::unistd::mkdtemp("/tmp/outgate-ways-XXXXXX").unwrap();
        let base = base.canonicalize().unwrap();
        let work = base.join("work");
        std::fs::create_dir_all(work.join("s/t")).unwrap();
        std::fs::create_dir_all(base.join("out")).unwrap();
        std::fs::write(work.join("file"), "").unwrap();
        for (name, target) in [
            ("s/t/up", "../.."),
            ("to-file", "file"),
            ("chain", "s/t/up/to-file"),
            ("circle", "circle"),
            ("away", "../out"),
            ("root", "/"),
        ] {
            symlink(target, work.join(name)).unwrap();
        }
        let ground = Ground::new(RunPlaces {
            ground: std::slice::from_ref(&work),
            shared: &[],
            reach: Vec::new(),
            private: Path::new("/nonexistent"),
            search: None,
            home: None,
            settings: Vec::new(),
        });
        let outside = |path: &Path| WayEnd::Outside(path.to_owned());
        for (target, end, links) in [
            ("file", WayEnd::Inside(work.join("file")), &[][..]),
            ("s/../file", WayEnd::Inside(work.join("file")), &[]),
            ("to-file", WayEnd::Inside(work.join("file")), &["to-file"]),
            (
                "chain",
                WayEnd::Inside(work.join("file")),
                &["chain", "s/t/up", "to-file"],
            ),
            ("s/t/up/../out/x", outside(&base.join("out/x")), &["s/t/up"]),
            ("new/er", WayEnd::Inside(work.join("new/er")), &[]),
            ("new/../file", WayEnd::Unknown, &[]),
            ("../out/x", outside(&base.join("out/x")), &[]),
            ("../out/../work/file", WayEnd::Unknown, &[]),
            ("away/x", outside(&base.join("out/x")), &["away"]),
            (
                "root/etc/passwd",
                outside(Path::new("/etc/passwd")),
                &["root"],
            ),
            ("/proc/self/cwd/file", WayEnd::Unknown, &[]),
            ("/proc/1/cwd/etc", WayEnd::Unknown, &[]),
            ("/proc/cpuinfo", outside(Path::new("/proc/cpuinfo")), &[]),
        ] {
            let way = ground.way(&work, Path::new(target));
            let links: Vec<PathBuf> = links.iter().map(|link| work.join(link)).collect();
            assert_eq!(way, WalkedPath { links, end }, "{target}");
        }
        assert_eq!(ground.way(&work, Path::new("circle")).end, WayEnd::Unknown);
        std::fs::remove_dir_all(base).unwrap();
    }
}
