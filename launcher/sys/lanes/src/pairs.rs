//! Where two bytes side by side may be of some kind: 64 places at once.

use crate::registers::Registers;
use crate::{BLOCK_BYTES, PLACES};

/// Kinds of pairs that are told at once; where there are fewer, one that is never met is
/// given for each that is missing.
pub const KINDS: usize = 8;

/// A kind of pairs: which byte stands first, and which second.
pub type Pair = (fn(u8) -> bool, fn(u8) -> bool);

/// Kinds of two bytes.
#[derive(Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the fast form reads the rest")
)]
pub struct Pairs {
    /// For the first byte and the second, and for the lower and the upper half: the
    /// kinds that have it.
    halves: [[[u8; 16]; 2]; 2],
    /// INVARIANT: what [`Registers::here`] said, or less.
    registers: Registers,
}

impl Pairs {
    /// Pairs of these kinds, and some few others: what is known of a byte are its
    /// halves.
    pub fn new(kinds: &[Pair; KINDS]) -> Self {
        let mut halves = [[[0; 16]; 2]; 2];
        let [first, second] = &mut halves;
        for (number, (is_first, is_second)) in kinds.iter().enumerate() {
            for (tables, is_member) in [(&mut *first, is_first), (&mut *second, is_second)] {
                for byte in (0..=u8::MAX).filter(|byte| is_member(*byte)) {
                    let [low, high] = &mut *tables;
                    for (table, half) in [(low, byte & 0x0f), (high, byte >> 4)] {
                        if let Some(kinds) = table.get_mut(usize::from(half)) {
                            *kinds |= 1 << number;
                        }
                    }
                }
            }
        }
        Self {
            halves,
            registers: Registers::here(),
        }
    }

    /// The same with registers that are no wider.
    #[cfg(test)]
    fn within(mut self, most: Registers) -> Self {
        self.registers = most.at_most();
        self
    }

    /// Marks in `count` blocks of `bytes`, the first at the place `first`, where a pair may
    /// begin, as far as there are places; other places stay as they are. The byte behind
    /// the last block counts too: give all that is there. Bytes that are missing count as
    /// zero.
    pub fn mark(&self, bytes: &[u8], count: usize, first: usize, marks: &mut [u64; PLACES]) {
        let marks = marks.get_mut(first..).unwrap_or_default();
        let count = count.min(marks.len());
        // With each block goes the byte behind it.
        let whole = count.min(bytes.len().saturating_sub(1) / BLOCK_BYTES);
        let (now, later) = marks.split_at_mut(whole);
        self.mark_blocks(bytes, now);
        let mut rest = bytes.get(whole * BLOCK_BYTES..).unwrap_or_default();
        for mark in later.iter_mut().take(count - whole) {
            let mut padded = [0; BLOCK_BYTES + 1];
            for (to, from) in padded.iter_mut().zip(rest) {
                *to = *from;
            }
            self.mark_blocks(&padded, std::slice::from_mut(mark));
            rest = rest.get(BLOCK_BYTES..).unwrap_or_default();
        }
    }

    /// Marks blocks that are there with the byte behind each.
    fn mark_blocks(&self, bytes: &[u8], marks: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        match self.registers {
            // SAFETY: the processor has AVX2, as was asked when the kinds were taken.
            Registers::Half => return unsafe { wide::mark(&self.halves, bytes, marks) },
            Registers::Plain => {}
        }
        for (mark, start) in marks.iter_mut().zip((0..).step_by(BLOCK_BYTES)) {
            let block = bytes.get(start..start + BLOCK_BYTES + 1);
            let pairs = block.unwrap_or_default().windows(2).rev();
            *mark = pairs.fold(0, |marks, pair| marks << 1 | u64::from(self.has(pair)));
        }
    }

    fn has(&self, pair: &[u8]) -> bool {
        let kinds = self.halves.iter().zip(pair).map(|([low, high], byte)| {
            let [low, high] = [(low, byte & 0x0f), (high, byte >> 4)]
                .map(|(table, half)| table.get(usize::from(half)).copied().unwrap_or_default());
            low & high
        });
        kinds.fold(u8::MAX, |all, kinds| all & kinds) != 0
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{_mm256_and_si256, _mm256_set1_epi8};

    use crate::BLOCK_BYTES;
    use crate::wide::{both, load_at, looked_up, told};

    /// Marks blocks.
    #[target_feature(enable = "avx2")]
    pub(super) fn mark(halves: &[[[u8; 16]; 2]; 2], bytes: &[u8], marks: &mut [u64]) {
        let mut tables = [[_mm256_set1_epi8(0); 2]; 2];
        for (wide, narrow) in tables.iter_mut().zip(halves) {
            for (wide, narrow) in wide.iter_mut().zip(narrow) {
                *wide = both(*narrow);
            }
        }
        let mut rest = bytes;
        for mark in marks {
            let Some(block) = rest.first_chunk::<{ BLOCK_BYTES + 1 }>() else {
                return;
            };
            rest = rest.get(BLOCK_BYTES..).unwrap_or_default();
            *mark = 0;
            for half in 0..2 {
                let mut kinds = _mm256_set1_epi8(-1);
                for (skip, tables) in tables.iter().enumerate() {
                    let Some(here) = load_at(block, half * 32 + skip) else {
                        return;
                    };
                    kinds = _mm256_and_si256(kinds, looked_up(here, tables));
                }
                *mark |= told(kinds) << (half * 32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS_HERE: [Pair; KINDS] = [
        (|byte| byte == b'%', |byte| byte.is_ascii_hexdigit()),
        (|byte| byte == b'=', |byte| byte == b'\n'),
        (|byte| byte >= 0xc2, |byte| byte & 0xc0 == 0x80),
        (|byte| byte == 0, |byte| byte == 0),
        (|byte| byte == b'&', |byte| byte.is_ascii_alphabetic()),
        (|_| false, |_| true),
        (|_| true, |_| false),
        (|byte| byte == b'k', |byte| byte == b'-'),
    ];

    fn marks(pairs: &Pairs, bytes: &[u8], count: usize) -> [u64; PLACES] {
        let mut marks = [u64::MAX; PLACES];
        pairs.mark(bytes, count, 2, &mut marks);
        marks
    }

    proptest! {
        #[test]
        fn every_pair_is_marked_wherever_it_stands(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'%'), Just(b'k')], 0..900),
        ) {
            let count = bytes.len().div_ceil(BLOCK_BYTES);
            let fast = marks(&Pairs::new(&KINDS_HERE), &bytes, count);
            for most in Registers::ALL {
                let same = marks(&Pairs::new(&KINDS_HERE).within(most), &bytes, count);
                prop_assert_eq!(fast, same, "{:?}", most);
            }
            prop_assert_eq!([fast[1], fast[2 + count]], [u64::MAX; 2]);
            for (place, pair) in bytes.windows(2).enumerate() {
                let bit = fast[2 + place / BLOCK_BYTES] >> (place % BLOCK_BYTES) & 1;
                let is_one = |(first, second): &Pair| first(pair[0]) && second(pair[1]);
                prop_assert!(bit == 1 || !KINDS_HERE.iter().any(is_one), "{}", place);
            }
        }
    }

    #[test]
    fn a_block_ends_with_a_byte_of_the_next() {
        let mut bytes = vec![b'.'; 130];
        bytes[63..65].copy_from_slice(b"k-");
        let pairs = Pairs::new(&KINDS_HERE);
        assert_eq!(marks(&pairs, &bytes, 1)[2], 1 << 63);
        assert_eq!(marks(&pairs, &bytes[..64], 1)[2], 0);
    }
}
