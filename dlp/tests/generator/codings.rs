//! The codings that are drawn: what ordinary tools print, and what programs write.

use crate::dice::Dice;
use crate::literals::{array, escaped, joined, rot13, separated};
use crate::packed::{bzip2, deflate, gzip, lz4, xz, zlib, zstd};
use crate::printed::{each, hexdump_c, list, od, od_letter, words, xxd, xxd_plain};
use crate::radix::{
    BASE32, BASE32_SMALL, BASE64, BASE64_URL, BASE85, Z85, ascii85, base45, base58, base85, base91,
    bits, padded, uuencode, yenc,
};

/// What a coding can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Bytes,
    /// Letters of ASCII.
    Text,
}

/// A coding: what it is called, and how it is made.
#[derive(Clone, Copy)]
pub(crate) struct Coding {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) make: fn(&mut Dice, &[u8]) -> Vec<u8>,
}

const fn bytes(name: &'static str, make: fn(&mut Dice, &[u8]) -> Vec<u8>) -> Coding {
    Coding {
        name,
        takes: Takes::Bytes,
        make,
    }
}

const fn text(name: &'static str, make: fn(&mut Dice, &[u8]) -> Vec<u8>) -> Coding {
    Coding {
        name,
        takes: Takes::Text,
        make,
    }
}

fn lines(bytes: &[u8], length: usize, end: &str) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.chunks(length).collect();
    let mut made = lines.join(end.as_bytes());
    made.extend_from_slice(end.as_bytes());
    made
}

