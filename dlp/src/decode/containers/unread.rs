//! Compressed data whose coding is read here, and which no decoder here reads: zlib with a
//! preset dictionary (RFC 1950 2.2, FDICT), which only its readers have, and Brotli with a
//! large window (RFC 9841). Told by how they begin, so that what
//! leaves in them is counted and, where rules are strict, refused.

use super::guess::{self, GUESS_BYTES};
use super::meta_block::{self, Header};
use super::prefix::PrefixEnd;
use super::recognise::Wait;
use crate::limits;

/// The first byte of Brotli with a large window (RFC 9841).
const LARGE_WINDOW: u8 = 0x11;

/// Bytes of zlib before its data where there is a dictionary, whose checksum is among them.
const HEADER_BYTES: usize = 6;

/// Whether one of them begins here; `None` where more bytes are needed.
pub(super) fn begins(here: &[u8], wait: Wait) -> Option<bool> {
    match has_dictionary(here, wait) {
        Some(false) => has_large_window(here, wait),
        other => other,
    }
}

/// Whether zlib with a preset dictionary begins here.
pub(super) fn has_dictionary(here: &[u8], wait: Wait) -> Option<bool> {
    let [method, flags, ..] = here else {
        return settled(is_few(here, |method| method & 0x8f == 8), wait);
    };
    let is_checked = u16::from_be_bytes([*method, *flags]) % 31 == 0;
    if !is_checked || method & 0x0f != 8 || method >> 4 > 7 || flags & 0x20 == 0 {
        return Some(false);
    }
    // Two letters are such a header as well.
    let is = match here.get(..GUESS_BYTES) {
        Some(few) if is_words(few) => Some(false),
        Some(_) => guess::is_with_dictionary(here.get(HEADER_BYTES..).unwrap_or_default(), wait),
        None => None,
    };
    settled(is, wait)
}

/// Whether Brotli with a large window begins here.
pub(super) fn has_large_window(here: &[u8], wait: Wait) -> Option<bool> {
    let [first, bits, ..] = here else {
        return settled(is_few(here, |first| first == LARGE_WINDOW), wait);
    };
    if *first != LARGE_WINDOW || !(10..=30).contains(&(bits & 0x3f)) {
        return Some(false);
    }
    let is = match meta_block::read_large(here) {
        Ok(Header::Codes) => Some(true),
        // These bytes stand there as they are.
        Ok(Header::Skip(_) | Header::Plain(_)) | Err(PrefixEnd::Wrong) => Some(false),
        Err(PrefixEnd::Short) if here.len() >= limits::HEADER_BYTES_MAX => Some(false),
        Err(PrefixEnd::Short) => None,
    };
    settled(is, wait)
}

/// What a byte says, or none.
fn is_few(here: &[u8], may_be: impl Fn(u8) -> bool) -> Option<bool> {
    match here.first() {
        Some(first) if !may_be(*first) => Some(false),
        _ => None,
    }
}

/// What is not certain of all bytes is none.
fn settled(is: Option<bool>, wait: Wait) -> Option<bool> {
    match wait {
        Wait::Over => Some(is == Some(true)),
        Wait::Long | Wait::Short => is,
    }
}

/// Whether bytes are text, whose last letter may be cut off.
fn is_words(bytes: &[u8]) -> bool {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            str::from_utf8(valid).unwrap_or_default()
        }
        Err(_) => return false,
    };
    text.chars()
        .all(|letter| !letter.is_control() || matches!(letter, '\t' | '\n' | '\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_said_of_a_beginning_holds_for_more(
            head in prop::sample::select(vec![
                &[0x78, 0xf9][..], &[0x48, 0xe6], &[0x08, 0x3c], &[0x11, 0x5a], &[0x11, 0x1e], b"x ",
            ]),
            bytes in prop::collection::vec(any::<u8>(), 0..900),
        ) {
            let all = [head, &bytes].concat();
            let whole = begins(&all, Wait::Long);
            for end in 0..=all.len() {
                let few = begins(&all[..end], Wait::Long);
                assert!(few.is_none() || few == whole, "{end}: {few:?} {whole:?}");
            }
        }
    }
}
