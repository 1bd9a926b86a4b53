//! JSON as RFC 8259 has it, as its bytes come: what it is made of, and whether it is that
//! at all, since lenient programs find members in what others take for a comment, a string
//! or nothing. Texts may follow each other (RFC 7464 and lines of JSON), and numbers may be
//! the three words of Python. Keeps one bounded string; changes nothing.

use outgate_dlp::json::{JsonContainer, JsonGrammar, JsonPart};

/// Bytes of a string that are kept, written with escapes, at most.
pub(super) const TEXT_BYTES_MAX: usize = 4096;

/// How deep objects and lists may stand in each other.
const DEPTH_MAX: usize = 1024;

/// Why content is none.
pub(super) const NO_JSON: &str = "something that is no JSON";

/// Words that are values: RFC 8259 3, and what Python writes for numbers that are none.
const WORDS: [&str; 5] = ["true", "false", "null", "NaN", "Infinity"];

/// Something that JSON is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonEvent<'t> {
    Opens(JsonContainer),
    Closes,
    /// The name of a member, as it is written.
    Key(&'t [u8]),
    /// Some of a string that is a value, as it is written, however long that is.
    Piece(&'t [u8]),
    /// A string that is a value, as it is written, as much of it as is kept.
    Text(&'t [u8]),
}

/// What to do with each of them.
pub(super) type On<'o, E> = &'o mut dyn FnMut(JsonEvent<'_>) -> Result<(), E>;

/// Reads it.
#[derive(Debug)]
pub(super) struct JsonSyntax {
    grammar: JsonGrammar<DEPTH_MAX>,
    within: JsonState,
    /// What the string is that was read last.
    role: JsonRole,
    text: Vec<u8>,
}

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonRole {
    Name,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonState {
    Nothing,
    Text,
    /// Behind a backslash in it.
    Escape,
    /// As many digits of an escape are left.
    Digits(u8),
    /// Behind the sign of a number.
    Sign,
    Number,
    /// What is left of such a word.
    Word(&'static str),
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended<E> {
    /// It is no JSON.
    Fault,
    /// Whoever was told said so.
    Said(E),
}

impl JsonSyntax {
    pub(super) fn new() -> Self {
        Self {
            grammar: JsonGrammar::default(),
            within: JsonState::Nothing,
            role: JsonRole::Value,
            text: Vec::new(),
        }
    }

    /// Tells what the next bytes hold.
    ///
    /// # Errors
    /// They are no JSON, or `on` said that it ends.
    pub(super) fn read<E>(&mut self, mut bytes: &[u8], on: On<'_, E>) -> Result<(), Ended<E>> {
        while !bytes.is_empty() {
            if self.within == JsonState::Text {
                let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                let (plain, rest) = bytes.split_at_checked(end).unwrap_or_default();
                self.keep(plain, on)?;
                bytes = rest;
            }
            if let Some((byte, rest)) = bytes.split_first() {
                self.take(*byte, on)?;
                bytes = rest;
            }
        }
        Ok(())
    }

    fn take<E>(&mut self, byte: u8, on: On<'_, E>) -> Result<(), Ended<E>> {
        self.within = match (self.within, byte) {
            (JsonState::Text, b'"') => return self.text_ends(on),
            (JsonState::Text, b'\\') => JsonState::Escape,
            (JsonState::Text, _) => JsonState::Text,
            (JsonState::Escape, b'u') => JsonState::Digits(4),
            (JsonState::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                JsonState::Text
            }
            (JsonState::Digits(left), _) if byte.is_ascii_hexdigit() => match left {
                0 | 1 => JsonState::Text,
                more => JsonState::Digits(more - 1),
            },
            (JsonState::Sign, b'I') => JsonState::Word("nfinity"),
            (JsonState::Sign, b'0'..=b'9')
            | (JsonState::Number, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => {
                JsonState::Number
            }
            (JsonState::Escape | JsonState::Digits(_) | JsonState::Sign, _) => {
                return Err(Ended::Fault);
            }
            (JsonState::Word(left), _) if left.as_bytes().first() == Some(&byte) => {
                JsonState::Word(left.get(1..).unwrap_or_default())
            }
            (JsonState::Word(left), _) if !left.is_empty() => return Err(Ended::Fault),
            (JsonState::Nothing | JsonState::Number | JsonState::Word(_), _) => {
                return self.outside(byte, on);
            }
        };
        if matches!(
            self.within,
            JsonState::Text | JsonState::Escape | JsonState::Digits(_)
        ) {
            self.keep(&[byte], on)?;
        }
        Ok(())
    }

    /// A byte that stands in no string, number or word.
    fn outside<E>(&mut self, byte: u8, on: On<'_, E>) -> Result<(), Ended<E>> {
        let was_bare =
            std::mem::replace(&mut self.within, JsonState::Nothing) != JsonState::Nothing;
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            // Some write it before each text (RFC 7464 2.2).
            || (byte == 0x1e && self.grammar.is_outermost());
        // Two words that touch are one to nobody.
        if was_bare && !is_blank && !matches!(byte, b',' | b']' | b'}') {
            return Err(Ended::Fault);
        }
        if is_blank {
            return Ok(());
        }
        match self.grammar.take(byte).ok_or(Ended::Fault)? {
            JsonPart::Opens(what) => on(JsonEvent::Opens(what)).map_err(Ended::Said)?,
            JsonPart::Closes => on(JsonEvent::Closes).map_err(Ended::Said)?,
            JsonPart::Name => self.text_begins(JsonRole::Name),
            JsonPart::Text => self.text_begins(JsonRole::Value),
            JsonPart::Bare => self.within = bare(byte).ok_or(Ended::Fault)?,
            JsonPart::Colon | JsonPart::Comma => {}
        }
        Ok(())
    }

    fn text_begins(&mut self, role: JsonRole) {
        self.within = JsonState::Text;
        self.role = role;
        self.text.clear();
    }

    fn text_ends<E>(&mut self, on: On<'_, E>) -> Result<(), Ended<E>> {
        self.within = JsonState::Nothing;
        let event = match self.role {
            JsonRole::Name => JsonEvent::Key(&self.text),
            JsonRole::Value => JsonEvent::Text(&self.text),
        };
        on(event).map_err(Ended::Said)
    }

    fn keep<E>(&mut self, bytes: &[u8], on: On<'_, E>) -> Result<(), Ended<E>> {
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend(bytes.iter().take(room));
        if self.role == JsonRole::Value && !bytes.is_empty() {
            on(JsonEvent::Piece(bytes)).map_err(Ended::Said)?;
        }
        Ok(())
    }
}

/// The number or the word that begins so.
fn bare(byte: u8) -> Option<JsonState> {
    Some(match byte {
        b'-' => JsonState::Sign,
        b'0'..=b'9' => JsonState::Number,
        _ => {
            let mut words = WORDS.iter();
            let word = words.find(|word| word.as_bytes().first() == Some(&byte))?;
            JsonState::Word(word.get(1..)?)
        }
    })
}

/// A string without its escapes (RFC 8259 7); `None` where they make no text.
pub(super) fn unescaped(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    // Some take controls as they stand.
    let text: String = text
        .chars()
        .map(|sign| if sign.is_ascii_control() { ' ' } else { sign })
        .collect();
    serde_json::from_str(&format!("\"{text}\"")).ok()
}

/// A string without its escapes, as its pieces come. What makes no text is a sign that
/// stands for nothing.
#[derive(Debug, Default)]
pub(super) struct Unescape {
    within: EscapeState,
    /// The first half of a pair of UTF-16 (RFC 8259 7).
    high: Option<u16>,
}

#[derive(Debug, Clone, Copy, Default)]
enum EscapeState {
    #[default]
    Nothing,
    /// Behind a backslash.
    Sign,
    /// As many digits came, which make that.
    Digits(u8, u16),
}

impl Unescape {
    /// What the next bytes stand for.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut out);
        }
        out
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.within = match (self.within, byte) {
            (EscapeState::Nothing, b'\\') => EscapeState::Sign,
            (EscapeState::Nothing, _) => {
                out.push(byte);
                EscapeState::Nothing
            }
            (EscapeState::Sign, b'u') => EscapeState::Digits(0, 0),
            (EscapeState::Sign, _) => {
                out.push(match byte {
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'f' => 12,
                    b'r' => b'\r',
                    other => other,
                });
                EscapeState::Nothing
            }
            (EscapeState::Digits(count, value), _) => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let value = (value << 4) | u16::try_from(digit).unwrap_or_default();
                if count < 3 {
                    EscapeState::Digits(count + 1, value)
                } else {
                    self.unit(value, out);
                    EscapeState::Nothing
                }
            }
        };
    }

    /// Half of a pair, or a sign by itself.
    fn unit(&mut self, unit: u16, out: &mut Vec<u8>) {
        let high = self.high.take();
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        let units = high.into_iter().chain([unit]);
        for sign in char::decode_utf16(units) {
            let sign = sign.unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(content: &str, size: usize) -> Result<Vec<String>, Ended<()>> {
        let (mut found, mut pieces) = (Vec::new(), Vec::new());
        let mut syntax = JsonSyntax::new();
        let mut on = |event: JsonEvent<'_>| {
            found.push(match event {
                JsonEvent::Opens(JsonContainer::Object) => "Object".to_owned(),
                JsonEvent::Opens(JsonContainer::Array) => "List".to_owned(),
                JsonEvent::Closes => "end".to_owned(),
                JsonEvent::Key(text) => format!("{}:", String::from_utf8_lossy(text)),
                JsonEvent::Piece(piece) => {
                    pieces.extend_from_slice(piece);
                    return Ok(());
                }
                JsonEvent::Text(text) => {
                    assert_eq!(
                        std::mem::take(&mut pieces),
                        text,
                        "short texts are kept whole"
                    );
                    String::from_utf8_lossy(text).into_owned()
                }
            });
            Ok(())
        };
        let mut parts = content.as_bytes().chunks(size.max(1));
        parts.try_for_each(|part| syntax.read(part, &mut on))?;
        Ok(found)
    }

    #[test]
    fn only_json_is_json() {
        let deep = "[".repeat(DEPTH_MAX + 1);
        for (content, is_json) in [
            ("", true),
            ("{}", true),
            (" [ ] \r\n", true),
            ("{\"a\":1,\"b\":[true,false,null,-1.5e+3,\"x\"]}", true),
            ("[NaN,Infinity,-Infinity]", true),
            ("{\"a\":1}\n{\"a\":2}\n", true),
            ("{}{}", true),
            ("\u{1e}{\"a\":1}\n\u{1e}{}", true),
            ("1 2 \"x\"", true),
            ("\"\\u00e4\\/\\\\\\\"\"", true),
            ("[\"a\nb\tc\"]", true),
            ("{/*\"*/\"a\":1}", false),
            ("{//\"\n\"a\":1}", false),
            ("#x\n{}", false),
            ("{\"\\_a\":1}", false),
            ("{\"\\x5f\":1}", false),
            ("{\"\\u00g0\":1}", false),
            ("{'a':1}", false),
            ("{a:1}", false),
            ("{\"a\":'b'}", false),
            ("{\"a\"=1}", false),
            ("{\"a\":1;\"b\":2}", false),
            ("{\"a\":1 \"b\":2}", false),
            ("{\"a\":\"x\" \"b\":2}", false),
            ("{\"a\":1,}", false),
            ("[1,]", false),
            ("[1,,2]", false),
            ("{,\"a\":1}", false),
            ("{\"a\"}", false),
            ("{\"a\":}", false),
            ("{1:2}", false),
            ("[}", false),
            ("]", false),
            ("{\"a\":+1}", false),
            ("{\"a\":0x1}", false),
            ("{\"a\":.5}", false),
            ("{\"a\":undefined}", false),
            ("{\"a\":truefalse}", false),
            ("{\"a\":nul}", false),
            ("[1\"a\"]", false),
            ("[\u{a0}1]", false),
            (&deep, false),
        ] {
            for size in [1, 2, 7, content.len()] {
                let found = events(content, size);
                assert_eq!(found.is_ok(), is_json, "{content} by {size}: {found:?}");
            }
        }
    }

    #[test]
    fn what_json_holds_is_told() {
        let content = r#"{"a":["b",{"c\u0064":"\"e"}],"f":1}"#;
        for size in [1, 3, 100] {
            let found = events(content, size).unwrap();
            let wanted = [
                "Object",
                "a:",
                "List",
                "b",
                "Object",
                "c\\u0064:",
                "\\\"e",
                "end",
                "end",
                "f:",
                "end",
            ];
            assert_eq!(found, wanted);
        }
        assert_eq!(unescaped(b"\\u005fmethod\n").as_deref(), Some("_method "));
        assert_eq!(unescaped(b"\\ud800"), None);
    }

    #[test]
    fn pieces_of_a_string_are_told_whatever_its_length() {
        let (mut length, mut kept) = (0, 0);
        let text = format!("[\"{}\"]", "\\u0061b".repeat(2000));
        let mut syntax = JsonSyntax::new();
        let mut plain = Vec::new();
        let mut unescape = Unescape::default();
        for part in text.as_bytes().chunks(7) {
            syntax
                .read(part, &mut |event| {
                    match event {
                        JsonEvent::Piece(piece) => {
                            length += piece.len();
                            plain.extend(unescape.read(piece));
                        }
                        JsonEvent::Text(text) => kept = text.len(),
                        _ => {}
                    }
                    Ok::<(), ()>(())
                })
                .unwrap();
        }
        assert_eq!((length, kept), (14_000, TEXT_BYTES_MAX));
        assert_eq!(plain, b"ab".repeat(2000));
    }

    proptest::proptest! {
        #[test]
        fn pieces_stand_for_the_same_as_the_whole(text in "\\PC{0,20}", size in 1_usize..6) {
            let written = serde_json::to_string(&text).unwrap();
            let written: String = written.chars().flat_map(|sign| {
                let is_plain = sign.is_ascii();
                let mut units = [0; 2];
                let units = sign.encode_utf16(&mut units).to_vec();
                let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
                if is_plain { vec![sign] } else { escaped.chars().collect() }
            }).collect();
            let inner = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap();
            let mut unescape = Unescape::default();
            let pieces = inner.as_bytes().chunks(size);
            let found: Vec<u8> = pieces.flat_map(|piece| unescape.read(piece)).collect();
            assert_eq!(String::from_utf8(found).unwrap(), text);
        }

        #[test]
        fn what_a_strict_reader_takes_is_json(bytes in proptest::collection::vec(
            proptest::sample::select(b"{}[]\":,\\u0a1-e. tn".to_vec()), 0..30,
        )) {
            let text = String::from_utf8(bytes).unwrap();
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                assert!(events(&text, 3).is_ok(), "{text}");
            }
        }
    }
}
