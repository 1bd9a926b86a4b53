//! The lines of a record on their way: whole ones, together as far as may be, and what
//! happens where there is no room. Knows lines and the hash of each, nothing of what they
//! say, and not where they go.

use std::io;
use std::sync::Arc;

use outgate_dlp::span;
use outgate_policy::AuditFull;
use outgate_record::{HashDigits, NO_HASH, Signer, line_digits};

use super::sink::{RecordSink, SinkTurn};
use super::{AuditError, Kind};
use crate::limits;

/// Lines on their way into a file.
#[derive(Debug)]
pub(super) struct RecordWriter {
    sink: Destined,
    /// What to do when a record cannot be written.
    pub(super) full: AuditFull,
    /// Bytes of one file at most, where files follow one another.
    pub(super) file_bytes_max: u64,
    /// The last record that was made, and its hash.
    pub(super) seq: u64,
    pub(super) prev: HashDigits,
    /// Records that were made and are not in the file yet; those of the start
    /// wait for a decision that makes them worth a file.
    pub(super) ahead: Vec<u8>,
    /// The last record that is in the file, or was lost.
    written: u64,
    /// The hash of the last record that is in the file.
    written_hash: HashDigits,
    /// Records that were lost since.
    lost: u64,
    /// Records that were lost, all together.
    dropped: u64,
    /// The file ends inside a line.
    torn: bool,
    /// Why the last record that was lost did not get into the file.
    fault: Option<String>,
    /// Whether a record that is not in the file yet says what is to be removed.
    removal: Removal,
    /// What signs the end, made with the first record.
    signer: Option<Arc<Signer>>,
}

/// Whether records say what is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removal {
    Unsaid,
    /// One that is ahead does.
    Ahead,
}

/// Where lines go.
#[derive(Debug)]
enum Destined {
    Nowhere,
    To(Box<dyn RecordSink>),
    /// They cannot any more.
    Failed,
}

impl RecordWriter {
    fn new(sink: Destined) -> Self {
        let torn = matches!(&sink, Destined::To(sink) if sink.is_torn());
        Self {
            sink,
            full: AuditFull::Deny,
            file_bytes_max: limits::AUDIT_FILE_BYTES_MAX,
            seq: 0,
            prev: NO_HASH,
            ahead: Vec::with_capacity(1024),
            written: 0,
            written_hash: NO_HASH,
            lost: 0,
            dropped: 0,
            torn,
            fault: None,
            removal: Removal::Unsaid,
            signer: None,
        }
    }

    /// Into nothing.
    pub(super) fn nowhere() -> Self {
        Self::new(Destined::Nowhere)
    }

    /// Into this. If somebody's last line there is not whole, ours begins on one of its own.
    pub(super) fn into(sink: Box<dyn RecordSink>) -> Self {
        Self::new(Destined::To(sink))
    }

