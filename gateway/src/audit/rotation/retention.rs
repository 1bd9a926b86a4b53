//! Which records go: the oldest ones over the number that stays, and those that are older
//! than may be. Of a run the first ones go first, so that what is left is one piece, and a
//! plan says of each such run where it begins from then on.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use outgate_handoff::RecordRotation;
use outgate_record::{BLOCK_HEAD_BYTES, BlockHead, Record, RemovedRecords};

use super::super::sink::is_held;
use super::listing::{RecordFile, listed};
use crate::limits;

/// Bytes of a first line that are read; records have some hundred.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of a compressed block that are read: blocks have at most half of them.
const BLOCK_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What goes, and what is said of it before.
#[derive(Debug, Default)]
pub(super) struct Plan {
    files: Vec<RecordFile>,
    said: Vec<RemovedRecords>,
}

impl Plan {
    /// Makes a plan for when the next file of `run` is made, at this time.
    pub(super) fn of(
        directory: &Path,
        rotation: &RecordRotation,
        (run, now): (&str, SystemTime),
    ) -> Self {
        let all = listed(directory);
        let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let mut surplus = count.saturating_add(1).saturating_sub(rotation.files);
        let oldest = now.checked_sub(Duration::from_secs(rotation.stay_seconds));
        let is_old = |file: &RecordFile| {
            let modified = file.modified();
            oldest.is_some_and(|oldest| modified.is_some_and(|modified| modified < oldest))
        };
        let mut plan = Self::default();
        let own_last = all.iter().rev().find(|file| file.run == run);
        for of_run in all.chunk_by(|one, other| one.run == other.run) {
            let goes = of_run
                .iter()
                .take_while(|file| {
                    let goes = surplus > 0 || is_old(file);
                    // The chain of this run goes on from there.
                    let goes = goes && own_last != Some(*file) && !is_held(&file.plain);
                    surplus = surplus.saturating_sub(u64::from(goes));
                    goes
                })
                .count();
            plan.add(of_run, goes);
        }
        plan
    }

    /// The first ones of a run go. Where nobody can say at which record the rest begins,
    /// all stay.
    fn add(&mut self, of_run: &[RecordFile], goes: usize) {
        let (going, staying) = of_run.split_at_checked(goes).unwrap_or_default();
        if going.is_empty() {
            return;
        }
        if let Some(next) = staying.first() {
            let first = first_record(next).filter(|_| self.said.len() < limits::AUDIT_SAID_MAX);
            let Some((run, before)) = first else {
                return;
            };
            self.said.push(RemovedRecords { run, before });
        }
        self.files.extend_from_slice(going);
    }

    /// What the next record has to say.
    pub(super) fn said(&self) -> &[RemovedRecords] {
        &self.said
    }

    /// Whether nothing goes.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Removes the files. What cannot be removed is in the next plan again.
    pub(super) fn carry_out(self) {
        for file in self.files {
            std::fs::remove_file(file.packed()).ok();
            std::fs::remove_file(&file.plain).ok();
        }
    }
}

/// The run and the number of the first record of a file.
fn first_record(file: &RecordFile) -> Option<(String, u64)> {
    let open = |path: &Path| {
        let mut options = OpenOptions::new();
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        options.read(true).custom_flags(flags).open(path)
    };
    let line = match open(&file.plain) {
        Ok(plain) => first_line(plain),
        Err(_) => first_packed(&open(&file.packed()).ok()?),
    };
    let record = Record::parse(&line?)?;
    Some((record.run.into_owned(), record.seq))
}

fn first_line(from: impl Read) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut from = BufReader::new(from.take(LINE_BYTES_MAX));
    from.read_until(b'\n', &mut line).ok()?;
    (line.pop() == Some(b'\n')).then_some(line)
}

fn first_packed(mut file: &File) -> Option<Vec<u8>> {
    let mut member = Vec::new();
    let head = u64::try_from(BLOCK_HEAD_BYTES).ok()?;
    file.by_ref().take(head).read_to_end(&mut member).ok()?;
    let head_of = BlockHead::parse(&member).ok()?;
    let rest = u64::from(head_of.member_bytes).checked_sub(head)?;
    file.take(rest.min(BLOCK_BYTES_MAX))
        .read_to_end(&mut member)
        .ok()?;
    first_line(head_of.unpack(&member).ok()?.as_slice())
}
