//! A credential that nobody issued, with a right checksum, new for every test.

use std::time::{SystemTime, UNIX_EPOCH};

/// A token as GitHub issues them: `ghp_`, thirty characters, and their CRC-32 in
/// six more, base 62.
#[derive(Debug, Clone)]
pub(crate) struct Credential(String);

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Credential {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut state = since.map_or(1, |since| since.as_nanos() as u64) | 1;
        let mut body = String::new();
        for _ in 0..30 {
            // xorshift64: any spread will do.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            body.push(char::from(DIGITS[(state % 62) as usize]));
        }
        let mut sum = crc32(body.as_bytes());
        let mut tail = Vec::new();
        for _ in 0..6 {
            tail.push(DIGITS[(sum % 62) as usize]);
            sum /= 62;
        }
        tail.reverse();
        let tail = String::from_utf8(tail).expect("digits");
        Self(format!("ghp_{body}{tail}"))
    }

    /// One whose last two letters are the same, as one of 62 is.
    pub(crate) fn with_the_last_letter_twice() -> Self {
        let mut drawn = std::iter::repeat_with(Self::new).take(1_000_000);
        let is_twice = |one: &Self| matches!(one.0.as_bytes(), [.., a, b] if a == b);
        drawn.find(is_twice).expect("one of 62")
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Parts that do not stand anywhere by chance.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &str> {
        [4..12, 12..20, 20..28, 28..40]
            .into_iter()
            .map(|range| &self.0[range])
    }
}

/// IEEE 802.3, reflected.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 {
                (sum >> 1) ^ 0xedb8_8320
            } else {
                sum >> 1
            };
        }
    }
    !sum
}

#[test]
fn the_sum_is_the_standards() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}
