//! Members of JSON (RFC 8259) that ask for another method, as its bytes come: `_method`
//! and its like in the outermost object, which frameworks take for those of a form; in a
//! batch the `method` of every object. Keeps a bounded key and value; changes nothing.

use super::asks::{Asks, Judge, KEY, Keys, Refused, is_method};
use super::keys::may_hold_key;

/// Bytes of a key or a value that are kept, written with escapes at most.
const TEXT_BYTES_MAX: usize = 512;

/// How deep objects and lists are told apart; below that everything is one.
const DEPTH_MAX: usize = 128;

/// Bytes by which an encoding is known.
const BEGIN_BYTES: usize = 4;

/// Whose members are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of the outermost object.
    Outermost,
    /// Those of every object.
    Every,
}

/// Finds the members in bytes as they come.
#[derive(Debug)]
pub(super) struct Members {
    keys: Keys,
    whose: Whose,
    /// What is open, outermost first.
    open: Vec<Open>,
    /// How much is open below that.
    deeper: u64,
    within: Within,
    /// The string that is not over, or the last one that was.
    text: Vec<u8>,
    /// The key before the value that comes.
    key: Option<Key>,
    /// The key whose value is a list or an object that is open, and how much was open
    /// before: some take the first of a list.
    under: Option<(Key, usize)>,
    /// Whether a member's value comes next.
    is_value: bool,
    /// The first bytes.
    begin: Vec<u8>,
    kind: Kind,
}

/// What the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing was seen that tells.
    Open,
    Json,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Text,
    /// Behind a backslash in it.
    Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Own,
    Other,
}

