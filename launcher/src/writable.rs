//! What the command may write, or read, by inode: whether something of ours lies
//! where the command could alter or see it. Asks the file system; changes
//! nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, lstat, stat};
use nix::unistd::{AccessFlags, access, geteuid};

/// Which inode something is, whatever its names are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InodeIdentity {
    device: u64,
    inode: u64,
}

impl InodeIdentity {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// What was granted: each inode, and how the policy names it.
#[derive(Debug, Default)]
pub struct Granted(Vec<(InodeIdentity, String)>);

impl Granted {
    /// Adds an object of the grant `path`.
    pub(crate) fn add(&mut self, object: &FileStat, path: &str) {
        self.0.push((InodeIdentity::of(object), path.to_owned()));
    }

    /// Whether exactly this object was added.
    pub(crate) fn names(&self, object: &FileStat) -> bool {
        let identity = InodeIdentity::of(object);
        self.0.iter().any(|(granted, _)| *granted == identity)
    }

    /// The grant of `place` or of a directory around it, whatever their names
    /// are. A link counts as what it is, not as what it leads to: `real` comes
    /// first where links may lead into a grant.
    pub fn around(&self, place: &Path) -> Option<&str> {
        self.holding(place, identity)
    }

    /// The same, by what was looked at while the run got ready.
    pub(crate) fn around_as_seen(&self, place: &Path, looks: &PlaceLooks) -> Option<&str> {
        self.holding(place, |place| looks.identity(place))
    }

    fn holding(
        &self,
        place: &Path,
        identity: impl Fn(&Path) -> Option<InodeIdentity>,
    ) -> Option<&str> {
        place.ancestors().find_map(|place| {
            let identity = identity(place)?;
            let mut granted = self.0.iter();
            let (_, path) = granted.find(|(granted, _)| *granted == identity)?;
            Some(path.as_str())
        })
    }
}

/// The path without symbolic links; `None` when nothing is there.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    // Most paths hold none: the kernel says so at once. And where it comes to something
    // absent, or closed, before it comes to a link, nobody else comes further.
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    if path.is_absolute() && !path.components().any(|part| part == Component::ParentDir) {
        match openat2(AT_FDCWD, path, how) {
            Ok(_) => return Some(path.to_owned()),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => return None,
            Err(_) => {}
        }
    }
    path.canonicalize().ok()
}

/// Looks at places that are asked about again and again while a run gets ready: each is
/// looked at once. Not for what is asked while the command runs.
#[derive(Debug, Default)]
pub(crate) struct PlaceLooks {
    identities: RefCell<HashMap<PathBuf, Option<InodeIdentity>>>,
    real: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
}

impl PlaceLooks {
    fn identity(&self, place: &Path) -> Option<InodeIdentity> {
        let mut known = self.identities.borrow_mut();
        if let Some(identity) = known.get(place) {
            return *identity;
        }
        let identity = identity(place);
        known.insert(place.to_owned(), identity);
        identity
    }

    /// As [`real`].
    pub(crate) fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut known = self.real.borrow_mut();
        if let Some(real) = known.get(path) {
            return real.clone();
        }
        let real = real(path);
        known.insert(path.to_owned(), real.clone());
        real
    }
}

/// Which inode is there. A link counts as what it is.
fn identity(place: &Path) -> Option<InodeIdentity> {
    Some(InodeIdentity::of(&lstat(place).ok()?))
}

/// Whether this account could put something else at a path, or change what is there, if
/// nothing but modes and owners kept it from that. What cannot be asked about counts as if
/// it could.
pub(crate) fn is_replaceable(path: &Path) -> bool {
    let forms = [Some(path.to_owned()), path.canonicalize().ok()];
    forms
        .into_iter()
        .any(|form| form.is_none_or(|path| path.ancestors().any(is_own_to_change)))
}

/// Whether the account may write this very object, give itself the right to, or put another
/// under its name.
fn is_own_to_change(path: &Path) -> bool {
    let own = geteuid().as_raw();
    let Ok(found) = lstat(path) else {
        return true;
    };
    let is_file = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits();
    if found.st_uid == own || is_file && access(path, AccessFlags::W_OK).is_ok() {
        return true;
    }
    let Some(around) = path.parent() else {
        return false;
    };
    let Ok(holder) = stat(around) else {
        return true;
    };
    // In a sticky directory others' entries stay (unlink(2)).
    let is_kept = holder.st_mode & Mode::S_ISVTX.bits() != 0 && holder.st_uid != own;
    !is_kept && access(around, AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_grant_covers_what_lies_below_its_inode_by_any_name() {
        let root = std::env::temp_dir().join(format!("outgate-writable-{}", std::process::id()));
        for name in ["granted/below", "beside"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        symlink(root.join("granted"), root.join("link")).unwrap();
        symlink(root.join("beside"), root.join("granted/out")).unwrap();
        let mut writable = Granted::default();
        writable.add(&lstat(&root.join("granted")).unwrap(), "the grant");
        for covered in [
            "granted",
            "granted/below/new/file",
            "granted/out",
            "granted/out/x",
        ] {
            let found = writable.around(&root.join(covered));
            assert_eq!(found, Some("the grant"), "{covered}");
        }
        for free in ["beside", "beside/granted", "link", ""] {
            assert_eq!(writable.around(&root.join(free)), None, "{free}");
        }
        let real = real(&root.join("link/below")).unwrap();
        assert_eq!(writable.around(&real), Some("the grant"), "through a link");
        fs::remove_dir_all(root).unwrap();
    }
}
