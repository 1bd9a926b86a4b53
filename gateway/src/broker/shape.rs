//! Placeholders: texts that look enough like a secret for a client to use them,
//! and that nobody can guess. Of the secret they keep what is public of its
//! kind, its maker's mark and its length, and nothing else.

use rustls::crypto::SecureRandom;

/// Marks that makers of tokens put in front: public, and looked for by clients.
/// Longer ones before those they begin with.
const MARKS: [&str; 62] = [
    "github_pat_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "gloas-",
    "sk-ant-api03-",
    "sk-ant-admin01-",
    "sk-ant-oat01-",
    "sk-ant-",
    "sk-proj-",
    "sk-svcacct-",
    "sk-admin-",
    "sk-or-v1-",
    "sk-lf-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "sk-",
    "sk_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxe-",
    "xapp-1-",
    "hf_",
    "gsk_",
    "xai-",
    "pplx-",
    "r8_",
    "nvapi-",
    "fw_",
    "tgp_v1_",
    "csk-",
    "pcsk_",
    "npm_",
    "pypi-",
    "rubygems_",
    "dckr_pat_",
    "dckr_oat_",
    "dop_v1_",
    "doo_v1_",
    "cfut_",
    "cfat_",
    "hvs.",
    "hvb.",
    "pul-",
    "tskey-auth-",
    "tskey-api-",
    "lin_api_",
    "ntn_",
    "shpat_",
    "shpss_",
    "SG.",
    "AIza",
    "ya29.",
];

/// Random characters of a placeholder at least: 119 bits of 62 characters.
const RANDOM_CHARACTERS_MIN: usize = 20;

/// Characters where nothing of the secret's shape is kept.
const CHARACTERS: usize = 40;

/// Longest placeholder: longer tokens say nothing by their length.
const CHARACTERS_MAX: usize = 200;

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// No random bytes are to be had: nothing that must not be guessed can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub(crate) struct NoRandom;

/// A placeholder for a value.
pub(crate) fn placeholder(value: &[u8], random: &dyn SecureRandom) -> Result<String, NoRandom> {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    if matches!(value.len(), 32 | 40 | 48 | 64) && value.iter().all(is_hex) {
        return characters(HEX, value.len(), random);
    }
    let mark = MARKS
        .into_iter()
        .find(|mark| value.starts_with(mark.as_bytes()));
    let mark = mark.unwrap_or_default();
    // The length of a token is its maker's; that of a password is its owner's.
    let is_token = !mark.is_empty() || value.len() >= 24;
    let rest = value.len().saturating_sub(mark.len());
    let rest = if is_token && rest >= RANDOM_CHARACTERS_MIN {
        rest.min(CHARACTERS_MAX)
    } else {
        CHARACTERS
            .saturating_sub(mark.len())
            .max(RANDOM_CHARACTERS_MIN)
    };
    Ok(format!("{mark}{}", characters(ALPHANUMERIC, rest, random)?))
}

/// One for the public half of a pair of keys: its class and length are read by
/// clients.
pub(crate) fn key_id(random: &dyn SecureRandom) -> Result<String, NoRandom> {
    Ok(format!("AKIA{}", characters(BASE32, 16, random)?))
}

/// One without a mark.
pub(crate) fn plain(length: usize, random: &dyn SecureRandom) -> Result<String, NoRandom> {
    characters(ALPHANUMERIC, length, random)
}

/// Evenly chosen characters.
fn characters(
    alphabet: &[u8],
    count: usize,
    random: &dyn SecureRandom,
) -> Result<String, NoRandom> {
    let size = alphabet.len();
    // Bytes above the last whole multiple would favour the first characters.
    let fair = 256 - 256 % size;
    let mut text = String::with_capacity(count);
    let mut bytes = [0_u8; 64];
    while text.len() < count {
        random.fill(&mut bytes).map_err(|_| NoRandom)?;
        for byte in bytes.map(usize::from) {
            if byte < fair
                && text.len() < count
                && let Some(character) = alphabet.get(byte % size)
            {
                text.push(char::from(*character));
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn made(value: &str) -> String {
        let provider = rustls::crypto::ring::default_provider();
        placeholder(value.as_bytes(), provider.secure_random).unwrap()
    }

    #[test]
    fn mark_and_length_of_a_token_stay_and_nothing_else() {
        let token = |mark: &str, rest: usize| format!("{mark}{}", "Z".repeat(rest));
        for (value, mark, length) in [
            (token("ghp_", 36), "ghp_", 40),
            (token("github_pat_", 82), "github_pat_", 93),
            (token("sk-ant-api03-", 95), "sk-ant-api03-", 108),
            (token("sk-", 48), "sk-", 51),
            ("0123456789abcdef".repeat(4), "", 64),
            (token("", 24), "", 24),
            (token("", 8), "", 40),
            (token("ghp_", 4), "ghp_", 40),
            (token("", 5000), "", 200),
        ] {
            let placeholder = made(&value);
            assert!(placeholder.starts_with(mark), "{value}: {placeholder}");
            assert_eq!(placeholder.len(), length, "{value}: {placeholder}");
            assert!(!placeholder.contains("ZZZZ"), "{value}: {placeholder}");
            assert!(placeholder.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        assert!(
            made(&"0".repeat(64))
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit())
        );
    }

    #[test]
    fn no_two_placeholders_are_alike() {
        let made: HashSet<String> = (0..1000).map(|_| made("password")).collect();
        assert_eq!(made.len(), 1000);
        // Every character comes about equally often.
        let mut counts = [0_usize; 128];
        for byte in made.iter().flat_map(|text| text.bytes()) {
            counts[usize::from(byte)] += 1;
        }
        let used = ALPHANUMERIC.iter().map(|byte| counts[usize::from(*byte)]);
        assert!(used.into_iter().all(|count| (450..900).contains(&count)));
    }
}
