//! What is noted before the command starts, so that what it leaves behind can be told.

use std::ffi::OsStr;
use std::path::PathBuf;

use outgate_policy::PathGrant;

use super::Options;
use crate::leftovers::{Mode, Places, Watch};
use crate::plan::Command;
use crate::record::{Grants, records_directory};
use crate::supervisor::Leaving;

/// Notes what lies where the command may write.
pub(super) fn watch(
    options: &Options,
    grants: Grants<'_>,
    command: &Command,
    run: &str,
) -> Option<Leaving> {
    if options.leftovers == Mode::Off {
        return None;
    }
    let files = grants.policy.filesystem();
    let variable = |name: &str| options.variables.get(OsStr::new(name)).cloned();
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    Some(Leaving {
        watch: Watch::begin(&Places {
            write: paths(&files.write),
            read: paths(&files.read),
            private: &command.private_directory,
            search: variable("PATH"),
        }),
        mode: options.leftovers,
        run: run.to_owned(),
        directory: PathBuf::from(&command.directory),
        // What the command could alter is no account of what it did.
        records: records.filter(|records| grants.writable(records).is_none()),
    })
}

fn paths(grants: &[PathGrant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.path.as_str()).collect()
}
