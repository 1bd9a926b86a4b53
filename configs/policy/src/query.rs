//! Patterns of query values, and how they match queries.
//!
//! Servers disagree about separators, `+`, repeated keys, repeated decoding and
//! the spelling of keys. A rule that allows must match in every reading, a rule
//! that denies in any. Nothing in this file knows paths, hosts or effects.

use crate::fold::fold_case;
use crate::glob::Glob;
use crate::host::shown;
use crate::limits::QUERY_PAIRS_MAX;
use crate::path::{RequestTarget, unescape};
use crate::pattern::{PatternError, check_escapes, fault};
use crate::query_key::{FoldedKey, decodings, depth, holds_word, is_short, is_torn, readable};

/// One `key=pattern` of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryPattern {
    key: Vec<u8>,
    folded_key: FoldedKey,
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
                folded_key: FoldedKey::of(&key),
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

    /// Whether every value of the key will do.
    pub(crate) fn is_any_value(&self) -> bool {
        self.value.is_star()
    }

    /// Whether a query that this pattern grants is granted by another: true only where that
    /// is plain.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self == other || self.key == other.key && other.is_any_value()
    }

    /// Has every value of the key do.
    pub(crate) fn open(&mut self) {
        self.value = Glob::decoded("*");
        self.folded_value = self.value.folded();
    }

    /// Whether the query holds the key.
    pub(crate) fn is_in(&self, query: &str) -> bool {
        pairs(query, Separators::Ampersand).any(|(key, _)| unescape(key.as_bytes()) == self.key)
    }

    /// Whether the key is there and every value it may have, in every reading, matches.
    pub(crate) fn matches_all(&self, query: &str) -> bool {
        let is_there = pairs(query, Separators::Ampersand)
            .any(|(key, _)| unescape(key.as_bytes()) == self.key);
        let fits = |(key, value): (&str, &str)| {
            // Whose value stands behind two of them, readers disagree.
            let is_divided = !(key.is_empty() && value.contains('='));
            is_divided
                && !is_torn(key)
                && (!self.folded_key.may_be(key) || self.fits_in_every_reading(value))
        };
        let holds = |separators| {
            pairs(query, separators).all(fits) && self.is_of_one_depth(query, separators)
        };
        is_there
            && is_bounded(query)
            && holds(Separators::Ampersand)
            && (!has_other_separators(query)
                || (holds(Separators::Semicolon) && holds(Separators::All)))
    }

    /// Whether a text that some take for the query gives the key no other value: what
    /// [`QueryPattern::matches_all`] asks of the query itself, but for the key being there.
    pub(crate) fn bears(&self, text: &str) -> bool {
        let holds = |separators: &Separators| {
            let mut own = pairs(text, *separators).filter(|(key, _)| self.folded_key.may_be(key));
            own.all(|(_, value)| self.fits_as_divided(value, *separators))
                && self.is_of_one_depth(text, *separators)
        };
        is_bounded(text) && Separators::IN_QUERIES.iter().all(holds)
    }

    /// Whether every reading of a value matches, or what such separators leave of one that
    /// matches: the rule may name a value that holds some.
    fn fits_as_divided(&self, value: &str, separators: Separators) -> bool {
        let left = self.value.up_to(|byte| separators.divide(byte));
        self.fits_in_every_reading(value)
            || left.is_some_and(|left| decodings(value).iter().all(|value| left.matches(value)))
    }

    /// Whether the key is nested in the same way wherever it stands: of `a[b]=x&a=y` some
    /// make an object in which the value `y` is a name (`qs`).
    fn is_of_one_depth(&self, query: &str, separators: Separators) -> bool {
        let own = pairs(query, separators).filter(|(key, _)| self.folded_key.may_be(key));
        let mut depths = own.map(|(key, _)| depth(key));
        let first = depths.next();
        depths.all(|depth| Some(depth) == first)
    }

    /// Whether any value the key may have, in any reading, matches.
    pub(crate) fn matches_any(&self, query: &str) -> bool {
        if !is_bounded(query) {
            return true;
        }
        self.hits(query, Separators::Ampersand)
            || (has_other_separators(query)
                && (self.hits(query, Separators::Semicolon) || self.hits(query, Separators::All)))
    }

    /// The same of a text that some take for the query, or a part of it: a segment of a path.
    pub(crate) fn matches_any_part(&self, text: &str) -> bool {
        self.matches_any(text) || self.hits(text, Separators::Slash)
    }

    fn hits(&self, query: &str, separators: Separators) -> bool {
        let mut joined = String::new();
        let mut count = 0;
        for (key, value) in pairs(query, separators) {
            if !self.folded_key.may_be(key) {
                continue;
            }
            if self.fits_in_some_reading(value) {
                return true;
            }
            if count > 0 {
                joined.push(',');
            }
            joined.push_str(value);
            count += 1;
        }
        // ASP.NET shows repeated keys as one value, with commas.
        count > 1 && self.fits_in_some_reading(&joined)
    }

    fn fits_in_every_reading(&self, value: &str) -> bool {
        // Where the rule itself has a comma, it is about the value as a whole.
        let is_list = !self.value.holds(b',');
        decodings(value).iter().all(|value| {
            self.value.matches(value)
                && (!is_list || pieces(value).all(|piece| self.value.matches(piece)))
        })
    }

    fn fits_in_some_reading(&self, value: &str) -> bool {
        decodings(value).iter().any(|value| {
            let (shown, value) = (fold_case(value), fold_case(&readable(value)));
            self.folded_value.matches(&shown)
                || self.folded_value.matches(&value)
                || self.folded_value.matches(value.trim_ascii())
                || items(&value).any(|item| {
                    self.folded_value.matches(item)
                        || number(item).is_some_and(|digits| self.folded_value.matches(digits))
                })
        })
    }
}

