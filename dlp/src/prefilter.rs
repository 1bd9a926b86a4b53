//! Where in a buffer the literals of the detectors stand. Of each literal, three
//! bytes are looked for that are met seldom in text; what the look finds is
//! compared. Knows nothing of detectors.

use std::ops::Range;

use outgate_lanes::LiteralWindows;

use crate::groups::{GROUPS, Groups, Placed, WINDOW_BYTES};
use crate::limits;
use crate::span::{self, Misplaced};

const _: () = assert!(limits::LITERAL_BYTES_MIN >= WINDOW_BYTES);
const _: () = assert!(GROUPS == outgate_lanes::GROUPS);
const _: () = assert!(WINDOW_BYTES == outgate_lanes::WINDOW_BYTES);

/// Lists of windows: each of those of one number.
const LISTS_LOG: u32 = 12;

/// Finds literals.
pub(crate) struct Prefilter {
    literals: Vec<Box<[u8]>>,
    windows: LiteralWindows,
    /// List by list.
    pieces: Vec<LiteralWindow>,
    /// Where among the pieces each list begins, and the last one ends.
    begins: Vec<u32>,
    longest: usize,
}

/// The window of a literal.
#[derive(Clone, Copy)]
struct LiteralWindow {
    window: [u8; WINDOW_BYTES],
    literal: usize,
    /// Where in the literal it begins.
    at: usize,
}

impl Prefilter {
    /// A search for `literals`; they are known by their places in the list.
    pub(crate) fn new(literals: Vec<Box<[u8]>>) -> Self {
        let places: Vec<Option<Placed>> = literals.iter().map(|bytes| shipped(bytes)).collect();
        // Looked at where a literal is not among the shipped ones.
        let mut groups = None;
        let beside_the_known = || {
            let known = literals.iter().zip(&places);
            let known = known.filter_map(|(bytes, place)| Some((bytes.as_ref(), (*place)?)));
            let mut groups = Groups::default();
            groups.add(known);
            groups
        };
        let mut pieces = Vec::new();
        let mut windows = Vec::new();
        let mut own = 0_usize;
        for (literal, (bytes, place)) in literals.iter().zip(&places).enumerate() {
            let placed = place.or_else(|| {
                own = own.saturating_add(1);
                // Where there are very many no place is a good one.
                if own <= limits::PLACED_MAX {
                    groups.get_or_insert_with(beside_the_known).place(bytes)
                } else {
                    anywhere(bytes, own)
                }
            });
            let Some(Placed { at, group }) = placed else {
                continue;
            };
            let window = bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
            windows.extend(window.map(|window| (group, window)));
            pieces.extend(window.map(|window| LiteralWindow {
                window,
                literal,
                at,
            }));
        }
        let windows = LiteralWindows::new(windows.iter().map(|(group, window)| (*group, window)));
        pieces.sort_by_key(|piece: &LiteralWindow| list(piece.window));
        let longest = literals.iter().map(|literal| literal.len()).max();
        Self {
            windows,
            begins: begins(&pieces),
            pieces,
            longest: longest.unwrap_or(1),
            literals,
        }
    }

    /// Every literal that begins in `from..to` and lies within `bytes`.
    ///
    /// # Errors
    /// `from` lies behind `bytes`: nothing was looked at.
    pub(crate) fn scan(
        &self,
        bytes: &[u8],
        Range {
            start: from,
            end: to,
        }: Range<usize>,
        hit: &mut impl FnMut(usize, usize),
    ) -> Result<(), Misplaced> {
        let end = bytes.len().min(to.saturating_add(self.longest));
        let region = bytes.get(from..end).ok_or(Misplaced)?;
        self.look(region, (from, to), hit);
        Ok(())
    }

    /// Every literal in `bytes`.
    pub(crate) fn scan_all(&self, bytes: &[u8], hit: &mut impl FnMut(usize, usize)) {
        self.look(bytes, (0, bytes.len()), hit);
    }

    /// Every literal in the bytes from `from` on that begins before `to`.
    fn look(&self, region: &[u8], (from, to): (usize, usize), hit: &mut impl FnMut(usize, usize)) {
        self.windows.find(region, &mut |place| {
            let here = region.get(place..).and_then(<[u8]>::first_chunk).copied();
            for piece in here.into_iter().flat_map(|here| self.pieces(here)) {
                let Some(begin) = place.checked_sub(piece.at) else {
                    continue;
                };
                let literal = self.literals.get(piece.literal);
                let here = span::from(region, begin);
                let begin = begin.saturating_add(from);
                if begin < to && literal.is_some_and(|literal| here.starts_with(literal)) {
                    hit(piece.literal, begin);
                }
            }
        });
    }

