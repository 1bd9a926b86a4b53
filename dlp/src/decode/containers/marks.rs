//! What the beginnings of compressed files say beside their marks, which are short: chance
//! makes some of those, and none of these. `None` where more bytes are needed.

use super::sealed::number;
use crate::validate::crc::crc32;

/// The size of a block and the number that begins one, or ends a file of none.
pub(super) fn bzip2(here: &[u8]) -> Option<bool> {
    const BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    if !(b'1'..=b'9').contains(here.get(3)?) {
        return Some(false);
    }
    let mark = here.get(4..10)?;
    Some(mark == BLOCK || mark == END)
}

/// The flags of the stream and their checksum.
pub(super) fn xz(here: &[u8]) -> Option<bool> {
    let flags = here.get(6..8)?;
    Some(number(here, 8)? == crc32(flags) && flags.first() == Some(&0))
}

/// Version 1, no reserved bit, and the checksum of the descriptor.
pub(super) fn lz4(here: &[u8]) -> Option<bool> {
    let (flags, block) = (*here.get(4)?, *here.get(5)?);
    if flags >> 6 != 1 || flags & 2 != 0 || block & 0x8f != 0 || block >> 4 < 4 {
        return Some(false);
    }
    let size = if flags & 8 != 0 { 8 } else { 0 };
    let dictionary = if flags & 1 != 0 { 4 } else { 0 };
    let end = 6_usize + size + dictionary;
    let check = here.get(end)?;
    let sum = xxh32(here.get(4..end)?).to_le_bytes();
    Some(sum.get(1) == Some(check))
}

/// The size of the dictionary.
pub(super) fn lzip(here: &[u8]) -> Option<bool> {
    here.get(5).map(|size| (12..=29).contains(&(size & 0x1f)))
}

/// The size of a block that readers take.
pub(super) fn lz4_legacy(here: &[u8]) -> Option<bool> {
    number(here, 4).map(|size| (1..=9 << 20).contains(&size))
}

/// xxHash of 32 bits with the seed 0, of less than 16 bytes (xxHash fast digest algorithm 0.1.1).
fn xxh32(bytes: &[u8]) -> u32 {
    const PRIMES: [u32; 5] = [
        0x9e37_79b1,
        0x85eb_ca77,
        0xc2b2_ae3d,
        0x27d4_eb2f,
        0x1656_67b1,
    ];
    let [one, two, three, four, five] = PRIMES;
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(five.wrapping_add(length), |sum, word| {
        sum.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(three))
            .rotate_left(17)
            .wrapping_mul(four)
    });
    let sum = rest.iter().fold(sum, |sum, byte| {
        sum.wrapping_add(u32::from(*byte).wrapping_mul(five))
            .rotate_left(11)
            .wrapping_mul(one)
    });
    let sum = (sum ^ (sum >> 15)).wrapping_mul(two);
    let sum = (sum ^ (sum >> 13)).wrapping_mul(three);
    sum ^ (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_their_standards() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
    }
}
