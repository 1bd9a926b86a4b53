//! Which classes of bytes stand where in a layer: one look at every byte, which the
//! searches for runs and escapes start from. Knows no detector.

use std::sync::LazyLock;

use outgate_lanes::{BLOCK_BYTES, Marks, Sets};

use crate::budget::{narrow, wide};
use crate::filters::is_lead;
use crate::limits;
use crate::runs::Alphabet;

/// Sets of bytes below 128 that are told of every block.
const ASCII: usize = 5;

/// Sets of bytes above.
const HIGH: usize = 2;

/// Sets that are told only where a run of them may stand.
const RARE: usize = 2;

/// Whether a byte is one of text.
fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

static SETS: LazyLock<Sets<ASCII, HIGH>> = LazyLock::new(|| {
    Sets::new(
        [
            |byte| Alphabet::Base64.has(byte),
            |byte| Alphabet::Hex.has(byte),
            is_text,
            |byte| matches!(byte, b'%' | b'\\' | b'&' | b'='),
            |byte| byte == 0,
        ],
        [is_lead, |byte| byte & 0xc0 == 0x80],
    )
});

static RARE_SETS: LazyLock<Sets<RARE, 0>> = LazyLock::new(|| {
    let base32: fn(u8) -> bool = |byte| Alphabet::Base32.has(byte);
    Sets::new([base32, |byte| Alphabet::Base32Small.has(byte)], [])
});

/// What a search can skip a block for: a bit for what it has.
mod flag {
    /// A run of base64 begins here.
    pub(super) const BASE64: u8 = 1;
    /// One that is long enough for base32, whose bytes are all bytes of base64.
    pub(super) const BASE32: u8 = 2;
    /// A run of hexadecimal digits begins here.
    pub(super) const HEX: u8 = 4;
    /// An escape may begin here.
    pub(super) const ESCAPE: u8 = 8;
    /// A wide character, or one of several bytes, may begin here.
    pub(super) const UNCOMMON: u8 = 16;
}

/// Blocks marked in one go: so few that their marks stay near.
const STRIDE_BLOCKS: usize = 32;

// What a block has is certain once the next one is whole.
const _: () = assert!(limits::DIGITS_MIN <= BLOCK_BYTES);
const _: () = assert!(limits::BASE64_SYMBOLS_MIN <= limits::DIGITS_MIN);

/// What stands where in 64 bytes: a bit for each of them, the first one's lowest.
#[derive(Clone, Copy)]
struct Block {
    base64: u64,
    hex: u64,
    /// Bytes that begin an escape, before one of text.
    escape: u64,
    /// Zeros between letters, and bytes that begin a character that may fold.
    uncommon: u64,
}

impl Block {
    const NONE: Self = Self {
        base64: 0,
        hex: 0,
        escape: 0,
        uncommon: 0,
    };

    /// What stands in a block, before the next; of both together so many bytes are
    /// there.
    fn new(here: &Marks<ASCII, HIGH>, next: &Marks<ASCII, HIGH>, there: usize) -> Self {
        let [base64, hex, text, escape, zero] = here.ascii;
        let [_, _, next_text, _, next_zero] = next.ascii;
        let [text_1, text_3] = [1, 3].map(|by| after(text, next_text, by));
        let wide = if zero == 0 {
            0
        } else {
            let [zero_1, zero_2, zero_4] = [1, 2, 4].map(|by| after(zero, next_zero, by));
            let two = zero & text_1 & zero_2 & text_3;
            let four = zero & zero_1 & zero_2 & text_3 & zero_4;
            two | four
        };
        let [lead, goes_on] = here.others;
        let [_, next_goes_on] = next.others;
        let lead = lead & after(goes_on, next_goes_on, 1);
        let near = if lead == 0 {
            0
        } else {
            broken(here, next, there)
        };
        Self {
            base64,
            hex,
            escape: escape & text_1,
            uncommon: wide | (lead & !near),
        }
    }

    /// What a search need not skip the block for.
    fn flags(&self, next: &Marks<ASCII, HIGH>) -> u8 {
        let [next_base64, next_hex, ..] = next.ascii;
        let mut flags = 0;
        if may_begin(self.base64) {
            let begins = |alphabet: Alphabet| {
                begin(self.base64, next_base64, alphabet.symbols_min()).is_some()
            };
            if begins(Alphabet::Base64) {
                flags |= flag::BASE64;
                if begins(Alphabet::Base32) {
                    flags |= flag::BASE32;
                }
            }
        }
        let least = Alphabet::Hex.symbols_min();
        if may_begin(self.hex) && begin(self.hex, next_hex, least).is_some() {
            flags |= flag::HEX;
        }
        if self.escape != 0 {
            flags |= flag::ESCAPE;
        }
        if self.uncommon != 0 {
            flags |= flag::UNCOMMON;
        }
        flags
    }
}

