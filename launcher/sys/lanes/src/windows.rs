//! Where three bytes side by side may be some of those that are looked for: 64
//! places at once.
//!
//! The windows that are looked for are parted into sixteen groups. Of each group
//! the halves of the bytes that may stand first, second and third are known; where
//! all six halves agree with one group, one of its windows may stand. This is the
//! search called Teddy (Geoffrey Langdale, in Hyperscan), with sixteen groups.

use crate::BLOCK_BYTES;
use crate::registers::Registers;

/// Bytes of a window.
pub const WINDOW_BYTES: usize = 3;

/// Groups of windows.
pub const GROUPS: usize = 16;

/// Bits of the number of a window.
const NUMBER_BITS: u32 = 16;

/// Some windows of three bytes.
#[derive(Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the fast form reads the rest")
)]
pub struct LiteralWindows {
    /// For eight groups and eight more, for the first, second and third byte, and
    /// for its lower and upper half: the groups that have it.
    halves: [[[[u8; 16]; 2]; WINDOW_BYTES]; 2],
    /// A bit for each number that a window has.
    numbers: Box<Numbers>,
    /// INVARIANT: what [`Registers::here`] said, or less.
    registers: Registers,
}

impl LiteralWindows {
    /// The windows of each group: those of a group should be alike.
    pub fn new<'w>(windows: impl IntoIterator<Item = (usize, &'w [u8; WINDOW_BYTES])>) -> Self {
        let mut made = Self {
            halves: [[[[0; 16]; 2]; WINDOW_BYTES]; 2],
            numbers: Box::new([0; 1 << (NUMBER_BITS - 6)]),
            registers: Registers::here(),
        };
        for (group, window) in windows {
            let group = group % GROUPS;
            if let Some(tables) = made.halves.get_mut(group / 8) {
                for ([low, high], byte) in tables.iter_mut().zip(window) {
                    let [below, above] = [byte & 0x0f, byte >> 4].map(usize::from);
                    for (table, half) in [(low, below), (high, above)] {
                        if let Some(groups) = table.get_mut(half) {
                            *groups |= 1 << (group % 8);
                        }
                    }
                }
            }
            let (word, bit) = place(*window);
            if let Some(word) = made.numbers.get_mut(word) {
                *word |= bit;
            }
        }
        made
    }

    /// The same with registers that are no wider.
    #[cfg(test)]
    fn within(mut self, most: Registers) -> Self {
        self.registers = most.at_most();
        self
    }

    /// Every place at which a window stands, in order, and some few others.
    pub fn find(&self, bytes: &[u8], found: &mut impl FnMut(usize)) {
        let mut start = 0_usize;
        let mut places = [0; 2 * FEW_BLOCKS * BLOCK_BYTES];
        while let Some(rest) = bytes.get(start..).filter(|rest| rest.len() >= WINDOW_BYTES) {
            let mut marks = [0; STRIDE_BLOCKS];
            let blocks = rest.len().saturating_sub(WINDOW_BYTES - 1) / BLOCK_BYTES;
            if blocks == 0 {
                let mut last = [0; BLOCK_BYTES + WINDOW_BYTES - 1];
                for (to, from) in last.iter_mut().zip(rest) {
                    *to = *from;
                }
                self.mark(&last, marks.get_mut(..1).unwrap_or_default());
            } else {
                let marks = marks.get_mut(..blocks.min(STRIDE_BLOCKS));
                self.mark(rest, marks.unwrap_or_default());
            }
            let blocks = blocks.clamp(1, STRIDE_BLOCKS);
            let strides = marks.as_chunks().0.iter().enumerate();
            for (number, marks) in strides.take(blocks.div_ceil(FEW_BLOCKS)) {
                if *marks == [0; FEW_BLOCKS] {
                    continue;
                }
                let first = number * FEW_BLOCKS * BLOCK_BYTES;
                let here = rest.get(first..).unwrap_or_default();
                let count = self.sieve(marks, here, &mut places);
                for place in places.iter().take(count) {
                    let place = first.saturating_add(usize::from(*place));
                    found(start.saturating_add(place));
                }
            }
            start = start.saturating_add(blocks * BLOCK_BYTES);
        }
    }

    /// The places that are marked in a few blocks at which a window seems to stand, and
    /// how many there are.
    fn sieve(&self, marks: &[u64; FEW_BLOCKS], bytes: &[u8], places: &mut Places) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.registers != Registers::Plain {
            // SAFETY: the processor has AVX2, BMI1 and POPCNT, as was asked when the
            // windows were taken.
            return unsafe { wide::sieve(marks, bytes, &self.numbers, places) };
        }
        sieve(marks, bytes, &self.numbers, places)
    }

    /// Marks the places of so many blocks, which have to be there with the bytes of
    /// one more window.
    fn mark(&self, bytes: &[u8], marks: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        match self.registers {
            // SAFETY: the processor has AVX2, as was asked when the windows were taken.
            Registers::Half => return unsafe { wide::mark(&self.halves, bytes, marks) },
            Registers::Plain => {}
        }
        for (marks, start) in marks.iter_mut().zip((0..).step_by(BLOCK_BYTES)) {
            let rest = bytes.get(start..).unwrap_or_default();
            let windows = rest.windows(WINDOW_BYTES).take(BLOCK_BYTES);
            for (bit, window) in windows.enumerate() {
                let is_one = window
                    .first_chunk()
                    .is_some_and(|window| self.may_be(*window));
                *marks |= u64::from(is_one) << bit;
            }
        }
    }

    /// Whether some window has the number of this one.
    fn may_be(&self, window: [u8; WINDOW_BYTES]) -> bool {
        has(&self.numbers, window)
    }
}

