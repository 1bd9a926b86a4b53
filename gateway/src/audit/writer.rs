//! The file of a record: whole lines appended, the next file begun when one is
//! full, old ones removed, and what happens when the disk is full. Knows lines
//! and the hash of each, nothing of what they say.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_policy::AuditFull;
use sha2::{Digest, Sha256};

use super::seal::Signer;
use super::{AuditError, Kind, NO_HASH, hex};
use crate::limits;

/// Lines on their way into a file.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Sink,
    /// What to do when a record cannot be written.
    pub(super) full: AuditFull,
    /// Bytes of one file at most, where files follow one another.
    pub(super) file_bytes_max: u64,
    /// The last record that was made, and its hash.
    pub(super) seq: u64,
    pub(super) prev: [u8; 64],
    /// Records that were made and are not in the file yet; those of the start
    /// wait for a decision that makes them worth a file.
    pub(super) ahead: Vec<u8>,
    /// The last record that is in the file, or was lost.
    written: u64,
    /// The hash of the last record that is in the file.
    written_hash: [u8; 64],
    /// Records that were lost since.
    lost: u64,
    /// Records that were lost, all together.
    dropped: u64,
    /// The file ends inside a line.
    torn: bool,
    /// Why the last record that was lost did not get into the file.
    fault: Option<String>,
    /// What signs the end, made with the first record.
    signer: Option<Arc<Signer>>,
}

#[derive(Debug)]
enum Sink {
    None,
    Open(File),
    /// A file to be made, and later the ones after it.
    Lazy(Parts),
    Parts(Parts, File, u64),
    Failed,
}

/// Files of one run, one after the other.
#[derive(Debug, Clone)]
struct Parts {
    first: PathBuf,
    number: u32,
}

impl Parts {
    /// Where the current one lies. Names sort as the parts follow.
    fn path(&self) -> PathBuf {
        if self.number <= 1 {
            return self.first.clone();
        }
        self.first
            .with_extension(format!("part{:04}.jsonl", self.number))
    }

    fn next(&self) -> Self {
        Self {
            first: self.first.clone(),
            number: self.number.saturating_add(1),
        }
    }
}

impl Writer {
    fn new(sink: Sink) -> Self {
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
            torn: false,
            fault: None,
            signer: None,
        }
    }

    /// Into nothing.
    pub(super) fn nowhere() -> Self {
        Self::new(Sink::None)
    }

    /// Into a file that is there. If somebody's last line is not whole, ours
    /// begins on one of its own.
    pub(super) fn into_file(file: File) -> Self {
        let torn = ends_inside_a_line(&file);
        Self {
            torn,
            ..Self::new(Sink::Open(file))
        }
    }

    /// Into a file that is made with the first decision, and those that follow.
    pub(super) fn into_parts(first: PathBuf) -> Self {
        Self::new(Sink::Lazy(Parts { first, number: 1 }))
    }

    /// Makes the first file now.
    pub(super) fn make(&mut self) -> io::Result<()> {
        if let Sink::Lazy(parts) = &self.sink {
            let file = create(&parts.path())?;
            self.sink = Sink::Parts(parts.clone(), file, 0);
        }
        Ok(())
    }

    /// Whether records go anywhere.
    ///
    /// # Errors
    /// They did, and cannot any more.
    pub(super) fn is_kept(&self) -> Result<bool, AuditError> {
        match self.sink {
            Sink::None => Ok(false),
            Sink::Failed => Err(AuditError),
            Sink::Open(_) | Sink::Lazy(_) | Sink::Parts(..) => Ok(true),
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

    /// Why the last record that was lost could not be written.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Records that could not be written, all together.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether a record needs no more writing.
    pub(super) fn is_written(&self, seq: u64) -> bool {
        self.written >= seq
    }

    /// Takes the line that was put `ahead` from `start` on as a record.
    pub(super) fn take(&mut self, start: usize) {
        let line = self.ahead.get(start..).unwrap_or_default();
        self.prev = hex(&Sha256::digest(line));
        self.seq = self.seq.saturating_add(1);
        self.ahead.push(b'\n');
    }

    /// Writes what is ahead, with one write(2). Records of the start wait for a
    /// decision.
    ///
    /// # Errors
    /// They are not in the file, and the policy does not go on without them.
    pub(super) fn append(&mut self, kind: Kind) -> Result<(), AuditError> {
        match &self.sink {
            Sink::None => return Ok(()),
            Sink::Failed => return Err(AuditError),
            Sink::Lazy(parts)
                if parts.number == 1 && matches!(kind, Kind::Start | Kind::Finish) =>
            {
                return Ok(());
            }
            Sink::Lazy(_) | Sink::Open(_) | Sink::Parts(..) => {}
        }
        if self.ahead.is_empty() {
            return Ok(());
        }
        if self.torn {
            self.ahead.insert(0, b'\n');
        }
        let put = self.put();
        let count = put.as_ref().copied().unwrap_or(0);
        if count == self.ahead.len() {
            self.written = self.seq;
            self.written_hash = self.prev;
            self.lost = 0;
            self.torn = false;
            self.ahead.clear();
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
                self.sink = Sink::Failed;
                Err(AuditError)
            }
        }
    }

    /// Counts what did not get into the file: of `ahead` it has `count` bytes.
    fn lose(&mut self, count: usize) {
        let there = self.ahead.get(..count).unwrap_or_default();
        let records = there.get(usize::from(self.torn)..).unwrap_or_default();
        let whole = records.split_inclusive(|byte| *byte == b'\n');
        let mut complete: u64 = 0;
        for line in whole.filter_map(|line| line.strip_suffix(b"\n")) {
            complete = complete.saturating_add(1);
            self.written_hash = hex(&Sha256::digest(line));
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

    /// Puts what is ahead into the file it belongs to; how much of it is there.
    fn put(&mut self) -> io::Result<usize> {
        if let Sink::Parts(parts, _, length) = &self.sink
            && *length >= self.file_bytes_max
        {
            self.sink = Sink::Lazy(parts.next());
            // The line that is torn stays behind, and so does its end.
            if self.torn && self.ahead.first() == Some(&b'\n') {
                self.ahead.remove(0);
                self.torn = false;
            }
        }
        self.make()?;
        match &mut self.sink {
            Sink::Open(file) => Ok(append_once(file, &self.ahead)?),
            Sink::Parts(_, file, length) => {
                let count = append_once(file, &self.ahead)?;
                *length = length.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                Ok(count)
            }
            Sink::None | Sink::Lazy(_) | Sink::Failed => Ok(0),
        }
    }
}

/// One write(2): a record that does not fit at once is a failure, not a
/// fragment to be completed later.
fn append_once(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
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
fn is_held(path: &Path) -> bool {
    // Whatever bears the name is not waited for.
    let mut options = OpenOptions::new();
    let file = options
        .append(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chain::Chains;
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
            audit.writer.lock().unwrap().sink = Sink::Open(file);
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
