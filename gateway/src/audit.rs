//! The record of a run: one JSON line per decision, written before its effect,
//! each line naming the hash of the one before (`prev`), so that a changed,
//! missing or reordered line shows. The only serialisation in this crate.
//! Never written: field values, content, query values.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use outgate_handoff::Process;
use outgate_policy::{Denial, RuleRef};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::limits;

/// Version of the record's fields.
const SCHEMA: u32 = 1;
/// `prev` of the first record.
const NO_HASH: [u8; 64] = [b'0'; 64];

/// Where records go.
#[derive(Debug)]
pub enum AuditTarget {
    /// Nowhere.
    None,
    /// Into this file, opened for appending, and its path for people.
    File(File, PathBuf),
    /// Into a new file of this directory, made when the first decision is due.
    Directory(PathBuf),
}

impl AuditTarget {
    /// Opens a file that one or many runs append to.
    ///
    /// # Errors
    /// The file cannot be opened or made.
    pub fn file(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self::File(file, path))
    }

    /// Makes a directory for files of one run each.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn directory(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self::Directory(path))
    }
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Start,
    Finish,
    Connect,
    Dns,
    Request,
    Tunnel,
    Unix,
    Listen,
    Flow,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Allow,
    Deny,
    /// Neither: a statement of what was.
    Note,
}

#[derive(Debug, Clone, Serialize)]
struct Rule {
    id: u32,
    text: String,
    place: String,
}

/// One event. Made with [`Event::new`] and filled in by its owner.
#[derive(Debug, Serialize)]
pub(crate) struct Event<'a> {
    kind: Kind,
    verdict: Outcome,
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parents: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_up: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_down: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

impl<'a> Event<'a> {
    pub(crate) fn new(kind: Kind, verdict: Outcome, target: &'a str) -> Self {
        Self {
            kind,
            verdict,
            target,
            method: None,
            path: None,
            reason: None,
            detail: None,
            rule: None,
            pin: None,
            pid: None,
            executable: None,
            parents: Vec::new(),
            bytes_up: None,
            bytes_down: None,
            duration_ms: None,
        }
    }

    pub(crate) fn process(mut self, process: &'a Process) -> Self {
        self.pid = Some(process.pid);
        self.executable = Some(&process.executable);
        self.parents = process
            .parents
            .iter()
            .map(|parent| format!("{} {}", parent.pid, parent.executable))
            .collect();
        self
    }

    pub(crate) fn request(mut self, method: &'a str, target: &str) -> Self {
        self.method = Some(method);
        self.path = Some(redacted(target));
        self
    }

    pub(crate) fn rule(mut self, rule: &RuleRef) -> Self {
        self.rule = Some(Rule {
            id: rule.id,
            text: rule.text.to_string(),
            place: rule.place.to_string(),
        });
        self
    }

    pub(crate) fn denial(mut self, denial: &Denial) -> Self {
        self.reason = Some(denial.reason().token());
        self.detail = Some(cut(denial.because()));
        match denial.rule() {
            Some(rule) => self.rule(rule),
            None => self,
        }
    }

    pub(crate) fn reason(mut self, token: &'a str, detail: &str) -> Self {
        self.reason = Some(token);
        self.detail = Some(cut(detail));
        self
    }

    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.detail = Some(cut(detail));
        self
    }

    pub(crate) fn pins(mut self, pins: &[SocketAddr]) -> Self {
        let list: Vec<String> = pins.iter().map(ToString::to_string).collect();
        self.pin = Some(list.join(" "));
        self
    }

    pub(crate) fn traffic(mut self, up: u64, down: u64, millis: u64) -> Self {
        self.bytes_up = Some(up);
        self.bytes_down = Some(down);
        self.duration_ms = Some(millis);
        self
    }
}

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    seq: u64,
    prev: &'a str,
    time: &'a str,
    run: &'a str,
    sandbox: &'a str,
    generation: u64,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// The record could not be written: nothing more is allowed from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit record cannot be written")]
pub(crate) struct AuditError;

/// The records of one sandbox.
#[derive(Debug)]
pub(crate) struct Audit {
    path: Option<PathBuf>,
    run: String,
    sandbox: String,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    sink: Sink,
    seq: u64,
    prev: [u8; 64],
    line: Vec<u8>,
    /// Records of the start, held until a decision makes them worth a file.
    held: Vec<u8>,
}

#[derive(Debug)]
enum Sink {
    None,
    Open(File),
    Lazy(PathBuf),
    Failed,
}

impl Audit {
    /// Prepares the records of one sandbox; `pid` is the launcher's.
    pub(crate) fn new(target: &AuditTarget, sandbox: &str, pid: u32) -> io::Result<Self> {
        let run = format!("{}-{pid}", file_stamp(SystemTime::now()));
        let (sink, path) = match target {
            AuditTarget::None => (Sink::None, None),
            AuditTarget::File(file, path) => (Sink::Open(file.try_clone()?), Some(path.clone())),
            AuditTarget::Directory(directory) => {
                let path = directory.join(format!("{run}.jsonl"));
                (Sink::Lazy(path.clone()), Some(path))
            }
        };
        Ok(Self {
            path,
            run,
            sandbox: sandbox.to_owned(),
            writer: Mutex::new(Writer {
                sink,
                seq: 0,
                prev: NO_HASH,
                line: Vec::with_capacity(1024),
                held: Vec::new(),
            }),
        })
    }

