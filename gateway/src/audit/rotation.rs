//! A directory for records whose files follow one another: a file is done after so many
//! bytes or seconds, is compressed then, and the oldest ones go. What goes is said in the
//! next record before it does, so that the chain tells it from what is missing.
//!
//! All of it happens here, below the confinement: this process may make, read and remove
//! files in that directory and nowhere else.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use outgate_handoff::RecordRotation;
use outgate_record::RemovedRecords;

use super::FileChosenBy;
use super::sink::{OpenedPlace, RecordPlace, RecordSink, SinkTurn, append_once, make};

mod listing;
mod packing;
mod retention;

use packing::pack_done;
use retention::Plan;

/// The directory, and what becomes of files in it.
#[derive(Debug)]
pub(super) struct RotatedDirectory {
    path: PathBuf,
    rotation: RecordRotation,
}

impl RotatedDirectory {
    /// Makes the directory where there is none.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn make(path: PathBuf, rotation: RecordRotation) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self { path, rotation })
    }
}

impl RecordPlace for RotatedDirectory {
    fn open(&self, run: &str) -> io::Result<OpenedPlace> {
        let files = RotatedFiles {
            directory: self.path.clone(),
            run: run.to_owned(),
            rotation: self.rotation,
            number: 1,
            current: None,
            plan: Plan::of(&self.path, &self.rotation, (run, SystemTime::now())),
            packing: Arc::default(),
        };
        Ok(OpenedPlace {
            path: files.path(),
            sink: Box::new(files),
            kept: FileChosenBy::Elsewhere,
        })
    }
}

/// Files of one run, one after the other.
#[derive(Debug)]
struct RotatedFiles {
    directory: PathBuf,
    run: String,
    rotation: RecordRotation,
    number: u32,
    current: Option<Current>,
    /// What goes, once a record says so.
    plan: Plan,
    /// Whether files are being compressed.
    packing: Arc<AtomicBool>,
}

/// The file that is written.
#[derive(Debug)]
struct Current {
    file: File,
    length: u64,
    since: Instant,
}

impl RotatedFiles {
    /// Where the current one lies. Names sort as the files follow.
    fn path(&self) -> PathBuf {
        let (run, number) = (&self.run, self.number);
        self.directory.join(if number <= 1 {
            format!("{run}.jsonl")
        } else {
            format!("{run}.part{number:06}.jsonl")
        })
    }

