//! `_method` in queries and forms: many frameworks take its value for the method of
//! a POST. Where rules tell methods apart, it is judged as the request it asks for.
//! A form that was read whole before it is sent is judged by its values; one that
//! goes on as it comes ends with the first such key. Reads; changes nothing.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::CONTENT_TYPE;
use http::{Method, request};
use outgate_policy::QueryKey;

use crate::admit;
use crate::audit::Kind;
use crate::budget::Slot;
use crate::flow::Flow;
use crate::refusal::Refusal;
use crate::target::Target;

/// The key, as Rails, Laravel, Symfony and the middleware of Express have it.
const KEY: &str = "_method";

/// Bytes of one pair or one line of a form that are looked at, at most.
const PIECE_BYTES_MAX: usize = 4096;

/// Methods that rules may tell from each other, and one that no rule names.
const METHODS: [&str; 7] = ["PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS", "OTHER"];

/// Why a request asks for another method than the one that was judged.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_query(flow: &Flow, target: &Target) -> Result<(), Refusal> {
    let Some((_, query)) = target.resource.as_str().split_once('?') else {
        return Ok(());
    };
    // All spellings of the key have a sign of these.
    let is_coded = query
        .bytes()
        .any(|byte| matches!(byte, b'%' | b'#') || !byte.is_ascii());
    if !is_coded && !query.to_ascii_lowercase().contains("method") {
        return Ok(());
    }
    for value in QueryKey::new(KEY).values(query) {
        check(flow, target, &value).map_err(|asked| refusal(flow, target, "query", &asked))?;
    }
    Ok(())
}

/// Whether the rules allow the request by this method as well.
///
/// # Errors
/// What it asks for.
fn check(flow: &Flow, target: &Target, value: &str) -> Result<(), String> {
    let method = value.to_ascii_uppercase();
    let is_token = method.len() <= 16 && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_token {
        let matters = tells_methods_apart(flow, target);
        let what = || "something that is no method".to_owned();
        return if matters { Err(what()) } else { Ok(()) };
    }
    let is_same = method == target.method.as_str();
    if is_same || admit::would_allow(flow.session(), flow.process(), target, &method) {
        return Ok(());
    }
    Err(method)
}

/// Whether it matters by which method the request is made.
fn tells_methods_apart(flow: &Flow, target: &Target) -> bool {
    let (session, process) = (flow.session(), flow.process());
    let mut methods = METHODS.iter();
    methods.any(|method| !admit::would_allow(session, process, target, method))
}

/// Records and tells why.
fn refusal(flow: &Flow, target: &Target, place: &str, asked: &str) -> Refusal {
    let subject = format!("{} {}", target.method, target.origin());
    let because = format!("`{KEY}` in the {place} asks for {asked}, which the rules do not allow");
    let refusal = Refusal::own("override", &subject, &because);
    let (session, process) = (flow.session(), flow.process());
    admit::refused(session, Kind::Request, process, &target.origin(), &refusal);
    refusal
}

/// How a form is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// `application/x-www-form-urlencoded`.
    Pairs,
    /// `multipart/form-data` (RFC 7578).
    Parts,
}

/// When a form is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// Piece by piece, as it comes.
    AsItComes,
    /// Once all of it was read.
    AtTheEnd,
}

/// A form whose keys are looked at on its way.
pub(crate) struct Form {
    flow: Arc<Flow>,
    target: Target,
    reader: Reader,
    slot: Slot,
}

impl fmt::Debug for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Form").finish_non_exhaustive()
    }
}

/// A form asks for another method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the form asks for another method than the request")]
pub(crate) struct Overridden;

impl Form {
    /// The content of this request, if it is a form by which a method could change
    /// and if that matters.
    pub(crate) fn of(flow: &Arc<Flow>, target: &Target, head: &request::Parts) -> Option<Self> {
        if target.method != Method::POST {
            return None;
        }
        let kind = head
            .headers
            .get(CONTENT_TYPE)?
            .as_bytes()
            .to_ascii_lowercase();
        let kind = kind.trim_ascii_start();
        let written = if kind.starts_with(b"application/x-www-form-urlencoded") {
            Written::Pairs
        } else if kind.starts_with(b"multipart/") {
            Written::Parts
        } else {
            return None;
        };
        tells_methods_apart(flow, target).then(|| Self {
            flow: Arc::clone(flow),
            target: target.clone(),
            reader: Reader::new(written),
            slot: Arc::new(Mutex::default()),
        })
    }

    /// The same of one that is read whole before anything is sent.
    pub(crate) fn hold(&mut self) {
        self.reader.sent = Sent::AtTheEnd;
    }

