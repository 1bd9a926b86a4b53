//! Which classes of bytes stand where in a layer: one look at every byte, which the
//! searches for literals, runs and escapes all start from. Knows no detector.

use std::sync::LazyLock;

use outgate_lanes::{BLOCK_BYTES, Sets};

use crate::budget::{narrow, wide};
use crate::filters::is_lead;
use crate::limits;
use crate::runs::Alphabet;

/// Classes of bytes below 128.
const ASCII: usize = 7;

/// Classes some of whose bytes are not.
const OTHERS: usize = 2;

/// The marks of 64 bytes.
type Block = outgate_lanes::Marks<ASCII, OTHERS>;

/// Whether a byte is one of text.
fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// A class of bytes below 128.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Belongs to a run of base64.
    Base64,
    /// Belongs to a run of hexadecimal digits.
    Hex,
    /// Belongs to a run of base32 in capitals.
    Base32,
    /// Belongs to a run of base32 in small letters.
    Base32Small,
    /// Text.
    Text,
    /// Begins an escape: a percent sign, a backslash, an ampersand, an equals sign.
    Escape,
    /// Zero.
    Zero,
}

/// Begins a character of several bytes that may fold to another.
const LEAD: usize = 0;

/// Goes on with a character of several bytes.
const GOES_ON: usize = 1;

static SETS: LazyLock<Sets<ASCII, OTHERS>> = LazyLock::new(|| {
    Sets::new(
        [
            |byte| Alphabet::Base64.has(byte),
            |byte| Alphabet::Hex.has(byte),
            |byte| Alphabet::Base32.has(byte),
            |byte| Alphabet::Base32Small.has(byte),
            is_text,
            |byte| matches!(byte, b'%' | b'\\' | b'&' | b'='),
            |byte| byte == 0,
        ],
        [is_lead, |byte| byte & 0xc0 == 0x80],
    )
});

/// What a search can skip a block for: a bit for what it has.
mod flag {
    /// A run of base64 begins here.
    pub(super) const BASE64: u8 = 1;
    /// One that is long enough for base32, whose bytes are all bytes of base64.
    pub(super) const BASE32: u8 = 2;
    /// A run of hexadecimal digits begins here.
    pub(super) const HEX: u8 = 4;
    /// A byte with which an escape begins.
    pub(super) const ESCAPE: u8 = 8;
    /// A zero, or the beginning of a character of several bytes.
    pub(super) const UNCOMMON: u8 = 16;
}

// What a block has is certain once the next one is whole.
const _: () = assert!(limits::DIGITS_MIN <= BLOCK_BYTES);
const _: () = assert!(limits::BASE64_SYMBOLS_MIN <= limits::DIGITS_MIN);

/// What a block has, before the next.
fn flags(here: &Block, next: &Block) -> u8 {
    let begins =
        |class: Class, least: usize| begin(ascii(here, class), ascii(next, class), least).is_some();
    let least = Alphabet::symbols_min;
    let base64 = begins(Class::Base64, least(Alphabet::Base64));
    let base32 = base64 && begins(Class::Base64, least(Alphabet::Base32));
    let hex = begins(Class::Hex, least(Alphabet::Hex));
    let uncommon = other(here, LEAD) | ascii(here, Class::Zero);
    let mut flags = 0;
    for (is_so, flag) in [
        (base64, flag::BASE64),
        (base32, flag::BASE32),
        (hex, flag::HEX),
        (ascii(here, Class::Escape) != 0, flag::ESCAPE),
        (uncommon != 0, flag::UNCOMMON),
    ] {
        flags |= u8::from(is_so) * flag;
    }
    flags
}

