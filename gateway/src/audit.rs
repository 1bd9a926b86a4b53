//! The record of a run: one JSON line per decision, written before its effect,
//! each line naming the hash of the one before (`prev`) and the last one signed
//! (`outgate_record`), so that a changed, missing or reordered line shows. What a line says is `outgate_record`'s.
//! Never written: field values, content, query values.

use std::borrow::Cow;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use outgate_handoff::RecordRotation;
use outgate_policy::{AuditFull, Settings};
use outgate_record::{NO_HASH, Record, VERSION, file_stamp, timestamp};

use crate::limits;

mod counts;
mod event;
mod live;
mod rotation;
mod sink;
mod writer;

pub(crate) use counts::RecordCounts;
pub(crate) use event::Event;
pub(crate) use live::{LiveCounts, LiveFeed};
pub(crate) use outgate_record::{Kind, Outcome};
use rotation::RotatedDirectory;
use sink::{OpenFile, RecordPlace, RunDirectory};
use writer::RecordWriter;

/// Where records go.
#[derive(Debug)]
pub struct AuditTarget(Option<Box<dyn RecordPlace>>);

impl AuditTarget {
    /// Nowhere.
    pub fn none() -> Self {
        Self(None)
    }

    fn at(place: impl RecordPlace + 'static) -> Self {
        Self(Some(Box::new(place)))
    }

    /// Opens a file that one or many runs append to.
    ///
    /// # Errors
    /// The file cannot be opened or made.
    pub fn file(path: PathBuf) -> io::Result<Self> {
        let open = |options: &mut OpenOptions| {
            let options = options.append(true).create(true).mode(0o600);
            options.open(&path)
        };
        if path
            .metadata()
            .is_ok_and(|found| found.file_type().is_fifo())
        {
            // Read by us as well it would have no end, and wait where nobody reads.
            let file = open(OpenOptions::new().custom_flags(libc::O_NONBLOCK))?;
            return Ok(Self::at(OpenFile { file, path }));
        }
        let file = match open(OpenOptions::new().read(true)) {
            // Some may add to what they may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open(&mut OpenOptions::new())?
            }
            result => result?,
        };
        // Says that somebody writes; many may.
        file.try_lock_shared().ok();
        Ok(Self::at(OpenFile { file, path }))
    }

    /// Makes a directory for files of one run each, made when the first decision is due.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn directory(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self::at(RunDirectory(path)))
    }

    /// Makes a directory for files that follow one another as `rotation` says.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn rotated(path: PathBuf, rotation: RecordRotation) -> io::Result<Self> {
        Ok(Self::at(RotatedDirectory::make(path, rotation)?))
    }
}

/// The record could not be written: nothing more is allowed from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit record cannot be written")]
pub(crate) struct AuditError;

/// Whose records these are where one record holds those of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordOwner {
    /// Number of the session in its gateway, from 1; 0 is the gateway itself.
    pub(crate) session: u64,
    /// Account of the launcher, as the kernel says.
    pub(crate) uid: u32,
}

/// The records of one sandbox.
#[derive(Debug)]
pub(crate) struct Audit {
    path: Option<PathBuf>,
    kept: FileChosenBy,
    run: String,
    sandbox: String,
    owner: Option<RecordOwner>,
    counts: Arc<RecordCounts>,
    feed: Arc<LiveFeed>,
    live: LiveCounts,
    writer: Arc<Mutex<RecordWriter>>,
}

/// How a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordState {
    /// Records cannot be written now.
    pub(crate) is_failing: bool,
    /// Records that were lost, all together.
    pub(crate) lost: u64,
}

/// Who chose the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChosenBy {
    /// We: a file for this run, where `outgate why last` looks.
    ByRun,
    /// The user.
    Elsewhere,
}

