//! Which classes of bytes stand where in a layer: one look at every byte, which the
//! searches for runs and escapes start from. Knows no detector.

mod block;

use std::ops::Range;
use std::sync::LazyLock;

use outgate_lanes::{BLOCK_BYTES, Marks, STRIDE_BLOCKS, Sets};

use crate::budget::{narrow, wide};
use crate::decode::runs::Alphabet;
use crate::limits;
use crate::span;

use block::{
    ASCII, BlockMarks, ClassBits, ESCAPES, HIGH, SETS, before, begin, begins, behind, flag,
};

/// Sets that are told only where a run of them may stand.
const RARE: usize = 2;

static RARE_SETS: LazyLock<Sets<RARE, 0>> = LazyLock::new(|| {
    let base32: fn(u8) -> bool = |byte| Alphabet::Base32.has(byte);
    Sets::new([base32, |byte| Alphabet::Base32Small.has(byte)], [])
});

/// What stands where in the bytes that a layer holds.
#[derive(Default)]
pub(crate) struct Classes {
    /// The blocks from the first byte on, which is that of a block.
    blocks: ClassBits,
    /// What each of them has.
    flags: Vec<u8>,
    /// For each of them its bytes in rare sets, as far as runs of them may stand.
    rare: Vec<[u64; RARE]>,
    base: u64,
    end: u64,
}

