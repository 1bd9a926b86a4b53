//! The schema of audit records: one type, [`Record`], that is written by the gateway and
//! read by `outgate audit` and `outgate why last`, the closed sets of words in it, and the
//! chain of hashes with the signature at its end ([`Chains`], [`Signer`]), and the form of
//! compressed records ([`pack_block`]).
//! `schema.json` beside this crate says the same as a JSON Schema (draft 2020-12); tests
//! compare it with the types here and with what real runs write. Knows neither what is
//! judged nor where records go.

#![forbid(unsafe_code)]

mod chain;
mod clock;
mod limits;
mod members;
mod packed;
mod read;
mod record;
mod removed;
mod seal;
#[cfg(test)]
mod tests;
mod words;

pub use chain::{
    ChainFault, ChainLink, Chains, FollowedLine, HashDigits, NO_HASH, RecordEnd, line_digits,
    line_hash,
};
pub use clock::{file_stamp, milliseconds, timestamp};
pub use packed::{BLOCK_HEAD_BYTES, BlockFault, BlockHead, BlockTerm, block_length, pack_block};
pub use read::short;
pub use record::{Found, Record, RuleCited, Traffic, Unseen, VERSION};
pub use removed::RemovedRecords;
pub use seal::Signer;
pub use words::{Alarm, Kind, Outcome, Reason, Token, Word};
