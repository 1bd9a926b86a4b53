//! What a sender chooses freely in short content: the texts of a JSON document,
//! the values of a form, the parts of multipart content, the strings of a binary
//! message, lines and cells of a text, or all of it. A credential could be split
//! over these, in one message or from one to the next. Reads only.

use std::fmt;

use outgate_dlp::{Piece, Source};
use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::limits;

mod markup;

/// A value and where in the content it stands.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Value {
    source: Source,
    slot: Vec<u8>,
    bytes: Vec<u8>,
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Value").finish_non_exhaustive()
    }
}

impl Value {
    fn new(slot: &[u8], bytes: &[u8]) -> Self {
        Self {
            source: Source::Content,
            slot: slot.to_vec(),
            bytes: bytes.to_vec(),
        }
    }

    fn name(bytes: &[u8]) -> Self {
        Self {
            source: Source::ContentName,
            ..Self::new(bytes, bytes)
        }
    }

    /// As a form means it: escapes stand for bytes (URL Standard 5.1). A plus stays: in a
    /// credential there are more of them than of blanks.
    fn unescaped(self) -> Self {
        Self {
            slot: unescaped(&self.slot),
            bytes: unescaped(&self.bytes),
            ..self
        }
    }

    /// As the scan reads it.
    pub(super) fn piece(&self) -> Piece<'_> {
        Piece {
            source: self.source,
            slot: &self.slot,
            bytes: &self.bytes,
        }
    }
}

/// The end of content, as far as the next may continue it, and all of it while
/// it is short.
#[derive(Debug, Default)]
pub(super) struct Seen {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Seen {
    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let most = limits::SCAN_VALUES_BYTES_MAX;
        let keep = bytes.len().saturating_sub(most);
        self.bytes
            .extend_from_slice(bytes.get(keep..).unwrap_or_default());
        let excess = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..excess);
        self.is_cut |= keep > 0 || excess > 0;
    }

    /// Its values as far as it came.
    pub(super) fn values(&self) -> Vec<Value> {
        let values = if self.is_cut {
            lines(&self.bytes)
        } else {
            of(&self.bytes)
        };
        let from = values.len().saturating_sub(limits::SCAN_VALUES_MAX);
        values.into_iter().skip(from).collect()
    }

    /// Its values, and nothing kept of it.
    pub(super) fn take(&mut self) -> Vec<Value> {
        let own = std::mem::take(self);
        own.values()
    }
}

/// The values of whole content.
fn of(content: &[u8]) -> Vec<Value> {
    if let [b'{' | b'[' | b'"', ..] = content.trim_ascii_start()
        && let Some(texts) = texts(content)
    {
        return texts;
    }
    let is_form = |byte: &u8| byte.is_ascii_alphanumeric() || b"+%&=-_.~*[]".contains(byte);
    if content.contains(&b'=') && content.iter().all(is_form) {
        let pairs = content.split(|byte| *byte == b'&');
        let plain = pairs
            .flat_map(|pair| named(pair, b'='))
            .map(Value::unescaped);
        return plain.collect();
    }
    if content.starts_with(b"--")
        && let Some(parts) = parts(content)
    {
        return parts;
    }
    if let Some(values) = markup::values(content) {
        return values;
    }
    let mut strings = Vec::new();
    if strings_of(content, b"", limits::SCAN_MESSAGE_DEPTH_MAX, &mut strings) {
        return strings;
    }
    lines(content)
}

/// A text of a form as it is meant.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digit = |place: usize| {
            let digit = behind.get(place).copied().map(char::from)?;
            u8::try_from(digit.to_digit(16)?).ok()
        };
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            plain.push(high << 4 | low);
            rest = behind.get(2..).unwrap_or_default();
        } else {
            plain.push(*first);
            rest = behind;
        }
    }
    plain
}

/// A name and its value; nothing where there is no name.
fn named(pair: &[u8], separator: u8) -> Vec<Value> {
    let mut halves = pair.splitn(2, |byte| *byte == separator);
    match (halves.next(), halves.next()) {
        (Some(name), Some(value)) => vec![Value::name(name), Value::new(name, value)],
        _ => Vec::new(),
    }
}

