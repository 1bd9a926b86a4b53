//! The codings in which a piece may stand by itself: one function for whole values, for words
//! in a text, and for the halves of what Basic authentication says. Pure; of each piece as
//! many bytes as are kept of one.

use data_encoding::HEXLOWER_PERMISSIVE;

use crate::escapes::{EscapeDecoder, EscapeKind};
use crate::validate::base64;

/// How many times a piece may be coded.
pub(super) const TIMES_MAX: usize = 3;

/// Shortest word of capitals that is read as base32, in bytes: five of text are no chance.
const BASE32_BYTES_MIN: usize = 8;

/// The same of small letters, of which there are many short words.
const BASE32_WORD_BYTES_MIN: usize = 12;

/// What a piece says in text that is coded, however often.
pub(super) fn said(piece: &[u8]) -> Option<Vec<u8>> {
    let mut said = decoded(piece)?;
    for _ in 1..TIMES_MAX {
        let Some(more) = decoded(&said) else {
            break;
        };
        said = more;
    }
    Some(said)
}

/// What a piece says that is coded by itself, in text.
pub(super) fn decoded(piece: &[u8]) -> Option<Vec<u8>> {
    let is_symbol = |byte: &u8| {
        let is_sign = matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
        byte.is_ascii_alphanumeric() || is_sign
    };
    match piece.iter().find(|byte| !is_symbol(byte)) {
        // Words have blanks before anything else.
        Some(b' ' | b',' | b'[' | b'(' | b'{') => numbers(piece),
        Some(_) => unescaped(piece),
        None if piece.len() < 2 => None,
        None => of_symbols(piece).or_else(|| unescaped(piece)),
    }
}

/// What a piece says that has no signs but those of base 64.
fn of_symbols(piece: &[u8]) -> Option<Vec<u8>> {
    let digits = [&b"0x"[..], b"x"]
        .iter()
        .find_map(|sign| piece.strip_prefix(*sign));
    let from_hex = HEXLOWER_PERMISSIVE.decode(digits.unwrap_or(piece)).ok();
    let from_hex = from_hex.filter(|text| is_text(text));
    // Mostly the first bytes say that it is none.
    let first = piece.get(..piece.len().min(4)).and_then(base64::decode);
    let from_base64 = || base64::decode(piece).filter(|text| is_text(text));
    from_hex.or_else(|| base32(piece)).or_else(|| {
        first
            .filter(|text| is_text(text))
            .and_then(|_| from_base64())
    })
}

fn is_text(bytes: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    !bytes.is_empty() && bytes.iter().all(is_sign)
}

/// Text for its escapes, of whatever kind; nothing where there are none.
fn unescaped(piece: &[u8]) -> Option<Vec<u8>> {
    const KINDS: [(u8, EscapeKind); 4] = [
        (b'%', EscapeKind::Percent),
        (b'\\', EscapeKind::Escape),
        (b'&', EscapeKind::Reference),
        (b'=', EscapeKind::Quoted),
    ];
    let kinds = KINDS.iter().filter(|(sign, _)| piece.contains(sign));
    let mut plain = kinds.filter_map(|(_, kind)| unescaped_of(*kind, piece));
    plain.find(|text| is_text(text))
}

/// Bytes for their escapes of a kind; nothing where there are none.
pub(super) fn unescaped_of(kind: EscapeKind, piece: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut places) = (Vec::with_capacity(piece.len()), Vec::new());
    let mut decoder = EscapeDecoder::new(kind);
    decoder.push(piece, &mut plain, &mut places);
    decoder.finish(&mut plain);
    (!places.is_empty()).then_some(plain)
}

