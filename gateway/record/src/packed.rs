//! Compressed records: gzip (RFC 1952) of blocks, each a member of its own that any gzip
//! reads, with a summary of its lines in the header (FEXTRA, as BGZF has the length there):
//! how long the member is, when its records were made, and a Bloom filter of what they are
//! about. So a search leaves out blocks without opening them, and opens others side by
//! side. Bytes in, bytes out; reads no file.
//!
//! A summary only says where nothing is to be found. It is not part of the chain: whoever
//! verifies a record makes it again and compares.

use std::borrow::Cow;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::Record;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_BYTES_WANTED};

mod bloom;

use bloom::{BLOOM_BYTES, Bloom};

/// Bytes of a member before its compressed content.
pub const BLOCK_HEAD_BYTES: usize = FIXED_BYTES + EXTRA_BYTES;

/// The header of gzip up to the length of FEXTRA, and that length.
const FIXED_BYTES: usize = 12;
/// gzip, deflate, FEXTRA alone, no time, no hint, Unix.
const FIXED: [u8; 10] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3];
/// The name of our subfield, and how it is to be read.
const SUBFIELD: [u8; 2] = *b"OR";
const FORM: u8 = 1;
/// Name, length and form; two lengths and two times; the filter.
const EXTRA_BYTES: usize = 2 + 2 + 1 + 4 + 4 + 8 + 8 + BLOOM_BYTES;
/// CRC32 and length, behind the content.
const TAIL_BYTES: usize = 8;
/// How hard deflate looks: beyond this it takes twice the time for some percent.
const LEVEL: u8 = 6;

/// What a block says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHead {
    /// Bytes of the whole member.
    pub member_bytes: u32,
    /// Bytes of its lines.
    pub plain_bytes: u32,
    /// Milliseconds from 1970 on of its first and last record in time.
    pub times: (u64, u64),
    bloom: Bloom,
}

