//! Where bytes go, and patterns over it. The host is the pinned one, never
//! what a request says of itself.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use crate::limits;

/// Whether a label is one of a kind.
type IsLabel = fn(&str) -> bool;

/// Stand for a part of a label, or for one label: `{region}` for what is written as
/// `eu-central-1`, `{zone}` also for `cn-hangzhou`, `{label}` for any one.
const STANDS: [(&str, IsLabel); 3] = [("region", is_region), ("zone", is_zone), ("label", is_any)];

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanDestination<'a> {
    /// The pinned name, in lower case and without a final dot, or the address
    /// literal without brackets.
    pub host: &'a str,
    /// The port.
    pub port: u16,
}

/// A host, or all names below one: `api.example.org`, `*.example.org`, or with
/// a label in the middle left open: `bedrock.*.example.org`.
///
/// A leading `*` stands for one label or more, any other for exactly one, as `{label}` does
/// anywhere; `{region}` and `{zone}` for one, or the part of one, that names a region of a
/// cloud, as no name that strangers rent does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IssuerPattern {
    text: String,
}

/// Why a text is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerPatternError {
    text: String,
}

impl fmt::Display for IssuerPatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "host pattern `{}` is not a host", self.text)
    }
}

impl Error for IssuerPatternError {}

impl IssuerPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When the text is empty, too long, not in lower case, has an empty label,
    /// or consists of stars alone.
    pub fn parse(text: &str) -> Result<Self, IssuerPatternError> {
        let label = |label: &str| {
            let is_part = |byte: u8| {
                let is_mark = matches!(byte, b'-' | b'_' | b':');
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || is_mark
            };
            let (before, after) = match stand(label) {
                Some((before, _, after)) => (before, after),
                None => (label, ""),
            };
            let is_plain = before.bytes().chain(after.bytes()).all(is_part);
            label == "*" || !label.is_empty() && is_plain
        };
        let named = text.split('.').filter(|label| is_spelt(label)).count();
        if text.len() > limits::HOST_BYTES_MAX || named == 0 || !text.split('.').all(label) {
            let text = text.chars().take(80).collect();
            return Err(IssuerPatternError { text });
        }
        let text = text.to_owned();
        Ok(Self { text })
    }

    /// Whether the pattern stands for `host`.
    pub fn covers(&self, host: &str) -> bool {
        covers(&self.text, host)
    }
}

impl fmt::Display for IssuerPattern {
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
            Some(label) if !label.is_empty() && stands(wanted, label) => {}
            _ => return false,
        }
    }
    match labels.next() {
        None => !is_open,
        Some(label) => is_open && !label.is_empty(),
    }
}

/// Whether a label of a pattern is a name, and no more than that is open in it.
pub(crate) fn is_spelt(label: &str) -> bool {
    label != "*" && label != "{label}"
}

/// What stands before a part of a label that is open, what it stands for, and what
/// stands behind it.
fn stand(wanted: &str) -> Option<(&str, IsLabel, &str)> {
    let (before, rest) = wanted.split_once('{')?;
    let (word, after) = rest.split_once('}')?;
    let (_, is_one) = STANDS.iter().find(|(own, _)| *own == word)?;
    Some((before, *is_one, after))
}

/// Whether a label of a pattern stands for a label.
fn stands(wanted: &str, label: &str) -> bool {
    if wanted == "*" || wanted == label {
        return true;
    }
    stand(wanted).is_some_and(|(before, is_one, after)| {
        let rest = label.strip_prefix(before);
        let part = rest.and_then(|rest| rest.strip_suffix(after));
        part.is_some_and(is_one)
    })
}

fn is_any(label: &str) -> bool {
    !label.is_empty()
}

/// Whether a label names a region: two letters, one to three words, and a number
/// (`us-gov-west-1`). Names of buckets stand left of a service's label, which is none
/// (`s3`, `s3-us-west-2`).
fn is_region(label: &str) -> bool {
    label.rsplit_once('-').is_some_and(|(rest, number)| {
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        (1..=2).contains(&number.len()) && is_number && is_place(rest)
    })
}

/// Whether a label names a region, with a number or without (`cn-hangzhou`).
fn is_zone(label: &str) -> bool {
    is_place(label) || is_region(label)
}

/// Two letters and one to three words.
fn is_place(text: &str) -> bool {
    let is_word = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut parts = text.split('-');
    let is_first = parts
        .next()
        .is_some_and(|place| place.len() == 2 && is_word(place));
    let words: Vec<&str> = parts.collect();
    let are_words = words.iter().all(|word| word.len() > 1 && is_word(word));
    is_first && (1..=3).contains(&words.len()) && are_words
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
            ("x.{region}.a.example", "x.compute-1.a.example", false),
            ("x.{region}.a.example", "x.cn-hangzhou.a.example", false),
            ("x.{zone}.a.example", "x.cn-hangzhou.a.example", true),
            ("x.{zone}.a.example", "x.us-west-1.a.example", true),
            ("x.{zone}.a.example", "x.s3-us-west-2.a.example", false),
            ("*.s3-{region}.a.example", "b.s3-us-west-2.a.example", true),
            (
                "*.s3-{region}.a.example",
                "b.s3-website-us-west-2.a.example",
                false,
            ),
            ("o-{zone}-in.a.example", "o-cn-hangzhou-in.a.example", true),
            ("o-{zone}-in.a.example", "o-cn-hangzhou.a.example", false),
            ("o-{zone}-in.a.example", "o-in.a.example", false),
            ("{label}.a.example", "b.a.example", true),
            ("{label}.a.example", "c.b.a.example", false),
            ("{label}.a.example", "a.example", false),
            ("{label}.a.example", ".a.example", false),
            ("{label}.{region}.a.example", "b.eu-west-1.a.example", true),
            (
                "{label}.{region}.a.example",
                "c.b.eu-west-1.a.example",
                false,
            ),
            ("localhost", "localhost", true),
            ("localhost", "127.0.0.1", true),
            ("localhost", "::1", true),
            ("localhost", "::ffff:127.1.2.3", true),
            ("localhost", "128.0.0.1", false),
            ("localhost", "127.0.0.1.example", false),
        ] {
            let parsed = IssuerPattern::parse(pattern).expect(pattern);
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
            "{label}",
            "{other}.a.example",
            "{region.a.example",
            "{region}{region}.a.example",
        ] {
            assert!(IssuerPattern::parse(text).is_err(), "{text}");
        }
    }
}
