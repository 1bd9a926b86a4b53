//! Attacks on the confinement, one test per row of the list of known ways
//! around it, each as root and as a user without rights. Every attack that leaks
//! when it is run bare is run bare first, to show that the test can fail.
//!
//! The probes are C programs in `probes/`; they only report. Witnesses outside
//! the sandbox say what arrived.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a step that cannot be made is a failed test"
)]

mod attributes;
mod coded;
mod datagrams;
mod deadlines;
mod freed;
mod groups;
mod held;
mod http;
mod inodes;
mod laid;
mod lifecycle;
mod limits;
mod links;
mod local;
mod memory;
mod modes;
mod multicast;
mod mute;
mod nested;
mod overrides;
mod own_servers;
mod peers;
mod private;
mod privileges;
mod processes;
mod races;
mod readings;
mod records;
mod replaced;
mod resolution;
mod servers;
mod stalls;
mod streams;
mod terminals;
mod turns;
mod waits;

/// What a destination answers that no rule allows.
const REFUSED: &[&str] = &["ECONNREFUSED"];

/// What a socket answers that the command may not have.
const NO_SUCH_SOCKET: &[&str] = &[
    "EAFNOSUPPORT",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "EPROTOTYPE",
    "EPERM",
    "EACCES",
];
