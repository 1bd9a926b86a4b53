//! The content of requests that stand in the parts of another one, up to the border of its
//! part (RFC 2046 5.1): whose line every program takes for one, since content goes on behind
//! what only some do. Keeps the beginning of a line; changes nothing.

use super::asks::{Asks, InnerContent, InnerHead, InnerPlace, Judge, Refused, TOO_DEEP};

/// Borders within each other, at most: of a batch, and of the sets of changes in it.
const BORDERS_MAX: usize = 4;

/// Contents that are open at once, at most, where nothing says where the first ends.
const OPEN_MAX: usize = 2;

/// Blanks behind a border, at most.
const BLANKS_MAX: usize = 64;

/// Finds where contents end, and has them read.
#[derive(Debug)]
pub(super) struct Bodies<B> {
    open: Vec<InnerBody<B>>,
    /// What stands before each part, outermost first.
    borders: Vec<Vec<u8>>,
    /// The beginning of a line that may be a border.
    line: Vec<u8>,
    place: LinePlace,
    /// The byte before the next.
    before: Option<u8>,
    ends: LineEnds,
}

/// The content of one request.
#[derive(Debug)]
struct InnerBody<B> {
    method: String,
    target: String,
    content: B,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePlace {
    /// Where a border may stand.
    Begin,
    Within,
}

/// How the lines end that hold a border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Unknown,
    CrLf,
    Lf,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BorderLine {
    No,
    /// It may become one.
    Begins,
    /// One of these borders, before a part or behind the last.
    Is(usize, BorderKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BorderKind {
    Before,
    Last,
}

impl<B: InnerContent> Bodies<B> {
    pub(super) fn new(boundary: Option<&[u8]>) -> Self {
        Self {
            open: Vec::new(),
            borders: boundary.map(border).into_iter().collect(),
            line: Vec::new(),
            place: LinePlace::Begin,
            before: None,
            ends: LineEnds::Unknown,
        }
    }

    /// A part has parts of its own.
    pub(super) fn nests(&mut self, boundary: &[u8]) {
        if self.borders.len() < BORDERS_MAX {
            self.borders.push(border(boundary));
        }
    }

    /// The head of a request is over.
    pub(super) fn begins(
        &mut self,
        head: &InnerHead,
        content: B,
        judge: Judge<'_>,
    ) -> Result<(), Refused> {
        // What may begin another request within the content of one is that content as well,
        // and is read as such. Without parts requests follow each other (RFC 9112 10.2).
        if !self.open.is_empty() && !self.borders.is_empty() {
            return Ok(());
        }
        if self.open.len() >= OPEN_MAX {
            return judge(Asks::Unread(TOO_DEEP));
        }
        self.open.push(InnerBody {
            method: head.method.clone(),
            target: head.target.clone(),
            content,
        });
        Ok(())
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while let Some((byte, rest)) = bytes.split_first() {
            let is_none = self.line.is_empty() && *byte != b'-';
            if self.place == LinePlace::Within || is_none {
                let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
                let (piece, rest) = bytes.split_at_checked(end).unwrap_or_default();
                self.given(piece, judge)?;
                bytes = rest;
                continue;
            }
            self.line.push(*byte);
            bytes = rest;
            match self.border_line() {
                BorderLine::Begins => {}
                BorderLine::No => {
                    let line = std::mem::take(&mut self.line);
                    self.given(&line, judge)?;
                }
                BorderLine::Is(at, kind) => self.border_is(at, kind, judge)?,
            }
        }
        Ok(())
    }

    /// The end.
    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let line = self.line.clone();
        self.line.extend_from_slice(b"\r\n");
        if !matches!(self.border_line(), BorderLine::Is(..)) {
            self.given(&line, judge)?;
        }
        self.line.clear();
        self.end(judge)
    }

    /// Bytes that are no border.
    fn given(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let before = match bytes {
            [.., before, _] => Some(*before),
            _ => self.before,
        };
        self.before = bytes.last().copied().or(self.before);
        let may_begin = self.ends != LineEnds::CrLf || before == Some(b'\r');
        self.place = if self.before == Some(b'\n') && may_begin {
            LinePlace::Begin
        } else {
            LinePlace::Within
        };
        self.each(judge, |content, judge| content.read(bytes, judge))
    }

    /// A border is there: what was open is over.
    fn border_is(&mut self, at: usize, kind: BorderKind, judge: Judge<'_>) -> Result<(), Refused> {
        let line = std::mem::take(&mut self.line);
        if self.ends == LineEnds::Unknown {
            self.ends = if line.ends_with(b"\r\n") {
                LineEnds::CrLf
            } else {
                LineEnds::Lf
            };
        }
        self.before = Some(b'\n');
        self.borders.truncate(match kind {
            BorderKind::Before => at + 1,
            BorderKind::Last => at.max(1),
        });
        self.end(judge)
    }

    fn end(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.each(judge, |content, judge| content.finish(judge))?;
        self.open.clear();
        Ok(())
    }

    fn each(
        &mut self,
        judge: Judge<'_>,
        read: impl Fn(&mut B, Judge<'_>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.open.iter_mut().try_for_each(|body| {
            let InnerBody {
                method,
                target,
                content,
            } = body;
            let mut within = |asks: Asks<'_>| {
                judge(Asks::Within {
                    by: InnerPlace::Part,
                    method,
                    target,
                    asks: &asks,
                })
            };
            read(content, &mut within)
        })
    }

