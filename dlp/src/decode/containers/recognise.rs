//! What compressed data and archives begin with, and which decompressor that
//! asks for.

use miniz_oxide::DataFormat;

use super::brotli::Brotli;
use super::bzip2::Bzip2;
use super::guess::{
    DeflateLooks, GUESS_BYTES, is_brotli, is_deflate, is_whole_brotli, is_whole_deflate,
    looks_deflated,
};
use super::inflate::{Gzip, Inflate};
use super::lz4::{Lz4, Lz4Format};
use super::lzma::{Lzma, LzmaContainer};
use super::marks;
use super::members::Members;
use super::pack::Pack;
use super::sealed::{self, FormatLook, PacketExtent};
use super::stored::Stored;
use super::unpack::Unpack;
use super::unread;
use super::zstd::Zstd;
use super::{Certainty, entry};
use crate::budget::wide;
use crate::coding::Coding;
use crate::finding::UnscannedReason;
use crate::magic::{Magic, OpaqueFormat};
use crate::trail::Trail;

/// Bytes from the mark in the header of a file in a tar archive to what the file holds.
const TAR_MARK_TO_FILE: u64 = 512 - 257;

/// What is looked for where compressed data may begin, for it has too few bytes that are
/// always the same.
pub(super) const UNMARKED: [Magic; 6] = [
    Magic::Zlib,
    Magic::Deflate,
    Magic::Brotli,
    Magic::Unread,
    Magic::Sealed(OpaqueFormat::Lzma),
    Magic::Sealed(OpaqueFormat::Pgp),
];

/// How many bytes a look may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// As many as make it certain.
    Long,
    /// No more than it cannot do without: what is here wants to leave.
    Short,
    /// There are no more.
    Over,
}

/// What a beginning turned out to be.
pub(super) enum Recognition {
    /// It cannot be said with so few bytes.
    More,
    /// Something else.
    Other,
    /// It is what it looks like, and cannot be read.
    Unreadable(UnscannedReason),
    /// It is what it looks like.
    Begin(CompressedBegin),
    /// It looks like it, but for something that programs do not write and do read.
    Perhaps(CompressedBegin),
    /// Anything may begin so many bytes behind.
    Behind(u64),
}

/// Something to be decompressed.
pub(super) struct CompressedBegin {
    pub(super) unpack: Box<dyn Unpack>,
    pub(super) trail: Trail,
    /// Where its data begin, from the first byte of the beginning.
    pub(super) data: u64,
}

/// A decompressor for a coding, which goes on with what stands behind one stream as programs
/// do; none where nobody here reads it.
pub(super) fn unpack(coding: Coding) -> Option<Box<dyn Unpack>> {
    one(coding).map(|one| Members::of(coding, one))
}

/// The same for one stream.
pub(super) fn one(coding: Coding) -> Option<Box<dyn Unpack>> {
    Some(match coding {
        Coding::Gzip => Box::new(Gzip::new()),
        Coding::Zlib => Box::new(Inflate::new(DataFormat::Zlib)),
        Coding::Deflate => Box::new(Inflate::new(DataFormat::Raw)),
        Coding::Brotli => Box::new(Brotli::new()),
        Coding::Zstd => Box::new(Zstd::new()),
        Coding::GitPack => Box::new(Pack::new()),
        Coding::Bzip2 => Box::new(Bzip2::new()),
        Coding::Xz => Box::new(Lzma::new(LzmaContainer::Xz)),
        Coding::Lzip => Box::new(Lzma::new(LzmaContainer::Lzip)),
        Coding::Lzma => Box::new(Lzma::new(LzmaContainer::Alone)),
        Coding::Lz4 => Box::new(Lz4::new(Lz4Format::Frame)),
        _ => return None,
    })
}

/// How a coding begins, where its beginning says so.
pub(super) fn magic(coding: Coding) -> Option<Magic> {
    match coding {
        Coding::Gzip => Some(Magic::Gzip),
        Coding::Zstd => Some(Magic::Zstd),
        Coding::Deflate => Some(Magic::Deflate),
        Coding::Brotli => Some(Magic::Brotli),
        _ => None,
    }
}

