//! CRC-32 (ISO 3309, as in gzip and zip) and its spelling in base 62 at the end
//! of tokens.

/// Digits of base 62 in the order of those tokens.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Characters of a checksum in base 62.
pub(crate) const BASE62_CHARACTERS: usize = 6;

/// The CRC-32 of some bytes.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let carry = crc & 1;
            crc = (crc >> 1) ^ (0xedb8_8320 & carry.wrapping_neg());
        }
    }
    !crc
}

/// A checksum in base 62, six characters with zeros in front.
pub(crate) fn base62(crc: u32) -> [u8; BASE62_CHARACTERS] {
    let mut digits = [b'0'; BASE62_CHARACTERS];
    let mut rest = crc;
    for digit in digits.iter_mut().rev() {
        let position = usize::try_from(rest % 62).unwrap_or_default();
        *digit = BASE62.get(position).copied().unwrap_or(b'0');
        rest /= 62;
    }
    digits
}

/// Whether the last six characters are the checksum of those between the last
/// underscore and them.
pub(crate) fn is_base62_tail(token: &[u8]) -> bool {
    let body = token
        .rsplit(|byte| *byte == b'_')
        .next()
        .unwrap_or_default();
    let Some((random, tail)) = body.split_last_chunk::<BASE62_CHARACTERS>() else {
        return false;
    };
    !random.is_empty() && base62(crc32(random)) == *tail
}

#[cfg(test)]
mod tests {
    use super::{base62, crc32, is_base62_tail};

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(
            crc32(b"The quick brown fox jumps over the lazy dog"),
            0x414f_a339
        );
    }

    #[test]
    fn base_62_has_six_digits_and_upper_case_before_lower() {
        assert_eq!(&base62(0), b"000000");
        assert_eq!(&base62(61), b"00000z");
        assert_eq!(&base62(62), b"000010");
        assert_eq!(&base62(35), b"00000Z");
        assert_eq!(&base62(u32::MAX), b"4gfFC3");
    }

    #[test]
    fn a_token_with_one_changed_character_fails() {
        // A token that its issuer published as an example, in two parts.
        let token = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ", "0mLq17"].concat();
        assert!(is_base62_tail(token.as_bytes()));
        for position in 4..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[position] = if changed[position] == b'a' {
                b'b'
            } else {
                b'a'
            };
            assert!(!is_base62_tail(&changed), "{position}");
        }
        assert!(!is_base62_tail(b"ghp_"));
        assert!(!is_base62_tail(b"000000"));
    }
}
