//! The codings a credential is sent in, as a sender makes them.

use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
};
use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use crate::archives::{delta, pack, zip, zip_stored};
use crate::packers::{LZ4, bzip2, lz4, lz4_legacy, lzip, xz_of};

/// A coding: its name and how it is made.
pub(crate) type Coding = (&'static str, fn(&[u8]) -> Vec<u8>);

/// Every coding that is to be seen through.
pub(crate) const CODINGS: &[Coding] = &[
    ("plain", |bytes| bytes.to_vec()),
    ("percent", |bytes| {
        each(bytes, |byte| format!("%{byte:02x}"))
    }),
    ("percent of every third", every_third),
    ("percent twice", |bytes| {
        each(bytes, |byte| format!("%25{byte:02X}"))
    }),
    ("json", |bytes| each(bytes, |byte| format!("\\u{byte:04x}"))),
    ("json of the first letter", |bytes| {
        let mut made = format!("\\u{:04X}", bytes[0]).into_bytes();
        made.extend_from_slice(&bytes[1..]);
        made
    }),
    ("hexadecimal escapes", |bytes| {
        each(bytes, |byte| format!("\\x{byte:02x}"))
    }),
    ("octal escapes", |bytes| {
        each(bytes, |byte| format!("\\{byte:03o}"))
    }),
    ("references", |bytes| {
        each(bytes, |byte| format!("&#{byte};"))
    }),
    ("hexadecimal references", |bytes| {
        each(bytes, |byte| format!("&#x{byte:X};"))
    }),
    ("quoted-printable", |bytes| {
        each(bytes, |byte| format!("={byte:02X}"))
    }),
    ("lines of quoted-printable", soft_lines),
    ("utf-16 le", |bytes| {
        bytes.iter().flat_map(|byte| [*byte, 0]).collect()
    }),
    ("utf-16 be", |bytes| {
        bytes.iter().flat_map(|byte| [0, *byte]).collect()
    }),
    ("utf-32", |bytes| {
        bytes.iter().flat_map(|byte| [*byte, 0, 0, 0]).collect()
    }),
    ("zero width", |bytes| {
        each(bytes, |byte| format!("{}\u{200b}", char::from(byte)))
    }),
    ("combining", |bytes| {
        each(bytes, |byte| format!("{}\u{301}", char::from(byte)))
    }),
    ("full width", |bytes| each(bytes, wide)),
    ("base64", |bytes| base64(bytes, STANDARD, "=")),
    ("base64 unpadded", |bytes| base64(bytes, STANDARD, "")),
    ("base64url", |bytes| base64(bytes, URL, "")),
    ("base64 after a letter", |bytes| {
        after("x", &base64(bytes, STANDARD, "="))
    }),
    ("base64 after two", |bytes| {
        after("xy", &base64(bytes, STANDARD, ""))
    }),
    ("base64 after three", |bytes| {
        after("xyz", &base64(bytes, STANDARD, ""))
    }),
    ("base64 after a path", |bytes| {
        after("/api/v1/", &base64(bytes, URL, ""))
    }),
    ("base64 in lines of 20", |bytes| {
        lines(&base64(bytes, STANDARD, "="), 20, "\n")
    }),
    ("base64 in lines of 76", |bytes| {
        lines(&base64(bytes, STANDARD, "="), 76, "\r\n")
    }),
    ("base64 in lines of 3", |bytes| {
        lines(&base64(bytes, STANDARD, "="), 3, "\n")
    }),
    ("base64 in escaped lines", |bytes| {
        lines(&base64(bytes, STANDARD, "="), 19, "\\n")
    }),
    ("base64 with escaped slashes", |bytes| {
        escaped(&base64(bytes, STANDARD, "="))
    }),
    ("base64 twice", |bytes| {
        base64(&base64(bytes, STANDARD, "="), STANDARD, "=")
    }),
    ("base64 four times", |bytes| {
        (0..4).fold(bytes.to_vec(), |made, _| base64(&made, STANDARD, "="))
    }),
    ("hex", |bytes| each(bytes, |byte| format!("{byte:02x}"))),
    ("hex in capitals", |bytes| {
        each(bytes, |byte| format!("{byte:02X}"))
    }),
    ("hex after a digit", |bytes| {
        after("f", &each(bytes, |byte| format!("{byte:02x}")))
    }),
    ("hex with colons", |bytes| separated(bytes, ":")),
    ("hex with spaces", |bytes| separated(bytes, " ")),
    ("hex with dashes", |bytes| separated(bytes, "-")),
    ("hex as an array", |bytes| {
        each(bytes, |byte| format!("0x{byte:02x}, "))
    }),
    ("base32", |bytes| {
        base32(bytes, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    }),
    ("base32 in small letters", |bytes| {
        base32(bytes, b"abcdefghijklmnopqrstuvwxyz234567")
    }),
    ("gzip", gzip),
    ("zlib", |bytes| {
        base64(&compress_to_vec_zlib(bytes, 6), STANDARD, "=")
    }),
    ("gzip in base64", |bytes| {
        base64(&gzip(bytes), STANDARD, "=")
    }),
    ("bare deflate in base64", |bytes| {
        base64(&deflate(bytes), STANDARD, "=")
    }),
    ("bare deflate in hex", |bytes| {
        each(&deflate(bytes), |byte| format!("{byte:02x}"))
    }),
    ("bare deflate in gzip", |bytes| gzip(&deflate(bytes))),
    ("brotli in base64", |bytes| base64(&brotli(bytes), URL, "")),
    ("brotli in base32", |bytes| {
        base32(&brotli(bytes), b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    }),
    ("gzip twice", |bytes| gzip(&gzip(bytes))),
    ("base64 in gzip", |bytes| gzip(&base64(bytes, URL, ""))),
    ("zstd", zstd),
    ("bzip2", |bytes| bzip2(bytes, 9)),
    ("xz", |bytes| xz_of(bytes, 6)),
    ("lzip in base64", |bytes| {
        base64(&lzip(bytes), STANDARD, "=")
    }),
    ("lz4", |bytes| lz4(bytes, LZ4)),
    ("lz4 without a header", lz4_legacy),
    ("xz in gzip", |bytes| gzip(&xz_of(bytes, 0))),
    ("base64 in bzip2", |bytes| bzip2(&base64(bytes, URL, ""), 1)),
    ("zip", zip),
    ("zip stored", zip_stored),
    ("zip in gzip in base64", |bytes| {
        base64(&gzip(&zip(bytes)), URL, "")
    }),
    ("git pack", pack),
    ("git delta", delta),
    ("percent of base64", |bytes| {
        each(&base64(bytes, STANDARD, "="), |byte| format!("%{byte:02X}"))
    }),
    ("references in json", |bytes| {
        each(&each(bytes, |byte| format!("&#{byte};")), |byte| {
            format!("\\u{byte:04x}")
        })
    }),
];

pub(crate) const STANDARD: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(crate) const URL: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn each(bytes: &[u8], form: impl Fn(u8) -> String) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| form(*byte).into_bytes())
        .collect()
}

fn soft(byte: u8) -> String {
    match byte {
        b'=' => "=3D".to_owned(),
        other => char::from(other).to_string(),
    }
}

fn soft_lines(bytes: &[u8]) -> Vec<u8> {
    let lines: Vec<Vec<u8>> = bytes.chunks(7).map(|line| each(line, soft)).collect();
    lines.join(&b"=\r\n"[..])
}

fn wide(byte: u8) -> String {
    match byte {
        0x21..=0x7e => char::from_u32(u32::from(byte) + 0xfee0)
            .expect("a wide form")
            .to_string(),
        other => char::from(other).to_string(),
    }
}

fn every_third(bytes: &[u8]) -> Vec<u8> {
    let place = std::cell::Cell::new(0);
    each(bytes, |byte| {
        place.set(place.get() + 1);
        if place.get() % 3 == 0 {
            format!("%{byte:02x}")
        } else {
            char::from(byte).to_string()
        }
    })
}

fn lines(bytes: &[u8], length: usize, end: &str) -> Vec<u8> {
    bytes
        .chunks(length)
        .collect::<Vec<_>>()
        .join(end.as_bytes())
}

fn after(prefix: &str, bytes: &[u8]) -> Vec<u8> {
    [prefix.as_bytes(), bytes].concat()
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    each(bytes, |byte| {
        if byte == b'/' {
            "\\/".to_owned()
        } else {
            char::from(byte).to_string()
        }
    })
}

fn separated(bytes: &[u8], separator: &str) -> Vec<u8> {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(separator).into_bytes()
}

/// base64 behind three hundred runs of it that hold nothing.
pub(crate) fn decoys(bytes: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    for place in 0..300 {
        made.extend(base64(
            format!("nothing to see here, number {place}").as_bytes(),
            STANDARD,
            "=",
        ));
        made.push(b' ');
    }
    made.extend(base64(bytes, STANDARD, "="));
    made
}

/// base64 in an alphabet, with or without its padding.
pub(crate) fn base64(bytes: &[u8], alphabet: &[u8; 64], padding: &str) -> Vec<u8> {
    let mut made = Vec::new();
    for group in bytes.chunks(3) {
        let mut value = [0_u8; 4];
        value[1..=group.len()].copy_from_slice(group);
        let value = u32::from_be_bytes(value);
        for place in 0..4 {
            if place <= group.len() {
                made.push(alphabet[(value >> (18 - 6 * place) & 63) as usize]);
            } else {
                made.extend_from_slice(padding.as_bytes());
            }
        }
    }
    made
}

/// base64 as everybody writes it.
pub(crate) fn plain_base64(bytes: &[u8]) -> Vec<u8> {
    base64(bytes, STANDARD, "=")
}

/// base32 as everybody writes it, without its padding.
pub(crate) fn base32_capitals(bytes: &[u8]) -> Vec<u8> {
    base32(bytes, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
}

fn base32(bytes: &[u8], alphabet: &[u8; 32]) -> Vec<u8> {
    let mut made = Vec::new();
    let (mut rest, mut filled) = (0_u32, 0);
    for byte in bytes {
        rest = (rest << 8) | u32::from(*byte);
        filled += 8;
        while filled >= 5 {
            filled -= 5;
            made.push(alphabet[(rest >> filled & 31) as usize]);
        }
        rest &= (1 << filled) - 1;
    }
    if filled > 0 {
        made.push(alphabet[(rest << (5 - filled) & 31) as usize]);
    }
    made
}

/// One member of gzip; the checksum is wrong, which is none of the scan's business.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    made.extend(compress_to_vec(bytes, 6));
    made.extend_from_slice(&[0; 8]);
    made
}

/// Bare deflate.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, 6)
}

