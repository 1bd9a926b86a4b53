//! Where a walk goes on beside the tree, as far as the command may write there: what links of
//! the table lead to, link by link; what settings of git, wherever they lie, name as further
//! settings and directories of hooks; what pointers of git lead to; and modules with which
//! Python starts.

use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use super::{
    Area, DEPTH_MAX, DirectoryStanding, FoundFile, GIT_CONFIG, GIT_DIRECTORY, Here, PYTHON_START,
    SETTINGS_MAX, Touched, Walk, WalkItem, row,
};
use crate::leftovers::file::{self, FileContent};
use crate::leftovers::judge::{Drivers, Scene, git, python};
use crate::leftovers::kinds::Row;
use crate::leftovers::limits::{TOPS_MAX, WORDS_MAX};
use crate::leftovers::table::{
    GIT_ATTRIBUTES, GIT_HOOK, GIT_PROGRAM, GIT_WORK_TREE, PYTHON_ENTRY, PYTHON_MODULE, SET_ID,
};
use crate::leftovers::way::WalkedPath;

/// What a link is in the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandsFor {
    /// A directory on the way to files of the table.
    Way,
    File,
}

/// What of a repository holds no settings.
pub(super) const GIT_DATA: [&str; 4] = ["objects", "refs", "logs", "lfs"];

/// Called with each file that is found.
type On<'o> = dyn FnMut(&FoundFile<'_>) + 'o;