impl Classes {
    /// Looks at what is new in `bytes`, the first of which has the offset of the
    /// first one that was not forgotten.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let end = self.base.saturating_add(wide(bytes.len()));
        if end == self.end {
            return;
        }
        // The last block may not have been whole, and what the one before has was not
        // certain without it.
        let whole = narrow(self.end.saturating_sub(self.base)) / BLOCK_BYTES;
        let certain = whole.saturating_sub(1);
        for row in self.blocks.rows() {
            row.truncate(certain);
        }
        self.flags.truncate(certain);
        self.rare.truncate(certain);
        let fresh = span::from(bytes, certain.saturating_mul(BLOCK_BYTES));
        let (mut marks, mut told) = (Marks::NONE, BlockMarks::NONE);
        // The last block of a stride is told of with the first of the next.
        let mut first = 1;
        let mut rest = fresh;
        while !rest.is_empty() {
            let (stride, later) = rest
                .split_at_checked(STRIDE_BLOCKS * BLOCK_BYTES)
                .unwrap_or((rest, &[]));
            SETS.mark(stride, 1, &mut marks);
            let count = stride.len().div_ceil(BLOCK_BYTES);
            ESCAPES.mark(rest, count, 1, &mut told.escape);
            // Behind the last of all nothing comes.
            let is_last = later.is_empty();
            if is_last {
                marks.clear(count.saturating_add(1));
            }
            told.tell(&marks, count, stride.len());
            let behind = count.saturating_add(usize::from(is_last));
            self.take(&marks, &told, first..behind);
            marks.copy(count, 0);
            told.copy(count, 0);
            first = 0;
            rest = later;
        }
        self.end = end;
        self.read_rare(certain, fresh);
    }

    /// Takes the blocks at some places.
    fn take(&mut self, marks: &Marks<ASCII, HIGH>, told: &BlockMarks, places: Range<usize>) {
        for (row, told) in self.blocks.rows().into_iter().zip(told.rows(marks)) {
            row.extend_from_slice(span::within(told, places.clone()));
        }
        self.flags.extend(told.flags(places));
    }

    /// Looks at the blocks from this one on, of these bytes, in which some of a run may
    /// stand, and says of which blocks one does begin in.
    fn read_rare(&mut self, first: usize, bytes: &[u8]) {
        let mut number = first;
        // A run that began in the block before may go on in the first.
        let before = number.checked_sub(1).and_then(|last| self.flags.get(last));
        if before.is_none_or(|flags| flags & flag::BASE32 == 0) {
            let Some(flagged) = self.flagged(number, flag::BASE32) else {
                return;
            };
            number = flagged;
        }
        self.rare.resize(self.flags.len(), [0; RARE]);
        let mut marks: Marks<RARE, 0> = Marks::NONE;
        while let Some(flags) = self.flags.get(number..).filter(|flags| !flags.is_empty()) {
            let flags = flags.get(..STRIDE_BLOCKS).unwrap_or(flags);
            let count = flags.iter().position(|flags| flags & flag::BASE32 == 0);
            // One more, in which the last of them may go on.
            let stop = number.saturating_add(count.map_or(flags.len(), |count| count + 1));
            let place = |number: usize| number.saturating_sub(first).saturating_mul(BLOCK_BYTES);
            let bytes = span::from(bytes, place(number));
            let here = place(stop).saturating_sub(place(number)).min(bytes.len());
            RARE_SETS.mark(span::upto(bytes, here), 0, &mut marks);
            let [capitals, small] = &marks.ascii;
            debug_assert!(stop <= self.rare.len() && stop <= self.flags.len());
            let rare = self.rare.get_mut(number..stop).unwrap_or_default();
            for ((rare, capitals), small) in rare.iter_mut().zip(capitals).zip(small) {
                *rare = [*capitals, *small];
            }
            // Of the last block nothing is certain without the next.
            let flags = self.flags.get_mut(number..stop).unwrap_or_default();
            for (flags, pair) in flags.iter_mut().zip(rare.windows(2)) {
                let [[capitals, small], [next_capitals, next_small]] = pair else {
                    continue;
                };
                let is_one = begins((*capitals, *next_capitals), limits::DIGITS_MIN)
                    | begins((*small, *next_small), limits::DIGITS_MIN);
                *flags &= !(u8::from(!is_one) * flag::BASE32);
            }
            number = stop;
            if count.is_some() {
                let Some(flagged) = self.flagged(stop, flag::BASE32) else {
                    return;
                };
                number = flagged;
            }
        }
    }

    /// Forgets so many bytes at the beginning, which are whole blocks.
    pub(crate) fn forget(&mut self, bytes: usize) {
        let blocks = bytes / BLOCK_BYTES;
        for row in self.blocks.rows() {
            row.drain(..blocks.min(row.len()));
        }
        self.flags.drain(..blocks.min(self.flags.len()));
        self.rare.drain(..blocks.min(self.rare.len()));
        self.base = self.base.saturating_add(wide(bytes));
    }

    /// Forgets everything but the space it took.
    pub(crate) fn clear(&mut self) {
        for row in self.blocks.rows() {
            row.clear();
        }
        self.flags.clear();
        self.rare.clear();
        self.base = 0;
        self.end = 0;
    }

    fn number(&self, offset: u64) -> usize {
        narrow(offset.saturating_sub(self.base)) / BLOCK_BYTES
    }

    fn offset(&self, number: usize) -> u64 {
        let bytes = wide(number).saturating_mul(wide(BLOCK_BYTES));
        self.base.saturating_add(bytes)
    }

    /// The bytes of an alphabet in a block, of those before `to`.
    fn word(&self, alphabet: Alphabet, number: usize, to: u64) -> u64 {
        let rare = || self.rare.get(number).copied().unwrap_or_default();
        let bits = match alphabet {
            Alphabet::Base64 => at(&self.blocks.base64, number),
            Alphabet::Hex => at(&self.blocks.hex, number),
            Alphabet::Base32 => {
                let [capitals, _] = rare();
                capitals
            }
            Alphabet::Base32Small => {
                let [_, small] = rare();
                small
            }
        };
        bits & before(to.saturating_sub(self.offset(number)))
    }

    /// The first stretch of bytes of an alphabet in `from..to` that is long enough
    /// for a run.
    pub(crate) fn run(&self, alphabet: Alphabet, (from, to): (u64, u64)) -> Option<(u64, u64)> {
        let least = alphabet.symbols_min();
        let flag = match alphabet {
            Alphabet::Base64 => flag::BASE64,
            Alphabet::Hex => flag::HEX,
            Alphabet::Base32 | Alphabet::Base32Small => flag::BASE32,
        };
        let mut number = self.flagged(self.number(from), flag)?;
        while self.offset(number) < to {
            // From the middle of a run on it may be one as well.
            let ahead = behind(from.saturating_sub(self.offset(number)));
            let place = if alphabet == Alphabet::Base64 {
                let starts = at(&self.blocks.starts, number) & ahead;
                (starts != 0).then(|| starts.trailing_zeros())
            } else {
                let here = self.word(alphabet, number, to) & ahead;
                let next = self.word(alphabet, number.saturating_add(1), to);
                begin(here, next, least)
            };
            if let Some(place) = place {
                let start = self.offset(number).saturating_add(u64::from(place));
                let certain = start.saturating_add(wide(least));
                if certain > to {
                    return None;
                }
                return Some((start, self.stop(alphabet, (certain, to))));
            }
            number = self.flagged(number.saturating_add(1), flag)?;
        }
        None
    }

    /// The first block from this one on that has this flag.
    fn flagged(&self, number: usize, flag: u8) -> Option<usize> {
        let all = u64::from_le_bytes([flag; 8]);
        let mut number = number;
        let mut flags = self.flags.get(number..).unwrap_or_default();
        // Mostly none of eight has it.
        while let Some((eight, rest)) = flags.split_first_chunk::<8>() {
            let some = u64::from_le_bytes(*eight) & all;
            if some != 0 {
                let place = some.trailing_zeros() / u8::BITS;
                return Some(number.saturating_add(usize::try_from(place).unwrap_or_default()));
            }
            number = number.saturating_add(8);
            flags = rest;
        }
        let place = flags.iter().position(|flags| flags & flag != 0)?;
        Some(number.saturating_add(place))
    }

    /// Up to where bytes of an alphabet stand from `from` on, `to` at most.
    pub(crate) fn stop(&self, alphabet: Alphabet, (from, to): (u64, u64)) -> u64 {
        let mut number = self.number(from);
        let mut ahead = behind(from.saturating_sub(self.offset(number)));
        while self.offset(number) < to {
            let others = !self.word(alphabet, number, to) & ahead;
            if others != 0 {
                let place = u64::from(others.trailing_zeros());
                return self.offset(number).saturating_add(place).min(to);
            }
            ahead = u64::MAX;
            number = number.saturating_add(1);
        }
        to
    }

    /// Every place in `from..to` at which an escape may begin.
    pub(crate) fn escapes(&self, range: (u64, u64), found: &mut impl FnMut(u64)) {
        self.places(range, flag::ESCAPE, &self.blocks.escape, found);
    }

    /// Every place at which a zero stands between letters, as it does in wide
    /// characters, or a character begins that may fold.
    pub(crate) fn uncommon(&self, range: (u64, u64), found: &mut impl FnMut(u64)) {
        self.places(range, flag::UNCOMMON, &self.blocks.uncommon, found);
    }

    fn places(
        &self,
        (from, to): (u64, u64),
        flag: u8,
        marked: &[u64],
        found: &mut impl FnMut(u64),
    ) {
        let mut number = self.number(from);
        while let Some(flagged) = self.flagged(number, flag) {
            let first = self.offset(flagged);
            if first >= to {
                return;
            }
            let ahead = behind(from.saturating_sub(first));
            let mut marks = at(marked, flagged);
            marks &= ahead & before(to.saturating_sub(first));
            while marks != 0 {
                found(first.saturating_add(u64::from(marks.trailing_zeros())));
                marks &= marks.wrapping_sub(1);
            }
            number = flagged.saturating_add(1);
        }
    }
}