    /// Where it will be said why it ended.
    pub(crate) fn slot(&self) -> Slot {
        Arc::clone(&self.slot)
    }

    /// Looks at the next bytes, which may only go on then.
    ///
    /// # Errors
    /// They ask for another method.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Overridden> {
        let (flow, target) = (&self.flow, &self.target);
        let read = self
            .reader
            .read(bytes, &mut |value| check(flow, target, value));
        self.said(read)
    }

    /// The end.
    ///
    /// # Errors
    /// What was left asks for another method.
    pub(crate) fn finish(&mut self) -> Result<(), Overridden> {
        let (flow, target) = (&self.flow, &self.target);
        let read = self.reader.finish(&mut |value| check(flow, target, value));
        self.said(read)
    }

    fn said(&self, read: Result<(), String>) -> Result<(), Overridden> {
        let Err(asked) = read else {
            return Ok(());
        };
        let refusal = refusal(&self.flow, &self.target, "form", &asked);
        self.flow.session().tell(&refusal);
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(refusal);
        }
        Err(Overridden)
    }
}

/// Whether a value may stand there.
type Judge<'j> = &'j mut dyn FnMut(&str) -> Result<(), String>;

/// Finds the key in bytes as they come.
#[derive(Debug)]
struct Reader {
    key: QueryKey,
    written: Written,
    sent: Sent,
    /// The pair, or the line, that is not over.
    piece: Vec<u8>,
    /// The rest of it says nothing.
    skips: bool,
    /// What was said of a part in the lines before.
    part: Part,
}

/// Where in a part of a multipart form we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    /// Its name is the key: what stands behind the empty line is the value.
    Named,
    Value,
}

impl Reader {
    fn new(written: Written) -> Self {
        Self {
            key: QueryKey::new(KEY),
            written,
            sent: Sent::AsItComes,
            piece: Vec::new(),
            skips: false,
            part: Part::Any,
        }
    }

    fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), String> {
        let ends: &[u8] = match self.written {
            Written::Pairs => b"&;?\r\n",
            Written::Parts => b"\n",
        };
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| ends.contains(byte));
            let (content, rest) = bytes
                .split_at_checked(end.unwrap_or(bytes.len()))
                .unwrap_or_default();
            if !self.skips {
                let room = PIECE_BYTES_MAX.saturating_sub(self.piece.len());
                self.piece
                    .extend_from_slice(content.get(..room).unwrap_or(content));
                if content.len() > room {
                    self.too_long(judge)?;
                }
            }
            if end.is_some() {
                self.piece_ends(judge)?;
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        match self.sent {
            Sent::AtTheEnd => Ok(()),
            Sent::AsItComes => self.goes_on(judge),
        }
    }

    fn finish(&mut self, judge: Judge<'_>) -> Result<(), String> {
        self.piece_ends(judge)
    }

    /// A pair or a line is over.
    fn piece_ends(&mut self, judge: Judge<'_>) -> Result<(), String> {
        let skipped = std::mem::take(&mut self.skips);
        let piece = text(&self.piece);
        self.piece.clear();
        if skipped {
            return Ok(());
        }
        match (self.written, self.part) {
            (Written::Pairs, _) => self
                .key
                .values(&piece)
                .iter()
                .try_for_each(|value| self.judged(value, judge)),
            (Written::Parts, Part::Value) => {
                self.part = Part::Any;
                self.judged(piece.trim(), judge)
            }
            (Written::Parts, Part::Named) if piece.trim().is_empty() => {
                self.part = Part::Value;
                Ok(())
            }
            (Written::Parts, _) => {
                if self.is_name(&piece) {
                    self.part = Part::Named;
                }
                Ok(())
            }
        }
    }

    /// What goes on now must not be the beginning of a value.
    fn goes_on(&mut self, judge: Judge<'_>) -> Result<(), String> {
        let is_begun = match (self.written, self.part) {
            (Written::Pairs, _) => !self.skips && !self.key.values(&text(&self.piece)).is_empty(),
            (Written::Parts, Part::Any) => self.is_name(&text(&self.piece)),
            (Written::Parts, Part::Named | Part::Value) => true,
        };
        if is_begun {
            judge("a value to come")
        } else {
            Ok(())
        }
    }

    /// A piece is longer than what is looked at.
    fn too_long(&mut self, judge: Judge<'_>) -> Result<(), String> {
        self.skips = true;
        let piece = text(&self.piece);
        let may_be = match (self.written, self.part) {
            (Written::Pairs, _) => match piece.split_once('=') {
                Some(_) => !self.key.values(&piece).is_empty(),
                None => self.key.may_begin(&piece),
            },
            (Written::Parts, Part::Value) => true,
            (Written::Parts, _) => self.is_name(&piece),
        };
        if may_be {
            judge("a value without end")
        } else {
            Ok(())
        }
    }

    fn judged(&self, value: &str, judge: Judge<'_>) -> Result<(), String> {
        match self.sent {
            _ if value.is_empty() => Ok(()),
            Sent::AtTheEnd => judge(value),
            // Some of it may be on its way.
            Sent::AsItComes => judge("a value on its way"),
        }
    }

    /// Whether a line of a part's head names the key: in quotes or without, coded as
    /// browsers and RFC 8187 have it.
    fn is_name(&self, line: &str) -> bool {
        let line = line.replace('\\', "");
        // A folded line may hold the name alone (RFC 5322 2.2.3).
        let is_head = line.starts_with([' ', '\t'])
            || line
                .trim_start()
                .get(..7)
                .is_some_and(|begin| begin.eq_ignore_ascii_case("content"));
        let is_border = |character: char| {
            matches!(character, '"' | '\'' | ';' | '=' | ',') || character.is_whitespace()
        };
        is_head
            && line
                .split(is_border)
                .any(|word| !word.is_empty() && self.key.may_be(word))
    }
}

