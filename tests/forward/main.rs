//! What HTTP clients can try on the way through the gateway: requests and
//! responses with two readings, other hosts and paths on one connection, every
//! segmentation. For each: what the client sees, what the origin got byte for
//! byte, and what was recorded.
//!
//! The client is this very program, run inside a sandbox (`client.rs`). Each
//! case has a name and an address of its own, so that nothing it does can be
//! taken for another's. Most are made twice: plain, and inside opened TLS.

#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a step that cannot be made is a failed test"
)]
#![expect(
    clippy::print_stderr,
    reason = "what is random and what was measured is shown with --nocapture"
)]

/// Declares tests that run twice: with requests as they are, and with the same
/// inside TLS that the gateway opens.
macro_rules! carried_tests {
    ($($tests:tt)*) => {
        outgate_harness::carried_tests! { crate::stage::open_tls; $($tests)* }
    };
}

mod case;
mod client;
mod client_hellos;
mod content;
mod floods;
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
mod versions;
mod wire;