/// The parts of multipart content (RFC 2046 5.1), each under its header.
fn parts(content: &[u8]) -> Option<Vec<Value>> {
    let boundary = content
        .split(|byte| *byte == b'\n')
        .next()?
        .trim_ascii_end();
    if boundary.len() < 3 {
        return None;
    }
    let mut values = Vec::new();
    let mut rest = content;
    while let Some(at) = find(rest, boundary) {
        let (part, behind) = rest.split_at(at);
        rest = behind.get(boundary.len()..).unwrap_or_default();
        let blank = [&b"\r\n\r\n"[..], b"\n\n"];
        let blank = blank
            .iter()
            .find_map(|blank| Some((find(part, blank)?, blank.len())));
        if let Some((place, length)) = blank {
            let (header, body) = part.split_at(place);
            let body = body.get(length..).unwrap_or_default();
            values.extend(header.split(|byte| *byte == b'\n').flat_map(parameters));
            values.push(Value::new(header, body.trim_ascii_end()));
        }
    }
    Some(values)
}

/// The values of the parameters in a field (RFC 2045 5.1), such as the name of a file.
fn parameters(field: &[u8]) -> impl Iterator<Item = Value> {
    let all = field.split(|byte| *byte == b';').skip(1);
    all.filter_map(|pair| {
        let place = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at(place);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        Some(match name.trim_ascii() {
            b"name" => Value::name(unquoted(value)),
            name => Value::new(name, unquoted(value)),
        })
    })
}

/// Where in a short text another begins.
fn find(text: &[u8], other: &[u8]) -> Option<usize> {
    text.windows(other.len()).position(|one| one == other)
}

/// The texts in a message of Protocol Buffers (its "Encoding" guide), each under the number
/// of its field; whether all of it is such a message, and there is one.
fn strings_of(message: &[u8], slot: &[u8], depth: usize, values: &mut Vec<Value>) -> bool {
    let known = values.len();
    let mut rest = message;
    while !rest.is_empty() {
        let Some((tag, behind)) = varint(rest) else {
            return false;
        };
        let length = match tag & 7 {
            0 => varint(behind).map(|(_, after)| behind.len().saturating_sub(after.len())),
            1 => Some(8),
            5 => Some(4),
            2 => varint(behind).and_then(|(length, _)| usize::try_from(length).ok()),
            _ => None,
        };
        let behind = match (tag & 7, varint(behind)) {
            (2, Some((_, after))) => after,
            _ => behind,
        };
        let Some((field, behind)) = length.and_then(|length| behind.split_at_checked(length))
        else {
            return false;
        };
        rest = behind;
        if tag >> 3 == 0 {
            return false;
        }
        if tag & 7 != 2 {
            continue;
        }
        let own = [slot, tag.to_be_bytes().as_slice()].concat();
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let mut inner = Vec::new();
        if field.iter().all(is_text) {
            values.push(Value::new(&own, field));
        } else if depth > 0
            && let true = strings_of(field, &own, depth.saturating_sub(1), &mut inner)
        {
            values.append(&mut inner);
        }
    }
    values.len() > known
}

/// A number in the form of Protocol Buffers, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        let shift = u32::try_from(place).ok()?.saturating_mul(7);
        number |= u64::from(*byte & 0x7f).checked_shl(shift)?;
        if *byte & 0x80 == 0 {
            return Some((number, bytes.get(place.saturating_add(1)..)?));
        }
    }
    None
}

/// The lines of a text: of settings their values, of tables their cells.
fn lines(content: &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    for line in content.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if let [b'{' | b'[', ..] = line
            && let Some(texts) = texts(line)
        {
            values.extend(texts);
            continue;
        }
        let is_cell = |byte: &u8| b",;\t|".contains(byte);
        if line.iter().any(is_cell) {
            let cells = line.split(is_cell);
            let cells = (0_u64..).zip(cells);
            values.extend(cells.map(|(place, cell)| {
                Value::new(&place.to_be_bytes(), unquoted(cell.trim_ascii()))
            }));
            continue;
        }
        let setting = named(line, b':');
        let setting = if setting.is_empty() {
            named(line, b'=')
        } else {
            setting
        };
        let is_name = |name: &[u8]| {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-. \"'".contains(byte);
            name.iter().all(is_part)
        };
        match setting.as_slice() {
            [name, value] if is_name(&name.bytes) => {
                let bytes = unquoted(value.bytes.trim_ascii());
                values.push(Value::new(&name.bytes, bytes));
            }
            _ => values.push(Value::new(b"", unquoted(line))),
        }
    }
    values
}

