//! What compressed data and archives begin with, and which decompressor that
//! asks for.

use miniz_oxide::DataFormat;

use super::beginnings;
use super::brotli::Brotli;
use super::guess::{
    GUESS_BYTES, Looks, is_brotli, is_deflate, is_whole_brotli, is_whole_deflate, looks_deflated,
};
use super::inflate::{Gzip, Inflate};
use super::pack::Pack;
use super::sealed::{self, Extent, Look, Sealed};
use super::stored::Stored;
use super::unpack::Unpack;
use super::zstd::Zstd;
use super::{Certainty, entry};
use crate::budget::wide;
use crate::coding::Coding;
use crate::finding::UnscannedReason;
use crate::trail::Trail;

/// A kind of beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Magic {
    Gzip,
    Zlib,
    Zstd,
    Zip,
    Pack,
    /// Bare deflate, which has no mark.
    Deflate,
    /// Brotli, which has none either.
    Brotli,
    /// The mark in the header of a file in a tar archive (POSIX.1-2017, pax, "ustar").
    Tar,
    /// What nobody here opens.
    Sealed(Sealed),
}

/// Bytes from the mark in the header of a file in a tar archive to what the file holds.
const TAR_MARK_TO_FILE: u64 = 512 - 257;

/// What is looked for where compressed data may begin, for it has too few bytes that are
/// always the same.
pub(super) const UNMARKED: [Magic; 5] = [
    Magic::Zlib,
    Magic::Deflate,
    Magic::Brotli,
    Magic::Sealed(Sealed::Lzma),
    Magic::Sealed(Sealed::Pgp),
];

/// Beginnings that are looked for everywhere.
pub(crate) const MAGICS: [(&[u8], Magic); 5] = [
    (beginnings::GZIP, Magic::Gzip),
    (beginnings::ZSTD, Magic::Zstd),
    (beginnings::ZIP, Magic::Zip),
    (beginnings::PACK, Magic::Pack),
    (beginnings::TAR, Magic::Tar),
];

/// The same of what nobody here opens.
pub(crate) fn sealed() -> impl Iterator<Item = (&'static [u8], Magic)> {
    let marks = sealed::MARKS.iter();
    marks.map(|(mark, format)| (*mark, Magic::Sealed(*format)))
}

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
pub(super) enum Recognised {
    /// It cannot be said with so few bytes.
    More,
    /// Something else.
    Other,
    /// It is what it looks like, and cannot be read.
    Unreadable(UnscannedReason),
    /// It is what it looks like.
    Begin(Begin),
    /// It looks like it, but for something that programs do not write and do read.
    Perhaps(Begin),
    /// Anything may begin so many bytes behind.
    Behind(u64),
}

/// Something to be decompressed.
pub(super) struct Begin {
    pub(super) unpack: Box<dyn Unpack>,
    pub(super) trail: Trail,
    /// Where its data begin, from the first byte of the beginning.
    pub(super) data: u64,
}

