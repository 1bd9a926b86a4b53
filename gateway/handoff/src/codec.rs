//! How each frame is laid out in bytes, in both directions. The order of the
//! fields here is the format; it changes only with the protocol's number.

use crate::frame::{
    Answer, Ask, AskTimes, BeginFrame, CallQuestion, Decision, FlowFrame, HelloFrame, HoldForm,
    OpenQuestion, Parent, ProcessFacts, Settlement, SourceFrame, TOKEN_DIGEST_BYTES, ToGateway,
    ToLauncher, TokenFrame, number_of, source_kind,
};
use crate::settings::GatewaySetting;
use crate::wire::{FrameError, FrameReader, FrameWriter};
use crate::{
    ADDRESSES_MAX, AUTHORITY_BYTES_MAX, GRANT_BYTES_MAX, LINE_BYTES_MAX, NAME_BYTES_MAX,
    PARENTS_MAX, PATH_BYTES_MAX, SOURCE_CHUNK_BYTES_MAX, SUMMARY_BYTES_MAX, WORDS_BYTES_MAX,
};

fn write_process(w: &mut FrameWriter, process: &ProcessFacts) {
    w.u32(process.pid);
    w.bytes("executable", process.executable.as_bytes(), PATH_BYTES_MAX);
    let parents = process
        .parents
        .get(..PARENTS_MAX)
        .unwrap_or(&process.parents);
    w.u8(u8::try_from(parents.len()).unwrap_or(u8::MAX));
    for parent in parents {
        w.u32(parent.pid);
        w.bytes("executable", parent.executable.as_bytes(), PATH_BYTES_MAX);
    }
}

fn read_process(r: &mut FrameReader<'_>) -> Result<ProcessFacts, FrameError> {
    let pid = r.u32("pid")?;
    let executable = r.text("executable", PATH_BYTES_MAX)?;
    let count = usize::from(r.u8("parents")?);
    if count > PARENTS_MAX {
        return Err(FrameError::Limit {
            field: "parents",
            max: PARENTS_MAX,
            actual: count,
        });
    }
    let mut parents = Vec::with_capacity(count);
    for _ in 0..count {
        parents.push(Parent {
            pid: r.u32("pid")?,
            executable: r.text("executable", PATH_BYTES_MAX)?,
        });
    }
    Ok(ProcessFacts {
        pid,
        executable,
        parents,
    })
}

fn write_question(w: &mut FrameWriter, question: &CallQuestion) {
    match question {
        CallQuestion::Connect { destination } => {
            w.u8(1);
            w.address(*destination);
        }
        CallQuestion::Unix { path } => {
            w.u8(2);
            w.bytes("path", path, PATH_BYTES_MAX);
        }
        CallQuestion::Listen { address } => {
            w.u8(3);
            w.address(*address);
        }
    }
}

fn read_question(r: &mut FrameReader<'_>) -> Result<CallQuestion, FrameError> {
    match r.u8("question")? {
        1 => Ok(CallQuestion::Connect {
            destination: r.address("destination")?,
        }),
        2 => Ok(CallQuestion::Unix {
            path: r.bytes("path", PATH_BYTES_MAX)?.to_vec(),
        }),
        3 => Ok(CallQuestion::Listen {
            address: r.address("address")?,
        }),
        _ => Err(FrameError::Value { field: "question" }),
    }
}

fn write_ask(w: &mut FrameWriter, ask: &Ask) {
    write_question(w, &ask.question);
    write_process(w, &ask.process);
    w.u8(match ask.hold {
        HoldForm::Refuse => 0,
        HoldForm::Call => 1,
        HoldForm::Connection => 2,
        HoldForm::Crowded => 3,
    });
}

fn read_ask(r: &mut FrameReader<'_>) -> Result<Ask, FrameError> {
    Ok(Ask {
        question: read_question(r)?,
        process: read_process(r)?,
        hold: match r.u8("hold")? {
            0 => HoldForm::Refuse,
            1 => HoldForm::Call,
            2 => HoldForm::Connection,
            3 => HoldForm::Crowded,
            _ => return Err(FrameError::Value { field: "hold" }),
        },
    })
}

