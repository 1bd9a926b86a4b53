//! Compressed data without a mark at their beginning, bare deflate (RFC 1951) and
//! Brotli (RFC 7932): whether bytes may begin so, from what their first block says of
//! itself. Says no to nothing a compressor makes that could hold a credential; of random
//! bytes it says yes to few, and those show soon that they are none.

use std::cmp::Ordering;

use super::brotli;
use super::meta_block::{self, Header, Plain};
use super::prefix::{BitReader, Code, LENGTH_MAX, PrefixEnd, Read};
use super::recognise::{Wait, is_zlib};
use super::{sealed, unread};
use crate::decode::layer::{LayerExtent, View};
use crate::limits;
use crate::magic::Magic;

/// Bytes that make it certain enough: with fewer, more may be waited for.
pub(super) const GUESS_BYTES: usize = 16;

/// Whether these bytes, all there are, may be compressed without a mark. Brotli is
/// tried: its beginning alone says too little.
pub(crate) fn is_unmarked(bytes: &[u8]) -> bool {
    if sealed::may_begin(bytes) || unread::begins(bytes, Wait::Over) == Some(true) {
        return true;
    }
    // Nothing compressed is one byte again and again.
    let is_one_byte = bytes.windows(2).all(|two| two.first() == two.last());
    let is_enough = bytes.len() >= limits::UNMARKED_BYTES_MIN && !is_one_byte;
    is_enough && (is_whole_deflate(bytes) || is_whole_brotli(bytes))
}

/// Whether zlib begins so, and its first block goes on as blocks do.
pub(crate) fn is_begun_zlib(bytes: &[u8]) -> bool {
    is_zlib(bytes) && is_deflate(crate::span::from(bytes, 2))
}

/// Whether they may begin so, where what comes later will tell. `all` is how many there are
/// in all, if that is known.
pub(crate) fn may_be_unmarked(bytes: &[u8], all: Option<usize>) -> bool {
    if is_zlib(bytes) || is_deflate(bytes) || sealed::may_begin(bytes) {
        return true;
    }
    let is_unread = unread::begins(bytes, Wait::Long);
    if is_unread == Some(true) || (is_unread.is_none() && bytes.len() >= GUESS_BYTES) {
        return true;
    }
    let header = meta_block::read(bytes);
    let is_plain = all.is_some_and(|all| is_plain_brotli(&header, bytes, all));
    !bytes.is_empty() && !is_plain && has_begun(&header, bytes)
}

/// Whether nothing but bytes that stand there as they are comes out of so many bytes of
/// Brotli that begin so, and nothing compressed begins with the first of them.
fn is_plain_brotli(header: &Read<Header>, bytes: &[u8], all: usize) -> bool {
    match header {
        Ok(Header::Skip(end)) => *end >= all,
        Ok(Header::Plain(Plain { begin, end })) => {
            let inside = bytes.get(*begin..).unwrap_or_default();
            *end >= all && !may_be_unmarked(inside, None)
        }
        Ok(Header::Codes) | Err(_) => false,
    }
}

/// Whether Brotli may begin so (RFC 7932 9.1, 9.2), with something in it.
pub(super) fn is_brotli(bytes: &[u8]) -> bool {
    !bytes.is_empty() && has_begun(&meta_block::read(bytes), bytes)
}

fn has_begun(header: &Read<Header>, bytes: &[u8]) -> bool {
    let few = bytes.get(..GUESS_BYTES).unwrap_or(bytes);
    match header {
        Ok(Header::Skip(_)) => true,
        Ok(Header::Plain(_) | Header::Codes) | Err(PrefixEnd::Short) => !is_text(few),
        Err(PrefixEnd::Wrong) => false,
    }
}

/// Whether Brotli begins so of which all is there: its first codes, and more than bytes
/// that stand there as they are.
pub(super) fn is_whole_brotli(bytes: &[u8]) -> bool {
    if bytes.len() < limits::UNMARKED_BYTES_MIN {
        return false;
    }
    let header = meta_block::read(bytes);
    let has_more = header.is_ok() && !is_plain_brotli(&header, bytes, bytes.len());
    has_more && has_begun(&header, bytes) && brotli::makes_some(bytes)
}

/// Whether these are letters and marks of ASCII only: no compressor makes so many of
/// them in a row at its beginning.
fn is_text(bytes: &[u8]) -> bool {
    bytes.len() == GUESS_BYTES
        && bytes
            .iter()
            .all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'))
}

/// Whether bare deflate may begin so (RFC 1951 3.2.3), with something in it.
pub(super) fn is_deflate(bytes: &[u8]) -> bool {
    !matches!(
        blocks(&mut BitReader::of(bytes), &mut GuessedOutput::default()),
        Err(PrefixEnd::Wrong)
    )
}

