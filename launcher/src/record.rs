//! Where the record of a run goes, and whether the command could alter it.
//! Looks at paths; opens, writes and starts nothing.

use std::path::{Path, PathBuf};

use outgate_policy::{Context, Policy};

use crate::gateway_link::Opening;
use crate::run::{Options, RunError};

/// Where records go: the option, the policy, or the state directory.
pub(crate) fn audit_arguments(
    options: &Options,
    policy: &Policy,
    context: &Context,
) -> Vec<String> {
    let working = Path::new(&context.working_directory);
    let file = options
        .audit
        .clone()
        .or_else(|| policy.audit_file().map(PathBuf::from));
    if let Some(file) = file {
        let file = working.join(file);
        return vec!["--audit".to_owned(), file.to_string_lossy().into_owned()];
    }
    let variable = |name: &str| options.variables.get(std::ffi::OsStr::new(name));
    let state = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| {
            (!context.home.is_empty()).then(|| Path::new(&context.home).join(".local/state"))
        });
    state.map_or_else(Vec::new, |state| {
        let directory = state.join("outgate/runs");
        vec![
            "--audit-dir".to_owned(),
            directory.to_string_lossy().into_owned(),
        ]
    })
}

/// The grant that lets the command write at `path`, by name or by inode.
pub(crate) fn writable<'a>(policy: &'a Policy, path: &Path) -> Option<&'a str> {
    let existing = path.ancestors().find_map(|path| path.canonicalize().ok())?;
    let grants = policy.filesystem().write.iter();
    let mut covering = grants.filter(|grant| {
        let granted = Path::new(&grant.path);
        path.starts_with(granted)
            || granted
                .canonicalize()
                .is_ok_and(|granted| existing.starts_with(granted))
    });
    covering.next().map(|grant| grant.path.as_str())
}

/// A record that the command can alter proves nothing.
pub(crate) fn refuse_writable_record(policy: &Policy, opening: &Opening) -> Result<(), RunError> {
    let Some(record) = opening.arguments.last() else {
        return Ok(());
    };
    // Terminals and pipes hold no record that could be altered. What the path
    // is counts, not where it lies: /dev/shm and /proc/self/cwd lead to files.
    if std::fs::metadata(record).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    match writable(policy, Path::new(record)) {
        Some(grant) => Err(RunError::Record {
            record: record.clone(),
            grant: grant.to_owned(),
        }),
        None => Ok(()),
    }
}
