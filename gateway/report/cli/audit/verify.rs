//! `outgate audit verify`: whether a record is as it was written, over all its
//! files. Lines in, a judgement out; prints nothing itself, except through
//! `voice`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_record::{ChainFault, Chains, RecordEnd, line_hash};

use super::arguments::Verify;
use super::voice;
use crate::records::packed::{self, is_packed};
use crate::records::{self, Go, Line, Shape};

/// The record is not as it was written.
const ALTERED: u8 = 1;
/// Faults that are kept; further ones are counted.
const FAULTS_MAX: usize = 100;
/// `open(2)`: not to wait for whoever holds the other end.
const NONBLOCK: i32 = 0o4000;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) file: PathBuf,
    pub(crate) line: u64,
    pub(crate) what: String,
}

/// A chain and where it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) run: String,
    pub(crate) records: u64,
    pub(crate) lost: u64,
    pub(crate) head: String,
    pub(crate) end: RecordEnd,
    pub(crate) key: Option<String>,
    /// The last one of its records that retention removed, as a later record says.
    pub(crate) removed: Option<u64>,
}

/// Follows a record and keeps what it finds.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    chains: Chains,
    pub(crate) faults: Vec<Fault>,
    pub(crate) faults_in_all: u64,
    pub(crate) lines: u64,
    /// Pieces of lines that a full disk left, by the word of the next record.
    pub(crate) pieces: u64,
    pending: Option<Fault>,
    /// Chains whose beginning is not there, each with the last record that is missing.
    beginnings: BTreeMap<String, (u64, Fault)>,
}

impl Judge {
    /// Looks at one line; its hash, where it is the one that came next.
    pub(crate) fn look(&mut self, line: Line<'_>) -> Option<String> {
        self.lines = self.lines.saturating_add(1);
        let fault = |what: String| Fault {
            file: line.file.to_owned(),
            line: line.number,
            what,
        };
        let said = match line.shape {
            Shape::TooLong => return self.pend(fault("longer than any record".to_owned())),
            Shape::Cut | Shape::Whole => self.chains.follow(line.bytes),
        };
        match said {
            Ok(followed) => {
                // A disk that was full leaves a piece of a line, and the next
                // record says that some were lost.
                match self.pending.take() {
                    Some(_) if followed.lost > 0 => self.pieces = self.pieces.saturating_add(1),
                    Some(fault) => self.keep(fault),
                    None => {}
                }
                Some(followed.hash)
            }
            Err(ChainFault::NoRecord) if line.shape == Shape::Cut => self.pend(fault(
                "cut off: the record ends inside this line".to_owned(),
            )),
            Err(ChainFault::NoRecord) => {
                self.pend(fault("not a record: altered, or a piece of one".to_owned()))
            }
            Err(ChainFault::Missing { run, from: 1, to }) => {
                self.settle();
                let said = ChainFault::Missing {
                    run: run.clone(),
                    from: 1,
                    to,
                };
                // A later record may say that retention removed them.
                self.beginnings.insert(run, (to, fault(said.to_string())));
                Some(line_hash(line.bytes))
            }
            Err(other) => {
                self.settle();
                self.keep(fault(other.to_string()));
                None
            }
        }
    }

    fn pend(&mut self, fault: Fault) -> Option<String> {
        self.settle();
        self.pending = Some(fault);
        None
    }

    /// Nothing followed that explains it.
    fn settle(&mut self) {
        if let Some(fault) = self.pending.take() {
            self.keep(fault);
        }
    }

