//! Places for the lines of a record, and what is put there: a file that is there, or the
//! files of one run, one after the other. A new place is a module with both, and the line
//! that chooses it ([`super::AuditTarget`]). Knows bytes, nothing of what they say.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::FileChosenBy;
use crate::limits;

/// Where records go, chosen before the process confines itself.
pub(crate) trait RecordPlace: fmt::Debug + Send + Sync {
    /// Opens it for the records of a run.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&self, run: &str) -> io::Result<OpenedPlace>;
}

/// A place that is ready for records.
#[derive(Debug)]
pub(crate) struct OpenedPlace {
    pub(super) sink: Box<dyn RecordSink>,
    /// Where it lies, for people.
    pub(super) path: PathBuf,
    pub(super) kept: FileChosenBy,
}

/// Takes the lines of a record.
pub(crate) trait RecordSink: fmt::Debug + Send {
    /// Makes what is only made where it is needed.
    ///
    /// # Errors
    /// It cannot be made.
    fn make(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether the records of the start wait until a decision makes them worth a place.
    fn waits(&self) -> bool {
        false
    }

    /// Whether somebody's last line there is not whole.
    fn is_torn(&self) -> bool {
        false
    }

    /// Begins anew, where so many bytes are there: whether it did.
    fn turn(&mut self, _bytes_max: u64) -> SinkTurn {
        SinkTurn::Same
    }

    /// What retention is about to remove, for the next record to say.
    fn removing(&self) -> Option<String> {
        None
    }

    /// Removes it: the record that says so is there.
    fn remove(&mut self) {}

    /// Puts lines there at once: how many bytes are there of them. What does not fit at
    /// once is a failure, not a fragment to be completed later.
    ///
    /// # Errors
    /// Nothing is there of them.
    fn put(&mut self, lines: &[u8]) -> io::Result<usize>;
}

/// Whether what follows goes somewhere else than what went before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkTurn {
    Same,
    Next,
}

/// A file that is there, opened for appending.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl RecordPlace for OpenFile {
    fn open(&self, _run: &str) -> io::Result<OpenedPlace> {
        Ok(OpenedPlace {
            sink: Box::new(FileSink(self.file.try_clone()?)),
            path: self.path.clone(),
            kept: FileChosenBy::Elsewhere,
        })
    }
}

/// Appends to one file.
#[derive(Debug)]
pub(super) struct FileSink(pub(super) File);

impl RecordSink for FileSink {
    /// Then ours begins on a line of its own.
    fn is_torn(&self) -> bool {
        ends_inside_a_line(&self.0)
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<usize> {
        append_once(&mut self.0, lines)
    }
}

/// A directory for the files of one run each.
#[derive(Debug)]
pub(super) struct RunDirectory(pub(super) PathBuf);

impl RecordPlace for RunDirectory {
    fn open(&self, run: &str) -> io::Result<OpenedPlace> {
        let first = self.0.join(format!("{run}.jsonl"));
        Ok(OpenedPlace {
            path: first.clone(),
            sink: Box::new(RunFiles {
                first,
                number: 1,
                current: None,
            }),
            kept: FileChosenBy::ByRun,
        })
    }
}

/// Files of one run, one after the other.
#[derive(Debug)]
struct RunFiles {
    first: PathBuf,
    number: u32,
    /// The file that is written, once it was made, and its length.
    current: Option<(File, u64)>,
}

impl RunFiles {
    /// Where the current one lies. Names sort as the parts follow.
    fn path(&self) -> PathBuf {
        if self.number <= 1 {
            return self.first.clone();
        }
        self.first
            .with_extension(format!("part{:04}.jsonl", self.number))
    }
}

impl RecordSink for RunFiles {
    fn make(&mut self) -> io::Result<()> {
        if self.current.is_none() {
            self.current = Some((create(&self.path())?, 0));
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.current.is_none() && self.number == 1
    }

    fn turn(&mut self, bytes_max: u64) -> SinkTurn {
        if self
            .current
            .as_ref()
            .is_none_or(|(_, length)| *length < bytes_max)
        {
            return SinkTurn::Same;
        }
        self.current = None;
        self.number = self.number.saturating_add(1);
        SinkTurn::Next
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.make()?;
        let Some((file, length)) = &mut self.current else {
            return Ok(0);
        };
        let count = append_once(file, lines)?;
        *length = length.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        Ok(count)
    }
}

/// One write(2).
pub(super) fn append_once(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Whether the last byte of a file is no line break.
fn ends_inside_a_line(file: &File) -> bool {
    let Ok(about) = file.metadata() else {
        return false;
    };
    let mut last = [b'\n'];
    if about.is_file() && about.len() > 0 {
        // A file that may not be read may not be looked at.
        file.read_exact_at(&mut last, about.len() - 1).ok();
    }
    last != [b'\n']
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        prune(directory);
    }
    make(path)
}

/// Makes a file for its owner alone, and holds it.
pub(super) fn make(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Says that this run lives; where locks do not work it is as old as it is.
    file.try_lock().ok();
    Ok(file)
}

/// Removes the oldest files so that with the new one the limit is kept, but
/// none of a run that still writes. Names begin with the time, so their order
/// is the order of age.
fn prune(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort_unstable();
    let surplus = (files.len() + 1).saturating_sub(limits::AUDIT_FILES_MAX);
    let ended = files.into_iter().filter(|path| !is_held(path));
    for path in ended.take(surplus) {
        // What the launcher kept of the run goes with its record.
        std::fs::remove_file(path.with_extension("leftovers")).ok();
        std::fs::remove_file(path).ok();
    }
}

/// Whether a run holds the file (flock(2)).
pub(super) fn is_held(path: &Path) -> bool {
    // Whatever bears the name is not waited for.
    let mut options = OpenOptions::new();
    let file = options
        .append(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}