/// A text without the quotes around it and the sign of a list before it.
fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"- ").unwrap_or(text);
    for quote in [b'"', b'\''] {
        if let [first, inner @ .., last] = text
            && *first == quote
            && *last == quote
        {
            return inner;
        }
    }
    text
}

/// The texts of a document, or of several, one behind the other, also of one that is not at
/// its end; nothing where it is none.
fn texts(content: &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    let mut documents = serde_json::Deserializer::from_slice(content);
    loop {
        let texts = Texts {
            values: &mut values,
            slot: b"",
        };
        match texts.deserialize(&mut documents) {
            Err(error) if !error.is_eof() => return None,
            // What the last text has begun with.
            Err(_) => {
                let mut rest = content.rsplit(|byte| *byte == b'"');
                let begun = rest.next().filter(|text| !text.is_empty());
                values.extend(begun.map(|text| Value::new(b"", text)));
                return Some(values);
            }
            Ok(()) if documents.end().is_ok() => return Some(values),
            Ok(()) => {}
        }
    }
}

/// Collects the texts of a document in its order, each under its name, and the names; one
/// that stands twice counts twice.
struct Texts<'a> {
    values: &'a mut Vec<Value>,
    slot: &'a [u8],
}

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a document")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.values.push(Value::new(self.slot, text.as_bytes()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { values, slot } = self;
        while items
            .next_element_seed(Texts {
                values: &mut *values,
                slot,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { values, .. } = self;
        while let Some(name) = members.next_key::<String>()? {
            values.push(Value::name(name.as_bytes()));
            members.next_value_seed(Texts {
                values: &mut *values,
                slot: name.as_bytes(),
            })?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(content: &str) -> Vec<String> {
        let mut seen = Seen::default();
        for byte in content.as_bytes() {
            seen.push(&[*byte]);
        }
        let values = seen.take().into_iter();
        let values = values.filter(|value| value.source == Source::Content);
        let texts = values.map(|value| String::from_utf8(value.bytes));
        texts.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn values_are_those_a_sender_chooses() {
        for (content, expected) in [
            ("plain words", &["plain words"][..]),
            (
                r#"{"a":"x","b":[1,"y",{"c":"z"}],"d":true}"#,
                &["x", "y", "z"],
            ),
            (r#"{"b":"x","a":"y","b":"z"}"#, &["x", "y", "z"]),
            (r#""\u0067hp_""#, &["ghp_"]),
            ("a=x&b=y&c", &["x", "y"]),
            ("a=x==&b=", &["x==", ""]),
            ("a=%78%2&b=y+%7a%", &["x%2", "y+z%"]),
            (r#"{"a":"x""#, &["x"]),
            ("{\"a\":\"x\"}\n{\"a\":\"y\"}\n", &["x", "y"]),
            (r#"{"a":"x"}{"a":"y"}["z"]"#, &["x", "y", "z"]),
            (
                "{\"a\":\"x\"}\n[section]\n{\"a\":\"y\"}",
                &["x", "[section]", "y"],
            ),
            ("<p>x</p><p class=\"y\">z</p>", &["x", "y", "z"]),
            (r#"{"a":"x","b":"y"#, &["x", "y"]),
            ("a: one\n- \"two\"\nb,'c'\n", &["one", "two", "b", "c", ""]),
            (
                "--x\r\nA: b\r\n\r\none\r\n--x\r\nA: c\r\n\r\ntwo\r\n--x--\r\n",
                &["one", "two"],
            ),
            (
                "--x\r\nA: b; name=\"k\"; filename=f\r\n\r\none\r\n--x--\r\n",
                &["f", "one"],
            ),
            ("\n\u{3}one\u{12}\u{5}\n\u{3}two", &["one", "two"]),
        ] {
            assert_eq!(values(content), expected, "{content}");
        }
    }

    #[test]
    fn of_long_content_the_end_counts() {
        let most = limits::SCAN_VALUES_BYTES_MAX;
        let mut seen = Seen::default();
        seen.push(&vec![b'a'; most]);
        seen.push(b"end");
        let values = seen.take();
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].bytes.len(), most);
        assert!(values[0].bytes.ends_with(b"aend"));
        assert_eq!(seen.take(), [Value::new(b"", b"")]);
    }

    #[test]
    fn a_document_too_deep_is_plain_content() {
        let deep = "[".repeat(4000);
        assert_eq!(values(&deep), [deep]);
    }
}
