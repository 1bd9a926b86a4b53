//! What servers take for the query of a target beside the text behind its `?`.
//!
//! A server that decodes a path and hands it on as text (`proxy_pass http://up$uri` of nginx,
//! `RewriteRule ^/u/(.*)$ index.php?q=$1` of Apache) makes a query of what stands behind a
//! decoded `?` of it, or one more pair of what stands behind a `&`. A program that
//! divides a query once it is decoded (`getQuery().split("&")` of Java) finds pairs behind
//! escaped separators. Texts only; nothing here knows keys, rules or effects.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{TargetError, hex_value};
use crate::limits::READINGS_BYTES_MAX;

/// How often a query may be decoded as a whole before it is divided: as often as a value.
const ROUNDS: usize = 2;

/// What stands behind the signs in a path that may end it, by each round of decoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tails {
    texts: BTreeSet<String>,
    bytes: usize,
}

impl Tails {
    /// Adds what the decoded segments of a path hold of a query, if anything: what stands
    /// behind the first `?`, and behind the first sign between pairs.
    ///
    /// # Errors
    /// All of them have more bytes than are kept.
    pub(crate) fn add(&mut self, segments: &[Vec<u8>]) -> Result<(), TargetError> {
        let begins = |byte: &u8| matches!(byte, b'?' | b'&' | b';');
        if !segments.iter().flatten().any(begins) {
            return Ok(());
        }
        let path = segments.join(&b'/');
        for signs in [&b"?"[..], b"&;"] {
            let mut halves = path.splitn(2, |byte| signs.contains(byte));
            self.keep(text(halves.nth(1).unwrap_or_default()))?;
        }
        Ok(())
    }

    fn keep(&mut self, text: String) -> Result<(), TargetError> {
        if text.is_empty() || self.texts.contains(&text) {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > READINGS_BYTES_MAX {
            return Err(TargetError::new(format!(
                "what the path may hold of a query has more than {READINGS_BYTES_MAX} bytes"
            )));
        }
        self.texts.insert(text);
        Ok(())
    }
}

/// The texts that may be the query of a target, beside its query itself: each tail of its
/// path with the query behind it, and the query as it is divided once it is decoded.
///
/// # Errors
/// All of them have more bytes than are kept.
pub(crate) fn of(tails: &Tails, query: Option<&str>) -> Result<Vec<String>, TargetError> {
    let query = query.unwrap_or_default();
    let mut out = Vec::new();
    let mut bytes: usize = 0;
    let mut keep = |parts: [&str; 3]| {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        bytes = bytes.saturating_add(length);
        if bytes > READINGS_BYTES_MAX {
            return Err(TargetError::new(format!(
                "what may be the query of the request has more than {READINGS_BYTES_MAX} bytes"
            )));
        }
        out.push(parts.concat());
        Ok(())
    };
    for tail in &tails.texts {
        if query.is_empty() {
            keep([tail, "", ""])?;
        } else {
            keep([tail, "?", query])?;
            keep([tail, "&", query])?;
        }
    }
    let mut known = query.to_owned();
    for _ in 0..ROUNDS {
        let decoded = decoded(&known);
        if decoded == known {
            break;
        }
        // What is divided as before is decoded where keys and values are compared.
        if separators(&decoded) != separators(&known) {
            keep([&decoded, "", ""])?;
        }
        known = decoded;
    }
    Ok(out)
}

/// How many signs divide it into keys and values.
fn separators(query: &str) -> usize {
    let signs = query.bytes();
    signs.filter(|byte| b"&;?=#".contains(byte)).count()
}

/// The query decoded once. A plus sign that was escaped stays so, since it is no blank
/// to whoever decodes once.
fn decoded(query: &str) -> String {
    let mut bytes = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            rest = after;
            match high << 4 | low {
                b'+' => bytes.extend_from_slice(b"%2B"),
                value => bytes.push(value),
            }
        } else {
            bytes.push(byte);
        }
    }
    text(&bytes)
}

/// As text that is decoded to these bytes: what is no ASCII is escaped.
fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii() {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::path::RequestTarget;

    #[test]
    fn a_target_has_more_queries_than_the_one_behind_its_question_mark() {
        for (target, expected) in [
            ("/x", &[][..]),
            ("/x?a=1&b=2", &[]),
            ("/x?a=%20%41", &[]),
            ("/x%3Fa=1", &["a=1"]),
            ("/x%253Fa=1", &["a=1"]),
            ("/x%3Fa=1%2F%26b=2/c", &["a=1/&b=2/c", "b=2/c"]),
            ("/x%26/a=1%3Fb=2", &["/a=1", "/a=1?b=2", "b=2"]),
            ("/x&a=1/y", &["a=1/y"]),
            ("/x;a=1", &["a=1"]),
            ("/x%3Fa=1?b=2", &["a=1?b=2", "a=1&b=2"]),
            ("/x%3Fa=%2526b=1", &["a=%26b=1", "a=&b=1", "b=1"]),
            ("/x?a=1%26b=2", &["a=1&b=2"]),
            ("/x?a%3D1", &["a=1"]),
            ("/x?a=1%2526b=2", &["a=1&b=2"]),
            ("/x?a=%2B%26%C3%A4", &["a=%2B&%C3%A4"]),
            (
                "/x?u=http%3A%2F%2Fx%3Fa%3D%2526",
                &["u=http://x?a=%26", "u=http://x?a=&"],
            ),
        ] {
            let parsed = RequestTarget::parse(target).expect(target);
            let found: Vec<&str> = parsed.more_queries().collect();
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn what_may_be_a_query_is_bounded() {
        let long = "a".repeat(60_000);
        for (target, is_read) in [
            (format!("/;{}", "%25FFa%26".repeat(1800)), None),
            (format!("/x%26y?{long}"), Some(true)),
            (format!("/x%26y?{long}%26"), Some(true)),
            (
                format!("/%FF%2526a%3Fb%253Fc;d%25253Fe?{long}"),
                Some(false),
            ),
        ] {
            let parsed = RequestTarget::parse(&target);
            assert!(is_read.is_none_or(|is_read| parsed.is_ok() == is_read));
            let bytes = parsed.map_or(0, |parsed| parsed.more_queries().map(str::len).sum());
            assert!(bytes <= crate::limits::READINGS_BYTES_MAX);
        }
    }
}
