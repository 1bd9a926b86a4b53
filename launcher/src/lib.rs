//! Confines a command and holds its network calls.
//!
//! The launcher is mechanism: it restricts the command with Landlock and a
//! seccomp filter, takes each held call in its own hands, asks the gateway and
//! moves descriptors. It never reads what the command sends, and it has no
//! runtime, no HTTP, no TLS and no DNS.

#![forbid(unsafe_code)]

pub mod accepted;
pub mod activation;
pub mod address;
mod attributes;
pub mod call_socket;
mod coprocess;
pub mod denials;
pub mod diag;
pub mod door;
pub mod enforced;
pub mod environment;
pub mod filter;
pub mod gateway_link;
pub mod git;
mod granted;
mod guarded;
mod home;
pub mod leftovers;
mod lifetime;
mod limits;
mod links;
pub mod listener;
pub mod lookups;
mod machine;
mod made;
pub mod manifest;
mod moved;
pub mod notification;
pub mod opened;
pub mod opening;
mod options;
pub mod own;
mod pair;
pub mod placeholders;
pub mod plan;
pub mod presence;
pub mod private;
pub mod probe;
pub mod process;
pub mod project;
pub mod proxied;
pub mod reachable;
pub mod record;
pub mod redirect;
pub mod reload;
pub mod reread;
pub mod room;
pub mod ruleset;
pub mod run;
mod run_error;
pub mod runs;
mod scarcity;
pub mod sealed;
pub mod secrets;
pub mod seek;
pub mod service;
pub mod share;
mod source_text;
pub mod sources;
pub mod standard;
pub mod supervisor;
mod terminal;
pub mod text;
pub mod tokens;
pub mod trust;
pub mod unix_inode;
pub mod visible;
pub mod voice;
pub mod withheld;
pub mod writable;

pub use outgate_handoff::{AskTimes, GatewaySetting, RecordRotation, ShareLimit};
