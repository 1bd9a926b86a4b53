//! A collector as the place of records: a Unix socket somewhere on this machine, to which
//! lines are written as to a file. What does not fit into its buffer at once is not there:
//! nobody waits for a collector that does not read.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::FileChosenBy;
use super::sink::{OpenedPlace, RecordPlace, RecordSink};

/// A collector that was reached.
#[derive(Debug)]
pub(super) struct Collector {
    stream: UnixStream,
    path: PathBuf,
}

impl Collector {
    /// Connects to it.
    ///
    /// # Errors
    /// Nobody listens there, or not to us.
    pub(super) fn reach(path: PathBuf) -> io::Result<Self> {
        let stream = UnixStream::connect(&path)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, path })
    }
}

impl RecordPlace for Collector {
    fn open(&self, _run: &str) -> io::Result<OpenedPlace> {
        Ok(OpenedPlace {
            sink: Box::new(CollectorSink(self.stream.try_clone()?)),
            path: self.path.clone(),
            kept: FileChosenBy::Elsewhere,
        })
    }
}

#[derive(Debug)]
struct CollectorSink(UnixStream);

impl RecordSink for CollectorSink {
    fn put(&mut self, lines: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(lines) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::audit::{Audit, AuditError, AuditTarget, Event, Kind, Outcome};

    fn reached(name: &str) -> (Audit, UnixStream) {
        let path = std::env::temp_dir().join(format!("outgate-{}-{name}", std::process::id()));
        std::fs::remove_file(&path).ok();
        let listener = UnixListener::bind(&path).unwrap();
        let audit = Audit::new(&AuditTarget::file(path).unwrap(), "s", 7).unwrap();
        (audit, listener.accept().unwrap().0)
    }

    #[test]
    fn records_arrive_at_a_collector_as_in_a_file() {
        let (audit, mut collector) = reached("collector");
        for target in ["a:1", "b:2"] {
            let event = Event::new(Kind::Connect, Outcome::Allow, target);
            audit.write(1, &event).unwrap();
        }
        drop(audit);
        let mut text = String::new();
        collector.read_to_string(&mut text).unwrap();
        let mut chains = outgate_record::Chains::default();
        for line in text.lines() {
            chains.follow(line.as_bytes()).unwrap();
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn nothing_happens_that_no_collector_takes() {
        let event = Event::new(Kind::Connect, Outcome::Allow, "a:1");
        let (audit, collector) = reached("gone");
        drop(collector);
        assert_eq!(audit.write(1, &event), Err(AuditError));
        // One that does not read is not waited for.
        let (audit, _collector) = reached("idle");
        let mut written = (0..100_000).map(|_| audit.write(1, &event));
        assert!(written.any(|one| one.is_err()));
        assert_eq!(audit.write(1, &event), Err(AuditError));
    }
}
