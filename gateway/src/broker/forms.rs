//! The forms in which a text stands in a message: as it is, in base64 at every
//! phase, in hexadecimal, escaped. Bytes in, bytes out; knows no secret.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, NO_PAD, STANDARD, URL_SAFE,
};
use data_encoding::{Encoding, HEXLOWER, HEXUPPER};
use outgate_dlp::span;

/// Every form of a text, the text itself first; without repetition.
pub(super) fn all(text: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![text.to_vec()];
    forms.extend(encoders().map(|encode| encode(text)));
    for escape in ESCAPES {
        forms.push(escape.of(text));
    }
    let mut seen = Vec::new();
    for form in forms {
        if !form.is_empty() && !seen.contains(&form) {
            seen.push(form);
        }
    }
    seen
}

/// Each form of `text` with the same form of `instead`, cut or filled to the
/// same length, so that what follows stays where it is.
pub(super) fn pairs(text: &[u8], instead: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let instead = fitted(instead, text.len());
    let plain = std::iter::once((text.to_vec(), instead.clone()));
    let encoded = encoders().map(|encode| (encode(text), encode(&instead)));
    let escaped = ESCAPES.map(|escape| {
        let form = escape.of(text);
        let length = form.len();
        (form, fitted(&instead, length))
    });
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (form, other) in plain.chain(encoded).chain(escaped) {
        let known = pairs.iter().any(|(known, _)| *known == form);
        if !form.is_empty() && !known {
            let length = form.len();
            pairs.push((form, fitted(&other, length)));
        }
    }
    pairs
}

fn fitted(text: &[u8], length: usize) -> Vec<u8> {
    let filler = std::iter::repeat(&b'x');
    text.iter().chain(filler).take(length).copied().collect()
}

type Encoder = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn encoders() -> impl Iterator<Item = Encoder> {
    let base64 = [&STANDARD, &URL_SAFE].into_iter().flat_map(|engine| {
        (0..3).map(move |phase| {
            Box::new(move |text: &[u8]| base64_inside(text, phase, engine)) as Encoder
        })
    });
    let hex: [Encoder; 2] = [
        Box::new(|text| HEXLOWER.encode(text).into_bytes()),
        Box::new(|text| HEXUPPER.encode(text).into_bytes()),
    ];
    base64.chain(hex)
}

/// What of a text in base64 depends on nothing but the text, where `phase`
/// bytes of its group come before it.
fn base64_inside(text: &[u8], phase: usize, engine: &GeneralPurpose) -> Vec<u8> {
    let mut bytes = vec![0; phase];
    bytes.extend_from_slice(text);
    let encoded = engine.encode(&bytes).into_bytes();
    let first = (phase * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    span::within(&encoded, first..last).to_vec()
}

/// Base64 with padding (RFC 4648 4).
pub(super) fn base64(bytes: &[u8]) -> Vec<u8> {
    STANDARD.encode(bytes).into_bytes()
}

/// The bytes of base64 in either alphabet, padding optional (RFC 4648); `None`
/// for anything else. Bits that are left over count for nothing, as with most.
pub(super) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
    const BARE: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let end = text.len().checked_sub(padding).filter(|_| padding <= 2)?;
    let standard = text.get(..end)?.iter().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => *other,
    });
    BARE.decode(standard.collect::<Vec<u8>>()).ok()
}

/// How a text is written inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// As it is.
    None,
    /// Inside a JSON string (RFC 8259 7).
    Json,
    /// The same by those that escape the slash too.
    JsonSlash,
    /// In a URI, all but unreserved characters (RFC 3986 2.1).
    Percent,
    /// The same in lower case.
    PercentLower,
    /// In the text of HTML or XML.
    Markup,
}

const ESCAPES: [Escape; 5] = [
    Escape::Json,
    Escape::JsonSlash,
    Escape::Percent,
    Escape::PercentLower,
    Escape::Markup,
];

impl Escape {
    /// The text in this form.
    pub(super) fn of(self, text: &[u8]) -> Vec<u8> {
        text.iter().flat_map(|byte| self.byte(*byte)).collect()
    }

