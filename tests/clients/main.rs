//! Real clients, unmodified, against real servers on loopback: every scenario
//! where it is allowed and where it is denied, and what a person sees of a
//! denial, client by client.
//!
//! Each test runs in a laboratory of its own and shares its servers between
//! scenarios; where there are two accounts, as the one without rights. Clients
//! that no distribution packages are installed by `tools/install`.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a step that cannot be made is a failed test"
)]
#![expect(
    clippy::print_stderr,
    reason = "what a denial took is measured, and shown with --nocapture"
)]

/// Declares tests that run twice: over plain HTTP, and over TLS that the gateway
/// opens, where clients trust the run with nothing set by hand.
macro_rules! carried_tests {
    ($($tests:tt)*) => {
        outgate_harness::carried_tests! { crate::stage::open_tls; $($tests)* }
    };
}

mod browser;
mod chat;
mod denials;
mod fetching;
mod homes;
mod languages;
mod learnt;
mod names;
mod packages;
mod presets;
mod programs;
mod scenario;
mod stage;
mod stores;
mod streams;
mod table;
mod tokens;
mod versions;
