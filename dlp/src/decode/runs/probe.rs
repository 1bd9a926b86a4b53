//! Where in the symbols of base64 something begins that the scan of what they
//! stand for would look at: a literal, compressed data, an escape, a run of an
//! alphabet. Decodes all four phases, one behind the other with a border between
//! them, and asks the searches that need no more than a look, so that only what
//! surrounds such places goes through a layer. May say too much, never too little.

use std::ops::Range;

use outgate_lanes::{GROUP_BYTES, STRIDE_SYMBOLS, pack};

use crate::decode::classes::Classes;
use crate::decode::containers::{is_unmarked, is_zlib};
use crate::decode::filters::{self, Seeker};
use crate::escapes::EscapeKind;
use crate::limits;
use crate::prefilter::Prefilter;
use crate::span::{self, Misplaced};

use super::alphabet::{Alphabet, Starts};
use super::radix::Phase;
use super::{BORDER, narrow, wide};

/// Symbols of a group, and phases.
const GROUP: usize = 4;

/// Symbols decoded before those that are looked at: what an escape may stand in.
const BEFORE_SYMBOLS: usize = 16;

/// Symbols at the end that cannot be said anything of until more come: those of the
/// longest literal, and of the group it begins in.
pub(super) const MARGIN_SYMBOLS: usize = limits::LITERAL_BYTES_MAX / 3 * GROUP + 2 * GROUP;

// What a run of an alphabet begins with is seen as well.
const _: () = assert!(limits::DIGITS_MIN <= limits::LITERAL_BYTES_MAX);

/// Up to where each phase goes through a layer whatever else begins in it: so far it is
/// not looked at.
pub(super) struct Cover {
    pub(super) until: [u64; GROUP],
    /// How far a layer goes on behind something that begins.
    pub(super) after: u64,
    /// How far before the end it must begin so that the end does not cut it.
    pub(super) within: u64,
    /// What was taken: numbers of the first symbols of groups.
    pub(super) spots: Vec<u64>,
}

impl Cover {
    /// Takes a group, and the one before if that is another, unless it goes through a
    /// layer in any case.
    fn take(&mut self, before: u64, group: u64) {
        let phase = usize::try_from(group & 3).unwrap_or_default();
        let first = self.first(phase);
        if let Some(until) = self.until.get_mut(phase)
            && group >= first
        {
            *until = group.saturating_add(self.after);
            self.spots.push(if before < first { group } else { before });
        }
    }

    /// The first number of a phase at which something may begin that does not go through
    /// a layer in any case.
    fn first(&self, phase: usize) -> u64 {
        let until = self.until.get(phase).copied().unwrap_or_default();
        until.saturating_add(1).saturating_sub(self.within)
    }
}

/// A look at symbols, and the space it takes.
#[derive(Default)]
pub(super) struct Probe {
    /// What the phases stand for, with a border behind each.
    made: Vec<u8>,
    parts: Vec<RunPhase>,
    classes: Classes,
    /// Where in it something begins.
    places: Vec<usize>,
}

/// One phase of a run.
pub(super) struct RunPhase {
    /// For [`Probe::find`] the number of its first symbol, for [`Probe::take`] where in
    /// the outermost stream its run stands.
    start: u64,
    /// Where in what was made it begins.
    begin: usize,
    /// What begins here and later is looked for,
    from: usize,
    /// up to here.
    to: usize,
    /// Where it ends.
    end: usize,
    /// Which phase it is, and where in its run something may begin.
    starts: (usize, Starts),
}

/// How certain it is that something begins in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseBegin {
    /// A literal, an escape, a run or something with a mark, which may go on behind it.
    Surely,
    /// Only what may be compressed, and ends with it: if nothing is told of it, it held
    /// nothing.
    Perhaps,
}

impl RunPhase {
    /// Where in what it stands for something may begin.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> + use<> {
        let (phase, starts) = self.starts;
        starts.offsets(phase, Alphabet::Base64)
    }

    /// Where in the outermost stream its run stands, if it came by [`Probe::take`].
    pub(super) fn outer(&self) -> u64 {
        self.start
    }
}

