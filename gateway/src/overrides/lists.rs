//! Lists of requests in the values of forms: `batch=[{"method":…,"relative_url":…}]`, as
//! Facebook takes it in pairs and in parts. Each value with such a name is read as JSON, as
//! its bytes come. Keeps a bounded name; changes nothing.

use outgate_policy::{QueryKey, RequestTarget};

use super::asks::{Asks, InnerContent, InnerDepth, Judge, Refused, TOO_DEEP};
use super::batches::{Batches, LISTS, NotJson};
use super::pairs::{ends_pair, spells, text};
use super::words;

/// Bytes of a name that are looked at, at most: the last ones, since blanks before it count
/// for nothing.
const NAME_BYTES_MAX: usize = 256;

/// Bytes of a line of a part's head that are looked at, at most.
const LINE_BYTES_MAX: usize = 4096;

/// What the name of such a list holds.
const WORDS: [&[u8]; 4] = [b"batch", b"requests", b"operations", b"compositerequest"];

/// The names of such lists, as programs read them.
#[derive(Debug)]
struct Names(Vec<QueryKey>);

impl Names {
    fn new() -> Self {
        Self(LISTS.iter().map(|name| QueryKey::new(name)).collect())
    }

    fn hold(&self, name: &[u8]) -> bool {
        WORDS.iter().any(|word| spells(name, word)) && {
            let name = text(name);
            self.0.iter().any(|own| own.may_be(&name))
        }
    }
}

/// Has the lists of requests in a query read.
pub(super) fn in_query<B: InnerContent>(
    target: &RequestTarget,
    depth: InnerDepth,
    judge: Judge<'_>,
) -> Result<(), Refused> {
    let whole = target.as_str().as_bytes();
    let may_be = |word: &&[u8]| spells(whole, word);
    let may_be_json = whole.iter().any(|byte| b"[{%".contains(byte));
    if !may_be_json || !WORDS.iter().any(may_be) {
        return Ok(());
    }
    for name in Names::new().0 {
        for value in name.values_in(target) {
            if !value.trim_start().starts_with(['[', '{']) {
                continue;
            }
            let Some(below) = depth.below() else {
                return judge(Asks::Unread(TOO_DEEP));
            };
            Batches::<B>::new(NotJson::Unsaid, below).read(value.as_bytes(), judge)?;
        }
    }
    Ok(())
}

/// Finds them in a form of pairs.
#[derive(Debug)]
pub(super) struct PairLists<B> {
    names: Names,
    place: PairPlace<B>,
    depth: InnerDepth,
}

#[derive(Debug)]
enum PairPlace<B> {
    Name(Vec<u8>),
    /// In the value of another one.
    Other,
    Value(Box<Batches<B>>, Percent),
}

/// Where in an escape we are.
#[derive(Debug, Clone, Copy, Default)]
enum Percent {
    #[default]
    Nothing,
    Sign,
    High(u8),
}

impl<B: InnerContent> PairLists<B> {
    pub(super) fn new(depth: InnerDepth) -> Self {
        Self {
            names: Names::new(),
            place: PairPlace::Name(Vec::new()),
            depth,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            bytes = match &mut self.place {
                PairPlace::Name(name) => {
                    let ends = |byte: &u8| ends_pair(*byte) || *byte == b'=';
                    let (piece, end, rest) = divided(bytes, ends);
                    keep_last(name, piece);
                    match end {
                        Some(b'=') if self.names.hold(name) => {
                            let batches = Batches::new(NotJson::Unsaid, self.depth);
                            self.place = PairPlace::Value(Box::new(batches), Percent::Nothing);
                        }
                        Some(b'=') => self.place = PairPlace::Other,
                        Some(_) => name.clear(),
                        None => {}
                    }
                    rest
                }
                PairPlace::Other => {
                    let (_, end, rest) = divided(bytes, |byte| ends_pair(*byte));
                    if end.is_some() {
                        self.place = PairPlace::Name(Vec::new());
                    }
                    rest
                }
                PairPlace::Value(batches, percent) => {
                    let (piece, end, rest) = divided(bytes, |byte| ends_pair(*byte));
                    let plain = percent.decoded(piece);
                    batches.read(&plain, judge)?;
                    // Other borders of pairs may stand in JSON.
                    if let Some(end) = end.filter(|end| *end != b'&') {
                        batches.read(&[end], judge)?;
                    }
                    if end == Some(b'&') || (end.is_some() && batches.is_over()) {
                        self.place = PairPlace::Name(Vec::new());
                    } else if batches.is_over() {
                        self.place = PairPlace::Other;
                    }
                    rest
                }
            };
        }
        Ok(())
    }
}