/// What a declared coding means for content that begins so: `deflate` is zlib,
/// and bare by mistake, and receivers take both.
pub(super) fn declared(coding: Coding, bytes: &[u8]) -> Vec<(Coding, Certainty)> {
    match coding {
        Coding::Deflate if is_zlib(bytes) => vec![
            (Coding::Zlib, Certainty::Known),
            (Coding::Deflate, Certainty::Guessed),
        ],
        other => vec![(other, Certainty::Known)],
    }
}

/// Looks at a beginning.
pub(super) fn recognise(magic: Magic, here: &[u8], trail: &Trail, wait: Wait) -> Recognition {
    let plain = |coding: Coding| marked(Some(true), coding, trail);
    match magic {
        Magic::Gzip => match here {
            [_, _, _, flags, _, _, _, _, extra, system, ..] => {
                let is_system = *system <= 13 || *system == 255;
                // Where no block begins behind a header of ten bytes, it is none.
                let is_block = flags & 0x1f != 0 || is_deflate(here.get(10..).unwrap_or_default());
                let is_sane =
                    flags & 0xe0 == 0 && matches!(extra, 0 | 2 | 4) && is_system && is_block;
                match plain(Coding::Gzip) {
                    Recognition::Begin(begin) if !is_sane => Recognition::Perhaps(begin),
                    other => other,
                }
            }
            _ => Recognition::More,
        },
        Magic::Zlib if here.len() < 2 => Recognition::More,
        Magic::Zlib if is_zlib(here) => plain(Coding::Zlib),
        Magic::Deflate | Magic::Brotli
            if here.is_empty() || (wait == Wait::Long && here.len() < GUESS_BYTES) =>
        {
            Recognition::More
        }
        Magic::Deflate if wait == Wait::Over && !is_whole_deflate(here) => Recognition::Other,
        Magic::Deflate if is_deflate(here) => plain(Coding::Deflate),
        Magic::Brotli if wait == Wait::Over && !is_whole_brotli(here) => Recognition::Other,
        Magic::Brotli if is_brotli(here) => plain(Coding::Brotli),
        Magic::Zlib | Magic::Deflate | Magic::Brotli => Recognition::Other,
        Magic::Unread => unread(unread::begins(here, wait)),
        Magic::Zstd => match here.get(4) {
            Some(descriptor) if descriptor & 0x08 == 0 => plain(Coding::Zstd),
            Some(_) => Recognition::Other,
            None => Recognition::More,
        },
        Magic::Pack => match here.get(7) {
            Some(2 | 3) => plain(Coding::GitPack),
            Some(_) => Recognition::Other,
            None => Recognition::More,
        },
        Magic::Bzip2 => marked(marks::bzip2(here), Coding::Bzip2, trail),
        Magic::Xz => marked(marks::xz(here), Coding::Xz, trail),
        Magic::Lzip => marked(marks::lzip(here), Coding::Lzip, trail),
        Magic::Lz4 => marked(marks::lz4(here), Coding::Lz4, trail),
        Magic::Lz4Legacy => match marked(marks::lz4_legacy(here), Coding::Lz4, trail) {
            Recognition::Begin(begin) => Recognition::Begin(CompressedBegin {
                unpack: Box::new(Lz4::new(Lz4Format::Legacy)),
                ..begin
            }),
            other => other,
        },
        Magic::Zip => zip(here, trail),
        Magic::ZipCentral => zip_central(here),
        Magic::Tar => match here.get(5..8) {
            Some(b"\x0000" | b"  \0") => Recognition::Behind(TAR_MARK_TO_FILE),
            Some(_) => Recognition::Other,
            None => Recognition::More,
        },
        Magic::Sealed(format) => match sealed::look(format, here) {
            FormatLook::More => Recognition::More,
            FormatLook::Other if format == OpaqueFormat::Pgp => packet(here, trail, wait),
            FormatLook::Other if is_lzma(format) => rare_lzma(here, trail),
            FormatLook::Other => Recognition::Other,
            FormatLook::It(_) if is_lzma(format) => lzma_alone(here, trail),
            FormatLook::It(reason) => Recognition::Unreadable(reason),
        },
    }
}

