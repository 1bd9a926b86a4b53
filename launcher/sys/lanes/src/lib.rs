//! SIMD searches: which of many bytes belong to which sets, and where some windows of bytes may
//! stand: a bit for each byte, 64 bytes at once. And what symbols of base64 stand
//! for.
//!
//! Pure: no system calls, no I/O. It stands beside the system calls because its
//! fast form needs `unsafe` for the same reason: what the processor can do is
//! only known when the program runs.
//!
//! A byte is looked up by its halves: of each set a table has, for every lower
//! half, the upper halves that go with it. The shuffle of AVX2 looks up 32 halves
//! in one instruction. Elsewhere sets read a table of all bytes,
//! eight bytes at a time; the others go byte by byte.

#![allow(
    unsafe_code,
    reason = "the fast form may run only where the processor has it"
)]

mod limits;
mod pack;
mod pairs;
mod registers;
mod windows;

pub use limits::SETS_MAX;
pub use pack::{GROUP_BYTES, GROUP_SYMBOLS, STRIDE_SYMBOLS, pack, symbols};
pub use pairs::{KINDS, Pair, Pairs};
pub use windows::{GROUPS, LiteralWindows, WINDOW_BYTES};

use registers::Registers;

/// Bytes told of by one mark.
pub const BLOCK_BYTES: usize = 64;

/// Some sets of bytes: `ASCII` of them have no byte above 127, `HIGH` none below.
#[derive(Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the fast form reads the rest")
)]
pub struct Sets<const ASCII: usize, const HIGH: usize> {
    ascii: [[u8; 16]; ASCII],
    others: [[u8; 16]; HIGH],
    /// For each byte a bit for each set it belongs to, those of ASCII first: eight
    /// sets, and eight more.
    tables: Box<[[u8; 256]; 2]>,
    /// INVARIANT: what [`Registers::here`] said, or less.
    registers: Registers,
}

/// Blocks marked in one go.
pub const STRIDE_BLOCKS: usize = 16;

/// Places for the marks of blocks: a stride, and as many around it.
pub const PLACES: usize = 2 * STRIDE_BLOCKS;

/// Some blocks of bytes, each at a place: for each set a bit for each of its bytes, the
/// first byte's lowest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks<const ASCII: usize, const HIGH: usize> {
    /// Of the sets without bytes above 127, in their order.
    pub ascii: [[u64; PLACES]; ASCII],
    /// Of the others.
    pub others: [[u64; PLACES]; HIGH],
    /// Of bytes above 127.
    pub high: [u64; PLACES],
}

impl<const ASCII: usize, const HIGH: usize> Marks<ASCII, HIGH> {
    /// No byte belongs to any set.
    pub const NONE: Self = Self {
        ascii: [[0; PLACES]; ASCII],
        others: [[0; PLACES]; HIGH],
        high: [0; PLACES],
    };

    /// Puts the block at one place to another as well.
    pub fn copy(&mut self, from: usize, to: usize) {
        for bits in self.rows() {
            let block = bits.get(from).copied().unwrap_or_default();
            if let Some(bits) = bits.get_mut(to) {
                *bits = block;
            }
        }
    }

    /// No byte of the block at a place belongs to any set.
    pub fn clear(&mut self, place: usize) {
        self.keep(place, 0);
    }

    /// Only these bytes of the block at a place belong to any set.
    fn keep(&mut self, place: usize, there: u64) {
        for bits in self.rows().filter_map(|bits| bits.get_mut(place)) {
            *bits &= there;
        }
    }

    fn rows(&mut self) -> impl Iterator<Item = &mut [u64; PLACES]> {
        let sets = self.ascii.iter_mut().chain(&mut self.others);
        sets.chain([&mut self.high])
    }
}

impl<const ASCII: usize, const HIGH: usize> Sets<ASCII, HIGH> {
    const FEW: () = assert!(ASCII + HIGH <= SETS_MAX);

    /// The bytes for which each of these says yes. The first are asked for bytes up
    /// to 127 only, the others only for those above.
    pub fn new(ascii: [fn(u8) -> bool; ASCII], others: [fn(u8) -> bool; HIGH]) -> Self {
        let () = Self::FEW;
        let mut tables = Box::new([[0; 256]; 2]);
        for (number, is_member) in ascii.iter().chain(&others).enumerate() {
            let bit = 1 << (number % 8);
            let table = tables.get_mut(number / 8);
            for (value, bits) in (0..=u8::MAX).zip(table.into_iter().flatten()) {
                let counts = value.is_ascii() == (number < ASCII);
                if counts && is_member(value) {
                    *bits |= bit;
                }
            }
        }
        Self {
            ascii: ascii.map(|is_member| halves(is_member, 0)),
            others: others.map(|is_member| halves(is_member, 8)),
            tables,
            registers: Registers::here(),
        }
    }

