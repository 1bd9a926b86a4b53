//! Where in a buffer the literals of the detectors stand: the one look at
//! every byte. Two searches share the literals: most have a separator, and
//! separators are rare; what has none goes to a vector search that is fast up
//! to a number of patterns and slow beyond. Knows nothing of detectors.

use std::collections::HashMap;

use aho_corasick::packed::{self, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Span};

use crate::limits;

/// The separators that literals are found by.
const SEPARATORS: [u8; 3] = *b"_-.";

/// Patterns a vector search takes before it turns into a table walk.
const PACKED_MAX: usize = 60;

/// Bytes of a literal that a vector search looks at.
const PACKED_BYTES: usize = 4;

/// Vector searches, one after the other, before a table walk is faster.
const GROUPS_MAX: usize = 4;

/// Bytes of the filter of each separator: one bit for two bytes of seven bits.
const FILTER_WORDS: usize = 1 << 8;

/// Finds literals.
pub(crate) struct Prefilter {
    literals: Vec<Box<[u8]>>,
    before: Anchored,
    after: Anchored,
    packed: Vec<Group>,
    rest: Option<AhoCorasick>,
    rest_ids: Vec<usize>,
    longest: usize,
}

/// Literals that one vector search takes.
struct Group {
    searcher: Searcher,
    ids: Vec<usize>,
    /// For each literal, all that may stand at the same place.
    kin: Vec<Vec<usize>>,
}

/// Literals that are found by a separator and the two bytes on one side of it.
#[derive(Default)]
struct Anchored {
    filters: [Vec<u64>; 3],
    /// By the two bytes and the separator: literal and where in it the separator is.
    entries: HashMap<[u8; 3], Vec<(usize, usize)>>,
}

impl Anchored {
    fn insert(&mut self, key: [u8; 3], literal: usize, at: usize) {
        let [first, second, separator] = key;
        let place = SEPARATORS.iter().position(|known| *known == separator);
        if let Some(filter) = place.and_then(|place| self.filters.get_mut(place)) {
            filter.resize(FILTER_WORDS, 0);
            let (word, bit) = slot(first, second);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        self.entries.entry(key).or_default().push((literal, at));
    }

    fn find(&self, key: [u8; 3]) -> &[(usize, usize)] {
        let [first, second, separator] = key;
        let filter = match separator {
            b'_' => self.filters.first(),
            b'-' => self.filters.get(1),
            _ => self.filters.get(2),
        };
        let (word, bit) = slot(first, second);
        let is_set = filter.and_then(|filter| filter.get(word)).unwrap_or(&0) & bit != 0;
        if is_set && let Some(entries) = self.entries.get(&key) {
            return entries;
        }
        &[]
    }
}

/// Word and bit of two bytes in a filter.
fn slot(first: u8, second: u8) -> (usize, u64) {
    let word = (usize::from(first & 0x7f) << 1) | usize::from((second >> 6) & 1);
    (word, 1 << (second & 0x3f))
}

impl Prefilter {
    /// A search for `literals`; they are known by their places in the list.
    pub(crate) fn new(literals: Vec<Box<[u8]>>) -> Self {
        let mut before = Anchored::default();
        let mut after = Anchored::default();
        let mut others = Vec::new();
        for (id, literal) in literals.iter().enumerate() {
            if let Some((at, key)) = key_before(literal) {
                before.insert(key, id, at);
            } else if let Some((at, key)) = key_after(literal) {
                after.insert(key, id, at);
            } else {
                others.push(id);
            }
        }
        // Literals of one length share a search: the shortest sets its speed.
        others.sort_by_key(|id| std::cmp::Reverse(literals.get(*id).map_or(0, |one| one.len())));
        let bytes = |ids: &[usize]| -> Vec<Box<[u8]>> {
            let of = |id: &usize| literals.get(*id).cloned();
            ids.iter().filter_map(of).collect()
        };
        let mut packed = Vec::new();
        let mut rest_ids = Vec::new();
        for ids in groups(&others, &literals) {
            let members = bytes(ids);
            match searcher(&members).filter(|_| packed.len() < GROUPS_MAX) {
                Some(searcher) => packed.push(Group {
                    searcher,
                    ids: ids.to_vec(),
                    kin: kin(&members),
                }),
                None => rest_ids.extend_from_slice(ids),
            }
        }
        let rest = walker(&bytes(&rest_ids));
        let longest = literals.iter().map(|literal| literal.len()).max();
        Self {
            before,
            after,
            packed,
            rest,
            rest_ids,
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
        self.scan_separators(view, from, to, hit);
        self.scan_packed(view, from, to, hit);
        let Some(rest) = &self.rest else {
            return;
        };
        let input = aho_corasick::Input::new(view).span(Span { start: from, end });
        let Ok(found) = rest.try_find_overlapping_iter(input) else {
            return;
        };
        for found in found.filter(|found| found.start() < to) {
            if let Some(id) = self.rest_ids.get(found.pattern().as_usize()) {
                hit(*id, found.start());
            }
        }
    }

    fn scan_separators(
        &self,
        view: &[u8],
        from: usize,
        to: usize,
        hit: &mut impl FnMut(usize, usize),
    ) {
        let Some(region) = view.get(from..) else {
            return;
        };
        let [first, second, third] = SEPARATORS;
        let mut report = |entries: &[(usize, usize)], place: usize| {
            for (id, at) in entries {
                let Some(start) = place
                    .checked_sub(*at)
                    .filter(|start| (from..to).contains(start))
                else {
                    continue;
                };
                let literal = self.literals.get(*id);
                let here = view.get(start..).unwrap_or_default();
                if literal.is_some_and(|literal| here.starts_with(literal)) {
                    hit(*id, start);
                }
            }
        };
        for place in memchr::memchr3_iter(first, second, third, region) {
            let place = place.saturating_add(from);
            if let Some([one, two, separator]) = view.get(place.saturating_sub(2)..=place) {
                report(self.before.find([*one, *two, *separator]), place);
            }
            if let Some([separator, one, two]) = view.get(place..place.saturating_add(3)) {
                report(self.after.find([*one, *two, *separator]), place);
            }
        }
    }

    fn scan_packed(&self, view: &[u8], from: usize, to: usize, hit: &mut impl FnMut(usize, usize)) {
        for group in &self.packed {
            let mut start = from;
            // One step on after each hit, not behind it: literals may overlap.
            while let Some(found) = group.find(view, start).filter(|found| found.start() < to) {
                let here = view.get(found.start()..).unwrap_or_default();
                let kin = group.kin.get(found.pattern().as_usize());
                for other in kin.into_iter().flatten() {
                    let id = group.ids.get(*other).copied().unwrap_or(usize::MAX);
                    let literal = self.literals.get(id);
                    if literal.is_some_and(|literal| here.starts_with(literal)) {
                        hit(id, found.start());
                    }
                }
                start = found.start().saturating_add(1);
            }
        }
    }
}

impl Group {
    fn find(&self, view: &[u8], start: usize) -> Option<aho_corasick::Match> {
        let end = view.len();
        self.searcher.find_in(view, Span { start, end })
    }
}

/// Literals in groups for one search each: apart from the others those that are
/// so short that a search for them stops everywhere.
fn groups<'a>(ids: &'a [usize], literals: &[Box<[u8]>]) -> Vec<&'a [usize]> {
    let is_long = |id: &usize| {
        let literal = literals.get(*id);
        literal.is_some_and(|literal| literal.len() >= PACKED_BYTES)
    };
    let (long, short) = ids.split_at(ids.partition_point(is_long));
    let even = |ids: &'a [usize]| {
        let groups = ids.len().div_ceil(PACKED_MAX).max(1);
        ids.chunks(ids.len().div_ceil(groups).max(1))
    };
    even(long).chain(even(short)).collect()
}