/// Bytes as a reader of keys takes them: what is not ASCII is written as forms do.
fn text(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii() {
            text.push(char::from(*byte));
        } else {
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a form where PUT and POST are allowed.
    fn verdict(written: Written, sent: Sent, pieces: &[&[u8]]) -> Result<(), String> {
        let mut judge = |value: &str| match value {
            "put" | "PUT" | "post" => Ok(()),
            other => Err(other.to_owned()),
        };
        let mut reader = Reader::new(written);
        reader.sent = sent;
        for piece in pieces {
            reader.read(piece, &mut judge)?;
        }
        reader.finish(&mut judge)
    }

    const PART: &str = "--b\r\nContent-Disposition: form-data; name=NAME\r\n\r\nVALUE\r\n--b--\r\n";

    #[test]
    fn a_form_is_judged_by_its_key_however_it_comes() {
        use Written::{Pairs, Parts};
        let part = |name: &str, value: &str| PART.replace("NAME", name).replace("VALUE", value);
        let long = format!("a={}&_method=delete", "x".repeat(3 * PIECE_BYTES_MAX));
        let blank = format!("{}_method=delete", "+".repeat(2 * PIECE_BYTES_MAX));
        for (written, form, held, sent) in [
            (Pairs, "a=1&b=2", true, true),
            (Pairs, "_method=put&a=1", true, false),
            (Pairs, "a=1&_method=delete", false, false),
            (Pairs, "a=1&_METHOD=DELETE&b=2", false, false),
            (Pairs, "%5fmethod=delete", false, false),
            (Pairs, ".method=delete", false, false),
            (Pairs, "a=1;_method=delete", false, false),
            (Pairs, "_method=&a=1", true, true),
            (Pairs, "{\"_method\":\"delete\"}", true, true),
            (Pairs, &long, false, false),
            (Pairs, &blank, false, false),
            (Parts, &part("\"a\"", "delete"), true, true),
            (Parts, &part("\"_method\"", "put"), true, false),
            (Parts, &part("\"_method\"", "delete"), false, false),
            (Parts, &part("_method", "delete"), false, false),
            (Parts, &part("\"_Met\\hod\"", "delete"), false, false),
            (
                Parts,
                &part("a; name*=utf-8''%5Fmethod", "delete"),
                false,
                false,
            ),
            (Parts, &part("\r\n \"_method\"", "delete"), false, false),
            (Parts, &part("\"a\"", "_method=delete"), true, true),
        ] {
            let bytes = form.as_bytes();
            for size in [1, 2, 7, 64, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                let place = format!("{form} in pieces of {size}");
                let found = verdict(written, Sent::AtTheEnd, &pieces).is_ok();
                assert_eq!(found, held, "held: {place}");
                let found = verdict(written, Sent::AsItComes, &pieces).is_ok();
                assert_eq!(found, sent, "as it comes: {place}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_is_bounded(pieces in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..3000), 0..6,
        )) {
            for written in [Written::Pairs, Written::Parts] {
                let mut reader = Reader::new(written);
                for piece in &pieces {
                    if reader.read(piece, &mut |_| Ok(())).is_err() {
                        break;
                    }
                    assert!(reader.piece.len() <= PIECE_BYTES_MAX);
                }
            }
        }
    }
}