/// A bit for each number of a window.
type Numbers = [u64; 1 << (NUMBER_BITS - 6)];

fn has(numbers: &Numbers, window: [u8; WINDOW_BYTES]) -> bool {
    let (word, bit) = place(window);
    numbers.get(word).is_some_and(|word| word & bit != 0)
}

/// Most blocks looked at in one go.
const STRIDE_BLOCKS: usize = 16;

/// Blocks whose marks become places in one go.
const FEW_BLOCKS: usize = 4;

/// The places of a few blocks, and as much again, so that more may be written than
/// there are.
type Places = [u16; 2 * FEW_BLOCKS * BLOCK_BYTES];

/// Places of a block that are written whether they are there or not.
const SURE: u32 = 2;

/// See [`LiteralWindows::sieve`]. Takes no branch that depends on a single place: nobody could
/// foretell it.
#[expect(
    clippy::indexing_slicing,
    reason = "places are masked, and all windows of so many blocks are there"
)]
#[inline(always)]
fn sieve(marks: &[u64; FEW_BLOCKS], bytes: &[u8], numbers: &Numbers, places: &mut Places) -> usize {
    const MASK: usize = 2 * FEW_BLOCKS * BLOCK_BYTES - 1;
    let mut count = 0;
    for (marks, first) in marks.iter().zip((0..).step_by(BLOCK_BYTES)) {
        let mut marks = *marks;
        let mut next = count;
        let mut write = |marks: u64| {
            let bit = usize::try_from(marks.trailing_zeros()).unwrap_or_default();
            places[next & MASK] = u16::try_from(first + bit).unwrap_or_default();
            next += 1;
            marks & marks.wrapping_sub(1)
        };
        let here = marks.count_ones();
        for _ in 0..SURE {
            marks = write(marks);
        }
        while marks != 0 {
            marks = write(marks);
        }
        count += usize::try_from(here).unwrap_or_default();
    }
    let mut kept = 0;
    // Mostly the windows of all blocks are there. With one byte more each can be read as
    // one number of four bytes, and nothing has to be asked for its end.
    let all = bytes.first_chunk::<{ FEW_BLOCKS * BLOCK_BYTES + WINDOW_BYTES }>();
    for number in 0..count {
        let place = places[number & MASK];
        let window = if let Some(all) = all {
            all[usize::from(place) % (FEW_BLOCKS * BLOCK_BYTES)..].first_chunk()
        } else {
            bytes
                .get(usize::from(place)..)
                .and_then(<[u8]>::first_chunk)
        };
        places[kept & MASK] = place;
        kept += usize::from(window.is_some_and(|window| has(numbers, *window)));
    }
    kept
}

