//! What opens a session with a gateway: where the gateway is, the policy, and
//! the frames that bring it. Sends nothing.

use std::io;
use std::path::PathBuf;

use outgate_handoff::{
    Begin, FrameError, Hello, PROTOCOL, SOURCE_CHUNK_BYTES_MAX, Source, SourceKind, ToGateway,
};

use crate::door::Door;

/// Version of this build; the gateway's must be the same.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Where the gateway is.
#[derive(Debug)]
pub enum Whose {
    /// Ours alone: a program to start.
    Private {
        /// Its path.
        program: PathBuf,
        /// Its arguments after `serve --handoff-fd N`.
        arguments: Vec<String>,
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
    pub whose: Whose,
    /// Name of the sandbox.
    pub sandbox: String,
    /// Policy texts in merge order.
    pub sources: Vec<(SourceKind, String, String)>,
    /// Directories for the policy, and the program for the records.
    pub begin: Begin,
}

/// The frames of an opening, in order.
pub(crate) fn opening_frames(opening: &Opening) -> io::Result<Vec<Vec<u8>>> {
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let hello = ToGateway::Hello(Hello {
        protocol: PROTOCOL,
        build: BUILD.to_owned(),
        sandbox: opening.sandbox.clone(),
        pid: std::process::id(),
    });
    let mut frames = vec![hello.encode().map_err(invalid)?];
    frames.extend(policy_frames(&opening.sources, &opening.begin)?);
    Ok(frames)
}

/// The frames that bring a policy.
pub(crate) fn policy_frames(
    sources: &[(SourceKind, String, String)],
    begin: &Begin,
) -> io::Result<Vec<Vec<u8>>> {
    let invalid = |error: FrameError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut frames = Vec::new();
    for (index, (kind, place, text)) in sources.iter().enumerate() {
        let mut chunks: Vec<&[u8]> = text.as_bytes().chunks(SOURCE_CHUNK_BYTES_MAX).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        for chunk in chunks {
            let source = ToGateway::Source(Source {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                kind: *kind,
                place: place.clone(),
                chunk: chunk.to_vec(),
            });
            frames.push(source.encode().map_err(invalid)?);
        }
    }
    let begin = ToGateway::Begin(begin.clone());
    frames.push(begin.encode().map_err(invalid)?);
    Ok(frames)
}
