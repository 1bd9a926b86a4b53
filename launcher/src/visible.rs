//! Where the command may know what links say and which extended attributes files
//! have: in what was granted, whether to read or to write. Asks the file system;
//! changes nothing.

use std::collections::{HashMap, HashSet};
use std::fs::read_link;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::sys::stat::{FileStat, lstat};

use crate::writable::InodeIdentity;

/// All grants of a run, by their inodes and by the paths these had when the run
/// began.
#[derive(Debug, Default)]
pub struct Visible {
    objects: HashSet<InodeIdentity>,
    places: HashMap<PathBuf, InodeIdentity>,
    above: HashSet<PathBuf>,
}

impl Visible {
    /// Adds an object that is granted, and its path: the kernel's own, where it is not known
    /// by which it was opened.
    pub(crate) fn add(&mut self, object: BorrowedFd<'_>, stat: &FileStat, path: Option<PathBuf>) {
        let identity = InodeIdentity::of(stat);
        self.objects.insert(identity);
        // Without its path it is found all the same, from below.
        let asked = || read_link(format!("/proc/self/fd/{}", object.as_raw_fd())).ok();
        let Some(path) = path.or_else(asked).filter(|path| path.is_absolute()) else {
            return;
        };
        for above in path.ancestors().skip(1) {
            if !self.above.insert(above.to_owned()) {
                break;
            }
        }
        self.places.insert(path, identity);
    }

    /// The paths that all grants had when the run began.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Path> {
        self.places.keys().map(PathBuf::as_path)
    }

    /// Whether a grant lies around a path of the kernel's own, without links.
    ///
    /// RACE: as for changes: whoever may not write the directories above an inode
    /// cannot rename them either, so that what lies outside has no name within.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        path.is_absolute() && (self.covers_by_place(path) || self.covers_by_inode(path))
    }

    /// The same by one look: the nearest grant that had a path around this one, if
    /// it has it still.
    fn covers_by_place(&self, path: &Path) -> bool {
        let mut places = path.ancestors();
        let granted = places.find_map(|place| self.places.get_key_value(place));
        granted.is_some_and(|(place, identity)| {
            lstat(place).is_ok_and(|stat| InodeIdentity::of(&stat) == *identity)
        })
    }

    fn covers_by_inode(&self, path: &Path) -> bool {
        path.ancestors().any(|place| {
            lstat(place).is_ok_and(|stat| self.objects.contains(&InodeIdentity::of(&stat)))
        })
    }

    /// Whether a path of the kernel's own is one of a directory above a grant: the
    /// way there, which the command has to walk.
    pub(crate) fn is_above(&self, path: &Path) -> bool {
        self.above.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    fn granted(paths: &[PathBuf]) -> Visible {
        let mut visible = Visible::default();
        for path in paths {
            let object = fs::File::open(path).unwrap();
            let stat = nix::sys::stat::fstat(&object).unwrap();
            visible.add(object.as_fd(), &stat, None);
        }
        visible
    }

    #[test]
    fn what_lies_below_a_grant_is_covered_and_the_way_there_is_not() {
        let root = std::env::temp_dir().join(format!("outgate-visible-{}", std::process::id()));
        for name in ["a/granted/below", "a/granted-not", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let root = fs::canonicalize(root).unwrap();
        fs::write(root.join("b/file"), "").unwrap();
        fs::write(root.join("b/other"), "").unwrap();
        symlink(root.join("a/granted"), root.join("link")).unwrap();
        let visible = granted(&[root.join("a/granted"), root.join("b/file")]);
        for covered in [
            "a/granted",
            "a/granted/below",
            "a/granted/new/file",
            "b/file",
        ] {
            assert!(visible.covers(&root.join(covered)), "{covered}");
            assert!(!visible.is_above(&root.join(covered)), "{covered}");
        }
        for other in ["a", "a/granted-not", "b", "b/other", "link", "", "nothing"] {
            assert!(!visible.covers(&root.join(other)), "{other}");
        }
        for above in ["a", "b", ""] {
            assert!(visible.is_above(&root.join(above)), "{above}");
        }
        assert!(visible.is_above(Path::new("/")));
        for other in ["link", "b/other", "a/granted-not"] {
            assert!(!visible.is_above(&root.join(other)), "{other}");
        }
        // Under another name it is what it was; what has its name now is not.
        fs::rename(root.join("a/granted"), root.join("b/moved")).unwrap();
        fs::create_dir_all(root.join("a/granted/below")).unwrap();
        assert!(visible.covers(&root.join("b/moved/below")), "moved");
        assert!(
            !visible.covers(&root.join("a/granted/below")),
            "in its place"
        );
        assert!(!visible.covers(Path::new("pipe:[1]")));
        fs::remove_dir_all(root).unwrap();
    }
}