impl Walk<'_> {
    /// The row of a file that may give others' rights to who starts it, and that came since,
    /// where the names in its directory changed: no way is known to give an old one such
    /// rights, and a look at each file would take long.
    pub(super) fn raising(&self, here: &Here, (name, kind): (&OsStr, FileType)) -> Option<Row> {
        let is_moved = matches!(
            here.item.standing,
            DirectoryStanding::Fresh | DirectoryStanding::Moved
        );
        let is_new = is_moved || here.touched == Touched::Yes;
        if self.before.is_none() || !kind.is_file() || !is_new {
            return None;
        }
        let state = file::state(here.opened.as_fd(), name)?;
        let came = is_moved || state.is_since(self.since);
        let raises = came && file::raises(&here.opened, name, state);
        raises.then(|| row(SET_ID)).flatten()
    }

    /// What a link of the table leads to, where the command may write it: it is judged as what
    /// the link stands for, and so are the links on the way.
    pub(super) fn follow(
        &mut self,
        here: &Here,
        found: &FoundFile<'_>,
        stands_for: StandsFor,
        on: &mut On<'_>,
    ) {
        let FileContent::Link(target) = found.content() else {
            return;
        };
        let way = self.ground.way(&here.absolute, target.as_ref());
        self.links(&way, Some(found.row), on);
        let Some(target) = way.inside() else {
            return;
        };
        match stands_for {
            StandsFor::Way => {
                let seen = here.item.seen.join(found.name);
                self.elsewhere(target, seen, here.item.depth, here.item.area);
            }
            StandsFor::File => self.file(target, found.row, on),
        }
    }

    /// What a link leads to where a walk does not go by itself: within a repository's data.
    pub(super) fn data_behind(&mut self, here: &Here, found: &FoundFile<'_>) {
        if let FileContent::Link(target) = found.content() {
            self.data(&here.absolute, target.as_ref());
        }
    }

    /// The same by a path from a directory. What lies there may have come in whole.
    fn data(&mut self, directory: &Path, target: &Path) {
        let way = self.ground.way(directory, target);
        let ground = self.ground;
        let held = way.inside().and_then(|place| ground.holding(place));
        let (Some(place), Some((root, path))) = (way.inside(), held) else {
            return;
        };
        if !is_data(&path) {
            return;
        }
        let opened = ground.open(place);
        let opened = opened.map(|(open, below)| file::directory(open, &below));
        let is_other = matches!(opened, None | Some(Err(Errno::ENOTDIR | Errno::ENOENT)));
        if is_other || !self.followed.insert((place.to_owned(), OsString::new())) {
            return;
        }
        self.queue.push_front(WalkItem {
            root,
            path,
            seen: place.to_owned(),
            depth: 0,
            standing: DirectoryStanding::Moved,
            touched_above: Touched::Yes,
            area: Area::Own,
        });
    }

    /// A file or a link somewhere below the grants, by a path without links, that is judged by
    /// a row.
    fn file(&mut self, path: &Path, row: Row, on: &mut On<'_>) {
        let ground = self.ground;
        let Some((open, below)) = ground.open(path) else {
            return;
        };
        let (Some(above), Some(name)) = (below.parent(), below.file_name()) else {
            return;
        };
        let Ok(directory) = file::directory(open, above) else {
            return;
        };
        let state = file::state(directory.as_fd(), name);
        if let Some(state) = state.filter(|state| state.is_file() || state.is_link()) {
            let found = FoundFile {
                directory: &directory,
                name,
                path: path.to_owned(),
                row,
                state,
                standing: DirectoryStanding::Unlisted,
            };
            on(&found);
            if state.is_file() {
                self.named(&found, on);
            }
        }
    }

    /// What a file of the table names elsewhere.
    pub(super) fn named(&mut self, found: &FoundFile<'_>, on: &mut On<'_>) {
        let token = found.token();
        let naming = [
            GIT_CONFIG,
            GIT_DIRECTORY,
            GIT_WORK_TREE,
            PYTHON_START,
            PYTHON_ENTRY,
        ];
        if !naming.contains(&token) {
            return;
        }
        let (FileContent::Text(bytes), Some(directory)) = (found.content(), found.path.parent())
        else {
            return;
        };
        let text = String::from_utf8_lossy(&bytes);
        if token == GIT_CONFIG {
            self.settings(directory, &text, on);
        } else if token == PYTHON_START {
            self.words_of(&python::executed(&bytes));
        } else if token == PYTHON_ENTRY {
            self.words_of(&[bytes]);
        } else if token == GIT_WORK_TREE {
            let named = Path::new(git::pointed(&text));
            self.data(directory, named.parent().unwrap_or(named));
        } else {
            let way = self.ground.way(directory, Path::new(git::pointed(&text)));
            self.links(&way, Some(found.row), on);
            if let Some(target) = way.inside() {
                self.elsewhere(target, PathBuf::from("/@git"), 0, Area::Git);
            }
        }
    }

    fn words_of(&mut self, lines: &[Vec<u8>]) {
        let room = WORDS_MAX.saturating_sub(self.words.len());
        self.words
            .extend(python::words(lines).into_iter().take(room));
    }

    /// What settings outside the grants name.
    pub(super) fn around(&mut self, on: &mut On<'_>) {
        let outside = self.ground.outside();
        for top in &outside.tops {
            self.top(top, on);
        }
        for (directory, text) in &outside.settings {
            self.settings(directory, text, on);
        }
    }

    /// What a text of settings names, which lies in a directory: hooks, programs, attributes and
    /// further settings.
    fn settings(&mut self, directory: &Path, text: &str, on: &mut On<'_>) {
        let ground = self.ground;
        let paths = |list: Vec<String>| -> Vec<PathBuf> {
            let expanded = list.iter();
            let expanded = expanded.filter_map(|named| git::expanded(named, ground.home()));
            expanded.collect()
        };
        for named in paths(git::hooks_paths(text)) {
            if self.hooks.contains(&named) || self.is_full(self.hooks.len()) {
                continue;
            }
            for top in self.tops.clone() {
                self.hooks_below(&top, &named, on);
            }
            self.hooks_below(Path::new("/"), &named, on);
            self.hooks.push(named);
        }
        let inside = |directory: &Path, target: &Path| ground.inside(directory, target);
        let scene = Scene {
            directory,
            inside: &inside,
            drivers: &Drivers::new(),
        };
        for named in paths(git::programs(text, &scene)) {
            if self.programs.contains(&named) || self.is_full(self.programs.len()) {
                continue;
            }
            for top in self.tops.clone() {
                self.led(&top, &named, GIT_PROGRAM, on);
            }
            self.programs.push(named);
        }
        for named in paths(git::work_trees(text)) {
            self.data(directory, &named);
        }
        for named in paths(git::attributes_files(text)) {
            self.led(directory, &named, GIT_ATTRIBUTES, on);
            for top in self.tops.clone() {
                self.led(&top, &named, GIT_ATTRIBUTES, on);
            }
        }
        for named in paths(git::includes(text)) {
            self.led(directory, &named, GIT_CONFIG, on);
        }
    }

    /// The file to which a path leads from a directory, and links on the way there, judged by
    /// the row of a name. Settings are read once, so that those in circles end.
    fn led(&mut self, directory: &Path, named: &Path, token: &str, on: &mut On<'_>) {
        if self.share.is_over() {
            return self.over();
        }
        let way = self.ground.way(directory, named);
        let Some(row) = row(token) else {
            return;
        };
        for place in way.links.iter().map(PathBuf::as_path).chain(way.inside()) {
            let is_settings = token == GIT_CONFIG;
            if is_settings
                && (self.is_full(self.included.len()) || !self.included.insert(place.to_owned()))
            {
                continue;
            }
            self.file(place, row, on);
        }
    }

    fn is_full(&mut self, count: usize) -> bool {
        let is_full = count >= SETTINGS_MAX;
        if is_full {
            self.cut(format!(
                "more than {SETTINGS_MAX} settings of git that name others"
            ));
        }
        is_full
    }

    /// A directory from which hooks may be named.
    pub(super) fn top(&mut self, directory: &Path, on: &mut On<'_>) {
        if self.tops.len() >= TOPS_MAX {
            return self.cut(format!("more than {TOPS_MAX} work trees"));
        }
        if !self.tops.insert(directory.to_owned()) {
            return;
        }
        for named in self.hooks.clone() {
            self.hooks_below(directory, &named, on);
        }
        for named in self.programs.clone() {
            self.led(directory, &named, GIT_PROGRAM, on);
        }
    }

    fn hooks_below(&mut self, top: &Path, named: &Path, on: &mut On<'_>) {
        if self.share.is_over() {
            return self.over();
        }
        let way = self.ground.way(top, named);
        self.links(&way, row(GIT_HOOK), on);
        if let Some(target) = way.inside() {
            self.elsewhere(target, PathBuf::from("/@git/hooks"), 0, Area::Own);
        }
    }

    /// Links on a way: whoever turns one has another thing stand at its end.
    fn links(&mut self, way: &WalkedPath, row: Option<Row>, on: &mut On<'_>) {
        for link in &way.links {
            if let Some(row) = row {
                self.file(link, row, on);
            }
        }
    }

    /// A directory that lies somewhere below the grants and is seen as another.
    fn elsewhere(&mut self, target: &Path, seen: PathBuf, depth: usize, area: Area) {
        let Some((root, path)) = self.ground.holding(target) else {
            return;
        };
        let once = (
            target.to_owned(),
            seen.file_name().unwrap_or_default().to_owned(),
        );
        if depth >= DEPTH_MAX || !self.followed.insert(once) {
            return;
        }
        // What is named comes before what only lies there.
        self.queue.push_front(WalkItem {
            root,
            path,
            seen,
            depth: depth.saturating_add(1),
            standing: DirectoryStanding::Unlisted,
            touched_above: Touched::No,
            area,
        });
    }

    /// Modules beside a file with which Python starts, whose words it names.
    pub(super) fn modules(&mut self, here: &Here, names: &[(OsString, FileType)], on: &mut On<'_>) {
        let words = std::mem::take(&mut self.words);
        // In an environment that is new all is new, and its programs as well.
        let is_new = here.item.standing == DirectoryStanding::Fresh;
        let Some(row) = row(PYTHON_MODULE).filter(|_| !words.is_empty() && !is_new) else {
            return;
        };
        for (name, kind) in names {
            let bytes = name.as_bytes();
            let stem = bytes.split(|byte| *byte == b'.').next().unwrap_or_default();
            if !words.iter().any(|word| word.as_bytes() == stem) {
                continue;
            }
            let path = here.absolute.join(name);
            let is_code = [&b".py"[..], b".pyc", b".so"];
            if kind.is_dir() && stem.len() == bytes.len() {
                self.elsewhere(
                    &path,
                    PathBuf::from("/@module"),
                    here.item.depth,
                    here.item.area,
                );
            } else if is_code.iter().any(|end| bytes.ends_with(end))
                && let Some(state) = file::state(here.opened.as_fd(), name)
            {
                on(&FoundFile {
                    directory: &here.opened,
                    name,
                    path,
                    row,
                    state,
                    standing: here.item.standing,
                });
            }
        }
    }
}

/// Whether a place below a grant lies in what of a repository a walk leaves out.
fn is_data(place: &Path) -> bool {
    let mut parts = place.components().map(Component::as_os_str);
    parts.any(|part| part == ".git") && parts.any(|part| GIT_DATA.iter().any(|data| part == *data))
}