pub(crate) fn write_open_question(w: &mut FrameWriter, question: &OpenQuestion) {
    w.bytes("subject", question.subject.as_bytes(), LINE_BYTES_MAX);
    w.bytes("narrow", question.narrow.as_bytes(), GRANT_BYTES_MAX);
    w.bytes("broad", question.broad.as_bytes(), GRANT_BYTES_MAX);
    write_process(w, &question.process);
    w.bytes("words", question.words.as_bytes(), WORDS_BYTES_MAX);
}

pub(crate) fn read_open_question(r: &mut FrameReader<'_>) -> Result<OpenQuestion, FrameError> {
    Ok(OpenQuestion {
        subject: r.text("subject", LINE_BYTES_MAX)?,
        narrow: r.text("narrow", GRANT_BYTES_MAX)?,
        broad: r.text("broad", GRANT_BYTES_MAX)?,
        process: read_process(r)?,
        words: r.text("words", WORDS_BYTES_MAX)?,
    })
}

fn token_frame(token: &TokenFrame) -> FrameWriter {
    let mut w = FrameWriter::new(14, 0);
    w.bytes("name", token.name.as_bytes(), NAME_BYTES_MAX);
    w.bytes("digest", &token.digest, TOKEN_DIGEST_BYTES);
    w.u64(token.left_ms.unwrap_or(u64::MAX));
    w
}

fn until_frame(place: &str, left_ms: u64) -> FrameWriter {
    let mut w = FrameWriter::new(12, 0);
    w.bytes("place", place.as_bytes(), NAME_BYTES_MAX);
    w.u64(left_ms);
    w
}

