//! Text for frames and fields whose length is bounded, and bytes as digits. Values only.

/// At most this many bytes, cut at a character.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Bytes in hexadecimal, in small letters.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(outgate_dlp::span::entry(DIGITS, half.into()));
    let pairs = bytes.iter().map(|byte| [byte >> 4, byte & 15].map(digit));
    pairs.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        for byte in 0..=u8::MAX {
            assert_eq!(hex(&[byte]), format!("{byte:02x}"));
        }
        assert_eq!(hex(&[0x0f, 0xf0, 0]), "0ff000");
        assert_eq!(hex(&[]), "");
    }
}
