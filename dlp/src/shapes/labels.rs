//! Labels of names that carry something: text in an alphabet that names have, and
//! pieces of one length. Pure; case does not count, since names have none.

/// Fewest bytes of text that are worth a finding: fewer come about by chance.
const TEXT_BYTES_MIN: usize = 10;
/// Shortest text in base32 that may be letters alone, in characters.
const LETTERS_MIN: usize = 16;
/// Fewest pieces of one length.
const PIECES_MIN: usize = 3;
/// Shortest piece, in bytes: words of one length stand beside one another.
const PIECE_BYTES_MIN: usize = 6;
/// Fewest bytes of all pieces together.
const PIECES_BYTES_MIN: usize = 24;

/// Whether labels that stand together are text in hexadecimal or in base32.
pub(super) fn are_encoded_text(labels: &[&str]) -> bool {
    [hexadecimal, base32].into_iter().any(|decode| {
        let mut text: Vec<u8> = Vec::new();
        let mut has_letters = false;
        let coded = labels.iter().map(|label| decode(label)).chain([None]);
        for (label, bytes) in labels.iter().chain(&[""]).zip(coded) {
            if let Some(bytes) = bytes.filter(|bytes| is_text(bytes)) {
                text.extend(bytes);
                // Numbers are no text, although their digits are those of one.
                has_letters |= label.bytes().any(|byte| byte.is_ascii_alphabetic());
                continue;
            }
            if text.len() >= TEXT_BYTES_MIN && has_letters {
                return true;
            }
            text.clear();
            has_letters = false;
        }
        false
    })
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Four digits and more, two for each byte.
fn hexadecimal(label: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = label.bytes().map(|byte| digit(byte, 16)).collect();
    let digits = digits.filter(|digits| digits.len() >= 4 && digits.len().is_multiple_of(2))?;
    let pair = |pair: &[u8]| pair.iter().fold(0, |byte: u8, digit| byte << 4 | digit);
    Some(digits.chunks(2).map(pair).collect())
}

/// Eight characters and more, without padding (RFC 4648 6).
fn base32(label: &str) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'2'..=b'7' => Some(u32::from(byte).wrapping_sub(24)),
        _ if byte.is_ascii_alphabetic() => {
            Some(u32::from(byte.to_ascii_lowercase()).wrapping_sub(97))
        }
        _ => None,
    };
    // Many words are in this alphabet; what is coded has digits, or is long.
    let has_digits = label.bytes().any(|byte| byte.is_ascii_digit());
    if label.len() < 8 || (label.len() < LETTERS_MIN && !has_digits) {
        return None;
    }
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut bytes = Vec::new();
    for byte in label.bytes() {
        bits = (bits << 5 | value(byte)?) & 0xfff;
        count = count.saturating_add(5);
        if count >= 8 {
            count = count.saturating_sub(8);
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

fn digit(byte: u8, radix: u32) -> Option<u8> {
    let digit = char::from(byte).to_digit(radix)?;
    u8::try_from(digit).ok()
}

/// Whether labels that stand together are pieces of one length.
pub(super) fn are_chunks(labels: &[&str]) -> bool {
    labels
        .chunk_by(|one, other| one.len() == other.len())
        .any(|run| {
            let bytes: usize = run.iter().map(|label| label.len()).sum();
            let is_long = run
                .first()
                .is_some_and(|label| label.len() >= PIECE_BYTES_MIN);
            run.len() >= PIECES_MIN && is_long && bytes >= PIECES_BYTES_MIN
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        text.split('.').collect()
    }

    #[test]
    fn text_in_labels_is_told_from_hashes_and_words() {
        for (labels, expected) in [
            ("706f7374677265733a2f2f757365723a70617373406462.exfil", true),
            ("4150494b4559.313233343536.jbswy3dp.ehpk3pxp.exfil", true),
            ("4a6f686e446f65.53656372657431", true),
            // "key:abcdef", in base32.
            ("nnsxsotbmjrwizlg", true),
            ("d41d8cd98f00b204e9800998ecf8427e", false),
            ("a1b2c3d4", false),
            ("www.static.images", false),
            ("20242530354045505560", false),
            ("7365637265", false),
            ("internationalization", false),
            ("networks.presence.password", false),
            ("keywords.installer", false),
            ("ip-10-0-0-1.eu-west-1", false),
        ] {
            assert_eq!(are_encoded_text(&split(labels)), expected, "{labels}");
        }
    }

    #[test]
    fn pieces_are_told_from_words_of_one_length() {
        for (labels, expected) in [
            ("ghp-xxxx.yyyyzzzz.aaaabbbb.ccccdddd.exfil", true),
            ("a1b2c3d4.e5f6a7b8.c9d0e1f2", true),
            ("static.images.assets", false),
            ("prod.east.core.main", false),
            ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p", false),
            ("0123456789abcdef.gr7.us-east-1.eks", false),
        ] {
            assert_eq!(are_chunks(&split(labels)), expected, "{labels}");
        }
    }
}