/// Something that records are asked for, as summaries know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockTerm<'a> {
    /// The host itself.
    Host(&'a str),
    /// A host below this name.
    Below(&'a str),
    /// The kind of a record.
    Kind(&'a str),
    /// The verdict.
    Verdict(&'a str),
    /// The name of the run.
    Sandbox(&'a str),
    /// The program, by the last part of its path.
    Program(&'a str),
    /// Let through in spite of the rules.
    Monitored,
}

impl BlockTerm<'_> {
    fn hash(self) -> u64 {
        let (sign, text) = match self {
            Self::Host(text) => (b'h', text),
            Self::Below(text) => (b'b', text),
            Self::Kind(text) => (b'k', text),
            Self::Verdict(text) => (b'v', text),
            Self::Sandbox(text) => (b's', text),
            Self::Program(text) => (b'p', text),
            Self::Monitored => (b'm', ""),
        };
        bloom::hash(sign, text.as_bytes())
    }
}

/// Why lines cannot be a block, or a block not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockFault {
    /// A line is longer than any record.
    #[error("a line is longer than any record")]
    TooLong,
    /// Its head is none of ours.
    #[error("no block of a record")]
    Foreign,
    /// Its content is not what its head says.
    #[error("a block is damaged")]
    Damaged,
}

/// How many of these bytes are the next block: whole lines, as many as one block should
/// have. 0 where no line ends in them yet.
///
/// # Errors
/// [`BlockFault::TooLong`]
pub fn block_length(lines: &[u8]) -> Result<usize, BlockFault> {
    let ends = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
    let wanted = lines.get(..BLOCK_BYTES_WANTED).unwrap_or(lines);
    if let Some(end) = ends(wanted) {
        return Ok(end.saturating_add(1));
    }
    match lines.iter().position(|byte| *byte == b'\n') {
        Some(end) if end < BLOCK_BYTES_MAX => Ok(end.saturating_add(1)),
        None if lines.len() < BLOCK_BYTES_MAX => Ok(0),
        Some(_) | None => Err(BlockFault::TooLong),
    }
}

/// Makes a block of lines, as many as [`block_length`] says, or the last ones of a file.
///
/// # Errors
/// [`BlockFault::TooLong`]
pub fn pack_block(lines: &[u8]) -> Result<Vec<u8>, BlockFault> {
    if lines.len() > BLOCK_BYTES_MAX {
        return Err(BlockFault::TooLong);
    }
    let length = |count: usize| u32::try_from(count).map_err(|_| BlockFault::TooLong);
    let content = compress_to_vec(lines, LEVEL);
    let member = BLOCK_HEAD_BYTES
        .saturating_add(content.len())
        .saturating_add(TAIL_BYTES);
    let (times, bloom) = summary(lines);
    let extra = u16::try_from(EXTRA_BYTES).map_err(|_| BlockFault::TooLong)?;
    let own = u16::try_from(EXTRA_BYTES.saturating_sub(4)).map_err(|_| BlockFault::TooLong)?;
    let mut block = Vec::with_capacity(member);
    block.extend_from_slice(&FIXED);
    block.extend_from_slice(&extra.to_le_bytes());
    block.extend_from_slice(&SUBFIELD);
    block.extend_from_slice(&own.to_le_bytes());
    block.push(FORM);
    block.extend_from_slice(&length(member)?.to_le_bytes());
    block.extend_from_slice(&length(lines.len())?.to_le_bytes());
    block.extend_from_slice(&times.0.to_le_bytes());
    block.extend_from_slice(&times.1.to_le_bytes());
    block.extend_from_slice(bloom.bytes());
    block.extend_from_slice(&content);
    block.extend_from_slice(&crc32(lines).to_le_bytes());
    block.extend_from_slice(&length(lines.len())?.to_le_bytes());
    Ok(block)
}

impl BlockHead {
    /// Reads the first bytes of a member; at most what a block may have is believed.
    ///
    /// # Errors
    /// [`BlockFault::Foreign`]: some other gzip, or none.
    pub fn parse(bytes: &[u8]) -> Result<Self, BlockFault> {
        let read = || {
            let rest = bytes.strip_prefix(&FIXED)?;
            let (extra, rest) = rest.split_first_chunk::<2>()?;
            let is_ours = usize::from(u16::from_le_bytes(*extra)) == EXTRA_BYTES;
            let rest = rest.strip_prefix(&SUBFIELD).filter(|_| is_ours)?;
            let (own, rest) = rest.split_first_chunk::<2>()?;
            let is_ours = usize::from(u16::from_le_bytes(*own)) == EXTRA_BYTES - 4;
            let rest = rest.strip_prefix(&[FORM]).filter(|_| is_ours)?;
            let (member, rest) = rest.split_first_chunk::<4>()?;
            let (plain, rest) = rest.split_first_chunk::<4>()?;
            let (first, rest) = rest.split_first_chunk::<8>()?;
            let (last, rest) = rest.split_first_chunk::<8>()?;
            let head = Self {
                member_bytes: u32::from_le_bytes(*member),
                plain_bytes: u32::from_le_bytes(*plain),
                times: (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
                bloom: Bloom::of(rest.get(..BLOOM_BYTES)?)?,
            };
            head.is_possible().then_some(head)
        };
        read().ok_or(BlockFault::Foreign)
    }

    /// Whether its lengths are those of a block.
    fn is_possible(&self) -> bool {
        let fits = |bytes: u32, most: usize| usize::try_from(bytes).is_ok_and(|own| own <= most);
        // What cannot be compressed grows by a little.
        let most = BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 64 + BLOCK_HEAD_BYTES + TAIL_BYTES;
        let least = BLOCK_HEAD_BYTES + TAIL_BYTES;
        fits(self.plain_bytes, BLOCK_BYTES_MAX)
            && fits(self.member_bytes, most)
            && !fits(self.member_bytes, least)
    }

    /// Whether one of its records may be about this.
    pub fn may_have(&self, term: BlockTerm<'_>) -> bool {
        self.bloom.may_have(term.hash())
    }

    /// The lines of the whole member, of which this is the head.
    ///
    /// # Errors
    /// [`BlockFault::Damaged`]
    pub fn unpack(&self, member: &[u8]) -> Result<Vec<u8>, BlockFault> {
        let end = member.len().checked_sub(TAIL_BYTES);
        let content = end.and_then(|end| member.get(BLOCK_HEAD_BYTES..end));
        let content = content.ok_or(BlockFault::Damaged)?;
        let plain = usize::try_from(self.plain_bytes).map_err(|_| BlockFault::Damaged)?;
        let lines = decompress_to_vec_with_limit(content, plain.min(BLOCK_BYTES_MAX));
        let lines = lines.map_err(|_| BlockFault::Damaged)?;
        (lines.len() == plain)
            .then_some(lines)
            .ok_or(BlockFault::Damaged)
    }

    /// Whether it says of these lines what they are.
    pub fn is_of(&self, lines: &[u8]) -> bool {
        let (times, bloom) = summary(lines);
        self.times == times && self.bloom == bloom
    }
}

/// When records were made, and what they are about.
fn summary(lines: &[u8]) -> ((u64, u64), Bloom) {
    let mut bloom = Bloom::default();
    let mut times = (u64::MAX, 0_u64);
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(record) = Record::parse(line) else {
            continue;
        };
        let at = record.at();
        times = (times.0.min(at), times.1.max(at));
        let host: Cow<'_, str> = Cow::Borrowed(record.host());
        let mut add = |term: BlockTerm<'_>| bloom.add(term.hash());
        add(BlockTerm::Host(&host));
        let mut rest: &str = &host;
        while let Some((_, parent)) = rest.split_once('.') {
            add(BlockTerm::Below(parent));
            rest = parent;
        }
        add(BlockTerm::Kind(record.kind.as_str()));
        add(BlockTerm::Verdict(record.verdict.token()));
        add(BlockTerm::Sandbox(&record.sandbox));
        add(BlockTerm::Program(record.program()));
        if record.is_monitored() {
            add(BlockTerm::Monitored);
        }
    }
    (times, bloom)
}

/// CRC-32 of gzip (RFC 1952, 8).
fn crc32(bytes: &[u8]) -> u32 {
    let mut value = !0_u32;
    for byte in bytes {
        let place = usize::from(u8::try_from(value & 0xff).unwrap_or(0) ^ byte);
        value = (value >> 8) ^ TABLE.get(place).copied().unwrap_or(0);
    }
    !value
}

const TABLE: [u32; 256] = {
    let mut table = [0_u32; 256];
    let mut rest: &mut [u32] = &mut table;
    let mut number = 0_u32;
    while let Some((slot, others)) = rest.split_first_mut() {
        let mut value = number;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
            bit += 1;
        }
        *slot = value;
        number += 1;
        rest = others;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<u8> {
        let line = |number: usize| {
            format!(
                "{{\"v\":1,\"seq\":{},\"prev\":\"x\",\"time\":\"2026-11-2{}T00:00:00.000Z\",\"run\":\"r\",\
                 \"sandbox\":\"s\",\"kind\":\"connect\",\"verdict\":\"deny\",\
                 \"target\":\"a{number}.example.org:443\"}}\n",
                number + 1,
                number % 8,
            )
        };
        (0..count).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn a_block_is_gzip_and_gives_its_lines_back() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let plain = lines(500);
        let block = pack_block(&plain).unwrap();
        let head = BlockHead::parse(&block).unwrap();
        assert_eq!(usize::try_from(head.member_bytes).unwrap(), block.len());
        assert_eq!(head.unpack(&block).as_ref(), Ok(&plain));
        assert!(head.is_of(&plain) && !head.is_of(&lines(499)));
        assert!(block.len() < plain.len() / 4 + BLOCK_HEAD_BYTES);
        for place in [0, 3, 10, 13, 16, 20, 24] {
            let mut changed = block.clone();
            changed[place] ^= 0x80;
            assert!(BlockHead::parse(&changed).is_err(), "{place}");
        }
        assert!(BlockHead::parse(&block[..BLOCK_HEAD_BYTES - 1]).is_err());
    }

    #[test]
    fn a_summary_never_leaves_out_what_is_there() {
        let plain = lines(2000);
        let head = BlockHead::parse(&pack_block(&plain).unwrap()).unwrap();
        let day = |number: u64| 1_795_132_800_000 + number * 86_400_000;
        assert_eq!(head.times, (day(0), day(7)));
        for number in 0..2000 {
            assert!(head.may_have(BlockTerm::Host(&format!("a{number}.example.org"))));
        }
        let there = [
            BlockTerm::Below("example.org"),
            BlockTerm::Below("org"),
            BlockTerm::Kind("connect"),
            BlockTerm::Verdict("deny"),
            BlockTerm::Sandbox("s"),
        ];
        assert!(there.into_iter().all(|term| head.may_have(term)));
        let absent = |number: &u32| !head.may_have(BlockTerm::Host(&format!("b{number}.test")));
        assert!((0..1000).filter(absent).count() > 900);
        assert!(!head.may_have(BlockTerm::Verdict("allow")));
        assert!(!head.may_have(BlockTerm::Monitored));
    }

    #[test]
    fn blocks_end_where_lines_do_and_are_bounded() {
        let plain = lines(20_000);
        let mut rest = plain.as_slice();
        let mut blocks = 0;
        while !rest.is_empty() {
            let length = block_length(rest).unwrap();
            assert!(length > 0 && length <= BLOCK_BYTES_WANTED);
            assert_eq!(rest[length - 1], b'\n');
            rest = &rest[length..];
            blocks += 1;
        }
        assert!(blocks > 2, "{blocks}");
        assert_eq!(block_length(b"no end"), Ok(0));
        let long = vec![b'x'; BLOCK_BYTES_MAX + 1];
        assert_eq!(block_length(&long), Err(BlockFault::TooLong));
        assert_eq!(pack_block(&long), Err(BlockFault::TooLong));
    }
}
