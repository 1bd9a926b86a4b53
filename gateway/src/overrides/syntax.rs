//! JSON as RFC 8259 has it, as its bytes come: what it is made of, and whether it is that
//! at all, since lenient programs find members in what others take for a comment, a string
//! or nothing. Texts may follow each other (RFC 7464 and lines of JSON), and numbers may be
//! the three words of Python. Keeps one bounded string; changes nothing.

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
pub(super) enum Event<'t> {
    Opens(Open),
    Closes,
    /// The name of a member, as it is written.
    Key(&'t [u8]),
    /// A string that is a value, as it is written.
    Text(&'t [u8]),
}

/// What opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    Object,
    List,
}

/// What to do with each of them.
pub(super) type On<'o, E> = &'o mut dyn FnMut(Event<'_>) -> Result<(), E>;

/// Reads it.
#[derive(Debug)]
pub(super) struct Syntax {
    /// What is open, outermost first.
    open: Vec<Open>,
    expects: Expects,
    within: Within,
    text: Vec<u8>,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
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

impl Syntax {
    pub(super) fn new() -> Self {
        Self {
            open: Vec::new(),
            expects: Expects::Value,
            within: Within::Nothing,
            text: Vec::new(),
        }
    }

    /// Tells what the next bytes hold.
    ///
    /// # Errors
    /// They are no JSON, or `on` said that it ends.
    pub(super) fn read<E>(&mut self, mut bytes: &[u8], on: On<'_, E>) -> Result<(), Ended<E>> {
        while !bytes.is_empty() {
            if self.within == Within::Text {
                let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                let (plain, rest) = bytes.split_at_checked(end).unwrap_or_default();
                self.keep(plain);
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
            (Within::Text, b'"') => return self.text_ends(on),
            (Within::Text, b'\\') => Within::Escape,
            (Within::Text, _) => Within::Text,
            (Within::Escape, b'u') => Within::Digits(4),
            (Within::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                Within::Text
            }
            (Within::Digits(left), _) if byte.is_ascii_hexdigit() => match left {
                0 | 1 => Within::Text,
                more => Within::Digits(more - 1),
            },
            (Within::Sign, b'I') => Within::Word("nfinity"),
            (Within::Sign, b'0'..=b'9')
            | (Within::Number, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => Within::Number,
            (Within::Escape | Within::Digits(_) | Within::Sign, _) => {
                return Err(Ended::Fault);
            }
            (Within::Word(left), _) if left.as_bytes().first() == Some(&byte) => {
                Within::Word(left.get(1..).unwrap_or_default())
            }
            (Within::Word(left), _) if !left.is_empty() => return Err(Ended::Fault),
            (Within::Nothing | Within::Number | Within::Word(_), _) => {
                return self.outside(byte, on);
            }
        };
        if matches!(
            self.within,
            Within::Text | Within::Escape | Within::Digits(_)
        ) {
            self.keep(&[byte]);
        }
        Ok(())
    }

    /// A byte that stands in no string, number or word.
    fn outside<E>(&mut self, byte: u8, on: On<'_, E>) -> Result<(), Ended<E>> {
        let was_bare = std::mem::replace(&mut self.within, Within::Nothing) != Within::Nothing;
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            // Some write it before each text (RFC 7464 2.2).
            || (byte == 0x1e && self.open.is_empty());
        // Two words that touch are one to nobody.
        if was_bare && !is_blank && !matches!(byte, b',' | b']' | b'}') {
            return Err(Ended::Fault);
        }
        if is_blank {
            return Ok(());
        }
        let is_value = matches!(self.expects, Expects::Value | Expects::ValueOrEnd);
        match byte {
            b'{' if is_value => self.opens(Open::Object, on),
            b'[' if is_value => self.opens(Open::List, on),
            b'}' => self.closes(Open::Object, on),
            b']' => self.closes(Open::List, on),
            b':' if self.expects == Expects::Colon => {
                self.expects = Expects::Value;
                Ok(())
            }
            b',' if self.expects == Expects::CommaOrEnd => {
                self.expects = match self.open.last() {
                    Some(Open::Object) => Expects::Key,
                    Some(Open::List) | None => Expects::Value,
                };
                Ok(())
            }
            b'"' if is_value || matches!(self.expects, Expects::Key | Expects::KeyOrEnd) => {
                self.within = Within::Text;
                self.text.clear();
                Ok(())
            }
            _ if is_value => self.begins(byte),
            _ => Err(Ended::Fault),
        }
    }

    /// A number or a word begins.
    fn begins<E>(&mut self, byte: u8) -> Result<(), Ended<E>> {
        self.within = match byte {
            b'-' => Within::Sign,
            b'0'..=b'9' => Within::Number,
            _ => {
                let mut words = WORDS.iter();
                let word = words.find(|word| word.as_bytes().first() == Some(&byte));
                Within::Word(word.and_then(|word| word.get(1..)).ok_or(Ended::Fault)?)
            }
        };
        self.value_ends();
        Ok(())
    }

    fn value_ends(&mut self) {
        self.expects = if self.open.is_empty() {
            Expects::Value
        } else {
            Expects::CommaOrEnd
        };
    }

    fn text_ends<E>(&mut self, on: On<'_, E>) -> Result<(), Ended<E>> {
        self.within = Within::Nothing;
        let event = if matches!(self.expects, Expects::Key | Expects::KeyOrEnd) {
            self.expects = Expects::Colon;
            Event::Key(&self.text)
        } else {
            Event::Text(&self.text)
        };
        on(event).map_err(Ended::Said)?;
        if self.expects != Expects::Colon {
            self.value_ends();
        }
        Ok(())
    }

    fn opens<E>(&mut self, what: Open, on: On<'_, E>) -> Result<(), Ended<E>> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Ended::Fault);
        }
        self.open.push(what);
        self.expects = match what {
            Open::Object => Expects::KeyOrEnd,
            Open::List => Expects::ValueOrEnd,
        };
        on(Event::Opens(what)).map_err(Ended::Said)
    }

    fn closes<E>(&mut self, what: Open, on: On<'_, E>) -> Result<(), Ended<E>> {
        let may_end = match what {
            Open::Object => Expects::KeyOrEnd,
            Open::List => Expects::ValueOrEnd,
        };
        let ends = self.expects == may_end || self.expects == Expects::CommaOrEnd;
        if !ends || self.open.pop() != Some(what) {
            return Err(Ended::Fault);
        }
        self.value_ends();
        on(Event::Closes).map_err(Ended::Said)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend(bytes.iter().take(room));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn events(content: &str, size: usize) -> Result<Vec<String>, Ended<()>> {
        let mut found = Vec::new();
        let mut syntax = Syntax::new();
        let mut on = |event: Event<'_>| {
            found.push(match event {
                Event::Opens(what) => format!("{what:?}"),
                Event::Closes => "end".to_owned(),
                Event::Key(text) => format!("{}:", String::from_utf8_lossy(text)),
                Event::Text(text) => String::from_utf8_lossy(text).into_owned(),
            });
            Ok(())
        };
        let mut pieces = content.as_bytes().chunks(size.max(1));
        pieces.try_for_each(|piece| syntax.read(piece, &mut on))?;
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

    proptest::proptest! {
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
