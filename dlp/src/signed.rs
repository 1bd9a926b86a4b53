//! What stands beside the id of a pair of keys. The id alone opens nothing, since the half
//! that signs is never sent: so beside an id stands a signature of the form that its issuer
//! makes, and nowhere in the same field or query the other half.

use data_encoding::{BASE32_NOPAD, HEXLOWER_PERMISSIVE};

use crate::detector_place::{IsLetter, Signature, SignatureForm, letters};
use crate::validate::{base64, random};

/// Characters that may fill a half of a pair up, such as those of the bytes that it was
/// packed into.
const FILLED: usize = 2;

/// Letters that may be stuck to a half of a pair, in count: longer words are others.
const STUCK: usize = 24;

/// How often a half of a pair may be coded.
const CODED_TIMES: u32 = 2;

/// Whether all signatures behind an id in a field have their form, and one is there.
pub(crate) fn is_signed_field(signature: Signature<'_>, behind: &[u8]) -> bool {
    let name = signature.name.to_ascii_lowercase();
    let lower = behind.to_ascii_lowercase();
    let mut found = memchr::memmem::find_iter(&lower, name.as_bytes()).peekable();
    let is_one = |at: usize| {
        let value = behind.get(at.saturating_add(name.len())..);
        let value = value.unwrap_or_default();
        let end = value.iter().position(|byte| b",;& \t".contains(byte));
        has_form(signature.form, value.get(..end.unwrap_or(value.len())))
    };
    found.peek().is_some() && found.all(is_one)
}

/// The same of the query that an id stands in, as keys with their values.
pub(crate) fn is_signed_query(signature: Signature<'_>, pairs: &[(Vec<u8>, Vec<u8>)]) -> bool {
    let name = signature.name.trim_end_matches('=').as_bytes();
    let own = pairs
        .iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let mut own = own.peekable();
    own.peek().is_some() && own.all(|(_, value)| has_form(signature.form, Some(value)))
}

