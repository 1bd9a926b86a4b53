//! Request targets: one canonical form, and every reading that a server may
//! make of it.
//!
//! The canonical form (RFC 3986 6.2.2) is what was judged and what is sent.
//! Readings exist because servers disagree about `//`, `%2F`, `\`, `;` and
//! repeated decoding; [`readings`] makes them. Texts in, types out.

use std::borrow::Cow;
use std::fmt;

use crate::limits::{PATH_BYTES_MAX, TARGET_BYTES_MAX};

mod lenient;
mod more_queries;
pub(crate) mod readings;

use readings::Readings;

/// A request target that may be judged and, unchanged, sent: a path with an
/// optional query, or the asterisk of `OPTIONS *` (RFC 9112 3.2.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    text: String,
    /// `None` for the asterisk, which has no path.
    readings: Option<Readings>,
    /// What may be its query beside the query itself.
    more_queries: Vec<String>,
    /// Whether nobody can tell what the keys and values of the query are.
    is_query_hidden: bool,
}

/// Why a text is not a request target. Whoever sent it is to blame: 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetError(Cow<'static, str>);

impl TargetError {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TargetError {}

impl RequestTarget {
    /// Makes a target from the path and query of a request, or from `*`.
    ///
    /// In the path, escapes become upper case, escaped unreserved characters
    /// and dot segments are resolved, and characters that RFC 3986 does not
    /// know are escaped. The query stays as it is. An empty path becomes `/`.
    ///
    /// # Errors
    /// The text is too long; it holds raw controls, spaces, non-ASCII or `#`,
    /// an invalid escape, or an escaped NUL; its path does not begin with `/`,
    /// holds an escaped control or an overlong sequence, is decoded without
    /// end, or leads above the root in any reading.
    pub fn parse(path_and_query: &str) -> Result<Self, TargetError> {
        if path_and_query == "*" {
            return Ok(Self {
                text: "*".to_owned(),
                readings: None,
                more_queries: Vec::new(),
                is_query_hidden: false,
            });
        }
        if path_and_query.len() > TARGET_BYTES_MAX {
            return Err(TargetError::new(format!(
                "the request target has {} bytes, more than {TARGET_BYTES_MAX}",
                path_and_query.len()
            )));
        }
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        check_bytes(path)?;
        let mut text = canonical_path(path)?;
        let mut readings = Readings::of(&text)?;
        if let Some(query) = query {
            check_bytes(query)?;
            check_query(query)?;
            for path in paths_in(&text, query) {
                readings = readings.or_of(&Readings::of(&canonical_path(&path)?)?);
            }
            text.reserve(query.len() + 1);
            text.push('?');
            text.push_str(query);
        }
        let more_queries = more_queries::of(readings.tails(), query)?;
        Ok(Self {
            text,
            more_queries,
            readings: Some(readings),
            is_query_hidden: false,
        })
    }

    /// The same target, of a request that asks for its query to be read in a character
    /// set nobody knows, or one that writes ASCII otherwise: each rule that denies
    /// by a key is about it, and none that allows by one.
    #[must_use]
    pub fn with_hidden_query(mut self) -> Self {
        let is_there = self.query().is_some_and(|query| !query.is_empty());
        self.is_query_hidden = is_there || !self.more_queries.is_empty();
        self
    }

    /// Whether nobody can tell what the keys and values of its query are.
    pub fn is_query_hidden(&self) -> bool {
        self.is_query_hidden
    }

    /// The canonical form: the bytes that were judged and that are to be sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical path, without query.
    pub fn path(&self) -> &str {
        self.text
            .split_once('?')
            .map_or(&self.text, |(path, _)| path)
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.text.split_once('?').map(|(_, query)| query)
    }

    /// The texts that some server takes for its query, beside the query itself.
    pub(crate) fn more_queries(&self) -> impl Iterator<Item = &str> {
        self.more_queries.iter().map(String::as_str)
    }

