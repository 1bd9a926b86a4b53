//! The key of a query, in every spelling that some reader takes for it.
//!
//! PHP leaves leading blanks away and makes `_` of a dot, a blank and a lone
//! bracket; `qs` and Rack take the name out of leading brackets; others ignore
//! case, marks or what they cannot decode. Keys are compared by what is left
//! once all of that is undone. Nothing here knows values or rules.

use crate::fold::fold_case;
use crate::path::unescape;

/// A key as a rule names it, in the forms that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldedKey {
    /// One name, with `_` for each sign that PHP has no variable for.
    flat: Vec<u8>,
    /// The names of a nested key, outermost first: `a[b]` and `a.b` have two.
    nested: Vec<Vec<u8>>,
}

impl FoldedKey {
    /// Folds a decoded key.
    pub(crate) fn of(key: &[u8]) -> Self {
        let key = trimmed(&fold_case(&readable(key))).to_vec();
        Self {
            flat: flat(&key),
            nested: nested(&key),
        }
    }

    /// Whether some reader may take the raw key for this one.
    pub(crate) fn may_be(&self, raw: &str) -> bool {
        decodings(raw).iter().any(|key| self.is_spelled(key))
    }

    /// Whether a longer raw key that begins so may still be this one.
    pub(crate) fn may_begin(&self, raw: &str) -> bool {
        decodings(raw).iter().any(|key| {
            let folded = fold_case(&readable(key));
            let key = trimmed(&folded);
            let begin = key.iter().position(|byte| !b"[].:(!".contains(byte));
            let key = flat(key.get(begin.unwrap_or(key.len())..).unwrap_or_default());
            self.flat.starts_with(&key) || key.starts_with(&self.flat)
        })
    }

    fn is_spelled(&self, key: &[u8]) -> bool {
        let folded = fold_case(&readable(key));
        let key = trimmed(&folded);
        // A key ends for some at the first bracket, for others at the first dot;
        // one whose bracket is not closed is a plain name.
        let heads = [b"[".as_slice(), b".", b"[.", b"[].:(!", b""];
        heads.into_iter().any(|ends| {
            let head = key.split(|byte| ends.contains(byte)).next();
            head.is_some_and(|head| flat(trimmed(head)) == self.flat)
        }) || key
            .iter()
            .rposition(|byte| *byte == b'[')
            .and_then(|at| key.get(..at))
            .is_some_and(|head| flat(trimmed(head)) == self.flat)
            || is_prefix(&self.nested, &nested(key))
    }
}

/// Bytes of a key that is looked through for a word, at most: names are shorter.
const NAME_BYTES_MAX: usize = 64;

/// Whether some reader may take the raw key for a name that holds one of the words.
pub(crate) fn holds_word(raw: &str, words: &[String]) -> bool {
    let mut decoded = decodings(raw).into_iter();
    decoded.any(|key| {
        let folded = fold_case(&readable(&key));
        let key = trimmed(&folded);
        let holds = |word: &String| key.windows(word.len()).any(|part| part == word.as_bytes());
        key.len() <= NAME_BYTES_MAX && words.iter().any(holds)
    })
}

/// Whether a key that begins with this may be short enough to be looked through.
pub(crate) fn is_short(raw: &str) -> bool {
    let mut decoded = decodings(raw).into_iter();
    decoded.any(|key| trimmed(&fold_case(&readable(&key))).len() <= NAME_BYTES_MAX)
}

/// Whether the brackets of a raw key are torn: something else than names in pairs of
/// them, behind a first name. Readers disagree about whose value it is, and by what
/// stands before it in the query.
pub(crate) fn is_torn(raw: &str) -> bool {
    let mut decoded = decodings(raw).into_iter();
    decoded.any(|key| key.iter().any(|byte| b"[]".contains(byte)) && !is_nested(&key))
}

/// `a[b][]`: a name, and names in brackets behind it.
fn is_nested(key: &[u8]) -> bool {
    let is_bracket = |byte: &u8| b"[]".contains(byte);
    let first = key.iter().position(is_bracket).unwrap_or(key.len());
    let mut rest = key.get(first..).unwrap_or_default();
    while let Some(inner) = rest.strip_prefix(b"[") {
        let Some(end) = inner.iter().position(is_bracket) else {
            return false;
        };
        let Some(behind) = inner.get(end..).and_then(|rest| rest.strip_prefix(b"]")) else {
            return false;
        };
        rest = behind;
    }
    first > 0 && rest.is_empty()
}

