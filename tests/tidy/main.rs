//! Keeps true what the documents say about the project: who may depend on
//! whom and on what, where `unsafe`, printing and serialisation may stand, what the map
//! names. Reads files and `cargo metadata`; runs nothing of outgate.

#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    reason = "a file that cannot be read is a failed test"
)]

mod crates;
mod dependencies;
mod documents;
mod files;
mod layers;
mod lexer;
mod licences;
mod limits;
mod names;
mod policies;
mod sources;
