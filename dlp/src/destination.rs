//! Where bytes go, and patterns over it. The host is the pinned one, never
//! what a request says of itself.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use crate::limits;

/// Stands for a label such as `eu-central-1`.
const REGION: &str = "{region}";

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The pinned name, in lower case and without a final dot, or the address
    /// literal without brackets.
    pub host: &'a str,
    /// The port.
    pub port: u16,
}

/// A host, or all names below one: `api.example.org`, `*.example.org`, or with
/// a label in the middle left open: `bedrock.*.example.org`.
///
/// A leading `*` stands for one label or more, any other for exactly one, and `{region}`
/// for one that names a region of a cloud, as no name that strangers rent does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    text: String,
}

/// Why a text is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    text: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "host pattern `{}` is not a host", self.text)
    }
}

impl Error for PatternError {}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When the text is empty, too long, not in lower case, has an empty label,
    /// or consists of stars alone.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let label = |label: &str| {
            matches!(label, "*" | REGION)
                || (!label.is_empty()
                    && label.bytes().all(|byte| {
                        byte.is_ascii_lowercase()
                            || byte.is_ascii_digit()
                            || matches!(byte, b'-' | b'_' | b':')
                    }))
        };
        let named = text.split('.').filter(|label| *label != "*").count();
        if text.len() > limits::HOST_BYTES_MAX || named == 0 || !text.split('.').all(label) {
            let text = text.chars().take(80).collect();
            return Err(PatternError { text });
        }
        let text = text.to_owned();
        Ok(Self { text })
    }

    /// Whether the pattern stands for `host`.
    pub fn covers(&self, host: &str) -> bool {
        covers(&self.text, host)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Whether a pattern, known to be one, stands for `host`.
pub(crate) fn covers(pattern: &str, host: &str) -> bool {
    // The name is a spelling of these addresses (RFC 6761 6.3).
    if pattern == "localhost"
        && let Ok(address) = host.parse::<IpAddr>()
    {
        return address.to_canonical().is_loopback();
    }
    let (rest, is_open) = match pattern.strip_prefix("*.") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let mut labels = host.rsplit('.');
    for wanted in rest.rsplit('.') {
        match labels.next() {
            Some(label) if !label.is_empty() && (wanted == "*" || wanted == label) => {}
            Some(label) if wanted == REGION && is_region(label) => {}
            _ => return false,
        }
    }
    match labels.next() {
        None => !is_open,
        Some(label) => is_open && !label.is_empty(),
    }
}

/// Whether a label names a region: two letters, one to three words, and a number
/// (`us-gov-west-1`). Names of buckets stand left of a service's label, which is none
/// (`s3`, `s3-us-west-2`).
fn is_region(label: &str) -> bool {
    let mut parts = label.split('-');
    let Some(place) = parts.next() else {
        return false;
    };
    let is_word = |part: &&str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let words: Vec<&str> = parts.collect();
    let Some((number, words)) = words.split_last() else {
        return false;
    };
    place.len() == 2
        && is_word(&place)
        && (1..=3).contains(&words.len())
        && words.iter().all(|word| word.len() > 1 && is_word(word))
        && (1..=2).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_its_hosts_and_for_no_neighbour() {
        for (pattern, host, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.a.example", false),
            ("a.example", "xa.example", false),
            ("*.a.example", "b.a.example", true),
            ("*.a.example", "c.b.a.example", true),
            ("*.a.example", "a.example", false),
            ("*.a.example", ".a.example", false),
            ("*.a.example", "ba.example", false),
            ("x.*.a.example", "x.eu.a.example", true),
            ("x.*.a.example", "x.a.example", false),
            ("x.*.a.example", "x.y.z.a.example", false),
            ("*.a.example", "b.a.example.evil.example", false),
            ("x.{region}.a.example", "x.eu-central-1.a.example", true),
            ("x.{region}.a.example", "x.us-gov-west-1.a.example", true),
            ("x.{region}.a.example", "x.s3.a.example", false),
            ("x.{region}.a.example", "x.s3-us-west-2.a.example", false),
            ("x.{region}.a.example", "x.a.example", false),
            ("x.{region}.a.example", "x.eu-1.a.example", false),
            ("localhost", "localhost", true),
            ("localhost", "127.0.0.1", true),
            ("localhost", "::1", true),
            ("localhost", "::ffff:127.1.2.3", true),
            ("localhost", "128.0.0.1", false),
            ("localhost", "127.0.0.1.example", false),
        ] {
            let parsed = HostPattern::parse(pattern).expect(pattern);
            assert_eq!(parsed.covers(host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "*",
            "*.*",
            "A.example",
            "a..example",
            "a.example/",
            "a b",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
