//! What opens a session with a gateway: where the gateway is, the policy, and
//! the frames that bring it, or that give it to somebody else. Sends nothing.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Instant;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use outgate_handoff::{
    BeginFrame, FrameError, GatewaySetting, HelloFrame, NAME_BYTES_MAX, POLICY_BYTES_MAX, PROTOCOL,
    SOURCE_CHUNK_BYTES_MAX, SOURCES_MAX, SourceFrame, ToGateway,
};
use outgate_policy::{Source, SourceKind};

use crate::door::Door;
use crate::text::cut;

/// Version of this build; the gateway's must be the same.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Where the gateway is.
#[derive(Debug)]
pub enum GatewayPlace {
    /// Ours alone: a program to start.
    Private {
        /// Its path.
        program: PathBuf,
        /// What it is told beside the policy, before that.
        settings: Vec<GatewaySetting>,
        /// Variables it gets beside ours.
        variables: Vec<(String, String)>,
    },
    /// One that others use too.
    Shared(Door),
}

/// What a session needs to start.
#[derive(Debug)]
pub struct Opening {
    /// Where the gateway is.
    pub whose: GatewayPlace,
    /// Name of the sandbox.
    pub sandbox: String,
    /// Policy texts in merge order.
    pub sources: Vec<Source>,
    /// The rules among them that end by their time: their places, and when.
    pub ends: Vec<(String, Instant)>,
    /// Directories for the policy, and the program for the records.
    pub begin: BeginFrame,
}

/// The frames that open a session under no gateway of its own, in order.
pub(crate) fn session_frames(
    sandbox: &str,
    sources: &[Source],
    begin: &BeginFrame,
) -> io::Result<Vec<Vec<u8>>> {
    let mut frames = vec![hello(sandbox)?];
    frames.extend(policy_frames(sources, begin)?);
    Ok(frames)
}

fn hello(sandbox: &str) -> io::Result<Vec<u8>> {
    let hello = ToGateway::Hello(HelloFrame {
        protocol: PROTOCOL,
        build: BUILD.to_owned(),
        sandbox: sandbox.to_owned(),
        pid: std::process::id(),
    });
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    hello.encode().map_err(invalid)
}

/// The frames of an opening, in order.
pub(crate) fn opening_frames(opening: &Opening) -> io::Result<Vec<Vec<u8>>> {
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut frames = Vec::new();
    if let GatewayPlace::Private { settings, .. } = &opening.whose {
        for setting in settings.iter().chain([&GatewaySetting::End]) {
            let frame = ToGateway::Setting(setting.clone());
            frames.push(frame.encode().map_err(invalid)?);
        }
    }
    frames.push(hello(&opening.sandbox)?);
    for frame in end_frames(&opening.ends) {
        frames.push(frame.encode().map_err(invalid)?);
    }
    frames.extend(policy_frames(&opening.sources, &opening.begin)?);
    Ok(frames)
}

/// The frames that bring a policy.
pub(crate) fn policy_frames(sources: &[Source], begin: &BeginFrame) -> io::Result<Vec<Vec<u8>>> {
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let begin = ToGateway::Begin(begin.clone());
    let frames = source_frames(sources).into_iter().chain([begin]);
    frames
        .map(|frame| frame.encode().map_err(invalid))
        .collect()
}

/// The frames that say how long granted rules hold from now on.
pub(crate) fn end_frames(ends: &[(String, Instant)]) -> Vec<ToGateway> {
    let now = Instant::now();
    let frame = |(place, until): &(String, Instant)| ToGateway::Until {
        place: place.clone(),
        left_ms: u64::try_from(until.saturating_duration_since(now).as_millis())
            .unwrap_or(u64::MAX),
    };
    ends.iter().map(frame).collect()
}

/// The frames that bring texts.
pub(crate) fn source_frames(sources: &[Source]) -> Vec<ToGateway> {
    let mut frames = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let mut chunks: Vec<&[u8]> = source
            .text
            .as_bytes()
            .chunks(SOURCE_CHUNK_BYTES_MAX)
            .collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for chunk in chunks {
            frames.push(ToGateway::Source(SourceFrame {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                kind: source.kind,
                place: cut(source.place.clone(), NAME_BYTES_MAX),
                chunk: chunk.to_vec(),
            }));
        }
    }
    frames
}

