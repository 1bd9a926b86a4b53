//! Which record a question is about: the newest in the state directory, or that of a run by
//! its name. Finds files; what they hold is for `last.rs`.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use outgate_launcher::record::records_directory;
use outgate_record::Record as Line;

/// Records that are looked through for a run, from the newest on, and how much of each: its
/// first line names it.
const RECORDS_MAX: usize = 1000;
const HEAD_BYTES_MAX: u64 = 16 * 1024;

/// A record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) path: PathBuf,
}

/// Why there is none, and what to do.
pub(crate) type NoRecord = (String, &'static str);

impl Record {
    /// The named one, or the newest in the state directory.
    pub(crate) fn latest(audit: Option<&Path>) -> Result<Self, NoRecord> {
        const HINT: &str =
            "a run leaves one once something was decided; `--audit FILE` reads another";
        if let Some(path) = audit {
            let path = path.to_owned();
            return Ok(Self { path });
        }
        let (directory, mut records) = records();
        let missing = match &directory {
            Some(directory) => format!("there is no record in `{}`", directory.display()),
            None => "there is no state directory".to_owned(),
        };
        let path = records.pop().ok_or((missing, HINT))?;
        Ok(Self { path })
    }

    /// The newest in the state directory that was left by a run of this name.
    pub(crate) fn of_run(name: &str) -> Option<Self> {
        let is_of = |path: &PathBuf| {
            path.file_stem().is_some_and(|stem| stem == name) || head_names(path, name)
        };
        let (_, records) = records();
        let path = records.into_iter().rev().take(RECORDS_MAX).find(is_of)?;
        Some(Self { path })
    }
}

/// Whether the record begins with a run of this name.
fn head_names(path: &Path, name: &str) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES_MAX).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next();
    let first = line.and_then(Line::parse);
    read.is_ok() && first.is_some_and(|first| first.sandbox == name)
}

/// The directory of records, and those in it, the newest last: their names begin with the
/// time.
fn records() -> (Option<PathBuf>, Vec<PathBuf>) {
    let variable = |name: &str| std::env::var_os(name);
    let directory = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let entries = directory
        .as_ref()
        .and_then(|path| std::fs::read_dir(path).ok());
    let mut records: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    records.sort();
    (directory, records)
}
