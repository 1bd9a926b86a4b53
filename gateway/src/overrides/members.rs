//! Members of JSON (RFC 8259) that ask for another method, as its bytes come: `_method`
//! and its like in the outermost object, which frameworks take for those of a form. Keeps a bounded key and
//! value; changes nothing.

use super::asks::{Asks, Judge, KEY, Keys, Refused};
use super::pairs::may_hold_key;
use super::syntax::{Ended, JsonSyntax, NO_JSON, unescaped};

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

/// What content is that does not follow the grammar of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Said to be JSON: then it is none that can be read.
    Said,
    /// Said to be nothing: then it may be something else.
    Guessed,
    /// Said to be JSON, in frames of a protocol for calls (gRPC, Connect).
    Framed,
    /// Said to be something else, which some read as JSON though: it counts where it
    /// asks for a method, and nothing else does.
    Unsaid,
    /// The same in a character set that is not read.
    Recoded,
}

/// Finds the members in bytes as they come.
#[derive(Debug)]
pub(super) struct MemberFinder {
    keys: Keys,
    manner: Manner,
    syntax: JsonSyntax,
    /// What is open, outermost first.
    open: Vec<OpenMember>,
    /// How much is open below that.
    deeper: u64,
    within: MemberState,
    /// The string that is not over, or the last one that was.
    text: Vec<u8>,
    /// The key before the value that comes.
    key: Option<MemberKey>,
    /// The key whose value is a list or an object that is open, and how much was open
    /// before: some take the first of a list.
    under: Option<(MemberKey, usize)>,
    /// Whether a member's value comes next.
    is_value: bool,
    /// The first bytes.
    begin: Vec<u8>,
    /// The same of what may be a frame.
    frame: Vec<u8>,
    kind: ContentKind,
}