/// A decompressor for a coding; none where nobody here reads it.
pub(super) fn unpack(coding: Coding) -> Option<Box<dyn Unpack>> {
    Some(match coding {
        Coding::Gzip => Box::new(Gzip::new()),
        Coding::Zlib => Box::new(Inflate::new(DataFormat::Zlib)),
        Coding::Deflate => Box::new(Inflate::new(DataFormat::Raw)),
        Coding::Brotli => Box::new(Brotli::new()),
        Coding::Zstd => Box::new(Zstd::new()),
        Coding::GitPack => Box::new(Pack::new()),
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
pub(super) fn recognise(magic: Magic, here: &[u8], trail: &Trail, wait: Wait) -> Recognised {
    let plain = |coding: Coding| match unpack(coding) {
        Some(unpack) => Recognised::Begin(Begin {
            unpack,
            trail: trail.with(coding, None),
            data: 0,
        }),
        None => Recognised::Other,
    };
    match magic {
        Magic::Gzip => match here {
            [_, _, _, flags, _, _, _, _, extra, system, ..] => {
                let is_system = *system <= 13 || *system == 255;
                let is_sane = flags & 0xe0 == 0 && matches!(extra, 0 | 2 | 4) && is_system;
                match plain(Coding::Gzip) {
                    Recognised::Begin(begin) if !is_sane => Recognised::Perhaps(begin),
                    other => other,
                }
            }
            _ => Recognised::More,
        },
        Magic::Zlib if here.len() < 2 => Recognised::More,
        Magic::Zlib if is_zlib(here) => plain(Coding::Zlib),
        Magic::Deflate | Magic::Brotli
            if here.is_empty() || (wait == Wait::Long && here.len() < GUESS_BYTES) =>
        {
            Recognised::More
        }
        Magic::Deflate if wait == Wait::Over && !is_whole_deflate(here) => Recognised::Other,
        Magic::Deflate if is_deflate(here) => plain(Coding::Deflate),
        Magic::Brotli if wait == Wait::Over && !is_whole_brotli(here) => Recognised::Other,
        Magic::Brotli if is_brotli(here) => plain(Coding::Brotli),
        Magic::Zlib | Magic::Deflate | Magic::Brotli => Recognised::Other,
        Magic::Zstd => match here.get(4) {
            Some(descriptor) if descriptor & 0x08 == 0 => plain(Coding::Zstd),
            Some(_) => Recognised::Other,
            None => Recognised::More,
        },
        Magic::Pack => match here.get(7) {
            Some(2 | 3) => plain(Coding::GitPack),
            Some(_) => Recognised::Other,
            None => Recognised::More,
        },
        Magic::Zip => zip(here, trail),
        Magic::Tar => match here.get(5..8) {
            Some(b"\x0000" | b"  \0") => Recognised::Behind(TAR_MARK_TO_FILE),
            Some(_) => Recognised::Other,
            None => Recognised::More,
        },
        Magic::Sealed(format) => match sealed::look(format, here) {
            Look::More => Recognised::More,
            Look::Other if format == Sealed::Pgp => packet(here, trail, wait),
            Look::Other => Recognised::Other,
            Look::It(reason) => Recognised::Unreadable(reason),
        },
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

/// A packet of OpenPGP that is compressed (RFC 9580 5.6), which is no more than a few bytes
/// around deflate or zlib, unless it is cut up.
fn packet(here: &[u8], trail: &Trail, wait: Wait) -> Recognised {
    let Some(packet) = sealed::compressed(here) else {
        return Recognised::Other;
    };
    let data = here.get(packet.data..).unwrap_or_default();
    if wait == Wait::Long && data.len() < GUESS_BYTES {
        return Recognised::More;
    }
    let (coding, is_one, block) = match packet.algorithm {
        1 => (Coding::Deflate, is_deflate(data), data),
        2 => (
            Coding::Zlib,
            is_zlib(data),
            data.get(2..).unwrap_or_default(),
        ),
        _ => return Recognised::Other,
    };
    if !is_one || data.is_empty() {
        return Recognised::Other;
    }
    if packet.extent == Extent::Partial {
        // Chance is told by more of it.
        let wait = if wait == Wait::Short {
            Wait::Long
        } else {
            wait
        };
        return match looks_deflated(block, wait) {
            Looks::Short => Recognised::More,
            Looks::Wrong => Recognised::Other,
            Looks::Right => Recognised::Unreadable(UnscannedReason::Unopened),
        };
    }
    match unpack(coding) {
        None => Recognised::Other,
        Some(unpack) => Recognised::Perhaps(Begin {
            unpack,
            trail: trail.with(coding, None),
            data: wide(packet.data),
        }),
    }
}

/// The longest name of an entry that programs write, in bytes: of a longer one so much is
/// looked at.
const NAME_BYTES_MAX: usize = 1024;

/// The highest version that an entry needs (APPNOTE 4.4.3).
const VERSION_MAX: u16 = 63;

/// One entry of a zip archive (APPNOTE 4.3.7). Programs read entries without regard to the
/// version and whatever the length of the name.
fn zip(here: &[u8], trail: &Trail) -> Recognised {
    let number = |at: usize| -> Option<u16> {
        let bytes = here.get(at..at.checked_add(2)?)?;
        bytes.try_into().ok().map(u16::from_le_bytes)
    };
    let (Some(version), Some(flags), Some(method)) = (number(4), number(6), number(8)) else {
        return Recognised::More;
    };
    let (Some(name_bytes), Some(extra_bytes)) = (number(26), number(28)) else {
        return Recognised::More;
    };
    let name_bytes = usize::from(name_bytes);
    let Some(name) = here.get(30..30_usize.saturating_add(name_bytes.min(NAME_BYTES_MAX))) else {
        return Recognised::More;
    };
    let is_sane = version & 0xff <= VERSION_MAX && (1..=NAME_BYTES_MAX).contains(&name_bytes);
    // Of what is odd the name has to be one.
    let is_named = !name.is_empty() && !name.iter().any(u8::is_ascii_control);
    let is_like_one = is_sane || is_named;
    if flags & 1 != 0 {
        return if is_like_one {
            Recognised::Unreadable(UnscannedReason::Encrypted)
        } else {
            Recognised::Other
        };
    }
    let data = 30_usize.saturating_add(name_bytes);
    match method {
        0 | 8 => {
            let begin = Begin {
                unpack: if method == 8 {
                    Box::new(Inflate::new(DataFormat::Raw))
                } else {
                    Box::new(Stored::new(here.get(18..22).unwrap_or_default()))
                },
                trail: entry(trail, Coding::Zip, name),
                data: wide(data.saturating_add(usize::from(extra_bytes))),
            };
            if is_sane {
                Recognised::Begin(begin)
            } else {
                Recognised::Perhaps(begin)
            }
        }
        1..=20 | 93..=99 if is_like_one => Recognised::Unreadable(UnscannedReason::UnknownCoding),
        _ if is_named => Recognised::Unreadable(UnscannedReason::UnknownCoding),
        _ => Recognised::Other,
    }
}
