//! What `outgate ps`, `kill`, `inspect`, `grant` and their like ask a running launcher, and
//! what it answers: frames like the others, on a socket of their own. Values only.

use crate::codec::{read_open_question, write_open_question};
use crate::frame::OpenQuestion;
pub use crate::limits::{PLACES_MAX, TO_RUN_BYTES_MAX};
use crate::wire::{FrameError, FrameReader, FrameWriter};
use crate::{GRANT_BYTES_MAX, LINE_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};

/// To a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToRun {
    /// Say what you run.
    Tell,
    /// End it: SIGTERM to the whole tree, and SIGKILL to what stays.
    End,
    /// Allow what a rule describes as well.
    Grant(GrantRequest),
    /// Take back what was granted by this rule; an empty one stands for all.
    Revoke {
        /// Its text.
        rule: String,
    },
    /// Read the policy files again.
    Reload,
    /// Give the policy in force.
    Show,
    /// Give every question as it comes, until this hangs up.
    Watch,
    /// What a person says to the question of this id.
    Answer(u64, PersonAnswer),
}

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAnswer {
    /// No.
    Deny,
    /// Yes, by this rule, which is one of the two that the question offers.
    Grant(GrantRequest),
}

/// A rule to be in force while a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequest {
    /// Its text.
    pub rule: String,
    /// For how many seconds; 0: as long as the run.
    pub seconds: u32,
    /// For how much.
    pub uses: GrantUses,
}

/// For how much a granted rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantUses {
    /// For all that it allows.
    All,
    /// For one request.
    Once,
}

impl ToRun {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a rule is longer than its limit.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w;
        match self {
            Self::Tell => w = FrameWriter::new(201, 0),
            Self::End => w = FrameWriter::new(202, 0),
            Self::Grant(grant) => {
                w = FrameWriter::new(203, 0);
                write_grant(&mut w, grant);
            }
            Self::Watch => w = FrameWriter::new(207, 0),
            Self::Answer(id, PersonAnswer::Deny) => w = FrameWriter::new(208, *id),
            Self::Answer(id, PersonAnswer::Grant(grant)) => {
                w = FrameWriter::new(209, *id);
                write_grant(&mut w, grant);
            }
            Self::Revoke { rule } => {
                w = FrameWriter::new(204, 0);
                w.bytes("rule", rule.as_bytes(), GRANT_BYTES_MAX);
            }
            Self::Reload => w = FrameWriter::new(205, 0),
            Self::Show => w = FrameWriter::new(206, 0),
        }
        w.finish()
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// Anything [`FrameError`] names: the sender's fault.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, id, mut r) = FrameReader::open(frame)?;
        let value = match kind {
            201 => Self::Tell,
            202 => Self::End,
            203 => Self::Grant(read_grant(&mut r)?),
            207 => Self::Watch,
            208 => Self::Answer(id, PersonAnswer::Deny),
            209 => Self::Answer(id, PersonAnswer::Grant(read_grant(&mut r)?)),
            204 => Self::Revoke {
                rule: r.text("rule", GRANT_BYTES_MAX)?,
            },
            205 => Self::Reload,
            206 => Self::Show,
            kind => return Err(FrameError::Kind { kind }),
        };
        r.end()?;
        Ok(value)
    }
}

fn write_grant(w: &mut FrameWriter, grant: &GrantRequest) {
    w.bytes("rule", grant.rule.as_bytes(), GRANT_BYTES_MAX);
    w.u32(grant.seconds);
    w.u8(match grant.uses {
        GrantUses::All => 0,
        GrantUses::Once => 1,
    });
}

fn read_grant(r: &mut FrameReader<'_>) -> Result<GrantRequest, FrameError> {
    Ok(GrantRequest {
        rule: r.text("rule", GRANT_BYTES_MAX)?,
        seconds: r.u32("seconds")?,
        uses: match r.u8("uses")? {
            0 => GrantUses::All,
            1 => GrantUses::Once,
            _ => return Err(FrameError::Value { field: "uses" }),
        },
    })
}

/// What a launcher answers to who wants its policy changed or shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRun {
    /// It is done: a line for people, and the generation that is in force.
    Done {
        /// What was done.
        line: String,
        /// Number of the policy.
        generation: u64,
    },
    /// It is not, and nothing changed.
    Refused {
        /// Why not.
        message: String,
    },
    /// The policy in force lies in the file whose descriptor comes with this: frames like
    /// those that open a session, each after its length.
    Shown {
        /// Bytes of it.
        bytes: u32,
    },
    /// A question, with its id.
    Question(u64, OpenQuestion),
    /// The question of this id is no more, and what became of it in words.
    Gone(u64, String),
}

