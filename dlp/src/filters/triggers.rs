//! Where in a layer escapes stand. A quick look at every byte, so that text
//! without escapes costs nothing beside it.

use super::Kind;
use super::decode::{self, Token, digit};
use super::{fold, references};
use crate::budget::{narrow, wide};
use crate::layer::View;

/// Bytes looked at together for those that are no text.
const BLOCK_BYTES: usize = 64;

/// Every escape that begins in `from..to`, in offsets of the layer, kind by kind.
pub(super) fn find(view: &View<'_>, from: u64, to: u64, found: &mut impl FnMut(Kind, u64)) {
    let start = narrow(from.saturating_sub(view.base));
    let length = narrow(to.saturating_sub(from));
    let rest = view.bytes.get(start..).unwrap_or_default();
    let region = rest.get(..length).unwrap_or(rest);
    let at = |place: usize| from.saturating_add(wide(place));
    for place in memchr::memchr3_iter(b'%', b'\\', b'&', region) {
        let here = rest.get(place..).unwrap_or_default();
        if let Some(kind) = escape(here) {
            found(kind, at(place));
        }
    }
    for place in memchr::memchr_iter(b'=', region) {
        let here = rest.get(place..).unwrap_or_default();
        if is_quoted(here) {
            found(Kind::Quoted, at(place));
        }
    }
    uncommon(region, &mut |place| {
        let here = rest.get(place..).unwrap_or_default();
        match here.first() {
            Some(0) if is_wide(rest, place) => found(Kind::Wide, at(place.saturating_sub(1))),
            Some(0xc2..) if fold::begins(here) => found(Kind::Fold, at(place)),
            _ => {}
        }
    });
}

/// The kind of escape that begins here.
fn escape(here: &[u8]) -> Option<Kind> {
    let is_digit = |place: usize| here.get(place).is_some_and(|byte| digit(*byte).is_some());
    match here {
        [b'%', ..] if is_digit(1) && is_digit(2) => Some(Kind::Percent),
        // Ends of lines and quotes are escaped everywhere, and split nothing.
        [b'\\', b'u' | b'U' | b'x' | b'0'..=b'7' | b'/', ..] if is_escape(here) => {
            Some(Kind::Escape)
        }
        [b'&', ..] if references::begins(here) => Some(Kind::Reference),
        _ => None,
    }
}

/// Whether decoding takes it for an escape too: otherwise it would stand in the
/// next layer as it stands here, and so on without end.
fn is_escape(here: &[u8]) -> bool {
    !matches!(decode::escape(here), Token::Plain | Token::More)
}

/// Whether quoted-printable stands here: a character of text, or a line that
/// goes on.
fn is_quoted(here: &[u8]) -> bool {
    match here {
        [_, b'\n', ..] | [_, b'\r', b'\n', ..] => true,
        [_, high @ b'2'..=b'7', low, ..] => {
            (low.is_ascii_digit() || (b'A'..=b'F').contains(low)) && (*high, *low) != (b'7', b'F')
        }
        _ => false,
    }
}

/// Whether text with a zero after (or before) each letter stands around `place`.
fn is_wide(rest: &[u8], place: usize) -> bool {
    let is_letter = |place: usize| rest.get(place).is_some_and(u8::is_ascii_graphic);
    let is_zero = |place: usize| rest.get(place) == Some(&0);
    let next = place.saturating_add(1);
    let two =
        is_letter(next) && is_zero(place.saturating_add(2)) && is_letter(place.saturating_add(3));
    let four = is_zero(next)
        && is_zero(place.saturating_add(2))
        && is_letter(place.saturating_add(3))
        && is_zero(place.saturating_add(4));
    two || four
}

/// Every zero, and every byte that begins a character that may fold.
///
/// Written without branches for each byte, so that the compiler takes many at
/// once: compressed bytes have something of this kind in every line.
fn uncommon(region: &[u8], found: &mut impl FnMut(usize)) {
    let mut start = 0_usize;
    while let Some(rest) = region.get(start..).filter(|rest| !rest.is_empty()) {
        let mut block = [b' '; BLOCK_BYTES];
        let mut next = [0x80_u8; BLOCK_BYTES];
        // Behind the region anything may stand: it is looked at closely later.
        let length = rest.len().min(BLOCK_BYTES);
        copy(&mut block, rest);
        copy(&mut next, rest.get(1..).unwrap_or_default());
        let mut marks = [0_u8; BLOCK_BYTES];
        for ((mark, byte), next) in marks.iter_mut().zip(block).zip(next) {
            let goes_on = u8::from(next & 0xc0 == 0x80);
            *mark = u8::from(byte == 0) | (u8::from(is_lead(byte)) & goes_on);
        }
        for (count, eight) in marks.as_chunks::<8>().0.iter().enumerate() {
            // Nor is there text among zeros alone.
            let zeros = u64::from_le_bytes([1; 8]);
            let bytes = block.as_chunks::<8>().0.get(count);
            if u64::from_le_bytes(*eight) == 0
                || (u64::from_le_bytes(*eight) == zeros && bytes == Some(&[0; 8]))
            {
                continue;
            }
            for (place, _) in eight.iter().enumerate().filter(|(_, mark)| **mark != 0) {
                found(start.saturating_add(count * 8).saturating_add(place));
            }
        }
        start = start.saturating_add(length);
    }
}

/// As many bytes as there are.
fn copy(block: &mut [u8; BLOCK_BYTES], bytes: &[u8]) {
    if let Some(all) = bytes.first_chunk::<BLOCK_BYTES>() {
        *block = *all;
    } else {
        for (to, from) in block.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
}

/// Whether a character that folds can begin with this byte. Ranges only, and
/// without those of Latin letters and of most of East Asia.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "branches would keep the compiler from taking many bytes at once"
)]
pub(super) fn is_lead(byte: u8) -> bool {
    (byte == 0xc2)
        | (0xc4..=0xd8).contains(&byte)
        | (0xe1..=0xe3).contains(&byte)
        | (byte == 0xef)
        | (byte == 0xf0)
        | (byte == 0xf3)
}