/// The first separator with two bytes before it.
fn key_before(literal: &[u8]) -> Option<(usize, [u8; 3])> {
    literal.windows(3).enumerate().find_map(|(place, window)| {
        let [one, two, separator] = *window else {
            return None;
        };
        let is_key = SEPARATORS.contains(&separator) && !SEPARATORS.contains(&two);
        is_key.then_some((place.saturating_add(2), [one, two, separator]))
    })
}

/// The first separator with two bytes behind it.
fn key_after(literal: &[u8]) -> Option<(usize, [u8; 3])> {
    literal.windows(3).enumerate().find_map(|(place, window)| {
        let [separator, one, two] = *window else {
            return None;
        };
        SEPARATORS
            .contains(&separator)
            .then_some((place, [one, two, separator]))
    })
}

fn searcher(literals: &[Box<[u8]>]) -> Option<Searcher> {
    if literals.is_empty() {
        return None;
    }
    packed::Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .builder()
        .extend(literals)
        .build()
}

fn walker(literals: &[Box<[u8]>]) -> Option<AhoCorasick> {
    if literals.is_empty() {
        return None;
    }
    // Literals are bounded in number and length, so the table is.
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(literals)
        .ok()
}

/// For each literal, all that begin with it or that it begins with.
fn kin(literals: &[Box<[u8]>]) -> Vec<Vec<usize>> {
    let related = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    literals
        .iter()
        .map(|one| {
            let others = literals.iter().enumerate();
            let kin = others.filter(|(_, other)| related(one, other));
            kin.map(|(id, _)| id).collect()
        })
        .collect()
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
        let literals: Vec<Box<[u8]>> = ["AKIA", "IAK", "AK", "a_b", "_b-c", "-us"]
            .map(|literal| literal.as_bytes().into())
            .to_vec();
        for text in ["AKIAKIA", "a_b-c a_b-us", "-us-us", "x-usAKI"] {
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
            literals in proptest::collection::btree_set("[abAB_.-]{2,5}", 1..120),
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