    /// What the line is so far.
    fn border_line(&self) -> BorderLine {
        let mut found = BorderLine::No;
        for (at, border) in self.borders.iter().enumerate() {
            if border.starts_with(&self.line) {
                found = BorderLine::Begins;
            }
            match self.line.strip_prefix(border.as_slice()).map(behind) {
                Some(Behind::Nothing(end)) if !self.is_other(end) => {
                    return BorderLine::Is(at, BorderKind::Before);
                }
                Some(Behind::Last(end)) if !self.is_other(end) => {
                    return BorderLine::Is(at, BorderKind::Last);
                }
                Some(Behind::Begins) => found = BorderLine::Begins,
                Some(Behind::Nothing(_) | Behind::Last(_) | Behind::More) | None => {}
            }
        }
        found
    }

    /// Whether a line ends otherwise than those with borders do.
    fn is_other(&self, end: LineEnds) -> bool {
        self.ends == LineEnds::CrLf && end != LineEnds::CrLf
    }
}

/// What stands before each part with this boundary.
fn border(boundary: &[u8]) -> Vec<u8> {
    [b"--", boundary].concat()
}

/// What stands behind a border.
enum Behind {
    /// It may go on.
    Begins,
    Nothing(LineEnds),
    /// The two hyphens of the last one.
    Last(LineEnds),
    More,
}

fn behind(rest: &[u8]) -> Behind {
    let (text, end) = match rest {
        [text @ .., b'\r', b'\n'] => (text, Some(LineEnds::CrLf)),
        [text @ .., b'\n'] => (text, Some(LineEnds::Lf)),
        [text @ .., b'\r'] => (text, None),
        _ => (rest, None),
    };
    let is_blank = |text: &[u8]| {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        text.len() <= BLANKS_MAX && text.iter().all(blank)
    };
    let last = text.strip_prefix(b"--").filter(|text| is_blank(text));
    match (end, last) {
        (Some(end), Some(_)) => Behind::Last(end),
        (Some(end), None) if is_blank(text) => Behind::Nothing(end),
        (None, Some(_)) => Behind::Begins,
        (None, None) if is_blank(text) || rest == b"-" => Behind::Begins,
        (Some(_) | None, None) => Behind::More,
    }
}

#[cfg(test)]
mod tests {
    use super::super::asks::told::Told;
    use super::*;

    /// The content behind the first line, which is a border, up to where it ends.
    fn content(text: &str, size: usize) -> String {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            if let Asks::Within {
                asks: Asks::Named { value, .. },
                ..
            } = asks
            {
                found.push((*value).to_owned());
            }
            Ok(())
        };
        let mut bodies = Bodies::new(Some(b"b"));
        let begin = text.find('\n').expect("a line") + 1;
        let (first, rest) = text.as_bytes().split_at(begin);
        bodies.read(first, &mut judge).unwrap();
        let head = InnerHead::default();
        bodies.begins(&head, Told::default(), &mut judge).unwrap();
        for piece in rest.chunks(size) {
            bodies.read(piece, &mut judge).unwrap();
        }
        bodies.finish(&mut judge).unwrap();
        found.remove(0)
    }

    #[test]
    fn content_goes_on_up_to_what_is_a_border_to_everybody() {
        for (text, wanted) in [
            ("--b\r\na\r\n--b\r\nx", "a\r\n"),
            ("--b\r\na\r\n--b--", "a\r\n"),
            ("--b\r\na\r\n--b-- \t\r\nx", "a\r\n"),
            ("--b\na\n--b\nx", "a\n"),
            ("--b\na\r\n--b\r\nx", "a\r\n"),
            ("--b\r\n--b\r\n", ""),
            ("--b\r\na", "a"),
            ("--b\r\na\r\n--", "a\r\n--"),
            // What is none to some.
            ("--b\r\na\n--b\r\nx\r\n--b", "a\n--b\r\nx\r\n"),
            ("--b\r\na\r\n--b\nx\r\n--b", "a\r\n--b\nx\r\n"),
            ("--b\r\na\r--b\rx", "a\r--b\rx"),
            ("--b\r\na\r\n--bb\r\nx", "a\r\n--bb\r\nx"),
            ("--b\r\na\r\n--b-\r\nx", "a\r\n--b-\r\nx"),
            ("--b\r\na\r\n--b--x\r\n", "a\r\n--b--x\r\n"),
            ("--b\r\na --b\r\nx", "a --b\r\nx"),
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(content(text, size), wanted, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_border_within_counts_up_to_that_around_it() {
        let mut bodies = Bodies::<Told>::new(Some(b"b"));
        let mut judge = |_: Asks<'_>| Ok(());
        let borders = |bodies: &Bodies<Told>| bodies.borders.len();
        bodies.read(b"--b\r\n", &mut judge).unwrap();
        bodies.nests(b"c");
        bodies.read(b"--c\r\nx\r\n--c\r\n", &mut judge).unwrap();
        assert_eq!(borders(&bodies), 2);
        bodies.read(b"--c--\r\n", &mut judge).unwrap();
        assert_eq!(borders(&bodies), 1);
        bodies.nests(b"c");
        bodies.read(b"--b\r\n", &mut judge).unwrap();
        assert_eq!(borders(&bodies), 1);
        (0..9).for_each(|_| bodies.nests(b"d"));
        assert_eq!(borders(&bodies), BORDERS_MAX);
    }

    #[test]
    fn few_contents_are_open_at_once() {
        let head = InnerHead::default();
        let mut judge = |asks: Asks<'_>| match asks {
            Asks::Unread(TOO_DEEP) => Err(Refused),
            _ => Ok(()),
        };
        let mut bodies = Bodies::new(None);
        for is_open in [true, true, false] {
            let begun = bodies.begins(&head, Told::default(), &mut judge);
            assert_eq!(begun.is_ok(), is_open);
        }
        let mut bodies = Bodies::new(Some(b"b"));
        for _ in 0..3 {
            let begun = bodies.begins(&head, Told::default(), &mut judge);
            assert!(begun.is_ok() && bodies.open.len() == 1);
        }
    }
}
