//! DER (X.690): values written, and read again where their kind is known. Nothing of
//! indefinite length, and nothing longer than what holds it.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const BMP_STRING: u8 = 0x1e;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const EXPLICIT_0: u8 = 0xa0;

/// A value of a kind, made of parts (X.690 8.1).
pub(super) fn value(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = length.to_be_bytes();
    let digits = bytes.iter().skip_while(|byte| **byte == 0);
    let mut out = Vec::with_capacity(length + 6);
    out.push(kind);
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let count = u8::try_from(digits.clone().count()).unwrap_or(8);
        out.push(0x80 | count);
        out.extend(digits);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// Values one after the other, of known kinds and definite lengths (X.690 8.1).
pub(super) struct DerValues<'a>(pub(super) &'a [u8]);

impl<'a> DerValues<'a> {
    /// The content of the next value, which must be of this kind.
    pub(super) fn next(&mut self, kind: u8) -> Option<&'a [u8]> {
        let (&[found, short], rest) = self.0.split_first_chunk()?;
        let digits = match short {
            0..=0x7f => 0,
            // None is of no length that is said, five are more than we read.
            0x81..=0x84 => usize::from(short & 0x7f),
            _ => return None,
        };
        let (long, rest) = rest.split_at_checked(digits)?;
        let length = long.iter().try_fold(0_usize, |sum, digit| {
            sum.checked_mul(256)?.checked_add(usize::from(*digit))
        })?;
        let length = if digits == 0 {
            usize::from(short)
        } else {
            length
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (found == kind).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        for (length, head) in [
            (0_usize, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (70_000, &[4, 0x83, 1, 0x11, 0x70]),
        ] {
            let made = value(OCTET_STRING, &[&vec![7; length]]);
            assert!(
                made.starts_with(head),
                "{length}: {:?}",
                &made[..head.len()]
            );
            assert_eq!(made.len(), head.len() + length);
        }
    }
}
