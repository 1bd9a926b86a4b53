//! Real programs, unmodified and with no variable set by hand, against real
//! servers on loopback. Each is tried where it may go, with names from a real
//! DNS server and with pins, and where it may not: there it must be told soon,
//! the server must see nothing, and no question for the name may leave.
//!
//! Each test runs in a laboratory of its own, as root and as a user without
//! rights where there are both.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a step that cannot be made is a failed test"
)]

mod behaviour;
mod clients;
mod crowds;
mod http;
mod own_servers;
mod raw;
mod servers;
mod streams;
mod terminal;
mod tls;
mod upstream;

use outgate_harness::{Identity, Lab, Sandbox};

/// A sandbox as people use it: the preset that applies without any option, the
/// clients and what a test gives them, and the working directory.
fn confined(lab: &Lab, identity: Identity) -> Sandbox<'_> {
    let work = lab.folder("work", identity);
    Sandbox::plain(lab, identity)
        .option("-P", "base")
        .option("-r", &lab.folder("given", Identity::Own).to_string_lossy())
        .option("-r", &clients::folder(lab).to_string_lossy())
        .option("-w", &work.to_string_lossy())
}

/// A command line of words.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// `bash -c SCRIPT`.
fn bash(script: &str) -> Vec<String> {
    words(&["bash", "-c", script])
}