    /// Every reading of the path; `None` for the asterisk.
    pub(crate) fn readings(&self) -> Option<&Readings> {
        self.readings.as_ref()
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Refuses what may not stand raw in a target, and escapes that are none.
fn check_bytes(text: &str) -> Result<(), TargetError> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_value);
                let low = bytes.next().and_then(hex_value);
                match (high, low) {
                    (Some(0), Some(0)) => {
                        return Err(TargetError::new("the request target holds an escaped NUL"));
                    }
                    (Some(_), Some(_)) => {}
                    _ => {
                        return Err(TargetError::new(
                            "the request target holds a `%` that two hexadecimal digits do not follow",
                        ));
                    }
                }
            }
            b'#' => return Err(TargetError::new("the request target holds a `#`")),
            0x21..=0x7e => {}
            _ => {
                return Err(TargetError::new(format!(
                    "the request target holds the raw byte 0x{byte:02X}"
                )));
            }
        }
    }
    Ok(())
}

/// What programs take for the path that find one in the query (`/?/path` and
/// `/index.php?/path` of CodeIgniter, CakePHP and their like): it stands for one below the
/// directory of the path, or behind the program's name.
fn paths_in(path: &str, query: &str) -> Vec<String> {
    if !query.starts_with('/') {
        return Vec::new();
    }
    let whole = query.split('?').next().unwrap_or_default();
    let first = whole.split('&').next().unwrap_or_default();
    let directory = path.rsplit_once('/').map_or("", |(before, _)| before);
    let program = path.strip_suffix('/').unwrap_or(path);
    let mut found = Vec::new();
    for base in [directory, program] {
        for inner in [whole, first] {
            let one = format!("{base}{inner}");
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// Refuses queries that hide a NUL behind a second decoding.
fn check_query(query: &str) -> Result<(), TargetError> {
    let once = unescape(query.as_bytes());
    let twice = unescape(&once);
    if once.contains(&0) || twice.contains(&0) {
        return Err(TargetError::new("the request target holds an escaped NUL"));
    }
    Ok(())
}

/// The canonical form of a path whose bytes were checked (RFC 3986 6.2.2, 5.2.4).
fn canonical_path(path: &str) -> Result<String, TargetError> {
    if path.is_empty() {
        return Ok("/".to_owned());
    }
    if !path.starts_with('/') {
        return Err(TargetError::new("the path does not begin with `/`"));
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(TargetError::new(format!(
            "the path has {} bytes, more than {PATH_BYTES_MAX}",
            path.len()
        )));
    }
    let escaped = canonical_escapes(path);
    if !escaped.contains("/.") {
        return Ok(escaped);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = escaped.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop().ok_or_else(above_root)?;
            }
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    let mut out = String::with_capacity(escaped.len());
    for segment in kept {
        out.push('/');
        out.push_str(segment);
    }
    Ok(out)
}

/// The fault of a path that leads above its root.
pub(crate) fn above_root() -> TargetError {
    TargetError::new("the path leads above the root")
}

/// Upper-case escapes; unreserved characters unescaped; characters that no
/// path has, escaped.
fn canonical_escapes(path: &str) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    let digit = |value: u8| DIGITS.get(usize::from(value & 15)).copied().unwrap_or('0');
    let mut out = String::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let (value, escape) = if byte == b'%' {
            let high = bytes.next().and_then(hex_value).unwrap_or(0);
            let low = bytes.next().and_then(hex_value).unwrap_or(0);
            let value = high << 4 | low;
            (value, !is_unreserved(value))
        } else {
            (byte, !(is_path_byte(byte) || byte == b'/'))
        };
        if escape {
            out.push('%');
            out.push(digit(value >> 4));
            out.push(digit(value));
        } else {
            out.push(char::from(value));
        }
    }
    out
}

/// RFC 3986 2.3.
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// `pchar` of RFC 3986 3.3, without escapes.
pub(crate) fn is_path_byte(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'!' | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
        )
}

