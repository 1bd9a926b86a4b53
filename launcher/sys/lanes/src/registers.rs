//! Which registers the processor has, and what is done with the widest ones, those of 64
//! bytes.

/// The widest registers that there is a form for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    all(not(target_arch = "x86_64"), not(test)),
    expect(dead_code, reason = "there is one form only")
)]
pub(crate) enum Registers {
    /// Those that every processor has.
    Plain,
    /// 32 bytes, by AVX2; with BMI1 and POPCNT, which the sieve of windows needs as well.
    Half,
    /// 64 bytes, by AVX-512 F and BW; such a processor has what `Half` needs as well.
    Block,
}

impl Registers {
    /// All of them, to try each.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Half, Self::Block];

    /// What this processor has.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn here() -> Self {
        let has_half = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("popcnt");
        let has_block = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw");
        match (has_half, has_block) {
            (true, true) => Self::Block,
            (true, false) => Self::Half,
            (false, _) => Self::Plain,
        }
    }

    /// What this processor has.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn here() -> Self {
        Self::Plain
    }

    /// These, or the widest that are there.
    #[cfg(test)]
    pub(crate) fn at_most(self) -> Self {
        match (self, Self::here()) {
            (Self::Plain, _) | (_, Self::Plain) => Self::Plain,
            (Self::Half, _) | (_, Self::Half) => Self::Half,
            (Self::Block, Self::Block) => Self::Block,
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod block {
    use std::arch::x86_64::{
        __m512i, _mm_set_epi64x, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_set_epi64,
        _mm512_set1_epi8, _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_srli_epi16,
    };

    use crate::BLOCK_BYTES;

    /// The 64 bytes from a place on.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn load_at(bytes: &[u8], place: usize) -> Option<__m512i> {
        let block = bytes.get(place..)?.first_chunk::<BLOCK_BYTES>()?;
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
            *word = i64::from_le_bytes(*bytes);
        }
        Some(_mm512_set_epi64(
            words[7], words[6], words[5], words[4], words[3], words[2], words[1], words[0],
        ))
    }

    /// A table for each quarter of a register.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn all(table: [u8; 16]) -> __m512i {
        let [low, high] = *table.as_chunks::<8>().0 else {
            return _mm512_setzero_si512();
        };
        let (low, high) = (i64::from_le_bytes(low), i64::from_le_bytes(high));
        _mm512_broadcast_i32x4(_mm_set_epi64x(high, low))
    }

    /// The lower and the upper halves of bytes.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn halves(bytes: __m512i) -> [__m512i; 2] {
        let four = _mm512_set1_epi8(0x0f);
        [
            _mm512_and_si512(bytes, four),
            _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), four),
        ]
    }

    /// For each byte the bits that the tables of its lower and its upper half have in
    /// common.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn looked_up([below, above]: [__m512i; 2], [low, high]: &[__m512i; 2]) -> __m512i {
        _mm512_and_si512(
            _mm512_shuffle_epi8(*low, below),
            _mm512_shuffle_epi8(*high, above),
        )
    }
}
