//! Where in a layer compressed data may begin behind other bytes: at every header of zlib
//! (RFC 1950 2.2), of which one look at all bytes finds the few that are valid, and where the
//! content of a part of multipart content begins (RFC 2046 5.1). Says where to look closely;
//! opens nothing.

use std::sync::LazyLock;

use outgate_lanes::{BLOCK_BYTES, KINDS, PLACES, Pair, Pairs};

use super::recognise::is_zlib;
use crate::budget::{narrow, wide};
use crate::decode::layer::View;
use crate::magic::{Magic, OpaqueFormat};
use crate::span;

/// Whether a byte is the second of a header that begins with this one.
fn goes_with<const METHOD: u8>(flags: u8) -> bool {
    is_zlib(&[METHOD, flags])
}

/// The first bytes of headers, and the second bytes that go with each: some sizes of window
/// together, to leave room for the end of a line and for the one second byte that stands behind
/// 0x48 in the code of processors. Of a pair its halves are known: beside 0x0d and 0x4b that
/// byte would bring in those of other moves, which stand every eight bytes.
const KINDS_SOUGHT: [Pair; KINDS] = [
    (
        |byte| matches!(byte, 0x08 | 0x18),
        |byte| goes_with::<0x08>(byte) || goes_with::<0x18>(byte),
    ),
    (
        |byte| matches!(byte, 0x28 | 0x38),
        |byte| goes_with::<0x28>(byte) || goes_with::<0x38>(byte),
    ),
    (|byte| byte == 0x48, |byte| byte == 0x89),
    (
        |byte| byte == 0x48,
        |byte| goes_with::<0x48>(byte) && byte != 0x89,
    ),
    (|byte| byte == 0x58, goes_with::<0x58>),
    (|byte| byte == 0x68, goes_with::<0x68>),
    (|byte| byte == 0x78, goes_with::<0x78>),
    (|byte| byte == b'\r', |byte| byte == b'\n'),
];

static PAIRS: LazyLock<Pairs> = LazyLock::new(|| Pairs::new(&KINDS_SOUGHT));

/// What the fields of a part end with.
const FIELDS_END: &[u8] = b"\r\n\r\n";

/// What is looked for where a part begins.
const OF_PARTS: [Magic; 5] = [
    Magic::Deflate,
    Magic::Brotli,
    Magic::Unread,
    Magic::Sealed(OpaqueFormat::Lzma),
    Magic::Sealed(OpaqueFormat::Pgp),
];

/// Symbols of a block with the fixed codes that are looked at first, in count: with what a
/// copy takes they are in sixteen bytes.
const FIXED_SYMBOLS: u128 = 10;

/// How far a layer was looked through.
#[derive(Default)]
pub(super) struct LayerSeek {
    /// Headers that begin before this offset were found.
    headers: u64,
    /// Parts whose fields end before this offset were found.
    parts: u64,
}

impl LayerSeek {
    /// Tells of every place at which something may begin that was not told of.
    pub(super) fn find(&mut self, view: &View<'_>, found: &mut impl FnMut(Magic, u64)) {
        let end = view.end();
        // The last bytes may go on with what comes.
        let back = wide(FIELDS_END.len()).saturating_sub(1);
        let from = self.parts.saturating_sub(back).max(view.base);
        let (old_headers, old_parts) = (self.headers, self.parts);
        places(view.slice(from, end), &mut |place, seen| {
            let at = from.saturating_add(wide(place));
            match seen {
                SeekSeen::Header if at >= old_headers => found(Magic::Zlib, at),
                SeekSeen::FieldsEnd => {
                    let at = at.saturating_add(wide(FIELDS_END.len()));
                    for magic in OF_PARTS.into_iter().filter(|_| at > old_parts) {
                        found(magic, at);
                    }
                }
                SeekSeen::Header => {}
            }
        });
        self.headers = end.saturating_sub(1).max(self.headers);
        self.parts = end;
    }
}

/// Whether these bytes begin no block of deflate (RFC 1951 3.2.3), as far as the first of them
/// show in a few steps: in the code of processors a valid header stands every few dozen bytes.
pub(super) fn is_hopeless(bytes: &[u8]) -> bool {
    let Some(first) = bytes.first_chunk().map(|bytes| u128::from_le_bytes(*bytes)) else {
        return false;
    };
    let bits = |at: u32, count: u32| first >> at & ((1 << count) - 1);
    match bits(1, 2) {
        // Its length, and the complement of that.
        0 => bits(8, 16) ^ bits(24, 16) != 0xffff,
        1 => copies_nothing(first),
        // Codes of its own: that for their lengths has to be whole.
        2 => {
            let count = bits(13, 4).saturating_add(4);
            let lengths = (17..).step_by(3).zip(0..count);
            let parts = lengths.map(|(at, _)| 128 >> bits(at, 3) & 127_u128);
            bits(3, 5) > 29 || parts.sum::<u128>() != 128
        }
        _ => true,
    }
}

