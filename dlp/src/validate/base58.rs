//! Base 58 with the alphabet and the checksum of Bitcoin: four bytes of
//! double SHA-256 behind the payload.

use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Longest text that is decoded, in characters; an extended key has 111.
const CHARACTERS_MAX: usize = 128;

/// Decodes a text, or nothing when a character is foreign or it is too long.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > CHARACTERS_MAX {
        return None;
    }
    // Least significant byte first.
    let mut bytes: Vec<u8> = Vec::new();
    for character in text {
        let digit = ALPHABET.iter().position(|known| known == character)?;
        let mut carry = u32::try_from(digit).ok()?;
        for byte in &mut bytes {
            carry = carry.wrapping_add(u32::from(*byte).wrapping_mul(58));
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        if carry > 0 {
            bytes.push(carry.to_le_bytes()[0]);
        }
    }
    let zeros = text
        .iter()
        .take_while(|character| **character == b'1')
        .count();
    bytes.extend(std::iter::repeat_n(0, zeros));
    bytes.reverse();
    Some(bytes)
}

/// Encodes some bytes.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = Vec::new();
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry = carry.wrapping_add(u32::from(*digit) << 8);
            *digit = (carry % 58).to_le_bytes()[0];
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58).to_le_bytes()[0]);
            carry /= 58;
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    digits.extend(std::iter::repeat_n(0, zeros));
    let letter = |digit: &u8| ALPHABET.get(usize::from(*digit)).copied().unwrap_or(b'1');
    digits.iter().rev().map(letter).collect()
}

/// The four bytes that stand behind a payload.
pub(crate) fn checksum(payload: &[u8]) -> [u8; 4] {
    let digest = Sha256::digest(Sha256::digest(payload));
    digest.first_chunk::<4>().copied().unwrap_or_default()
}

/// Whether a text is a payload of one byte or more with its checksum.
pub(crate) fn is_checked(text: &[u8]) -> bool {
    let Some(bytes) = decode(text) else {
        return false;
    };
    match bytes.split_last_chunk::<4>() {
        Some((payload, tail)) if !payload.is_empty() => checksum(payload) == *tail,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, is_checked};

    #[test]
    fn texts_and_bytes_correspond() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"\x61", "2g"),
            (b"bbb", "a3gV"),
            (b"simply a long string", "2cFupjhnEsSn59qHXstmK2ffpLv2"),
            (b"\x00\x01\x09\x66\x77\x60\x06\x95\x3d\x55\x67\x43\x9e\x5e\x39\xf8\x6a\x0d\x27\x3b\xee\xd6\x19\x67\xf6", "16UwLL9Risc3QfPqBUvKofHmBQ7wMtjvM"),
            (b"\x00\x00\x00\x00", "1111"),
        ] {
            assert_eq!(encode(bytes), text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes));
        }
        assert_eq!(decode(b"0OIl"), None);
    }

    #[test]
    fn a_private_key_with_one_changed_character_fails() {
        let keys = [
            // Key 1, compressed and not, and the extended key of BIP-32's first vector.
            "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn",
            "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf",
            "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
        ];
        for key in keys {
            assert!(is_checked(key.as_bytes()), "{key}");
            for position in 0..key.len() {
                let mut changed = key.as_bytes().to_vec();
                changed[position] = if changed[position] == b'2' {
                    b'3'
                } else {
                    b'2'
                };
                assert!(!is_checked(&changed), "{key} at {position}");
            }
        }
        assert!(!is_checked(b""));
        assert!(!is_checked(&[b'1'; 4096]));
    }
}