impl Probe {
    /// Finds where something may begin in `symbols`, the first of which is number
    /// `base` of the run: `cover` takes the numbers of the first symbols of the groups
    /// in which it does, in order for each phase. Looks at groups that begin in
    /// `from..to`.
    pub(super) fn find(
        &mut self,
        prefilter: &Prefilter,
        (symbols, base): (&[u8], u64),
        Range {
            start: from,
            end: to,
        }: Range<usize>,
        cover: &mut Cover,
    ) -> Result<(), Misplaced> {
        let mut start = from;
        while start < to {
            let stop = start.saturating_add(limits::LOOK_SYMBOLS).min(to);
            self.clear();
            self.decode((symbols, base), (start, stop), cover)?;
            self.look(prefilter);
            for place in &self.places {
                let Some(part) = part_of(&self.parts, *place) else {
                    continue;
                };
                if (part.from..part.to).contains(place) {
                    let group = |place: usize| {
                        let groups = place.saturating_sub(part.begin) / 3;
                        part.start
                            .saturating_add(wide(groups.saturating_mul(GROUP)))
                    };
                    // It may have begun with the byte before.
                    let (before, here) = (group(place.saturating_sub(1)), group(*place));
                    cover.take(before, here);
                }
            }
            start = stop;
        }
        Ok(())
    }

    /// Decodes the phases in which something may begin that does not go through a layer in
    /// any case.
    fn decode(
        &mut self,
        (symbols, base): (&[u8], u64),
        range: (usize, usize),
        cover: &Cover,
    ) -> Result<(), Misplaced> {
        let (start, stop) = range;
        let end = stop.saturating_add(MARGIN_SYMBOLS).min(symbols.len());
        for phase in 0..GROUP {
            let first = narrow(cover.first(phase).saturating_sub(base)).max(start);
            let number = base.saturating_add(wide(first));
            let ahead = wide(phase).wrapping_sub(number) & 3;
            let first = first.saturating_add(narrow(ahead));
            if first >= stop {
                continue;
            }
            let before = first.min(BEFORE_SYMBOLS) / GROUP;
            let begin = first.saturating_sub(before.saturating_mul(GROUP));
            let groups = stop.saturating_sub(first).div_ceil(GROUP);
            let number = base.saturating_add(wide(begin));
            let symbols = symbols.get(begin..end).ok_or(Misplaced)?;
            let looked = (before.saturating_mul(3), groups.saturating_mul(3));
            self.push(symbols, number, looked);
        }
        Ok(())
    }

    /// Forgets what was made.
    pub(super) fn clear(&mut self) {
        self.made.clear();
        self.parts.clear();
    }

    /// Takes all phases of a whole run that stands there in the outermost stream. Leaves
    /// zeros behind `symbols`.
    pub(super) fn take(&mut self, symbols: &mut Vec<u8>, (outer, starts): (u64, Starts)) {
        // Whole registers: what the zeros stand for is cut off again.
        let count = symbols.len();
        symbols.resize(count.saturating_add(STRIDE_SYMBOLS), 0);
        for phase in 0..GROUP {
            let there = count.saturating_sub(phase);
            let groups = there
                .div_ceil(STRIDE_SYMBOLS)
                .saturating_mul(STRIDE_SYMBOLS / GROUP);
            let begin = self.made.len();
            let padded = begin.saturating_add(groups.saturating_mul(GROUP_BYTES));
            self.made.resize(padded, 0);
            let space = self.made.get_mut(begin..).unwrap_or_default();
            let symbols = span::from(symbols, phase);
            pack(symbols.as_chunks().0, space.as_chunks_mut().0);
            let end = begin.saturating_add(there.saturating_mul(GROUP_BYTES) / GROUP);
            self.made.truncate(end);
            self.parts.push(RunPhase {
                start: outer,
                begin,
                from: begin,
                to: end,
                end,
                starts: (phase, starts),
            });
            self.made.extend_from_slice(&BORDER);
        }
    }

