//! Targets: every decompressor, fed piece by piece, beside one that has all of the
//! bytes. What comes out is the same however the bytes are cut, and no byte that a
//! reader could take out of them, damaged or not, stays unseen.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is missing is a fault of the target"
)]

use std::io::Read;

use brotli_decompressor::Decompressor;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
use ruzstd::decoding::StreamingDecoder;

use crate::coding::Coding;
use crate::fuzz::{pieces, split};
use crate::limits;
use crate::magic::{self, Magic, OpaqueFormat};
use crate::trail::Trail;

use super::guess::{self, DeflateLooks};
use super::recognise::{self, Recognition, Wait};
use super::seek;
use super::unpack::{Unpack, UnpackFault, Unpacked};

/// Bytes that are taken out at most.
const MADE_BYTES_MAX: usize = 1 << 16;

/// What came out, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    made: Vec<u8>,
    /// How many bytes had come out at each border.
    borders: Vec<usize>,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    /// More could come.
    Open,
    /// Over, behind so many bytes.
    Done(usize),
    /// It stopped making sense.
    Fault(UnpackFault),
}

/// Feeds pieces to a decompressor.
fn unpack(mut unpack: Box<dyn Unpack>, pieces: &[&[u8]]) -> Outcome {
    let (mut made, mut borders, mut fed) = (Vec::new(), Vec::new(), 0);
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let progress = unpack.push(piece, &mut |one| {
            match one {
                Unpacked::Border => borders.push(made.len()),
                Unpacked::Bytes(bytes) => {
                    assert!(!bytes.is_empty(), "nothing came out");
                    let room = MADE_BYTES_MAX - made.len();
                    made.extend(bytes.iter().take(room));
                }
            }
            made.len() < MADE_BYTES_MAX
        });
        let end = match progress {
            Ok(progress) if progress.is_done => End::Done(fed + progress.used),
            Ok(progress) => {
                assert_eq!(progress.used, piece.len(), "all is taken until the end");
                fed += piece.len();
                continue;
            }
            Err(fault) => End::Fault(fault),
        };
        return Outcome { made, borders, end };
    }
    unpack.finish(&mut |one| {
        if let Unpacked::Bytes(bytes) = one {
            let room = MADE_BYTES_MAX - made.len();
            made.extend(bytes.iter().take(room));
        }
        true
    });
    let end = End::Open;
    Outcome { made, borders, end }
}

/// Unpacks an input, and holds it against itself in one piece.
fn unpacked(input: &[u8], coding: Coding) -> (&[u8], Outcome) {
    let (cut, bytes) = split(input);
    let outcome = unpack(declared(coding), &pieces(cut, bytes));
    let whole = unpack(declared(coding), &[bytes]);
    if coding == Coding::Brotli && outcome.end == End::Fault(UnpackFault::Damaged) {
        // Of a piece with damage in it nothing comes out, and the damage is told.
        assert_eq!(whole.end, outcome.end, "cut and whole");
        assert_common(&whole.made, &outcome.made);
    } else {
        assert_eq!(outcome, whole, "cut and whole");
    }
    (bytes, outcome)
}

/// Neither says anything that the other does not, as far as it goes.
fn assert_common(one: &[u8], other: &[u8]) {
    let length = one.len().min(other.len());
    assert_eq!(one.get(..length), other.get(..length), "what came out");
}

fn declared(coding: Coding) -> Box<dyn Unpack> {
    recognise::one(coding).expect("a decompressor")
}

/// What a reader takes out that has all bytes at once.
struct Naive {
    made: Vec<u8>,
    /// Bytes it took, where it came to the end.
    used: Option<usize>,
}

/// Deflate, bare or as zlib.
fn inflated(bytes: &[u8], flags: u32) -> Naive {
    let mut made = vec![0; MADE_BYTES_MAX];
    let flags = flags | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut state = DecompressorOxide::new();
    let (status, used, length) = decompress(&mut state, bytes, &mut made, 0, flags);
    made.truncate(length);
    let is_done = matches!(status, TINFLStatus::Done | TINFLStatus::Adler32Mismatch);
    let used = is_done.then_some(used);
    Naive { made, used }
}

/// Everything that somebody can read was seen, and the end where he sees it. Of what
/// is damaged more may come out: distances may lead before the beginning.
fn assert_seen(naive: &Naive, outcome: &Outcome, head: usize, tail: usize, length: usize) {
    let Some(used) = naive.used else {
        let seen = outcome.made.get(..naive.made.len());
        assert_eq!(seen, Some(naive.made.as_slice()), "what came out");
        return;
    };
    assert_eq!(naive.made, outcome.made, "what came out");
    let is_cut = head + used + tail > length;
    let is_full = outcome.made.len() == MADE_BYTES_MAX;
    if !is_full {
        let end = if is_cut {
            End::Open
        } else {
            End::Done(head + used + tail)
        };
        assert_eq!(outcome.end, end);
    }
}

