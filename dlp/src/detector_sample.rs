//! Templates of credentials to bytes: synthetic, the same for the same seed,
//! with right checksums. Tests and canaries are made of them; no template holds
//! a credential.
//!
//! `{b62:30}` is thirty random characters of an alphabet, `{crc62}` the checksum
//! of those since the last underscore, other words a whole of their own.

use sha2::{Digest, Sha256};

use crate::validate::{aws, base58, base64, bech32, bip39, card, crc, gitlab, macaroon};

/// Longest run of one placeholder, in characters.
const RUN_MAX: usize = 8192;

/// Alphabets by the word that names them.
const ALPHABETS: [(&str, &str); 14] = [
    (
        "b62",
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    ),
    (
        "b64",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    ),
    (
        "b64u",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    ),
    (
        "b58",
        "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    ),
    ("b32", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    ("b32l", "abcdefghijklmnopqrstuvwxyz234567"),
    ("bech", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    ("hex", "0123456789abcdef"),
    ("HEX", "0123456789ABCDEF"),
    (
        "alpha",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    ),
    ("lower", "0123456789abcdefghijklmnopqrstuvwxyz"),
    ("UP", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("digits", "0123456789"),
    ("op", "23456789ABCDEFGHJKLMNPQRSTVWXYZ"),
];

/// Numbers that follow from a seed.
pub(crate) enum SampleDice {
    /// SplitMix64: for tests.
    Plain(u64),
    /// SHA-256 of a secret key and a counter: for what nobody may guess.
    Keyed([u8; 32], u64),
}

impl SampleDice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self::Plain(seed)
    }

    pub(crate) const fn keyed(key: [u8; 32]) -> Self {
        Self::Keyed(key, 0)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        match self {
            Self::Plain(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
            Self::Keyed(key, count) => {
                *count = count.wrapping_add(1);
                let hash = Sha256::new()
                    .chain_update(&key[..])
                    .chain_update(count.to_le_bytes());
                let digest = hash.finalize();
                u64::from_le_bytes(digest.first_chunk::<8>().copied().unwrap_or_default())
            }
        }
    }

    /// A number below another.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(1).max(1);
        usize::try_from(self.roll() % bound).unwrap_or_default()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.saturating_add(8));
        while bytes.len() < count {
            bytes.extend(self.roll().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    pub(crate) fn characters(&mut self, alphabet: &str, count: usize) -> Vec<u8> {
        let letters = alphabet.as_bytes();
        let letter = |_| {
            let position = self.below(letters.len());
            letters.get(position).copied().unwrap_or(b'0')
        };
        (0..count.min(RUN_MAX)).map(letter).collect()
    }
}

/// Makes the text of a template. What is no placeholder stays as it is.
pub fn expand(template: &str, seed: u64) -> Vec<u8> {
    roll_out(template, &mut SampleDice::new(seed))
}

/// The same with given numbers.
pub(crate) fn roll_out(template: &str, dice: &mut SampleDice) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.extend(before.as_bytes());
        let made = after.split_once('}').and_then(|(inner, tail)| {
            let (word, argument) = inner.split_once(':').unwrap_or((inner, ""));
            Some((fill(word, argument, &text, dice)?, tail))
        });
        let (filled, tail) = made.unwrap_or((vec![b'{'], after));
        text.extend(filled);
        rest = tail;
    }
    text.extend(rest.as_bytes());
    text
}

/// What a placeholder stands for, after the text so far.
fn fill(word: &str, argument: &str, before: &[u8], dice: &mut SampleDice) -> Option<Vec<u8>> {
    if let Some((_, alphabet)) = ALPHABETS.iter().find(|(name, _)| *name == word) {
        return Some(dice.characters(alphabet, argument.parse().ok()?));
    }
    let count = argument.parse::<usize>().unwrap_or_default();
    let text = match word {
        "crc62" => {
            let body = before.rsplit(|byte| *byte == b'_').next()?;
            crc::base62(crc::crc32(body)).to_vec()
        }
        "akid" => aws::body(dice.roll() % 1_000_000_000_000, dice.roll()).to_vec(),
        "age" => age(dice)?,
        "wif" => wallet_key(dice),
        "xprv" => extended_key(dice),
        "bip39" => bip39::phrase(&dice.bytes(count.checked_mul(4)? / 3))?.into_bytes(),
        "card" => card_number(argument, dice),
        "userpass" => {
            let pair = [
                b"builder:".to_vec(),
                dice.characters(ALPHABETS.first()?.1, 20),
            ]
            .concat();
            base64::encode(&pair, base64::STANDARD)
        }
        "snowflake" => base64::encode(b"175928847299117063", base64::STANDARD),
        "macaroon" => package_token(dice),
        "routable" => routable(argument, b".", dice),
        "routable01" => routable(argument, b".01.", dice),
        "b64json" => json(count, dice),
        "jwt" => web_token(dice),
        _ => return None,
    };
    Some(text)
}

fn age(dice: &mut SampleDice) -> Option<Vec<u8>> {
    let readable = b"AGE-SECRET-KEY-";
    // 256 bits in groups of five: the last character carries one of them.
    let mut data = dice.characters("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 51);
    data.push(b'Q');
    let checksum = bech32::checksum(readable, &data)?.to_ascii_uppercase();
    Some([&readable[..], b"1", &data, &checksum].concat())
}

fn checked58(payload: Vec<u8>) -> Vec<u8> {
    let checksum = base58::checksum(&payload);
    base58::encode(&[payload, checksum.to_vec()].concat())
}

fn wallet_key(dice: &mut SampleDice) -> Vec<u8> {
    checked58([vec![0x80], dice.bytes(32), vec![1]].concat())
}

fn extended_key(dice: &mut SampleDice) -> Vec<u8> {
    let version = vec![0x04, 0x88, 0xad, 0xe4];
    let place = vec![0; 9];
    checked58([version, place, dice.bytes(32), vec![0], dice.bytes(32)].concat())
}

fn card_number(first: &str, dice: &mut SampleDice) -> Vec<u8> {
    let lead = if first == "5" { "53" } else { "4" };
    let rest = 15usize.saturating_sub(lead.len());
    let mut number = [
        lead.as_bytes().to_vec(),
        dice.characters("0123456789", rest),
    ]
    .concat();
    number.push(card::check_digit(&number));
    number
}

fn package_token(dice: &mut SampleDice) -> Vec<u8> {
    // The location is spelt in two parts: no file of ours names a registry's host.
    let location = ["pypi", "org"].join(".");
    let hex = dice.characters("0123456789abcdef", 36);
    let mut signature = [0u8; 32];
    for (target, source) in signature.iter_mut().zip(dice.bytes(32)) {
        *target = source;
    }
    base64::encode(
        &macaroon::make(location.as_bytes(), &hex, &signature),
        base64::URL,
    )
}

fn routable(prefix: &str, between: &[u8], dice: &mut SampleDice) -> Vec<u8> {
    let payload = [b"o:1\nu:2rt".to_vec(), dice.bytes(16), vec![16]].concat();
    gitlab::make(prefix.as_bytes(), &payload, between)
}

/// Base 64 of an object of about so many characters.
fn json(count: usize, dice: &mut SampleDice) -> Vec<u8> {
    let value = count
        .saturating_mul(3)
        .checked_div(4)
        .unwrap_or_default()
        .saturating_sub(8);
    let value = dice.characters(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        value,
    );
    base64::encode(&[&b"{\"k\":\""[..], &value, b"\"}"].concat(), base64::URL)
}

fn web_token(dice: &mut SampleDice) -> Vec<u8> {
    let header = base64::encode(br#"{"alg":"RS256","typ":"JWT"}"#, base64::URL);
    let subject = dice.characters("0123456789abcdef", 24);
    let claims = [
        &br#"{"iss":"https://login.example.org/","aud":"https://api.example.org","sub":""#[..],
        &subject,
        br#""}"#,
    ]
    .concat();
    let claims = base64::encode(&claims, base64::URL);
    let signature = base64::encode(&dice.bytes(64), base64::URL);
    [header, claims, signature].join(&b'.')
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn the_same_seed_makes_the_same_text() {
        let template = "ghp_{b62:30}{crc62}";
        assert_eq!(expand(template, 1), expand(template, 1));
        assert_ne!(expand(template, 1), expand(template, 2));
        assert_eq!(expand(template, 1).len(), 40);
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        for text in [
            "",
            "plain",
            "a{b",
            "{}",
            "{what:3}",
            "{b62}",
            "{b62:x}",
            "a}b",
            "${lower:}",
        ] {
            assert_eq!(expand(text, 7), text.as_bytes(), "{text}");
        }
        assert_eq!(expand("{{hex:2}}", 7).len(), 4);
    }
}