/// Where the number of a window has its bit.
fn place([one, two, three]: [u8; WINDOW_BYTES]) -> (usize, u64) {
    let mixed = u32::from_le_bytes([0, one, two, three]).wrapping_mul(0x27d4_eb2f);
    let number = mixed >> (u32::BITS - NUMBER_BITS);
    (
        usize::try_from(number >> 6).unwrap_or_default(),
        1 << (number & 63),
    )
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{_mm256_and_si256, _mm256_or_si256, _mm256_set1_epi8};

    use super::{FEW_BLOCKS, Numbers, Places, WINDOW_BYTES};
    use crate::BLOCK_BYTES;
    use crate::wide::{both, load_at, looked_up, told};

    /// Bytes in which the windows that begin in a block lie.
    const REACH_BYTES: usize = BLOCK_BYTES + WINDOW_BYTES - 1;

    /// See [`super::sieve`].
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub(super) fn sieve(
        marks: &[u64; FEW_BLOCKS],
        bytes: &[u8],
        numbers: &Numbers,
        places: &mut Places,
    ) -> usize {
        super::sieve(marks, bytes, numbers, places)
    }

    /// Marks the places of a stride.
    #[target_feature(enable = "avx2")]
    pub(super) fn mark(
        halves: &[[[[u8; 16]; 2]; WINDOW_BYTES]; 2],
        bytes: &[u8],
        marks: &mut [u64],
    ) {
        let mut tables = [[[_mm256_set1_epi8(0); 2]; WINDOW_BYTES]; 2];
        for (wide, narrow) in tables.iter_mut().zip(halves) {
            for (wide, narrow) in wide.iter_mut().zip(narrow) {
                for (wide, narrow) in wide.iter_mut().zip(narrow) {
                    *wide = both(*narrow);
                }
            }
        }
        let [first, second] = tables;
        let mut rest = bytes;
        for marks in marks {
            let Some(block) = rest.first_chunk::<REACH_BYTES>() else {
                return;
            };
            rest = rest.get(BLOCK_BYTES..).unwrap_or_default();
            for half in 0..2 {
                let mut one = _mm256_set1_epi8(-1);
                let mut other = one;
                for (skip, (first, second)) in first.iter().zip(&second).enumerate() {
                    let Some(here) = load_at(block, half * 32 + skip) else {
                        return;
                    };
                    one = _mm256_and_si256(one, looked_up(here, first));
                    other = _mm256_and_si256(other, looked_up(here, second));
                }
                *marks |= told(_mm256_or_si256(one, other)) << (half * 32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(windows: &LiteralWindows, bytes: &[u8]) -> Vec<usize> {
        let mut places = Vec::new();
        windows.find(bytes, &mut |place| places.push(place));
        places
    }

    proptest! {
        #[test]
        fn every_window_is_found_wherever_it_stands(
            list in proptest::collection::vec(("[a-zA-Z_0-9]{3}", 0_usize..16), 1..80),
            noise in proptest::collection::vec(any::<u8>(), 0..3000),
            at in 0_usize..3000,
            which in 0_usize..80,
        ) {
            let list: Vec<(usize, [u8; 3])> = list
                .iter()
                .map(|(text, group)| (*group, text.as_bytes().try_into().unwrap()))
                .collect();
            let mut bytes = noise;
            let at = at.min(bytes.len());
            let window = list[which % list.len()].1;
            bytes.splice(at..at, window);
            for most in Registers::ALL {
                let windows = LiteralWindows::new(list.iter().map(|(group, window)| (*group, window)));
                let windows = windows.within(most);
                let found = places(&windows, &bytes);
                prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(found.iter().all(|place| place + 3 <= bytes.len()));
                for (place, three) in bytes.windows(3).enumerate() {
                    if list.iter().any(|(_, window)| window == three) {
                        prop_assert!(found.binary_search(&place).is_ok(), "{most:?} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_other_places_are_taken() {
        let list = [(0, *b"ghp"), (1, *b"AKI"), (15, *b"_k-")];
        let bytes: Vec<u8> = (0..100_000_u32)
            .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
            .collect();
        for most in Registers::ALL {
            let windows = LiteralWindows::new(list.iter().map(|(group, window)| (*group, window)));
            let windows = windows.within(most);
            assert!(places(&windows, &bytes).len() < 100);
        }
    }
}