/// What the content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    /// Nothing was seen that tells.
    Open,
    Json,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenMember {
    Object,
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    Nothing,
    Text,
    /// Behind a backslash in it.
    Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberKey {
    Own,
    /// One that means nothing else.
    Tunnel,
}

impl MemberFinder {
    pub(super) fn new(manner: Manner) -> Self {
        Self {
            keys: Keys::new(),
            manner,
            syntax: JsonSyntax::new(),
            open: Vec::new(),
            deeper: 0,
            within: MemberState::Nothing,
            text: Vec::new(),
            key: None,
            under: None,
            is_value: false,
            begin: Vec::new(),
            frame: Vec::new(),
            kind: ContentKind::Open,
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
            self.kind = ContentKind::Other;
        }
        self.manner = Manner::Said;
        let frame = std::mem::take(&mut self.frame);
        self.read_json(&frame, judge)?;
        self.read_json(rest, judge)
    }

    fn read_json(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        if self.kind == ContentKind::Other {
            return Ok(());
        }
        let begin = BEGIN_BYTES.saturating_sub(self.begin.len());
        for byte in bytes.iter().take(begin) {
            self.begin.push(*byte);
            let is_recoded = self.manner == Manner::Recoded && self.begin.starts_with(b"+");
            if self.manner != Manner::Unsaid && (is_recoded || is_wide(&self.begin)) {
                judge(Asks::UnreadMethod("JSON in another encoding than UTF-8"))?;
            }
        }
        let was_open = self.kind == ContentKind::Open;
        if self.is_other(bytes) {
            return Ok(());
        }
        if self.manner == Manner::Said && self.kind == ContentKind::Json {
            let begin = if was_open {
                bytes.iter().position(|byte| is_first(*byte))
            } else {
                None
            };
            let json = bytes.get(begin.unwrap_or_default()..).unwrap_or_default();
            let read = self.syntax.read(json, &mut |_| Ok::<(), Refused>(()));
            match read {
                Ok(()) => {}
                Err(Ended::Fault) => judge(Asks::UnreadMethod(NO_JSON))?,
                Err(Ended::Said(refused)) => return Err(refused),
            }
        }
        while !bytes.is_empty() {
            // What goes before the next byte that changes anything.
            let plain = match self.within {
                MemberState::Nothing => bytes.iter().position(|byte| is_structure(*byte)),
                MemberState::Text => memchr::memchr2(b'"', b'\\', bytes),
                MemberState::Escape => Some(0),
            };
            let (plain, rest) = bytes
                .split_at_checked(plain.unwrap_or(bytes.len()))
                .unwrap_or_default();
            if self.within == MemberState::Text {
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
        if self.kind == ContentKind::Open
            && let Some(first) = bytes.iter().find(|byte| is_first(**byte))
        {
            let begins: &[u8] = match self.manner {
                Manner::Unsaid | Manner::Recoded => b"{[",
                Manner::Said | Manner::Guessed | Manner::Framed => b"{[/#\"'()",
            };
            self.kind = if begins.contains(first) {
                ContentKind::Json
            } else {
                ContentKind::Other
            };
        }
        self.kind == ContentKind::Other
    }

    fn take(&mut self, byte: u8, judge: Judge<'_>) -> Result<(), Refused> {
        match (self.within, byte) {
            (MemberState::Nothing, b'"') => {
                self.within = MemberState::Text;
                self.text.clear();
            }
            (MemberState::Nothing, _) => self.structure(byte),
            (MemberState::Escape, _) => {
                self.within = MemberState::Text;
                self.keep(&[byte]);
            }
            (MemberState::Text, b'\\') => {
                self.within = MemberState::Escape;
                self.keep(&[byte]);
            }
            (MemberState::Text, b'"') => {
                self.within = MemberState::Nothing;
                return self.text_ends(judge);
            }
            (MemberState::Text, _) => self.keep(&[byte]),
        }
        Ok(())
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'{' => self.opens(OpenMember::Object),
            b'[' => self.opens(OpenMember::List),
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

    fn opens(&mut self, what: OpenMember) {
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
        self.deeper == 0 && self.open == [OpenMember::Object]
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
                // Whoever reads it by a guess reads JSON alone.
                None if self.is_unsaid() => None,
                None => return judge(Asks::UnreadMethod(ESCAPES)),
            };
            return Ok(());
        }
        match self.key.take() {
            Some(key) => self.value_of(key, judge),
            None => Ok(()),
        }
    }

    /// The last string is a value of this key, or one in it.
    fn value_of(&self, key: MemberKey, judge: Judge<'_>) -> Result<(), Refused> {
        let Some(value) = unescaped(&self.text) else {
            return match key {
                MemberKey::Own if !self.is_unsaid() => judge(Asks::UnreadMethod(ESCAPES)),
                MemberKey::Own | MemberKey::Tunnel => Ok(()),
            };
        };
        let value = value.trim();
        match key {
            MemberKey::Own if self.text.len() >= TEXT_BYTES_MAX => {
                judge(Asks::UnreadMethod("a value without end"))
            }
            _ if value.is_empty() => Ok(()),
            MemberKey::Tunnel => {
                let key = "a member for the method";
                judge(Asks::Tunnelled { key, value })
            }
            MemberKey::Own if self.is_unsaid() => judge(Asks::Tunnelled { key: KEY, value }),
            MemberKey::Own => judge(Asks::Method { key: KEY, value }),
        }
    }

    fn is_unsaid(&self) -> bool {
        matches!(self.manner, Manner::Unsaid | Manner::Recoded)
    }

    /// Whether what comes cannot matter.
    pub(super) fn is_over(&self) -> bool {
        self.kind == ContentKind::Other
    }

    fn key_of(&self, key: &str) -> Option<MemberKey> {
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
            Some(MemberKey::Own)
        } else if !self.keys.others.may_be(key) {
            None
        } else {
            is_ours.then_some(MemberKey::Tunnel)
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

    fn verdict(manner: Manner, pieces: &[&[u8]]) -> Result<(), Refused> {
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
        let mut members = MemberFinder::new(manner);
        pieces
            .iter()
            .try_for_each(|piece| members.read(piece, &mut judge))
    }

    #[test]
    fn only_the_member_of_a_framework_asks_for_a_method() {
        let deep = format!("{}{{\"_method\":\"DELETE\"}}", "[".repeat(3 * DEPTH_MAX));
        let padded = format!("{{\"_method\":\"{}DELETE\"}}", " ".repeat(TEXT_BYTES_MAX));
        let long = format!("{{\"{}\":1,\"_method\":\"delete\"}}", "x".repeat(2000));
        for (document, held) in [
            (r#"{"a":1}"#, true),
            (r#"{"_method":"PUT"}"#, true),
            (r#"{"_method":"DELETE"}"#, false),
            (r#" {"a":{"b":[1,"}"]},"_Method" : "delete"}"#, false),
            (r#"{"\u005fmethod":"\u0064elete"}"#, false),
            (r#"{"a":"\"","_method":"delete"}"#, false),
            (r#"{"a":{"_method":"delete"}}"#, true),
            (r#"{"a":"_method","b":"delete"}"#, true),
            (r#"["_method","delete"]"#, true),
            (r#"{"text":"{\"_method\":\"delete\"}"}"#, true),
            (r#"{"method":"DELETE","url":"https://a.test/"}"#, true),
            (r#"{"_method":""}"#, true),
            (r#"{"_httpMethod":"PATCH"}"#, false),
            (r#"{"X-HTTP-Method-Override":"DELETE"}"#, false),
            (r#"{"_methods":"many"}"#, true),
            (r#"{"X-HTTP-Method":"VERSION-CONTROL"}"#, false),
            // Some take the first of a list.
            (r#"{"_method":["DELETE"]}"#, false),
            (r#"{"_method":[["DELETE"]]}"#, false),
            (r#"{"_method":["PUT","DELETE"]}"#, false),
            (r#"{"_method":{"x":"DELETE"}}"#, false),
            (r#"{"_method":{"DELETE":1}}"#, false),
            (r#"{"_method":["PUT"],"a":["DELETE"]}"#, true),
            (r#"{"_method":1,"a":["DELETE"]}"#, true),
            (r#"{"X-HTTP-Method":["x","DELETE"]}"#, false),
            (&padded, false),
            (&long, false),
            (r#"{"requests":[{"id":"1","_method":"DELETE"}]}"#, true),
            (&deep, true),
        ] {
            let bytes = document.as_bytes();
            for size in [1, 2, 7, 64, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                for manner in [Manner::Said, Manner::Guessed, Manner::Framed] {
                    let found = verdict(manner, &pieces);
                    assert_eq!(found.is_ok(), held, "{document} by {size}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_is_said_to_be() {
        let wide: Vec<u8> =
            r#"{"_method":"delete"}"#.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(verdict(Manner::Said, &[&wide]).is_err());
        assert!(verdict(Manner::Said, &[&[0xff, 0xfe], &wide]).is_err());
        assert!(verdict(Manner::Said, &[&[0; 100]]).is_ok());
        for before in [" \r\n", "\u{feff}", "/* of old */ ", "# so too\n"] {
            let document = format!("{before}{{\"_method\":\"delete\"}}");
            assert!(
                verdict(Manner::Said, &[document.as_bytes()]).is_err(),
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
                let found = verdict(manner, &[document.as_bytes()]);
                assert_eq!(found.is_ok(), held, "{document} {manner:?}");
            }
        }
        let frame = [&[0, 0, 0, 0x22, 0x7b][..], &[b'{'; 0x227b]].concat();
        for size in [1, 4, 9000] {
            let pieces: Vec<&[u8]> = frame.chunks(size).collect();
            assert!(verdict(Manner::Framed, &pieces).is_ok());
        }
        let wide: Vec<u8> = "{\"_method\":1}"
            .chars()
            .flat_map(|c| u32::from(c).to_be_bytes())
            .collect();
        assert!(verdict(Manner::Framed, &[&wide]).is_err());
        assert!(verdict(Manner::Said, &[b"a=1&b={\"_method\":\"delete\"}"]).is_ok());
    }

    #[test]
    fn what_is_said_to_be_something_else_is_refused_for_a_method_alone() {
        let wide: Vec<u8> =
            r#"{"_method":"delete"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (document, unsaid, recoded) in [
            (&b"{\"_method\":\"DELETE\"}"[..], false, false),
            (b"\xef\xbb\xbf {\"X-HTTP-Method\":\"delete\"}", false, false),
            (
                b"{\"_method\":\"put\",\"a\":[{\"_method\":\"delete\"}]}",
                true,
                true,
            ),
            (b"{\"_method\":\"card\"}", true, true),
            (b"{\"\\_method\":\"DELETE\"}", true, true),
            (b"{'_method':'DELETE'}", true, true),
            (b"[section]\n_method = \"DELETE\"", true, true),
            (b"\"_method\":\"DELETE\"", true, true),
            (b"a=1&{\"_method\":\"DELETE\"}", true, true),
            (b"\x7fELF\0{\"_method\":\"DELETE\"}", true, true),
            (b"[\0\0\0", true, false),
            (b"+AHsAIg", true, false),
            (&wide, true, false),
        ] {
            for size in [1, 5, 1000] {
                let pieces: Vec<&[u8]> = document.chunks(size).collect();
                for (manner, held) in [(Manner::Unsaid, unsaid), (Manner::Recoded, recoded)] {
                    let found = verdict(manner, &pieces);
                    assert_eq!(found.is_ok(), held, "{document:?} {manner:?}");
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_is_bounded(bytes in proptest::collection::vec(
            proptest::sample::select(b"{}[]\":,\\x".to_vec()), 0..4000,
        )) {
            let mut members = MemberFinder::new(Manner::Guessed);
            members.read(&bytes, &mut |_| Ok(())).unwrap();
            assert!(members.text.len() <= TEXT_BYTES_MAX && members.open.len() <= DEPTH_MAX);
        }
    }
}
