//! The forms in which a value is looked for without any decoding: so that a
//! budget, a short run or a strange alphabet cannot hide it.

use data_encoding::{Encoding, HEXLOWER, HEXUPPER};

use crate::secret::SecretBytes;
use crate::span;
use crate::validate::base64::{self, STANDARD, URL};

/// How a known value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KnownForm {
    /// As it is.
    Raw,
    /// Last byte first, or last character of a coding.
    Reversed,
    /// In base 64, in either alphabet, at any phase.
    Base64,
    /// In hexadecimal, perhaps with something between the bytes.
    Hex,
    /// In base 32.
    Base32,
    /// With small letters for capitals and capitals for small ones, itself or in base 64.
    Swapped,
    /// With signs escaped, as documents, tables and shells write it.
    Escaped,
}

/// Longest text of an escaped form, in bytes: as long as other forms become.
const ESCAPED_BYTES_MAX: usize = 128;
/// Longest value whose codings are shorter than the runs that are decoded, in bytes.
const UNDECODED_BYTES_MAX: usize = 20;
/// Both ways to write hexadecimal.
const DIGITS: [Encoding; 2] = [HEXLOWER, HEXUPPER];
/// What stands between the bytes of a value in hexadecimal.
const BETWEEN: [&str; 12] = [
    ":", " ", "-", ",", ";", ", ", "\\x", "\\\\x", "\n", " 0x", ",0x", ", 0x",
];
/// The first letters of both ways to write base 32.
const FIRST_LETTERS: [u8; 2] = [b'A', b'a'];
/// How often strings of documents are written into strings of others.
const NESTED_MAX: usize = 3;

/// Which signs languages write with a backslash before them.
const BACKSLASHED: [fn(u8) -> bool; 8] = [
    // Strings of JSON and C.
    |byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t'),
    // Strings in single quotes.
    |byte| matches!(byte, b'\'' | b'\\' | b'\n' | b'\r' | b'\t'),
    // Whatever the quotes are.
    |byte| matches!(byte, b'"' | b'\'' | b'\\'),
    // Strings in other quotes than those in it.
    |byte| matches!(byte, b'\\' | b'\n' | b'\r' | b'\t'),
    // Strings of a shell.
    |byte| matches!(byte, b'"' | b'\\' | b'$' | b'`'),
    // Words of a shell: those of bash, and those of most others.
    |byte| b" '\"\\|&;()<>!{}*[]?^$`,#~".contains(&byte),
    |byte| !byte.is_ascii_alphanumeric() && !b"_-.,:+/@%=".contains(&byte),
    // Regular expressions.
    |byte| !byte.is_ascii_alphanumeric() && byte != b'_',
];

/// A value in each form, without what depends on its neighbours.
pub(crate) fn forms(value: &[u8]) -> Vec<(KnownForm, SecretBytes)> {
    let mut forms = vec![
        (KnownForm::Raw, SecretBytes::new(value.to_vec())),
        (KnownForm::Reversed, reversed(value)),
        (KnownForm::Swapped, swapped(value)),
    ];
    for phase in 0..3 {
        let standard = phased(value, phase, STANDARD);
        let url = phased(value, phase, URL);
        let differs = standard.expose() != url.expose();
        for text in std::iter::once(standard).chain(differs.then_some(url)) {
            forms.push((KnownForm::Reversed, reversed(text.expose())));
            forms.push((KnownForm::Swapped, swapped(text.expose())));
            forms.push((KnownForm::Base64, text));
        }
    }
    let digits = DIGITS;
    for letters in &digits {
        let text = hex(value, letters);
        forms.push((KnownForm::Reversed, reversed(text.expose())));
        forms.push((KnownForm::Hex, text));
    }
    if value.len() <= UNDECODED_BYTES_MAX {
        forms.extend(coded(KnownForm::Reversed, reversed(value).expose()));
        forms.extend(coded(KnownForm::Swapped, swapped(value).expose()));
        let apart = digits.iter().flat_map(|letters| {
            let between = BETWEEN.iter();
            between.map(move |sign| separated(value, letters, sign.as_bytes()))
        });
        forms.extend(apart.map(|text| (KnownForm::Hex, text)));
        let phases =
            (0..5).flat_map(|phase| FIRST_LETTERS.map(|first| base32(value, phase, first)));
        forms.extend(phases.map(|text| (KnownForm::Base32, text)));
    }
    for text in escaped(value) {
        forms.push((KnownForm::Escaped, text));
    }
    forms
}

/// A short value that was turned around, in codings whose short runs nobody decodes.
fn coded(form: KnownForm, turned: &[u8]) -> Vec<(KnownForm, SecretBytes)> {
    let alphabets = (0..3).flat_map(|phase| [(phase, STANDARD), (phase, URL)]);
    let in_base64 = alphabets.map(|(phase, alphabet)| phased(turned, phase, alphabet));
    let in_hex = DIGITS.map(|letters| hex(turned, &letters));
    in_base64.chain(in_hex).map(|text| (form, text)).collect()
}

/// A text in hexadecimal.
fn hex(text: &[u8], letters: &Encoding) -> SecretBytes {
    // Room from the start, here and below: what moves leaves a copy behind.
    let mut made = vec![0; text.len().saturating_mul(2)];
    letters.encode_mut(text, &mut made);
    SecretBytes::new(made)
}

