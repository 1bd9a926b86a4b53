//! What a command leaves behind that runs by itself later: git hooks, editors' tasks, scripts
//! of package managers, start files of shells. Noted before the command starts as far as it
//! lies near, looked for at the end by names, judged by content.
//!
//! Reads files below the command's grants; writes none but in `revert`. Executes nothing,
//! follows no link, waits for nothing. Knows nothing of runs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nix::time::{ClockId, clock_gettime};

mod diff;
mod error;
mod file;
mod ground;
mod judge;
mod kept;
mod kinds;
mod limits;
mod lines;
mod outside;
mod revert;
mod share;
mod table;
mod walk;
mod way;

pub use diff::diff;
pub use error::LeftoversError;
pub use ground::RunPlaces;
pub use kept::{KeptLeftovers, find, list};
pub use lines::lines;
pub use revert::{Reverted, revert};

use file::{FileContent, FileState, Moment};
use ground::Ground;
use judge::{Drivers, Parts, Scene, parts};
use kinds::{Contents, Judge, LeftoverKind, Row};
use table::{
    GIT_CONFIG, KINDS, LINK, PATH_PROGRAM, PYTHON_ENTRY, PYTHON_MODULE, PYTHON_START, SET_ID,
};
use walk::{Bounds, Cut, DirectoryStanding, FoundFile, Listed, Walk};

/// Directories that are not read before the command starts.
const OMITTED: &[&str] = &["node_modules", "target", "__pycache__"];

/// What is done about leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeftoversMode {
    /// They are told and recorded.
    #[default]
    Tell,
    /// And the run ends with a status of its own.
    Fail,
    /// Nobody looks.
    Off,
}

/// What is known of what may be written, from before the command started.
#[derive(Debug)]
pub struct LeftoverWatch {
    ground: Ground,
    since: Moment,
    listed: Listed,
    seen: HashMap<PathBuf, SeenFile>,
}

#[derive(Debug)]
struct SeenFile {
    state: FileState,
    /// Nothing where it was not kept.
    content: Option<FileContent>,
}

/// What was found at the end.
#[derive(Debug, Default)]
pub struct LeftoverLook {
    /// In the order of the table.
    pub left: Vec<Leftover>,
    /// Why not everything was looked at.
    pub unseen: Option<String>,
}

impl LeftoverLook {
    /// Whether nothing was left, as far as can be said.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty() && self.unseen.is_none()
    }
}

/// Something that runs later and that the run wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub(crate) path: PathBuf,
    pub(crate) change: LeftoverChange,
    row: Row,
    was: Was,
    is: FileContent,
    state: FileState,
}

/// How a file came to be as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftoverChange {
    New,
    Changed,
    /// Nobody noted whether there was one.
    Either,
}

impl LeftoverChange {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Either => "new or changed",
        }
    }
}

/// What was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Was {
    Absent,
    Known { content: FileContent, mode: u32 },
    Unknown,
}

impl Leftover {
    fn kind(&self) -> &'static LeftoverKind {
        const NONE: &LeftoverKind = &LeftoverKind {
            token: "",
            what: "",
            when: "",
            paths: &[],
            judge: Judge::Whole,
            contents: Contents::Secret,
        };
        KINDS.get(self.row).unwrap_or(NONE)
    }

    /// Its kind, as records name it.
    pub fn token(&self) -> &'static str {
        self.kind().token
    }

    /// Its path, whatever bytes it is made of.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What happened, for records.
    pub fn detail(&self) -> String {
        format!(
            "{} {}: {}",
            self.change.word(),
            self.kind().what,
            self.kind().when
        )
    }
}

