//! Formats that nobody here opens: compressors without a reader in this program, and what
//! is encrypted. They are told by how they begin, closely enough that chance makes none of
//! them, so that what leaves in them is counted and, where rules are strict, refused.

use super::{beginnings, guess, recognise};
use crate::finding::UnscannedReason;
use crate::validate::crc::crc32;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// bzip2.
    Bzip2,
    /// The .xz format 1.2, 2.1.1.
    Xz,
    /// 7z (7zFormat.txt, Signature Header).
    SevenZip,
    /// LZ4 frames (lz4 Frame Format 1.6).
    Lz4,
    /// Their predecessor without a header.
    Lz4Legacy,
    /// LZMA alone (lzma-file-format.txt), which has no mark.
    Lzma,
    /// lzip (RFC draft, Member format).
    Lzip,
    /// RAR 4 and 5.
    Rar,
    /// OpenPGP messages in binary (RFC 9580 10.3), which have no mark.
    Pgp,
    /// The same as text (RFC 9580 6.2).
    PgpText,
    /// age (age-encryption.org/v1).
    Age,
}

/// What is looked for everywhere. What has no mark is looked for behind the empty line that
/// ends the head of a part, and where anything may begin.
pub(crate) const MARKS: [(&[u8], Sealed); 17] = [
    (beginnings::BZIP2, Sealed::Bzip2),
    (beginnings::XZ, Sealed::Xz),
    (beginnings::SEVEN_ZIP, Sealed::SevenZip),
    (beginnings::LZ4, Sealed::Lz4),
    (beginnings::LZ4_LEGACY, Sealed::Lz4Legacy),
    (beginnings::LZIP, Sealed::Lzip),
    (beginnings::RAR, Sealed::Rar),
    (beginnings::PGP_TEXT, Sealed::PgpText),
    (beginnings::AGE, Sealed::Age),
    (beginnings::LZMA, Sealed::Lzma),
    (beginnings::PGP[0], Sealed::Pgp),
    (beginnings::PGP[1], Sealed::Pgp),
    (beginnings::PGP[2], Sealed::Pgp),
    (beginnings::PGP[3], Sealed::Pgp),
    (beginnings::PGP[4], Sealed::Pgp),
    (beginnings::PGP[5], Sealed::Pgp),
    (beginnings::PGP[6], Sealed::Pgp),
];

/// Those without a mark.
pub(crate) const UNMARKED: [Sealed; 2] = [Sealed::Lzma, Sealed::Pgp];

/// What a beginning turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It cannot be said with so few bytes.
    More,
    Other,
    It(UnscannedReason),
}

/// Looks at a beginning.
pub(super) fn look(format: Sealed, here: &[u8]) -> Look {
    let compressed = |is: Option<bool>| judged(is, UnscannedReason::Unopened);
    let encrypted = |is: Option<bool>| judged(is, UnscannedReason::Encrypted);
    match format {
        Sealed::Bzip2 => compressed(bzip2(here)),
        Sealed::Xz => compressed(xz(here)),
        Sealed::SevenZip => compressed(seven_zip(here)),
        Sealed::Lz4 => compressed(lz4(here)),
        Sealed::Lz4Legacy => compressed(number(here, 4).map(|size| (1..=9 << 20).contains(&size))),
        Sealed::Lzma => compressed(lzma(without_head(here))),
        Sealed::Lzip => compressed(here.get(5).map(|size| (12..=29).contains(&(size & 0x1f)))),
        Sealed::Rar => compressed(rar(here)),
        Sealed::Pgp => encrypted(pgp(without_head(here))),
        Sealed::PgpText => encrypted(pgp_text(here)),
        Sealed::Age => encrypted(Some(true)),
    }
}

/// Whether one without a mark may begin so.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let is_it = |format: &Sealed| match look(*format, bytes) {
        Look::It(_) => true,
        Look::More => bytes.len() >= 4,
        Look::Other => false,
    };
    let is_packed = || {
        compressed(bytes).is_some_and(|packet| {
            let data = bytes.get(packet.data..).unwrap_or_default();
            let is_whole = packet.extent == Extent::Whole;
            match packet.algorithm {
                1 => guess::is_deflate(data),
                2 if is_whole => recognise::is_zlib(data),
                2 => {
                    recognise::is_zlib(data) && guess::is_deflate(data.get(2..).unwrap_or_default())
                }
                _ => false,
            }
        })
    };
    UNMARKED.iter().any(is_it) || is_packed()
}