/// Bytes up to one that ends something, that one, and what is behind it.
fn divided(bytes: &[u8], ends: impl Fn(&u8) -> bool) -> (&[u8], Option<u8>, &[u8]) {
    let at = bytes.iter().position(ends).unwrap_or(bytes.len());
    let (piece, rest) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    match rest.split_first() {
        Some((end, rest)) => (piece, Some(*end), rest),
        None => (piece, None, &[]),
    }
}

fn keep_last(name: &mut Vec<u8>, piece: &[u8]) {
    let begin = piece.len().saturating_sub(NAME_BYTES_MAX);
    name.extend_from_slice(piece.get(begin..).unwrap_or_default());
    let begin = name.len().saturating_sub(NAME_BYTES_MAX);
    name.drain(..begin);
}

impl Percent {
    /// What the next bytes of a value stand for.
    fn decoded(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let digit = char::from(*byte).to_digit(16);
            let digit = digit.and_then(|digit| u8::try_from(digit).ok());
            *self = match (*self, byte, digit) {
                (Self::Sign, _, Some(digit)) => Self::High(digit),
                (Self::High(high), _, Some(low)) => {
                    out.push(high << 4 | low);
                    Self::Nothing
                }
                (_, b'%', _) => Self::Sign,
                (_, b'+', _) => {
                    out.push(b' ');
                    Self::Nothing
                }
                _ => {
                    out.push(*byte);
                    Self::Nothing
                }
            };
        }
        out
    }
}

/// Finds them in the parts of multipart content, however their heads are written: what may
/// have such a name is read, and counts where it is such a list.
#[derive(Debug)]
pub(super) struct PartLists<B> {
    place: PartPlace<B>,
    /// The line that is not over.
    line: Vec<u8>,
    /// What ended the one before: LF behind CR ends no further one.
    ended: Option<u8>,
    depth: InnerDepth,
}

#[derive(Debug)]
enum PartPlace<B> {
    Around,
    Head(Named),
    /// The content of a part that may have such a name.
    Value(Box<Batches<B>>),
}

/// Whether a head may give its part such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    MayBe,
    Not,
}

impl<B: InnerContent> PartLists<B> {
    pub(super) fn new(depth: InnerDepth) -> Self {
        Self {
            place: PartPlace::Around,
            line: Vec::new(),
            ended: None,
            depth,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            let (piece, end, rest) = divided(bytes, |byte| matches!(byte, b'\r' | b'\n'));
            bytes = rest;
            let ended = std::mem::replace(&mut self.ended, end);
            if ended == Some(b'\r') && end == Some(b'\n') && piece.is_empty() {
                continue;
            }
            let is_new = self.line.len() < BORDER.len();
            let before = if is_new {
                self.line.clone()
            } else {
                Vec::new()
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(piece.get(..room).unwrap_or(piece));
            let may_be_border =
                self.line.starts_with(BORDER) || (end.is_none() && self.line.len() < BORDER.len());
            if let PartPlace::Value(batches) = &mut self.place
                && !may_be_border
            {
                // What is no list may be more of a head to some.
                if is_new && batches.is_over() {
                    **batches = Batches::new(NotJson::Unsaid, self.depth);
                }
                batches.read(&before, judge)?;
                batches.read(piece, judge)?;
                if end.is_some() {
                    batches.read(b"\n", judge)?;
                }
            }
            if end.is_some() {
                self.line_ends();
                self.line.clear();
            }
        }
        Ok(())
    }

    fn line_ends(&mut self) {
        if self.line.starts_with(BORDER) {
            self.place = PartPlace::Head(Named::Not);
            return;
        }
        let PartPlace::Head(named) = &mut self.place else {
            return;
        };
        let is_long = self.line.len() >= LINE_BYTES_MAX;
        if is_long || words::may_hold(&self.line, &WORDS) || words::may_be_spread(&self.line) {
            *named = Named::MayBe;
        }
        if self.line.trim_ascii().is_empty() {
            self.place = match named {
                Named::MayBe => {
                    PartPlace::Value(Box::new(Batches::new(NotJson::Unsaid, self.depth)))
                }
                Named::Not => PartPlace::Around,
            };
        }
    }
}

/// What every border of parts begins with.
const BORDER: &[u8] = b"--";

#[cfg(test)]
mod tests {
    use super::super::asks::told::Told;
    use super::*;