    /// Compresses what is done, aside; one at a time. Where no thread is to be had, it is
    /// done with the next file.
    fn pack(&self) {
        if self.packing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (directory, current) = (self.directory.clone(), self.path());
        let packing = Arc::clone(&self.packing);
        let work = move || {
            pack_done(&directory, &current);
            packing.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("outgate-pack".to_owned());
        if thread.spawn(work).is_err() {
            self.packing.store(false, Ordering::Release);
        }
    }
}

impl RecordSink for RotatedFiles {
    fn make(&mut self) -> io::Result<()> {
        if self.current.is_none() {
            self.current = Some(Current {
                file: make(&self.path())?,
                length: 0,
                since: Instant::now(),
            });
            if self.plan.said().is_empty() {
                // Whole runs, of which no chain has anything to say.
                std::mem::take(&mut self.plan).carry_out();
            }
            self.pack();
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.current.is_none() && self.number == 1
    }

    fn turn(&mut self, bytes_max: u64) -> SinkTurn {
        let bytes_max = match self.rotation.bytes {
            u64::MAX => bytes_max,
            bytes => bytes,
        };
        let age_max = Duration::from_secs(self.rotation.seconds);
        let is_done = |current: &Current| {
            current.length >= bytes_max
                || (current.length > 0 && current.since.elapsed() >= age_max)
        };
        if !self.current.as_ref().is_some_and(is_done) {
            return SinkTurn::Same;
        }
        self.current = None;
        self.number = self.number.saturating_add(1);
        // One that a record ahead speaks of is carried out first.
        if self.plan.is_empty() {
            let now = SystemTime::now();
            self.plan = Plan::of(&self.directory, &self.rotation, (&self.run, now));
        }
        SinkTurn::Next
    }

    fn removing(&self) -> Option<String> {
        RemovedRecords::member(self.plan.said())
    }

    fn remove(&mut self) {
        std::mem::take(&mut self.plan).carry_out();
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.make()?;
        let Some(current) = &mut self.current else {
            return Ok(0);
        };
        let count = append_once(&mut current.file, lines)?;
        let added = u64::try_from(count).unwrap_or(u64::MAX);
        current.length = current.length.saturating_add(added);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outgate_record::{BlockHead, Chains, Record};

    use super::*;
    use crate::audit::{Audit, AuditTarget, Event, Kind, Outcome};

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outgate-rotation-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        path
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn audit(path: &Path, rotation: RecordRotation) -> Audit {
        let target = AuditTarget::rotated(path.to_owned(), rotation).unwrap();
        Audit::new(&target, "s", 7).unwrap()
    }

    fn write(audit: &Audit, count: usize) {
        for number in 0..count {
            let target = format!("a{number}:1");
            let event = Event::new(Kind::Connect, Outcome::Deny, &target);
            audit.write(1, &event).unwrap();
        }
    }

    /// The lines of a file, whichever form it has by now.
    fn lines(path: &Path) -> Vec<u8> {
        if let Ok(lines) = std::fs::read(path) {
            return lines;
        }
        let packed = std::fs::read(listing::packed_name(path)).unwrap();
        let mut rest = packed.as_slice();
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let head = BlockHead::parse(rest).unwrap();
            let length = usize::try_from(head.member_bytes).unwrap();
            lines.extend(head.unpack(&rest[..length]).unwrap());
            rest = &rest[length..];
        }
        lines
    }

    #[test]
    fn files_are_done_by_size_and_compressed_and_the_chain_goes_on() {
        let path = directory("size");
        let rotation = RecordRotation {
            bytes: 4000,
            ..RecordRotation::NEVER
        };
        let audit = audit(&path, rotation);
        write(&audit, 60);
        // Whoever compresses aside is done once nothing changes any more.
        let mut before = Vec::new();
        while before != names(&path) {
            before = names(&path);
            std::thread::park_timeout(Duration::from_millis(500));
        }
        pack_done(&path, &path.join("none"));
        let names = names(&path);
        let packed = names.iter().filter(|name| name.ends_with(".jsonl.gz"));
        assert!(packed.count() >= 3, "{names:?}");
        let mut chains = Chains::default();
        let mut plain: Vec<&str> = names
            .iter()
            .map(|name| name.trim_end_matches(".gz"))
            .collect();
        plain.dedup();
        for name in plain {
            for line in lines(&path.join(name)).split_inclusive(|byte| *byte == b'\n') {
                chains.follow(line.trim_ascii_end()).unwrap();
            }
        }
        assert_eq!(chains.links().next().unwrap().1.records, 60);
    }

    #[test]
    fn a_file_is_done_by_age() {
        let path = directory("age");
        let rotation = RecordRotation {
            seconds: 0,
            ..RecordRotation::NEVER
        };
        write(&audit(&path, rotation), 3);
        let mut names = names(&path);
        for name in &mut names {
            *name = name.trim_end_matches(".gz").to_owned();
        }
        names.dedup();
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn what_goes_is_said_before_it_does_and_nothing_else_goes() {
        let path = directory("keep");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("notes.txt"), "mine").unwrap();
        std::fs::write(path.join("mine.jsonl"), "{}\n").unwrap();
        let rotation = RecordRotation {
            bytes: 4000,
            files: 4,
            ..RecordRotation::NEVER
        };
        let audit = audit(&path, rotation);
        write(&audit, 200);
        // What is compressed aside goes once it is; the next file finds that out.
        for _ in 0..500 {
            if names(&path).len() <= 4 + 2 + 4 {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
            write(&audit, 10);
        }
        let names = names(&path);
        assert!(names.contains(&"notes.txt".to_owned()), "{names:?}");
        assert!(names.contains(&"mine.jsonl".to_owned()), "{names:?}");
        assert!(names.len() <= 4 + 2 + 4, "{names:?}");
        let mut chains = Chains::default();
        let mut plain: Vec<&str> = names
            .iter()
            .filter(|name| name.starts_with("20"))
            .map(|name| name.trim_end_matches(".gz"))
            .collect();
        plain.dedup();
        let mut first = None;
        let mut faults = 0;
        for name in plain {
            for line in lines(&path.join(name)).split_inclusive(|byte| *byte == b'\n') {
                let line = line.trim_ascii_end();
                let record = Record::parse(line).unwrap();
                first.get_or_insert((record.run.to_string(), record.seq));
                faults += usize::from(chains.follow(line).is_err());
            }
        }
        let (run, first) = first.unwrap();
        assert!(first > 1 && faults == 1, "{first} {faults}");
        assert!(chains.is_removed(&run, first - 1));
        assert!(!chains.is_removed(&run, first + 20));
    }
}
