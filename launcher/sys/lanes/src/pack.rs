//! Four symbols of six bits to three bytes, and what symbols the letters of base64 are
//! (RFC 4648 4, 5): 32 at once.

#[cfg(target_arch = "x86_64")]
use crate::registers::Registers;

/// Symbols that are three bytes.
pub const GROUP_SYMBOLS: usize = 4;

/// Bytes of so many symbols.
pub const GROUP_BYTES: usize = 3;

/// Symbols packed in one go.
pub const STRIDE_SYMBOLS: usize = 32;

/// Bytes of so many.
#[cfg(target_arch = "x86_64")]
const STRIDE_BYTES: usize = 24;

/// Writes the bytes of each group of symbols, as far as there is space for them.
/// Symbols have to be below 64: the bytes of others are any.
pub fn pack(groups: &[[u8; GROUP_SYMBOLS]], made: &mut [[u8; GROUP_BYTES]]) {
    let count = groups.len().min(made.len());
    let done = pack_many(
        groups.get(..count).unwrap_or_default(),
        made.get_mut(..count).unwrap_or_default(),
    );
    for (bytes, group) in made.iter_mut().zip(groups).skip(done) {
        *bytes = bytes_of(*group);
    }
}

/// Packs the first groups, and says how many.
#[cfg(target_arch = "x86_64")]
fn pack_many(groups: &[[u8; GROUP_SYMBOLS]], made: &mut [[u8; GROUP_BYTES]]) -> usize {
    if Registers::here() == Registers::Plain {
        return 0;
    }
    // SAFETY: the processor has AVX2, as was just asked.
    unsafe { wide::pack(groups.as_flattened(), made.as_flattened_mut()) };
    groups.len() - groups.len() % (STRIDE_SYMBOLS / GROUP_SYMBOLS)
}

/// Packs none: there is nothing faster than one after the other.
#[cfg(not(target_arch = "x86_64"))]
fn pack_many(_: &[[u8; GROUP_SYMBOLS]], _: &mut [[u8; GROUP_BYTES]]) -> usize {
    0
}

/// Writes the symbol of each letter of base64, in either alphabet, as far as there is
/// space for them. For bytes that are no letter of it any byte is written, not always
/// one below 64, and not on every processor the same.
pub fn symbols(letters: &[u8], made: &mut [u8]) {
    let done = symbols_many(letters, made);
    for (symbol, letter) in made.iter_mut().zip(letters).skip(done) {
        *symbol = symbol_of(*letter);
    }
}

/// Writes the first symbols, and says how many.
#[cfg(target_arch = "x86_64")]
fn symbols_many(letters: &[u8], made: &mut [u8]) -> usize {
    if Registers::here() == Registers::Plain {
        return 0;
    }
    // SAFETY: the processor has AVX2, as was just asked.
    unsafe { wide::symbols(letters, made) };
    let count = letters.len().min(made.len());
    count - count % STRIDE_SYMBOLS
}

/// Writes none: there is nothing faster than one after the other.
#[cfg(not(target_arch = "x86_64"))]
fn symbols_many(_: &[u8], _: &mut [u8]) -> usize {
    0
}

fn symbol_of(letter: u8) -> u8 {
    match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    }
}

