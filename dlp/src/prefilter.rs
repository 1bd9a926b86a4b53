//! Where in a buffer the literals of the detectors stand: the one look at
//! every byte. Of each literal, three bytes are looked for that are met seldom
//! in text, at every second place; what the look finds is compared. Knows
//! nothing of detectors.

use crate::bits::gathered;
use crate::limits;

/// Bytes that are looked for together: no literal is shorter.
const WINDOW_BYTES: usize = limits::LITERAL_BYTES_MIN;

/// Shortest literal with two windows, one after the other: wherever it begins,
/// one of them begins at an even place.
const LONG_BYTES: usize = WINDOW_BYTES + 1;

/// Bits of the number that stands for a window.
const NUMBER_BITS: u32 = 17;

/// Numbers of windows.
const NUMBERS: usize = 1 << NUMBER_BITS;

/// Lists of windows: each of those of some numbers.
const LISTS: usize = 1 << 12;

/// The window is looked for.
const WHOLE: u8 = 1;

/// The window ends with the first two bytes of a short literal.
const BEFORE: u8 = 2;

/// The window begins with the last two bytes of a short literal.
const BEHIND: u8 = 4;

/// Bytes looked at before anything is decided: every second begins a window.
const BLOCK_BYTES: usize = 128;

/// Windows of a block, and some of the next.
const BLOCK_WINDOWS: usize = BLOCK_BYTES / 2 + 8;

/// Bytes read for a block.
const AHEAD_BYTES: usize = BLOCK_BYTES + 24;

/// Finds literals.
pub(crate) struct Prefilter {
    literals: Vec<Box<[u8]>>,
    /// For each number of a window what it may be.
    numbers: Box<[u8; NUMBERS]>,
    /// List by list.
    pieces: Vec<Piece>,
    /// Where among the pieces each list ends.
    ends: Vec<usize>,
    longest: usize,
}

/// Three bytes, the first in the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Window(u32);

/// A window of a literal.
#[derive(Clone, Copy)]
struct Piece {
    window: Window,
    literal: usize,
    /// Where in the literal it begins.
    at: usize,
    /// Whether it is all of the literal.
    is_all: bool,
}

impl Window {
    fn new([one, two, three]: [u8; WINDOW_BYTES]) -> Self {
        Self(u32::from_le_bytes([one, two, three, 0]))
    }

    /// The first of these bytes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the bytes behind the window are left out"
    )]
    fn first(bytes: u64) -> Self {
        Self(bytes as u32 & 0x00ff_ffff)
    }

    /// A number that others may have as well, spread evenly.
    fn number(self) -> usize {
        let mixed = (self.0 << 8).wrapping_mul(0x27d4_eb2f);
        usize::try_from(mixed >> (u32::BITS - NUMBER_BITS)).unwrap_or_default()
    }

    fn list(self) -> usize {
        self.number() / (NUMBERS / LISTS)
    }
}

impl Prefilter {
    /// A search for `literals`; they are known by their places in the list.
    #[expect(clippy::large_stack_arrays, reason = "made once, when a ruleset is")]
    pub(crate) fn new(literals: Vec<Box<[u8]>>) -> Self {
        let mut numbers = Box::new([0; NUMBERS]);
        let mut mark = |window: [u8; WINDOW_BYTES], meaning: u8| {
            if let Some(number) = numbers.get_mut(Window::new(window).number()) {
                *number |= meaning;
            }
        };
        let mut pieces = Vec::new();
        for (literal, bytes) in literals.iter().enumerate() {
            let is_all = bytes.len() < LONG_BYTES;
            let windows = bytes.windows(WINDOW_BYTES).enumerate();
            for (at, window) in windows.skip(rarest(bytes)).take(2) {
                let Some(window) = window.first_chunk().copied() else {
                    continue;
                };
                mark(window, WHOLE);
                if is_all {
                    let [one, two, three] = window;
                    for any in 0..=u8::MAX {
                        mark([any, one, two], BEFORE);
                        mark([two, three, any], BEHIND);
                    }
                }
                let window = Window::new(window);
                pieces.push(Piece {
                    window,
                    literal,
                    at,
                    is_all,
                });
            }
        }
        pieces.sort_by_key(|piece: &Piece| piece.window.list());
        let end = |list| pieces.partition_point(|piece| piece.window.list() <= list);
        let longest = literals.iter().map(|literal| literal.len()).max();
        Self {
            numbers,
            ends: (0..LISTS).map(end).collect(),
            pieces,
            longest: longest.unwrap_or(1),
            literals,
        }
    }

    /// Every literal that begins in `from..to` and lies within `bytes`.
    pub(crate) fn scan(
        &self,
        bytes: &[u8],
        from: usize,
        to: usize,
        hit: &mut impl FnMut(usize, usize),
    ) {
        let end = bytes.len().min(to.saturating_add(self.longest));
        let Some(view) = bytes.get(..end).filter(|_| from < end) else {
            return;
        };
        let mut check = |piece: &Piece, place: usize| {
            let Some(begin) = place.checked_sub(piece.at) else {
                return;
            };
            let literal = self.literals.get(piece.literal);
            let here = view.get(begin..).unwrap_or_default();
            if literal.is_some_and(|literal| here.starts_with(literal))
                && (from..to).contains(&begin)
            {
                hit(piece.literal, begin);
            }
        };
        let mut start = from;
        while let Some(rest) = view.get(start..).filter(|rest| !rest.is_empty()) {
            let mut padded = [0; AHEAD_BYTES];
            let block = rest.first_chunk().unwrap_or_else(|| {
                if let Some(space) = padded.get_mut(..rest.len()) {
                    space.copy_from_slice(rest);
                }
                &padded
            });
            let mut marks = self.marks(block, rest.len());
            while marks != 0 {
                let count = usize::try_from(marks.trailing_zeros()).unwrap_or_default();
                marks &= marks.wrapping_sub(1);
                let place = count.saturating_mul(2);
                let here = block.get(place..).and_then(<[u8]>::first_chunk);
                let Some([one, two, three, four]) = here.copied() else {
                    continue;
                };
                let place = start.saturating_add(place);
                for piece in self.pieces(Window::new([one, two, three])) {
                    check(piece, place);
                }
                // The place behind is no even one: of others the second window is seen.
                for piece in self.pieces(Window::new([two, three, four])) {
                    if piece.is_all {
                        check(piece, place.saturating_add(1));
                    }
                }
            }
            start = start.saturating_add(BLOCK_BYTES);
        }
    }

