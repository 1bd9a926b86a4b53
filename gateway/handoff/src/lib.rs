//! The contract between the launcher and the gateway: which frames exist, how
//! they are laid out, and how large anything in them may be.
//!
//! Pure: bytes in, values out. The transport is one `SOCK_SEQPACKET` Unix
//! socket per sandbox (unix(7)), so one message is one frame, and descriptors
//! travel with the frame they belong to. Nothing here opens, sends or decides.
//!
//! A frame is a header of [`HEADER_BYTES`] bytes and a body, little-endian:
//! `kind: u16, reserved: u16 = 0, body length: u32, id: u64`.

#![forbid(unsafe_code)]
#![warn(clippy::arithmetic_side_effects, clippy::as_conversions)]

mod codec;
pub mod frame;
pub mod status;
mod wire;

pub use frame::{
    Answer, Ask, Begin, Decision, Flow, Hello, Parent, Process, Question, Source, SourceKind,
    ToGateway, ToLauncher,
};
pub use status::{Status, ToRun};
pub use wire::FrameError;

/// Version of the frames. Both sides must hold the same one, and the same
/// build: nothing is negotiated.
pub const PROTOCOL: u16 = 6;

/// Bytes before a frame's body.
pub const HEADER_BYTES: usize = 16;

/// Largest frame, header included, in bytes. Below the smallest default
/// `net.core.wmem_default`, so that one frame always fits the socket.
pub const FRAME_BYTES_MAX: usize = 60 * 1024;

/// Bytes of policy text one source frame carries at most.
pub const SOURCE_CHUNK_BYTES_MAX: usize = 48 * 1024;

/// Bytes of an authority's certificate in PEM. One has about 700.
pub const AUTHORITY_BYTES_MAX: usize = 4 * 1024;

/// Bytes of policy text one session sends at most, all sources together.
pub const POLICY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Pieces of policy text one session sends at most.
pub const SOURCES_MAX: usize = 4096;

/// Descriptors one frame carries at most.
pub const DESCRIPTORS_MAX: usize = 2;

/// Bytes of a path (`PATH_MAX`, limits.h).
pub const PATH_BYTES_MAX: usize = 4096;

/// Bytes of a short text: sandbox name, build version, place of a source.
pub const NAME_BYTES_MAX: usize = 512;

/// Bytes of a line meant for a person.
pub const LINE_BYTES_MAX: usize = 2048;

/// Addresses a direct answer lists at most.
pub const ADDRESSES_MAX: usize = 8;

/// The variable by which a gateway of a run's own learns the bytes, in hexadecimal, that the
/// run's canaries were made from: its environment is for nobody else to read.
pub const CANARY_SEED: &str = "OUTGATE_CANARY_SEED";

/// Ancestors a question lists at most.
pub const PARENTS_MAX: usize = 6;
