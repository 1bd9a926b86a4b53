//! Secrets held outside, attacked with the real programs: a value reaches its
//! own host inside verified TLS and nobody else, and no byte of it reaches the
//! command, its files, the record or a message.
//!
//! Each test runs in a laboratory of its own.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a step that cannot be made is a failed test"
)]

mod elsewhere;
mod exposure;
mod insertion;
mod keys;
mod messages;
mod monitor;
mod origin;
mod reflection;
mod rotation;
mod stage;
mod streamed;
mod versions;