    /// Decodes one phase, of whose bytes so many behind the first few are looked at.
    fn push(&mut self, symbols: &[u8], start: u64, (skip, count): (usize, usize)) {
        let begin = self.made.len();
        Phase::new(Alphabet::Base64.bits()).push(symbols, &mut self.made);
        let end = self.made.len();
        let from = begin.saturating_add(skip);
        self.parts.push(RunPhase {
            start,
            begin,
            from,
            to: from.saturating_add(count).min(end),
            end,
            starts: (0, Starts::default()),
        });
        self.made.extend_from_slice(&BORDER);
    }

    /// How many bytes the phases that were taken stand for.
    pub(super) fn len(&self) -> usize {
        self.made.len()
    }

    /// All that was made, and where in the outermost stream a place of it comes from.
    pub(super) fn made(&self) -> (&[u8], impl Fn(usize) -> u64) {
        let origin = |place| part_of(&self.parts, place).map_or(0, RunPhase::outer);
        (&self.made, origin)
    }

    /// Looks at what was taken, and gives those phases in which something begins.
    pub(super) fn found(
        &mut self,
        prefilter: &Prefilter,
    ) -> impl Iterator<Item = (&RunPhase, &[u8], PhaseBegin)> {
        self.look(prefilter);
        let mut places = self.places.iter().peekable();
        let made = &self.made;
        self.parts.iter().filter_map(move |part| {
            let here = span::within(made, part.begin..part.end);
            let mut starts = part.starts();
            let is_unmarked = |start| {
                let here = span::from(here, start);
                is_zlib(here) || is_unmarked(here)
            };
            let is_guess = is_zlib(here) || starts.any(is_unmarked);
            let mut begins = is_guess.then_some(PhaseBegin::Perhaps);
            while places.next_if(|place| **place < part.end).is_some() {
                begins = Some(PhaseBegin::Surely);
            }
            Some((part, here, begins?))
        })
    }

    /// Finds where something begins in what was made.
    fn look(&mut self, prefilter: &Prefilter) {
        let (made, places) = (self.made.as_slice(), &mut self.places);
        places.clear();
        self.classes.clear();
        self.classes.read(made);
        prefilter.scan_all(made, &mut |_, place| places.push(place));
        let range = (0, wide(made.len()));
        let mut escapes = Escapes {
            places,
            is_lost: false,
        };
        filters::find(made, &self.classes, 0, range, &mut escapes);
        // Where that cannot be told, something may begin in each.
        if escapes.is_lost {
            places.extend(self.parts.iter().map(|part| part.begin));
        }
        for alphabet in [Alphabet::Base64, Alphabet::Hex] {
            // The others have no byte that these have not.
            let mut from = 0;
            while let Some((at, stop)) = self.classes.run(alphabet, (from, range.1)) {
                // One that began before goes on.
                let at = narrow(at);
                places.push(part_of(&self.parts, at).map_or(at, |part| part.from.max(at)));
                from = stop;
            }
        }
        places.sort_unstable();
    }
}

/// Takes down where escapes stand.
struct Escapes<'a> {
    places: &'a mut Vec<usize>,
    is_lost: bool,
}

impl Seeker for Escapes<'_> {
    fn wants(&mut self, _: EscapeKind, _: u64) -> bool {
        true
    }

    fn found(&mut self, kind: EscapeKind, at: u64) {
        // The zero of a wide letter: the letter may stand before all that was made.
        let skip = u64::from(kind == EscapeKind::Wide);
        self.places.push(narrow(at.saturating_add(skip)));
    }

    fn lose(&mut self) {
        debug_assert!(false, "the scan lost its place");
        self.is_lost = true;
    }
}