/// Whether bare deflate begins so of which all is there: a block that chance hardly makes,
/// or as much as a credential takes.
pub(super) fn is_whole_deflate(bytes: &[u8]) -> bool {
    let mut made = GuessedOutput::default();
    let end = blocks(&mut BitReader::of(bytes), &mut made);
    let is_much =
        made.bytes >= limits::DEFLATED_BYTES_MIN || made.longest >= limits::DEFLATED_TEXT_MIN;
    match end {
        Ok(GuessEnd::Fixed) | Err(PrefixEnd::Short) => is_much,
        Ok(GuessEnd::Other) => true,
        Err(PrefixEnd::Wrong) => false,
    }
}

/// Whether these are data of zlib with a preset dictionary, all of them or as many as tell it;
/// `None` where more are needed. What is copied may stand in the dictionary, so that chance
/// makes fixed codes more often: they are as long as other codes, or end with the checksum.
pub(super) fn is_with_dictionary(bytes: &[u8], wait: Wait) -> Option<bool> {
    const CHECKSUM_BYTES: usize = 4;
    let here = bytes.get(..limits::CODES_LOOK_BYTES).unwrap_or(bytes);
    let mut made = GuessedOutput {
        before: 1 << 15,
        ..GuessedOutput::default()
    };
    let mut bits = BitReader::of(here);
    match blocks(&mut bits, &mut made) {
        Ok(GuessEnd::Other) => Some(true),
        Ok(GuessEnd::Fixed) => {
            let is_aligned = bits.pad().is_ok();
            let end = bits.place().saturating_add(CHECKSUM_BYTES);
            match end.cmp(&bytes.len()) {
                _ if !is_aligned => None,
                Ordering::Less => Some(false),
                Ordering::Equal => (wait == Wait::Over).then_some(true),
                Ordering::Greater => None,
            }
        }
        Err(PrefixEnd::Wrong) => Some(false),
        Err(PrefixEnd::Short) => (here.len() == limits::CODES_LOOK_BYTES).then_some(true),
    }
}

/// Whether Brotli begins so where the content of a part does.
pub(super) fn looks_like_brotli(bytes: &[u8], wait: Wait) -> DeflateLooks {
    let is_right = match wait {
        Wait::Long if bytes.len() < GUESS_BYTES => return DeflateLooks::Short,
        Wait::Long | Wait::Short => is_brotli(bytes),
        Wait::Over => is_whole_brotli(bytes),
    };
    if is_right {
        DeflateLooks::Right
    } else {
        DeflateLooks::Wrong
    }
}

/// What a look at bytes says that may begin bare deflate behind other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeflateLooks {
    /// More bytes are needed.
    Short,
    /// It is none.
    Wrong,
    /// Chance makes few of them.
    Right,
}

/// Whether bare deflate begins so behind other bytes, where chance begins often.
pub(super) fn looks_deflated(bytes: &[u8], wait: Wait) -> DeflateLooks {
    let Some(first) = bytes.first() else {
        return DeflateLooks::Short;
    };
    // One block with fixed codes says with each symbol whether it is one; others need the
    // whole of their codes.
    let most = if first >> 1 & 3 == 1 {
        limits::FIXED_LOOK_BYTES
    } else {
        limits::CODES_LOOK_BYTES
    };
    let here = bytes.get(..most).unwrap_or(bytes);
    let mut made = GuessedOutput::default();
    let end = blocks(&mut BitReader::of(here), &mut made);
    let is_much =
        made.bytes >= limits::DEFLATED_BYTES_MIN || made.longest >= limits::DEFLATED_TEXT_MIN;
    match end {
        Ok(GuessEnd::Other) => DeflateLooks::Right,
        Ok(GuessEnd::Fixed) if is_much => DeflateLooks::Right,
        Err(PrefixEnd::Wrong) | Ok(GuessEnd::Fixed) => DeflateLooks::Wrong,
        Err(PrefixEnd::Short) if here.len() == most => DeflateLooks::Right,
        Err(PrefixEnd::Short) => match wait {
            Wait::Long => DeflateLooks::Short,
            Wait::Short => DeflateLooks::Right,
            Wait::Over if is_much => DeflateLooks::Right,
            Wait::Over => DeflateLooks::Wrong,
        },
    }
}

/// With what a look at blocks ended.
enum GuessEnd {
    /// The last block, which had the fixed codes.
    Fixed,
    /// The beginning of one that has others, or none.
    Other,
}

