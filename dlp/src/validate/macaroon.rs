//! Macaroons in their second binary format: a version, fields of type, length
//! and content in sections that end with a zero, a signature last.

use crate::validate::base64;

const VERSION: u8 = 2;
const END: u8 = 0;
const LOCATION: u8 = 1;
const IDENTIFIER: u8 = 2;
const SIGNATURE: u8 = 6;
const SIGNATURE_BYTES: usize = 32;

/// Whether a token, after its prefix up to the first hyphen, is such a macaroon.
pub(crate) fn is(token: &[u8]) -> bool {
    let start = token
        .iter()
        .position(|byte| *byte == b'-')
        .map_or(0, |hyphen| hyphen.saturating_add(1));
    let text = token.get(start..).unwrap_or_default();
    base64::decode(text).is_some_and(|bytes| is_whole(&bytes).is_some())
}

fn is_whole(bytes: &[u8]) -> Option<()> {
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    let (first, after) = field(rest)?;
    rest = after;
    if first == LOCATION {
        let (second, after) = field(rest)?;
        rest = (second == IDENTIFIER).then_some(after)?;
    } else if first != IDENTIFIER {
        return None;
    }
    // The header's end, then sections of caveats, then an empty section.
    rest = ended(rest)?;
    while let Some(after) = ended(rest) {
        if let Some((SIGNATURE, tail)) = field(after) {
            return tail.is_empty().then_some(());
        }
        rest = after;
    }
    loop {
        // A section of fields.
        while ended(rest).is_none() {
            let (_, after) = field(rest)?;
            rest = after;
        }
        rest = ended(rest)?;
        if let Some(after) = ended(rest) {
            return matches!(field(after), Some((SIGNATURE, []))).then_some(());
        }
    }
}

fn ended(bytes: &[u8]) -> Option<&[u8]> {
    let (first, rest) = bytes.split_first()?;
    (*first == END).then_some(rest)
}

/// The type of the first field, and what follows it.
fn field(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = length(rest)?;
    let content = rest.get(..length)?;
    if *kind == SIGNATURE && content.len() != SIGNATURE_BYTES {
        return None;
    }
    Some((*kind, rest.get(length..)?))
}

/// A length of one or two bytes, seven bits each, the lower first.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let low = usize::from(first & 0x7f);
    if first & 0x80 == 0 {
        return Some((low, rest));
    }
    let (second, rest) = rest.split_first()?;
    let high = usize::from(*second)
        .checked_mul(128)
        .filter(|_| second & 0x80 == 0)?;
    Some((low.checked_add(high)?, rest))
}

/// A macaroon of a location, an identifier and one caveat.
pub(crate) fn make(
    location: &[u8],
    identifier: &[u8],
    signature: &[u8; SIGNATURE_BYTES],
) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    let mut put = |kind: u8, content: &[u8]| {
        let [.., length] = content.len().to_be_bytes();
        bytes.extend([kind, length & 0x7f]);
        bytes.extend(content.iter().take(127));
    };
    put(LOCATION, location);
    put(IDENTIFIER, identifier);
    bytes.push(END);
    bytes.extend([IDENTIFIER, 8]);
    bytes.extend(b"[0, [1]]");
    bytes.extend([END, END, SIGNATURE, 32]);
    bytes.extend(signature);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{is, make};
    use crate::validate::base64;

    fn token(bytes: &[u8]) -> Vec<u8> {
        [b"pypi-".to_vec(), base64::encode(bytes, base64::URL)].concat()
    }

    #[test]
    fn a_macaroon_is_read_to_its_end() {
        let good = make(
            b"example.org",
            b"0f9cd2c8-5fba-4a4b-b7d3-3a1b6d3c1e9a",
            &[7; 32],
        );
        assert!(is(&token(&good)));
        for length in 0..good.len() {
            assert!(!is(&token(&good[..length])), "cut after {length} bytes");
        }
        let longer = [&good[..], b"x"].concat();
        assert!(!is(&token(&longer)), "with something behind it");
        let mut other = good;
        other[0] = 1;
        assert!(!is(&token(&other)), "another version");
        assert!(!is(b"pypi-"));
        assert!(!is(b"pypi-!!!!"));
    }

    #[test]
    fn a_macaroon_without_caveats_is_one() {
        let mut bytes = vec![2, 2, 3, b'a', b'b', b'c', 0, 0, 6, 32];
        bytes.extend([9; 32]);
        assert!(is(&token(&bytes)));
    }
}