/// What stands where in a block; nothing where there is none.
fn at(row: &[u64], number: usize) -> u64 {
    row.get(number).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::decode::filters::is_lead;

    use super::block::is_text;
    use super::*;

    fn marks(bytes: &[u8], cuts: &[usize]) -> Classes {
        let mut marks = Classes::default();
        for cut in cuts {
            marks.read(&bytes[..(*cut).min(bytes.len()).max(narrow(marks.end))]);
        }
        marks.read(bytes);
        marks
    }

    /// Stretches of so many members, found byte by byte.
    fn runs(bytes: &[u8], is_member: impl Fn(u8) -> bool, least: usize) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        let mut start = 0;
        for place in 0..=bytes.len() {
            if !bytes.get(place).is_some_and(|byte| is_member(*byte)) {
                if place - start >= least {
                    runs.push((wide(start), wide(place)));
                }
                start = place + 1;
            }
        }
        runs
    }

    fn mixed() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            (any::<u8>(), 1_usize..150).prop_map(|(byte, times)| vec![byte; times]),
            "[a-zA-Z0-9]{1,90}".prop_map(String::into_bytes),
            "[a-zA-Z0-9]{1000,2200}".prop_map(String::into_bytes),
            "[A-Z2-7]{20,90}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 1..60),
            Just(vec![0x1f, 0x8b, 0x08]),
            Just(b"g\0h\0p\0_\0".to_vec()),
            Just("\u{430}bc\u{200b}d".as_bytes().to_vec()),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn runs_are_those_that_stand_there(
            bytes in mixed(),
            cuts in proptest::collection::vec(0_usize..600, 0..4),
        ) {
            let marks = marks(&bytes, &cuts);
            for alphabet in Alphabet::ALL {
                let least = alphabet.symbols_min();
                let (mut found, mut from) = (Vec::new(), 0);
                while let Some(run) = marks.run(alphabet, (from, wide(bytes.len()))) {
                    found.push(run);
                    from = run.1;
                }
                prop_assert_eq!(&found, &runs(&bytes, |byte| alphabet.has(byte), least));
            }
        }

        #[test]
        fn what_is_forgotten_changes_nothing_behind_it(
            pieces in proptest::collection::vec((mixed(), 0_usize..20), 1..6),
        ) {
            let (mut classes, mut bytes, mut base) = (Classes::default(), Vec::new(), 0);
            for (piece, blocks) in pieces {
                bytes.extend(piece);
                classes.read(&bytes[base..]);
                let drop = blocks.min((bytes.len() - base) / BLOCK_BYTES) * BLOCK_BYTES;
                classes.forget(drop);
                base += drop;
                let (from, to) = (wide(base), wide(bytes.len()));
                for alphabet in Alphabet::ALL {
                    let is_member = |byte| alphabet.has(byte);
                    let all = runs(&bytes[base..], is_member, alphabet.symbols_min());
                    let first = all.first().map(|(start, stop)| (start + from, stop + from));
                    prop_assert_eq!(classes.run(alphabet, (from, to)), first);
                }
            }
        }

        #[test]
        fn a_part_of_the_bytes_has_the_runs_of_that_part(
            bytes in mixed(),
            range in (0_usize..300, 0_usize..600),
        ) {
            let marks = marks(&bytes, &[]);
            let to = range.1.min(bytes.len());
            let from = range.0.min(to);
            let found = marks.run(Alphabet::Base64, (wide(from), wide(to)));
            let least = Alphabet::Base64.symbols_min();
            let expected = runs(&bytes[from..to], |byte| Alphabet::Base64.has(byte), least);
            let shifted = |(start, stop): &(u64, u64)| (start + wide(from), stop + wide(from));
            prop_assert_eq!(found, expected.first().map(shifted));
        }

        #[test]
        fn what_is_uncommon_is_found_byte_by_byte_as_well(bytes in mixed()) {
            let marks = marks(&bytes, &[]);
            let mut zeros = Vec::new();
            let all = (0, wide(bytes.len()));
            marks.uncommon(all, &mut |place| zeros.push(narrow(place)));
            for place in 0..bytes.len() {
                let here = &bytes[place..];
                let is_wide = matches!(here, [0, one, 0, two, 0, three, ..]
                    if [one, two, three].iter().all(|byte| is_text(**byte)))
                    || matches!(here, [0, 0, 0, one, 0, ..] if is_text(*one));
                let is_character =
                    matches!(here, [lead, next, ..] if is_lead(*lead) && next & 0xc0 == 0x80);
                let near = std::str::from_utf8(here.get(..8).unwrap_or(here));
                let is_text = near.is_ok_and(|_| true)
                    || near.is_err_and(|error| error.error_len().is_none());
                let is_found = zeros.contains(&place);
                prop_assert!(is_found || !is_wide, "{}", place);
                prop_assert!(is_found || !(is_character && is_text), "{}", place);
                prop_assert!(!is_found || is_wide || is_character, "{}", place);
            }
        }
    }
}
