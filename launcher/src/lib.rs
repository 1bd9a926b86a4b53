//! Confines a command and holds its network calls.
//!
//! The launcher is mechanism: it restricts the command with Landlock and a
//! seccomp filter, takes each held call in its own hands, asks the gateway and
//! moves descriptors. It never reads what the command sends, and it has no
//! runtime, no HTTP, no TLS and no DNS.

#![forbid(unsafe_code)]

pub mod address;
mod attributes;
mod coprocess;
pub mod denials;
pub mod diag;
pub mod door;
pub mod environment;
pub mod filter;
pub mod gateway_link;
pub mod git;
pub mod grip;
mod home;
pub mod leftovers;
mod lifetime;
pub mod listener;
pub mod lookups;
mod machine;
mod made;
mod moved;
pub mod notification;
pub mod opening;
pub mod own;
mod pair;
pub mod placeholders;
pub mod plan;
pub mod presence;
pub mod private;
pub mod probe;
pub mod process;
pub mod project;
pub mod reachable;
pub mod record;
pub mod redirect;
pub mod reread;
pub mod ruleset;
pub mod run;
pub mod runs;
pub mod sealed;
pub mod secrets;
pub mod seek;
pub mod share;
pub mod sources;
pub mod standard;
pub mod supervisor;
mod terminal;
pub mod trust;
pub mod unix_inode;
pub mod visible;
pub mod withheld;
pub mod writable;