/// A key of queries and forms that means something whatever rules say.
#[derive(Debug, Clone)]
pub struct QueryKey(SoughtKey);

#[derive(Debug, Clone)]
enum SoughtKey {
    Named(FoldedKey),
    Holding(Vec<String>),
}

impl QueryKey {
    /// The key of this name.
    pub fn new(name: &str) -> Self {
        Self(SoughtKey::Named(FoldedKey::of(name.as_bytes())))
    }

    /// Every key that holds one of these words, which are lower case.
    pub fn holding(words: &[&str]) -> Self {
        Self(SoughtKey::Holding(
            words.iter().map(|word| (*word).to_owned()).collect(),
        ))
    }

    /// Whether some reader may take the raw key for it.
    pub fn may_be(&self, raw: &str) -> bool {
        match &self.0 {
            SoughtKey::Named(key) => key.may_be(raw),
            SoughtKey::Holding(words) => holds_word(raw, words),
        }
    }

    /// Whether a longer raw key that begins so may still be it.
    pub fn may_begin(&self, raw: &str) -> bool {
        match &self.0 {
            SoughtKey::Named(key) => key.may_begin(raw),
            SoughtKey::Holding(_) => is_short(raw),
        }
    }

    /// Every value that it may have in a query or a form, in every reading, without
    /// blanks around it; none that is empty.
    pub fn values(&self, query: &str) -> Vec<String> {
        let separators: &[Separators] = if has_other_separators(query) {
            &Separators::IN_QUERIES
        } else {
            &[Separators::Ampersand]
        };
        let mut values = self.values_between(query, separators);
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The same of a target, whose query may be more than stands behind its `?`.
    pub fn values_in(&self, target: &RequestTarget) -> Vec<String> {
        let mut values = self.values(target.query().unwrap_or_default());
        for text in target.more_queries() {
            values.extend(self.values(text));
            values.extend(self.values_between(text, &[Separators::Slash]));
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    fn values_between(&self, query: &str, separators: &[Separators]) -> Vec<String> {
        let pairs = separators
            .iter()
            .flat_map(|separators| pairs(query, *separators));
        pairs
            .filter(|(key, _)| self.may_be(key))
            .flat_map(|(_, value)| decodings(value))
            .map(|value| String::from_utf8_lossy(&readable(&value)).trim().to_owned())
            .filter(|value| !value.is_empty())
            .collect()
    }
}

/// What a value is to a parser that takes it for a list.
fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',')
}

/// The same for all that some program divides a value by: OAuth's scopes by blanks
/// (RFC 6749 3.3), filters of search forms by `|`.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| matches!(byte, b',' | b'|' | b';') || byte.is_ascii_whitespace())
        .map(<[u8]>::trim_ascii)
}

