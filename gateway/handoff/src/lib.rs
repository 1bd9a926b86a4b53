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
mod limits;
mod rotation;
pub mod settings;
pub mod status;
mod wire;

pub use frame::{
    Answer, Ask, AskTimes, BeginFrame, CallQuestion, Decision, FlowFrame, HelloFrame, HoldForm,
    LISTEN_RULE, OpenQuestion, Parent, ProcessFacts, Settlement, SourceFrame, TOKEN_DIGEST_BYTES,
    ToGateway, ToLauncher, TokenFrame,
};
pub use limits::{
    ADDRESSES_MAX, AUTHORITY_BYTES_MAX, DESCRIPTORS_MAX, FRAME_BYTES_MAX, GRANT_BYTES_MAX,
    LINE_BYTES_MAX, NAME_BYTES_MAX, PARENTS_MAX, PATH_BYTES_MAX, POLICY_BYTES_MAX, SETTINGS_MAX,
    SOURCE_CHUNK_BYTES_MAX, SOURCES_MAX, SUMMARY_BYTES_MAX, SUMMARY_LINES_MAX, WORDS_BYTES_MAX,
};
pub use rotation::RecordRotation;
pub use settings::{GatewaySetting, ShareLimit};
pub use status::{FromRun, GrantRequest, GrantUses, PersonAnswer, Status, ToRun};
pub use wire::FrameError;

/// Version of the frames. Both sides must hold the same one, and the same
/// build: nothing is negotiated.
pub const PROTOCOL: u16 = 12;

/// Bytes before a frame's body.
pub const HEADER_BYTES: usize = 16;