/// What comes out of blocks with the fixed codes.
#[derive(Default)]
struct GuessedOutput {
    /// So many bytes.
    bytes: u32,
    /// How many of the last ones are text, or were made before,
    text: u32,
    /// and how many at most were so far.
    longest: u32,
    /// Bytes of a dictionary, which stand before them.
    before: u32,
}

impl GuessedOutput {
    fn literal(&mut self, value: u32) {
        let is_text = matches!(value, 0x20..=0x7e);
        self.bytes = self.bytes.saturating_add(1);
        self.text = if is_text {
            self.text.saturating_add(1)
        } else {
            0
        };
        self.longest = self.longest.max(self.text);
    }

    fn copy(&mut self, length: u32) {
        self.bytes = self.bytes.saturating_add(length);
        self.text = self.text.saturating_add(length);
        self.longest = self.longest.max(self.text);
    }
}

/// Reads the first blocks, and counts what comes out of them.
fn blocks(bits: &mut BitReader<'_>, made: &mut GuessedOutput) -> Read<GuessEnd> {
    loop {
        let is_last = bits.bit()? == 1;
        match bits.take(2)? {
            0 => {
                // What is stored is looked at as it stands.
                bits.pad()?;
                let length = bits.take(16)?;
                let is_right = length ^ bits.take(16)? == 0xffff;
                return is_right.then_some(GuessEnd::Other).ok_or(PrefixEnd::Wrong);
            }
            1 => fixed(bits, made)?,
            2 => return lengths(bits).map(|()| GuessEnd::Other),
            _ => return Err(PrefixEnd::Wrong),
        }
        if is_last {
            return (made.bytes > 0)
                .then_some(GuessEnd::Fixed)
                .ok_or(PrefixEnd::Wrong);
        }
    }
}

/// Goes through a block with the fixed codes (RFC 1951 3.2.6), and counts what comes out.
fn fixed(bits: &mut BitReader<'_>, made: &mut GuessedOutput) -> Read<()> {
    loop {
        let mut code = bits.code(7)?;
        if code > 0b001_0111 {
            code = (code << 1) | bits.bit()?;
            if code < 0b1100_0000 {
                made.literal(code.saturating_sub(0b0011_0000));
                continue;
            }
            if code >= 0b1100_1000 {
                bits.bit()?;
                made.literal(u32::MAX);
                continue;
            }
            // 280 to 287.
            code = code.saturating_sub(0b1100_0000).saturating_add(24);
        }
        // 256 and those above, as numbers from 0.
        let (base, extra) = match code {
            0 => return Ok(()),
            1..=8 => (code.saturating_add(2), 0),
            9..=28 => {
                let (extra, part) = (code.saturating_sub(5) / 4, code.saturating_sub(5) % 4);
                let base = part.saturating_add(4) << extra;
                (base.saturating_add(3), extra)
            }
            29 => (258, 0),
            _ => return Err(PrefixEnd::Wrong),
        };
        let length = base.saturating_add(bits.take(extra)?);
        let code = bits.code(5)?;
        let (base, extra) = match code {
            0..=3 => (code.saturating_add(1), 0),
            4..=29 => {
                let extra = (code >> 1).saturating_sub(1);
                let base = ((code & 1) | 2) << extra;
                (base.saturating_add(1), extra)
            }
            _ => return Err(PrefixEnd::Wrong),
        };
        let known = made.bytes.saturating_add(made.before);
        (base.saturating_add(bits.take(extra)?) <= known)
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        made.copy(length);
    }
}

