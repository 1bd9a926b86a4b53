//! What is noted before the command starts, so that what it leaves behind can be told.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::RunOptions;
use crate::leftovers::{LeftoverWatch, LeftoversMode, RunPlaces};
use crate::plan::Command;
use crate::record::{Grants, records_directory};
use crate::ruleset::Reach;
use crate::supervisor::Leaving;

/// Files that the user's git reads for every repository (git-config(1), "Files").
fn settings(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let path = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = path("HOME");
    let shared = path("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let system = path("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig"));
    let own = match path("GIT_CONFIG_GLOBAL") {
        Some(global) => vec![global],
        None => [
            home.map(|home| home.join(".gitconfig")),
            shared.map(|shared| shared.join("git/config")),
        ]
        .into_iter()
        .flatten()
        .collect(),
    };
    own.into_iter().chain([system]).collect()
}

/// Notes what lies where the command may write.
pub(super) fn watch(
    options: &RunOptions,
    (grants, reach): (Grants<'_>, &Reach),
    command: &Command,
    run: &str,
) -> Option<Leaving> {
    if options.leftovers == LeftoversMode::Off {
        return None;
    }
    let files = grants.policy.filesystem();
    let variable = |name: &str| options.variables.get(OsStr::new(name)).cloned();
    let named = files.write.iter().chain(&files.read);
    let named = named.map(|grant| PathBuf::from(&grant.path));
    let real = reach.visible.places().map(Path::to_owned);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    Some(Leaving {
        watch: LeftoverWatch::begin(RunPlaces {
            ground: &reach.ground,
            shared: &reach.shared,
            reach: named.chain(real).collect(),
            private: &command.private_directory,
            search: variable("PATH"),
            settings: settings(&variable),
            home: variable("HOME").map(PathBuf::from),
        }),
        mode: options.leftovers,
        run: run.to_owned(),
        directory: PathBuf::from(&command.directory),
        // What the command could alter is no account of what it did.
        records: records.filter(|records| grants.writable(records).is_none()),
    })
}