impl LeftoverWatch {
    /// Notes what lies near. To be called when nothing of the command runs yet.
    pub fn begin(places: RunPlaces<'_>) -> Self {
        let ground = Ground::new(places);
        let since = now();
        let is_in_memory = ground.is_in_memory();
        let (directories, time) = if is_in_memory {
            let directories = limits::START_DIRECTORIES_IN_MEMORY_MAX;
            (directories, limits::START_TIME_IN_MEMORY)
        } else {
            (limits::START_DIRECTORIES_MAX, limits::START_TIME)
        };
        let bounds = Bounds {
            directories,
            entries: directories.saturating_mul(limits::START_ENTRIES_EACH),
            time,
            omitted: OMITTED,
        };
        let mut seen = HashMap::new();
        let mut bytes: u64 = 0;
        let mut walk = Walk::new(&ground, bounds, since);
        walk.run(&mut |found| {
            let size = u64::try_from(found.state.size).unwrap_or(u64::MAX);
            let is_kept = seen.len() < limits::START_FILES_MAX
                && bytes.saturating_add(size) <= limits::START_BYTES_MAX
                && (is_in_memory || found.token() != PATH_PROGRAM);
            let content = is_kept.then(|| found.content());
            if matches!(content, Some(FileContent::Text(_))) {
                bytes = bytes.saturating_add(size);
            }
            let state = found.state;
            seen.entry(found.path.clone())
                .or_insert(SeenFile { state, content });
        });
        let listed = std::mem::take(&mut walk.listed);
        Self {
            ground,
            since,
            listed,
            seen,
        }
    }

    /// Looks at what is there now. To be called when nothing of the command runs any more.
    pub fn look(mut self) -> LeftoverLook {
        let bounds = Bounds {
            directories: limits::END_DIRECTORIES_MAX,
            entries: limits::END_ENTRIES_MAX,
            time: limits::END_TIME,
            omitted: &[],
        };
        let seen = std::mem::take(&mut self.seen);
        let mut search = LeftoverSearch {
            since: self.since,
            seen,
            candidates: Vec::new(),
            known: BTreeSet::new(),
            drivers: self
                .ground
                .outside()
                .settings
                .iter()
                .flat_map(|(_, text)| judge::git::drivers(text))
                .collect(),
            bytes: 0,
            cut: None,
        };
        let mut walk = Walk::new(&self.ground, bounds, self.since);
        walk.before = Some(&self.listed);
        walk.run(&mut |found| search.take(found));
        let cut = walk.cut.take().or(search.cut.take());
        let mut look = LeftoverLook {
            left: search.judged(&self.ground),
            unseen: cut.map(|Cut(why)| why),
        };
        look.left
            .sort_by(|a, b| (a.row, &a.path).cmp(&(b.row, &b.path)));
        if look.left.len() > limits::LEFTOVERS_MAX {
            look.left.truncate(limits::LEFTOVERS_MAX);
            let why = format!("more than {} files run later", limits::LEFTOVERS_MAX);
            look.unseen.get_or_insert(why);
        }
        look
    }
}

/// The search at the end.
struct LeftoverSearch {
    since: Moment,
    seen: HashMap<PathBuf, SeenFile>,
    candidates: Vec<Leftover>,
    known: BTreeSet<PathBuf>,
    drivers: Drivers,
    bytes: u64,
    cut: Option<Cut>,
}

