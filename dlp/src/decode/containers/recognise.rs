//! What compressed data and archives begin with, and which decompressor that
//! asks for.

use miniz_oxide::DataFormat;

use super::beginnings;
use super::brotli::Brotli;
use super::guess::{GUESS_BYTES, is_brotli, is_deflate, is_whole_brotli, is_whole_deflate};
use super::inflate::{Gzip, Inflate};
use super::pack::Pack;
use super::sealed::{self, Look, Sealed};
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
    /// What nobody here opens.
    Sealed(Sealed),
}

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
pub(crate) const MAGICS: [(&[u8], Magic); 4] = [
    (beginnings::GZIP, Magic::Gzip),
    (beginnings::ZSTD, Magic::Zstd),
    (beginnings::ZIP, Magic::Zip),
    (beginnings::PACK, Magic::Pack),
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
                if is_sane {
                    plain(Coding::Gzip)
                } else {
                    Recognised::Other
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
        Magic::Sealed(format) => match sealed::look(format, here) {
            Look::More => Recognised::More,
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

/// The longest name of an entry that is believed, in bytes.
const NAME_BYTES_MAX: u16 = 1024;

/// One entry of a zip archive (APPNOTE 4.3.7).
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
    if version & 0xff > 63 || name_bytes == 0 || name_bytes > NAME_BYTES_MAX {
        return Recognised::Other;
    }
    let name_end = 30_usize.saturating_add(usize::from(name_bytes));
    let Some(name) = here.get(30..name_end) else {
        return Recognised::More;
    };
    if flags & 1 != 0 {
        return Recognised::Unreadable(UnscannedReason::Encrypted);
    }
    match method {
        0 | 8 => Recognised::Begin(Begin {
            unpack: if method == 8 {
                Box::new(Inflate::new(DataFormat::Raw))
            } else {
                Box::new(Stored::new(here.get(18..22).unwrap_or_default()))
            },
            trail: entry(trail, Coding::Zip, name),
            data: wide(name_end.saturating_add(usize::from(extra_bytes))),
        }),
        1..=20 | 93..=99 => Recognised::Unreadable(UnscannedReason::UnknownCoding),
        _ => Recognised::Other,
    }
}
