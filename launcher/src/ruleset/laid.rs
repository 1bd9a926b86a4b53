//! Links on the way to what a policy grants, as far as a command may have laid them: whoever
//! may write a directory lays a link there, and a later run, or one beside, that grants a
//! path through it would give what the link leads to. So such a link is followed only to
//! what the policy names itself. What was judged is what is opened. Changes nothing.

use std::cell::{OnceCell, RefCell};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, lstat, stat};
use outgate_policy::Filesystem;

use super::Right;
use crate::git::is_looked_at;
use crate::limits::LINKS_MAX;
use crate::writable::Granted;

/// What a granted path leads to.
#[derive(Debug)]
pub(super) enum GrantedPath {
    /// This, and no link that a command may have laid led there. With its path, where no link
    /// is on the way.
    Object(OwnedFd, Option<PathBuf>),
    /// What another grant names itself, or lies below it, and gives.
    Named,
    /// What nobody named, by a link that a command may have laid.
    Laid { link: PathBuf, target: PathBuf },
}

/// The ways to what a policy grants.
#[derive(Debug)]
pub(super) struct Ways<'p> {
    files: &'p Filesystem,
    /// The working directory, which this process is in, whatever lies at its name.
    directory: &'p Path,
    laid: OnceCell<Laid>,
    /// What was seen to be no link, where no command lays any.
    plain: RefCell<Vec<PathBuf>>,
    /// Directories of which all was granted to be read, by paths without links.
    read: RefCell<Vec<PathBuf>>,
}

/// Where commands lay links: where this run's may write, the working directory, and the work
/// tree around it, where another run may have been.
#[derive(Debug)]
struct Laid {
    places: Granted,
    /// Whether the root directory is among them.
    all: bool,
}

/// A way that was walked.
struct WalkedGrant {
    /// Where it leads: no link is left.
    target: PathBuf,
    /// The first link on it that a command may have laid.
    laid: Option<PathBuf>,
    by: By,
}

/// What a way comes by.
#[derive(PartialEq, Eq)]
enum By {
    /// What is what its path says.
    Paths,
    /// What stands for something else than its path says (proc(5)).
    Magic,
    /// Where commands lay links.
    Places,
}

impl<'p> Ways<'p> {
    pub(super) fn new(files: &'p Filesystem, directory: &'p Path) -> Self {
        Self {
            files,
            directory,
            laid: OnceCell::new(),
            plain: RefCell::default(),
            read: RefCell::default(),
        }
    }

    /// Notes a directory of which all was granted to be read.
    pub(super) fn is_read(&self, directory: PathBuf) {
        self.read.borrow_mut().push(directory);
    }

    /// Opens what a granted path leads to.
    ///
    /// # Errors
    /// Those of open(2). `ELOOP`: somebody lays links at this moment.
    pub(super) fn open(&self, path: &Path, right: Right) -> nix::Result<GrantedPath> {
        if path == self.directory {
            let here = by_name(Path::new("."))?;
            return Ok(GrantedPath::Object(here, None));
        }
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        match openat2(AT_FDCWD, path, how) {
            Ok(object) => return Ok(GrantedPath::Object(object, named(path))),
            // There is a link; or a filter around us does not know the call.
            Err(Errno::ELOOP | Errno::ENOSYS | Errno::EPERM) => {}
            Err(errno) => return Err(errno),
        }
        let way = self.walk(path)?;
        if let Some(link) = way.laid {
            return Ok(if self.is_named(&way.target, right) {
                GrantedPath::Named
            } else {
                let target = way.target;
                GrantedPath::Laid { link, target }
            });
        }
        // Links of the system lead to what it has elsewhere: /bin to /usr/bin.
        if right == Right::Read && way.by == By::Paths && self.gives(&way.target) {
            return Ok(GrantedPath::Named);
        }
        let object = if way.by == By::Places {
            without_links(&way.target)
        } else {
            // By whatever is no path, too: /dev/stdout may lead to a pipe.
            by_name(path)
        };
        Ok(GrantedPath::Object(object?, None))
    }

    /// Whether what lies at a path without links was granted to be read by a grant around it.
    fn gives(&self, target: &Path) -> bool {
        let read = self.read.borrow();
        read.iter().any(|directory| target.starts_with(directory)) && lstat(target).is_ok()
    }

    /// Walks an absolute path, link by link.
    fn walk(&self, path: &Path) -> nix::Result<WalkedGrant> {
        let mut way = WalkedGrant {
            target: path.to_owned(),
            laid: None,
            by: By::Paths,
        };
        for _ in 0..=LINKS_MAX {
            if !self.step(&mut way) {
                return Ok(way);
            }
        }
        Err(Errno::ELOOP)
    }

