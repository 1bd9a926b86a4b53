//! Certificates in PEM (RFC 7468): found in a text, and nothing else of it; as
//! text and as DER. Reads no file and judges no certificate.

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
const END: &[u8] = b"-----END CERTIFICATE-----";

/// The certificates of a bundle, and nothing else: a file that holds a key
/// beside them must not be copied to where the command may read. So only
/// whole blocks of nothing but Base64 count (RFC 7468 5).
pub(super) fn certificates(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    for block in blocks(text) {
        kept.extend_from_slice(BEGIN);
        kept.push(b'\n');
        for line in block {
            kept.extend_from_slice(line);
            kept.push(b'\n');
        }
        kept.extend_from_slice(END);
        kept.push(b'\n');
    }
    kept
}

/// The same as DER, in order; what is no Base64 in the end is left out.
pub(super) fn ders(text: &[u8]) -> Vec<Vec<u8>> {
    let decoded = blocks(text)
        .into_iter()
        .map(|lines| decode(&lines.concat()));
    decoded.flatten().collect()
}

/// The lines of each whole block.
fn blocks(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut found = Vec::new();
    let mut block: Option<Vec<&[u8]>> = None;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line == BEGIN {
            block = Some(Vec::new());
        } else if line == END {
            found.extend(block.take());
        } else if line.iter().copied().all(is_base64) {
            if let Some(block) = &mut block
                && !line.is_empty()
            {
                block.push(line);
            }
        } else {
            block = None;
        }
    }
    found
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Base64 (RFC 4648 4) to bytes.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = text.strip_suffix(b"=").unwrap_or(text);
    let unpadded = unpadded.strip_suffix(b"=").unwrap_or(unpadded);
    let mut bytes = Vec::with_capacity(unpadded.len() / 4 * 3 + 2);
    for group in unpadded.chunks(4) {
        let mut bits: u32 = 0;
        for digit in group {
            bits = bits << 6 | value(*digit)?;
        }
        let missing = 4_usize.saturating_sub(group.len());
        let count = 3_usize.checked_sub(missing).filter(|count| *count > 0)?;
        bits <<= 6 * missing;
        let [_, whole @ ..] = bits.to_be_bytes();
        bytes.extend(whole.into_iter().take(count));
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    let (first, base) = match digit {
        b'A'..=b'Z' => (b'A', 0),
        b'a'..=b'z' => (b'a', 26),
        b'0'..=b'9' => (b'0', 52),
        b'+' => return Some(62),
        b'/' => return Some(63),
        _ => return None,
    };
    Some(u32::from(digit.saturating_sub(first)) + base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certificates_are_copied() {
        let bundle = b"# roots\n-----BEGIN CERTIFICATE-----\r\nAAAA\r\n-----END CERTIFICATE-----\n\
                       -----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n\
                       -----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----";
        assert_eq!(
            String::from_utf8(certificates(bundle)).unwrap(),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\
             -----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n"
        );
        assert_eq!(ders(bundle), [vec![0, 0, 0], vec![8, 32, 130]]);
    }

    /// A block that never ends is no certificate, and what follows is none of it.
    #[test]
    fn a_key_behind_half_a_certificate_is_not_copied() {
        for text in [
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----BEGIN PRIVATE KEY-----\nBBBB\n\
             -----END PRIVATE KEY-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----BEGIN PRIVATE KEY-----\nBBBB\n\
             -----END PRIVATE KEY-----\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\npassword = x\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nBBBB\n",
        ] {
            let kept = certificates(text.as_bytes());
            assert_eq!(String::from_utf8(kept).unwrap(), "", "{text}");
        }
    }

    #[test]
    fn base64_is_read_to_the_last_bit() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg", Some(b"foob")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("Z", None),
            ("Zm9vY", None),
            ("Zm9=v", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), bytes, "{text}");
        }
    }
}