    /// Where the records go, for people.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes one record with one write(2).
    ///
    /// # Errors
    /// The record is not there: whatever it announces must not happen.
    pub(crate) fn write(&self, generation: u64, event: &Event<'_>) -> Result<(), AuditError> {
        let mut writer = self.writer.lock().map_err(|_| AuditError)?;
        if matches!(writer.sink, Sink::None) {
            return Ok(());
        }
        let seq = writer.seq + 1;
        let prev = writer.prev;
        let mut line = std::mem::take(&mut writer.line);
        line.clear();
        let time = timestamp(SystemTime::now());
        let record = Line {
            v: SCHEMA,
            seq,
            prev: std::str::from_utf8(&prev).unwrap_or_default(),
            time: &time,
            run: &self.run,
            sandbox: &self.sandbox,
            generation,
            event,
        };
        serde_json::to_writer(&mut line, &record).map_err(|_| AuditError)?;
        writer.seq = seq;
        writer.prev = hex(&Sha256::digest(&line));
        line.push(b'\n');
        let result = writer.append(event.kind, &line);
        writer.line = line;
        result
    }
}

impl Writer {
    fn append(&mut self, kind: Kind, line: &[u8]) -> Result<(), AuditError> {
        if let Sink::Lazy(path) = &self.sink {
            if matches!(kind, Kind::Start | Kind::Finish) {
                self.held.extend_from_slice(line);
                return Ok(());
            }
            self.sink = match create(path) {
                Ok(file) => Sink::Open(file),
                Err(_) => Sink::Failed,
            };
        }
        let Sink::Open(file) = &mut self.sink else {
            return Err(AuditError);
        };
        let written = if self.held.is_empty() {
            append_whole(file, line)
        } else {
            let mut bytes = std::mem::take(&mut self.held);
            bytes.extend_from_slice(line);
            append_whole(file, &bytes)
        };
        written.map_err(|_| {
            self.sink = Sink::Failed;
            AuditError
        })
    }
}

/// One write(2): a record that does not fit at once is a failure, not a
/// fragment to be completed later.
fn append_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    loop {
        match file.write(bytes) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        prune(directory);
    }
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Removes the oldest files so that with the new one the limit is kept. Names
/// begin with the time, so their order is the order of age.
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
    for path in files.into_iter().take(surplus) {
        std::fs::remove_file(path).ok();
    }
}

fn hex(digest: &[u8]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = NO_HASH;
    for (pair, byte) in text.chunks_exact_mut(2).zip(digest) {
        for (place, digit) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
            *place = DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0');
        }
    }
    text
}

/// A request target with each query value replaced by `*`.
fn redacted(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return cut(target);
    };
    let mut text = path.to_owned();
    for (position, part) in query.split('&').enumerate() {
        text.push(if position == 0 { '?' } else { '&' });
        match part.split_once('=') {
            Some((key, _)) => {
                text.push_str(key);
                text.push_str("=*");
            }
            // A value without a key may be a secret as a whole.
            None => text.push('*'),
        }
    }
    cut(&text)
}

/// At most the limit's bytes, cut at a character.
fn cut(text: &str) -> String {
    let mut end = text.len().min(limits::AUDIT_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Year, month, day, hour, minute, second, millisecond in UTC.
fn civil(time: SystemTime) -> [u64; 7] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that leap days come last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let millis = u64::from(since.subsec_millis());
    [
        year,
        month,
        day,
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        millis,
    ]
}

/// RFC 3339 in UTC with milliseconds.
fn timestamp(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, millis] = civil(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn file_stamp(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, millis] = civil(time);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn directory(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("outgate-audit-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (1_767_225_599, "2025-12-31T23:59:59.007Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(timestamp(time), text);
        }
    }

    #[test]
    fn query_values_are_never_written() {
        for (target, text) in [
            ("/a", "/a"),
            ("/a?k=secret", "/a?k=*"),
            ("/a?k=1&secret&t=x=y", "/a?k=*&*&t=*"),
        ] {
            assert_eq!(redacted(target), text);
        }
    }

    #[test]
    fn each_line_names_the_hash_of_the_line_before() {
        let path = directory("chain").join("file.jsonl");
        let audit = Audit::new(&AuditTarget::file(path.clone()).unwrap(), "s", 7).unwrap();
        for target in ["a:1", "b:2", "c:3"] {
            let event = Event::new(Kind::Connect, Outcome::Deny, target).reason("no-rule", "x");
            audit.write(1, &event).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut prev = "0".repeat(64);
        for (position, line) in text.lines().enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["seq"], u64::try_from(position).unwrap() + 1);
            assert_eq!(value["prev"], prev);
            prev = String::from_utf8(hex(&Sha256::digest(line)).to_vec()).unwrap();
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
    fn a_full_disk_fails_now_and_ever_after() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let target = AuditTarget::File(file, PathBuf::from("/dev/full"));
        let audit = Audit::new(&target, "s", 7).unwrap();
        let event = Event::new(Kind::Connect, Outcome::Allow, "a:1");
        assert_eq!(audit.write(1, &event), Err(AuditError));
        assert_eq!(audit.write(1, &event), Err(AuditError));
    }
}
