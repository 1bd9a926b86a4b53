//! Where in the symbols of base64 something begins that the scan of what they
//! stand for would look at: a literal, compressed data, an escape, a run of an
//! alphabet. Says so without decoding, for all four phases in one look, so that
//! only what surrounds such places needs to be decoded. May say too much, never
//! too little. Knows nothing of detectors and layers.

use crate::bits::gathered;
use crate::filters;

use super::alphabet;
use super::radix::bytes_of;

/// Bits of the three symbols that are looked up together: they number windows.
const WINDOW_BITS: u32 = 18;

/// Words of a bit for each window.
const WINDOW_WORDS: usize = 1 << 12;

/// Symbols looked at before anything is decided.
const BLOCK_SYMBOLS: usize = 64;

/// Groups of four symbols that are all text where a run within the run begins:
/// the shortest has six whole ones.
const PLAIN_GROUPS: usize = 5;

/// Symbols behind a place that are read to say what begins there.
const AHEAD_SYMBOLS: usize = BLOCK_SYMBOLS + 4 * PLAIN_GROUPS;

/// Bytes decoded to say what begins at a place.
const HEAD_BYTES: usize = 24;

/// Bytes decoded before a place: two groups, and what is before it in its own.
const BEFORE_BYTES: usize = 9;

/// Bits of eight symbols.
const NEAR_BITS: u32 = 48;

/// Symbols of so many bytes, and of the group they begin in.
const HEAD_SYMBOLS: usize = HEAD_BYTES / 3 * 4 + 4;

/// Symbols at the end that cannot be said anything of until more come.
pub(super) const MARGIN_SYMBOLS: usize = HEAD_SYMBOLS;

/// Stands behind the last symbol: no text, and nothing that begins.
const BEHIND: u8 = 63;

/// What to look for, as it stands in symbols.
pub(crate) struct Probe {
    windows: Box<[u64; WINDOW_WORDS]>,
    /// In order.
    literals: Vec<Box<[u8]>>,
    /// A bit for each two bytes that a literal begins with.
    pairs: Pairs,
    /// The same for escapes.
    openings: Pairs,
}

/// A bit for each two bytes.
struct Pairs(Box<[u64; 1 << 10]>);

impl Pairs {
    fn new() -> Self {
        Self(Box::new([0; 1 << 10]))
    }

    fn insert(&mut self, pair: [u8; 2]) {
        let pair = usize::from(u16::from_be_bytes(pair));
        if let Some(word) = self.0.get_mut(pair >> 6) {
            *word |= 1 << (pair & 63);
        }
    }

    fn has(&self, pair: [u8; 2]) -> bool {
        let pair = usize::from(u16::from_be_bytes(pair));
        let word = self.0.get(pair >> 6).copied().unwrap_or_default();
        word >> (pair & 63) & 1 != 0
    }
}

/// Up to where each phase is decoded whatever else begins in it.
pub(super) struct Cover {
    pub(super) until: [u64; 4],
    /// How far decoding goes on behind something that begins.
    pub(super) after: u64,
    /// How far before the end it must begin so that the end does not cut it.
    pub(super) within: u64,
}

impl Cover {
    /// Takes a place unless it is decoded in any case.
    fn take(&mut self, group: u64, spots: &mut Vec<u64>) {
        let phase = usize::try_from(group & 3).unwrap_or_default();
        if let Some(until) = self.until.get_mut(phase)
            && group.saturating_add(self.within) > *until
        {
            *until = group.saturating_add(self.after);
            spots.push(group);
        }
    }

    fn has(&self, group: u64) -> bool {
        let phase = usize::try_from(group & 3).unwrap_or_default();
        let until = self.until.get(phase);
        until.is_some_and(|until| group.saturating_add(self.within) <= *until)
    }
}