impl FromRun {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a field is larger than its limit: the
    /// caller's fault.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w;
        match self {
            Self::Done { line, generation } => {
                w = FrameWriter::new(212, 0);
                w.bytes("line", line.as_bytes(), LINE_BYTES_MAX);
                w.u64(*generation);
            }
            Self::Refused { message } => {
                w = FrameWriter::new(213, 0);
                w.bytes("message", message.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Question(id, question) => {
                w = FrameWriter::new(215, *id);
                write_open_question(&mut w, question);
            }
            Self::Gone(id, how) => {
                w = FrameWriter::new(216, *id);
                w.bytes("how", how.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Shown { bytes } => {
                w = FrameWriter::new(214, 0);
                w.u32(*bytes);
            }
        }
        w.finish()
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// Anything [`FrameError`] names: the sender's fault.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, id, mut r) = FrameReader::open(frame)?;
        let value = match kind {
            215 => Self::Question(id, read_open_question(&mut r)?),
            216 => Self::Gone(id, r.text("how", LINE_BYTES_MAX)?),
            212 => Self::Done {
                line: r.text("line", LINE_BYTES_MAX)?,
                generation: r.u64("generation")?,
            },
            213 => Self::Refused {
                message: r.text("message", LINE_BYTES_MAX)?,
            },
            214 => Self::Shown {
                bytes: r.u32("bytes")?,
            },
            kind => return Err(FrameError::Kind { kind }),
        };
        r.end()?;
        Ok(value)
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
    /// How the run is meant: `learning`, or empty where rules are enforced.
    pub mode: String,
    /// Calls that were held.
    pub held: u64,
    /// Rules that were granted while it runs, and hold.
    pub granted: u64,
    /// Whether nobody may change its policy: `sealed`, or empty.
    pub sealing: String,
}

impl Status {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a field is larger than its limit: the
    /// caller's fault.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w = FrameWriter::new(211, 0);
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
        w.bytes("mode", self.mode.as_bytes(), NAME_BYTES_MAX);
        w.u64(self.held);
        w.u64(self.granted);
        w.bytes("sealing", self.sealing.as_bytes(), NAME_BYTES_MAX);
        w.finish()
    }

    /// Reads one frame.
    ///
    /// # Errors
    /// Anything [`FrameError`] names: the sender's fault.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, _, mut r) = FrameReader::open(frame)?;
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
        status.mode = r.text("mode", NAME_BYTES_MAX)?;
        status.held = r.u64("held")?;
        status.granted = r.u64("granted")?;
        status.sealing = r.text("sealing", NAME_BYTES_MAX)?;
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
            mode: "learning".to_owned(),
            held: 3,
            granted: 2,
            sealing: "sealed".to_owned(),
        };
        let frame = status.encode().unwrap();
        assert_eq!(Status::decode(&frame), Ok(status));
        for cut in 0..frame.len() {
            assert!(Status::decode(frame.get(..cut).unwrap()).is_err(), "{cut}");
        }
        let grant = GrantRequest {
            rule: "r".repeat(GRANT_BYTES_MAX),
            seconds: 600,
            uses: GrantUses::Once,
        };
        let rule = "a.test".to_owned();
        for ask in [
            ToRun::Tell,
            ToRun::End,
            ToRun::Grant(grant.clone()),
            ToRun::Watch,
            ToRun::Answer(7, PersonAnswer::Deny),
            ToRun::Answer(8, PersonAnswer::Grant(grant)),
            ToRun::Revoke { rule },
            ToRun::Reload,
            ToRun::Show,
        ] {
            let frame = ask.encode().unwrap();
            assert!(frame.len() <= TO_RUN_BYTES_MAX);
            for cut in 0..frame.len() {
                assert!(ToRun::decode(frame.get(..cut).unwrap()).is_err(), "{cut}");
            }
            assert_eq!(ToRun::decode(&frame), Ok(ask));
            assert!(Status::decode(&frame).is_err());
            assert!(FromRun::decode(&frame).is_err());
        }
        assert!(ToRun::decode(&frame).is_err());
        assert!(ToRun::decode(b"").is_err());
    }

    #[test]
    fn what_a_run_answers_is_what_is_heard() {
        for answer in [
            FromRun::Done {
                line: "done".to_owned(),
                generation: 2,
            },
            FromRun::Refused {
                message: "no".to_owned(),
            },
            FromRun::Shown { bytes: 7 },
            FromRun::Gone(9, "answered".to_owned()),
            FromRun::Question(
                3,
                OpenQuestion {
                    subject: "GET https://a.test/x".to_owned(),
                    narrow: "GET https://a.test/x".to_owned(),
                    broad: "https://a.test".to_owned(),
                    words: "so that it builds".to_owned(),
                    ..OpenQuestion::default()
                },
            ),
        ] {
            let frame = answer.encode().unwrap();
            assert_eq!(FromRun::decode(&frame), Ok(answer));
            assert!(ToRun::decode(&frame).is_err());
        }
    }
}