    /// The pieces that have this window.
    fn pieces(&self, window: [u8; WINDOW_BYTES]) -> impl Iterator<Item = &LiteralWindow> {
        let list = list(window);
        let begin =
            |list: usize| usize::try_from(span::entry(&self.begins, list)).unwrap_or(usize::MAX);
        let pieces = span::within(&self.pieces, begin(list)..begin(list.saturating_add(1)));
        pieces.iter().filter(move |piece| piece.window == window)
    }
}

/// Where each list begins among pieces that are in their order, and the last one ends.
fn begins(pieces: &[LiteralWindow]) -> Vec<u32> {
    let mut begins = vec![0_u32; (1 << LISTS_LOG) + 1];
    for piece in pieces {
        if let Some(after) = begins.get_mut(list(piece.window).saturating_add(1)) {
            *after = after.saturating_add(1);
        }
    }
    let mut count = 0_u32;
    for begin in &mut begins {
        count = count.saturating_add(*begin);
        *begin = count;
    }
    begins
}

/// The list of a window, of those that are spread evenly.
fn list([one, two, three]: [u8; WINDOW_BYTES]) -> usize {
    let mixed = u32::from_le_bytes([0, one, two, three]).wrapping_mul(0x27d4_eb2f);
    usize::try_from(mixed >> (u32::BITS - LISTS_LOG)).unwrap_or_default()
}

include!(concat!(env!("OUT_DIR"), "/placed.rs"));

/// A place for a literal in one group after the other.
fn anywhere(literal: &[u8], number: usize) -> Option<Placed> {
    let group = number % GROUPS;
    (literal.len() >= WINDOW_BYTES).then_some(Placed { at: 0, group })
}

/// Where a literal is placed that was there when the crate was built.
fn shipped(literal: &[u8]) -> Option<Placed> {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let bytes = |(at, end): (u32, u32)| span::within(&PLACED_TEXT, number(at)..number(end));
    let place = PLACED.binary_search_by_key(&literal, |(place, _)| bytes(*place));
    let (_, placed) = PLACED.get(place.ok()?)?;
    Some(*placed)
}

/// Bytes at the end of a buffer in which a literal may have begun.
pub(crate) const OVERLAP: usize = limits::LITERAL_BYTES_MAX - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::detector_set::Detectors;
    use crate::magic::{MAGICS, sealed};
    use crate::transforms::forms;

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
        let looked = prefilter.scan(bytes, from..to, &mut |id, at| hits.push((at, id)));
        looked.unwrap();
        hits.sort_unstable();
        hits.dedup();
        hits
    }

    #[test]
    fn every_shipped_literal_was_placed() {
        for detector in Detectors::shipped().iter() {
            for literal in detector.literals.iter() {
                for (form, _) in forms(detector, literal.as_bytes()) {
                    let placed = shipped(&form).expect("placed by the build script");
                    assert!(placed.at + WINDOW_BYTES <= form.len(), "{literal}");
                    assert!(placed.group < GROUPS, "{literal}");
                }
            }
        }
        for (mark, _) in MAGICS.into_iter().chain(sealed()) {
            assert!(shipped(mark).is_some(), "{}", mark.escape_ascii());
        }
    }

    #[test]
    fn the_file_of_places_has_the_shipped_literals() {
        let mut forms_of = std::collections::BTreeSet::new();
        for detector in Detectors::shipped().iter() {
            for literal in detector.literals.iter() {
                for (form, _) in forms(detector, literal.as_bytes()) {
                    forms_of.insert(format!("'{}'", form.escape_ascii()));
                }
            }
        }
        let lines = include_str!("../places.txt").lines();
        let named = lines.filter_map(|line| line.splitn(3, ' ').nth(2));
        let named: std::collections::BTreeSet<String> = named.map(str::to_owned).collect();
        let missing = forms_of.difference(&named).count();
        let left = named.difference(&forms_of).count();
        // Some new ones may be placed beside; many cost speed: see `examples/place.rs`.
        assert!(
            missing <= 60 && left <= 60,
            "{missing} are missing, {left} left over"
        );
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
            let to = to.max(from);
            let found = fast(&literals, text.as_bytes(), from, to);
            prop_assert_eq!(found, plain(&literals, text.as_bytes(), from, to));
        }
    }
}