impl LeftoverSearch {
    fn take(&mut self, found: &FoundFile<'_>) {
        if found.token() == GIT_CONFIG
            && let FileContent::Text(text) = found.content()
        {
            let drivers = judge::git::drivers(&String::from_utf8_lossy(&text));
            self.drivers.extend(drivers);
        }
        let (change, was) = match self.seen.remove(&found.path) {
            // The same inode with the same times: but what a mapping writes into memory, and
            // what is written within one tick of the clock, changes neither.
            Some(seen)
                if seen.state == found.state
                    && seen
                        .content
                        .as_ref()
                        .is_none_or(|was| *was == found.content()) =>
            {
                self.known.insert(found.path.clone());
                return;
            }
            Some(SeenFile { state, content }) => {
                let mode = state.mode;
                let was = content.map(|content| Was::Known { content, mode });
                (LeftoverChange::Changed, was.unwrap_or(Was::Unknown))
            }
            None => match found.standing {
                // Neither links beside the table nor rights are noted at the start.
                _ if found.token() == SET_ID => (LeftoverChange::Either, Was::Unknown),
                _ if found.token() == LINK => (LeftoverChange::New, Was::Unknown),
                DirectoryStanding::Listed | DirectoryStanding::Fresh => {
                    (LeftoverChange::New, Was::Absent)
                }
                DirectoryStanding::Moved => (LeftoverChange::Either, Was::Unknown),
                DirectoryStanding::Unlisted if found.state.is_since(self.since) => {
                    (LeftoverChange::Either, Was::Unknown)
                }
                DirectoryStanding::Unlisted => return,
            },
        };
        if !self.known.insert(found.path.clone()) {
            return;
        }
        let size = u64::try_from(found.state.size).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(size.min(limits::FILE_BYTES_MAX));
        if self.bytes > limits::END_BYTES_MAX {
            let why = format!("more than {} bytes to be judged", limits::END_BYTES_MAX);
            self.cut.get_or_insert(Cut(why));
            return;
        }
        self.candidates.push(Leftover {
            path: found.path.clone(),
            change,
            row: found.row,
            was,
            is: found.content(),
            state: found.state,
        });
    }

    /// Those of which more runs than before.
    fn judged(self, ground: &Ground) -> Vec<Leftover> {
        let drivers = &self.drivers;
        let inside = |directory: &Path, target: &Path| ground.inside(directory, target);
        let runs_more = |left: &Leftover| {
            let scene = Scene {
                directory: left.path.parent().unwrap_or(Path::new("/")),
                inside: &inside,
                drivers,
            };
            let judge = left.kind().judge;
            let after = parts(judge, &left.is, left.state, &scene);
            let before = match &left.was {
                Was::Absent | Was::Unknown => Parts::new(),
                Was::Known { content, mode } => {
                    let state = FileState {
                        mode: *mode,
                        ..left.state
                    };
                    parts(judge, content, state, &scene)
                }
            };
            let is_wanted = judge != Judge::Appears || left.change != LeftoverChange::Changed;
            // A guard that is gone is told where there are some.
            let mut gone = before.difference(&after);
            let went = matches!(judge, Judge::AllBut(_)) && gone.next().is_some();
            let mut new = after.difference(&before);
            let differs = went || new.any(|part| !is_guard(judge, part));
            is_wanted && !is_sample(&left.path, judge) && differs
        };
        let mut left: Vec<Leftover> = self.candidates.into_iter().filter(runs_more).collect();
        // A package that came with a file with which Python starts is told by that alone.
        let started: BTreeSet<PathBuf> = left
            .iter()
            .filter(|one| [PYTHON_START, PYTHON_ENTRY].contains(&one.token()))
            .filter_map(|one| one.path.parent().map(Path::to_owned))
            .collect();
        let is_told = |one: &Leftover| {
            let came_along = one.token() == PYTHON_MODULE && one.change != LeftoverChange::Changed;
            came_along
                && one
                    .path
                    .ancestors()
                    .skip(1)
                    .take(2)
                    .any(|at| started.contains(at))
        };
        left.retain(|one| !is_told(one));
        left
    }
}

/// Hooks that git brings as samples, and does not run.
fn is_sample(path: &Path, judge: Judge) -> bool {
    judge == Judge::Program && path.extension() == Some(OsStr::new("sample"))
}

/// The clock that the kernel stamps inodes with.
fn now() -> Moment {
    let coarse = ClockId::CLOCK_REALTIME_COARSE;
    clock_gettime(coarse).map_or((0, 0), |now| (now.tv_sec(), now.tv_nsec()))
}

/// Whether a part of agents' settings only takes something from the next agent.
fn is_guard(judge: Judge, part: &[u8]) -> bool {
    let guards: [&[u8]; 2] = [b"permissions.deny.", b"permissions.ask."];
    matches!(judge, Judge::AllBut(_)) && guards.iter().any(|guard| part.starts_with(guard))
}
