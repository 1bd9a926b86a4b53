//! What HTTP clients can try on the way through the gateway: requests and
//! responses with two readings, other hosts and paths on one connection, every
//! segmentation. For each: what the client sees, what the origin got byte for
//! byte, and what was recorded.
//!
//! The client is this very program, run inside a sandbox (`client.rs`). Each
//! case has a name and an address of its own, so that nothing it does can be
//! taken for another's.

#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a step that cannot be made is a failed test"
)]

mod case;
mod client;
mod content;
mod frames;
mod matrix;
mod names;
mod origin;
mod property;
mod readers;
mod replies;
mod requests;
mod responses;
mod rows;
mod segments;
mod semantics;
mod stage;
mod suite;