impl Members {
    pub(super) fn new(whose: Whose) -> Self {
        Self {
            keys: Keys::new(),
            whose,
            open: Vec::new(),
            deeper: 0,
            within: Within::Nothing,
            text: Vec::new(),
            key: None,
            under: None,
            is_value: false,
            begin: Vec::new(),
            kind: Kind::Open,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let begin = BEGIN_BYTES.saturating_sub(self.begin.len());
        for byte in bytes.iter().take(begin) {
            self.begin.push(*byte);
            if is_wide(&self.begin) {
                judge(Asks::Unread("JSON in another encoding than UTF-8"))?;
            }
        }
        if self.is_other(bytes) {
            return Ok(());
        }
        while !bytes.is_empty() {
            // What goes before the next byte that changes anything.
            let plain = match self.within {
                Within::Nothing => bytes.iter().position(|byte| is_structure(*byte)),
                Within::Text => memchr::memchr2(b'"', b'\\', bytes),
                Within::Escape => Some(0),
            };
            let (plain, rest) = bytes
                .split_at_checked(plain.unwrap_or(bytes.len()))
                .unwrap_or_default();
            if self.within == Within::Text {
                self.keep(plain);
            }
            if let Some(byte) = rest.first() {
                self.take(*byte, judge)?;
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// Whether the content is no JSON: it begins with what neither a value that holds others
    /// nor a comment before it begins with, behind blanks, controls and a mark.
    fn is_other(&mut self, bytes: &[u8]) -> bool {
        let is_first = |byte: &&u8| **byte > b' ' && byte.is_ascii();
        if self.kind == Kind::Open
            && let Some(first) = bytes.iter().find(is_first)
        {
            self.kind = if b"{[/#\"'()".contains(first) {
                Kind::Json
            } else {
                Kind::Other
            };
        }
        self.kind == Kind::Other
    }

    fn take(&mut self, byte: u8, judge: Judge<'_>) -> Result<(), Refused> {
        match (self.within, byte) {
            (Within::Nothing, b'"') => {
                self.within = Within::Text;
                self.text.clear();
            }
            (Within::Nothing, _) => self.structure(byte),
            (Within::Escape, _) => {
                self.within = Within::Text;
                self.keep(&[byte]);
            }
            (Within::Text, b'\\') => {
                self.within = Within::Escape;
                self.keep(&[byte]);
            }
            (Within::Text, b'"') => {
                self.within = Within::Nothing;
                return self.text_ends(judge);
            }
            (Within::Text, _) => self.keep(&[byte]),
        }
        Ok(())
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' => self.opens(Open::Object),
            b'[' => self.opens(Open::List),
            b'}' | b']' => {
                if self.deeper > 0 {
                    self.deeper -= 1;
                } else {
                    self.open.pop();
                }
                let open = self.open.len();
                self.under = self.under.filter(|(_, before)| open > *before);
                self.key = None;
                self.is_value = false;
            }
            b':' => self.is_value = true,
            b',' => {
                self.is_value = false;
                self.key = None;
            }
            _ => {}
        }
    }

    fn opens(&mut self, what: Open) {
        if let Some(key) = self.key.take().filter(|_| self.under.is_none()) {
            self.under = Some((key, self.open.len()));
        }
        if self.open.len() < DEPTH_MAX {
            self.open.push(what);
        } else {
            self.deeper = self.deeper.saturating_add(1);
        }
        self.key = None;
        self.is_value = false;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend(bytes.iter().take(room));
    }

    /// Whether members are looked at where we are.
    fn matters(&self) -> bool {
        let is_object = self.deeper > 0 || self.open.last() == Some(&Open::Object);
        let depth = match self.whose {
            Whose::Outermost => self.open.len() == 1 && self.deeper == 0,
            Whose::Every => true,
        };
        is_object && depth
    }

    fn text_ends(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if let Some((key, _)) = self.under {
            return self.value_of(key, judge);
        }
        let is_long = self.text.len() >= TEXT_BYTES_MAX;
        if !self.matters() || (is_long && !self.is_value) {
            self.key = None;
            return Ok(());
        }
        if !self.is_value && !may_hold_key(&self.text) {
            self.key = None;
            return Ok(());
        }
        if self.is_value && self.key.is_none() {
            return Ok(());
        }
        if !self.is_value {
            let key = unescaped(&self.text);
            self.key = self.key_of(&key);
            return Ok(());
        }
        match self.key.take() {
            Some(key) => self.value_of(key, judge),
            None => Ok(()),
        }
    }

    /// The last string is a value of this key, or one in it.
    fn value_of(&self, key: Key, judge: Judge<'_>) -> Result<(), Refused> {
        let value = unescaped(&self.text);
        let value = value.trim();
        match key {
            Key::Own if self.text.len() >= TEXT_BYTES_MAX => {
                judge(Asks::Unread("a value without end"))
            }
            _ if value.is_empty() => Ok(()),
            Key::Own => judge(Asks::Method { key: KEY, value }),
            Key::Other if is_method(value) => {
                let key = "a member for the method";
                judge(Asks::Method { key, value })
            }
            Key::Other => Ok(()),
        }
    }

    fn key_of(&self, key: &str) -> Option<Key> {
        let key = key.trim();
        // Many documents describe requests to others: in them a plain `method` is no more
        // than that. A sign before the word, or the field's own name, makes it ours.
        let is_ours = match self.whose {
            Whose::Every => true,
            Whose::Outermost => {
                key.starts_with('_')
                    || key.get(..1).is_some_and(|sign| sign == "$" || sign == "@")
                    || key.to_ascii_lowercase().contains("override")
                    || key
                        .get(..2)
                        .is_some_and(|sign| sign.eq_ignore_ascii_case("x-"))
            }
        };
        if self.keys.own.may_be(key) {
            Some(Key::Own)
        } else {
            (is_ours && self.keys.others.may_be(key)).then_some(Key::Other)
        }
    }
}

/// Whether it means something outside of strings.
fn is_structure(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b':' | b',')
}

/// Whether JSON begins in UTF-16 or UTF-32: by their mark, or with a zero beside what JSON
/// begins with (RFC 4627 3).
fn is_wide(begin: &[u8]) -> bool {
    let has_zero = begin.contains(&0);
    let has_sign = begin.iter().any(|byte| b"{[\" \t\r\n".contains(byte));
    (has_zero && has_sign) || begin.starts_with(&[0xfe, 0xff]) || begin.starts_with(&[0xff, 0xfe])
}

/// A string without its escapes (RFC 8259 7); what is none stays.
fn unescaped(text: &[u8]) -> String {
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice::<String>(&quoted)
        .unwrap_or_else(|_| String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(whose: Whose, pieces: &[&[u8]]) -> Result<(), Refused> {
        let mut judge = |asks: Asks<'_>| match asks {
            Asks::Method {
                value: "put" | "PUT" | "post",
                ..
            } => Ok(()),
            _ => Err(Refused),
        };
        let mut members = Members::new(whose);
        pieces
            .iter()
            .try_for_each(|piece| members.read(piece, &mut judge))
    }

    #[test]
    fn only_the_member_of_a_framework_asks_for_a_method() {
        use Whose::{Every, Outermost};
        let deep = format!("{}{{\"method\":\"DELETE\"}}", "[".repeat(3 * DEPTH_MAX));
        let padded = format!("{{\"_method\":\"{}DELETE\"}}", " ".repeat(TEXT_BYTES_MAX));
        let long = format!("{{\"{}\":1,\"_method\":\"delete\"}}", "x".repeat(2000));
        for (whose, document, held) in [
            (Outermost, r#"{"a":1}"#, true),
            (Outermost, r#"{"_method":"PUT"}"#, true),
            (Outermost, r#"{"_method":"DELETE"}"#, false),
            (
                Outermost,
                r#" {"a":{"b":[1,"}"]},"_Method" : "delete"}"#,
                false,
            ),
            (Outermost, r#"{"\u005fmethod":"\u0064elete"}"#, false),
            (Outermost, r#"{"a":"\"","_method":"delete"}"#, false),
            (Outermost, r#"{"a":{"_method":"delete"}}"#, true),
            (Outermost, r#"{"a":"_method","b":"delete"}"#, true),
            (Outermost, r#"["_method","delete"]"#, true),
            (Outermost, r#"{"text":"{\"_method\":\"delete\"}"}"#, true),
            (
                Outermost,
                r#"{"method":"DELETE","url":"https://a.test/"}"#,
                true,
            ),
            (Outermost, r#"{"_method":""}"#, true),
            (Outermost, r#"{"_httpMethod":"PATCH"}"#, false),
            (Outermost, r#"{"X-HTTP-Method-Override":"DELETE"}"#, false),
            (Outermost, r#"{"_methods":"many"}"#, true),
            // Some take the first of a list.
            (Outermost, r#"{"_method":["DELETE"]}"#, false),
            (Outermost, r#"{"_method":[["DELETE"]]}"#, false),
            (Outermost, r#"{"_method":["PUT","DELETE"]}"#, false),
            (Outermost, r#"{"_method":{"x":"DELETE"}}"#, false),
            (Outermost, r#"{"_method":{"DELETE":1}}"#, false),
            (Outermost, r#"{"_method":["PUT"],"a":["DELETE"]}"#, true),
            (Outermost, r#"{"_method":1,"a":["DELETE"]}"#, true),
            (Outermost, r#"{"X-HTTP-Method":["x","DELETE"]}"#, false),
            (Outermost, &padded, false),
            (Outermost, &long, false),
            (
                Every,
                r#"{"requests":[{"id":"1","method":"DELETE"}]}"#,
                false,
            ),
            (Every, r#"{"requests":[{"method":"put"}]}"#, true),
            (Every, &deep, false),
        ] {
            let bytes = document.as_bytes();
            for size in [1, 2, 7, 64, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                let found = verdict(whose, &pieces);
                assert_eq!(found.is_ok(), held, "{document} by {size}: {found:?}");
            }
        }
        let wide: Vec<u8> =
            r#"{"_method":"delete"}"#.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(verdict(Outermost, &[&wide]).is_err());
        assert!(verdict(Outermost, &[&[0xff, 0xfe], &wide]).is_err());
        assert!(verdict(Outermost, &[&[0; 100]]).is_ok());
        for before in [" \r\n", "\u{feff}", "/* of old */ ", "# so too\n"] {
            let document = format!("{before}{{\"_method\":\"delete\"}}");
            assert!(
                verdict(Outermost, &[document.as_bytes()]).is_err(),
                "{document}"
            );
        }
        assert!(verdict(Outermost, &[b"a=1&b={\"_method\":\"delete\"}"]).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_is_bounded(bytes in proptest::collection::vec(
            proptest::sample::select(b"{}[]\":,\\x".to_vec()), 0..4000,
        )) {
            let mut members = Members::new(Whose::Every);
            members.read(&bytes, &mut |_| Ok(())).unwrap();
            assert!(members.text.len() <= TEXT_BYTES_MAX && members.open.len() <= DEPTH_MAX);
        }
    }
}