/// Bare deflate of pieces, each of which comes out as soon as it went in.
pub(crate) fn flushed<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Vec<Vec<u8>> {
    let mut compressor = CompressorOxide::new(create_comp_flags_from_zip_params(6, 0, 0));
    let mut all = Vec::new();
    for piece in pieces {
        let mut made = Vec::new();
        let (status, used) =
            compress_to_output(&mut compressor, piece, TDEFLFlush::Sync, |bytes| {
                made.extend_from_slice(bytes);
                true
            });
        assert_eq!((status, used), (TDEFLStatus::Okay, piece.len()), "a piece");
        all.push(made);
    }
    all
}

/// Bits, the first in the lowest place of each byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    filled: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for place in 0..count {
            if self.filled.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value >> place & 1 == 1) << (self.filled % 8);
            }
            self.filled += 1;
        }
    }
}

/// Codes of insertions from so many bytes on, with so many bits more (RFC 7932 5).
const INSERTIONS: [(u32, u32); 24] = [
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 1),
    (8, 1),
    (10, 2),
    (14, 2),
    (18, 3),
    (26, 3),
    (34, 4),
    (50, 4),
    (66, 5),
    (98, 5),
    (130, 6),
    (194, 7),
    (322, 8),
    (578, 9),
    (1090, 10),
    (2114, 12),
    (6210, 14),
    (22594, 24),
];