/// A packet of OpenPGP that is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compressed {
    pub(super) extent: Extent,
    /// How (RFC 9580 9.4).
    pub(super) algorithm: u8,
    /// Where its data begin, from the first byte of the beginning.
    pub(super) data: usize,
}

/// Whether the data of a packet stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// With lengths between (RFC 9580 4.2.1.4).
    Partial,
}

/// Whether one begins here (RFC 9580 5.6).
pub(super) fn compressed(here: &[u8]) -> Option<Compressed> {
    const COMPRESSED: u8 = 8;
    let packets = without_head(here);
    let first = *packets.first()?;
    // Mostly the first byte says that it is none.
    if !matches!(first, 0xa0..=0xa3 | 0xc8) {
        return None;
    }
    let (tag, length, begin) = packet(packets)?;
    let is_new = first & 0x40 != 0;
    let extent = if is_new && length.is_none() {
        Extent::Partial
    } else {
        Extent::Whole
    };
    let algorithm = *packets.get(begin)?;
    let head = here.len().saturating_sub(packets.len());
    (tag == COMPRESSED).then_some(Compressed {
        extent,
        algorithm,
        data: head.saturating_add(begin).saturating_add(1),
    })
}

fn judged(is: Option<bool>, reason: UnscannedReason) -> Look {
    match is {
        None => Look::More,
        Some(true) => Look::It(reason),
        Some(false) => Look::Other,
    }
}

/// What stands behind the empty line that ends the head of a part.
fn without_head(here: &[u8]) -> &[u8] {
    here.strip_prefix(b"\r\n\r\n").unwrap_or(here)
}

