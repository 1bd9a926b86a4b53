//! Where a walk goes on beside the tree: what links of the table lead to, and directories of
//! hooks that settings name, as far as the command may write there. Judges by text alone
//! where a link leads: to look at what lies outside may wait for ever.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use super::{Found, Here, Item, Standing, StandsFor, Touched, Walk};
use crate::leftovers::file::{self, Content};
use crate::leftovers::ground::Root;
use crate::leftovers::judge::{git, plain};
use crate::leftovers::limits::DEPTH_MAX;

impl Walk<'_> {
    /// What a link of the table leads to, where the command may write it: it is judged as what
    /// the link stands for.
    pub(super) fn follow(
        &mut self,
        here: &Here,
        found: &Found<'_>,
        stands_for: StandsFor,
        on: &mut dyn FnMut(&Found<'_>),
    ) {
        let Content::Link(target) = found.content() else {
            return;
        };
        let target = plain(&here.absolute.join(target));
        if stands_for == StandsFor::Way {
            self.elsewhere(here, &target, here.item.seen.join(found.name));
            return;
        }
        let (Some(above), Some(name)) = (target.parent(), target.file_name()) else {
            return;
        };
        let Some((number, below)) = self.ground.holding(above) else {
            return;
        };
        let Some(Root::Directory { open, .. }) = self.ground.roots().get(number) else {
            return;
        };
        let Ok(directory) = file::directory(open.as_fd(), &below) else {
            return;
        };
        if let Some(state) = file::state(directory.as_fd(), name).filter(|state| state.is_file()) {
            on(&Found {
                directory: &directory,
                name,
                path: target.clone(),
                row: found.row,
                state,
                standing: Standing::Unlisted,
            });
        }
    }

    /// The directories of hooks that settings name.
    pub(super) fn hooks(&mut self, here: &Here, text: &str) {
        for named in git::hooks_paths(text) {
            let is_git = here.absolute.file_name().is_some_and(|name| name == ".git");
            let top = if is_git { here.absolute.parent() } else { None };
            let target = plain(&top.unwrap_or(&here.absolute).join(named));
            self.elsewhere(here, &target, PathBuf::from("/@git/hooks"));
        }
    }

    /// A directory that lies somewhere below the grants and is seen as another.
    fn elsewhere(&mut self, here: &Here, target: &Path, seen: PathBuf) {
        let Some((root, path)) = self.ground.holding(target) else {
            return;
        };
        let once = (
            target.to_owned(),
            seen.file_name().unwrap_or_default().to_owned(),
        );
        if here.item.depth >= DEPTH_MAX || !self.followed.insert(once) {
            return;
        }
        self.queue.push_back(Item {
            root,
            path,
            seen,
            depth: here.item.depth.saturating_add(1),
            standing: Standing::Unlisted,
            touched_above: Touched::No,
            area: here.item.area,
        });
    }
}