/// Places of a block behind which something is no UTF-8, as far as that shows in
/// what is there of the next bytes.
fn broken(here: &Marks<ASCII, HIGH>, next: &Marks<ASCII, HIGH>, there: usize) -> u64 {
    let [[_, goes_on], [_, next_goes_on]] = [here.others, next.others];
    // Behind the end anything may come.
    let missing = goes_on | behind(wide(there));
    let next_missing = next_goes_on | behind(wide(there.saturating_sub(BLOCK_BYTES)));
    let alone = goes_on & !(here.high << 1 | 1);
    let cut = here.high & !goes_on & !after(missing, next_missing, 1);
    let next_alone = next_goes_on & !after(here.high, next.high, 63);
    let next_cut = next.high & !next_goes_on & !after(next_missing, u64::MAX, 1);
    let (mut near, mut next_near) = (alone | cut, next_alone | next_cut);
    for by in [1, 2, 3] {
        near |= after(near, next_near, by);
        next_near |= next_near >> by;
    }
    near
}

/// The bits of a block and the next that stand so many places on.
fn after(here: u64, next: u64, by: u32) -> u64 {
    here >> by | next << (u64::BITS - by)
}

/// What stands where in the bytes that a layer holds.
#[derive(Default)]
pub(crate) struct Classes {
    /// The blocks from the first byte on, which is that of a block.
    blocks: Vec<Block>,
    /// What each of them has.
    flags: Vec<u8>,
    /// For each of them its bytes in rare sets, where runs of them may stand.
    rare: Vec<Marks<RARE, 0>>,
    /// Space for the marks of a stride, and of the block before.
    marks: Vec<Marks<ASCII, HIGH>>,
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
        self.blocks.truncate(certain);
        self.flags.truncate(certain);
        self.rare.truncate(certain);
        let fresh = bytes.get(certain.saturating_mul(BLOCK_BYTES)..);
        let fresh = fresh.unwrap_or_default();
        let mut marks = std::mem::take(&mut self.marks);
        marks.resize(STRIDE_BLOCKS.saturating_add(1), Marks::NONE);
        let mut there = fresh.len();
        let (blocks, all_flags) = (&mut self.blocks, &mut self.flags);
        let mut take = |here: &_, next: &_| {
            let block = Block::new(here, next, there);
            all_flags.push(block.flags(next));
            blocks.push(block);
            there = there.saturating_sub(BLOCK_BYTES);
        };
        for (number, stride) in fresh.chunks(STRIDE_BLOCKS * BLOCK_BYTES).enumerate() {
            // The last of a stride is taken with the first of the next.
            let count = stride.len().div_ceil(BLOCK_BYTES);
            SETS.mark(stride, marks.get_mut(1..).unwrap_or_default());
            let first = usize::from(number == 0);
            let marks = marks.get_mut(..=count).unwrap_or_default();
            for pair in marks.get(first..).unwrap_or_default().windows(2) {
                if let [here, next] = pair {
                    take(here, next);
                }
            }
            if let [first, .., last] = marks {
                *first = *last;
            }
        }
        if let Some(last) = marks.first() {
            take(last, &Marks::NONE);
        }
        self.marks = marks;
        self.end = end;
        self.read_rare(certain, fresh);
    }

    /// Looks at the blocks from this one on, of these bytes, in which some of a run may
    /// stand.
    fn read_rare(&mut self, first: usize, bytes: &[u8]) {
        self.rare.resize(self.blocks.len(), Marks::NONE);
        let mut number = first;
        // A run that began in the block before may go on in the first.
        let before = number
            .checked_sub(1)
            .and_then(|number| self.flags.get(number));
        if before.is_none_or(|flags| flags & flag::BASE32 == 0) {
            let Some(flagged) = self.flagged(number, flag::BASE32) else {
                return;
            };
            number = flagged;
        }
        loop {
            let flags = self.flags.get(number..).unwrap_or_default();
            let count = flags.iter().position(|flags| flags & flag::BASE32 == 0);
            // One more, in which the last of them may go on.
            let stop = count.map_or(self.flags.len(), |count| {
                number.saturating_add(count).saturating_add(1)
            });
            let from = number.saturating_sub(first).saturating_mul(BLOCK_BYTES);
            let rare = self.rare.get_mut(number..stop).unwrap_or_default();
            RARE_SETS.mark(bytes.get(from..).unwrap_or_default(), rare);
            let Some(flagged) = self.flagged(stop, flag::BASE32) else {
                return;
            };
            number = flagged;
        }
    }

    /// Forgets so many bytes at the beginning, which are whole blocks.
    pub(crate) fn forget(&mut self, bytes: usize) {
        let blocks = (bytes / BLOCK_BYTES).min(self.blocks.len());
        self.blocks.drain(..blocks);
        self.flags.drain(..blocks.min(self.flags.len()));
        self.rare.drain(..blocks.min(self.rare.len()));
        self.base = self.base.saturating_add(wide(bytes));
    }

    /// Forgets everything but the space it took.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
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

    fn block(&self, number: usize) -> &Block {
        self.blocks.get(number).unwrap_or(&Block::NONE)
    }

    /// The bytes of an alphabet in a block, of those before `to`.
    fn word(&self, alphabet: Alphabet, number: usize, to: u64) -> u64 {
        let rare = || {
            let marks = self.rare.get(number);
            marks.map_or([0; RARE], |marks| marks.ascii)
        };
        let bits = match alphabet {
            Alphabet::Base64 => self.block(number).base64,
            Alphabet::Hex => self.block(number).hex,
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
        // From the middle of a run on it may be one as well.
        let mut number = self.number(from);
        loop {
            let ahead = behind(from.saturating_sub(self.offset(number)));
            let here = self.word(alphabet, number, to) & ahead;
            let next = self.word(alphabet, number.saturating_add(1), to);
            if let Some(place) = begin(here, next, least) {
                let start = self.offset(number).saturating_add(u64::from(place));
                let certain = start.saturating_add(wide(least));
                return Some((start, self.stop(alphabet, (certain, to))));
            }
            number = self.flagged(number.saturating_add(1), flag)?;
            if self.offset(number) >= to {
                return None;
            }
        }
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
        self.places(range, flag::ESCAPE, |block| block.escape, found);
    }

    /// Every place at which a zero stands between letters, as it does in wide
    /// characters, or a character begins that may fold.
    pub(crate) fn uncommon(&self, range: (u64, u64), found: &mut impl FnMut(u64)) {
        self.places(range, flag::UNCOMMON, |block| block.uncommon, found);
    }

    fn places(
        &self,
        (from, to): (u64, u64),
        flag: u8,
        marked: impl Fn(&Block) -> u64,
        found: &mut impl FnMut(u64),
    ) {
        let mut number = self.number(from);
        while let Some(flagged) = self.flagged(number, flag) {
            let first = self.offset(flagged);
            if first >= to {
                return;
            }
            let ahead = behind(from.saturating_sub(first));
            let mut marks = marked(self.block(flagged));
            marks &= ahead & before(to.saturating_sub(first));
            while marks != 0 {
                found(first.saturating_add(u64::from(marks.trailing_zeros())));
                marks &= marks.wrapping_sub(1);
            }
            number = flagged.saturating_add(1);
        }
    }
}