/// A text in hexadecimal with something between its bytes.
fn separated(text: &[u8], letters: &Encoding, sign: &[u8]) -> SecretBytes {
    let digits = hex(text, letters);
    let all = text.len().saturating_mul(sign.len().saturating_add(2));
    let mut made = Vec::with_capacity(all);
    for pair in digits.expose().chunks(2) {
        if !made.is_empty() {
            made.extend_from_slice(sign);
        }
        made.extend_from_slice(pair);
    }
    SecretBytes::new(made)
}

/// The symbols of base 32 (RFC 4648 6) that hold bits of the value alone when so many bytes
/// stand before it in its group of five; the alphabet begins with this letter.
fn base32(value: &[u8], phase: usize, first: u8) -> SecretBytes {
    let symbol = |number: u16| match u8::try_from(number & 31).unwrap_or_default() {
        letter @ ..26 => first.wrapping_add(letter),
        digit => b'2'.wrapping_add(digit.wrapping_sub(26)),
    };
    let bits = value.len().saturating_mul(8);
    // Bits of the value in a symbol that begins before it.
    let skip = 5_usize.saturating_sub(phase.saturating_mul(8) % 5) % 5;
    let mut made = Vec::with_capacity(bits / 5);
    let mut at = skip;
    while at.saturating_add(5) <= bits {
        let pair = |place: usize| u16::from(value.get(place).copied().unwrap_or_default());
        let two = pair(at / 8) << 8 | pair((at / 8).saturating_add(1));
        let shift = 11_usize.saturating_sub(at % 8);
        made.push(symbol(two >> shift));
        at = at.saturating_add(5);
    }
    SecretBytes::new(made)
}

/// A text with its last byte first.
fn reversed(text: &[u8]) -> SecretBytes {
    let mut made = text.to_vec();
    made.reverse();
    SecretBytes::new(made)
}

/// A text with small letters for capitals and capitals for small ones.
fn swapped(text: &[u8]) -> SecretBytes {
    let mut made = text.to_vec();
    for byte in &mut made {
        if byte.is_ascii_lowercase() {
            byte.make_ascii_uppercase();
        } else {
            byte.make_ascii_lowercase();
        }
    }
    SecretBytes::new(made)
}

/// A value as strings and words of other languages, where that is not the value itself.
fn escaped(value: &[u8]) -> Vec<SecretBytes> {
    let mut texts: Vec<SecretBytes> = Vec::new();
    let mut add = |text: SecretBytes| {
        let is_new = texts.iter().all(|other| other.expose() != text.expose());
        if is_new && text.expose() != value && text.expose().len() <= ESCAPED_BYTES_MAX {
            texts.push(text);
        }
    };
    if value.iter().all(u8::is_ascii_alphanumeric) {
        return texts;
    }
    for is_escaped in BACKSLASHED {
        add(backslashed(value, is_escaped));
    }
    let [document, ..] = BACKSLASHED;
    let mut nested = SecretBytes::new(value.to_vec());
    for _ in 0..NESTED_MAX {
        nested = backslashed(nested.expose(), document);
        // In a table.
        add(replaced(nested.expose(), b'"', b"\"\""));
        add(SecretBytes::new(nested.expose().to_vec()));
    }
    for (sign, writings) in [
        (b'"', &[&b"\"\""[..]][..]),
        // Of YAML and SQL, and of shells.
        (b'\'', &[b"''", b"'\\''", b"'\"'\"'"]),
    ] {
        for writing in writings {
            add(replaced(value, sign, writing));
        }
    }
    texts
}

/// A text with a backslash before some of its signs.
fn backslashed(text: &[u8], is_escaped: fn(u8) -> bool) -> SecretBytes {
    let mut made = Vec::with_capacity(text.len().saturating_mul(2));
    for byte in text {
        if is_escaped(*byte) {
            made.push(b'\\');
        }
        made.push(match byte {
            b'\n' if is_escaped(*byte) => b'n',
            b'\r' if is_escaped(*byte) => b'r',
            b'\t' if is_escaped(*byte) => b't',
            _ => *byte,
        });
    }
    SecretBytes::new(made)
}

/// A text with something else for one of its signs.
fn replaced(text: &[u8], sign: u8, writing: &[u8]) -> SecretBytes {
    let mut made = Vec::with_capacity(text.len().saturating_mul(writing.len()));
    for byte in text {
        if *byte == sign {
            made.extend_from_slice(writing);
        } else {
            made.push(*byte);
        }
    }
    SecretBytes::new(made)
}

/// The characters that hold bits of the value alone when so many bytes stand
/// before it in its group of three.
fn phased(value: &[u8], phase: usize, alphabet: [u8; 2]) -> SecretBytes {
    let mut padded = Vec::with_capacity(value.len().saturating_add(phase));
    padded.resize(phase, 0);
    padded.extend_from_slice(value);
    let padded = SecretBytes::new(padded);
    let text = base64::encode(padded.expose(), alphabet);
    let first = phase.saturating_mul(8).div_ceil(6);
    let last = padded.expose().len().saturating_mul(8) / 6;
    let kept = span::within(&text, first..last).to_vec();
    drop(SecretBytes::new(text));
    SecretBytes::new(kept)
}