/// The digits of a whole number that is written with a sign or with zeros before it.
fn number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let from = zeros.min(digits.len().saturating_sub(1));
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    digits.get(from..).filter(|_| is_number)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separators {
    Ampersand,
    /// `;` as well (HTML 4.01 B.2.2).
    Semicolon,
    /// A further `?` as well, behind which some begin, and a decoded `#`, at which some end.
    All,
    /// `/` as well, between the segments of a path that some make a query of.
    Slash,
}

impl Separators {
    const IN_QUERIES: [Self; 3] = [Self::Ampersand, Self::Semicolon, Self::All];

    fn divide(self, byte: u8) -> bool {
        match byte {
            b'&' => true,
            b';' => self != Self::Ampersand,
            b'?' | b'#' => matches!(self, Self::All | Self::Slash),
            b'/' => self == Self::Slash,
            _ => false,
        }
    }
}

fn has_other_separators(query: &str) -> bool {
    query.contains([';', '?', '#'])
}

fn is_bounded(query: &str) -> bool {
    query.bytes().filter(|b| matches!(b, b'&' | b';')).count() < QUERY_PAIRS_MAX
}

/// Keys and values; both of a pair that two parsers divide at different places.
fn pairs(query: &str, separators: Separators) -> impl Iterator<Item = (&str, &str)> {
    query
        .split(move |c| u8::try_from(c).is_ok_and(|byte| separators.divide(byte)))
        .flat_map(|pair| {
            let usual = pair.split_once('=').unwrap_or((pair, ""));
            let plain = behind_bracket(pair, &["]"]).filter(|other| *other != usual);
            let escaped = behind_bracket(pair, &["]", "%5D", "%5d"])
                .filter(|other| *other != usual && Some(*other) != plain);
            // To some `=a=1` is `a=1` (ufo, which h3 reads queries with).
            let behind = pair.trim_start_matches('=');
            let behind =
                (behind.len() < pair.len()).then(|| behind.split_once('=').unwrap_or((behind, "")));
            std::iter::once(usual)
                .chain(plain)
                .chain(escaped)
                .chain(behind)
        })
}

