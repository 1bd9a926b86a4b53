//! Seed phrases (BIP-39): 12, 15, 18, 21 or 24 words of one list, the last bits
//! of which are a checksum.
//!
//! Knows the English list, which almost every wallet uses.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// The list of the standard, one word a line, in alphabetical order.
const LIST: &str = include_str!("bip39.txt");
/// Words of the list.
const WORDS: usize = 2048;
/// How many words a phrase has.
const SIZES: [usize; 5] = [12, 15, 18, 21, 24];
/// Longest text that is looked at, in bytes.
const TEXT_BYTES_MAX: usize = 512;

/// Whether a text holds a phrase: words in any case, with anything that is no
/// letter between them.
pub(crate) fn is(text: &[u8]) -> bool {
    let text = text
        .get(..text.len().min(TEXT_BYTES_MAX))
        .unwrap_or_default();
    let text = text.to_ascii_lowercase();
    let words = text.split(|byte| !byte.is_ascii_lowercase());
    let mut run = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match number(word) {
            Some(number) => run.push(number),
            None if holds(&run) => return true,
            None => run.clear(),
        }
    }
    holds(&run)
}

/// Whether some words in a row are a phrase.
fn holds(run: &[u16]) -> bool {
    let phrases = SIZES.iter().flat_map(|size| run.windows(*size));
    phrases.into_iter().any(is_checked)
}

/// The word at a position of the list.
pub(crate) fn word(number: usize) -> Option<&'static str> {
    LIST.lines().nth(number)
}

/// The phrase of 16 to 32 bytes, a multiple of four.
pub(crate) fn phrase(entropy: &[u8]) -> Option<String> {
    if !matches!(entropy.len(), 16 | 20 | 24 | 28 | 32) {
        return None;
    }
    let mut bits = WordBits::default();
    let mut words = Vec::new();
    for byte in entropy {
        bits.push(u32::from(*byte), 8);
        words.extend(bits.take());
    }
    let digest = Sha256::digest(entropy);
    let size = u32::try_from(entropy.len()).ok()?;
    let first = u32::from(digest.first().copied().unwrap_or_default());
    let count = size.checked_div(4)?;
    bits.push(first.checked_shr(8u32.checked_sub(count)?)?, count);
    words.extend(bits.take());
    let words: Option<Vec<&str>> = words
        .into_iter()
        .map(|number| word(usize::from(number)))
        .collect();
    Some(words?.join(" "))
}

/// Bits that are pushed in any number and taken eleven at a time.
#[derive(Default)]
struct WordBits {
    value: u32,
    count: u32,
}

impl WordBits {
    fn push(&mut self, value: u32, count: u32) {
        self.value = self.value.wrapping_shl(count) | value;
        self.count = self.count.wrapping_add(count);
    }

    fn take(&mut self) -> Option<u16> {
        let rest = self.count.checked_sub(11)?;
        let number = self.value.wrapping_shr(rest);
        self.value &= 1u32.wrapping_shl(rest).wrapping_sub(1);
        self.count = rest;
        u16::try_from(number).ok()
    }
}

fn number(word: &[u8]) -> Option<u16> {
    static SORTED: OnceLock<Vec<&str>> = OnceLock::new();
    let list = SORTED.get_or_init(|| LIST.lines().take(WORDS).collect());
    let position = list
        .binary_search_by(|known| known.as_bytes().cmp(word))
        .ok()?;
    u16::try_from(position).ok()
}

fn is_checked(numbers: &[u16]) -> bool {
    let mut bytes = Vec::with_capacity(33);
    let (mut value, mut count) = (0u32, 0u32);
    for number in numbers {
        value = value.wrapping_shl(11) | u32::from(*number);
        count = count.wrapping_add(11);
        while let Some(rest) = count.checked_sub(8) {
            let [.., byte] = value.wrapping_shr(rest).to_be_bytes();
            bytes.push(byte);
            value &= 1u32.wrapping_shl(rest).wrapping_sub(1);
            count = rest;
        }
    }
    // 12 words leave 4 bits, 24 words end with a whole byte of checksum.
    let given = match count {
        0 => bytes.pop().map(|byte| (u32::from(byte), 8u32)),
        rest => Some((value, rest)),
    };
    let Some((given, bits)) = given else {
        return false;
    };
    let first = Sha256::digest(&bytes).first().copied().unwrap_or_default();
    u32::from(first).checked_shr(8u32.wrapping_sub(bits)) == Some(given)
}

#[cfg(test)]
mod tests {
    use super::{LIST, WORDS, is, phrase};

    #[test]
    fn the_list_is_that_of_the_standard() {
        assert_eq!(LIST.lines().count(), WORDS);
        let digest = <sha2::Sha256 as sha2::Digest>::digest(LIST.as_bytes());
        assert_eq!(digest[..4], [0x2f, 0x5e, 0xed, 0x53]);
    }

    #[test]
    fn the_vectors_of_the_standard_agree() {
        for (bytes, text) in [
            (
                vec![0u8; 16],
                "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
            ),
            (
                vec![0x7f; 16],
                "legal winner thank year wave sausage worth useful legal winner thank yellow",
            ),
            (
                vec![0x80; 16],
                "letter advice cage absurd amount doctor acoustic avoid letter advice cage above",
            ),
            (
                vec![0xff; 16],
                "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
            ),
            (
                vec![0x7f; 24],
                "legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful legal will",
            ),
            (
                vec![0x80; 32],
                "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic bless",
            ),
        ] {
            assert!(is(text.as_bytes()), "{text}");
            assert_eq!(phrase(&bytes).as_deref(), Some(text));
            assert!(is(text.to_uppercase().replace(' ', ",\n").as_bytes()));
        }
    }

    #[test]
    fn a_phrase_among_other_words_is_found() {
        let phrase = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        assert!(is(format!("my wallet is {phrase} so keep it").as_bytes()));
        assert!(is(format!("able {phrase} zoo").as_bytes()));
    }

    #[test]
    fn words_without_their_checksum_are_no_phrase() {
        for bad in [
            "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon",
            "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo",
            "legal winner thank year wave sausage worth useful legal winner thank",
            "legal winner thank year wave sausage worth useful legal winner thank yellowish",
            "legal winner thank year wave sausage worth useful legal winner and then yellow",
            "",
        ] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
    }
}