/// Where the content of a member of gzip begins (RFC 1952 2.3).
fn gzip_head(bytes: &[u8]) -> Option<usize> {
    let flags = *bytes.get(3)?;
    // The flags that mean nothing have to be zero, and some programs read on where they are not.
    if !bytes.starts_with(&[0x1f, 0x8b, 8]) {
        return None;
    }
    let mut at = 10;
    if flags & 4 != 0 {
        let length = bytes.get(at..at + 2)?.try_into().map(u16::from_le_bytes);
        at += 2 + usize::from(length.unwrap_or_default());
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            at += 1 + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        }
    }
    at += if flags & 2 == 0 { 0 } else { 2 };
    (at <= bytes.len()).then_some(at)
}

/// One member of gzip.
pub(crate) fn gzip(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::Gzip);
    let Some(head) = gzip_head(bytes) else {
        assert!(outcome.made.is_empty() && !matches!(outcome.end, End::Done(_)));
        return;
    };
    let naive = inflated(bytes.get(head..).unwrap_or_default(), 0);
    assert_seen(&naive, &outcome, head, 8, bytes.len());
}

/// zlib.
pub(crate) fn zlib(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::Zlib);
    let naive = inflated(bytes, inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER);
    assert_seen(&naive, &outcome, 0, 0, bytes.len());
    // What holds a credential is found and opened behind other bytes as well.
    let is_much = naive.made.len() >= limits::UNMARKED_BYTES_MIN;
    if let Some((_, behind)) = bytes.split_at_checked(2)
        && naive.used.is_some()
        && is_much
        && recognise::is_zlib(bytes)
    {
        assert!(!seek::is_hopeless(behind), "it is looked at");
        assert_eq!(
            guess::looks_deflated(behind, Wait::Over),
            DeflateLooks::Right
        );
    }
}

/// Bare deflate.
pub(crate) fn deflate(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::Deflate);
    assert_seen(&inflated(bytes, 0), &outcome, 0, 0, bytes.len());
}

/// Takes out what a reader gives, until its end or a fault.
fn read(mut reader: impl Read) -> (Vec<u8>, bool) {
    let (mut made, mut space) = (Vec::new(), [0; 1024]);
    loop {
        match reader.read(&mut space) {
            Ok(0) => return (made, true),
            Ok(count) => made.extend(space.iter().take(count)),
            Err(_) => return (made, false),
        }
        if made.len() >= MADE_BYTES_MAX {
            made.truncate(MADE_BYTES_MAX);
            return (made, false);
        }
    }
}

/// Brotli.
pub(crate) fn brotli(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::Brotli);
    if outcome.end != End::Fault(UnpackFault::Memory) {
        let (made, is_whole) = read(Decompressor::new(bytes, 4096));
        assert_common(&made, &outcome.made);
        assert!(
            !is_whole || made.len() == outcome.made.len(),
            "less came out"
        );
    }
}

/// One frame of Zstandard.
pub(crate) fn zstd(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::Zstd);
    if matches!(
        outcome.end,
        End::Fault(UnpackFault::Memory | UnpackFault::Unknown)
    ) {
        return;
    }
    let most = limits::DECODER_WINDOW_BYTES_MAX;
    if let Ok(reader) = StreamingDecoder::new_with_max_window_size(bytes, most) {
        let (made, is_whole) = read(reader);
        assert_common(&made, &outcome.made);
        assert!(
            !is_whole || made.len() == outcome.made.len(),
            "less came out"
        );
    }
}

/// A pack of git.
pub(crate) fn pack(input: &[u8]) {
    let (bytes, outcome) = unpacked(input, Coding::GitPack);
    let mut made = Vec::new();
    let objects = objects(bytes, &mut made);
    made.truncate(MADE_BYTES_MAX);
    let seen = outcome.made.get(..made.len());
    assert_eq!(seen, Some(made.as_slice()), "what came out");
    if let Some(objects) = objects.filter(|_| made.len() < MADE_BYTES_MAX) {
        assert_eq!(made.len(), outcome.made.len(), "more came out");
        assert_eq!(objects, outcome.borders.len(), "objects");
        assert!(matches!(outcome.end, End::Done(_)), "{:?}", outcome.end);
    }
}

/// Reads the objects of a pack one after the other (gitformat-pack(5)), and says how
/// many there are, where all are whole.
fn objects(bytes: &[u8], made: &mut Vec<u8>) -> Option<usize> {
    let count = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let mut rest = bytes.get(12..)?;
    for _ in 0..count {
        let kind = rest.first()? >> 4 & 7;
        rest = number(rest)?;
        rest = match kind {
            1..=4 => rest,
            6 => number(rest)?,
            7 => rest.get(20..)?,
            _ => return None,
        };
        let object = inflated(rest, inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER);
        match kind {
            6 | 7 => added(&object.made, made),
            _ => made.extend(&object.made),
        }
        rest = rest.get(object.used?..)?;
    }
    usize::try_from(count).ok()
}