/// Brotli (RFC 7932) of at most 64 KiB: one block that inserts all its bytes, each as
/// eight bits of which none stands as it was.
pub(crate) fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    // A window of 4 MiB.
    bits.put(0b1011, 4);
    block(&mut bits, bytes);
    bits.bytes
}

/// The same without the beginning, for a window of 64 KiB that was asked for before.
pub(crate) fn brotli_of_64_kib(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    block(&mut bits, bytes);
    bits.bytes
}

/// The beginning of Brotli with a window of 64 KiB: a block of at most 64 KiB that stands
/// there as it is, and is not the last one.
pub(crate) fn brotli_stored(bytes: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(0, 1 + 1 + 2);
    bits.put(u32::try_from(bytes.len() - 1).expect("a length"), 16);
    bits.put(1, 1);
    [&bits.bytes, bytes].concat()
}

fn block(bits: &mut Bits, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a length");
    let code = INSERTIONS.iter().rposition(|(base, _)| *base <= length);
    let code = code.expect("the first is zero");
    let (base, extra) = INSERTIONS[code];
    // The first of the eight copies that go with it, with a distance.
    let symbol = match u32::try_from(code).expect("a code") {
        code @ 0..8 => 128 + (code << 3),
        code @ 8..16 => 256 + ((code - 8) << 3),
        code => 448 + ((code - 16) << 3),
    };
    // The last block, not empty, with four nibbles of length.
    bits.put(0b0001, 4);
    bits.put(length - 1, 16);
    // One kind of blocks each, no direct distances, one tree each.
    bits.put(0, 3 + 6 + 2 + 2);
    // All 256 letters have codes of eight bits: of the lengths only 8 is used.
    bits.put(0, 2);
    for length in [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8] {
        if length == 8 {
            bits.put(0b0111, 4);
        } else {
            bits.put(0b00, 2);
        }
    }
    for _ in 11..18 {
        bits.put(0b00, 2);
    }
    for (symbol, width) in [(symbol, 10), (0, 6)] {
        bits.put(1, 2);
        bits.put(0, 2);
        bits.put(symbol, width);
    }
    bits.put(length - base, extra);
    for byte in bytes {
        bits.put(u32::from(byte.reverse_bits()), 8);
    }
}

/// One frame of zstd.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
