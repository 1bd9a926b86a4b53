//! Base 64 of a token's parts (RFC 4648 4 and 5): both alphabets, padded or not.

/// Longest text that is decoded, in characters.
const CHARACTERS_MAX: usize = 16 << 10;

/// The bytes that a text stands for, or nothing when a character is foreign, a
/// length is impossible or the text is too long. Bits left over are ignored.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let body = text.get(..text.len().checked_sub(padding)?)?;
    if body.len() > CHARACTERS_MAX || padding > 2 || body.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(body.len());
    for group in body.chunks(4) {
        let mut bits = 0u32;
        for character in group {
            bits = (bits << 6) | value(*character)?;
        }
        let missing = 4usize.saturating_sub(group.len());
        for _ in 0..missing {
            bits <<= 6;
        }
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.push(first);
        bytes.extend((missing < 2).then_some(second));
        bytes.extend((missing < 1).then_some(third));
    }
    Some(bytes)
}

/// A text for some bytes: `alphabet` is the pair of characters for 62 and 63;
/// without padding.
pub(crate) fn encode(bytes: &[u8], alphabet: [u8; 2]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().saturating_mul(4).div_ceil(3));
    for group in bytes.chunks(3) {
        let byte = |position: usize| u32::from(group.get(position).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for shift in [18u32, 12, 6, 0]
            .into_iter()
            .take(group.len().saturating_add(1))
        {
            let [.., value] = ((bits >> shift) & 63).to_be_bytes();
            text.push(letter(value, alphabet));
        }
    }
    text
}

/// The two last characters of the alphabet of RFC 4648 4.
pub(crate) const STANDARD: [u8; 2] = *b"+/";
/// The two last characters of the alphabet of RFC 4648 5.
pub(crate) const URL: [u8; 2] = *b"-_";

fn letter(value: u8, [plus, slash]: [u8; 2]) -> u8 {
    match value {
        0..=25 => value.wrapping_add(b'A'),
        26..=51 => value.wrapping_sub(26).wrapping_add(b'a'),
        52..=61 => value.wrapping_sub(52).wrapping_add(b'0'),
        62 => plus,
        _ => slash,
    }
}

fn value(character: u8) -> Option<u32> {
    let value = match character {
        b'A'..=b'Z' => character.wrapping_sub(b'A'),
        b'a'..=b'z' => character.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => character.wrapping_sub(b'0').wrapping_add(52),
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, URL, decode, encode};

    #[test]
    fn the_vectors_of_the_standard_agree() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let bare = text.trim_end_matches('=');
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(decode(bare.as_bytes()).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(encode(bytes.as_bytes(), STANDARD), bare.as_bytes());
        }
        assert_eq!(decode(b"-_8").as_deref(), Some(&[0xfb, 0xff][..]));
        assert_eq!(encode(&[0xfb, 0xff], URL), b"-_8");
        assert_eq!(encode(&[0xfb, 0xff], STANDARD), b"+/8");
        for bad in ["Z", "Zm9vY", "Zm9!", "Zg===", "Z=g="] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