impl Probe {
    /// A look for `literals`, which are in order, and for escapes.
    #[expect(clippy::large_stack_arrays, reason = "made once, when a ruleset is")]
    pub(crate) fn new(literals: &[Box<[u8]>]) -> Self {
        let mut probe = Self {
            windows: Box::new([0; WINDOW_WORDS]),
            literals: literals.to_vec(),
            pairs: Pairs::new(),
            openings: Pairs::new(),
        };
        let any: Vec<u8> = (0..=255).collect();
        for literal in literals {
            let [first, second, rest @ ..] = literal.as_ref() else {
                continue;
            };
            let third = rest.first().map_or(any.as_slice(), std::slice::from_ref);
            probe.insert([&[*first], &[*second], third]);
            probe.pairs.insert([*first, *second]);
        }
        for [first, second, third] in filters::openings() {
            probe.insert([&first, &second, &third]);
            for second in &second {
                for first in &first {
                    probe.openings.insert([*first, *second]);
                }
            }
        }
        probe
    }

    /// Takes all three bytes of these sets, wherever in a group they begin.
    fn insert(&mut self, bytes: [&[u8]; 3]) {
        let [zero, two, two_on] = [(0, 0), (2, 0), (2, 1)].map(|at| windows(bytes, at));
        let [four, four_on] = [(4, 0), (4, 1)].map(|at| windows(bytes, at));
        // Where there is a choice, the one that is met less often by chance.
        let fewer = |one: Vec<usize>, other: Vec<usize>| {
            if one.len() <= other.len() { one } else { other }
        };
        for window in [zero, fewer(two, two_on), fewer(four, four_on)].concat() {
            if let Some(word) = self.windows.get_mut(window >> 6) {
                *word |= 1 << (window & 63);
            }
        }
    }

    /// Finds where something may begin in `symbols`, the first of which is number
    /// `base` of the run: gives the numbers of the first symbols of the groups in
    /// which it does, in order for each phase. Looks at windows that begin in
    /// `from..to`.
    pub(super) fn find(
        &self,
        (symbols, base): (&[u8], u64),
        (from, to): (usize, usize),
        cover: &mut Cover,
        spots: &mut Vec<u64>,
    ) {
        let mut start = from;
        while start < to {
            let rest = symbols.get(start..).unwrap_or_default();
            let mut padded = [BEHIND; AHEAD_SYMBOLS];
            let block = rest.first_chunk::<AHEAD_SYMBOLS>().unwrap_or_else(|| {
                if let Some(space) = padded.get_mut(..rest.len()) {
                    space.copy_from_slice(rest);
                }
                &padded
            });
            let (begins, plain) = (self.begins(block), plain(block));
            let most = to.saturating_sub(start).min(BLOCK_SYMBOLS);
            let mut marks = begins | plain;
            while marks != 0 {
                let place = usize::try_from(marks.trailing_zeros()).unwrap_or_default();
                marks &= marks.wrapping_sub(1);
                if place >= most {
                    break;
                }
                let at = start.saturating_add(place);
                let text = Text { symbols, base };
                if plain >> place & 1 != 0 {
                    text.run(at, cover, spots);
                }
                if begins >> place & 1 != 0 {
                    self.look(&text, at, cover, spots);
                }
            }
            start = start.saturating_add(BLOCK_SYMBOLS);
        }
    }

    /// A bit for each place at which a window stands that is looked for.
    #[expect(clippy::indexing_slicing, reason = "the mask is that of the table")]
    fn begins(&self, block: &[u8; AHEAD_SYMBOLS]) -> u64 {
        let mut numbers = [0_u32; BLOCK_SYMBOLS];
        let [first, second, third] = [0, 1, 2].map(|skip| block.iter().skip(skip));
        for (((number, first), second), third) in
            numbers.iter_mut().zip(first).zip(second).zip(third)
        {
            *number = u32::from(*first) << 12 | u32::from(*second) << 6 | u32::from(*third);
        }
        let mut marks = 0;
        for (count, eight) in numbers.as_chunks::<8>().0.iter().enumerate() {
            let bits = eight.map(|number| {
                let word = self.windows[(number >> 6) as usize & (WINDOW_WORDS - 1)];
                u8::from(word >> (number & 63) & 1 != 0)
            });
            marks |= gathered(u64::from_le_bytes(bits)) << (count * 8);
        }
        marks
    }

