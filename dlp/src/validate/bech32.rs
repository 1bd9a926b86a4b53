//! Bech32 (BIP-173) and Bech32m (BIP-350): a readable part, a separator, and characters whose last
//! six are a checksum over all of it.

const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const GENERATORS: [u32; 5] = [
    0x3b6a_57b2,
    0x2650_8e6d,
    0x1ea1_19fa,
    0x3d42_33dd,
    0x2a14_62b3,
];
/// What a right checksum leaves, in either form.
const BECH32: u32 = 1;
const BECH32M: u32 = 0x2bc8_30a3;
/// Characters of the checksum.
pub(crate) const CHECKSUM_CHARACTERS: usize = 6;
/// Longest text that is looked at, in characters.
const CHARACTERS_MAX: usize = 1024;

/// Whether a text, all lower case or all upper case, carries its checksum.
pub(crate) fn is(text: &[u8]) -> bool {
    let upper = text.iter().any(u8::is_ascii_uppercase);
    let lower = text.iter().any(u8::is_ascii_lowercase);
    let Some(separator) = text.iter().rposition(|byte| *byte == b'1') else {
        return false;
    };
    let (readable, data) = text.split_at(separator);
    let data = data.get(1..).unwrap_or_default();
    let fits =
        text.len() <= CHARACTERS_MAX && !readable.is_empty() && data.len() >= CHECKSUM_CHARACTERS;
    if (upper && lower) || !fits {
        return false;
    }
    let mut state = readable_part(readable);
    for character in data {
        let Some(value) = value(*character) else {
            return false;
        };
        state = step(state, value);
    }
    matches!(state, BECH32 | BECH32M)
}

/// The characters of a checksum, lower case.
pub(crate) fn checksum(readable: &[u8], data: &[u8]) -> Option<[u8; CHECKSUM_CHARACTERS]> {
    let mut state = readable_part(readable);
    for character in data {
        state = step(state, value(*character)?);
    }
    for _ in 0..CHECKSUM_CHARACTERS {
        state = step(state, 0);
    }
    state ^= 1;
    let mut characters = [b'q'; CHECKSUM_CHARACTERS];
    for character in characters.iter_mut().rev() {
        let position = usize::try_from(state & 31).ok()?;
        *character = *ALPHABET.get(position)?;
        state >>= 5;
    }
    Some(characters)
}

fn readable_part(readable: &[u8]) -> u32 {
    let mut state = 1;
    for byte in readable {
        state = step(state, u32::from(byte.to_ascii_lowercase() >> 5));
    }
    state = step(state, 0);
    for byte in readable {
        state = step(state, u32::from(byte.to_ascii_lowercase() & 31));
    }
    state
}

fn value(character: u8) -> Option<u32> {
    let character = character.to_ascii_lowercase();
    let position = ALPHABET.iter().position(|known| *known == character)?;
    u32::try_from(position).ok()
}

fn step(state: u32, value: u32) -> u32 {
    let top = state >> 25;
    let mut next = ((state & 0x01ff_ffff) << 5) ^ value;
    for (position, generator) in GENERATORS.iter().enumerate() {
        if (top >> position) & 1 == 1 {
            next ^= generator;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::{checksum, is};

    #[test]
    fn the_vectors_of_the_standard_agree() {
        for good in [
            "A12UEL5L",
            "a12uel5l",
            "an83characterlonghumanreadablepartthatcontainsthenumber1andtheexcludedcharactersbio1tt5tgs",
            "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw",
            "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w",
            "?1ezyfcl",
        ] {
            assert!(is(good.as_bytes()), "{good}");
            let (readable, data) = good.rsplit_once('1').expect("separator");
            let (body, tail) = data.split_at(data.len() - 6);
            let made = checksum(readable.as_bytes(), body.as_bytes()).expect("characters");
            assert_eq!(&made, tail.to_ascii_lowercase().as_bytes());
        }
        for bad in [
            "",
            "1",
            "pzry9x0s0muk",
            "1pzry9x0s0muk",
            "x1b4n0q5v",
            "li1dgmt3",
            "A1G7SGD8",
            "10a06t8",
            "a12UEL5L",
            "a12uel5m",
        ] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let key = b"AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
        assert!(is(key), "the identity of forty-two bytes 42");
        for position in 0..key.len() {
            let mut changed = key.to_vec();
            changed[position] = if changed[position] == b'Q' {
                b'P'
            } else {
                b'Q'
            };
            assert!(!is(&changed), "{position}");
        }
    }
}
