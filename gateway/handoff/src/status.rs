//! What `outgate ps`, `kill` and `inspect` ask a running launcher, and what it
//! answers: frames like the others, on a socket of their own. Values only.

use crate::wire::{FrameError, Reader, Writer};
use crate::{LINE_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};

/// Places of a policy that a status lists at most.
pub const PLACES_MAX: usize = 32;

/// To a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToRun {
    /// Say what you run.
    Tell,
    /// End it: SIGTERM to the whole tree, and SIGKILL to what stays.
    End,
}

impl ToRun {
    /// The frame's bytes.
    ///
    /// # Errors
    /// None that this value can cause.
    pub fn encode(self) -> Result<Vec<u8>, FrameError> {
        let kind = match self {
            Self::Tell => 201,
            Self::End => 202,
        };
        Writer::new(kind, 0).finish()
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// Anything [`FrameError`] names: the sender's fault.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, _, r) = Reader::open(frame)?;
        r.end()?;
        match kind {
            201 => Ok(Self::Tell),
            202 => Ok(Self::End),
            kind => Err(FrameError::Kind { kind }),
        }
    }
}

/// What a launcher runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Name of the sandbox.
    pub name: String,
    /// Process id of the launcher, as it sees itself.
    pub pid: u32,
    /// When it started, in seconds since 1970.
    pub started: u64,
    /// The program as it was named.
    pub command: String,
    /// The working directory.
    pub directory: String,
    /// Where the policy's texts come from, in merge order, without repetition.
    pub places: Vec<String>,
    /// The gateway: the socket of a shared one, or empty.
    pub gateway: String,
    /// Where records go; empty: nowhere, or not known yet.
    pub record: String,
    /// Calls that were held.
    pub held: u64,
}

impl Status {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a field is larger than its limit: the
    /// caller's fault.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w = Writer::new(211, 0);
        w.bytes("name", self.name.as_bytes(), NAME_BYTES_MAX);
        w.u32(self.pid);
        w.u64(self.started);
        w.bytes("command", self.command.as_bytes(), LINE_BYTES_MAX);
        w.bytes("directory", self.directory.as_bytes(), PATH_BYTES_MAX);
        let places = self.places.get(..PLACES_MAX).unwrap_or(&self.places);
        w.u8(u8::try_from(places.len()).unwrap_or(u8::MAX));
        for place in places {
            w.bytes("place", place.as_bytes(), NAME_BYTES_MAX);
        }
        w.bytes("gateway", self.gateway.as_bytes(), PATH_BYTES_MAX);
        w.bytes("record", self.record.as_bytes(), PATH_BYTES_MAX);
        w.u64(self.held);
        w.finish()
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// Anything [`FrameError`] names: the sender's fault.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, _, mut r) = Reader::open(frame)?;
        if kind != 211 {
            return Err(FrameError::Kind { kind });
        }
        let mut status = Self {
            name: r.text("name", NAME_BYTES_MAX)?,
            pid: r.u32("pid")?,
            started: r.u64("started")?,
            command: r.text("command", LINE_BYTES_MAX)?,
            directory: r.text("directory", PATH_BYTES_MAX)?,
            ..Self::default()
        };
        let count = usize::from(r.u8("places")?);
        if count > PLACES_MAX {
            return Err(FrameError::Limit {
                field: "places",
                max: PLACES_MAX,
                actual: count,
            });
        }
        for _ in 0..count {
            status.places.push(r.text("place", NAME_BYTES_MAX)?);
        }
        status.gateway = r.text("gateway", PATH_BYTES_MAX)?;
        status.record = r.text("record", PATH_BYTES_MAX)?;
        status.held = r.u64("held")?;
        r.end()?;
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard_and_nothing_else() {
        let status = Status {
            name: "agent".to_owned(),
            pid: 7,
            started: 1 << 33,
            command: "make".to_owned(),
            directory: "/w".to_owned(),
            places: vec!["preset `base`".to_owned(), "-a".to_owned()],
            gateway: String::new(),
            record: "/r".to_owned(),
            held: 3,
        };
        let frame = status.encode().unwrap();
        assert_eq!(Status::decode(&frame), Ok(status));
        for cut in 0..frame.len() {
            assert!(Status::decode(frame.get(..cut).unwrap()).is_err(), "{cut}");
        }
        for ask in [ToRun::Tell, ToRun::End] {
            let frame = ask.encode().unwrap();
            assert_eq!(ToRun::decode(&frame), Ok(ask));
            assert!(Status::decode(&frame).is_err());
        }
        assert!(ToRun::decode(&frame).is_err());
        assert!(ToRun::decode(b"").is_err());
    }
}
