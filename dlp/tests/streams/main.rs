//! Streams through the scan as senders make them: every sample in every coding
//! and every split, the ways around other scanners, and what wants to exhaust
//! this one.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what is missing is a failed test"
)]
#![expect(
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a place that is not there is a failed test"
)]

mod apart;
mod archives;
mod behind;
mod bombs;
mod chance;
mod coded;
mod codings;
mod dumps;
mod encode;
mod ends;
mod escaped;
mod evasions;
mod halves;
mod joined;
mod known;
mod latin;
mod mutation;
mod odd;
mod opened;
mod oracle;
mod packers;
mod parted;
mod pieces;
mod places;
mod printed;
mod repeated;
mod repeats;
mod sealed;
mod session;
mod splits;
mod stage;
mod turned;
mod unmarked;
mod unread;
mod within;