/// The bits of so many bytes at the beginning of a block.
fn before(bytes: u64) -> u64 {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    1_u64.checked_shl(bytes).map_or(u64::MAX, |bit| bit - 1)
}

/// The bits of the others.
fn behind(bytes: u64) -> u64 {
    !before(bytes)
}

/// A bit for each place from which on so many bits are set.
fn stretches(bits: u64, least: usize) -> u64 {
    let (mut all, mut have) = (bits, 1);
    while have < least {
        let more = have.min(least.saturating_sub(have));
        all &= all >> more;
        have = have.saturating_add(more);
    }
    all
}

/// The first place of a block from which on so many bits are set, of these 64 and
/// the next.
fn begin(here: u64, next: u64, least: usize) -> Option<u32> {
    if !may_begin(here) {
        return None;
    }
    let all = stretches(here, least);
    if all != 0 {
        return Some(all.trailing_zeros());
    }
    let last = here.leading_ones();
    (last > 0 && across(here, next) >= least).then(|| u64::BITS.saturating_sub(last))
}

/// Whether so many bits may be set from some place of a block on as any run has at
/// least: eight of them stand as one byte, or the next block has the others.
fn may_begin(bits: u64) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let others = !bits;
    // What is none of the bits of a byte becomes its highest (Hacker's Delight 6-1).
    let full = others.wrapping_sub(ONES) & bits & (ONES << 7);
    full | bits >> 63 != 0
}

const _: () = assert!(limits::BASE64_SYMBOLS_MIN >= 15 && limits::DIGITS_MIN >= 15);

/// How many bits are set side by side where one block ends and the next begins.
fn across(here: u64, next: u64) -> usize {
    let bits = here.leading_ones().saturating_add(next.trailing_ones());
    usize::try_from(bits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            let expected = runs(&bytes[from..to], |byte| Alphabet::Base64.has(byte), 20);
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
                let is_wide = matches!(here, [0, one, 0, two, ..]
                    if is_text(*one) && is_text(*two))
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
