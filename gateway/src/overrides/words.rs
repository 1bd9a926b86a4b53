//! Whether text of a part's head could hold a key for the method to anybody, however it
//! is coded there: as it is, escaped, in percent signs, or in words of RFC 2047. Text only.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// What every key holds.
const KEY_WORDS: [&[u8]; 2] = [b"method", b"verb"];

/// Character sets in which letters are what they are in ASCII, by how their names begin.
const PLAIN_SETS: [&str; 6] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "iso-8859-",
    "windows-125",
];

/// How a word of RFC 2047 is read: each is tried, whichever it names.
#[derive(Debug, Clone, Copy)]
enum Coding {
    Base64,
    Quoted,
}

/// Whether some reading of the text holds a key, whatever separates its letters.
pub(super) fn may_hold_key(text: &[u8]) -> bool {
    may_hold(text, &KEY_WORDS)
}

/// The same of other words, in small letters and digits.
pub(super) fn may_hold(text: &[u8], words: &[&[u8]]) -> bool {
    readings(text).is_none_or(|readings| readings.iter().any(|reading| holds(reading, words)))
}

/// Whether some reading of the text has a parameter `name` in it, that no parser of
/// parameters sees in this place.
pub(super) fn may_name(text: &[u8]) -> bool {
    let named = |reading: &Vec<u8>| names(reading).next().is_some();
    readings(text).is_none_or(|readings| readings.iter().any(named))
}

/// Whether a value with its character set (RFC 8187 3.2) has one in which letters are what
/// they are in ASCII.
pub(super) fn has_plain_set(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let set = text.split(|byte| *byte == b'\'').next().unwrap_or_default();
    let sets: [&[u8]; 5] = [b"", b"utf-8", b"us-ascii", b"ascii", b"iso-8859-1"];
    sets.iter().any(|plain| set.eq_ignore_ascii_case(plain))
}

/// Whether some reading of the text has a name in sections or in a character set, of which
/// no section need hold a key (RFC 2231 3 and 4), and which is not read. Those of files are
/// passed over.
pub(super) fn may_be_spread(text: &[u8]) -> bool {
    let spread = |reading: &Vec<u8>| {
        let lower = reading.to_ascii_lowercase();
        memchr::memmem::find_iter(&lower, b"name").any(|at| {
            let (before, rest) = lower.split_at_checked(at).unwrap_or_default();
            let rest = rest.get(b"name".len()..).unwrap_or_default();
            let Some(rest) = rest.trim_ascii_start().strip_prefix(b"*") else {
                return false;
            };
            let value = rest.trim_ascii_start().strip_prefix(b"=");
            let is_plain = value.is_some_and(|value| has_plain_set(value.trim_ascii_start()));
            !is_plain && !before.ends_with(b"file")
        })
    };
    readings(text).is_none_or(|readings| readings.iter().any(spread))
}

/// What stands behind each `name=` in a text, with a section or a character set or not.
pub(super) fn names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let places = memchr::memchr2_iter(b'n', b'N', text);
    places.filter_map(|at| {
        let (word, rest) = text.get(at..)?.split_at_checked(b"name".len())?;
        let is_sign = |byte: &u8| !(byte.is_ascii_whitespace() || b"*0123456789".contains(byte));
        let rest = rest.get(rest.iter().position(is_sign)?..)?;
        let value = rest.strip_prefix(b"=")?;
        word.eq_ignore_ascii_case(b"name").then_some(value)
    })
}

/// All readings; `None` where one is in a character set that is not read.
fn readings(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut readings = vec![text.to_vec()];
    for step in [0, 1] {
        let mut more = Vec::new();
        for reading in &readings {
            more.push(unescaped(reading));
            if step == 0 && memchr::memmem::find(reading, b"=?").is_some() {
                more.push(decoded(reading, Coding::Base64)?);
                more.push(decoded(reading, Coding::Quoted)?);
            }
        }
        readings.append(&mut more);
    }
    // Words within what is coded as well.
    let mut more = Vec::new();
    for reading in readings
        .iter()
        .filter(|reading| memchr::memmem::find(reading, b"=?").is_some())
    {
        more.push(decoded(reading, Coding::Base64)?);
        more.push(decoded(reading, Coding::Quoted)?);
    }
    readings.append(&mut more);
    Some(readings)
}

/// Whether the letters and digits of a text hold one of the words, or it has bytes of which
/// some make letters (RFC 3629 3, overlong ones).
fn holds(text: &[u8], words: &[&[u8]]) -> bool {
    let folded: Vec<u8> = text
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    let has_overlong = memchr::memchr2(0xc0, 0xc1, text).is_some();
    has_overlong
        || words
            .iter()
            .any(|word| memchr::memmem::find(&folded, word).is_some())
}

