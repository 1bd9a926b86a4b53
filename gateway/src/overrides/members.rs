//! Members of JSON (RFC 8259) that ask for another method, as its bytes come: `_method`
//! and its like in the outermost object, which frameworks take for those of a form; in a
//! batch the `method` of every object. Keeps a bounded key and value; changes nothing.

use super::asks::{Asks, Judge, KEY, Keys, Refused, is_method};
use super::pairs::may_hold_key;
use super::syntax::{Ended, NO_JSON, Syntax, unescaped};

/// Bytes of a key or a value that are kept, written with escapes at most.
const TEXT_BYTES_MAX: usize = 512;

/// How deep objects and lists are told apart; below that everything is one.
const DEPTH_MAX: usize = 128;

/// Bytes by which an encoding is known.
const BEGIN_BYTES: usize = 4;

/// Bytes by which frames are known: what stands before one, and its first.
const FRAME_BYTES: usize = 6;

/// Escapes that JSON has no others of.
const ESCAPES: &str = "a name in escapes that make no text";

/// Whose members are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Those of the outermost object.
    Outermost,
    /// Those of every object.
    Every,
}

/// What content is that does not follow the grammar of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Said to be JSON: then it is none that can be read.
    Said,
    /// Said to be nothing: then it may be something else.
    Guessed,
    /// Said to be JSON, in frames of a protocol for calls (gRPC, Connect).
    Framed,
}

/// Finds the members in bytes as they come.
#[derive(Debug)]
pub(super) struct Members {
    keys: Keys,
    whose: Whose,
    manner: Manner,
    syntax: Syntax,
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
    /// The same of what may be a frame.
    frame: Vec<u8>,
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
    /// One that means nothing else.
    Tunnel,
}

