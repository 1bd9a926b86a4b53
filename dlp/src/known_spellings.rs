//! One value as programs write it: with the padding of base 64 and without, in either of its
//! alphabets, a UUID or a fingerprint with its signs and without, and what it is the coding
//! of. Whoever holds the one has the other.

use crate::secret::SecretBytes;
use crate::validate::{base64, entropy};

/// Shortest text that is taken for the coding of other bytes, in characters: 15 bytes of them.
const CODED_BYTES_MIN: usize = 20;
/// Longest: what is longer is a document.
const CODED_BYTES_MAX: usize = 256;
/// Fewest bytes that a value in hexadecimal stands for, so that no number is one.
const HEX_BYTES_MIN: usize = 12;
/// Least entropy of what was coded, in bits a byte: below it is no secret.
const DECODED_BITS_MIN: f64 = 2.75;
/// What stands between groups of a UUID (RFC 9562 4) or bytes of a fingerprint.
const SIGNS: [u8; 3] = *b"-: ";
/// Lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The spellings of a value, of which the first has the least to it, and the bytes that it is
/// the coding of.
pub(crate) fn spellings(value: &[u8]) -> (Vec<SecretBytes>, Option<SecretBytes>) {
    let bare = without_padding(value);
    let mut all = vec![SecretBytes::new(bare.to_vec())];
    all.extend(other_alphabet(bare));
    let digits = without_signs(value);
    if let Some(digits) = &digits {
        all.push(digits.clone());
    }
    all.extend(as_uuid(value));
    let digits = digits.as_ref().map_or(bare, SecretBytes::expose);
    let bytes = decoded(digits);
    (all, bytes)
}

/// A text in base 64 without the padding behind it (RFC 4648 3.2).
fn without_padding(value: &[u8]) -> &[u8] {
    let bare = value
        .strip_suffix(b"==")
        .or_else(|| value.strip_suffix(b"="));
    match bare {
        Some(bare) if value.len().is_multiple_of(4) && is_base64(bare) => bare,
        _ => value,
    }
}

/// Whether a text is long enough for base 64 and has its letters alone, of either alphabet.
fn is_base64(text: &[u8]) -> bool {
    let has = |signs: [u8; 2]| text.iter().any(|byte| signs.contains(byte));
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    text.len() >= CODED_BYTES_MIN
        && text.iter().all(is_letter)
        && !(has(base64::STANDARD) && has(base64::URL))
}

/// A text in base 64 by the other alphabet, where that is another text.
fn other_alphabet(text: &[u8]) -> Option<SecretBytes> {
    let pairs = [(b'+', b'-'), (b'/', b'_')];
    let other = |byte: &u8| {
        let pair = pairs.iter().find(|(one, two)| [one, two].contains(&byte));
        pair.map_or(*byte, |(one, two)| if byte == one { *two } else { *one })
    };
    let made: Vec<u8> = text.iter().map(other).collect();
    (is_base64(text) && made != text).then(|| SecretBytes::new(made))
}

/// Digits of base 16 that stood in groups, without what stood between them.
fn without_signs(value: &[u8]) -> Option<SecretBytes> {
    let digits: Vec<u8> = value
        .iter()
        .copied()
        .filter(u8::is_ascii_hexdigit)
        .collect();
    let others = || value.iter().filter(|byte| !byte.is_ascii_hexdigit());
    let is_grouped = others()
        .next()
        .is_some_and(|first| SIGNS.contains(first) && others().all(|own| own == first));
    (is_grouped && digits.len() >= HEX_BYTES_MIN.saturating_mul(2))
        .then(|| SecretBytes::new(digits))
}

/// The digits of a UUID in its groups.
fn as_uuid(value: &[u8]) -> Option<SecretBytes> {
    if value.len() != UUID.iter().sum::<usize>() || !value.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut rest = value;
    let mut made = Vec::with_capacity(value.len().saturating_add(UUID.len()));
    for length in UUID {
        let (group, behind) = rest.split_at_checked(length)?;
        if !made.is_empty() {
            made.push(b'-');
        }
        made.extend_from_slice(group);
        rest = behind;
    }
    Some(SecretBytes::new(made))
}

/// The bytes that a value is the coding of, unless they are text: text has a meaning of its
/// own, and stands elsewhere too.
fn decoded(value: &[u8]) -> Option<SecretBytes> {
    if value.len() > CODED_BYTES_MAX {
        return None;
    }
    let made = if value.iter().all(u8::is_ascii_hexdigit) && value.len().is_multiple_of(2) {
        let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = value.chunks(2).map(pair).collect();
        bytes.filter(|bytes| bytes.len() >= HEX_BYTES_MIN)?
    } else if is_base64(value) {
        base64::decode(value)?
    } else {
        return None;
    };
    let made = SecretBytes::new(made);
    let is_text = made
        .expose()
        .iter()
        .all(|byte| matches!(byte, b'\t'..=b'\r' | b' '..=b'~'));
    (!is_text && entropy::bits(made.expose()) >= DECODED_BITS_MIN).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_spellings_that_programs_give_it() {
        let rows: [(&str, &[&str]); 6] = [
            (
                "h1nTb+An56+V/rlZsYl3jiIivlsjOsFIQP3i/D0Rchs=",
                &[
                    "h1nTb+An56+V/rlZsYl3jiIivlsjOsFIQP3i/D0Rchs",
                    "h1nTb-An56-V_rlZsYl3jiIivlsjOsFIQP3i_D0Rchs",
                ],
            ),
            (
                "h1nTb-An56-V_rlZsYl3jiIivlsjOsFIQP3i_D0Rchs",
                &[
                    "h1nTb-An56-V_rlZsYl3jiIivlsjOsFIQP3i_D0Rchs",
                    "h1nTb+An56+V/rlZsYl3jiIivlsjOsFIQP3i/D0Rchs",
                ],
            ),
            (
                "0f8fad5b-d9cb-469f-a165-70867728950e",
                &[
                    "0f8fad5b-d9cb-469f-a165-70867728950e",
                    "0f8fad5b+d9cb+469f+a165+70867728950e",
                    "0f8fad5bd9cb469fa16570867728950e",
                ],
            ),
            (
                "0f8fad5bd9cb469fa16570867728950e",
                &[
                    "0f8fad5bd9cb469fa16570867728950e",
                    "0f8fad5b-d9cb-469f-a165-70867728950e",
                ],
            ),
            ("Correct horse battery 9!", &["Correct horse battery 9!"]),
            ("kV8pq2Lmz=", &["kV8pq2Lmz="]),
        ];
        for (value, expected) in rows {
            let (made, _) = spellings(value.as_bytes());
            let texts: Vec<String> = made
                .iter()
                .filter_map(|own| String::from_utf8(own.expose().to_vec()).ok())
                .collect();
            assert_eq!(texts, expected, "{value}");
        }
        let (_, bytes) = spellings(b"0f8fad5b-d9cb-469f-a165-70867728950e");
        let expected = b"\x0f\x8f\xad\x5b\xd9\xcb\x46\x9f\xa1\x65\x70\x86\x77\x28\x95\x0e";
        assert_eq!(bytes.as_ref().map(SecretBytes::expose), Some(&expected[..]));
        // Text in base 64 is a document.
        let (texts, bytes) = spellings(b"SGVsbG8sIHRoaXMgaXMgb25lIGxpbmU");
        assert_eq!((texts.len(), bytes.is_none()), (1, true));
    }
}