/// The text for which base32 stands (RFC 4648 6), in capitals or not, padded or not.
fn base32(piece: &[u8]) -> Option<Vec<u8>> {
    let padding = piece.iter().rev().take_while(|byte| **byte == b'=').count();
    let symbols = piece.get(..piece.len().saturating_sub(padding))?;
    let is_one_case = |is: fn(&u8) -> bool| {
        let mut all = symbols.iter();
        all.all(|byte| is(byte) || matches!(byte, b'2'..=b'7'))
    };
    let is_one = is_one_case(u8::is_ascii_uppercase) || is_one_case(u8::is_ascii_lowercase);
    // So many symbols are whole bytes.
    let is_whole = matches!(symbols.len() % 8, 0 | 2 | 4 | 5 | 7);
    if !is_one || !is_whole || symbols.len() < 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols.len());
    let (mut rest, mut filled) = (0_u32, 0_u32);
    for symbol in symbols {
        let number = match symbol {
            b'2'..=b'7' => symbol.wrapping_sub(b'2').wrapping_add(26),
            letter => letter.to_ascii_lowercase().wrapping_sub(b'a'),
        };
        rest = (rest & 0xff) << 5 | u32::from(number);
        filled = filled.saturating_add(5);
        if filled >= 8 {
            filled = filled.saturating_sub(8);
            let [.., byte] = (rest >> filled).to_be_bytes();
            bytes.push(byte);
        }
    }
    Some(bytes).filter(|text| is_text(text))
}

/// The text for which numbers stand, one for each byte: decimal, or hexadecimal with its sign.
fn numbers(piece: &[u8]) -> Option<Vec<u8>> {
    let separates = |byte: &u8| byte.is_ascii_whitespace() || b",[](){};".contains(byte);
    let first = piece.iter().find(|byte| !separates(byte))?;
    // Mostly the first letter says that it is none.
    if !first.is_ascii_digit() {
        return None;
    }
    let number = |word: &[u8]| {
        let word = std::str::from_utf8(word).ok()?;
        let read = |digits: &str, radix| u8::from_str_radix(digits, radix).ok();
        word.strip_prefix("0x")
            .map_or_else(|| read(word, 10), |digits| read(digits, 16))
    };
    let words = piece.split(separates).filter(|word| !word.is_empty());
    let bytes: Option<Vec<u8>> = words.map(number).collect();
    bytes.filter(|bytes| bytes.len() >= 2 && is_text(bytes))
}

/// Whether a word of prose, as far as its letters say, is one of a coding: of digits alone, of
/// base32 without one, of escapes.
pub(super) fn is_coded_word(word: &[u8]) -> bool {
    let is_digits = || {
        let is_long = word.len() >= 2 * crate::limits::WORD_BYTES_MIN;
        is_long && word.iter().all(u8::is_ascii_digit)
    };
    let is_base32 = || {
        let mut letters = word.iter();
        let is_capital =
            |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7' | b'=');
        match word.len() {
            BASE32_WORD_BYTES_MIN.. if word.iter().all(u8::is_ascii_lowercase) => true,
            BASE32_BYTES_MIN.. => letters.all(is_capital),
            _ => false,
        }
    };
    let is_escaped = || word.iter().any(|byte| matches!(byte, b'%' | b'\\'));
    (is_digits() || is_base32() || is_escaped()) && decoded(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_says_what_it_is_coded_for() {
        for (piece, expected) in [
            ("a8K3pQz7", None),
            ("YThLM3BReg==", Some("a8K3pQz")),
            ("YThLM3BReg", Some("a8K3pQz")),
            ("61384b33", Some("a8K3")),
            ("0x61384b33", Some("a8K3")),
            ("ME4EWM3QKF5A====", Some("a8K3pQz")),
            ("me4ewm3qkf5a", Some("a8K3pQz")),
            ("%61%38K3", Some("a8K3")),
            ("\\x61\\x38K3", Some("a8K3")),
            ("\\u0061\\u0038K3", Some("a8K3")),
            ("\\141\\070K3", Some("a8K3")),
            ("&#97;&#x38;K3", Some("a8K3")),
            ("=61=38K3", Some("a8K3")),
            ("[97, 56,75,51]", Some("a8K3")),
            ("97 56 75 51", Some("a8K3")),
            ("0x61, 0x38", Some("a8")),
            ("97", None),
            ("at 12 of 17", None),
            ("1, 2, 3", None),
            ("a=b", None),
            ("", None),
        ] {
            let said = decoded(piece.as_bytes());
            let said = said.map(|said| String::from_utf8(said).unwrap());
            assert_eq!(said.as_deref(), expected, "{piece}");
        }
    }

    #[test]
    fn what_is_coded_several_times_is_said() {
        assert_eq!(said(b"WVRoTE0zQlJlZz09"), Some(b"a8K3pQz".to_vec()));
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics_and_nothing_becomes_longer(piece in ".{0,60}") {
            if let Some(said) = said(piece.as_bytes()) {
                assert!(said.len() <= piece.len());
            }
        }
    }
}
