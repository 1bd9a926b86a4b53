//! A bounded walk below what the command may write, nearest first, by names alone: which files
//! of the table there are, and what is known of the directories they lie in. Opens directories
//! without following links; never leaves the file system of a grant.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::geteuid;

use super::file::{self, FileContent, FileState, Moment};
use super::ground::{GrantRoot, Ground};
use super::kinds::{KindIndex, Row};
use super::limits::{DEPTH_MAX, SETTINGS_MAX};
use super::share::TimeShare;
use super::table::{GIT_CONFIG, GIT_DIRECTORY, KINDS, LINK, PATH_PROGRAM, PYTHON_START};

mod follow;
mod standing;

use follow::{GIT_DATA, StandsFor};
pub(super) use standing::DirectoryStanding;
use standing::Touched;

// In these of a repository's own something runs later.
const GIT_DIRECTORIES: [&str; 5] = ["hooks", "info", "modules", "rebase-merge", "sequencer"];

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) directories: usize,
    pub(super) entries: usize,
    pub(super) time: Duration,
    /// Directories that are left out, by name.
    pub(super) omitted: &'static [&'static str],
}

/// Directories as they were before the command started.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Those that were read whole, and which inodes they were.
    read: HashMap<PathBuf, (u64, u64)>,
    /// Those that were seen.
    seen: HashSet<PathBuf>,
}

/// One file of the table, or a link.
#[derive(Debug)]
pub(super) struct FoundFile<'w> {
    pub(super) directory: &'w OwnedFd,
    pub(super) name: &'w OsStr,
    pub(super) path: PathBuf,
    pub(super) row: Row,
    pub(super) state: FileState,
    pub(super) standing: DirectoryStanding,
}

impl FoundFile<'_> {
    pub(super) fn token(&self) -> &'static str {
        KINDS.get(self.row).map_or("", |kind| kind.token)
    }

    pub(super) fn content(&self) -> FileContent {
        file::content(self.directory.as_fd(), self.name, self.state)
    }
}

/// Why a walk did not see everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut(pub(super) String);

#[derive(Debug)]
struct WalkItem {
    root: usize,
    /// Below the root.
    path: PathBuf,
    /// As patterns see it: by the way through links, and with `@git` for a repository's own.
    seen: PathBuf,
    depth: usize,
    standing: DirectoryStanding,
    /// Whether the directory above was changed during the run.
    touched_above: Touched,
    area: Area,
}

/// Whose files lie there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Area {
    /// The user's.
    Own,
    /// What a package manager or a compiler put there: only what runs without its programs.
    Installed,
    /// The directory of a repository.
    Git,
}

/// Directories of packages and of what was built.
const INSTALLED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// A walk.
pub(super) struct Walk<'w> {
    pub(super) ground: &'w Ground,
    pub(super) bounds: Bounds,
    pub(super) since: Moment,
    /// What was seen before, at the end of a run.
    pub(super) before: Option<&'w Listed>,
    pub(super) listed: Listed,
    pub(super) cut: Option<Cut>,
    queue: VecDeque<WalkItem>,
    /// Directories that were seen as others, so that links in circles end.
    followed: HashSet<(PathBuf, OsString)>,
    /// First directories of work trees, and repositories: where hooks may be named from.
    tops: BTreeSet<PathBuf>,
    /// Directories of hooks that are named by ways that do not say from where.
    hooks: Vec<PathBuf>,
    /// Programs that are named so.
    programs: Vec<PathBuf>,
    /// Settings that others include, so that circles end.
    included: HashSet<PathBuf>,
    /// What may be modules in the directory that is read.
    words: Vec<String>,
    entries: usize,
    share: TimeShare,
}

impl<'w> Walk<'w> {
    pub(super) fn new(ground: &'w Ground, bounds: Bounds, since: Moment) -> Self {
        Self {
            ground,
            bounds,
            since,
            before: None,
            listed: Listed::default(),
            cut: None,
            queue: VecDeque::new(),
            followed: HashSet::new(),
            tops: BTreeSet::new(),
            hooks: Vec::new(),
            programs: Vec::new(),
            included: HashSet::new(),
            words: Vec::new(),
            entries: 0,
            share: TimeShare::begin(bounds.time),
        }
    }

