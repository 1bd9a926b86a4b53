//! Routable tokens of GitLab: a prefix, a payload in base 64, a point, perhaps a
//! version and another point, two digits for the length of the payload and
//! seven for the CRC-32 of all before them, in base 36.

use crate::finding::Checked;
use crate::validate::{base64, crc};

const LENGTH_CHARACTERS: usize = 2;
const CRC_CHARACTERS: usize = 7;

/// What the checksum says. The older form without a point has none.
pub(crate) fn check(token: &[u8]) -> Checked {
    let Some(point) = token.iter().position(|byte| *byte == b'.') else {
        return Checked::None;
    };
    if is_routable(token, point).is_some() {
        Checked::Passed
    } else {
        Checked::Failed
    }
}

fn is_routable(token: &[u8], point: usize) -> Option<()> {
    let (before, tail) = token.split_last_chunk::<CRC_CHARACTERS>()?;
    let (_, length) = before.split_last_chunk::<LENGTH_CHARACTERS>()?;
    let prefix = token
        .iter()
        .position(|byte| *byte == b'-')?
        .checked_add(1)?;
    let payload = token.get(prefix..point)?;
    let told = number(length)?;
    let same = u64::try_from(payload.len()).ok()? == told;
    let sum = number(tail)? == u64::from(crc::crc32(before));
    (same && sum && base64::decode(payload).is_some()).then_some(())
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit.wrapping_sub(b'0'),
            b'a'..=b'z' => digit.wrapping_sub(b'a').wrapping_add(10),
            _ => return None,
        };
        number = number.checked_mul(36)?.checked_add(u64::from(value))?;
    }
    Some(number)
}

/// A number in base 36 with zeros in front.
fn digits(number: u64, count: usize) -> Vec<u8> {
    let mut digits = vec![b'0'; count];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        let [.., value] = (rest % 36).to_be_bytes();
        *digit = match value {
            0..=9 => value.wrapping_add(b'0'),
            _ => value.wrapping_sub(10).wrapping_add(b'a'),
        };
        rest /= 36;
    }
    digits
}

/// A token from its prefix, its payload and what stands between payload and length.
pub(crate) fn make(prefix: &[u8], payload: &[u8], between: &[u8]) -> Vec<u8> {
    let payload = base64::encode(payload, base64::URL);
    let size = u64::try_from(payload.len()).unwrap_or_default();
    let mut token = [prefix, &payload[..], between].concat();
    token.extend(digits(size, LENGTH_CHARACTERS));
    token.extend(digits(u64::from(crc::crc32(&token)), CRC_CHARACTERS));
    token
}

#[cfg(test)]
mod tests {
    use super::{check, digits, make};
    use crate::finding::Checked;

    #[test]
    fn both_forms_are_checked_and_the_old_one_is_not() {
        for between in [&b"."[..], b".01."] {
            let token = make(
                b"glpat-",
                b"o:1\nu:9k\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x10",
                between,
            );
            assert_eq!(check(&token), Checked::Passed);
            for position in 6..token.len() {
                let mut changed = token.clone();
                changed[position] = if changed[position] == b'a' {
                    b'b'
                } else {
                    b'a'
                };
                assert_ne!(check(&changed), Checked::Passed, "{position}");
            }
        }
        let old = ["glpat-", "aBcDeFgHiJkLmNoPqRsT"].concat();
        assert_eq!(check(old.as_bytes()), Checked::None);
    }

    #[test]
    fn numbers_in_base_36_have_zeros_in_front() {
        assert_eq!(digits(0, 2), b"00");
        assert_eq!(digits(35, 2), b"0z");
        assert_eq!(digits(u64::from(u32::MAX), 7), b"1z141z3");
    }
}