impl ToGateway {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a field is larger than its limit: the
    /// caller's fault, who cuts or refuses before.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w;
        match self {
            Self::Hello(hello) => {
                w = FrameWriter::new(1, 0);
                w.u16(hello.protocol);
                w.bytes("build", hello.build.as_bytes(), NAME_BYTES_MAX);
                w.bytes("sandbox", hello.sandbox.as_bytes(), NAME_BYTES_MAX);
                w.u32(hello.pid);
            }
            Self::Source(source) => {
                w = FrameWriter::new(2, 0);
                w.u32(source.index);
                w.u8(number_of(source.kind));
                w.bytes("place", source.place.as_bytes(), NAME_BYTES_MAX);
                w.bytes("chunk", &source.chunk, SOURCE_CHUNK_BYTES_MAX);
            }
            Self::Begin(begin) => {
                w = FrameWriter::new(3, 0);
                w.bytes("home", begin.home.as_bytes(), PATH_BYTES_MAX);
                let directory = begin.working_directory.as_bytes();
                w.bytes("working_directory", directory, PATH_BYTES_MAX);
                let private = begin.private_directory.as_bytes();
                w.bytes("private_directory", private, PATH_BYTES_MAX);
                w.bytes("command", begin.command.as_bytes(), LINE_BYTES_MAX);
                w.u32(begin.ask.held_seconds);
                w.u32(begin.ask.open_seconds);
            }
            Self::Ask(id, ask) => {
                w = FrameWriter::new(4, *id);
                write_ask(&mut w, ask);
            }
            Self::Flow(flow) => {
                w = FrameWriter::new(5, 0);
                write_question(&mut w, &flow.question);
                write_process(&mut w, &flow.process);
            }
            Self::Stub => w = FrameWriter::new(6, 0),
            Self::Finish { status } => {
                w = FrameWriter::new(7, 0);
                w.u8(*status);
            }
            Self::Leftover { kind, path, detail } => {
                w = FrameWriter::new(8, 0);
                w.bytes("kind", kind.as_bytes(), NAME_BYTES_MAX);
                w.bytes("path", path.as_bytes(), PATH_BYTES_MAX);
                w.bytes("detail", detail.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Setting(setting) => {
                w = FrameWriter::new(9, 0);
                setting.write(&mut w);
            }
            Self::Settled(id, settlement) => {
                w = FrameWriter::new(11, *id);
                w.u8(match settlement {
                    Settlement::Granted => 1,
                    Settlement::Denied => 2,
                    Settlement::Nobody => 3,
                });
            }
            Self::Until { place, left_ms } => w = until_frame(place, *left_ms),
            Self::Token(token) => w = token_frame(token),
            Self::Change(id, what) => {
                w = FrameWriter::new(10, *id);
                w.bytes("what", what.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Ping(id) => w = FrameWriter::new(13, *id),
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
            1 => Self::Hello(HelloFrame {
                protocol: r.u16("protocol")?,
                build: r.text("build", NAME_BYTES_MAX)?,
                sandbox: r.text("sandbox", NAME_BYTES_MAX)?,
                pid: r.u32("pid")?,
            }),
            2 => Self::Source(SourceFrame {
                index: r.u32("index")?,
                kind: source_kind(r.u8("kind")?)?,
                place: r.text("place", NAME_BYTES_MAX)?,
                chunk: r.bytes("chunk", SOURCE_CHUNK_BYTES_MAX)?.to_vec(),
            }),
            3 => Self::Begin(BeginFrame {
                home: r.text("home", PATH_BYTES_MAX)?,
                working_directory: r.text("working_directory", PATH_BYTES_MAX)?,
                private_directory: r.text("private_directory", PATH_BYTES_MAX)?,
                command: r.text("command", LINE_BYTES_MAX)?,
                ask: AskTimes {
                    held_seconds: r.u32("held_seconds")?,
                    open_seconds: r.u32("open_seconds")?,
                },
            }),
            4 => Self::Ask(id, read_ask(&mut r)?),
            5 => Self::Flow(FlowFrame {
                question: read_question(&mut r)?,
                process: read_process(&mut r)?,
            }),
            6 => Self::Stub,
            7 => Self::Finish {
                status: r.u8("status")?,
            },
            8 => Self::Leftover {
                kind: r.text("kind", NAME_BYTES_MAX)?,
                path: r.text("path", PATH_BYTES_MAX)?,
                detail: r.text("detail", LINE_BYTES_MAX)?,
            },
            9 => Self::Setting(GatewaySetting::read(&mut r)?),
            10 => Self::Change(id, r.text("what", LINE_BYTES_MAX)?),
            11 => Self::Settled(
                id,
                match r.u8("settlement")? {
                    1 => Settlement::Granted,
                    2 => Settlement::Denied,
                    3 => Settlement::Nobody,
                    _ => {
                        return Err(FrameError::Value {
                            field: "settlement",
                        });
                    }
                },
            ),
            12 => Self::Until {
                place: r.text("place", NAME_BYTES_MAX)?,
                left_ms: r.u64("left_ms")?,
            },
            13 => Self::Ping(id),
            14 => Self::Token(TokenFrame {
                name: r.text("name", NAME_BYTES_MAX)?,
                digest: r
                    .bytes("digest", TOKEN_DIGEST_BYTES)?
                    .try_into()
                    .map_err(|_| FrameError::Value { field: "digest" })?,
                left_ms: Some(r.u64("left_ms")?).filter(|left| *left != u64::MAX),
            }),
            kind => return Err(FrameError::Kind { kind }),
        };
        r.end()?;
        Ok(value)
    }
}

fn write_answer(w: &mut FrameWriter, answer: &Answer) {
    match &answer.decision {
        Decision::Deny => w.u8(1),
        Decision::Redirect => w.u8(2),
        Decision::Direct(addresses) => {
            w.u8(3);
            let addresses = addresses.get(..ADDRESSES_MAX).unwrap_or(addresses);
            w.u8(u8::try_from(addresses.len()).unwrap_or(u8::MAX));
            for address in addresses {
                w.address(*address);
            }
        }
    }
    w.u64(answer.generation);
    w.u32(answer.reuse_ms);
}

fn read_answer(r: &mut FrameReader<'_>) -> Result<Answer, FrameError> {
    let decision = match r.u8("decision")? {
        1 => Decision::Deny,
        2 => Decision::Redirect,
        3 => {
            let count = usize::from(r.u8("addresses")?);
            if count > ADDRESSES_MAX {
                return Err(FrameError::Limit {
                    field: "addresses",
                    max: ADDRESSES_MAX,
                    actual: count,
                });
            }
            let mut addresses = Vec::with_capacity(count);
            for _ in 0..count {
                addresses.push(r.address("addresses")?);
            }
            Decision::Direct(addresses)
        }
        _ => return Err(FrameError::Value { field: "decision" }),
    };
    Ok(Answer {
        decision,
        generation: r.u64("generation")?,
        reuse_ms: r.u32("reuse_ms")?,
    })
}

impl ToLauncher {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FrameError::Limit`] when a field is larger than its limit: the
    /// caller's fault.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let mut w;
        match self {
            Self::Ready {
                generation,
                build,
                audit,
                hosts,
                authority,
            } => {
                w = FrameWriter::new(101, 0);
                w.u64(*generation);
                w.bytes("build", build.as_bytes(), NAME_BYTES_MAX);
                w.bytes("audit", audit.as_bytes(), PATH_BYTES_MAX);
                w.bytes("hosts", hosts.as_bytes(), SOURCE_CHUNK_BYTES_MAX);
                w.bytes("authority", authority.as_bytes(), AUTHORITY_BYTES_MAX);
            }
            Self::Refused { message } => {
                w = FrameWriter::new(102, 0);
                w.bytes("message", message.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Answer(id, answer) => {
                w = FrameWriter::new(103, *id);
                write_answer(&mut w, answer);
            }
            Self::Notice { line } => {
                w = FrameWriter::new(104, 0);
                w.bytes("line", line.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Generation { generation } => {
                w = FrameWriter::new(105, 0);
                w.u64(*generation);
            }
            Self::Summary { lines } => {
                w = FrameWriter::new(106, 0);
                w.bytes("lines", lines.as_bytes(), SUMMARY_BYTES_MAX);
            }
            Self::Kept { message } => {
                w = FrameWriter::new(107, 0);
                w.bytes("message", message.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Changed(id, message) => {
                w = FrameWriter::new(109, *id);
                w.bytes("message", message.as_bytes(), LINE_BYTES_MAX);
            }
            Self::Question(id, question) => {
                w = FrameWriter::new(111, *id);
                write_open_question(&mut w, question);
            }
            Self::Withdrawn(id) => w = FrameWriter::new(112, *id),
            Self::Spent { place } => {
                w = FrameWriter::new(110, 0);
                w.bytes("place", place.as_bytes(), NAME_BYTES_MAX);
            }
            Self::Variables { lines } => {
                w = FrameWriter::new(108, 0);
                w.bytes("lines", lines.as_bytes(), SOURCE_CHUNK_BYTES_MAX);
            }
            Self::Pong(id) => w = FrameWriter::new(113, *id),
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
            101 => Self::Ready {
                generation: r.u64("generation")?,
                build: r.text("build", NAME_BYTES_MAX)?,
                audit: r.text("audit", PATH_BYTES_MAX)?,
                hosts: r.text("hosts", SOURCE_CHUNK_BYTES_MAX)?,
                authority: r.text("authority", AUTHORITY_BYTES_MAX)?,
            },
            102 => Self::Refused {
                message: r.text("message", LINE_BYTES_MAX)?,
            },
            103 => Self::Answer(id, read_answer(&mut r)?),
            104 => Self::Notice {
                line: r.text("line", LINE_BYTES_MAX)?,
            },
            105 => Self::Generation {
                generation: r.u64("generation")?,
            },
            106 => Self::Summary {
                lines: r.text("lines", SUMMARY_BYTES_MAX)?,
            },
            107 => Self::Kept {
                message: r.text("message", LINE_BYTES_MAX)?,
            },
            108 => Self::Variables {
                lines: r.text("lines", SOURCE_CHUNK_BYTES_MAX)?,
            },
            109 => Self::Changed(id, r.text("message", LINE_BYTES_MAX)?),
            110 => Self::Spent {
                place: r.text("place", NAME_BYTES_MAX)?,
            },
            111 => Self::Question(id, read_open_question(&mut r)?),
            112 => Self::Withdrawn(id),
            113 => Self::Pong(id),
            kind => return Err(FrameError::Kind { kind }),
        };
        r.end()?;
        Ok(value)
    }
}
