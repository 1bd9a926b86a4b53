//! Character references of HTML and XML: numbers, and the names of what occurs
//! in credentials and around them.

use super::decode::EscapeToken;
use crate::span;

/// Names and what they stand for.
const NAMES: [(&[u8], u8); 19] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"period", b'.'),
    (b"equals", b'='),
    (b"sol", b'/'),
    (b"bsol", b'\\'),
    (b"colon", b':'),
    (b"plus", b'+'),
    (b"commat", b'@'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"NewLine", b'\n'),
    (b"Tab", b'\t'),
];

/// Longest name.
const NAME_BYTES_MAX: usize = 8;

/// Most digits of a number, leading zeros included.
const DIGITS_MAX: usize = 12;

/// What stands at an ampersand.
pub(crate) fn token(bytes: &[u8]) -> EscapeToken {
    match bytes.get(1) {
        None => EscapeToken::More,
        Some(b'#') => number(bytes),
        Some(_) => named(bytes),
    }
}

fn named(bytes: &[u8]) -> EscapeToken {
    let name = bytes.get(1..).unwrap_or_default();
    let Some(end) = name
        .iter()
        .take(NAME_BYTES_MAX + 1)
        .position(|byte| *byte == b';')
    else {
        let is_name = name.iter().all(u8::is_ascii_alphabetic);
        let is_short = name.len() <= NAME_BYTES_MAX;
        return if is_name && is_short {
            EscapeToken::More
        } else {
            EscapeToken::Plain
        };
    };
    let name = span::upto(name, end);
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, byte)) => EscapeToken::Byte(end.saturating_add(2), *byte),
        None => EscapeToken::Plain,
    }
}

fn number(bytes: &[u8]) -> EscapeToken {
    let (start, radix) = match bytes.get(2) {
        None => return EscapeToken::More,
        Some(b'x' | b'X') => (3, 16),
        Some(_) => (2, 10),
    };
    let mut value = 0_u32;
    for place in start..start + DIGITS_MAX {
        let Some(byte) = bytes.get(place) else {
            return EscapeToken::More;
        };
        match char::from(*byte).to_digit(radix) {
            Some(digit) => value = value.saturating_mul(radix).saturating_add(digit),
            None if place == start => return EscapeToken::Plain,
            // Readers forgive a missing semicolon.
            None => {
                let used = place.saturating_add(usize::from(*byte == b';'));
                return EscapeToken::Character(used, value);
            }
        }
    }
    EscapeToken::Plain
}

/// Whether a reference stands here.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    !matches!(token(bytes), EscapeToken::Plain | EscapeToken::More)
}