    /// Walks below every root.
    pub(super) fn run(&mut self, on: &mut dyn FnMut(&FoundFile<'_>)) {
        for (number, root) in self.ground.roots().iter().enumerate() {
            match root {
                GrantRoot::Directory { path, .. } => self.queue.push_back(WalkItem {
                    root: number,
                    path: PathBuf::new(),
                    seen: path.clone(),
                    depth: 0,
                    standing: DirectoryStanding::Listed,
                    touched_above: Touched::No,
                    area: Area::Own,
                }),
                GrantRoot::File { above, name, path } => Self::single(above, name, path, on),
            }
        }
        self.around(on);
        let mut directories = 0_usize;
        while let Some(item) = self.queue.pop_front() {
            directories = directories.saturating_add(1);
            let is_over = directories > self.bounds.directories
                || self.entries > self.bounds.entries
                || self.share.is_over();
            if is_over {
                return self.over();
            }
            self.directory(item, on);
        }
    }

    /// Says that a bound ended the walk.
    fn over(&mut self) {
        self.cut(format!(
            "more than {} directories, {} entries or {} ms",
            self.bounds.directories,
            self.bounds.entries,
            self.bounds.time.as_millis()
        ));
    }

    fn cut(&mut self, why: String) {
        self.cut.get_or_insert(Cut(why));
    }

    /// A grant of one file.
    fn single(above: &OwnedFd, name: &OsStr, path: &Path, on: &mut dyn FnMut(&FoundFile<'_>)) {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let index = KindIndex::shared();
        let row = index.row(directory, name, &index.patterns(directory));
        if let (Some(row), Some(state)) = (row, file::state(above.as_fd(), name)) {
            on(&FoundFile {
                directory: above,
                name,
                path: path.to_owned(),
                row,
                state,
                standing: DirectoryStanding::Listed,
            });
        }
    }

    fn directory(&mut self, item: WalkItem, on: &mut dyn FnMut(&FoundFile<'_>)) {
        let Some(GrantRoot::Directory { path: root, open }) = self.ground.roots().get(item.root)
        else {
            return;
        };
        let absolute = join(root, &item.path);
        if self.ground.is_ours(&absolute) {
            return;
        }
        let opened = match file::directory(open.as_fd(), &item.path) {
            Ok(opened) => opened,
            Err(error) => return self.closed(open, &item.path, &absolute, error),
        };
        let Some(state) = file::state_of(&opened) else {
            return;
        };
        let standing = self.standing(&item, &absolute, state);
        let Some(names) = self.names(&opened, &absolute) else {
            return;
        };
        let has = |wanted: &str| names.iter().any(|(name, _)| name == wanted);
        let is_named = item.path.file_name().is_some_and(|name| name == ".git");
        let is_bare =
            !is_named && has("HEAD") && ((has("objects") && has("refs")) || has("commondir"));
        let is_repository = is_named || is_bare;
        let seen = if is_repository {
            Path::new("/@git").to_owned()
        } else {
            item.seen.clone()
        };
        if is_repository || has(".git") {
            self.top(&absolute, on);
        }
        let area = if is_named || (is_repository && item.area == Area::Git) {
            Area::Git
        } else {
            item.area
        };
        if self.before.is_none() {
            let inode = (state.device, state.inode);
            self.listed.read.insert(absolute.clone(), inode);
        }
        let touched = Touched::by(state, self.since);
        let standing = if is_bare {
            standing.of_repository(touched)
        } else {
            standing
        };
        let here = Here {
            touched,
            is_path: self.ground.is_path(&absolute),
            item: WalkItem {
                seen,
                standing,
                area,
                ..item
            },
            absolute,
            opened,
        };
        let patterns = KindIndex::shared().patterns(&here.item.seen);
        for (name, kind) in &names {
            if kind.is_dir() {
                self.enter(&here, name);
            } else {
                self.entry(&here, (name, *kind), &patterns, on);
            }
        }
        self.modules(&here, &names, on);
    }

    /// The names in a directory, unless there are too many.
    fn names(&mut self, opened: &OwnedFd, absolute: &Path) -> Option<Vec<(OsString, FileType)>> {
        let Ok(read) = std::fs::read_dir(file::place(opened)) else {
            self.cut(format!("`{}` cannot be read", absolute.display()));
            return None;
        };
        let mut names = Vec::new();
        for entry in read {
            self.entries = self.entries.saturating_add(1);
            if self.entries > self.bounds.entries {
                self.cut(format!("more than {} entries", self.bounds.entries));
                return None;
            }
            let Ok(entry) = entry else {
                self.cut(format!("`{}` cannot be read", absolute.display()));
                return None;
            };
            // What is gone by now is no leftover.
            names.extend(entry.file_type().ok().map(|kind| (entry.file_name(), kind)));
        }
        Some(names)
    }

    /// A directory that cannot be opened, of the command's own making or somebody else's.
    fn closed(&mut self, root: &OwnedFd, path: &Path, absolute: &Path, error: Errno) {
        let owner = file::owner(root.as_fd(), path);
        let is_others = owner.is_some_and(|owner| owner != geteuid().as_raw());
        // What another account closed to us the command could not write, either.
        if error == Errno::ENOENT
            || error == Errno::ENOTDIR
            || (error == Errno::EACCES && is_others)
        {
            return;
        }
        self.cut(format!("`{}`: {}", absolute.display(), error.desc()));
    }

    fn standing(&self, item: &WalkItem, absolute: &Path, state: FileState) -> DirectoryStanding {
        let Some(before) = self.before else {
            return DirectoryStanding::Listed;
        };
        if item.standing == DirectoryStanding::Fresh {
            return DirectoryStanding::Fresh;
        }
        match before.read.get(absolute) {
            Some(inode) if *inode == (state.device, state.inode) => DirectoryStanding::Listed,
            Some(_) => DirectoryStanding::Fresh,
            None => {
                let is_touched = state.is_since(self.since);
                let is_above = item.touched_above == Touched::Yes;
                let was_seen = before.seen.contains(absolute);
                match item.standing {
                    DirectoryStanding::Listed if !was_seen && item.depth > 0 => {
                        DirectoryStanding::Fresh
                    }
                    DirectoryStanding::Moved => DirectoryStanding::Moved,
                    _ if is_touched && is_above => DirectoryStanding::Moved,
                    _ => DirectoryStanding::Unlisted,
                }
            }
        }
    }

    fn enter(&mut self, here: &Here, name: &OsStr) {
        let item = &here.item;
        let path = join(&item.path, name.as_ref());
        if self.before.is_none() {
            self.listed.seen.insert(here.absolute.join(name));
        }
        let is_named = |list: &[&str]| list.iter().any(|other| name == *other);
        if here.is_data(name) || is_named(self.bounds.omitted) {
            return;
        }
        if item.depth >= DEPTH_MAX {
            return self.cut(format!("directories more than {DEPTH_MAX} deep"));
        }
        let area = if is_named(&INSTALLED) {
            Area::Installed
        } else {
            item.area
        };
        // What lies on the way to settings comes first, however much lies beside it.
        let is_first = name == ".git" || area == Area::Git || KindIndex::shared().is_between(name);
        let next = WalkItem {
            root: item.root,
            path,
            seen: item.seen.join(name),
            depth: item.depth.saturating_add(1),
            standing: item.standing,
            touched_above: here.touched,
            area,
        };
        if is_first {
            self.queue.push_front(next);
        } else {
            self.queue.push_back(next);
        }
    }

    fn entry(
        &mut self,
        here: &Here,
        (name, kind): (&OsStr, FileType),
        patterns: &[(Row, &'static str)],
        on: &mut dyn FnMut(&FoundFile<'_>),
    ) {
        let index = KindIndex::shared();
        let is_way =
            kind.is_symlink() && (name == ".git" || index.is_between(name) || here.is_git(name));
        let by_name = index
            .row(&here.item.seen, name, patterns)
            .filter(|row| here.item.area != Area::Installed || stands_alone(*row));
        let row = match by_name {
            _ if is_way => row(LINK),
            Some(row) => Some(row),
            None if here.is_path => row(PATH_PROGRAM),
            None if kind.is_symlink() && self.before.is_some() => row(LINK),
            None => self.raising(here, (name, kind)),
        };
        let state = |row| Some((row, file::state(here.opened.as_fd(), name)?));
        let Some((row, state)) = row.and_then(state) else {
            return;
        };
        let found = FoundFile {
            directory: &here.opened,
            name,
            path: here.absolute.join(name),
            row,
            state,
            standing: here.item.standing,
        };
        let token = KINDS.get(row).map(|kind| kind.token);
        if token == Some(PATH_PROGRAM) && !(state.is_program() || state.is_link()) {
            return;
        }
        let is_link = kind.is_symlink();
        if is_link && !here.is_data(name) {
            self.data_behind(here, &found);
        }
        if is_link && by_name.is_none() && !is_way && token == Some(LINK) {
            let is_moved = matches!(
                here.item.standing,
                DirectoryStanding::Fresh | DirectoryStanding::Moved
            );
            let is_new = is_moved || state.is_since(self.since);
            if is_new && self.ground.leads_away(&found.path, &found.content()) {
                on(&found);
            }
            return;
        }
        on(&found);
        if is_link {
            let stands_for = if is_way {
                StandsFor::Way
            } else {
                StandsFor::File
            };
            self.follow(here, &found, stands_for, on);
        }
        self.named(&found, on);
    }
}

/// A directory that is being read.
struct Here {
    item: WalkItem,
    absolute: PathBuf,
    opened: OwnedFd,
    touched: Touched,
    is_path: bool,
}

impl Here {
    /// Whether an entry is one of a repository's directories that matter.
    fn is_git(&self, name: &OsStr) -> bool {
        self.item.seen == Path::new("/@git") && GIT_DIRECTORIES.iter().any(|known| name == *known)
    }

    /// Whether an entry is what is looked at only where something else leads there.
    fn is_data(&self, name: &OsStr) -> bool {
        let is_git = self.item.area == Area::Git && self.item.seen == Path::new("/@git");
        is_git && GIT_DATA.iter().any(|other| name == *other)
    }
}

/// Whether files of a row run without the programs that lie beside them.
fn stands_alone(row: Row) -> bool {
    let token = KINDS.get(row).map_or("", |kind| kind.token);
    token.starts_with("git-") || token.starts_with("python-")
}

/// The row of a name.
pub(super) fn row(token: &str) -> Option<Row> {
    KINDS.iter().position(|kind| kind.token == token)
}

fn join(above: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() {
        above.to_owned()
    } else {
        above.join(below)
    }
}