impl Audit {
    /// Prepares the records of one sandbox; `pid` is the launcher's.
    pub(crate) fn new(target: &AuditTarget, sandbox: &str, pid: u32) -> io::Result<Self> {
        let run = format!("{}-{pid}", file_stamp(SystemTime::now()));
        let place = target
            .0
            .as_ref()
            .map(|place| place.open(&run))
            .transpose()?;
        let (writer, path, kept) = match place {
            None => (RecordWriter::nowhere(), None, FileChosenBy::Elsewhere),
            Some(place) => {
                let writer = RecordWriter::into(place.sink);
                (writer, Some(place.path), place.kept)
            }
        };
        Ok(Self {
            path,
            kept,
            run,
            sandbox: sandbox.to_owned(),
            owner: None,
            counts: Arc::default(),
            feed: Arc::default(),
            live: LiveCounts::default(),
            writer: Arc::new(Mutex::new(writer)),
        })
    }

    /// Keeps the record as a policy asks: what a full disk means, and how long
    /// files get.
    #[must_use]
    pub(crate) fn kept_by(self, settings: &Settings) -> Self {
        self.keep(settings.audit_full, settings.audit_file_bytes);
        self
    }

    /// The same, while others write too.
    pub(crate) fn keep(&self, full: AuditFull, file_bytes_max: Option<u64>) {
        if let Ok(mut writer) = self.writer.lock() {
            writer.full = full;
            writer.file_bytes_max = file_bytes_max.unwrap_or(limits::AUDIT_FILE_BYTES_MAX);
        }
    }

    /// The public half of the key that signs the end; nothing where no record is.
    pub(crate) fn key(&self) -> Option<String> {
        let writer = self.writer.lock().ok()?;
        writer.key().map(str::to_owned)
    }

    /// What records were about so far, those of every sandbox of a shared gateway.
    pub(crate) fn counts(&self) -> &RecordCounts {
        &self.counts
    }

    /// The name of the sandbox.
    pub(crate) fn sandbox(&self) -> &str {
        &self.sandbox
    }

    /// The last events of every sandbox, for who watches.
    pub(crate) fn feed(&self) -> &Arc<LiveFeed> {
        &self.feed
    }

    /// What this sandbox did so far.
    pub(crate) fn live(&self) -> &LiveCounts {
        &self.live
    }

    /// How it is.
    pub(crate) fn state(&self) -> RecordState {
        let Ok(writer) = self.writer.lock() else {
            return RecordState {
                is_failing: true,
                lost: 0,
            };
        };
        RecordState {
            is_failing: writer.is_failing(),
            lost: writer.dropped(),
        }
    }