/// The pair divided at the first `]=`, where `qs` divides it: `a[=]=b`. Its older
/// versions look for the bracket itself, newer ones for an escaped one too.
fn behind_bracket<'a>(pair: &'a str, brackets: &[&str]) -> Option<(&'a str, &'a str)> {
    pair.match_indices('=').find_map(|(at, _)| {
        let (key, value) = pair.split_at_checked(at)?;
        let is_end = brackets.iter().any(|bracket| key.ends_with(bracket));
        is_end.then(|| (key, value.get(1..).unwrap_or("")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn queries_must_match_in_every_value() {
        for (pattern, query, all, any) in [
            ("a=1", "a=1", true, true),
            ("a=1", "a=2", false, false),
            ("a=1", "a=1&a=2", false, true),
            ("a=1", "b=1", false, false),
            ("a=1", "a=1;a=2", false, true),
            ("a=1", "=a=1", false, true),
            ("a=1", "a=1&=a=2", false, true),
            ("a=2", "a=1&==a=2", false, true),
            ("a=1", "=a=2", false, false),
            ("a=1", "A=2&a=1", false, true),
            ("a=1", "a=1&a[]=2", false, true),
            ("a=1", "a=1&a[]=1", true, true),
            // An object in which `1` is a name, and `true` its value.
            ("a=1", "a[b]=1&a=1", false, true),
            ("a=1", "a=1&a[b][c]=1", false, true),
            ("a=1", "a[b]=1;a=1", false, true),
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
            // Blanks and other signs around the key.
            ("a=1", "a=1&+a=2", false, true),
            ("a=1", "a=2&%20%09a=1", false, true),
            ("a=1", "%20a=1", false, true),
            ("a=1", "%EF%BB%BFa=1", false, true),
            ("a=1", "%C2%A0a=1", false, true),
            ("a=1", "a%20=1", false, true),
            ("a=1", "!a=1", false, true),
            ("a=1", "?a=1", false, true),
            ("a=1", "x=1?a=1", false, true),
            ("a=1", "amp;a=1", false, true),
            ("a=1", "b;[a]?=1", false, true),
            ("a=1", "%C1%A1=1", false, true),
            ("a=1", "%25u0061=1", false, true),
            ("a=1", "%FFa=1", false, true),
            ("a=b", "a=%26%2398%3b", false, true),
            ("a=1", "ba=1", false, false),
            // Brackets and dots.
            ("a=1", "[a]=1", false, true),
            ("a=1", "a=1&[a]=2", false, true),
            ("a=1", "[a][b]=1", false, true),
            ("a=1", "a%5b%5d=2[b]=1", false, true),
            ("a=1", "]a=1", false, true),
            ("a=1", "a.b=1", false, true),
            ("a=1", "b[a]=1", false, false),
            ("a_b=1", "a.b=1", false, true),
            ("a_b=1", "a+b=1", false, true),
            ("a_b=1", "a%20b=1", false, true),
            ("a_b=1", "a[b=1", false, true),
            ("a_b=1", "a%5Bb=1", false, true),
            ("a_b=1", "a.b[c]=1", false, true),
            ("a_b=1", "a_b=1&a.b=2", false, true),
            ("a.b=1", "a_b=1", false, true),
            ("a_b=1", "ab=1", false, false),
            ("a_b=1", "a-b=1", false, false),
            ("a[b]=1", "a[b]=1", true, true),
            ("a[b]=1", "a.b=1", false, true),
            ("a[b]=1", "a[b][c]=1", false, true),
            ("a[b]=1", "a[c]=1", false, false),
            ("a=1", "a[=]=1", false, true),
            ("a=1", "a=1&a%5B=%5d=2", false, true),
            // Torn brackets: whose value it is depends on the reader.
            ("a=1", "a=1&b[a=2", false, true),
            ("a=1", "a=1&b]a=2", false, true),
            ("a=1", "a=1&b[c]a=2", false, true),
            ("a=1", "a=1&b[]]a=2", false, true),
            ("a=1", "a=1&b%5Ba=2", false, true),
            ("a=1", "a=1&%5D%5B=2", false, true),
            ("a=1", "a=1&b[c][d]=2&e[]=3", true, true),
            // Lists.
            ("a=1", "a=1,2", false, true),
            ("a=1,2", "a=1,2", true, true),
            ("a=1,2", "a=1&a=2", false, true),
            ("a=*", "a=1,2", true, true),
            ("a=1*", "a=1,2", false, true),
            ("a=1", "a=1+", false, true),
            ("a=1", "a=2+1", false, true),
            ("a=1", "a=2%0A1", false, true),
            ("a=1", "a=2|1", false, true),
            ("a=1", "a=2%3B1", false, true),
            ("a=1", "a=3,02|+001", false, true),
            ("a=0", "a=000", false, true),
            ("a=1", "a=10", false, false),
            ("a=1", "a=0x1", false, false),
        ] {
            let patterns = QueryPattern::parse_all(pattern).expect(pattern);
            let found = patterns.iter().all(|p| p.matches_all(query));
            assert_eq!(found, all, "allow {pattern} {query}");
            let found = patterns.iter().all(|p| p.matches_any(query));
            assert_eq!(found, any, "deny {pattern} {query}");
        }
    }

    #[test]
    fn a_key_has_the_values_of_every_reading() {
        let key = QueryKey::new("_method");
        for (query, values) in [
            ("_method=delete", &["delete"][..]),
            ("a=1&_METHOD=delete", &["delete"]),
            ("+_method=delete", &["delete"]),
            (".method=delete", &["delete"]),
            ("%5fmethod=%64elete", &["delete"]),
            ("_method[]=delete", &["delete"]),
            ("[_method]=delete", &["delete"]),
            ("a=1;_method=delete", &["delete"]),
            ("_method=put&_method=delete", &["delete", "put"]),
            ("_method=", &[]),
            ("_method", &[]),
            ("method=delete", &[]),
            ("a=_method", &[]),
            ("x_method=delete", &[]),
        ] {
            assert_eq!(key.values(query), values, "{query}");
        }
        for (begin, may) in [
            ("", true),
            ("_me", true),
            ("++%5f", true),
            ("_methodx", true),
            ("a", false),
            ("{\"_m", false),
        ] {
            assert_eq!(key.may_begin(begin), may, "{begin}");
        }
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for text in ["", "a", "=1", "a*=1", "a=b c", "a=%z", "a=1&", "a=%0a"] {
            assert!(QueryPattern::parse_all(text).is_err(), "{text}");
        }
    }
}
