//! Where the record of a run goes, and whether the command could alter it.
//! Looks at paths; opens, writes and starts nothing.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use outgate_policy::{Context, Policy};

use crate::run::{Options, RunError};

/// Names of standard output. What the gateway would open under them is its
/// own, which leads nowhere.
const OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

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
        let file = without_parents(working.join(file));
        return vec!["--audit".to_owned(), file.to_string_lossy().into_owned()];
    }
    let variable = |name: &str| options.variables.get(std::ffi::OsStr::new(name)).cloned();
    let home = Some(context.home.clone().into());
    let directory = records_directory(variable("XDG_STATE_HOME"), home);
    directory.map_or_else(Vec::new, |directory| {
        vec![
            "--audit-dir".to_owned(),
            directory.to_string_lossy().into_owned(),
        ]
    })
}

/// Where runs leave their records, by the variables `XDG_STATE_HOME` and `HOME`.
pub fn records_directory(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    state
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".local/state")))
        .map(|state| state.join("outgate/runs"))
}

/// A path with `..` in it as the kernel reads it now: by its text alone nobody
/// can tell which directories it passes through.
fn without_parents(path: PathBuf) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path;
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return path;
    };
    match directory.canonicalize() {
        Ok(directory) => directory.join(name),
        Err(_) => path,
    }
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

/// A record that the command can alter proves nothing, and one that it can
/// replace with a link is written wherever the link leads.
pub(crate) fn refuse_writable_record(
    policy: &Policy,
    arguments: &[String],
) -> Result<(), RunError> {
    let Some(record) = arguments.last() else {
        return Ok(());
    };
    if OUTPUT.contains(&record.as_str()) {
        return Err(RunError::RecordOutput {
            record: record.clone(),
        });
    }
    let path = Path::new(record);
    // What a terminal or a pipe was told cannot be altered; only its name can.
    // What the path is counts, not where it lies: /dev/shm and /proc/self/cwd
    // lead to files.
    let passing = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let held = if passing { path.parent() } else { Some(path) };
    match held.and_then(|held| writable(policy, held)) {
        Some(grant) => Err(RunError::Record {
            record: record.clone(),
            grant: grant.to_owned(),
        }),
        None => Ok(()),
    }
}