/// A text with its percent signs decoded, and without its backslashes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, coded_byte(after)) {
            (b'%', Some(coded)) => {
                out.push(coded);
                rest = after.get(2..).unwrap_or_default();
            }
            (b'\\', _) => {}
            _ => out.push(*byte),
        }
    }
    out
}

/// The byte that two digits stand for.
fn coded_byte(digits: &[u8]) -> Option<u8> {
    let digits = digits.get(..2)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

/// A text with each `=?SET?CODING?TEXT?=` of a line decoded, and without what stands
/// between two of them; `None` where letters may be others in its character set.
fn decoded(text: &[u8], coding: Coding) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest, b"=?") {
        let (before, word) = rest.split_at_checked(at)?;
        out.extend_from_slice(before);
        let word = word.get(2..)?;
        let line = memchr::memchr2(b'\r', b'\n', word).unwrap_or(word.len());
        let line = word.get(..line)?;
        let mut pieces = line.splitn(3, |byte| *byte == b'?');
        let (Some(set), Some(name), Some(content)) = (pieces.next(), pieces.next(), pieces.next())
        else {
            // It is no word.
            out.extend_from_slice(b"=?");
            rest = word;
            continue;
        };
        if name.len() != 1 {
            out.extend_from_slice(b"=?");
            rest = word;
            continue;
        }
        let set = String::from_utf8_lossy(set).trim().to_ascii_lowercase();
        if !PLAIN_SETS.iter().any(|plain| set.starts_with(plain)) {
            return None;
        }
        let end = memchr::memmem::find(content, b"?=").unwrap_or(content.len());
        out.extend(content_of(content.get(..end)?, coding));
        let over = word.len() - word.get(set_len(word, end)?..)?.len();
        rest = word
            .get(over..)?
            .strip_prefix(b"?=")
            .unwrap_or_else(|| word.get(over..).unwrap_or_default());
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Bytes of a word up to the end of its content, which has so many.
fn set_len(word: &[u8], content: usize) -> Option<usize> {
    let first = memchr::memchr(b'?', word)?;
    let second = memchr::memchr(b'?', word.get(first + 1..)?)?;
    Some(first + 1 + second + 1 + content)
}

/// What the content of a word says.
fn content_of(content: &[u8], coding: Coding) -> Vec<u8> {
    match coding {
        Coding::Base64 => {
            let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
            let signs: Vec<u8> = content.iter().copied().filter(is_sign).collect();
            // One sign more than a byte needs is none.
            let whole = signs.len() - usize::from(signs.len() % 4 == 1);
            let config = GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent)
                .with_decode_allow_trailing_bits(true);
            let engine = GeneralPurpose::new(&STANDARD, config);
            engine
                .decode(signs.get(..whole).unwrap_or_default())
                .unwrap_or_default()
        }
        Coding::Quoted => {
            let percent: Vec<u8> = content
                .iter()
                .map(|byte| if *byte == b'=' { b'%' } else { *byte })
                .collect();
            unescaped(&percent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_seen_however_it_is_coded() {
        for (text, holds) in [
            ("_method", true),
            ("_MET\\HOD", true),
            ("_met\r\n hod", true),
            ("%5Fm%65thod", true),
            ("=?UTF-8?B?X21ldGhvZA==?=", true),
            ("=?utf-8?b?X21ldGhvZA?=", true),
            ("=?utf-8?Q?=5Fmeth=6Fd?=", true),
            ("=?UTF-8?Q?=5Fmet?= =?UTF-8?Q?hod?=", true),
            ("=?UTF-8?B?X21l?= =?UTF-8?Q?thod?=", false),
            ("=?utf-16?B?AF8AbQ==?=", true),
            ("=?utf-8?B?X21ldGhvZA==", true),
            ("%3D?utf-8?B?X21ldGhvZA==?=", true),
            ("http-verb", true),
            ("\u{c1}", false),
            ("a\\b", false),
            ("page?id=?x.html", false),
            ("=?utf-8?B?w6RhLnR4dA==?=", false),
            ("=?utf-8?Q?a_b?=", false),
            ("mesh; rod", false),
        ] {
            assert_eq!(may_hold_key(text.as_bytes()), holds, "{text}");
        }
        assert!(may_hold_key(b"\xc1\x9fa"));
        assert!(
            may_name(b"a; name = x") && may_name(b"NAME*0*=x") && may_name(b"=?utf-8?Q?name=3Dx?=")
        );
        assert!(!may_name(b"my name.txt") && !may_name(b"_method.py"));
        assert!(may_be_spread(b"a;\r\n Name *0=b") && may_be_spread(b"=?utf-8?Q?name=2A0=3Db?="));
        assert!(!may_be_spread(
            b"name*=utf-8''a; filename*0=b; filename*=utf-8''c"
        ));
    }
}