    /// Makes the first file now.
    pub(super) fn make(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Destined::To(sink) => sink.make(),
            Destined::Nowhere | Destined::Failed => Ok(()),
        }
    }

    /// Whether records go anywhere.
    ///
    /// # Errors
    /// They did, and cannot any more.
    pub(super) fn is_kept(&self) -> Result<bool, AuditError> {
        match self.sink {
            Destined::Nowhere => Ok(false),
            Destined::Failed => Err(AuditError),
            Destined::To(_) => Ok(true),
        }
    }

    /// What signs the end.
    ///
    /// # Errors
    /// There are no random numbers to make it of.
    pub(super) fn signer(&mut self) -> Result<&Arc<Signer>, AuditError> {
        if self.signer.is_none() {
            self.signer = Signer::new().map(Arc::new);
        }
        self.signer.as_ref().ok_or(AuditError)
    }

    /// The public half of the key that signs the end, once a record was made.
    pub(super) fn key(&self) -> Option<&str> {
        self.signer.as_deref().map(Signer::public)
    }

    /// What the next record has to say about those before it that were lost.
    pub(super) fn lost_before(&self) -> Option<u64> {
        (self.ahead.is_empty() && self.lost > 0).then_some(self.lost)
    }

    /// What the next record has to say about older ones that are to go.
    pub(super) fn removing(&mut self) -> Option<String> {
        let Destined::To(sink) = &self.sink else {
            return None;
        };
        if self.removal == Removal::Ahead {
            return None;
        }
        let removing = sink.removing()?;
        self.removal = Removal::Ahead;
        Some(removing)
    }

    /// Why the last record that was lost could not be written.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Records that could not be written, all together.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether the last that was to be written could not be.
    pub(super) fn is_failing(&self) -> bool {
        matches!(self.sink, Destined::Failed) || self.lost > 0
    }

    /// Whether a record needs no more writing.
    pub(super) fn is_written(&self, seq: u64) -> bool {
        self.written >= seq
    }

    /// Takes the line that was put `ahead` from `start` on as a record.
    pub(super) fn take(&mut self, start: usize) {
        let line = span::from(&self.ahead, start);
        self.prev = line_digits(line);
        self.seq = self.seq.saturating_add(1);
        self.ahead.push(b'\n');
    }

    /// Writes what is ahead, with one write(2). Records of the start wait for a
    /// decision.
    ///
    /// # Errors
    /// They are not in the file, and the policy does not go on without them.
    pub(super) fn append(&mut self, kind: Option<Kind>) -> Result<(), AuditError> {
        match &self.sink {
            Destined::Nowhere => return Ok(()),
            Destined::Failed => return Err(AuditError),
            Destined::To(sink)
                if sink.waits() && matches!(kind, Some(Kind::Start | Kind::Finish)) =>
            {
                return Ok(());
            }
            Destined::To(_) => {}
        }
        if self.ahead.is_empty() {
            return Ok(());
        }
        if self.torn {
            self.ahead.insert(0, b'\n');
        }
        let removal = std::mem::replace(&mut self.removal, Removal::Unsaid);
        let put = self.put();
        let count = put.as_ref().copied().unwrap_or(0);
        if count == self.ahead.len() {
            self.written = self.seq;
            self.written_hash = self.prev;
            self.lost = 0;
            self.torn = false;
            self.ahead.clear();
            self.remove(removal);
            return Ok(());
        }
        self.fault = Some(match put {
            Err(error) => error.to_string(),
            Ok(_) => "it has no room for another whole record".to_owned(),
        });
        match self.full {
            AuditFull::Drop => {
                self.lose(count);
                Ok(())
            }
            AuditFull::Deny => {
                self.ahead.clear();
                self.sink = Destined::Failed;
                Err(AuditError)
            }
        }
    }

    /// Has go what a record that is there says is to go.
    fn remove(&mut self, removal: Removal) {
        if let (Destined::To(sink), Removal::Ahead) = (&mut self.sink, removal) {
            sink.remove();
        }
    }

    /// Counts what did not get into the file: of `ahead` it has `count` bytes.
    fn lose(&mut self, count: usize) {
        let there = span::upto(&self.ahead, count);
        let records = span::from(there, usize::from(self.torn));
        let whole = records.split_inclusive(|byte| *byte == b'\n');
        let mut complete: u64 = 0;
        for line in whole.filter_map(|line| line.strip_suffix(b"\n")) {
            complete = complete.saturating_add(1);
            self.written_hash = line_digits(line);
        }
        if let Some(last) = there.last() {
            self.torn = *last != b'\n';
        }
        let made = self.seq.saturating_sub(self.written);
        let lost = made.saturating_sub(complete);
        let before = if complete > 0 { 0 } else { self.lost };
        self.lost = before.saturating_add(lost);
        self.dropped = self.dropped.saturating_add(lost);
        self.written = self.seq;
        self.prev = self.written_hash;
        self.ahead.clear();
    }

    /// Puts what is ahead where it belongs; how much of it is there.
    fn put(&mut self) -> io::Result<usize> {
        let Destined::To(sink) = &mut self.sink else {
            return Ok(0);
        };
        // The line that is torn stays behind, and so does its end.
        if sink.turn(self.file_bytes_max) == SinkTurn::Next
            && self.torn
            && self.ahead.first() == Some(&b'\n')
        {
            self.ahead.remove(0);
            self.torn = false;
        }
        sink.put(&self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::{Path, PathBuf};

    use outgate_record::Chains;

    use super::*;
    use crate::audit::sink::FileSink;
    use crate::audit::{Audit, AuditTarget, Event, Outcome};

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outgate-writer-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn event(target: &str) -> Event<'_> {
        Event::new(Kind::Connect, Outcome::Allow, target)
    }

    /// Follows files in order; how many records they hold, and lost.
    fn followed(paths: &[PathBuf]) -> (u64, u64) {
        let mut chains = Chains::default();
        for path in paths {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                chains.follow(line.as_bytes()).unwrap();
            }
        }
        let (_, link) = chains.links().next().unwrap();
        (link.records, link.lost)
    }

    #[test]
    fn the_chain_goes_on_in_the_next_file() {
        let path = directory("parts");
        let target = AuditTarget::directory(path.clone()).unwrap();
        let audit = Audit::new(&target, "s", 7).unwrap();
        audit.writer.lock().unwrap().file_bytes_max = 1000;
        for _ in 0..20 {
            audit.write(1, &event("a:1")).unwrap();
        }
        let mut parts: Vec<PathBuf> = std::fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        parts.sort();
        assert!(parts.len() > 3, "{parts:?}");
        assert_eq!(parts.first().map(PathBuf::as_path), audit.path());
        assert_eq!(followed(&parts), (20, 0));
    }

    #[test]
    fn a_line_that_somebody_left_unfinished_stays_one_line() {
        let path = directory("torn").join("file.jsonl");
        std::fs::write(&path, "{\"half\":").unwrap();
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        audit.write(1, &event("a:1")).unwrap();
        audit.write(1, &event("b:1")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "{\"half\":"));
    }

    #[test]
    fn what_is_lost_is_counted_and_the_chain_holds() {
        let path = directory("lost").join("file.jsonl");
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        audit.keep(AuditFull::Drop, None);
        audit.write(1, &event("a:1")).unwrap();
        let sink = |path: &Path| {
            let file = OpenOptions::new().append(true).open(path).unwrap();
            audit.writer.lock().unwrap().sink = Destined::To(Box::new(FileSink(file)));
        };
        sink(Path::new("/dev/full"));
        for _ in 0..3 {
            audit.write(1, &event("b:1")).unwrap();
        }
        let first = audit.note(1, &event("c:1")).unwrap();
        let second = audit.note(1, &event("d:1")).unwrap();
        assert_eq!(audit.settle(second), Ok(()));
        assert_eq!(audit.settle(first), Ok(()));
        sink(&path);
        audit.write(1, &event("e:1")).unwrap();
        audit.write(1, &event("f:1")).unwrap();
        assert_eq!(followed(&[path]), (3, 5));
        assert_eq!(audit.lost(), 5);
    }

    #[test]
    fn of_records_written_together_those_that_fit_are_not_lost() {
        let path = directory("some").join("file.jsonl");
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        audit.keep(AuditFull::Drop, None);
        let noted: Vec<_> = (0..3)
            .map(|_| audit.note(1, &event("a:1")).unwrap())
            .collect();
        {
            let mut writer = audit.writer.lock().unwrap();
            let line = writer.ahead.iter().position(|byte| *byte == b'\n').unwrap();
            let there = writer.ahead[..line + 10].to_vec();
            std::fs::write(&path, &there).unwrap();
            writer.lose(there.len());
        }
        audit.settle(noted[2]).unwrap();
        assert_eq!(audit.lost(), 2);
        audit.write(1, &event("b:1")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut chains = Chains::default();
        let faults = text
            .lines()
            .filter(|line| chains.follow(line.as_bytes()).is_err());
        assert_eq!(faults.count(), 1, "the piece of a line, and nothing else");
        assert_eq!(chains.links().next().unwrap().1.lost, 2);
    }
}
