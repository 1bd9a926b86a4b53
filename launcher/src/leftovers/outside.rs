//! Settings of git that the command cannot write and that lead to what it can: the user's, the
//! machine's, and those of repositories around the grants. Read once, before the command
//! starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::judge::git;
use super::limits::{DEPTH_MAX, SETTINGS_MAX};
use super::way::plain;
use crate::git::{limits::LINK_BYTES_MAX, read_file, read_text};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct OutsideLinks {
    /// Texts of settings, each with the directory that it lies in.
    pub(super) settings: Vec<(PathBuf, String)>,
    /// First directories of work trees.
    pub(super) tops: Vec<PathBuf>,
}

impl OutsideLinks {
    /// Reads `files`, those of repositories around `grants`, and what they include.
    pub(super) fn of(files: &[PathBuf], grants: &[PathBuf], home: Option<&Path>) -> Self {
        let is_inside = |path: &Path| grants.iter().any(|grant| path.starts_with(grant));
        let mut found = Self::default();
        let mut wanted: Vec<PathBuf> = files.to_vec();
        for grant in grants.iter().take(SETTINGS_MAX) {
            found.around(grant, &mut wanted);
        }
        let mut known = BTreeSet::new();
        while let Some(path) = wanted.pop() {
            if known.len() >= SETTINGS_MAX || is_inside(&path) || !known.insert(path.clone()) {
                continue;
            }
            let (Some(text), Some(directory)) = (read_file(&path), path.parent()) else {
                continue;
            };
            let named = git::includes(&text).into_iter();
            wanted.extend(named.filter_map(|named| {
                let named = git::expanded(&named, home)?;
                Some(plain(&directory.join(named)))
            }));
            found.settings.push((directory.to_owned(), text));
        }
        found
    }

    /// The repository around a grant, if it is not in it.
    fn around(&mut self, grant: &Path, wanted: &mut Vec<PathBuf>) {
        for top in grant.ancestors().take(DEPTH_MAX) {
            let mark = top.join(".git");
            let Ok(kind) = mark.symlink_metadata().map(|found| found.file_type()) else {
                continue;
            };
            let directory = if kind.is_file() {
                let text = read_text(&mark, LINK_BYTES_MAX).unwrap_or_default();
                plain(&top.join(git::pointed(&text)))
            } else {
                mark
            };
            let common = read_text(&directory.join("commondir"), LINK_BYTES_MAX);
            let common = common.map(|named| plain(&directory.join(git::pointed(&named))));
            for directory in [Some(directory), common].into_iter().flatten() {
                wanted.extend(["config", "config.worktree"].map(|name| directory.join(name)));
            }
            self.tops.push(top.to_owned());
            return;
        }
    }
}