    /// Takes the groups that the window at `at` may belong to, if something begins
    /// in them.
    fn look(&self, text: &Text<'_>, at: usize, cover: &mut Cover, spots: &mut Vec<u64>) {
        let near = text.near(at);
        // How many symbols before the window the group is, which byte of it, and
        // which bit of what is near.
        for (back, byte, bit) in [(0, 0, 6), (1, 1, 8), (2, 1, 2), (2, 2, 10), (3, 2, 4)] {
            let [first, second, third, fourth, ..] = (near << (64 - NEAR_BITS + bit)).to_be_bytes();
            let is_literal = self.pairs.has([first, second]);
            let is_opening = self.openings.has([first, second])
                && filters::may_begin([first, second, third, fourth]);
            if !is_literal && !is_opening {
                continue;
            }
            let group = at.checked_sub(back);
            let Some(group) = group.filter(|group| !cover.has(text.number(*group))) else {
                continue;
            };
            let mut space = [0; HEAD_BYTES];
            let head = text.head(group, &mut space);
            let (first, here) = head.split_at_checked(byte).unwrap_or_default();
            let mut before = [0; BEFORE_BYTES];
            if (is_literal && self.has_literal(here))
                || (is_opening && filters::begins(text.before(group, first, &mut before), here))
            {
                cover.take(text.number(group), spots);
            }
        }
    }

    /// Whether a literal stands here, as far as it can be seen.
    fn has_literal(&self, here: &[u8]) -> bool {
        let Some(begin) = here.get(..2) else {
            return false;
        };
        let start = self
            .literals
            .partition_point(|literal| literal.as_ref() < begin);
        let literals = self.literals.get(start..).unwrap_or_default();
        let mut near = literals
            .iter()
            .take_while(|literal| literal.starts_with(begin));
        near.any(|literal| {
            let seen = literal.len().min(HEAD_BYTES - 2);
            here.starts_with(literal.get(..seen).unwrap_or_default())
        })
    }
}

/// Symbols, and the number of the first in its run.
struct Text<'a> {
    symbols: &'a [u8],
    base: u64,
}

impl Text<'_> {
    fn number(&self, place: usize) -> u64 {
        self.base.saturating_add(crate::budget::wide(place))
    }

    /// The bytes from a group on, as far as they are there.
    fn head<'s>(&self, group: usize, space: &'s mut [u8; HEAD_BYTES]) -> &'s [u8] {
        let symbols = self.symbols.get(group..).unwrap_or_default();
        let mut made = 0_usize;
        let (groups, rest) = symbols.as_chunks::<4>();
        for (bytes, group) in space.as_chunks_mut::<3>().0.iter_mut().zip(groups) {
            *bytes = bytes_of(*group);
            made = made.saturating_add(3);
        }
        if groups.len() < HEAD_BYTES / 3 {
            let mut last = [0; 4];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            let whole = rest.len().saturating_mul(6) / 8;
            for (to, from) in space.iter_mut().skip(made).zip(bytes_of(last)).take(whole) {
                *to = from;
                made = made.saturating_add(1);
            }
        }
        space.get(..made).unwrap_or_default()
    }

    /// Eight symbols, from the one before a place on.
    fn near(&self, at: usize) -> u64 {
        let before = at.checked_sub(1).and_then(|place| self.symbols.get(place));
        let from = self.symbols.get(at..).unwrap_or_default().iter();
        let behind = from.chain(std::iter::repeat(&BEHIND)).take(7);
        let symbols = std::iter::once(before.unwrap_or(&0)).chain(behind);
        symbols.fold(0, |near, symbol| near << 6 | u64::from(*symbol))
    }

    /// The bytes before those of a group: two groups, and its first bytes.
    fn before<'s>(
        &self,
        group: usize,
        first: &[u8],
        space: &'s mut [u8; BEFORE_BYTES],
    ) -> &'s [u8] {
        let start = group.saturating_sub(BEFORE_BYTES / 3 * 4 - 4);
        let start = group.saturating_sub(group.saturating_sub(start) / 4 * 4);
        let symbols = self.symbols.get(start..group).unwrap_or_default();
        let groups = symbols.as_chunks::<4>().0.iter();
        let bytes = groups.flat_map(|group| bytes_of(*group));
        let mut made = 0;
        for (to, from) in space.iter_mut().zip(bytes.chain(first.iter().copied())) {
            *to = from;
            made += 1;
        }
        space.get(..made).unwrap_or_default()
    }

    /// Takes the place if a run of an alphabet may begin there, or shortly before.
    fn run(&self, at: usize, cover: &mut Cover, spots: &mut Vec<u64>) {
        if cover.has(self.number(at)) {
            return;
        }
        let mut space = [0; HEAD_BYTES];
        let head = self.head(at, &mut space);
        if alphabet::is_run(head.get(..PLAIN_GROUPS * 3).unwrap_or_default()) {
            // Some bytes of the group before may belong to it.
            let number = self.number(at);
            let before = number.saturating_sub(4);
            let begin = if before & 3 == number & 3 {
                before
            } else {
                number
            };
            cover.take(begin, spots);
        }
    }
}