    /// Follows the first link of a way; whether there was one. Where something is absent,
    /// nothing behind it is a link.
    fn step(&self, way: &mut WalkedGrant) -> bool {
        let mut at = PathBuf::from("/");
        let laid = self.laid();
        let mut is_inside = laid.all;
        let path = std::mem::take(&mut way.target);
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            match part {
                Component::Normal(name) => at.push(name),
                Component::ParentDir => {
                    // What was walked so far holds no link, so its name tells what is above.
                    at.pop();
                    is_inside = laid.places.around(&at).is_some();
                    continue;
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            }
            if !is_inside && self.plain.borrow().contains(&at) {
                continue;
            }
            let Ok(object) = lstat(&at) else {
                continue;
            };
            if is_inside {
                way.by = By::Places;
            }
            if is_link(&object)
                && let Ok(said) = fs::read_link(&at)
            {
                let is_plain = way.by == By::Paths && !is_inside;
                if is_plain && parts.as_path().as_os_str().is_empty() && is_own_descriptor(&said) {
                    way.by = By::Magic;
                    break;
                }
                let beside = at.parent().unwrap_or(&at);
                if way.by == By::Paths && at.starts_with("/proc") {
                    way.by = By::Magic;
                }
                way.target = beside.join(said).join(parts.as_path());
                if is_inside {
                    way.laid.get_or_insert(at);
                }
                return true;
            }
            is_inside |= laid.places.names(&object);
            if !is_inside {
                self.plain.borrow_mut().push(at.clone());
            }
        }
        way.target = at;
        false
    }

    /// Whether a grant leads to a place, or to one around it, by no link that a command may
    /// have laid.
    fn is_named(&self, place: &Path, right: Right) -> bool {
        let read = self.files.read.iter().filter(|_| right == Right::Read);
        let mut grants = self.files.write.iter().chain(read);
        grants.any(|grant| {
            let way = self.walk(Path::new(&grant.path));
            way.is_ok_and(|way| way.laid.is_none() && place.starts_with(way.target))
        })
    }

    fn laid(&self) -> &Laid {
        self.laid.get_or_init(|| {
            let tree = self.files.read.iter();
            let tree = tree.filter(|grant| is_looked_at(&grant.place));
            let grants = self.files.write.iter().chain(tree);
            let mut paths: Vec<&Path> = grants.map(|grant| Path::new(&grant.path)).collect();
            paths.retain(|path| *path != self.directory);
            paths.push(Path::new("."));
            let mut places = Granted::default();
            for path in paths {
                if let Ok(object) = stat(path) {
                    places.add(&object, "");
                }
            }
            let all = stat("/").is_ok_and(|root| places.names(&root));
            Laid { places, all }
        })
    }
}

fn is_link(object: &FileStat) -> bool {
    object.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits()
}

/// Whether what a link says are our descriptors, or one of them, which no way leads to
/// (proc_pid_fd(5)).
fn is_own_descriptor(said: &Path) -> bool {
    let digits = |number: &Path| {
        let number = number.as_os_str().as_encoded_bytes();
        number.iter().all(u8::is_ascii_digit)
    };
    said.strip_prefix("/proc/self/fd").is_ok_and(digits)
}

/// The path of what was opened by this one, without links: the kernel's own, too.
fn named(path: &Path) -> Option<PathBuf> {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    let plain = path.is_absolute() && path.components().all(is_plain);
    plain.then(|| path.components().collect())
}

fn by_name(path: &Path) -> nix::Result<OwnedFd> {
    open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
}

/// Opens what lies at a path that held no link when it was looked at.
///
/// # Errors
/// Those of open(2); `ELOOP` where a link leads elsewhere by now.
pub(super) fn without_links(path: &Path) -> nix::Result<OwnedFd> {
    let object = by_name(path)?;
    if real(&object).as_deref() == Some(path) {
        Ok(object)
    } else {
        Err(Errno::ELOOP)
    }
}