    /// What lists in these pieces ask for.
    fn found(content: &str, size: usize, read: &mut dyn FnMut(&[u8], Judge<'_>)) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            if let Asks::Item { method, target } = asks {
                found.push(format!("{method} {target}"));
            }
            Ok(())
        };
        for piece in content.as_bytes().chunks(size) {
            read(piece, &mut judge);
        }
        found
    }

    const LIST: &str = "[{\"method\":\"PUT\",\"url\":\"a\"}]";

    #[test]
    fn a_list_in_a_pair_is_read() {
        for (form, is_found) in [
            (format!("batch={LIST}"), true),
            (
                format!("a=1&%62atch[]=%5B{}&b=2", LIST.trim_start_matches('[')),
                true,
            ),
            (format!("a=1;+Requests={LIST}"), true),
            (format!("batch=1&batch={LIST}"), true),
            (format!("batch=1;batch={LIST}"), true),
            (format!("{}batch={LIST}", "+".repeat(1000)), true),
            (format!("note={LIST}"), false),
            (format!("batches={LIST}"), false),
            (format!("a=batch&b=={LIST}"), false),
        ] {
            for size in [1, 7, form.len()] {
                let mut lists = PairLists::<Told>::new(InnerDepth::default());
                let found = found(&form, size, &mut |piece, judge| {
                    lists.read(piece, judge).unwrap();
                });
                assert_eq!(!found.is_empty(), is_found, "{form} by {size}");
            }
        }
    }

    #[test]
    fn a_list_in_a_part_is_read_however_its_head_is_written() {
        let named = "Content-Disposition: form-data; name=\"batch\"";
        for (head, value, is_found) in [
            (named, LIST, true),
            ("content-disposition: a; name*=utf-8''b%61tch", LIST, true),
            (
                "Content-Disposition: a; name=\"=?utf-8?B?YmF0Y2g=?=\"",
                LIST,
                true,
            ),
            ("Content-Disposition: a; name*0=ba; name*1=tch", LIST, true),
            (&format!("X: y\r\n{named}\r\nZ: z"), LIST, true),
            (&format!("{named}\r\n \r\nZ: z"), LIST, true),
            (&format!("X: {}\r\nZ: z", "y".repeat(9000)), LIST, true),
            (
                named,
                "\r\n[\r\n{\"url\":\"a\",\r\n\"method\":\"PUT\"}]",
                true,
            ),
            ("Content-Disposition: a; name=\"note\"", LIST, false),
            (named, "batch", false),
        ] {
            for border in ["--b\r\n", "--b\n", "x\r\n--b\r\n\r\n--\r\n--b\r\n"] {
                let content = format!("{border}{head}\r\n\r\n{value}\r\n--b--\r\n");
                for size in [1, 2, 7, content.len()] {
                    let mut lists = PartLists::<Told>::new(InnerDepth::default());
                    let found = found(&content, size, &mut |piece, judge| {
                        lists.read(piece, judge).unwrap();
                        assert!(lists.line.len() <= LINE_BYTES_MAX);
                    });
                    assert_eq!(!found.is_empty(), is_found, "{content} by {size}");
                }
            }
        }
    }

    #[test]
    fn a_list_in_a_query_is_read() {
        for (target, is_found) in [
            (format!("/x?a=1&batch={LIST}"), true),
            (
                "/x?batch=%5B%7B%22method%22%3A%22PUT%22%2C%22url%22%3A%22a%22%7D%5D".to_owned(),
                true,
            ),
            (format!("/x?batch[]={LIST}"), true),
            (format!("/x?note={LIST}"), false),
            ("/x?batch=1".to_owned(), false),
        ] {
            let target = target.replace('"', "%22");
            let parsed = RequestTarget::parse(&target).expect("a target");
            let found = found("x", 1, &mut |_, judge| {
                in_query::<Told>(&parsed, InnerDepth::default(), judge).unwrap();
            });
            assert_eq!(!found.is_empty(), is_found, "{target}");
        }
    }
}