/// A bit for each place from which on some groups have bytes of text only: none
/// with its highest bit.
fn plain(block: &[u8; AHEAD_SYMBOLS]) -> u64 {
    const REACH: usize = BLOCK_SYMBOLS + 4 * (PLAIN_GROUPS - 1);
    let mut high = [0_u8; REACH];
    let [first, second, third] = [0, 1, 2].map(|skip| block.iter().skip(skip));
    for (((high, first), second), third) in high.iter_mut().zip(first).zip(second).zip(third) {
        *high = (first & 0x20) | (second & 0x08) | (third & 0x02);
    }
    let mut all = [0_u8; BLOCK_SYMBOLS];
    for skip in (0..PLAIN_GROUPS).map(|group| group.saturating_mul(4)) {
        for (all, high) in all.iter_mut().zip(high.iter().skip(skip)) {
            *all |= high;
        }
    }
    if all.iter().fold(u8::MAX, |least, high| least.min(*high)) != 0 {
        return 0;
    }
    let places = all.iter().enumerate().filter(|(_, high)| **high == 0);
    places.fold(0, |marks, (place, _)| marks | 1 << place)
}

/// The windows in which three bytes of these sets stand when the first begins at
/// bit `offset` of a symbol, and the window at that symbol or at a later one.
fn windows(bytes: [&[u8]; 3], (offset, later): (u32, u32)) -> Vec<usize> {
    // All bits of a window lie in those of five symbols.
    const BITS: u32 = 30;
    let last = later * 6 + WINDOW_BITS;
    let mask = (1_usize << WINDOW_BITS).wrapping_sub(1);
    let mut windows = vec![0_usize];
    for (place, set) in (0_u32..).zip(bytes) {
        let shift = BITS - 8 - offset - place * 8;
        let part = |byte: &u8| (usize::from(*byte) << shift) >> (BITS - last) & mask;
        windows = with_each(&windows, set.iter().map(part).collect());
    }
    if later == 0 {
        // What stands before the first byte may be anything.
        let free = 0..1_usize << offset;
        let shift = WINDOW_BITS - offset;
        windows = with_each(&windows, free.map(|before| before << shift).collect());
    }
    windows
}

/// Each window with each of the parts.
fn with_each(windows: &[usize], mut parts: Vec<usize>) -> Vec<usize> {
    parts.sort_unstable();
    parts.dedup();
    let with = |window: &usize| parts.iter().map(|part| window | part).collect::<Vec<_>>();
    windows.iter().flat_map(with).collect()
}
