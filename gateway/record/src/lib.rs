//! The schema of audit records: one type, [`Record`], that is written by the gateway and
//! read by `outgate audit` and `outgate why last`, and the closed sets of words in it.
//! `schema.json` beside this crate says the same as a JSON Schema (draft 2020-12); tests
//! compare it with the types here and with what real runs write. Knows neither what is
//! judged nor where records go.

#![forbid(unsafe_code)]

mod clock;
mod limits;
mod members;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod words;

pub use clock::{file_stamp, milliseconds, timestamp};
pub use read::short;
pub use record::{Found, Record, RuleCited, Traffic, Unseen, VERSION};
pub use words::{Alarm, Kind, Outcome, Reason, Token, Word};