    fn byte(self, byte: u8) -> Vec<u8> {
        let percent = |digits: &Encoding| {
            let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if unreserved {
                vec![byte]
            } else {
                let mut text = vec![b'%'];
                text.extend(digits.encode(&[byte]).into_bytes());
                text
            }
        };
        match (self, byte) {
            (Self::Json | Self::JsonSlash, b'"' | b'\\') | (Self::JsonSlash, b'/') => {
                vec![b'\\', byte]
            }
            (Self::Percent, _) => percent(&HEXUPPER),
            (Self::PercentLower, _) => percent(&HEXLOWER),
            (Self::Markup, b'&') => b"&amp;".to_vec(),
            (Self::Markup, b'<') => b"&lt;".to_vec(),
            (Self::Markup, b'>') => b"&gt;".to_vec(),
            (Self::Markup, b'"') => b"&quot;".to_vec(),
            (Self::Markup, b'\'') => b"&#39;".to_vec(),
            (Self::None | Self::Json | Self::JsonSlash | Self::Markup, _) => vec![byte],
        }
    }
}

/// One byte of a text that may be percent-encoded, and where it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unescaped {
    pub(super) byte: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The bytes that a percent-encoded text stands for.
pub(super) fn unescaped(text: &[u8]) -> Vec<Unescaped> {
    let value = |at: usize| {
        let digit = char::from(*text.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut start = 0;
    while let Some(byte) = text.get(start) {
        let escaped = match (byte, value(start + 1), value(start + 2)) {
            (b'%', Some(high), Some(low)) => Some(high << 4 | low),
            _ => None,
        };
        let end = start + if escaped.is_some() { 3 } else { 1 };
        let byte = escaped.unwrap_or(*byte);
        bytes.push(Unescaped { byte, start, end });
        start = end;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text.as_bytes());
            assert_eq!(from_base64(text.as_bytes()).unwrap(), bytes.as_bytes());
            let bare = text.trim_end_matches('=');
            assert_eq!(from_base64(bare.as_bytes()).unwrap(), bytes.as_bytes());
        }
        assert_eq!(from_base64(b"-_-_"), from_base64(b"+/+/"));
        for text in ["A", "A===", "Zm9v!", "Zm 9v", "Zg==Zg=="] {
            assert_eq!(from_base64(text.as_bytes()), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_text_is_found_in_whatever_it_is_encoded_with(
            before in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..7),
            text in proptest::collection::vec(32_u8..127, 8..60),
            after in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..7),
        ) {
            let whole = [before, text.clone(), after].concat();
            let forms = all(&text);
            let holds = |outer: &[u8]| forms.iter().any(|form| {
                outer.windows(form.len()).any(|part| part == form)
            });
            let encoded = base64(&whole);
            proptest::prop_assert!(holds(&encoded));
            proptest::prop_assert!(holds(URL_SAFE.encode(&whole).as_bytes()));
            proptest::prop_assert!(holds(HEXLOWER.encode(&whole).as_bytes()));
            for escape in ESCAPES {
                proptest::prop_assert!(holds(&escape.of(&whole)));
            }
            proptest::prop_assert_eq!(from_base64(&encoded), Some(whole));
        }

        #[test]
        fn what_stands_in_its_place_is_as_long(
            text in proptest::collection::vec(32_u8..127, 8..60),
            instead in "[a-zA-Z0-9_-]{20,60}",
        ) {
            let forms = all(&text);
            let pairs = pairs(&text, instead.as_bytes());
            proptest::prop_assert_eq!(pairs.len(), forms.len());
            for (form, other) in pairs {
                proptest::prop_assert_eq!(form.len(), other.len());
                proptest::prop_assert!(forms.contains(&form));
            }
        }

        #[test]
        fn escapes_are_undone(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            for escape in [Escape::Percent, Escape::PercentLower] {
                let escaped = escape.of(&text);
                let back: Vec<u8> = unescaped(&escaped).iter().map(|one| one.byte).collect();
                proptest::prop_assert_eq!(&back, &text);
            }
        }
    }
}