    /// The same with registers that are no wider.
    #[cfg(test)]
    fn within(mut self, most: Registers) -> Self {
        self.registers = most.at_most();
        self
    }

    /// Marks each block of `bytes`, the first at the place `first`, as far as there are
    /// places. What is missing in the last one belongs to no set.
    pub fn mark(&self, bytes: &[u8], first: usize, marks: &mut Marks<ASCII, HIGH>) {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let most = PLACES.saturating_sub(first);
        let blocks = blocks.get(..most).unwrap_or(blocks);
        self.mark_blocks(blocks, first, marks);
        if rest.is_empty() || blocks.len() == most {
            return;
        }
        let mut last = [0; BLOCK_BYTES];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        let place = first.saturating_add(blocks.len());
        self.mark_blocks(&[last], place, marks);
        marks.keep(place, (1 << rest.len()) - 1);
    }

    fn mark_blocks(
        &self,
        blocks: &[[u8; BLOCK_BYTES]],
        first: usize,
        marks: &mut Marks<ASCII, HIGH>,
    ) {
        #[cfg(target_arch = "x86_64")]
        match self.registers {
            // SAFETY: the processor has AVX2, as was asked when the sets were made.
            Registers::Half => return unsafe { wide::mark(self, blocks, first, marks) },
            Registers::Plain => {}
        }
        for (place, block) in (first..).zip(blocks) {
            self.look_up(block, place, marks);
        }
    }

    /// Marks a block as the table has it.
    fn look_up(&self, block: &[u8; BLOCK_BYTES], place: usize, marks: &mut Marks<ASCII, HIGH>) {
        let mut bits = [0; SETS_MAX];
        let halves = bits.as_chunks_mut::<8>().0.iter_mut();
        for (bits, table) in halves.zip(self.tables.iter()) {
            for (place, eight) in block.as_chunks::<8>().0.iter().enumerate() {
                let rows = eight.map(|byte| table.get(usize::from(byte)).copied().unwrap_or(0));
                let columns = transposed(u64::from_le_bytes(rows)).to_le_bytes();
                for (bits, column) in bits.iter_mut().zip(columns) {
                    *bits |= u64::from(column) << (place * 8);
                }
            }
        }
        let high = |high: u64, byte: &u8| high << 1 | u64::from(byte >> 7);
        let high = block.iter().rev().fold(0, high);
        let sets = bits.into_iter().take(ASCII + HIGH).chain([high]);
        for (bits, set) in marks.rows().zip(sets) {
            if let Some(bits) = bits.get_mut(place) {
                *bits = set;
            }
        }
    }
}

/// Work written without regard to the processor, to be compiled for wide registers, those
/// of AVX2 (its code for wider ones is slower): [`Work::act`] has to be
/// `inline(always)` for that, and so has what it calls. Otherwise it does the same, only
/// slower.
pub trait Work {
    /// Does it.
    fn act(self);
}

/// Does work with the widest registers the processor has, of 32 bytes at most.
pub fn widest(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if Registers::here() != Registers::Plain {
        // SAFETY: the processor has AVX2, as was just asked.
        unsafe { wide::act(work) };
        return;
    }
    work.act();
}

/// For each lower half of a byte a bit for each of eight upper halves, from `first`
/// on, with which it is a member.
fn halves(is_member: fn(u8) -> bool, first: u8) -> [u8; 16] {
    let mut table = [0; 16];
    for (low, bits) in (0_u8..).zip(&mut table) {
        for high in 0..8 {
            let byte = (first + high) << 4 | low;
            *bits |= u8::from(is_member(byte)) << high;
        }
    }
    table
}

