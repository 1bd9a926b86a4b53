//! What the tests of the real programs share: a laboratory (own network, own
//! process table, own mounts), runs with a hard deadline, witnesses that record
//! whatever reaches them, origins, and a check that nothing is left behind.
//!
//! Development only. It knows the command line and the audit file, nothing of
//! the programs' inside.

#![forbid(unsafe_code)]
#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test, and says so where it happens"
)]
#![expect(
    clippy::print_stderr,
    reason = "a skipped test prints why it was skipped"
)]

pub mod attack;
pub mod audit;
pub mod fuzz;
pub mod identity;
pub mod lab;
pub mod leftovers;
pub mod names;
pub mod origin;
pub mod run;
pub mod sandbox;
pub mod schema;
pub mod servers;
pub mod table;
pub mod tools;
pub mod witness;

pub use identity::Identity;
pub use lab::Lab;
pub use run::{Outcome, Report, Running};
pub use sandbox::Sandbox;
pub use witness::Witness;

use std::time::Duration;

/// Whether this is a continuous-integration run, where nothing may be skipped.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// How long a race is run: long enough to hit a window that is hit once in a
/// few thousand attempts; shorter with `OUTGATE_QUICK=1`.
pub fn race_time() -> Duration {
    if is_quick() {
        Duration::from_secs(1)
    } else {
        Duration::from_secs(10)
    }
}

/// Whether the person asked for a short run (`OUTGATE_QUICK=1`).
pub fn is_quick() -> bool {
    std::env::var("OUTGATE_QUICK").is_ok_and(|value| value == "1")
}

/// A test cannot be made here. Fails in continuous integration, otherwise says
/// so and lets the test return.
///
/// # Panics
/// When this is a continuous-integration run.
pub fn skip(reason: &str) {
    assert!(!is_ci(), "cannot be tested here: {reason}");
    eprintln!("skip: {reason}");
}

/// Says why a test is not made, where that is no lack of the machine but of the
/// laboratory: run by root, it is.
pub fn skip_here(reason: &str) {
    eprintln!("skip: {reason}; run by root, this test runs");
}

/// Polls `holds` until it is true or `limit` passed, yielding in between.
/// For things the kernel does not announce, such as a table in /proc.
pub fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + limit;
    while std::time::Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    holds()
}