/// The value of a hexadecimal digit.
pub(crate) fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Decodes valid escapes once; anything else stays.
pub(crate) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (hex_value(*high), hex_value(*low))
        {
            out.push(high << 4 | low);
            rest = after;
            continue;
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets_have_one_canonical_form() {
        for (text, want) in [
            ("/", "/"),
            ("", "/"),
            ("?a=b", "/?a=b"),
            ("*", "*"),
            ("/a/b", "/a/b"),
            ("/%61%2d%7E", "/a-~"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%c3%a4", "/a%C3%A4"),
            ("/a/./b/../c", "/a/c"),
            ("/a/..", "/"),
            ("/a/.", "/a/"),
            ("/a/%2e%2E/b", "/b"),
            ("/a//b", "/a//b"),
            ("/a//../b", "/a/b"),
            ("/a//../..", "/"),
            ("/a\\b", "/a%5Cb"),
            ("/a{1}[2]|", "/a%7B1%7D%5B2%5D%7C"),
            ("/a;v=1/b", "/a;v=1/b"),
            ("/a?q=%7e&r=[1]?", "/a?q=%7e&r=[1]?"),
            ("/...", "/..."),
        ] {
            let target = RequestTarget::parse(text).expect(text);
            assert_eq!(target.as_str(), want, "{text}");
        }
    }

    #[test]
    fn targets_that_nobody_agrees_on_are_refused() {
        for (text, want) in [
            ("a", "the path does not begin with `/`"),
            ("**", "the path does not begin with `/`"),
            ("http://a/", "the path does not begin with `/`"),
            ("/a b", "the request target holds the raw byte 0x20"),
            ("/a\u{0}", "the request target holds the raw byte 0x00"),
            ("/a\u{7f}", "the request target holds the raw byte 0x7F"),
            ("/ä", "the request target holds the raw byte 0xC3"),
            ("/a?q=ä", "the request target holds the raw byte 0xC3"),
            ("/a#b", "the request target holds a `#`"),
            (
                "/a%",
                "the request target holds a `%` that two hexadecimal digits do not follow",
            ),
            (
                "/a%u0061",
                "the request target holds a `%` that two hexadecimal digits do not follow",
            ),
            (
                "/a?q=%zz",
                "the request target holds a `%` that two hexadecimal digits do not follow",
            ),
            ("/a%00", "the request target holds an escaped NUL"),
            ("/a%2500", "the path holds an escaped control character"),
            ("/a?q=%2500", "the request target holds an escaped NUL"),
            ("/a%0d%0ab", "the path holds an escaped control character"),
            ("/..", "the path leads above the root"),
            ("/a/../..", "the path leads above the root"),
            ("/%2e%2e/a", "the path leads above the root"),
            ("/a/..%2f..", "the path leads above the root"),
            ("/a/..%5c../b", "the path leads above the root"),
            ("/..;/a", "the path leads above the root"),
            ("/a//../../..", "the path leads above the root"),
            ("/%252e%252e/a", "the path leads above the root"),
            ("/a%c0%afb", "the path holds an overlong UTF-8 sequence"),
            ("/a%2525252525", "the path is escaped more than 4 times"),
        ] {
            let error = RequestTarget::parse(text).expect_err(text);
            assert_eq!(error.to_string(), want, "{text}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let path = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert!(RequestTarget::parse(&path(PATH_BYTES_MAX)).is_ok());
        assert!(RequestTarget::parse(&path(PATH_BYTES_MAX + 1)).is_err());
        let query = |length: usize| format!("/?{}", "a".repeat(length - 2));
        assert!(RequestTarget::parse(&query(TARGET_BYTES_MAX)).is_ok());
        assert!(RequestTarget::parse(&query(TARGET_BYTES_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn canonical_targets_stay_as_they_are(text in "/([a-c./;\\\\{%?]|%2[eEfF5]|%5[cC]|%6[1-3]|%C3%A4){0,12}") {
            if let Ok(target) = RequestTarget::parse(&text) {
                prop_assert_eq!(RequestTarget::parse(target.as_str()), Ok(target.clone()));
            }
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
            if let Ok(target) = RequestTarget::parse(&text) {
                prop_assert!(target.as_str().bytes().all(|b| (0x21..=0x7e).contains(&b)));
            }
        }
    }
}