    /// How many records could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.writer.lock().map_or(0, |writer| writer.dropped())
    }

    /// Why records cannot be written, for people: which file, what is wrong with it,
    /// and what to do.
    pub(crate) fn fault(&self) -> String {
        let path = self.path.as_ref().map(|path| path.display().to_string());
        let path = path.unwrap_or_default();
        let fault = self.writer.lock().ok();
        let fault = fault.and_then(|writer| writer.fault().map(str::to_owned));
        let fault = fault.unwrap_or_else(|| AuditError.to_string());
        let advice = "make room there, or name another file with `--audit FILE`";
        format!("`{path}`: {fault}; {advice}")
    }

    /// Prepares the one record of a shared gateway: made now, not with the
    /// first decision, since the gateway outlives its runs.
    pub(crate) fn shared(target: &AuditTarget, uid: u32) -> io::Result<Self> {
        let mut audit = Self::new(target, "", std::process::id())?;
        audit.owner = Some(RecordOwner { session: 0, uid });
        if let Ok(mut writer) = audit.writer.lock() {
            writer.make()?;
        }
        Ok(audit)
    }

    /// The records of one sandbox in the same record and the same chain.
    pub(crate) fn of(&self, sandbox: &str, owner: RecordOwner) -> Self {
        Self {
            path: self.path.clone(),
            kept: FileChosenBy::Elsewhere,
            run: self.run.clone(),
            sandbox: sandbox.to_owned(),
            owner: Some(owner),
            counts: Arc::clone(&self.counts),
            feed: Arc::clone(&self.feed),
            live: LiveCounts::default(),
            writer: Arc::clone(&self.writer),
        }
    }

    /// Where the records go, for people.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether it is where `outgate why last` looks.
    pub(crate) fn is_of_one_run(&self) -> bool {
        self.kept == FileChosenBy::ByRun
    }

    /// Writes one record, and those made before it, with one write(2).
    ///
    /// # Errors
    /// The record is not there: whatever it announces must not happen.
    pub(crate) fn write(&self, generation: u64, event: &Event<'_>) -> Result<(), AuditError> {
        let mut writer = self.writer.lock().map_err(|_| AuditError)?;
        let added = self.add(&mut writer, generation, event);
        let written = added.and_then(|()| writer.append(event.kind()));
        self.counts.put(&written);
        written
    }

    /// Makes one record, to be written together with others by
    /// [`Audit::settle`] with its number.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn note(&self, generation: u64, event: &Event<'_>) -> Result<Noted, AuditError> {
        let mut writer = self.writer.lock().map_err(|_| AuditError)?;
        self.add(&mut writer, generation, event)?;
        if writer.ahead.len() > limits::AUDIT_AHEAD_BYTES_MAX {
            writer.append(event.kind())?;
        }
        Ok(Noted(writer.seq))
    }

    /// Sees to it that a record is in the file.
    ///
    /// # Errors
    /// The record is not there: whatever it announces must not happen.
    pub(crate) fn settle(&self, noted: Noted) -> Result<(), AuditError> {
        let mut writer = self.writer.lock().map_err(|_| AuditError)?;
        let written = if writer.is_written(noted.0) {
            Ok(())
        } else {
            writer.append(None)
        };
        self.counts.put(&written);
        written
    }

    fn add(
        &self,
        writer: &mut RecordWriter,
        generation: u64,
        event: &Event<'_>,
    ) -> Result<(), AuditError> {
        self.counts.add(event.parts());
        self.live.add(event.parts());
        self.feed.add(self.owner, &self.sandbox, event.parts());
        if !writer.is_kept()? {
            return Ok(());
        }
        let prev = writer.prev;
        let signer = Arc::clone(writer.signer()?);
        let time = timestamp(SystemTime::now());
        let record = Record {
            v: VERSION,
            seq: writer.seq.saturating_add(1),
            prev: String::from_utf8_lossy(&prev),
            time: time.into(),
            run: Cow::Borrowed(&self.run),
            sandbox: Cow::Borrowed(&self.sandbox),
            session: self.owner.map(|owner| owner.session),
            uid: self.owner.map(|owner| owner.uid),
            generation,
            lost: writer.lost_before(),
            removed: writer.removing().map(Cow::Owned),
            key: (prev == NO_HASH).then(|| Cow::Borrowed(signer.public())),
            ..event.record()
        };
        let start = writer.ahead.len();
        if serde_json::to_writer(&mut writer.ahead, &record).is_err() {
            writer.ahead.truncate(start);
            return Err(AuditError);
        }
        // A session of a shared gateway ends before its record does.
        let is_whole = self.owner.is_none_or(|owner| owner.session == 0);
        if event.kind() == Some(Kind::Finish) && is_whole {
            signer.sign(&mut writer.ahead, start);
        }
        writer.take(start);
        Ok(())
    }
}

/// A record that was made; whether it is written is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what it announces may only happen once it is settled"]
pub(crate) struct Noted(u64);

