//! What a sender chooses freely in short content: the texts of a JSON document,
//! the values of a form, the parts of multipart content, the strings of a binary
//! message, lines and cells of a text, or all of it. A credential could be split
//! over these, in one message or from one to the next. Reads only.

use std::fmt;

use outgate_dlp::{Piece, PieceSource};

use crate::limits;

mod binary;
mod document;
mod heads;
mod markup;
mod multipart;

use document::texts;
pub(super) use heads::documents;

/// A value and where in the content it stands.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ContentValue {
    source: PieceSource,
    slot: Vec<u8>,
    bytes: Vec<u8>,
}

impl fmt::Debug for ContentValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Value").finish_non_exhaustive()
    }
}

impl ContentValue {
    fn new(slot: &[u8], bytes: &[u8]) -> Self {
        Self {
            source: PieceSource::Content,
            slot: slot.to_vec(),
            bytes: bytes.to_vec(),
        }
    }

    fn name(bytes: &[u8]) -> Self {
        Self {
            source: PieceSource::ContentName,
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
pub(super) struct SeenEnd {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl SeenEnd {
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

    /// Its values as far as it came, and those of the texts that codings in it stand for.
    pub(super) fn values<'m>(&self, made: impl Iterator<Item = &'m [u8]>) -> Vec<ContentValue> {
        let own = if self.is_cut {
            // What was cut within a letter is no less a text.
            let is_rest = |byte: &&u8| matches!(byte, 0x80..=0xbf);
            let rest = self.bytes.iter().take(3).take_while(is_rest).count();
            written(self.bytes.get(rest..).unwrap_or_default())
        } else {
            plain(&self.bytes)
        };
        let mut inner = if self.is_cut {
            Vec::new()
        } else {
            inside(&self.bytes, &own, DEPTH_MAX)
        };
        inner.extend(made.flat_map(|text| within(text, DEPTH_MAX)));
        // What is made pushes nothing out that stands there as it is.
        let last = |values: Vec<ContentValue>| {
            let from = values.len().saturating_sub(limits::SCAN_VALUES_MAX);
            values.into_iter().skip(from)
        };
        last(own).chain(last(inner)).collect()
    }

    /// The same, and nothing kept of it.
    pub(super) fn take<'m>(&mut self, made: impl Iterator<Item = &'m [u8]>) -> Vec<ContentValue> {
        let own = std::mem::take(self);
        own.values(made)
    }
}

/// How deep texts that are coded, or documents in texts, may stand in each other.
const DEPTH_MAX: usize = 3;

/// Shortest text whose coding is undone, in bytes: of a shorter one nothing is a list.
const CODED_BYTES_MIN: usize = 24;

/// The values of whole content, and of what is coded or written as a document within it.
fn within(content: &[u8], depth: usize) -> Vec<ContentValue> {
    let mut values = plain(content);
    values.extend(inside(content, &values, depth));
    values
}

/// Those of what is coded, or a document, in content that has these values.
fn inside(content: &[u8], values: &[ContentValue], depth: usize) -> Vec<ContentValue> {
    let mut inner = Vec::new();
    let Some(below) = depth.checked_sub(1) else {
        return inner;
    };
    let whole = content.trim_ascii();
    let is_part = |value: &&ContentValue| {
        value.source == PieceSource::Content && value.bytes.as_slice() != whole
    };
    let texts = values.iter().filter(is_part);
    let texts = std::iter::once(content).chain(texts.map(|value| value.bytes.as_slice()));
    for text in texts {
        if inner.len() >= limits::SCAN_VALUES_MAX {
            break;
        }
        if let Some(text) = decoded(text) {
            inner.extend(within(&text, below));
        } else if text.len() < content.len() && matches!(text, [b'{' | b'[', ..]) {
            inner.extend(texts_of(text, below));
        }
    }
    inner
}

/// The values of a document in a text, if it is one.
fn texts_of(text: &[u8], depth: usize) -> Vec<ContentValue> {
    texts(text).map_or_else(Vec::new, |_| within(text, depth))
}

/// What a text is for that is all of it base 64 or hexadecimal (RFC 4648 4, 5, 8), where that
/// is text again, or a document that holds texts above all.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
    // Most texts have a blank or a sign near their beginning, and cost nothing.
    let is_coded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(byte);
    if text.len() < CODED_BYTES_MIN || !text.iter().all(is_coded) {
        return None;
    }
    let is_symbol = |byte: &&u8| !b"=\r\n".contains(*byte);
    let symbols: Vec<u8> = text.iter().filter(is_symbol).copied().collect();
    let all = [&HEXLOWER_PERMISSIVE, &BASE64_NOPAD, &BASE64URL_NOPAD];
    let is_text = |made: &Vec<u8>| !binary::is_binary(made) || binary::is_mostly_text(made);
    let mut made = all.iter().filter_map(|coding| coding.decode(&symbols).ok());
    made.find(is_text)
}

/// The values of content as it stands.
fn plain(content: &[u8]) -> Vec<ContentValue> {
    if let [b'{' | b'[' | b'"', ..] = content.trim_ascii_start()
        && let Some(texts) = texts(content)
    {
        return texts;
    }
    let is_form = |byte: &u8| byte.is_ascii_alphanumeric() || b"+%&=-_.~*[]".contains(byte);
    if is_padded(content) {
        return vec![ContentValue::new(b"", content.trim_ascii())];
    }
    if content.contains(&b'=') && content.iter().all(is_form) {
        let pairs = content.split(|byte| *byte == b'&');
        let plain = pairs
            .flat_map(|pair| named_or_alone(pair, b'='))
            .map(ContentValue::unescaped);
        return plain.collect();
    }
    if let Some(values) = multipart::values(content) {
        return values;
    }
    if let Some(values) = markup::values(content) {
        return values;
    }
    let mut strings = Vec::new();
    if strings_of(content, b"", limits::SCAN_MESSAGE_DEPTH_MAX, &mut strings) {
        return strings;
    }
    written(content)
}

/// The lines of a text; of what is none the texts in it besides, since one odd byte makes no
/// text another document to whoever reads its lines.
fn written(content: &[u8]) -> Vec<ContentValue> {
    let mut values = lines(content);
    if binary::is_binary(content) {
        values.extend(binary::values(content));
    }
    values
}

/// Whether a text is coded in base 64 and at its end filled up (RFC 4648 3.2): no name of a
/// value that is empty.
fn is_padded(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let end = text.iter().rposition(|byte| *byte != b'=');
    let (symbols, padding) = text.split_at(end.map_or(0, |end| end.saturating_add(1)));
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    text.len().is_multiple_of(4) && matches!(padding.len(), 1 | 2) && symbols.iter().all(is_symbol)
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

/// Whether somebody may have chosen a name for what it holds: no word.
fn is_chosen(name: &[u8]) -> bool {
    !name.iter().all(u8::is_ascii_lowercase)
}

/// A name and its value; nothing where there is no name.
fn named(pair: &[u8], separator: u8) -> Vec<ContentValue> {
    let mut halves = pair.splitn(2, |byte| *byte == separator);
    match (halves.next(), halves.next()) {
        (Some(name), Some(value)) => vec![ContentValue::name(name), ContentValue::new(name, value)],
        _ => Vec::new(),
    }
}

/// The same, and what stands alone is a value.
fn named_or_alone(pair: &[u8], separator: u8) -> Vec<ContentValue> {
    let mut values = named(pair, separator);
    if values.is_empty() && !pair.is_empty() {
        values.push(ContentValue::new(b"", pair));
    }
    values
}

/// Where in a short text another begins.
fn find(text: &[u8], other: &[u8]) -> Option<usize> {
    text.windows(other.len()).position(|one| one == other)
}

/// The texts in a message of Protocol Buffers (its "Encoding" guide), each under the number
/// of its field; whether all of it is such a message, and there is one.
fn strings_of(message: &[u8], slot: &[u8], depth: usize, values: &mut Vec<ContentValue>) -> bool {
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
            values.push(ContentValue::new(&own, field));
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
fn lines(content: &[u8]) -> Vec<ContentValue> {
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
                ContentValue::new(&place.to_be_bytes(), unquoted(cell.trim_ascii()))
            }));
            continue;
        }
        if is_padded(line) {
            values.push(ContentValue::new(b"", line));
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
                let own = unquoted(name.bytes.trim_ascii());
                values.extend(is_chosen(own).then(|| ContentValue::name(own)));
                values.push(ContentValue::new(&name.bytes, bytes));
            }
            _ => values.push(ContentValue::new(b"", unquoted(line))),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn values(content: &str) -> Vec<String> {
        let mut seen = SeenEnd::default();
        for byte in content.as_bytes() {
            seen.push(&[*byte]);
        }
        let values = seen.take(std::iter::empty()).into_iter();
        let values = values.filter(|value| value.source == PieceSource::Content);
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
            ("a=x&b=y&c", &["x", "y", "c"]),
            ("a=x==&b=", &["x==", ""]),
            ("YThLM3BReg==\n", &["YThLM3BReg=="]),
            ("a: x\nYThLM3BReg==", &["x", "YThLM3BReg=="]),
            (r#"{"a":[97,56],"b":[75,51],"c":"x"}"#, &["a8", "K3", "x"]),
            (
                r#"{"a":{"0":97,"1":56,"2":75,"3":51},"n":97,"d":"x"}"#,
                &["a8K3", "x"],
            ),
            (r#"{"width":100,"height":50,"d":"x"}"#, &["x"]),
            ("[[97],[56],[75],1,[51,52]]", &["a8K", "34"]),
            ("[97,56", &["a8", "[97,56"]),
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
                &["b", "one", "c", "two"],
            ),
            (
                "--x\r\nA: b; name=\"k\"; filename=f\r\n\r\none\r\n--x--\r\n",
                &["b", "f", "one"],
            ),
            ("\n\u{3}one\u{12}\u{5}\n\u{3}two", &["one", "two"]),
            (
                "W3siZCI6Im9uZSJ9LHsiZCI6InR3byJ9XQ==",
                &["W3siZCI6Im9uZSJ9LHsiZCI6InR3byJ9XQ==", "one", "two"],
            ),
            (
                "5b7b2264223a226f6e65227d2c7b2264223a2274776f227d5d",
                &[
                    "5b7b2264223a226f6e65227d2c7b2264223a2274776f227d5d",
                    "one",
                    "two",
                ],
            ),
            (
                r#"{"x":"[{\"d\":\"one\"},{\"d\":\"two\"}]"}"#,
                &[r#"[{"d":"one"},{"d":"two"}]"#, "one", "two"],
            ),
        ] {
            assert_eq!(values(content), expected, "{content}");
        }
    }

    #[test]
    fn an_odd_byte_hides_no_value_of_a_text() {
        for (text, expected) in [
            ("1,one,x\n2,two,x", &["one", "two"][..]),
            ("{\"a\":\"one\"}\n{\"a\":\"two\"}", &["one", "two"]),
            ("A: one\nB: two", &["one", "two"]),
        ] {
            for odd in ["\u{1}", "\0", "\u{7f}"] {
                for content in [
                    format!("{odd}\n{text}"),
                    format!("{text}\n{odd}"),
                    format!("{text}{odd}"),
                ] {
                    let found = values(&content);
                    let has = |value: &&&str| found.iter().any(|own| own == **value);
                    let is_last = content.ends_with(&format!("two{odd}"));
                    let wanted = expected.len() - usize::from(is_last);
                    assert_eq!(
                        expected.iter().take(wanted).filter(has).count(),
                        wanted,
                        "{content:?}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_made_pushes_out_nothing_that_stands_there() {
        let piece = "a-piece-as-it-stands";
        let filler = vec!["x"; limits::SCAN_VALUES_MAX * 2].join("\n");
        let mut seen = SeenEnd::default();
        seen.push(format!("{{\"d\":\"{piece}\"}}").as_bytes());
        let values = seen.take(std::iter::once(filler.as_bytes()));
        assert!(values.len() <= limits::SCAN_VALUES_MAX * 2);
        assert!(values.iter().any(|value| value.bytes == piece.as_bytes()));
    }

    #[test]
    fn of_long_content_the_end_counts() {
        let most = limits::SCAN_VALUES_BYTES_MAX;
        let mut seen = SeenEnd::default();
        seen.push(&vec![b'a'; most]);
        seen.push(b"end");
        let values = seen.take(std::iter::empty());
        assert_eq!(values.len(), 1);
        assert_eq!(values[0].bytes.len(), most);
        assert!(values[0].bytes.ends_with(b"aend"));
        assert_eq!(seen.take(std::iter::empty()), [ContentValue::new(b"", b"")]);
    }

    #[test]
    fn a_document_too_deep_is_plain_content() {
        let deep = "[".repeat(4000);
        assert_eq!(values(&deep), [deep]);
    }
}