fn has_form(form: SignatureForm, text: Option<&[u8]>) -> bool {
    let Some(text) = text else {
        return false;
    };
    let is_hex = || {
        text.iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match form {
        SignatureForm::Hex(length) => text.len() == length && is_hex(),
        SignatureForm::Hmac => {
            let text = text.strip_suffix(b"=").unwrap_or_default();
            let bytes = base64::decode(text).unwrap_or_default();
            matches!(bytes.len(), 20 | 32) && base64::encode(&bytes, base64::STANDARD) == text
        }
        SignatureForm::Ecdsa => is_hex() && is_pair_of_numbers(&hex(text)),
    }
}

/// Whether bytes are a sequence of two numbers of some 32 bytes each (RFC 3279 2.2.3).
fn is_pair_of_numbers(der: &[u8]) -> bool {
    let number = |text: &[u8]| -> Option<usize> {
        let (tag, length) = (text.first()?, usize::from(*text.get(1)?));
        let is_one = *tag == 2 && (28..=33).contains(&length);
        is_one.then(|| length.saturating_add(2))
    };
    let is_sequence = der.first() == Some(&0x30)
        && der.get(1).map(|length| usize::from(*length)) == der.len().checked_sub(2);
    let body = der.get(2..).unwrap_or_default();
    let first = number(body);
    let second = first.and_then(|first| number(body.get(first..)?));
    let length = first
        .zip(second)
        .map(|(one, other)| one.saturating_add(other));
    is_sequence && length == Some(body.len())
}

/// Whether a text holds what a template says (`{b64:40}`), drawn by chance: as it is, or in
/// base 64, 32 or 16, several times too.
pub(crate) fn holds(template: &str, text: &[u8]) -> bool {
    letters(template).is_some_and(|half| has_half(half, text, CODED_TIMES))
}

fn has_half((is_letter, length): (IsLetter, usize), text: &[u8], times: u32) -> bool {
    let any = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(byte);
    // One coding makes twice of it, at most.
    let longest = length.saturating_add(FILLED).saturating_mul(1 << times);
    let has =
        |text: &[u8]| times > 0 && has_half((is_letter, length), text, times.saturating_sub(1));
    let mut coded = text
        .split(|byte| !any(byte))
        .filter(|token| (length..=longest).contains(&token.len()));
    has_run(text, is_letter, length)
        || has_stuck(text, is_letter, length)
        || coded.any(|token| opened(token).iter().any(|text| has(text)))
}

/// What a token stands for that is one of a coding.
fn opened(token: &[u8]) -> [Vec<u8>; 3] {
    let base32 = BASE32_NOPAD.decode(&token.to_ascii_uppercase());
    [
        hex(token),
        base32.unwrap_or_default(),
        base64::decode(token).unwrap_or_default(),
    ]
}

fn has_run(text: &[u8], is_letter: IsLetter, length: usize) -> bool {
    let mut runs = text.split(|byte| !is_letter(*byte));
    runs.any(|run| (length..=length.saturating_add(FILLED)).contains(&run.len()) && is_half(run))
}

/// The same with letters stuck to it, in a word of its own: one that is none of base 64 that
/// stands for whole bytes, as hashes and keys do.
fn has_stuck(text: &[u8], is_letter: IsLetter, length: usize) -> bool {
    let any = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/_-.=".contains(byte);
    let mut words = text.split(|byte| !any(byte));
    words.any(|word| {
        // A name may stand before it, and nothing that fills it up behind.
        let word = word.rsplit(|byte| *byte == b'=').next().unwrap_or_default();
        let least = length.saturating_add(FILLED);
        let is_long = word.len() > least && word.len() <= length.saturating_add(STUCK);
        let is_whole = word.len().is_multiple_of(4);
        is_long
            && !is_whole
            && word.iter().all(|byte| is_letter(*byte))
            && word.windows(length).any(is_half)
    })
}

/// Whether letters were drawn by chance, small ones and capitals.
fn is_half(run: &[u8]) -> bool {
    let has = |is_one: fn(&u8) -> bool| run.iter().any(is_one);
    has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && random::is(run)
}

/// Text in base 16 to bytes; nothing where it is none.
fn hex(text: &[u8]) -> Vec<u8> {
    HEXLOWER_PERMISSIVE.decode(text).unwrap_or_default()
}

/// A key or a value of a query without its escapes (RFC 3986 2.1).
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0_usize;
    while let Some(byte) = text.get(at) {
        let behind = at.saturating_add(1);
        let pair = text.get(behind..behind.saturating_add(2)).map(hex);
        match pair.as_deref() {
            Some([escaped]) if *byte == b'%' => {
                plain.push(*escaped);
                at = at.saturating_add(3);
            }
            _ => {
                plain.push(*byte);
                at = behind;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector_sample::expand;

    #[test]
    fn a_signature_has_the_form_of_one_and_half_a_pair_never_does() {
        let sha256 = SignatureForm::Hex(64);
        for seed in 0..200 {
            let secret = expand("{b64:40}", seed);
            for form in [
                sha256,
                SignatureForm::Hex(40),
                SignatureForm::Hmac,
                SignatureForm::Ecdsa,
            ] {
                assert!(!has_form(form, Some(&secret)), "{form:?}");
            }
            let hash = expand("{hex:64}", seed);
            assert!(has_form(sha256, Some(&hash)));
            assert!(!has_form(sha256, Some(&hash.to_ascii_uppercase())));
            assert!(!has_form(SignatureForm::Hmac, Some(&hash)));
            for length in 0..40 {
                let bytes: Vec<u8> = expand("{b62:40}", seed).into_iter().take(length).collect();
                let mut text = base64::encode(&bytes, base64::STANDARD);
                text.resize(text.len().next_multiple_of(4), b'=');
                let is_one = has_form(SignatureForm::Hmac, Some(&text));
                assert_eq!(is_one, length == 20 || length == 32);
            }
        }
        let number = "0220".to_owned() + &"7f".repeat(32);
        let ecdsa = format!("3044{number}{number}");
        assert!(has_form(SignatureForm::Ecdsa, Some(ecdsa.as_bytes())));
        let ecdsa = ecdsa.as_bytes();
        for text in [&ecdsa[2..], &ecdsa[..ecdsa.len() - 2], b""] {
            assert!(!has_form(SignatureForm::Ecdsa, Some(text)), "{text:?}");
        }
        assert!(!has_form(SignatureForm::Ecdsa, None));
    }

    #[test]
    fn half_a_pair_is_found_and_hashes_and_words_are_none() {
        let (mut found, count) = (0, 300);
        for seed in 0..count {
            let secret = expand("{b64:40}", seed);
            let coded = base64::encode(&secret, base64::STANDARD);
            let digits: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            let digits = digits.concat();
            let digits = digits.into_bytes();
            let base32 = BASE32_NOPAD.encode(&secret);
            let twice = base64::encode(&coded, base64::STANDARD);
            for (how, text) in [
                ("base32", base32.as_bytes()),
                (
                    "base32 of small letters",
                    base32.to_ascii_lowercase().as_bytes(),
                ),
                ("base64 twice", &twice),
                (
                    "hexadecimal in base64",
                    &base64::encode(&digits, base64::STANDARD),
                ),
                ("base64 in base32", BASE32_NOPAD.encode(&coded).as_bytes()),
                ("three letters", &[b"abc", secret.as_slice()].concat()),
                ("a word", &[secret.as_slice(), b"Xyzzy"].concat()),
                (
                    "eleven letters",
                    &[b"abcdefghijk", secret.as_slice()].concat(),
                ),
            ] {
                assert_eq!(holds("{b64:40}", text), holds("{b64:40}", &secret), "{how}");
                let beside = [b"a=", text, b", b"].concat();
                assert_eq!(holds("{b64:40}", &beside), holds("{b64:40}", text), "{how}");
            }
            for text in [&secret, &coded, &digits] {
                found += usize::from(holds("{b64:40}", text));
                let beside = [b"a=", text.as_slice(), b", b"].concat();
                assert_eq!(holds("{b64:40}", &beside), holds("{b64:40}", text));
            }
            for none in [
                "{hex:40}",
                "{b64:44}",
                "{b64:43}=",
                "{b64:27}=",
                "{b64:88}",
                "{hex:43}",
                "{HEX:40}",
                "{b32:40}",
            ] {
                assert!(!holds("{b64:40}", &expand(none, seed)), "{none}");
            }
        }
        assert!(found > 285 * 3, "{found}");
        assert!(!holds(
            "{b64:40}",
            b"com/example/project/internal/MainProgram"
        ));
    }

    #[test]
    fn escapes_of_a_query_are_read() {
        for (text, plain) in [
            ("a%2Bb%3d", "a+b="),
            ("%", "%"),
            ("%zz", "%zz"),
            ("%2", "%2"),
        ] {
            assert_eq!(unescaped(text.as_bytes()), plain.as_bytes());
        }
    }
}