/// What begins as data do that no decoder here reads.
fn unread(is: Option<bool>) -> Recognition {
    match is {
        None => Recognition::More,
        Some(true) => Recognition::Unreadable(UnscannedReason::Unopened),
        Some(false) => Recognition::Other,
    }
}

/// What begins with the mark of a coding, by what else its beginning says.
fn marked(is: Option<bool>, coding: Coding, trail: &Trail) -> Recognition {
    match (is, unpack(coding)) {
        (None, _) => Recognition::More,
        (Some(true), Some(unpack)) => Recognition::Begin(CompressedBegin {
            unpack,
            trail: trail.with(coding, None),
            data: 0,
        }),
        _ => Recognition::Other,
    }
}

/// Whether zlib may begin so (RFC 1950 2.2), without a dictionary.
pub(crate) fn is_zlib(bytes: &[u8]) -> bool {
    let [method, flags, ..] = bytes else {
        return false;
    };
    let check = u16::from_be_bytes([*method, *flags]) % 31 == 0;
    check && method & 0x0f == 8 && method >> 4 <= 7 && flags & 0x20 == 0
}

fn is_lzma(format: OpaqueFormat) -> bool {
    matches!(format, OpaqueFormat::Lzma | OpaqueFormat::LzmaUnsized)
}

/// A file of LZMA alone, behind the empty line that ends the head of a part.
fn lzma_alone(here: &[u8], trail: &Trail) -> Recognition {
    let head = here.len().saturating_sub(sealed::without_head(here).len());
    match marked(Some(true), Coding::Lzma, trail) {
        Recognition::Begin(begin) => Recognition::Begin(CompressedBegin {
            data: wide(head),
            ..begin
        }),
        other => other,
    }
}

/// The same with properties and a dictionary that hardly any program chooses.
fn rare_lzma(here: &[u8], trail: &Trail) -> Recognition {
    match sealed::may_be_lzma(here) {
        None => Recognition::More,
        Some(false) => Recognition::Other,
        Some(true) => match lzma_alone(here, trail) {
            Recognition::Begin(begin) => Recognition::Perhaps(begin),
            other => other,
        },
    }
}

/// A packet of OpenPGP that is compressed (RFC 9580 5.6), which is no more than a few bytes
/// around deflate or zlib, unless it is cut up.
fn packet(here: &[u8], trail: &Trail, wait: Wait) -> Recognition {
    let Some(packet) = sealed::compressed(here) else {
        return Recognition::Other;
    };
    let data = here.get(packet.data..).unwrap_or_default();
    if wait == Wait::Long && data.len() < GUESS_BYTES {
        return Recognition::More;
    }
    let (coding, is_one, block) = match packet.algorithm {
        1 => (Coding::Deflate, is_deflate(data), data),
        2 => (
            Coding::Zlib,
            is_zlib(data),
            data.get(2..).unwrap_or_default(),
        ),
        _ => return Recognition::Other,
    };
    if !is_one || data.is_empty() {
        return Recognition::Other;
    }
    if packet.extent == PacketExtent::Partial {
        // Chance is told by more of it.
        let wait = if wait == Wait::Short {
            Wait::Long
        } else {
            wait
        };
        return match looks_deflated(block, wait) {
            DeflateLooks::Short => Recognition::More,
            DeflateLooks::Wrong => Recognition::Other,
            DeflateLooks::Right => Recognition::Unreadable(UnscannedReason::Unopened),
        };
    }
    match unpack(coding) {
        None => Recognition::Other,
        Some(unpack) => Recognition::Perhaps(CompressedBegin {
            unpack,
            trail: trail.with(coding, None),
            data: wide(packet.data),
        }),
    }
}

/// The longest name of an entry that programs write, in bytes: of a longer one so much is
/// looked at.
const NAME_BYTES_MAX: usize = 1024;

/// How entries may be compressed beside deflate, of what is opened (APPNOTE 4.4.5).
const BZIP2: u16 = 12;
const ZSTD: u16 = 93;
const XZ: u16 = 95;

/// The highest version that an entry needs (APPNOTE 4.4.3).
const VERSION_MAX: u16 = 63;