/// Rows and columns of eight times eight bits exchanged (Hacker's Delight 7-3).
fn transposed(mut bits: u64) -> u64 {
    for (shift, mask) in [
        (7, 0x00aa_00aa_00aa_00aa),
        (14, 0x0000_cccc_0000_cccc),
        (28, 0x0000_0000_f0f0_f0f0),
    ] {
        let changed = (bits ^ (bits >> shift)) & mask;
        bits ^= changed ^ (changed << shift);
    }
    bits
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm_set_epi64x, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_movemask_epi8, _mm256_set_epi64x, _mm256_set1_epi8, _mm256_setzero_si256,
        _mm256_shuffle_epi8, _mm256_srli_epi16,
    };

    use super::{BLOCK_BYTES, Marks, PLACES, Sets, Work};

    /// Bits of the upper halves 0 to 7, and none of the others.
    pub(crate) const BELOW: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];

    /// The same for 8 to 15.
    pub(crate) const ABOVE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128];

    /// Does work that is compiled for AVX2 here.
    #[target_feature(enable = "avx2")]
    pub(super) fn act(work: impl Work) {
        work.act();
    }

    /// Marks blocks.
    #[target_feature(enable = "avx2")]
    #[expect(
        clippy::indexing_slicing,
        reason = "places are those of a block below the number of places"
    )]
    pub(super) fn mark<const ASCII: usize, const HIGH: usize>(
        sets: &Sets<ASCII, HIGH>,
        blocks: &[[u8; BLOCK_BYTES]],
        first: usize,
        marks: &mut Marks<ASCII, HIGH>,
    ) {
        let [below, above] = [both(BELOW), both(ABOVE)];
        let mut ascii = [below; ASCII];
        for (wide, table) in ascii.iter_mut().zip(&sets.ascii) {
            *wide = both(*table);
        }
        let mut others = [above; HIGH];
        for (wide, table) in others.iter_mut().zip(&sets.others) {
            *wide = both(*table);
        }
        for (place, block) in (first..PLACES).zip(blocks) {
            let ([one, other], _) = block.as_chunks::<8>().0.as_chunks::<4>() else {
                return;
            };
            let [one, other] = [load(*one), load(*other)];
            let above_127 = high(one) | high(other) << 32;
            marks.high[place] = above_127;
            let halves = [Half::new(one), Half::new(other)];
            let upper = halves.each_ref().map(|half| half.upper(below));
            for (bits, table) in marks.ascii.iter_mut().zip(&ascii) {
                bits[place] = both_have(&halves, *table, upper);
            }
            // Mostly text, all of whose bytes are of ASCII.
            if above_127 == 0 {
                for bits in &mut marks.others {
                    bits[place] = 0;
                }
                continue;
            }
            let upper = halves.each_ref().map(|half| half.upper(above));
            for (bits, table) in marks.others.iter_mut().zip(&others) {
                bits[place] = both_have(&halves, *table, upper);
            }
        }
    }

    /// Half of a block: the lower and the upper halves of its bytes.
    struct Half {
        low: __m256i,
        high: __m256i,
    }

    impl Half {
        #[target_feature(enable = "avx2")]
        fn new(bytes: __m256i) -> Self {
            let four = _mm256_set1_epi8(0x0f);
            Self {
                low: _mm256_and_si256(bytes, four),
                high: _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), four),
            }
        }

        /// A bit for each upper half that is one of some eight.
        #[target_feature(enable = "avx2")]
        fn upper(&self, eight: __m256i) -> __m256i {
            _mm256_shuffle_epi8(eight, self.high)
        }

        /// A bit for each byte of the table that has one of these upper halves.
        #[target_feature(enable = "avx2")]
        fn has(&self, table: __m256i, upper: __m256i) -> u64 {
            told(_mm256_and_si256(
                _mm256_shuffle_epi8(table, self.low),
                upper,
            ))
        }
    }

    /// The same for both halves of a block.
    #[target_feature(enable = "avx2")]
    fn both_have([one, other]: &[Half; 2], table: __m256i, upper: [__m256i; 2]) -> u64 {
        let [of_one, of_other] = upper;
        one.has(table, of_one) | other.has(table, of_other) << 32
    }

    /// A bit for each byte above 127.
    #[target_feature(enable = "avx2")]
    fn high(bytes: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(bytes).cast_unsigned())
    }

    /// A bit for each byte that is not zero.
    #[target_feature(enable = "avx2")]
    pub(crate) fn told(bytes: __m256i) -> u64 {
        let is_zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        u64::from(!_mm256_movemask_epi8(is_zero).cast_unsigned())
    }

    #[target_feature(enable = "avx2")]
    pub(crate) fn load([one, two, three, four]: [[u8; 8]; 4]) -> __m256i {
        _mm256_set_epi64x(
            i64::from_le_bytes(four),
            i64::from_le_bytes(three),
            i64::from_le_bytes(two),
            i64::from_le_bytes(one),
        )
    }

    /// The 32 bytes from a place on.
    #[target_feature(enable = "avx2")]
    pub(crate) fn load_at(bytes: &[u8], place: usize) -> Option<__m256i> {
        let (eights, _) = bytes.get(place..)?.first_chunk::<32>()?.as_chunks::<8>();
        match eights {
            [a, b, c, d] => Some(load([*a, *b, *c, *d])),
            _ => None,
        }
    }

    /// For each byte the bits that the tables of its lower and its upper half have in
    /// common.
    #[target_feature(enable = "avx2")]
    pub(crate) fn looked_up(bytes: __m256i, [low, high]: &[__m256i; 2]) -> __m256i {
        let four = _mm256_set1_epi8(0x0f);
        let below = _mm256_and_si256(bytes, four);
        let above = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), four);
        _mm256_and_si256(
            _mm256_shuffle_epi8(*low, below),
            _mm256_shuffle_epi8(*high, above),
        )
    }

    /// A table for both halves of a register.
    #[target_feature(enable = "avx2")]
    pub(crate) fn both(table: [u8; 16]) -> __m256i {
        let [low, high] = *table.as_chunks::<8>().0 else {
            return _mm256_setzero_si256();
        };
        let (low, high) = (i64::from_le_bytes(low), i64::from_le_bytes(high));
        _mm256_broadcastsi128_si256(_mm_set_epi64x(high, low))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sets() -> Sets<9, 3> {
        Sets::new(
            [
                |byte| byte.is_ascii_alphanumeric(),
                |byte| byte == 0,
                |byte| byte == 127,
                |byte| b" \t\r\n".contains(&byte),
                |_| true,
                |_| false,
                |byte| byte % 3 == 0,
                |byte| byte & 8 != 0,
                |byte| byte == b'%',
            ],
            [
                |byte| byte >= 0xc2,
                |byte| byte & 0xc0 == 0x80,
                |byte| byte >= 0x80 && byte.is_multiple_of(7),
            ],
        )
    }

    /// What the sets say of each byte.
    fn plain(bytes: &[u8], first: usize) -> Marks<9, 3> {
        let sets = sets();
        let mut marks = Marks::NONE;
        for (block, place) in bytes.chunks(BLOCK_BYTES).zip(first..PLACES) {
            for (bit, byte) in block.iter().enumerate() {
                marks.high[place] |= u64::from(byte >> 7) << bit;
                let bits = [0, 1].map(|half: usize| sets.tables[half][usize::from(*byte)]);
                let bits = u16::from_le_bytes(bits);
                for (set, mark) in marks.ascii.iter_mut().chain(&mut marks.others).enumerate() {
                    mark[place] |= u64::from(bits >> set & 1) << bit;
                }
            }
        }
        marks
    }

    #[test]
    fn every_byte_is_told_in_every_place() {
        let every: Vec<u8> = (0..=u8::MAX).chain(0..=u8::MAX).collect();
        for skip in 0..70 {
            let bytes = &every[skip..skip + 256];
            for registers in Registers::ALL {
                let mut marks = Marks::NONE;
                sets().within(registers).mark(bytes, 1, &mut marks);
                assert_eq!(marks, plain(bytes, 1), "{registers:?} {skip}");
            }
        }
    }

    #[test]
    fn members_are_those_that_were_named() {
        let sets = sets();
        for byte in 0..=u8::MAX {
            let mut marks = Marks::NONE;
            sets.mark(&[byte], 0, &mut marks);
            let told = |set: usize| marks.ascii[set][0] == 1;
            assert_eq!(told(0), byte.is_ascii_alphanumeric(), "{byte}");
            assert_eq!(told(1), byte == 0, "{byte}");
            assert_eq!(told(4), byte.is_ascii(), "{byte}");
            assert!(!told(5), "{byte}");
            assert_eq!(marks.others[0][0] == 1, byte >= 0xc2, "{byte}");
            assert_eq!(marks.others[1][0] == 1, byte & 0xc0 == 0x80, "{byte}");
        }
    }

    #[test]
    fn a_block_is_where_it_was_put() {
        let mut marks = Marks::NONE;
        sets().mark(&[b'a'; 80], 3, &mut marks);
        marks.copy(4, 0);
        marks.clear(3);
        assert_eq!(marks.ascii[0][..6], [0xffff, 0, 0, 0, 0xffff, 0]);
    }

    #[test]
    fn what_stood_at_a_place_before_is_forgotten() {
        for before in [0x80, 0xc4] {
            for sets in Registers::ALL.map(|most| sets().within(most)) {
                let mut marks = Marks::NONE;
                sets.mark(&[before; 2 * BLOCK_BYTES], 1, &mut marks);
                sets.mark(&[b'a'; 2 * BLOCK_BYTES], 1, &mut marks);
                assert_eq!(marks, plain(&[b'a'; 2 * BLOCK_BYTES], 1), "{before}");
            }
        }
    }

    proptest! {
        #[test]
        fn all_forms_say_the_same(
            bytes in proptest::collection::vec(any::<u8>(), 0..2500),
            first in 0_usize..40,
        ) {
            for sets in Registers::ALL.map(|most| sets().within(most)) {
                let mut marks = Marks::NONE;
                sets.mark(&bytes, first, &mut marks);
                prop_assert_eq!(marks, plain(&bytes, first));
            }
        }
    }
}