/// The order in which the lengths of the code for lengths stand (RFC 1951 3.2.7).
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Reads the codes of a block that has its own (RFC 1951 3.2.7): each has to be whole, or
/// of one symbol.
fn lengths(bits: &mut BitReader<'_>) -> Read<()> {
    let literals = usize::try_from(bits.take(5)?.saturating_add(257)).unwrap_or_default();
    (literals <= 286).then_some(()).ok_or(PrefixEnd::Wrong)?;
    let distances = usize::try_from(bits.take(5)?.saturating_add(1)).unwrap_or_default();
    let count = usize::try_from(bits.take(4)?).unwrap_or_default();
    let mut of_lengths = [0_u8; ORDER.len()];
    for symbol in ORDER.into_iter().take(count.saturating_add(4)) {
        let length = u8::try_from(bits.take(3)?).unwrap_or_default();
        *of_lengths.get_mut(symbol).ok_or(PrefixEnd::Wrong)? = length;
    }
    // With one length only no code of 257 symbols or more is whole.
    let is_one = of_lengths.iter().filter(|length| **length > 0).count() < 2;
    (!is_one && is_whole(&of_lengths))
        .then_some(())
        .ok_or(PrefixEnd::Wrong)?;
    let of_lengths = Code::of(&of_lengths);
    let all = literals.saturating_add(distances);
    let mut lengths = [0_u8; 286 + 32];
    let (mut at, mut before) = (0_usize, 0_u8);
    while at < all {
        let (length, count) = match of_lengths.next(bits)? {
            16 => (before, bits.take(2)?.saturating_add(3)),
            17 => (0, bits.take(3)?.saturating_add(3)),
            18 => (0, bits.take(7)?.saturating_add(11)),
            length => (u8::try_from(length).unwrap_or_default(), 1),
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        (count <= all.saturating_sub(at))
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        let behind = at.saturating_add(count);
        let here = lengths.get_mut(at..behind).ok_or(PrefixEnd::Wrong)?;
        here.fill(length);
        (at, before) = (behind, length);
    }
    let (of_literals, of_distances) = lengths.split_at_checked(literals).unwrap_or_default();
    let ends = of_literals.get(256).is_some_and(|length| *length > 0);
    (ends && is_whole(of_literals) && is_whole(of_distances))
        .then_some(())
        .ok_or(PrefixEnd::Wrong)
}

/// Whether lengths make a whole code, or one of at most one symbol.
fn is_whole(lengths: &[u8]) -> bool {
    let (mut used, mut sum) = (0_u32, 0_u32);
    for length in lengths.iter().filter(|length| **length > 0) {
        let part = 1_u32 << LENGTH_MAX.saturating_sub(usize::from(*length));
        (used, sum) = (used.saturating_add(1), sum.saturating_add(part));
    }
    used <= 1 || sum == 1 << LENGTH_MAX
}

/// What a close look says of what may begin behind other bytes.
pub(super) fn looks(magic: Magic, view: &View<'_>, at: u64) -> DeflateLooks {
    let here = view.so_far(at, view.end());
    let wait = match view.until {
        LayerExtent::Step => Wait::Long,
        // Of a header alone nothing can be said; what follows it is seen with it.
        LayerExtent::Flush if here.len() < limits::FLUSHED_LOOK_BYTES => {
            return DeflateLooks::Short;
        }
        LayerExtent::Flush => Wait::Short,
        LayerExtent::End => Wait::Over,
    };
    match magic {
        Magic::Zlib => looks_deflated(here.get(2..).unwrap_or_default(), wait),
        Magic::Brotli => looks_like_brotli(here, wait),
        _ => looks_deflated(here, wait),
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec;
    use proptest::prelude::*;

    use super::*;

    /// A token and words around it, compressed elsewhere, with a window of 16 MiB and with
    /// one of 64 KiB.
    const BROTLI: [&str; 2] = [
        "1f6c00a0e5b961aa8478fc2d31159c260d4cd8800387021a74b30560d880830ce296ebdbe041fdab7a9f7c\
         12240e31e5525b1f536db1614546c04693e3",
        "6239008028b82dd585c8c15bba1be001772b2ea812694c95d9011b63c3f11b41d057afe0dca85117f809551bf\
         d095dc8baedc779dd0f17526943db163ad7a1d186580cf02f52ea0cdfe697f12d9f1cd3bfe059bf90b54c2d5f\
         fd7e230a",
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = hex.as_bytes().chunks(2);
        let digits = pairs.map(|pair| str::from_utf8(pair).expect("digits"));
        let bytes = digits.map(|two| u8::from_str_radix(two, 16).expect("hexadecimal"));
        bytes.collect()
    }

    #[test]
    fn brotli_of_every_window_may_begin() {
        for hex in BROTLI {
            let bytes = bytes(hex);
            assert!(is_whole_brotli(&bytes), "{hex}");
            for length in 1..bytes.len() {
                assert!(is_brotli(&bytes[..length]), "{length} of {hex}");
            }
        }
    }

    #[test]
    fn text_and_nothing_are_not_compressed() {
        let texts: [&[u8]; 5] = [
            b"",
            b"{\"model\":\"of some size\",\"messages\":[]}",
            b"<html><head><title>A page</title></head>",
            b"name=value&other=more&third=something",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0",
        ];
        for text in texts {
            assert!(!is_unmarked(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_deflate_makes_may_begin_so(
            text in proptest::collection::vec(b' '..=b'~', 12..3000),
            bytes in proptest::collection::vec(any::<u8>(), 64..3000),
            level in 0_u8..=10,
            cut in 0_usize..3000,
        ) {
            for content in [text, bytes] {
                let made = compress_to_vec(&content, level);
                prop_assert!(is_whole_deflate(&made), "level {level}");
                prop_assert!(is_deflate(&made[..cut.min(made.len())]), "level {level}");
            }
        }
    }
}