    fn keep(&mut self, fault: Fault) {
        self.faults_in_all = self.faults_in_all.saturating_add(1);
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    /// The chains, once every line was seen.
    pub(crate) fn end(&mut self) -> Vec<Chain> {
        self.settle();
        let mut removed = BTreeMap::new();
        for (run, (last, fault)) in std::mem::take(&mut self.beginnings) {
            if self.chains.is_removed(&run, last) {
                removed.insert(run, last);
            } else {
                self.keep(fault);
            }
        }
        let chains = self.chains.links().map(|(run, link)| Chain {
            removed: removed.get(run).copied(),
            run: run.to_owned(),
            records: link.records,
            lost: link.lost,
            head: link.hash.clone(),
            end: link.end,
            key: link.key.clone(),
        });
        chains.collect()
    }
}

/// Verifies and says so.
pub(crate) fn verify(options: &Verify, records: Option<&Path>) -> Result<ExitCode, String> {
    let files = records::files(&options.files.paths, records)?;
    let mut judge = Judge::default();
    let mut wanted: Vec<&str> = options.head.iter().map(String::as_str).collect();
    if let Some(wrong) = wanted.iter().find(|head| !is_hash(head)) {
        return Err(format!("`{wrong}` is no hash: 64 hexadecimal digits"));
    }
    if let Some(wrong) = options.key.iter().find(|key| !is_hash(key)) {
        return Err(format!("`{wrong}` is no key: 64 hexadecimal digits"));
    }
    records::each(&files, |line| {
        if let Some(hash) = judge.look(line) {
            wanted.retain(|head| *head != hash);
        }
        Ok(Go::On)
    })?;
    let chains = judge.end();
    if judge.lines == 0 {
        return Err("the record is empty".to_owned());
    }
    let goes_on = files.iter().any(|file| is_written(file));
    let mut faults: Vec<String> = judge.faults.iter().map(said).collect();
    let packed = files.iter().filter(|file| is_packed(file));
    faults.extend(packed.filter_map(|file| packed::fault(file)));
    let open = chains.iter().filter(|chain| chain.end == RecordEnd::Open);
    if !options.open_end && !goes_on {
        faults.extend(open.clone().map(|chain| {
            format!(
                "{}: its end is missing after {} records: cut off, or the run was killed \
                 (--open-end takes that for sound)",
                chain.run, chain.records
            )
        }));
    }
    faults.extend(wanted.iter().map(|head| {
        format!("no line has the hash {head}: it was removed, or its record was made anew")
    }));
    let has = |key: &str| chains.iter().any(|chain| chain.key.as_deref() == Some(key));
    faults.extend(
        options
            .key
            .iter()
            .filter(|key| !has(key))
            .map(|key| format!("no run has the key {key}: its record was removed, or made anew")),
    );
    tell(&judge, &chains, &faults);
    Ok(if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(ALTERED)
    })
}

fn tell(judge: &Judge, chains: &[Chain], faults: &[String]) {
    /// Lines of each kind that are printed.
    const SHOWN_MAX: usize = 20;
    for fault in faults.iter().take(SHOWN_MAX) {
        voice::line(fault);
    }
    let all = judge.faults_in_all.max(count(faults));
    if all > count(faults.get(..SHOWN_MAX).unwrap_or(faults)) {
        voice::line(&format!("{all} faults in all; the first ones are above"));
    }
    for chain in chains.iter().take(SHOWN_MAX) {
        let lost = match chain.lost {
            0 => String::new(),
            lost => format!(", {lost} could not be written"),
        };
        let end = match chain.end {
            RecordEnd::Said => "",
            RecordEnd::Open => ", open end",
        };
        let records = chain.records;
        let removed = chain
            .removed
            .map(|last| format!(", those up to {last} removed as asked"));
        let removed = removed.unwrap_or_default();
        voice::line(&format!(
            "{}: {records} records{removed}{lost}{end}",
            chain.run
        ));
        voice::line(&format!("  head {}", chain.head));
        if let Some(key) = &chain.key {
            voice::line(&format!("  key {key}"));
        }
    }
    if chains.len() > SHOWN_MAX {
        let more = chains.len().saturating_sub(SHOWN_MAX);
        voice::line(&format!("and {more} more runs"));
    }
    let verdict = if faults.is_empty() {
        "sound: as it was written"
    } else {
        "NOT as it was written"
    };
    voice::line(verdict);
}

fn said(fault: &Fault) -> String {
    format!("{}:{}: {}", fault.file.display(), fault.line, fault.what)
}

fn count(faults: &[String]) -> u64 {
    u64::try_from(faults.len()).unwrap_or(u64::MAX)
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether somebody still writes the file (flock(2)).
pub(crate) fn is_written(path: &Path) -> bool {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(NONBLOCK).open(path);
    let is_held = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    path.as_os_str() != "-" && file.is_ok_and(is_held)
}