pub(crate) const CODINGS: &[Coding] = &[
    bytes("base64", |_, bytes| padded(bytes, BASE64)),
    bytes("base64 in lines of 76", |_, bytes| {
        lines(&padded(bytes, BASE64), 76, "\n")
    }),
    bytes("base64 in lines of 64", |_, bytes| {
        lines(&padded(bytes, BASE64), 64, "\r\n")
    }),
    bytes("base64url", |_, bytes| bits(bytes, BASE64_URL)),
    bytes("hex", |_, bytes| {
        each(bytes, "", |byte| format!("{byte:02x}"))
    }),
    bytes("HEX", |_, bytes| {
        each(bytes, "", |byte| format!("{byte:02X}"))
    }),
    bytes("hex with separators", |dice, bytes| {
        let sign = dice.pick(&[":", " ", "-", ", ", ","]);
        each(bytes, sign, |byte| format!("{byte:02x}"))
    }),
    bytes("xxd", |_, bytes| xxd(bytes)),
    bytes("xxd -p", |_, bytes| xxd_plain(bytes)),
    bytes("hexdump -C", |_, bytes| hexdump_c(bytes)),
    bytes("hexdump", |_, bytes| words(bytes)),
    bytes("od -b", |_, bytes| od(bytes, |byte| format!("{byte:03o}"))),
    bytes("od -t x1", |_, bytes| {
        od(bytes, |byte| format!("{byte:02x}"))
    }),
    bytes("od -t u1", |_, bytes| od(bytes, |byte| format!("{byte:3}"))),
    bytes("od -c", |_, bytes| od(bytes, od_letter)),
    bytes("uuencode", |_, bytes| uuencode(bytes)),
    bytes("yEnc", |_, bytes| yenc(bytes)),
    bytes("quoted-printable", |_, bytes| {
        let letter = |byte: &u8| match byte {
            b'=' | 0..=0x1f | 0x7f.. => format!("={byte:02X}"),
            own => char::from(*own).to_string(),
        };
        let rows = bytes.chunks(25);
        let rows: Vec<String> = rows.map(|row| row.iter().map(letter).collect()).collect();
        rows.join("=\r\n").into_bytes()
    }),
    bytes("base32", |_, bytes| padded(bytes, BASE32)),
    bytes("base32 in small letters", |_, bytes| {
        bits(bytes, BASE32_SMALL)
    }),
    bytes("base58", |_, bytes| base58(bytes)),
    bytes("base85", |_, bytes| base85(bytes, BASE85)),
    bytes("Z85", |_, bytes| base85(bytes, Z85)),
    bytes("ascii85", |_, bytes| ascii85(bytes)),
    bytes("ascii85 with its marks", |_, bytes| {
        [b"<~", &ascii85(bytes)[..], b"~>"].concat()
    }),
    bytes("base45", |_, bytes| base45(bytes)),
    bytes("base91", |_, bytes| base91(bytes)),
    bytes("percent", |_, bytes| {
        each(bytes, "", |byte| format!("%{byte:02X}"))
    }),
    bytes("array of decimals", |dice, bytes| {
        let around = dice.pick(&[
            ("[", "]"),
            ("bytes([", "])"),
            ("new Uint8Array([", "])"),
            ("{\"type\":\"Buffer\",\"data\":[", "]}"),
            ("[]byte{", "}"),
            ("const char data[] = {\n  ", "\n};\n"),
        ]);
        let width = dice.pick(&[12, 1 << 20]);
        list(bytes, around, width, |byte| byte.to_string())
    }),
    bytes("array of hexadecimals", |dice, bytes| {
        let around = dice.pick(&[
            ("unsigned char data[] = {\n  ", "\n};\n"),
            ("[]byte{", "}"),
            ("bytes([", "])"),
            ("Uint8Array.of(", ")"),
        ]);
        let width = dice.pick(&[12, 1 << 20]);
        list(bytes, around, width, |byte| format!("0x{byte:02x}"))
    }),
    bytes("array of octals", |dice, bytes| {
        let (around, sign) = dice.pick(&[
            (("char data[] = {", "};"), "0"),
            (("[", "]"), "0o"),
            (("[]byte{", "}"), "0"),
        ]);
        list(bytes, around, 12, |byte| format!("{sign}{byte:03o}"))
    }),
    bytes("escapes \\x", |_, bytes| {
        escaped(bytes, |byte| format!("\\x{byte:02x}"))
    }),
    bytes("escapes \\u", |_, bytes| {
        escaped(bytes, |byte| format!("\\u{byte:04x}"))
    }),
    bytes("escapes \\u{}", |_, bytes| {
        escaped(bytes, |byte| format!("\\u{{{byte:x}}}"))
    }),
    bytes("escapes \\U", |_, bytes| {
        escaped(bytes, |byte| format!("\\U{byte:08x}"))
    }),
    bytes("octal escapes", |_, bytes| {
        escaped(bytes, |byte| format!("\\{byte:03o}"))
    }),
    text("joined by +", |dice, text| joined(dice, text, " + ")),
    text("joined by .", |dice, text| joined(dice, text, " . ")),
    text("joined by ..", |dice, text| joined(dice, text, " .. ")),
    text("joined by ,", |dice, text| joined(dice, text, ", ")),
    text("adjacent literals", |dice, text| {
        let between = dice.pick(&[" ", "\n    "]);
        joined(dice, text, between)
    }),
    text("array join", array),
    text("separated letters", |dice, text| {
        let sign = dice.pick(&[" ", "-", ".", ",", "_", "\n", ", ", "|", ":"]);
        separated(text, sign)
    }),
    bytes("reversed", |_, bytes| bytes.iter().rev().copied().collect()),
    bytes("rot13", |_, bytes| {
        bytes.iter().map(|byte| rot13(*byte)).collect()
    }),
    text("UTF-16 LE", |dice, text| {
        let mark: &[u8] = if dice.is_one_in(2) { b"\xff\xfe" } else { b"" };
        let wide: Vec<u8> = text.iter().flat_map(|byte| [*byte, 0]).collect();
        [mark, &wide].concat()
    }),
    text("UTF-16 BE", |dice, text| {
        let mark: &[u8] = if dice.is_one_in(2) { b"\xfe\xff" } else { b"" };
        let wide: Vec<u8> = text.iter().flat_map(|byte| [0, *byte]).collect();
        [mark, &wide].concat()
    }),
    bytes("gzip", |_, bytes| gzip(bytes)),
    bytes("zlib", |_, bytes| zlib(bytes)),
    bytes("deflate", |_, bytes| deflate(bytes)),
    bytes("bzip2", |_, bytes| bzip2(bytes)),
    bytes("xz", |_, bytes| xz(bytes)),
    bytes("zstd", |_, bytes| zstd(bytes)),
    bytes("lz4", |_, bytes| lz4(bytes)),
];

/// Codings that make text in one line of anything, for places that take nothing else.
pub(crate) const PLAIN: [&str; 3] = ["base64", "hex", "base64url"];

/// A coding by its name.
pub(crate) fn named(name: &str) -> Coding {
    let mut all = CODINGS.iter();
    *all.find(|coding| coding.name == name).expect("a coding")
}

/// Whether bytes are letters of ASCII and ends of lines.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let mut bytes = bytes.iter();
    bytes.all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
}

/// Whether they are one line of it.
pub(crate) fn is_line(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
}