/// Four bytes, the last the highest.
fn number(here: &[u8], at: usize) -> Option<u32> {
    let bytes = here.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// The size of a block and the number that begins one, or ends a file of none.
fn bzip2(here: &[u8]) -> Option<bool> {
    const BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    if !(b'1'..=b'9').contains(here.get(3)?) {
        return Some(false);
    }
    let mark = here.get(4..10)?;
    Some(mark == BLOCK || mark == END)
}

/// The flags of the stream and their checksum.
fn xz(here: &[u8]) -> Option<bool> {
    let flags = here.get(6..8)?;
    Some(number(here, 8)? == crc32(flags) && flags.first() == Some(&0))
}

/// The version and the checksum of where the archive's own header is.
fn seven_zip(here: &[u8]) -> Option<bool> {
    let start = here.get(12..32)?;
    Some(here.get(6) == Some(&0) && number(here, 8)? == crc32(start))
}

/// Version 1, no reserved bit, and the checksum of the descriptor.
fn lz4(here: &[u8]) -> Option<bool> {
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

/// Properties, the size of a dictionary that a program would choose, a size that is unknown
/// or below a terabyte, and a range coder that begins with a literal: its first byte is
/// zero, the bit behind it too, and not all of what follows, as in arrays of small numbers.
fn lzma(here: &[u8]) -> Option<bool> {
    let properties = *here.first()?;
    let dictionary = number(here, 1)?;
    let highest = 31_u32.saturating_sub(dictionary.leading_zeros());
    let lowest = dictionary.trailing_zeros();
    let is_chosen = dictionary.is_power_of_two()
        || (dictionary.count_ones() == 2 && highest.saturating_sub(lowest) == 1)
        || dictionary == u32::MAX;
    if properties >= 225 || highest < 12 || !is_chosen {
        return Some(false);
    }
    let size = here.get(5..13)?;
    let is_known = size.get(5..) == Some(&[0; 3]) && size.iter().any(|byte| *byte != 0);
    if size != [0xff; 8] && !is_known {
        return Some(false);
    }
    let coder = here.get(13..18)?;
    let is_literal = matches!(coder, [0, 0..=0x7f, ..]) && *coder != [0; 5];
    Some(is_literal)
}

/// Version 4 or 5.
fn rar(here: &[u8]) -> Option<bool> {
    match here.get(6)? {
        0 => Some(true),
        1 => here.get(7).map(|last| *last == 0),
        _ => Some(false),
    }
}

/// A line that says so, and behind an empty one a line of base 64.
fn pgp_text(here: &[u8]) -> Option<bool> {
    const HEAD_BYTES_MAX: usize = 1024;
    let text = here.get(27..)?;
    let few = text.get(..HEAD_BYTES_MAX).unwrap_or(text);
    let ends: [&[u8]; 4] = [b"\n\n", b"\r\n\r\n", b"\\n\\n", b"\\r\\n\\r\\n"];
    let ends = ends.iter().filter_map(|end| {
        let at = memchr::memmem::find(few, end)?;
        Some(at + end.len())
    });
    let Some(begin) = ends.min() else {
        return (few.len() == HEAD_BYTES_MAX).then_some(false);
    };
    let line = text.get(begin..begin + 40)?;
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    Some(line.iter().all(is_one))
}

/// A key of the session for whoever reads it, and behind it another or the encrypted data
/// (RFC 9580 10.3.1); data without such keys begin like much else.
fn pgp(here: &[u8]) -> Option<bool> {
    let (tag, length, begin) = packet(here)?;
    let content = here.get(begin..)?;
    let version = *content.first()?;
    let is_plausible = match (tag, version) {
        // Behind the number of a key stands an algorithm.
        (1, 3) => matches!(*content.get(9)?, 1 | 2 | 16 | 18 | 22 | 25 | 26),
        // Before it stands how long the name of the key is, with its version.
        (1, 6) => matches!(*content.get(1)?, 0 | 21 | 33),
        (3, 4) => *content.get(1)? <= 13 && *content.get(2)? <= 4,
        (3, 5 | 6) => *content.get(1)? <= 64 && *content.get(2)? <= 13,
        _ => false,
    };
    let Some(length) = length.filter(|length| is_plausible && *length < 2048) else {
        return Some(false);
    };
    let next = here.get(begin.checked_add(length)?..)?;
    let (next, ..) = packet(next)?;
    Some(matches!(next, 1 | 3 | 9 | 18 | 20))
}

/// The tag of a packet, its length if it is one, and where its content begins; the tag 0
/// where none does (RFC 9580 4.2).
fn packet(here: &[u8]) -> Option<(u8, Option<usize>, usize)> {
    let first = *here.first()?;
    let byte = |at: usize| here.get(at).copied().map(usize::from);
    if first & 0xc0 == 0xc0 {
        let length = byte(1)?;
        return Some(match length {
            0..=191 => (first & 0x3f, Some(length), 2),
            192..=223 => (
                first & 0x3f,
                Some(((length - 192) << 8) + byte(2)? + 192),
                3,
            ),
            255 => {
                let bytes: [u8; 4] = here.get(2..6)?.try_into().ok()?;
                (
                    first & 0x3f,
                    usize::try_from(u32::from_be_bytes(bytes)).ok(),
                    6,
                )
            }
            _ => (first & 0x3f, None, 2),
        });
    }
    if first & 0x80 == 0 {
        return Some((0, None, 1));
    }
    let tag = (first >> 2) & 0x0f;
    Some(match first & 3 {
        0 => (tag, byte(1), 2),
        1 => (tag, Some((byte(1)? << 8) + byte(2)?), 3),
        2 => {
            let bytes: [u8; 4] = here.get(1..5)?.try_into().ok()?;
            (tag, usize::try_from(u32::from_be_bytes(bytes)).ok(), 5)
        }
        _ => (tag, None, 1),
    })
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

    proptest::proptest! {
        #[test]
        fn no_beginning_reads_beyond_its_end(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80),
            mark in 0..MARKS.len(),
        ) {
            let (mark, format) = MARKS[mark];
            let all = [mark, &bytes].concat();
            for end in 0..=all.len() {
                // What was said of fewer bytes holds for more.
                let few = look(format, &all[..end]);
                let whole = look(format, &all);
                let is_open = few == Look::More || end < mark.len();
                assert!(is_open || few == whole, "{format:?} {end}");
            }
            may_begin(&bytes);
        }
    }
}