/// What nobody can change in memory that is handed to another program any more
/// (memfd_create(2), F_ADD_SEALS).
const SEALED: SealFlag = SealFlag::F_SEAL_WRITE
    .union(SealFlag::F_SEAL_SHRINK)
    .union(SealFlag::F_SEAL_GROW)
    .union(SealFlag::F_SEAL_SEAL);

/// The frames of a policy in sealed memory, each after its length, and how many bytes that are.
pub(crate) fn texts_file(sources: &[Source], begin: &BeginFrame) -> io::Result<(OwnedFd, u32)> {
    let mut bytes = Vec::new();
    for frame in policy_frames(sources, begin)? {
        let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
        bytes.extend(length.to_le_bytes());
        bytes.extend(frame);
    }
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"outgate-policy", flags)?);
    file.write_all(&bytes)?;
    file.rewind()?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SEALED))?;
    Ok((file.into(), length))
}

/// Reads such a file of so many bytes. Who hands it over may be anybody's program, so what
/// is not sealed is not read: a pipe or a file of a user's file system has its reader wait.
///
/// # Errors
/// It is none.
pub(crate) fn read_texts_file(file: OwnedFd, bytes: u32) -> io::Result<(Vec<Source>, BeginFrame)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let seals = fcntl(&file, FcntlArg::F_GET_SEALS).map_err(|_| invalid())?;
    if !SealFlag::from_bits_retain(seals).contains(SEALED) {
        return Err(invalid());
    }
    let most = POLICY_BYTES_MAX.saturating_mul(2);
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    if length > most {
        return Err(invalid());
    }
    let mut file = File::from(file).take(bytes.into());
    let mut texts: Vec<(SourceKind, String, Vec<u8>)> = Vec::new();
    loop {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if u64::from(length) > file.limit() {
            return Err(invalid());
        }
        let mut frame = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact(&mut frame)?;
        match ToGateway::decode(&frame).map_err(io::Error::other)? {
            ToGateway::Source(piece) => {
                let index = usize::try_from(piece.index).map_err(io::Error::other)?;
                if index == texts.len() && index < SOURCES_MAX {
                    texts.push((piece.kind, piece.place, piece.chunk));
                } else if index.checked_add(1) == Some(texts.len())
                    && let Some((_, _, text)) = texts.last_mut()
                {
                    text.extend(piece.chunk);
                } else {
                    return Err(invalid());
                }
            }
            ToGateway::Begin(begin) => {
                let texts = texts.into_iter().map(|(kind, place, text)| {
                    let text = String::from_utf8(text).map_err(io::Error::other)?;
                    Ok(Source { kind, place, text })
                });
                return Ok((texts.collect::<io::Result<_>>()?, begin));
            }
            _ => return Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_is_given_is_the_one_that_was_there() {
        let long = "# x\n".repeat(SOURCE_CHUNK_BYTES_MAX);
        let texts = [
            (SourceKind::Document, "a.toml", long.as_str()),
            (SourceKind::Allow, "-a", "a.test"),
            (SourceKind::Learning, "learning", ""),
        ];
        let sources = texts.map(|(kind, place, text)| Source {
            kind,
            place: place.to_owned(),
            text: text.to_owned(),
        });
        let begin = BeginFrame {
            home: "/h".to_owned(),
            working_directory: "/w".to_owned(),
            private_directory: "/p".to_owned(),
            command: "c".to_owned(),
            ask: outgate_handoff::AskTimes::default(),
        };
        let (file, bytes) = texts_file(&sources, &begin).unwrap();
        let copy = file.try_clone().unwrap();
        let given = read_texts_file(file, bytes).unwrap();
        assert_eq!(given, (sources.to_vec(), begin));
        File::from(copy.try_clone().unwrap()).rewind().unwrap();
        assert!(read_texts_file(copy, bytes - 1).is_err());
    }

    #[test]
    fn what_may_change_or_never_come_is_not_waited_for() {
        let (pipe, _writer) = nix::unistd::pipe().unwrap();
        assert!(read_texts_file(pipe, 8).is_err());
        let unsealed = memfd_create(c"t", MFdFlags::MFD_ALLOW_SEALING).unwrap();
        assert!(read_texts_file(unsealed, 8).is_err());
        let program = File::open("/proc/self/exe").unwrap();
        assert!(read_texts_file(program.into(), 8).is_err());
    }
}