/// The bytes of one group of symbols below 64.
fn bytes_of(group: [u8; GROUP_SYMBOLS]) -> [u8; GROUP_BYTES] {
    let [a, b, c, d] = group.map(u32::from);
    let [_, one, two, three] = ((a << 18) | (b << 12) | (c << 6) | d).to_be_bytes();
    [one, two, three]
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_extract_epi64,
        _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_permutevar8x32_epi32, _mm256_set_epi32,
        _mm256_set1_epi8, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_srli_epi16,
    };

    use super::{STRIDE_BYTES, STRIDE_SYMBOLS};
    use crate::wide::{both, load};

    /// The bytes of four numbers below 2^24, highest first, one behind the other.
    const ORDER: [u8; 16] = [
        2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 0x80, 0x80, 0x80, 0x80,
    ];

    /// For each upper half what is between a letter and its symbol: right for all but
    /// three.
    const APART: [u8; 16] = [0, 0, 16, 4, 191, 191, 185, 185, 0, 0, 0, 0, 0, 0, 0, 0];

    /// For each lower half what is missing for a plus and a minus.
    const SIGNS: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 0];

    #[target_feature(enable = "avx2")]
    pub(super) fn symbols(letters: &[u8], made: &mut [u8]) {
        let (apart, signs) = (both(APART), both(SIGNS));
        let (four, two) = (_mm256_set1_epi8(0x0f), _mm256_set1_epi8(2));
        let (line, missing) = (_mm256_set1_epi8(0x5f), _mm256_set1_epi8(33));
        let strides = letters.as_chunks::<STRIDE_SYMBOLS>().0;
        let made = made.as_chunks_mut::<STRIDE_SYMBOLS>().0;
        for (letters, made) in strides.iter().zip(made) {
            let [a, b, c, d] = *letters.as_chunks::<8>().0 else {
                return;
            };
            let here = load([a, b, c, d]);
            let low = _mm256_and_si256(here, four);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(here), four);
            let is_sign = _mm256_cmpeq_epi8(high, two);
            let sign = _mm256_and_si256(_mm256_shuffle_epi8(signs, low), is_sign);
            let line = _mm256_and_si256(_mm256_cmpeq_epi8(here, line), missing);
            let plain = _mm256_add_epi8(here, _mm256_shuffle_epi8(apart, high));
            let eights = eights(_mm256_add_epi8(plain, _mm256_add_epi8(sign, line)));
            for (space, eight) in made.as_chunks_mut::<8>().0.iter_mut().zip(eights) {
                *space = eight.to_le_bytes();
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn eights(bytes: __m256i) -> [i64; 4] {
        [
            _mm256_extract_epi64::<0>(bytes),
            _mm256_extract_epi64::<1>(bytes),
            _mm256_extract_epi64::<2>(bytes),
            _mm256_extract_epi64::<3>(bytes),
        ]
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn pack(symbols: &[u8], made: &mut [u8]) {
        let order = both(ORDER);
        let whole = _mm256_set_epi32(7, 3, 6, 5, 4, 2, 1, 0);
        let (pairs, fours) = (
            _mm256_set1_epi32(0x0140_0140),
            _mm256_set1_epi32(0x0001_1000),
        );
        let strides = symbols.as_chunks::<STRIDE_SYMBOLS>().0;
        let made = made.as_chunks_mut::<STRIDE_BYTES>().0;
        for (symbols, made) in strides.iter().zip(made) {
            let [a, b, c, d] = *symbols.as_chunks::<8>().0 else {
                return;
            };
            let two = _mm256_maddubs_epi16(load([a, b, c, d]), pairs);
            let four = _mm256_madd_epi16(two, fours);
            let bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(four, order), whole);
            let eights = eights(bytes);
            for (space, eight) in made.as_chunks_mut::<8>().0.iter_mut().zip(eights) {
                *space = eight.to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn many_groups_are_packed_as_one_is(
            symbols in proptest::collection::vec(0_u8..64, 0..300),
            missing in 0_usize..3,
        ) {
            let groups = symbols.as_chunks().0;
            let mut made = vec![[0; GROUP_BYTES]; groups.len().saturating_sub(missing)];
            pack(groups, &mut made);
            let expected: Vec<_> = groups.iter().take(made.len()).map(|group| bytes_of(*group)).collect();
            prop_assert_eq!(made, expected);
        }
    }

    #[test]
    fn every_letter_has_its_symbol_in_every_place() {
        let one = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let other = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let expected: Vec<u8> = (0..64).cycle().take(256).collect();
        let letters = [*one, *other, *other, *one].concat();
        for skip in 0..70 {
            let mut made = vec![0xff; 256 - skip];
            symbols(&letters[skip..], &mut made);
            assert_eq!(made, expected[skip..], "{skip}");
        }
        let mut few = [0xff; 40];
        symbols(b"ghp", &mut few);
        assert_eq!(few[..4], [32, 33, 41, 0xff]);
    }

    #[test]
    fn symbols_become_bytes() {
        // "Z2hw" of base64.
        assert_eq!(bytes_of([25, 54, 33, 48]), *b"ghp");
    }
}