/// The part that a place belongs to, or the border behind it.
fn part_of(parts: &[RunPhase], place: usize) -> Option<&RunPhase> {
    let behind = parts.partition_point(|part| part.begin <= place);
    parts.get(behind.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Symbols of the phase, with these bytes from its group of that number on.
    fn with(mut symbols: Vec<u8>, phase: usize, group: usize, bytes: &[u8]) -> Vec<u8> {
        let mut put = Vec::new();
        for bit in 0..bytes.len() * 8 / 6 {
            let at = bit * 6;
            let two = [bytes[at / 8], *bytes.get(at / 8 + 1).unwrap_or(&0)];
            let shifted = u16::from_be_bytes(two) << (at % 8);
            put.push(u8::try_from(shifted >> 10).expect("six bits"));
        }
        let first = phase + group * GROUP;
        symbols.resize(symbols.len().max(first + put.len()), 0);
        symbols[first..first + put.len()].copy_from_slice(&put);
        symbols
    }

    proptest! {
        #[test]
        fn what_begins_is_found_in_its_phase(
            symbols in proptest::collection::vec(0_u8..64, 40..3000),
            // In the first look, in the second, and behind it.
            (phase, group) in (0_usize..4, 0_usize..2 * limits::LOOK_SYMBOLS / GROUP + 100),
            skip in 0_usize..3,
            what in prop_oneof![
                Just(b"prefix-of-one.......".to_vec()),
                Just(vec![0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3]),
                Just(b"ghtext %41%42 text...".to_vec()),
                Just(b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=".to_vec()),
                Just(b"30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e".to_vec()),
                Just("tok\u{435}n-of-text-that-goes-on".as_bytes().to_vec()),
                Just(b"\0t\0o\0k\0e\0n\0s\0".to_vec()),
            ],
            (base, cut) in (0_u64..9, 0_usize..2 * limits::LOOK_SYMBOLS + 600),
        ) {
            let literals: Vec<Box<[u8]>> = [&b"prefix-of-one"[..], &[0x1f, 0x8b, 0x08]]
                .map(Into::into)
                .to_vec();
            let prefilter = Prefilter::new(literals);
            let bytes = [&b"xyz"[..skip], &what].concat();
            let symbols = with(symbols, phase, group, &bytes);
            let mut probe = Probe::default();
            let mut cover = Cover { until: [0; 4], after: 256, within: 184, spots: Vec::new() };
            let cut = cut.min(symbols.len());
            for range in [0..cut, cut..symbols.len()] {
                // The second look has all that the first had.
                let there = if range.end == cut {
                    cut.saturating_add(MARGIN_SYMBOLS).min(symbols.len())
                } else {
                    symbols.len()
                };
                let text = (&symbols[..there], base);
                probe.find(&prefilter, text, range, &mut cover).unwrap();
            }
            let first = base + wide(phase + group * GROUP);
            let found = cover.spots.iter().any(|spot| {
                spot & 3 == first & 3 && *spot <= first + 16 && spot + 184 >= first
            });
            prop_assert!(found, "{:?} {first}", cover.spots);
        }

        #[test]
        fn short_runs_side_by_side_are_told_apart(
            noise in proptest::collection::vec(
                proptest::collection::vec(0_u8..64, 20..90), 1..12),
            (which, phase) in (0_usize..12, 0_usize..4),
        ) {
            let prefilter = Prefilter::new(vec![b"prefix-of-one".as_slice().into()]);
            let which = which % noise.len();
            let mut probe = Probe::default();
            for (number, symbols) in noise.into_iter().enumerate() {
                let mut symbols = if number == which {
                    with(symbols, phase, 1, b"prefix-of-one!")
                } else {
                    symbols
                };
                let before = symbols.clone();
                probe.take(&mut symbols, (wide(number), Starts::default()));
                prop_assert_eq!(&symbols[..before.len()], &before[..]);
            }
            let found: Vec<(u64, Vec<u8>)> = probe
                .found(&prefilter)
                .map(|(part, made, _)| (part.outer(), made.to_vec()))
                .collect();
            let has = |made: &[u8]| made.windows(13).any(|window| window == b"prefix-of-one");
            prop_assert!(found.iter().any(|(outer, made)| *outer == wide(which) && has(made)));
        }
    }
}