/// One entry in the directory of a zip archive (APPNOTE 4.3.12). Most programs take from it
/// how an entry is compressed, and whether it is encrypted, whatever stands before the entry
/// itself: what it says that nobody here opens is not opened.
fn zip_central(here: &[u8]) -> Recognition {
    let number = |at: usize| -> Option<u16> {
        let bytes = here.get(at..at.checked_add(2)?)?;
        bytes.try_into().ok().map(u16::from_le_bytes)
    };
    let (Some(version), Some(flags), Some(method)) = (number(6), number(8), number(10)) else {
        return Recognition::More;
    };
    let Some(name_bytes) = number(28).map(usize::from) else {
        return Recognition::More;
    };
    let Some(name) = here.get(46..46_usize.saturating_add(name_bytes.min(NAME_BYTES_MAX))) else {
        return Recognition::More;
    };
    let is_sane = version & 0xff <= VERSION_MAX && (1..=NAME_BYTES_MAX).contains(&name_bytes);
    let is_named = !name.is_empty() && !name.iter().any(u8::is_ascii_control);
    match method {
        _ if !is_sane && !is_named => Recognition::Other,
        _ if flags & 1 != 0 => Recognition::Unreadable(UnscannedReason::Encrypted),
        0 | 8 | BZIP2 | ZSTD | XZ => Recognition::Other,
        1..=20 | 93..=99 => Recognition::Unreadable(UnscannedReason::UnknownCoding),
        _ if is_named => Recognition::Unreadable(UnscannedReason::UnknownCoding),
        _ => Recognition::Other,
    }
}

/// One entry of a zip archive (APPNOTE 4.3.7). Programs read entries without regard to the
/// version and whatever the length of the name.
fn zip(here: &[u8], trail: &Trail) -> Recognition {
    let number = |at: usize| -> Option<u16> {
        let bytes = here.get(at..at.checked_add(2)?)?;
        bytes.try_into().ok().map(u16::from_le_bytes)
    };
    let (Some(version), Some(flags), Some(method)) = (number(4), number(6), number(8)) else {
        return Recognition::More;
    };
    let (Some(name_bytes), Some(extra_bytes)) = (number(26), number(28)) else {
        return Recognition::More;
    };
    let name_bytes = usize::from(name_bytes);
    let Some(name) = here.get(30..30_usize.saturating_add(name_bytes.min(NAME_BYTES_MAX))) else {
        return Recognition::More;
    };
    let is_sane = version & 0xff <= VERSION_MAX && (1..=NAME_BYTES_MAX).contains(&name_bytes);
    // Of what is odd the name has to be one.
    let is_named = !name.is_empty() && !name.iter().any(u8::is_ascii_control);
    let is_like_one = is_sane || is_named;
    if flags & 1 != 0 {
        return if is_like_one {
            Recognition::Unreadable(UnscannedReason::Encrypted)
        } else {
            Recognition::Other
        };
    }
    let data = 30_usize.saturating_add(name_bytes);
    match method {
        0 | 8 | BZIP2 | ZSTD | XZ => {
            let begin = CompressedBegin {
                unpack: match method {
                    8 => Box::new(Inflate::new(DataFormat::Raw)),
                    BZIP2 => Box::new(Bzip2::new()),
                    ZSTD => Box::new(Zstd::new()),
                    XZ => Box::new(Lzma::new(LzmaContainer::Xz)),
                    _ => Box::new(Stored::new(here.get(18..22).unwrap_or_default())),
                },
                trail: entry(trail, Coding::Zip, name),
                data: wide(data.saturating_add(usize::from(extra_bytes))),
            };
            // What most programs do not write is told where it makes no sense.
            let is_rare = matches!(method, BZIP2 | ZSTD | XZ) && is_named;
            if is_sane || is_rare {
                Recognition::Begin(begin)
            } else {
                Recognition::Perhaps(begin)
            }
        }
        1..=20 | 93..=99 if is_like_one => Recognition::Unreadable(UnscannedReason::UnknownCoding),
        _ if is_named => Recognition::Unreadable(UnscannedReason::UnknownCoding),
        _ => Recognition::Other,
    }
}