#[cfg(test)]
mod tests {
    use outgate_record::{Reason, line_hash};

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outgate-audit-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn each_line_names_the_hash_of_the_line_before() {
        let path = directory("chain").join("file.jsonl");
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        for target in ["a:1", "b:2", "c:3"] {
            let event =
                Event::new(Kind::Connect, Outcome::Deny, target).reason(Reason::NoRule, "x");
            audit.write(1, &event).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut prev = "0".repeat(64);
        for (position, line) in text.lines().enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["seq"], u64::try_from(position).unwrap() + 1);
            assert_eq!(value["prev"], prev);
            prev = line_hash(line.as_bytes());
        }
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn a_directory_gets_a_file_with_the_first_decision_and_keeps_the_newest() {
        let path = directory("rotation");
        for number in 0..limits::AUDIT_FILES_MAX + 3 {
            std::fs::write(path.join(format!("2000010{number:03}.jsonl")), "").unwrap();
        }
        let target = AuditTarget::directory(path.clone()).unwrap();
        let audit = Audit::new(&target, "s", 7).unwrap();
        audit
            .write(1, &Event::new(Kind::Start, Outcome::Note, ""))
            .unwrap();
        assert!(!audit.path().unwrap().exists());
        audit
            .write(1, &Event::new(Kind::Connect, Outcome::Deny, "a:1"))
            .unwrap();
        let text = std::fs::read_to_string(audit.path().unwrap()).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(
            std::fs::read_dir(&path).unwrap().count(),
            limits::AUDIT_FILES_MAX
        );
    }

    #[test]
    fn the_record_of_a_run_that_goes_on_is_kept_however_old() {
        let path = directory("alive");
        let target = AuditTarget::directory(path.clone()).unwrap();
        let decision = Event::new(Kind::Connect, Outcome::Deny, "a:1");
        let old = path.join("20000101T000000.000Z-1.jsonl");
        let older = path.join("19990101T000000.000Z-1.jsonl");
        std::fs::write(&older, "").unwrap();
        let alive = std::fs::File::create(&old).unwrap();
        alive.try_lock().unwrap();
        for number in 0..limits::AUDIT_FILES_MAX {
            std::fs::write(path.join(format!("2001010{number:03}.jsonl")), "").unwrap();
        }
        Audit::new(&target, "s", 7)
            .unwrap()
            .write(1, &decision)
            .unwrap();
        assert!(old.exists() && !older.exists());
        drop(alive);
        Audit::new(&target, "s", 8)
            .unwrap()
            .write(1, &decision)
            .unwrap();
        assert!(!old.exists());
    }

    #[test]
    fn records_that_are_noted_are_written_together_and_in_order() {
        let path = directory("noted").join("file.jsonl");
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        let event = |target| Event::new(Kind::Request, Outcome::Allow, target);
        let lines = || std::fs::read_to_string(&path).unwrap().lines().count();
        let first = audit.note(1, &event("a:1")).unwrap();
        let second = audit.note(1, &event("b:2")).unwrap();
        assert_eq!(lines(), 0);
        audit.settle(first).unwrap();
        assert_eq!(lines(), 2);
        audit.settle(second).unwrap();
        let _left = audit.note(1, &event("c:3")).unwrap();
        audit.write(1, &event("d:4")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (position, line) in text.lines().enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["seq"], u64::try_from(position).unwrap() + 1);
        }
        assert_eq!(lines(), 4);
        for _ in 0..1000 {
            let _never = audit.note(1, &event("e:5")).unwrap();
        }
        assert!(lines() > 100, "what waits is bounded");
    }

    #[test]
    fn what_is_noted_and_cannot_be_written_is_not_settled() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let path = PathBuf::from("/dev/full");
        let target = AuditTarget::at(OpenFile { file, path });
        let audit = Audit::new(&target, "s", 7).unwrap();
        let event = Event::new(Kind::Request, Outcome::Allow, "a:1");
        let noted = audit.note(1, &event).unwrap();
        let other = audit.note(1, &event).unwrap();
        for noted in [noted, other, other] {
            assert_eq!(audit.settle(noted), Err(AuditError));
        }
        assert_eq!(audit.note(1, &event), Err(AuditError));
    }

    #[test]
    fn a_full_disk_fails_now_and_ever_after() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let path = PathBuf::from("/dev/full");
        let target = AuditTarget::at(OpenFile { file, path });
        let audit = Audit::new(&target, "s", 7).unwrap();
        let event = Event::new(Kind::Connect, Outcome::Allow, "a:1");
        assert_eq!(audit.write(1, &event), Err(AuditError));
        assert_eq!(audit.write(1, &event), Err(AuditError));
    }
}
