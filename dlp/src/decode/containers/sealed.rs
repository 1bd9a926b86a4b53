//! Formats that nobody here opens but LZMA: compressors without a reader in this program, and
//! what is encrypted. They are told by how they begin, closely enough that chance makes none of
//! them, so that what leaves in them is counted and, where rules are strict, refused.

use super::{guess, marks, recognise};
use crate::finding::UnscannedReason;
use crate::magic::OpaqueFormat;
use crate::validate::crc::crc32;

mod pgp;

use pgp::{packet, pgp, pgp_text};

/// Those without a mark.
pub(crate) const UNMARKED: [OpaqueFormat; 2] = [OpaqueFormat::Lzma, OpaqueFormat::Pgp];

/// What a beginning turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatLook {
    /// It cannot be said with so few bytes.
    More,
    Other,
    It(UnscannedReason),
}

/// Looks at a beginning.
pub(super) fn look(format: OpaqueFormat, here: &[u8]) -> FormatLook {
    let compressed = |is: Option<bool>| judged(is, UnscannedReason::Unopened);
    let encrypted = |is: Option<bool>| judged(is, UnscannedReason::Encrypted);
    match format {
        OpaqueFormat::SevenZip => compressed(seven_zip(here)),
        OpaqueFormat::Lzma => compressed(lzma(without_head(here))),
        OpaqueFormat::LzmaUnsized => compressed(lzma_unsized(here)),
        OpaqueFormat::LzipOld => compressed(marks::lzip(here)),
        OpaqueFormat::Rar => compressed(rar(here)),
        OpaqueFormat::Pgp => encrypted(pgp(without_head(here))),
        OpaqueFormat::PgpText => encrypted(pgp_text(here)),
        OpaqueFormat::Age => encrypted(Some(true)),
    }
}

/// Whether one without a mark may begin so.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let is_it = |format: &OpaqueFormat| match look(*format, bytes) {
        FormatLook::It(_) => true,
        FormatLook::More => bytes.len() >= 4,
        FormatLook::Other => false,
    };
    let is_packed = || {
        compressed(bytes).is_some_and(|packet| {
            let data = bytes.get(packet.data..).unwrap_or_default();
            let is_whole = packet.extent == PacketExtent::Whole;
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
    UNMARKED.iter().any(is_it) || is_packed() || may_be_lzma(bytes) == Some(true)
}

/// A packet of OpenPGP that is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compressed {
    pub(super) extent: PacketExtent,
    /// How (RFC 9580 9.4).
    pub(super) algorithm: u8,
    /// Where its data begin, from the first byte of the beginning.
    pub(super) data: usize,
}

/// Whether the data of a packet stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketExtent {
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
        PacketExtent::Partial
    } else {
        PacketExtent::Whole
    };
    let algorithm = *packets.get(begin)?;
    let head = here.len().saturating_sub(packets.len());
    (tag == COMPRESSED).then_some(Compressed {
        extent,
        algorithm,
        data: head.saturating_add(begin).saturating_add(1),
    })
}

fn judged(is: Option<bool>, reason: UnscannedReason) -> FormatLook {
    match is {
        None => FormatLook::More,
        Some(true) => FormatLook::It(reason),
        Some(false) => FormatLook::Other,
    }
}

/// What stands behind the empty line that ends the head of a part.
pub(super) fn without_head(here: &[u8]) -> &[u8] {
    let behind = |end: &[u8]| here.strip_prefix(end);
    let ends: [&[u8]; 2] = [b"\r\n\r\n", b"\n\n"];
    ends.into_iter().find_map(behind).unwrap_or(here)
}

/// Four bytes, the last the highest.
pub(super) fn number(here: &[u8], at: usize) -> Option<u32> {
    let bytes = here.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// The version and the checksum of where the archive's own header is.
fn seven_zip(here: &[u8]) -> Option<bool> {
    let start = here.get(12..32)?;
    Some(here.get(6) == Some(&0) && number(here, 8)? == crc32(start))
}

/// Bytes before the size in the header of LZMA alone.
pub(crate) const LZMA_SIZE_AT: u64 = 5;

/// Properties, the size of a dictionary that a program would choose, a size that is unknown
/// or below a terabyte, and a range coder that begins with a literal: its first byte is
/// zero, the bit behind it too, and not all of what follows, as in arrays of small numbers.
/// Readers take dictionaries of any size: of others the data have to look like chance.
fn lzma(here: &[u8]) -> Option<bool> {
    let properties = *here.first()?;
    let dictionary = number(here, 1)?;
    let highest = 31_u32.saturating_sub(dictionary.leading_zeros());
    let lowest = dictionary.trailing_zeros();
    let is_chosen = dictionary.is_power_of_two()
        || (dictionary.count_ones() == 2 && highest.saturating_sub(lowest) == 1)
        || dictionary == u32::MAX;
    if properties >= 225 {
        return Some(false);
    }
    let size = here.get(5..13)?;
    let is_known = size.get(5..) == Some(&[0; 3]) && size.iter().any(|byte| *byte != 0);
    if size != [0xff; 8] && !is_known {
        return Some(false);
    }
    let coder = here.get(13..18)?;
    let is_literal = matches!(coder, [0, 0..=0x7f, ..]) && *coder != [0; 5];
    if is_literal && (highest < 12 || !is_chosen) {
        // Of what has no such properties hardly any is a program's.
        return if is_known && properties != 0x5d {
            Some(false)
        } else {
            is_chance(here.get(13..)?)
        };
    }
    Some(is_literal)
}

/// Whether it may be LZMA alone whatever its properties and its dictionary: a size that is
/// unknown or below a terabyte, and a range coder, whose first byte is zero. Hardly any of
/// what is none is read for long: it copies from before its beginning.
pub(super) fn may_be_lzma(here: &[u8]) -> Option<bool> {
    let here = without_head(here);
    if *here.first()? >= 225 {
        return Some(false);
    }
    let size = here.get(5..13)?;
    let is_known = size.get(5..) == Some(&[0; 3]) && size.iter().any(|byte| *byte != 0);
    if size != [0xff; 8] && !is_known {
        return Some(false);
    }
    let coder = here.get(13..18)?;
    Some(coder.first() == Some(&0))
}

/// The same anywhere, of an unknown size.
fn lzma_unsized(here: &[u8]) -> Option<bool> {
    if here.get(5..13)? != [0xff; 8] {
        return Some(false);
    }
    Some(lzma(here)? && is_chance(here.get(13..)?)?)
}

/// Whether the first bytes are as many different ones as chance makes: not numbers of
/// several bytes each.
fn is_chance(data: &[u8]) -> Option<bool> {
    const LOOK_BYTES: usize = 20;
    let data = data.get(..LOOK_BYTES)?;
    let count = |value: u8| memchr::memchr_iter(value, data).count();
    Some(data.iter().all(|byte| count(*byte) <= 3))
}

/// Version 4 or 5.
fn rar(here: &[u8]) -> Option<bool> {
    match here.get(6)? {
        0 => Some(true),
        1 => here.get(7).map(|last| *last == 0),
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::magic::MARKS;

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
                let is_open = few == FormatLook::More || end < mark.len();
                assert!(is_open || few == whole, "{format:?} {end}");
            }
            may_begin(&bytes);
        }
    }
}
