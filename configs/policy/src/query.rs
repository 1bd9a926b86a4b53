//! Patterns of query values, and how they match queries.
//!
//! Servers disagree about separators, `+`, repeated keys and repeated
//! decoding. A rule that allows must match in every reading, a rule that
//! denies in any. Nothing in this file knows paths, hosts or effects.

use crate::host::shown;
use crate::limits::QUERY_PAIRS_MAX;
use crate::path::unescape;
use crate::pattern::{Glob, PatternError, check_escapes, fault};
use crate::readings::fold_case;

/// One `key=pattern` of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryPattern {
    key: Vec<u8>,
    folded_key: Vec<u8>,
    value: Glob,
    folded_value: Glob,
}

impl QueryPattern {
    /// Makes the patterns from the text after the question mark.
    ///
    /// # Errors
    /// An empty query, a key without pattern, invalid characters.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, PatternError> {
        let mut out = Vec::new();
        let mut offset = 0;
        for pair in text.split('&') {
            let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Err(fault(
                    offset,
                    format!("`{}` is not `KEY=PATTERN`", shown(pair)),
                    "`key=*` demands the key with any value; `*` inside a path never reaches the query",
                ));
            };
            if let Some(at) = pair.find(|c: char| c.is_control() || c == ' ' || c == '#') {
                return Err(fault(
                    offset + at,
                    "a query holds no spaces, no `#` and no control characters",
                    "write a space as `%20`",
                ));
            }
            check_escapes(pair).map_err(|error| PatternError {
                offset: offset + error.offset,
                ..error
            })?;
            if key.contains('*') {
                return Err(fault(
                    offset,
                    format!("the key `{}` holds a `*`", shown(key)),
                    "patterns stand for values only; name each key",
                ));
            }
            let key = unescape(key.as_bytes());
            let value = Glob::decoded(value);
            out.push(Self {
                folded_key: fold_case(&key),
                folded_value: value.folded(),
                key,
                value,
            });
            offset += pair.len() + 1;
        }
        Ok(out)
    }

    /// The key as it may stand in a rule; `None` where it holds what people
    /// should not be shown.
    pub(crate) fn shown_key(&self) -> Option<&str> {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let text = std::str::from_utf8(&self.key).ok()?;
        self.key.iter().all(plain).then_some(text)
    }

    /// Whether the query holds the key.
    pub(crate) fn is_in(&self, query: &str) -> bool {
        pairs(query, Separators::Ampersand).any(|(key, _)| unescape(key.as_bytes()) == self.key)
    }

    /// Whether the key is there and every value it may have, in every reading, matches.
    pub(crate) fn matches_all(&self, query: &str) -> bool {
        let mut found = false;
        for (key, value) in pairs(query, Separators::Ampersand) {
            if unescape(key.as_bytes()) == self.key {
                found = true;
            }
            if self.may_be_key(key) && !decodings(value).iter().all(|v| self.value.matches(v)) {
                return false;
            }
        }
        let hidden_fits = |(key, value): (&str, &str)| {
            !self.may_be_key(key) || decodings(value).iter().all(|v| self.value.matches(v))
        };
        found
            && is_bounded(query)
            && (!query.contains(';') || pairs(query, Separators::Both).all(hidden_fits))
    }

    /// Whether any value the key may have, in any reading, matches.
    pub(crate) fn matches_any(&self, query: &str) -> bool {
        if !is_bounded(query) {
            return true;
        }
        let hits = |(key, value): (&str, &str)| {
            self.may_be_key(key)
                && decodings(value)
                    .iter()
                    .any(|v| self.folded_value.matches(&fold_case(v)))
        };
        pairs(query, Separators::Ampersand).any(hits)
            || (query.contains(';') && pairs(query, Separators::Both).any(hits))
    }

    /// Whether some server may take the raw key for this one: decoded more
    /// often, in another case, with an index such as `[]`.
    fn may_be_key(&self, raw: &str) -> bool {
        decodings(raw).iter().any(|key| {
            let key = fold_case(key);
            let bare = key.split(|b| *b == b'[').next().unwrap_or(&key);
            key == self.folded_key || bare == self.folded_key.as_slice()
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    Ampersand,
    Both,
}

fn is_bounded(query: &str) -> bool {
    query.bytes().filter(|b| matches!(b, b'&' | b';')).count() < QUERY_PAIRS_MAX
}

fn pairs(query: &str, separators: Separators) -> impl Iterator<Item = (&str, &str)> {
    query
        .split(move |c| c == '&' || (c == ';' && separators == Separators::Both))
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// What a raw key or value may be decoded to: once, with `+` as space, twice.
fn decodings(raw: &str) -> Vec<Vec<u8>> {
    if !raw.contains(['%', '+']) {
        return vec![raw.as_bytes().to_vec()];
    }
    let once = unescape(raw.as_bytes());
    let spaced = unescape(raw.replace('+', " ").as_bytes());
    let twice = unescape(&once);
    let mut out = vec![once];
    for other in [spaced, twice] {
        if !out.contains(&other) {
            out.push(other);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_must_match_in_every_value() {
        for (pattern, query, all, any) in [
            ("a=1", "a=1", true, true),
            ("a=1", "a=2", false, false),
            ("a=1", "a=1&a=2", false, true),
            ("a=1", "b=1", false, false),
            ("a=1", "a=1;a=2", false, true),
            ("a=1", "A=2&a=1", false, true),
            ("a=1", "a=1&a[]=2", false, true),
            ("a=1", "a=%31", true, true),
            ("a=1", "a=%2531", false, true),
            ("a=*", "a=", true, true),
            ("a=*", "a", true, true),
            ("a=x*", "a=x+y", true, true),
            ("a=x%20y", "a=x+y", false, true),
            ("a=x%20y", "a=x%20y", true, true),
            ("a=1&b=2", "b=2&a=1&c=3", true, true),
            ("a=1&b=2", "a=1", false, false),
            ("a=Secret", "a=SECRET", false, true),
        ] {
            let patterns = QueryPattern::parse_all(pattern).expect(pattern);
            let found = patterns.iter().all(|p| p.matches_all(query));
            assert_eq!(found, all, "allow {pattern} {query}");
            let found = patterns.iter().all(|p| p.matches_any(query));
            assert_eq!(found, any, "deny {pattern} {query}");
        }
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for text in ["", "a", "=1", "a*=1", "a=b c", "a=%z", "a=1&", "a=%0a"] {
            assert!(QueryPattern::parse_all(text).is_err(), "{text}");
        }
    }
}
