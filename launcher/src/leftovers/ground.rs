//! What the command of a run may write, as places that can be looked at: opened before it
//! starts, so that nothing that it lays in their way is followed.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::file::{self, FileContent};
use super::outside::OutsideLinks;
use super::way::WayEnd;
use crate::writable::real;

/// One grant.
#[derive(Debug)]
pub(super) enum GrantRoot {
    Directory {
        path: PathBuf,
        open: OwnedFd,
    },
    File {
        above: OwnedFd,
        name: OsString,
        path: PathBuf,
    },
}

/// What a run is about.
#[derive(Debug)]
pub struct RunPlaces<'p> {
    /// Directories and files that the command may write, by paths without links.
    pub ground: &'p [PathBuf],
    /// Those of them that runs of other projects write too.
    pub shared: &'p [PathBuf],
    /// What it may read or write, as it is named and by paths without links.
    pub reach: Vec<PathBuf>,
    /// The run's own directory.
    pub private: &'p Path,
    /// Where the user's shell looks for programs.
    pub search: Option<OsString>,
    /// The user's home directory, as the user's git knows it.
    pub home: Option<PathBuf>,
    /// Files of settings that the user's git reads for every repository.
    pub settings: Vec<PathBuf>,
}

/// All grants.
#[derive(Debug)]
pub(super) struct Ground {
    roots: Vec<GrantRoot>,
    paths: Vec<PathBuf>,
    /// What may be read or written, by name.
    reach: Vec<PathBuf>,
    private: PathBuf,
    shared: Vec<PathBuf>,
    search: HashSet<PathBuf>,
    home: Option<PathBuf>,
    outside: OutsideLinks,
}

impl Ground {
    pub(super) fn new(places: RunPlaces<'_>) -> Self {
        let private = real(places.private).unwrap_or_else(|| places.private.to_owned());
        let found = places.ground.iter().cloned();
        let mut wanted: Vec<PathBuf> = found.filter(|path| !path.starts_with(&private)).collect();
        wanted.sort();
        // What lies below another grant is seen with it.
        wanted.dedup_by(|below, above| below.starts_with(&*above));
        let roots: Vec<GrantRoot> = wanted.into_iter().filter_map(root).collect();
        let paths: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
        let outside = OutsideLinks::of(&places.settings, &paths, places.home.as_deref());
        let installed = |path: &PathBuf| {
            path.components()
                .any(|part| part.as_os_str() == "node_modules")
        };
        let search = places.search.iter().flat_map(std::env::split_paths);
        Self {
            roots,
            paths,
            reach: places.reach,
            private,
            shared: places.shared.to_vec(),
            search: search
                .filter(|path| path.is_absolute() && !installed(path))
                .collect::<HashSet<_>>()
                .iter()
                .filter_map(|path| real(path))
                .collect(),
            home: places.home,
            outside,
        }
    }

    pub(super) fn roots(&self) -> &[GrantRoot] {
        &self.roots
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(super) fn outside(&self) -> &OutsideLinks {
        &self.outside
    }

    /// Whether something of it lies in memory alone.
    pub(super) fn is_in_memory(&self) -> bool {
        self.roots.iter().any(|root| match root {
            GrantRoot::Directory { open, .. } | GrantRoot::File { above: open, .. } => {
                file::is_in_memory(open)
            }
        })
    }

    /// Whether a place is around a grant.
    pub(super) fn is_above(&self, place: &Path) -> bool {
        self.paths.iter().any(|path| path.starts_with(place))
    }

    /// A place below a grant as what is open and the way from there.
    pub(super) fn open(&self, place: &Path) -> Option<(BorrowedFd<'_>, PathBuf)> {
        let (number, below) = self.holding(place)?;
        match self.roots.get(number)? {
            GrantRoot::Directory { open, .. } => Some((open.as_fd(), below)),
            GrantRoot::File { above, name, .. } => {
                let is_it = below.as_os_str().is_empty();
                is_it.then(|| (above.as_fd(), PathBuf::from(name)))
            }
        }
    }

    pub(super) fn is_ours(&self, path: &Path) -> bool {
        path == self.private
    }

    /// Whether the user's shell looks for programs there.
    pub(super) fn is_path(&self, directory: &Path) -> bool {
        self.search.contains(directory)
    }

    /// The grant around a place, and the way from it.
    pub(super) fn holding(&self, place: &Path) -> Option<(usize, PathBuf)> {
        self.paths.iter().enumerate().find_map(|(number, root)| {
            let below = place.strip_prefix(root).ok()?;
            Some((number, below.to_owned()))
        })
    }

    /// Whether a place is one that runs of other projects write too.
    fn is_shared(&self, place: &Path) -> bool {
        self.shared.iter().any(|shared| place.starts_with(shared))
    }

    /// Whether a link leads to where the command may neither read nor write, or from a
    /// project to what runs of others write.
    pub(super) fn leads_away(&self, link: &Path, content: &FileContent) -> bool {
        let FileContent::Link(target) = content else {
            return true;
        };
        let directory = link.parent().unwrap_or(Path::new("/"));
        match self.way(directory, target.as_ref()).end {
            WayEnd::Inside(place) => self.is_shared(&place) && !self.is_shared(link),
            WayEnd::Outside(target) => {
                !self.reach.iter().any(|granted| target.starts_with(granted))
            }
            WayEnd::Unknown => true,
        }
    }
}

impl GrantRoot {
    fn path(&self) -> &Path {
        match self {
            Self::Directory { path, .. } | Self::File { path, .. } => path,
        }
    }
}

/// A grant as a place, if it is a directory or a file.
fn root(path: PathBuf) -> Option<GrantRoot> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let opened = open(&path, flags, Mode::empty()).ok()?;
    let state = file::state_of(&opened)?;
    if state.is_directory() {
        return Some(GrantRoot::Directory { path, open: opened });
    }
    let name: &OsStr = path.file_name()?;
    let above = open(path.parent()?, flags | OFlag::O_DIRECTORY, Mode::empty()).ok()?;
    state.is_file().then(|| GrantRoot::File {
        above,
        name: name.to_owned(),
        path: path.clone(),
    })
}