/// Whether a block with the fixed codes (RFC 1951 3.2.6) begins so, and its first copy is from
/// before the beginning.
fn copies_nothing(first: u128) -> bool {
    // The first bit highest, behind those that say what block it is.
    let mut rest = first.reverse_bits() << 3;
    for made in 0..FIXED_SYMBOLS {
        let code = rest >> 121;
        let (base, extra) = match code {
            // The end of the block.
            0 => return false,
            1..=23 => (code, 7),
            96..=99 => (24 + (rest >> 120 & 7), 8),
            24..=95 => {
                rest <<= 8;
                continue;
            }
            _ => {
                rest <<= 9;
                continue;
            }
        };
        // Eight lengths stand for themselves, four each have one bit more, and so on.
        let more = base.saturating_sub(5) / 4;
        let more = if base <= 8 || base == 29 { 0 } else { more };
        let code = rest << extra << more >> 123;
        let distance = match code {
            0..=3 => code + 1,
            _ => (((code & 1) | 2) << (code / 2 - 1)) + 1,
        };
        return distance > made;
    }
    false
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeekSeen {
    /// A header of zlib.
    Header,
    /// The end of the fields of a part.
    FieldsEnd,
}

/// Every place at which a header of zlib stands, or fields end.
fn places(bytes: &[u8], found: &mut impl FnMut(usize, SeekSeen)) {
    let mut start = 0_usize;
    let mut marks = [0; PLACES];
    while let Some(rest) = bytes.get(start..).filter(|rest| rest.len() > 1) {
        let count = rest.len().div_ceil(BLOCK_BYTES).min(PLACES);
        PAIRS.mark(rest, count, 0, &mut marks);
        for (number, marks) in marks.iter().take(count).enumerate() {
            let mut marks = *marks;
            while marks != 0 {
                let place = narrow(u64::from(marks.trailing_zeros()));
                let place = number.saturating_mul(BLOCK_BYTES).saturating_add(place);
                let here = span::from(rest, place);
                if is_zlib(here) && !is_hopeless(here.get(2..).unwrap_or_default()) {
                    found(start.saturating_add(place), SeekSeen::Header);
                } else if here.starts_with(FIELDS_END) {
                    found(start.saturating_add(place), SeekSeen::FieldsEnd);
                }
                marks &= marks.wrapping_sub(1);
            }
        }
        start = start.saturating_add(count.saturating_mul(BLOCK_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec;
    use proptest::prelude::*;

    use super::*;
    use crate::decode::containers::guess::{DeflateLooks, looks_deflated};
    use crate::decode::containers::recognise::Wait;

    proptest! {
        #[test]
        fn nothing_that_may_be_deflated_is_hopeless(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            text in proptest::collection::vec(b' '..=b'~', 1..3000),
            level in 0_u8..=10,
        ) {
            prop_assert!(!is_hopeless(&compress_to_vec(&text, level)));
            if looks_deflated(&bytes, Wait::Short) == DeflateLooks::Right {
                prop_assert!(!is_hopeless(&bytes));
            }
        }

        #[test]
        fn every_place_is_found_and_nothing_else(
            bytes in proptest::collection::vec(
                prop_oneof![
                    any::<u8>(),
                    Just(0x78), Just(0x9c), Just(0x08), Just(0x1d), Just(b'\r'), Just(b'\n'),
                ],
                0..5000,
            ),
        ) {
            let mut found = Vec::new();
            places(&bytes, &mut |place, seen| found.push((place, seen)));
            let plain = (0..bytes.len()).filter_map(|place| {
                let here = &bytes[place..];
                let seen = if is_zlib(here) && !is_hopeless(&here[2..]) {
                    SeekSeen::Header
                } else if here.starts_with(FIELDS_END) {
                    SeekSeen::FieldsEnd
                } else {
                    return None;
                };
                Some((place, seen))
            });
            prop_assert_eq!(found, plain.collect::<Vec<(usize, SeekSeen)>>());
        }
    }
}