    /// A bit for each second place at which a window may stand that is looked for,
    /// or a short literal begins behind it.
    #[expect(clippy::indexing_slicing, reason = "the mask is that of the table")]
    fn marks(&self, block: &[u8; AHEAD_BYTES], length: usize) -> u64 {
        let mut meanings = [0; BLOCK_WINDOWS];
        let places = meanings.as_chunks_mut::<4>().0.iter_mut();
        let eights = block.as_chunks::<8>().0.windows(2);
        for (meanings, eights) in places.zip(eights).take(length / 8 + 2) {
            let [here, next] = eights else {
                return u64::MAX;
            };
            let (here, next) = (u64::from_le_bytes(*here), u64::from_le_bytes(*next));
            *meanings = [here, here >> 16, here >> 32, here >> 48 | next << 16].map(|bytes| {
                let number = Window::first(bytes).number();
                self.numbers[number & (NUMBERS - 1)]
            });
        }
        let mut marks = 0;
        let eights = meanings.as_chunks::<8>().0.windows(2);
        for (count, eights) in eights.enumerate() {
            let [here, next] = eights else {
                return u64::MAX;
            };
            let (here, next) = (u64::from_le_bytes(*here), u64::from_le_bytes(*next));
            let behind = here >> 8 | next << 56;
            let joint = (here / u64::from(BEFORE)) & (behind / u64::from(BEHIND));
            let few = (here | joint) & 0x0101_0101_0101_0101;
            marks |= gathered(few) << (count * 8);
        }
        marks
    }

    fn pieces(&self, window: Window) -> impl Iterator<Item = &Piece> {
        let list = window.list();
        let end = |list: usize| self.ends.get(list).copied().unwrap_or_default();
        let begin = list.checked_sub(1).map_or(0, end);
        let pieces = self.pieces.get(begin..end(list)).unwrap_or_default();
        pieces.iter().filter(move |piece| piece.window == window)
    }
}

/// Where in a literal two windows begin, one after the other, that are met least
/// often in text.
fn rarest(literal: &[u8]) -> usize {
    let often = |bytes: &[u8]| bytes.iter().map(|byte| frequency(*byte)).sum::<u32>();
    let places = literal.windows(LONG_BYTES).enumerate();
    let rarest = places.min_by_key(|(_, bytes)| often(bytes));
    rarest.map_or(0, |(place, _)| place)
}

/// How often a byte is met in text, as a rank.
fn frequency(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 8,
        b'a'..=b'z' => 6,
        b'\n' | b'.' | b',' | b'"' | b'/' | b'-' | b'_' | b':' | b'=' => 5,
        b'0'..=b'9' | 0 => 4,
        b'A'..=b'Z' => 3,
        _ => 2,
    }
}

/// Bytes at the end of a buffer in which a literal may have begun.
pub(crate) const OVERLAP: usize = limits::LITERAL_BYTES_MAX - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(literals: &[Box<[u8]>], bytes: &[u8], from: usize, to: usize) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        for start in from..to.min(bytes.len()) {
            for (id, literal) in literals.iter().enumerate() {
                if bytes[start..].starts_with(literal) {
                    hits.push((start, id));
                }
            }
        }
        hits
    }

    fn fast(literals: &[Box<[u8]>], bytes: &[u8], from: usize, to: usize) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        let prefilter = Prefilter::new(literals.to_vec());
        prefilter.scan(bytes, from, to, &mut |id, at| hits.push((at, id)));
        hits.sort_unstable();
        hits.dedup();
        hits
    }

    #[test]
    fn a_literal_that_begins_within_another_is_found() {
        let literals: Vec<Box<[u8]>> = ["AKIA", "IAK", "IA-", "a_b", "_b-c", "-us"]
            .map(|literal| literal.as_bytes().into())
            .to_vec();
        for text in ["AKIAKIA", "a_b-c a_b-us", "-us-us", "x-usAKI", "AKIA-us"] {
            let bytes = text.as_bytes();
            assert_eq!(
                fast(&literals, bytes, 0, bytes.len()),
                plain(&literals, bytes, 0, bytes.len()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_plain_one_finds(
            literals in proptest::collection::btree_set("[abAB_.-]{3,6}", 1..120),
            text in "[abAB_.-]{0,300}",
            from in 0_usize..40,
            to in 0_usize..320,
        ) {
            let literals: Vec<Box<[u8]>> =
                literals.iter().map(|literal| literal.as_bytes().into()).collect();
            let from = from.min(text.len());
            let found = fast(&literals, text.as_bytes(), from, to);
            prop_assert_eq!(found, plain(&literals, text.as_bytes(), from, to));
        }
    }
}