/// What follows a number of variable length, of ten bytes at most.
fn number(bytes: &[u8]) -> Option<&[u8]> {
    let last = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    bytes.get(last + 1..)
}

/// What a delta adds.
fn added(delta: &[u8], made: &mut Vec<u8>) {
    let mut rest = delta;
    for _ in 0..2 {
        let Some(last) = rest.iter().position(|byte| byte & 0x80 == 0) else {
            return;
        };
        rest = rest.get(last + 1..).unwrap_or_default();
    }
    while let Some((first, behind)) = rest.split_first() {
        let length = usize::from(*first);
        let used = if first & 0x80 == 0 {
            made.extend(behind.iter().take(length));
            length
        } else {
            (first & 0x7f).count_ones() as usize
        };
        rest = behind.get(used..).unwrap_or_default();
    }
}

/// An entry of a zip archive behind its beginning: stored, or deflated.
pub(crate) fn zip(input: &[u8]) {
    let (cut, bytes) = split(input);
    let begin = || match recognise::recognise(Magic::Zip, bytes, &Trail::default(), Wait::Long) {
        Recognition::Begin(begin) | Recognition::Perhaps(begin) => Some(begin),
        Recognition::More
        | Recognition::Other
        | Recognition::Unreadable(_)
        | Recognition::Behind(_) => None,
    };
    let Some(data) = begin().and_then(|begin| usize::try_from(begin.data).ok()) else {
        return;
    };
    let body = bytes.get(data..).unwrap_or_default();
    let unpacked = |pieces: &[&[u8]]| begin().map(|begin| unpack(begin.unpack, pieces));
    let (Some(outcome), Some(whole)) = (unpacked(&pieces(cut, body)), unpacked(&[body])) else {
        return;
    };
    assert_eq!(outcome.made, whole.made, "cut and whole");
    if bytes.get(8) == Some(&8) {
        assert_seen(&inflated(body, 0), &outcome, 0, 0, body.len());
        return;
    }
    let length = bytes.get(18..22).and_then(|four| four.try_into().ok());
    let length = length.map_or(0, u32::from_le_bytes) as usize;
    if length > 0 {
        assert_eq!(outcome.made, body.get(..length).unwrap_or(body));
        return;
    }
    let records = [b"PK\x07\x08", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"];
    let is_record = |four: &[u8]| records.iter().any(|record| *record == four);
    let end = body.windows(4).position(is_record).unwrap_or(body.len());
    let content = body.get(..end).unwrap_or_default();
    assert!(content.starts_with(&outcome.made), "what is no content");
    // Nobody looks on and on for the end.
    assert!(
        outcome.made.len() >= content.len().min(4000),
        "what came out"
    );
}

/// Every beginning is told the same way with more bytes, and only then.
pub(crate) fn beginnings(input: &[u8]) {
    let (kind, bytes) = split(input);
    let magics = [
        Magic::Gzip,
        Magic::Zlib,
        Magic::Zstd,
        Magic::Zip,
        Magic::Pack,
        Magic::Deflate,
        Magic::Brotli,
    ];
    // Those that nobody opens behind them, so that what is kept means what it did.
    let sealed: Vec<Magic> = magic::sealed().map(|(_, magic)| magic).collect();
    let magic = match usize::from(kind).checked_sub(128) {
        Some(place) => sealed[place % sealed.len()],
        None => magics[usize::from(kind) % magics.len()],
    };
    let bytes = bytes.get(..1200).unwrap_or(bytes);
    let trail = Trail::default();
    let tell = |bytes: &[u8]| match recognise::recognise(magic, bytes, &trail, Wait::Long) {
        Recognition::More => None,
        Recognition::Other => Some((0, None)),
        Recognition::Unreadable(reason) => Some((1, Some(format!("{reason}")))),
        Recognition::Behind(bytes) => Some((3, Some(format!("{bytes}")))),
        Recognition::Begin(begin) | Recognition::Perhaps(begin) => {
            let data = begin.data;
            Some((2, Some(format!("{:?} at {data}", begin.trail.inside()))))
        }
    };
    let whole = tell(bytes);
    // Of what has no mark more bytes may show that it is none.
    let may_change = matches!(
        magic,
        Magic::Deflate | Magic::Brotli | Magic::Sealed(OpaqueFormat::Pgp)
    );
    for length in 0..bytes.len() {
        let some = tell(bytes.get(..length).unwrap_or_default());
        assert!(
            some.is_none() || some == whole || (may_change && some != Some((0, None))),
            "{length} bytes: {some:?}, {whole:?}"
        );
    }
}