/// Where what was opened lies, by which no link leads.
pub(super) fn real(object: &OwnedFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", object.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::PathGrant;
    use std::os::unix::fs::symlink;

    struct TestRoot(PathBuf);

    impl Drop for TestRoot {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    impl TestRoot {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir();
            let root = root.join(format!("outgate-laid-{name}-{}", std::process::id()));
            for name in ["work/build", "home/.ssh", "home/mnt/in", "tree/sub"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            Self(root.canonicalize().unwrap())
        }

        fn link(&self, target: &str, at: &str) {
            symlink(self.0.join(target), self.0.join(at)).unwrap();
        }

        fn grants(&self, place: &str, names: &[&str]) -> Vec<PathGrant> {
            let grant = |name: &&str| PathGrant {
                path: self.0.join(name).display().to_string(),
                place: place.into(),
                optional: false,
            };
            names.iter().map(grant).collect()
        }

        /// Where a grant for writing leads, beside those; or the link that was laid.
        fn open(&self, path: &str, write: &[&str], read: &[&str]) -> Result<String, String> {
            let files = Filesystem {
                write: self.grants("-w", write),
                read: self.grants("-r", read),
                ..Filesystem::default()
            };
            // No process is in it: its name stands for it.
            let directory = self.0.join("nowhere");
            let ways = Ways::new(&files, &directory);
            let short = |path: &Path| path.strip_prefix(&self.0).unwrap().display().to_string();
            match ways.open(&self.0.join(path), Right::Write) {
                Ok(GrantedPath::Object(object, path)) => {
                    let real = real(&object).unwrap();
                    assert!(path.is_none_or(|path| path == real));
                    Ok(short(&real))
                }
                Ok(GrantedPath::Named) => Ok("named".to_owned()),
                Ok(GrantedPath::Laid { link, target }) => {
                    Err(format!("{} {}", short(&link), short(&target)))
                }
                Err(errno) => Err(errno.to_string()),
            }
        }
    }

    #[test]
    fn a_link_that_a_command_may_have_laid_is_followed_to_what_is_named_alone() {
        let root = TestRoot::new("followed");
        root.link("home/.ssh", "work/out");
        root.link("home", "work/deep");
        root.link("work/out", "home/way");
        root.link("work/build", "work/inside");
        root.link("home/mnt", "home/data");
        root.link("work/build", "home/built");
        let laid = |link: &str, target: &str| Err(format!("{link} {target}"));
        for (path, write, read, expected) in [
            // What the user laid elsewhere is followed as ever.
            ("home/data", &["work"][..], &[][..], Ok("home/mnt")),
            ("home/data/in", &["work"], &[], Ok("home/mnt/in")),
            ("home/built", &["work"], &[], Ok("work/build")),
            ("work/build", &["work"], &[], Ok("work/build")),
            ("work/out", &[], &[], Ok("home/.ssh")),
            ("work/out", &["work"], &[], Err(("work/out", "home/.ssh"))),
            (
                "work/deep/.ssh",
                &["work"],
                &[],
                Err(("work/deep", "home/.ssh")),
            ),
            ("home/way", &["work"], &[], Err(("work/out", "home/.ssh"))),
            ("home/data/in", &["home"], &[], Ok("named")),
            // What is named itself is what is meant.
            ("work/inside", &["work"], &[], Ok("named")),
            ("work/out", &["work", "home/.ssh"], &[], Ok("named")),
            ("work/out", &["work", "home"], &[], Ok("named")),
            (
                "work/out",
                &["work", "home/mnt"],
                &[],
                Err(("work/out", "home/.ssh")),
            ),
            (
                "work/out",
                &["work"],
                &["home/.ssh"],
                Err(("work/out", "home/.ssh")),
            ),
            // One that was laid names nothing.
            (
                "work/out",
                &["work", "work/out", "home/way"],
                &[],
                Err(("work/out", "home/.ssh")),
            ),
        ] {
            let expected = expected.map(str::to_owned);
            let expected = expected.or_else(|(link, target)| laid(link, target));
            assert_eq!(root.open(path, write, read), expected, "{path} {write:?}");
        }
    }

    #[test]
    fn links_in_a_work_tree_are_those_of_its_runs() {
        let root = TestRoot::new("tree");
        root.link("home/.ssh", "tree/out");
        let files = Filesystem {
            read: root.grants("the project's root", &["tree"]),
            ..Filesystem::default()
        };
        let directory = root.0.join("tree/sub");
        let ways = Ways::new(&files, &directory);
        let found = ways.open(&root.0.join("tree/out"), Right::Read).unwrap();
        assert!(matches!(found, GrantedPath::Laid { .. }), "{found:?}");
    }

    #[test]
    fn what_is_no_path_is_opened_by_its_name() {
        let files = Filesystem::default();
        let ways = Ways::new(&files, Path::new("/nowhere"));
        for path in ["/proc/self/fd/0", "/proc/self/exe", "/dev/stdin"] {
            let found = ways.open(Path::new(path), Right::Read);
            let is_absent = matches!(found, Err(Errno::ENOENT));
            assert!(
                is_absent || matches!(found, Ok(GrantedPath::Object(..))),
                "{path}: {found:?}"
            );
        }
        let absent = ways.open(Path::new("/nowhere/at/all"), Right::Read);
        assert_eq!(absent.unwrap_err(), Errno::ENOENT);
    }

    #[test]
    fn a_link_that_is_laid_between_the_look_and_the_opening_leads_nowhere() {
        let root = TestRoot::new("race");
        let place = root.0.join("work/build");
        assert!(without_links(&place).is_ok());
        fs::remove_dir(&place).unwrap();
        root.link("home/.ssh", "work/build");
        assert_eq!(without_links(&place).unwrap_err(), Errno::ELOOP);
    }
}
