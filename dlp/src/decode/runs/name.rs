//! Which words are spelled like names: in sources most runs of base64 are, and nothing
//! compressed begins there.

use crate::limits;

use super::lane::RunExtent;

/// Symbols of a word that are looked at: as many as the least that is worth a look.
const SYMBOLS: usize = (limits::UNMARKED_BYTES_MIN * 8).div_ceil(6);

/// So many zeros in a row are no part of a name.
const ZEROS: usize = 6;

/// Whether a word of base64 is a number in hexadecimal, or spelled like a name: its first
/// letters and digits change between small ones, capitals and digits less than twice in seven.
/// Of random symbols two in ten thousand look so; zeros, with which much begins, do not. One
/// that is too short to hold anything counts as a name, unless more of it may come; one whose
/// symbols stand far apart does not.
pub(super) fn is_name(word: &[u8], extent: RunExtent) -> bool {
    let (mut turns, mut before, mut all, mut count) = (0_usize, 0_u8, 0_u8, 0_usize);
    let mut zeros = 0_usize;
    for byte in word.iter().take(limits::STARTS_BYTES) {
        if matches!(byte, b'\r' | b'\n' | b'\\') {
            continue;
        }
        let kinds = KINDS.get(usize::from(*byte)).copied().unwrap_or_default();
        let kind = kinds & !NO_HEX;
        turns = turns.saturating_add(usize::from(kind & before != kind));
        before = if kind == 0 { before } else { kind };
        all |= kinds;
        count = count.saturating_add(1);
        zeros = if *byte == b'A' {
            zeros.saturating_add(1)
        } else {
            0
        };
        if zeros == ZEROS {
            return false;
        }
        if count == SYMBOLS {
            let is_hex = all & NO_HEX == 0;
            return is_hex || turns.saturating_mul(7) < count.saturating_mul(2);
        }
    }
    extent == RunExtent::Whole && word.len() <= limits::STARTS_BYTES
}

/// Of each byte whether it is a small letter, a capital, a digit, each a bit, and whether it
/// stands in no number in hexadecimal, with or without dashes.
static KINDS: [u8; 256] = kinds();

const SMALL: u8 = 1;
const CAPITAL: u8 = 2;
const DIGIT: u8 = 4;
const NO_HEX: u8 = 8;

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, which checks it"
)]
const fn kinds() -> [u8; 256] {
    let mut table = [NO_HEX; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let kind = match byte {
            b'a'..=b'z' => SMALL,
            b'A'..=b'Z' => CAPITAL,
            b'0'..=b'9' => DIGIT,
            _ => 0,
        };
        let is_hex = byte.is_ascii_hexdigit() || byte == b'-';
        table[byte as usize] = if is_hex { kind } else { kind | NO_HEX };
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_told_from_what_was_compressed() {
        for name in [
            "RFC3161timestampVerificationError",
            "ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY",
            "com/npm/rfcs/blob/latest/implemented/0019-remove",
            "46212ac0100668f14eb9e2843bdd846e510a1e",
            "tooShortForAnything0",
        ] {
            assert!(is_name(name.as_bytes(), RunExtent::Whole), "{name}");
        }
        for other in [
            "dVY7DoAgDN05BUfg/wGPwupmYly8v0ILLUgYlPeX",
            "dVY7DoAgDN05\nBUfg/wGPwupmYly8v0ILLUgYlPeX",
            "AFoApf8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "dVY7DoAgDN05BUfg/wGPwupmYly8andlettersbehinditthatgoonandonandon",
        ] {
            assert!(!is_name(other.as_bytes(), RunExtent::Whole), "{other}");
        }
        assert!(!is_name(b"tooShortForAnything0", RunExtent::Part));
        let apart = "a\n\n\n\n\n".repeat(1000);
        assert!(!is_name(apart.as_bytes(), RunExtent::Whole));
    }
}