impl Members {
    pub(super) fn new(whose: Whose, manner: Manner) -> Self {
        Self {
            keys: Keys::new(),
            whose,
            manner,
            syntax: Syntax::new(),
            open: Vec::new(),
            deeper: 0,
            within: Within::Nothing,
            text: Vec::new(),
            key: None,
            under: None,
            is_value: false,
            begin: Vec::new(),
            frame: Vec::new(),
            kind: Kind::Open,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        if self.manner != Manner::Framed {
            return self.read_json(bytes, judge);
        }
        // Behind one byte for its kind and four for its length, a frame is JSON by itself;
        // nobody who reads frames knows such a member.
        let begin = FRAME_BYTES.saturating_sub(self.frame.len());
        let (begin, rest) = bytes.split_at_checked(begin).unwrap_or((bytes, &[]));
        self.frame.extend_from_slice(begin);
        let [kind, .., first] = self.frame.as_slice() else {
            return Ok(());
        };
        if self.frame.len() < FRAME_BYTES {
            return Ok(());
        }
        if matches!(kind, 0..=7 | 0x80..=0x83) && *first != 0 {
            self.kind = Kind::Other;
        }
        self.manner = Manner::Said;
        let frame = std::mem::take(&mut self.frame);
        self.read_json(&frame, judge)?;
        self.read_json(rest, judge)
    }

    fn read_json(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        if self.kind == Kind::Other {
            return Ok(());
        }
        let begin = BEGIN_BYTES.saturating_sub(self.begin.len());
        for byte in bytes.iter().take(begin) {
            self.begin.push(*byte);
            if is_wide(&self.begin) {
                judge(Asks::Unread("JSON in another encoding than UTF-8"))?;
            }
        }
        let was_open = self.kind == Kind::Open;
        if self.is_other(bytes) {
            return Ok(());
        }
        if self.manner == Manner::Said && self.kind == Kind::Json {
            let begin = if was_open {
                bytes.iter().position(|byte| is_first(*byte))
            } else {
                None
            };
            let json = bytes.get(begin.unwrap_or_default()..).unwrap_or_default();
            let read = self.syntax.read(json, &mut |_| Ok::<(), Refused>(()));
            match read {
                Ok(()) => {}
                Err(Ended::Fault) => judge(Asks::Unread(NO_JSON))?,
                Err(Ended::Said(refused)) => return Err(refused),
            }
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
        if self.kind == Kind::Open
            && let Some(first) = bytes.iter().find(|byte| is_first(**byte))
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
            self.key = match unescaped(&self.text) {
                Some(key) => self.key_of(&key),
                None => return judge(Asks::Unread(ESCAPES)),
            };
            return Ok(());
        }
        match self.key.take() {
            Some(key) => self.value_of(key, judge),
            None => Ok(()),
        }
    }

    /// The last string is a value of this key, or one in it.
    fn value_of(&self, key: Key, judge: Judge<'_>) -> Result<(), Refused> {
        let Some(value) = unescaped(&self.text) else {
            return match key {
                Key::Own => judge(Asks::Unread(ESCAPES)),
                Key::Other | Key::Tunnel => Ok(()),
            };
        };
        let value = value.trim();
        match key {
            Key::Own if self.text.len() >= TEXT_BYTES_MAX => {
                judge(Asks::Unread("a value without end"))
            }
            _ if value.is_empty() => Ok(()),
            Key::Tunnel => {
                let key = "a member for the method";
                judge(Asks::Tunnelled { key, value })
            }
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
        let is_ours = key.starts_with('_')
            || key.get(..1).is_some_and(|sign| sign == "$" || sign == "@")
            || key.to_ascii_lowercase().contains("override")
            || key
                .get(..2)
                .is_some_and(|sign| sign.eq_ignore_ascii_case("x-"));
        if self.keys.own.may_be(key) {
            Some(Key::Own)
        } else if !self.keys.others.may_be(key) {
            None
        } else if is_ours {
            Some(Key::Tunnel)
        } else {
            (self.whose == Whose::Every).then_some(Key::Other)
        }
    }
}

/// Whether content may begin with a byte.
fn is_first(byte: u8) -> bool {
    byte > b' ' && byte.is_ascii()
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

#[cfg(test)]
mod tests {
    use super::super::asks::is_known;
    use super::*;

    fn verdict(whose: Whose, manner: Manner, pieces: &[&[u8]]) -> Result<(), Refused> {
        let mut judge = |asks: Asks<'_>| match asks {
            Asks::Method {
                value: "put" | "PUT" | "post",
                ..
            } => Ok(()),
            Asks::Tunnelled { value, .. }
                if !is_known(value) || value.eq_ignore_ascii_case("put") =>
            {
                Ok(())
            }
            _ => Err(Refused),
        };
        let mut members = Members::new(whose, manner);
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
            (Outermost, r#"{"X-HTTP-Method":"VERSION-CONTROL"}"#, false),
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
                for manner in [Manner::Said, Manner::Guessed, Manner::Framed] {
                    let found = verdict(whose, manner, &pieces);
                    assert_eq!(found.is_ok(), held, "{document} by {size}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_is_said_to_be() {
        use Whose::Outermost;
        let wide: Vec<u8> =
            r#"{"_method":"delete"}"#.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(verdict(Outermost, Manner::Said, &[&wide]).is_err());
        assert!(verdict(Outermost, Manner::Said, &[&[0xff, 0xfe], &wide]).is_err());
        assert!(verdict(Outermost, Manner::Said, &[&[0; 100]]).is_ok());
        for before in [" \r\n", "\u{feff}", "/* of old */ ", "# so too\n"] {
            let document = format!("{before}{{\"_method\":\"delete\"}}");
            assert!(
                verdict(Outermost, Manner::Said, &[document.as_bytes()]).is_err(),
                "{document}"
            );
        }
        for (document, said, guessed) in [
            ("{/*\"*/\"_method\":\"DELETE\"}", false, true),
            ("{'_method':'DELETE'}", false, true),
            ("{_method:1}", false, true),
            ("{\"\\_method\":\"DELETE\"}", false, false),
            ("{\"a\":NaN}\n{\"b\":-Infinity}", true, true),
            ("#!/bin/sh\nexit", false, true),
            ("", true, true),
            (" \n", true, true),
        ] {
            for (manner, held) in [(Manner::Said, said), (Manner::Guessed, guessed)] {
                let found = verdict(Outermost, manner, &[document.as_bytes()]);
                assert_eq!(found.is_ok(), held, "{document} {manner:?}");
            }
        }
        let frame = [&[0, 0, 0, 0x22, 0x7b][..], &[b'{'; 0x227b]].concat();
        for size in [1, 4, 9000] {
            let pieces: Vec<&[u8]> = frame.chunks(size).collect();
            assert!(verdict(Outermost, Manner::Framed, &pieces).is_ok());
        }
        let wide: Vec<u8> = "{\"_method\":1}"
            .chars()
            .flat_map(|c| u32::from(c).to_be_bytes())
            .collect();
        assert!(verdict(Outermost, Manner::Framed, &[&wide]).is_err());
        assert!(
            verdict(
                Outermost,
                Manner::Said,
                &[b"a=1&b={\"_method\":\"delete\"}"]
            )
            .is_ok()
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_is_bounded(bytes in proptest::collection::vec(
            proptest::sample::select(b"{}[]\":,\\x".to_vec()), 0..4000,
        )) {
            let mut members = Members::new(Whose::Every, Manner::Guessed);
            members.read(&bytes, &mut |_| Ok(())).unwrap();
            assert!(members.text.len() <= TEXT_BYTES_MAX && members.open.len() <= DEPTH_MAX);
        }
    }
}
