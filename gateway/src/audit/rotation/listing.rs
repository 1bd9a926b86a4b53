//! Records in a directory of rotated ones, the oldest first: a file, plain or compressed,
//! or both while it is being compressed. Looks at names; other files it does not see.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::limits;

/// What the names of records end with, and what is put behind where they are compressed.
const ENDING: &str = "jsonl";
const PACKED: &str = "gz";
/// What stands before the number of a further file of a record.
const PART: &str = ".part";

/// One file of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordFile {
    /// Where it lies or lay before it was compressed. Names begin with the time.
    pub(super) plain: PathBuf,
    /// The run, by its name.
    pub(super) run: String,
}

impl RecordFile {
    /// Nothing where the name is none that a run gives.
    fn of(path: &Path) -> Option<Self> {
        let is_packed = path.extension().is_some_and(|ending| ending == PACKED);
        let plain = if is_packed {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        let has_ending = plain.extension().is_some_and(|ending| ending == ENDING);
        let name = plain.file_stem()?.to_str()?;
        let run = name.split_once(PART).map_or(name, |(run, _)| run);
        // The stamp of the time, as `20261121T131734.957Z-1`.
        let (stamp, pid) = run.split_once("Z-")?;
        let is_stamp = stamp.len() == 19
            && stamp
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b'.'));
        let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
        let run = run.to_owned();
        (has_ending && is_stamp && is_pid).then_some(Self { plain, run })
    }

    /// Where it lies compressed.
    pub(super) fn packed(&self) -> PathBuf {
        packed_name(&self.plain)
    }

    /// When it was written last, in the form that there is.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        let about = self.plain.metadata().or_else(|_| self.packed().metadata());
        about.ok()?.modified().ok()
    }
}

/// Where a record lies compressed.
pub(super) fn packed_name(plain: &Path) -> PathBuf {
    let mut name = OsString::from(plain);
    name.push(".");
    name.push(PACKED);
    name.into()
}

/// The records of a directory, the oldest first; none where it cannot be read.
pub(super) fn listed(directory: &Path) -> Vec<RecordFile> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<RecordFile> = entries
        .take(limits::AUDIT_LISTED_MAX)
        .filter_map(|entry| RecordFile::of(&entry.ok()?.path()))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_names_that_runs_give_are_records() {
        let run = "20261121T131734.957Z-1";
        for (name, is_record) in [
            ("20261121T131734.957Z-1.jsonl", true),
            ("20261121T131734.957Z-1.jsonl.gz", true),
            ("20261121T131734.957Z-1.part000002.jsonl.gz", true),
            ("20261121T131734.957Z-1.leftovers", false),
            ("20261121T131734.957Z-x.jsonl", false),
            ("20261121T131734.957Z-1.jsonl.zst", false),
            ("notes.jsonl", false),
            ("backup-Z-1.jsonl.gz", false),
        ] {
            let found = RecordFile::of(Path::new(name));
            assert_eq!(found.is_some(), is_record, "{name}");
            assert!(found.is_none_or(|found| found.run == run), "{name}");
        }
    }
}