/// What stands where in the bytes that a layer holds.
#[derive(Default)]
pub(crate) struct Classes {
    /// The blocks from the first byte on, which is that of a block.
    blocks: Vec<Block>,
    /// What each of them has.
    flags: Vec<u8>,
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
        // The last block may not have been whole.
        let whole = narrow(self.end.saturating_sub(self.base)) / BLOCK_BYTES;
        self.blocks.truncate(whole);
        let fresh = bytes.get(whole.saturating_mul(BLOCK_BYTES)..);
        SETS.mark(fresh.unwrap_or_default(), &mut self.blocks);
        // What the last whole one has was not certain without the next.
        let certain = whole.saturating_sub(1);
        self.flags.truncate(certain);
        let fresh = self.blocks.get(certain..).unwrap_or_default();
        let nexts = fresh.iter().skip(1).chain([&Block::NONE]);
        let flags = fresh
            .iter()
            .zip(nexts)
            .map(|(here, next)| flags(here, next));
        self.flags.extend(flags);
        self.end = end;
    }

    /// Forgets so many bytes at the beginning, which are whole blocks.
    pub(crate) fn forget(&mut self, bytes: usize) {
        let blocks = (bytes / BLOCK_BYTES).min(self.blocks.len());
        self.blocks.drain(..blocks);
        self.flags.drain(..blocks.min(self.flags.len()));
        self.base = self.base.saturating_add(wide(bytes));
    }

    /// Forgets everything but the space it took.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.flags.clear();
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

    /// The bytes of a class in a block, of those before `to`.
    fn word(&self, class: Class, number: usize, to: u64) -> u64 {
        ascii(self.block(number), class) & before(to.saturating_sub(self.offset(number)))
    }

    /// The first stretch of bytes of an alphabet in `from..to` that is long enough
    /// for a run.
    pub(crate) fn run(&self, alphabet: Alphabet, (from, to): (u64, u64)) -> Option<(u64, u64)> {
        let (class, least) = (alphabet.class(), alphabet.symbols_min());
        let flag = match class {
            Class::Base64 => flag::BASE64,
            Class::Hex => flag::HEX,
            _ => flag::BASE32,
        };
        let begin_in = |number: usize| {
            let here =
                self.word(class, number, to) & behind(from.saturating_sub(self.offset(number)));
            let next = self.word(class, number.saturating_add(1), to);
            let place = begin(here, next, least)?;
            Some(self.offset(number).saturating_add(u64::from(place)))
        };
        // From the middle of a run on it may be one as well.
        let first = self.number(from);
        let flagged = self
            .numbers((from, to), flag)
            .filter(|number| *number > first);
        let start = begin_in(first).or_else(|| flagged.into_iter().find_map(begin_in))?;
        let certain = start.saturating_add(wide(least));
        Some((start, self.stop(class, (certain, to))))
    }

    /// The blocks in which some of `from..to` lies and which have this flag.
    fn numbers(&self, (from, to): (u64, u64), flag: u8) -> impl Iterator<Item = usize> {
        let first = self.number(from);
        let last = narrow(to.saturating_sub(self.base)).div_ceil(BLOCK_BYTES);
        let flags = self.flags.get(first..last.min(self.flags.len()));
        let (eights, rest) = flags.unwrap_or_default().as_chunks::<8>();
        // Mostly none of eight has it.
        let all = u64::from_le_bytes([flag; 8]);
        let some = eights
            .iter()
            .enumerate()
            .filter(move |(_, flags)| u64::from_le_bytes(**flags) & all != 0);
        let behind = first.saturating_add(eights.len().saturating_mul(8));
        let some = some.flat_map(move |(place, flags)| {
            let first = first.saturating_add(place.saturating_mul(8));
            flags.iter().zip(first..)
        });
        let has = move |(flags, number): (&u8, usize)| (flags & flag != 0).then_some(number);
        some.chain(rest.iter().zip(behind..)).filter_map(has)
    }

    /// Up to where bytes of a class stand from `from` on, `to` at most.
    pub(crate) fn stop(&self, class: Class, (from, to): (u64, u64)) -> u64 {
        let mut number = self.number(from);
        let mut ahead = behind(from.saturating_sub(self.offset(number)));
        while self.offset(number) < to {
            let others = !self.word(class, number, to) & ahead;
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
        self.places(range, flag::ESCAPE, found, |number| {
            let here = self.block(number);
            let next = self.block(number.saturating_add(1));
            // Text follows in any.
            let text = ascii(here, Class::Text) >> 1 | ascii(next, Class::Text) << 63;
            ascii(here, Class::Escape) & text
        });
    }

    /// Every place at which a zero stands between letters, as it does in wide
    /// characters, or a character begins that may fold.
    pub(crate) fn uncommon(&self, range: (u64, u64), found: &mut impl FnMut(u64)) {
        self.places(range, flag::UNCOMMON, found, |number| {
            let here = self.block(number);
            let next = self.block(number.saturating_add(1));
            let zero = both(here, next, Class::Zero);
            let text = both(here, next, Class::Text);
            let two = zero & (text >> 1) & (zero >> 2) & (text >> 3);
            let four = zero & (zero >> 1) & (zero >> 2) & (text >> 3) & (zero >> 4);
            let goes_on = u128::from(other(here, GOES_ON)) | u128::from(other(next, GOES_ON)) << 64;
            let lead = u128::from(other(here, LEAD)) & (goes_on >> 1);
            if lead == 0 {
                return low(two | four);
            }
            // What is no UTF-8 is not text: here, in what is there of the next bytes.
            let high = u128::from(here.high) | u128::from(next.high) << 64;
            let there = self.end.saturating_sub(self.offset(number));
            let missing = u32::try_from(there)
                .ok()
                .and_then(|there| u128::MAX.checked_shl(there));
            let alone = goes_on & !(high << 1 | 1);
            let cut = high & !goes_on & !((goes_on | missing.unwrap_or_default()) >> 1 | 1 << 127);
            let broken = alone | cut;
            let near = broken | broken >> 1;
            let near = near | near >> 2;
            let near = near | near >> 3;
            low(two | four | (lead & !near))
        });
    }

    fn places(
        &self,
        (from, to): (u64, u64),
        flag: u8,
        found: &mut impl FnMut(u64),
        marked: impl Fn(usize) -> u64,
    ) {
        for number in self.numbers((from, to), flag) {
            let first = self.offset(number);
            let ahead = behind(from.saturating_sub(first));
            let mut marks = marked(number) & ahead & before(to.saturating_sub(first));
            while marks != 0 {
                found(first.saturating_add(u64::from(marks.trailing_zeros())));
                marks &= marks.wrapping_sub(1);
            }
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

/// The bytes of a class in two blocks.
fn both(here: &Block, next: &Block, class: Class) -> u128 {
    u128::from(ascii(here, class)) | u128::from(ascii(next, class)) << 64
}

fn ascii(block: &Block, class: Class) -> u64 {
    block.ascii.get(class as usize).copied().unwrap_or_default()
}

fn other(block: &Block, class: usize) -> u64 {
    block.others.get(class).copied().unwrap_or_default()
}

/// The bits of the first block.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the bits of the second are left out"
)]
fn low(bits: u128) -> u64 {
    bits as u64
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
    if here == 0 {
        return None;
    }
    let all = stretches(here, least);
    if all != 0 {
        return Some(all.trailing_zeros());
    }
    let last = here.leading_ones();
    (last > 0 && across(here, next) >= least).then(|| u64::BITS.saturating_sub(last))
}

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