/// Of how many names a raw key is made at most: `a[b]` and `a.b` of two.
pub(crate) fn depth(raw: &str) -> usize {
    let decoded = decodings(raw);
    let names = decoded.iter().map(|key| nested(key).len());
    names.max().unwrap_or(0)
}

fn is_prefix(own: &[Vec<u8>], names: &[Vec<u8>]) -> bool {
    !own.is_empty() && names.starts_with(own)
}

fn flat(key: &[u8]) -> Vec<u8> {
    let sign = |byte: &u8| match byte {
        b'.' | b' ' | b'[' | b'+' => b'_',
        byte if byte.is_ascii_control() => b'_',
        byte => *byte,
    };
    key.iter().map(sign).collect()
}

fn nested(key: &[u8]) -> Vec<Vec<u8>> {
    key.split(|byte| matches!(byte, b'[' | b']' | b'.'))
        .map(|name| flat(trimmed(name)))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Without blanks, controls and marks around it: a byte order mark, a further
/// `?`, and the `!` of a default in Spring.
fn trimmed(key: &[u8]) -> &[u8] {
    let Ok(text) = std::str::from_utf8(key) else {
        return key;
    };
    let is_mark = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{feff}' | '\u{200b}' | '?' | '!' | '+')
    };
    text.trim_matches(is_mark).as_bytes()
}

/// As text: numeric character references and overlong sequences (RFC 3629 3) as
/// the character they hide, and without bytes that are no UTF-8.
pub(crate) fn readable(bytes: &[u8]) -> Vec<u8> {
    let bytes = &without_references(bytes);
    if bytes.is_ascii() {
        return bytes.clone();
    }
    let mut short = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let Some((&byte, tail)) = rest.split_first() {
        let (value, after) = match rest {
            [high @ (0xc0 | 0xc1), low @ 0x80..=0xbf, after @ ..] => {
                ((high & 1) << 6 | (low & 0x3f), after)
            }
            [0xe0, high @ 0x80..=0x81, low @ 0x80..=0xbf, after @ ..]
            | [
                0xf0,
                0x80,
                high @ 0x80..=0x81,
                low @ 0x80..=0xbf,
                after @ ..,
            ] => ((high & 1) << 6 | (low & 0x3f), after),
            _ => (byte, tail),
        };
        short.push(value);
        rest = after;
    }
    let chunks = short.utf8_chunks();
    chunks.flat_map(|chunk| chunk.valid().bytes()).collect()
}

/// Undoes `&#97;`, which forms write for what their character set lacks, and which
/// some parsers read for ASCII as well.
fn without_references(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let digits = tail.strip_prefix(b"#").filter(|_| byte == b'&');
        let end = digits.and_then(|digits| digits.iter().position(|b| *b == b';'));
        let parts = digits
            .zip(end)
            .and_then(|(digits, end)| digits.split_at_checked(end));
        let value = parts.and_then(|(digits, after)| {
            let value: u8 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Some((value, after.get(1..)?))
        });
        match value {
            Some((value, after)) => {
                out.push(value);
                rest = after;
            }
            None => out.push(byte),
        }
    }
    out
}

/// What a raw key or value may be decoded to: not at all, once, with `+` as
/// space, twice, and with the `%u` of older servers.
pub(crate) fn decodings(raw: &str) -> Vec<Vec<u8>> {
    if !raw.contains(['%', '+']) {
        return vec![raw.as_bytes().to_vec()];
    }
    let once = unescape(raw.as_bytes());
    let spaced = unescape(raw.replace('+', " ").as_bytes());
    let twice = unescape(&once);
    let wide = without_wide_escapes(&twice);
    let mut out = vec![once];
    // Some leave a text as it is where it does not decode to UTF-8.
    let is_text = out.iter().all(|text| std::str::from_utf8(text).is_ok());
    let as_is = (!is_text).then(|| raw.as_bytes().to_vec());
    for other in [spaced, twice, wide].into_iter().chain(as_is) {
        if !out.contains(&other) {
            out.push(other);
        }
    }
    out
}

/// Decodes `%uXXXX` where it stands for ASCII.
fn without_wide_escapes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if let [b'u' | b'U', b'0', b'0', high, low, after @ ..] = tail
            && byte == b'%'
            && let [value] = unescape(&[b'%', *high, *low]).as_slice()
        {
            out.push(*value);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    out
}
