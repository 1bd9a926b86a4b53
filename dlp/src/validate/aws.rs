//! Identifiers of AWS access keys: four letters for the kind, then base 32, in
//! which newer keys carry the number of their account.

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Account numbers have twelve digits.
const ACCOUNTS: u64 = 1_000_000_000_000;

/// Whether a key of the newer kind carries a possible account. Keys of the older
/// kind (`I` or `J` behind the four letters) carry none and pass; keys of
/// documentation fail.
pub(crate) fn is(key: &[u8]) -> bool {
    let Some((_, body)) = key.split_first_chunk::<4>() else {
        return false;
    };
    if body.len() != 16 || is_published(key) {
        return false;
    }
    matches!(body.first(), Some(b'I' | b'J'))
        || account(body).is_some_and(|number| number < ACCOUNTS)
}

/// Whether a key is one of documentation.
fn is_published(key: &[u8]) -> bool {
    key.windows(7).any(|part| part == b"EXAMPLE")
}

/// The number in the first nine characters: forty bits behind the first.
fn account(body: &[u8]) -> Option<u64> {
    let mut bits = 0u64;
    for character in body.iter().take(10) {
        let value = ALPHABET.iter().position(|known| known == character)?;
        bits = (bits << 5) | u64::try_from(value).ok()?;
    }
    // Fifty bits: the account is in the upper 48 without the first and the last seven.
    Some(((bits >> 2) & 0x7fff_ffff_ff80) >> 7)
}

/// The characters behind the four letters, for an account and some random bits.
pub(crate) fn body(account: u64, random: u64) -> [u8; 16] {
    // Eighty bits: 1, account (40), random (39).
    let high = (1u64 << 40) | (account % ACCOUNTS);
    let low = random & 0x7f_ffff_ffff;
    let bits = (u128::from(high) << 39) | u128::from(low);
    let mut body = [b'A'; 16];
    for (position, character) in body.iter_mut().rev().enumerate() {
        let shift = u32::try_from(position)
            .unwrap_or_default()
            .saturating_mul(5);
        let value = usize::try_from((bits >> shift) & 31).unwrap_or_default();
        *character = ALPHABET.get(value).copied().unwrap_or(b'A');
    }
    body
}

#[cfg(test)]
mod tests {
    use super::{account, body, is};

    #[test]
    fn the_account_of_a_key_is_read() {
        // Keys that were published with their accounts, in two parts.
        assert_eq!(account(b"QYLPMN5HHHFPZAM2"), Some(52_310_077_262));
        for number in [0, 1, 123_456_789_012, 999_999_999_999] {
            let made = body(number, 0x12_3456_789a);
            assert_eq!(account(&made), Some(number));
            assert!(is(&[b"AKIA", &made[..]].concat()));
        }
    }

    #[test]
    fn impossible_keys_fail() {
        for bad in [
            "AKIAIOSFODNN7EXAMPLE",
            "AKIA",
            "AKIA777777777777777",
            "AKIA7777777777777777",
        ] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
        assert!(
            is(b"AKIAIOSFODNN7ABCDEFG"),
            "an older key carries no account"
        );
    }
}
