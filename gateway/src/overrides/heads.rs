//! The heads of the parts of multipart content (RFC 2046 5.1), as its bytes come: each of
//! them is one that every program reads alike, or the content is refused, since programs
//! find names in what others take for a value. A head may begin wherever the boundary
//! stands. Keeps one line; changes nothing.

use memchr::memmem;

use super::asks::{Asks, Judge, Refused};
use super::disposition;

/// Bytes of a line of a head, at most.
const LINE_BYTES_MAX: usize = 4096;

/// Lines of a head, at most.
const LINES_MAX: usize = 64;

/// Names of fields that give a part its name: RFC 7578 4.2, and what Rack takes for it.
const NAMING: [&str; 2] = ["content-disposition", "content-id"];

/// What each content must be that does not say how it is split.
const UNSPLIT: &str = "parts without a boundary that all find";

/// What no boundary is followed by.
const UNENDED: &str = "a boundary that goes on";

/// Checks the heads in bytes as they come.
#[derive(Debug)]
pub(super) struct Heads {
    /// What stands before each part: the boundary behind two hyphens. None where not every
    /// program finds the same.
    delimiter: Option<Vec<u8>>,
    place: Place,
    /// The line of a head that is not over.
    line: Vec<u8>,
    /// Bytes outside of heads that may begin something that is looked for.
    tail: Vec<u8>,
    /// The byte before those.
    before: Option<u8>,
}

/// Where we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first part, or behind the last one.
    Around,
    /// Behind a boundary.
    Delimiter,
    Head(Head),
    Value(End),
}

/// What was seen of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    end: End,
    lines: usize,
    named: Named,
}

/// Whether a head had its content-disposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Already,
    NotYet,
}

/// What ends the lines of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    CrLf,
    /// Some clients write that; to some programs the head goes on in the value then.
    Lf,
}

/// Why content cannot be read.
type Unread = &'static str;

impl Heads {
    pub(super) fn new(boundary: Option<&[u8]>) -> Self {
        Self {
            delimiter: boundary.map(|boundary| [b"--", boundary].concat()),
            place: Place::Around,
            line: Vec::new(),
            tail: Vec::new(),
            before: None,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        self.checked(bytes)
            .or_else(|what| judge(Asks::Unread(what)))
    }

    /// The end. What is left of a head has no value behind it.
    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let left = std::mem::take(&mut self.tail);
        let goes_on =
            self.place == Place::Delimiter && !matches!(self.line.trim_ascii(), b"" | b"-" | b"--");
        let end = if goes_on { Err(UNENDED) } else { Ok(()) };
        let end = end.and_then(|()| self.outside(&left));
        end.or_else(|what| judge(Asks::Unread(what)))
    }

    fn checked(&mut self, bytes: &[u8]) -> Result<(), Unread> {
        let Some(delimiter) = self.delimiter.clone() else {
            return if bytes.is_empty() {
                Ok(())
            } else {
                Err(UNSPLIT)
            };
        };
        let mut window = std::mem::take(&mut self.tail);
        window.extend_from_slice(bytes);
        let mut rest = window.as_slice();
        while !rest.is_empty() {
            rest = match self.place {
                Place::Around | Place::Value(_) => self.up_to_head(rest, &delimiter)?,
                Place::Delimiter | Place::Head(_) => self.up_to_line(rest)?,
            };
        }
        Ok(())
    }

    /// Passes over what is no head; what is left of the bytes.
    fn up_to_head<'b>(&mut self, bytes: &'b [u8], delimiter: &[u8]) -> Result<&'b [u8], Unread> {
        let Some(at) = memmem::find(bytes, delimiter) else {
            let longest = NAMING.iter().map(|name| name.len()).max();
            let kept = delimiter.len().max(longest.unwrap_or_default()) - 1;
            let at = bytes.len().saturating_sub(kept);
            let (over, tail) = bytes.split_at_checked(at).unwrap_or_default();
            self.looked_at(over, bytes)?;
            self.tail = tail.to_vec();
            return Ok(&[]);
        };
        let (over, rest) = bytes.split_at_checked(at).unwrap_or_default();
        self.looked_at(over, over)?;
        if !matches!(self.before, None | Some(b'\n')) {
            return Err("a boundary within a line");
        }
        self.place = Place::Delimiter;
        self.line.clear();
        Ok(rest.get(delimiter.len()..).unwrap_or_default())
    }

    /// Bytes outside of heads are over. What is looked for in them may end in those behind.
    fn looked_at(&mut self, over: &[u8], with_rest: &[u8]) -> Result<(), Unread> {
        self.outside(with_rest)?;
        self.before = over.last().copied().or(self.before);
        Ok(())
    }

    /// Whether bytes outside of heads are none to anybody.
    fn outside(&self, bytes: &[u8]) -> Result<(), Unread> {
        match self.place {
            // To some what stands before the first boundary is a part as well.
            Place::Around if memchr::memchr(b'=', bytes).is_some() => {
                Err("something outside of its parts")
            }
            Place::Value(End::Lf) if holds_naming(bytes) => {
                Err("a part whose head goes on for some")
            }
            Place::Around | Place::Value(_) | Place::Delimiter | Place::Head(_) => Ok(()),
        }
    }

    /// Takes bytes up to the end of a line; what is left of them.
    fn up_to_line<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Unread> {
        let end = memchr::memchr(b'\n', bytes);
        let end = end.map_or(bytes.len(), |at| at + 1);
        let (piece, rest) = bytes.split_at_checked(end).unwrap_or_default();
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err("a line of a part's head without end");
        }
        self.line.extend_from_slice(piece);
        if self.line.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            self.line_is(&line)?;
        }
        Ok(rest)
    }
    /// A line of a head, or what stands behind a boundary, with its end.
    fn line_is(&mut self, line: &[u8]) -> Result<(), Unread> {
        self.before = Some(b'\n');
        let Place::Head(head) = self.place else {
            self.place = match (line, line.strip_prefix(b"--")) {
                (b"\r\n", _) => Place::Head(Head::new(End::CrLf)),
                (b"\n", _) => Place::Head(Head::new(End::Lf)),
                (_, Some(rest)) if rest.trim_ascii().is_empty() => Place::Around,
                _ => return Err(UNENDED),
            };
            return Ok(());
        };
        let content = match head.end {
            End::CrLf => line.strip_suffix(b"\r\n"),
            End::Lf => line.strip_suffix(b"\n"),
        };
        let content = content.ok_or("lines that end for some")?;
        if content.is_empty() {
            self.place = Place::Value(head.end);
            return Ok(());
        }
        self.place = Place::Head(head.and(content)?);
        Ok(())
    }
}

impl Head {
    fn new(end: End) -> Self {
        Self {
            end,
            lines: 0,
            named: Named::NotYet,
        }
    }

    /// The same with one more line: a field as RFC 5322 2.2 has it, on one line.
    fn and(self, line: &[u8]) -> Result<Self, Unread> {
        const STRAY: &str = "a line of a part's head that is none to some";
        let lines = self.lines + 1;
        let colon = memchr::memchr(b':', line).ok_or(STRAY)?;
        let (name, value) = line.split_at_checked(colon).ok_or(STRAY)?;
        let is_plain = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
        let is_token = !name.is_empty() && name.iter().copied().all(disposition::is_of_token);
        if lines > LINES_MAX || !is_token || !value.iter().all(is_plain) {
            return Err(STRAY);
        }
        let lower = line.to_ascii_lowercase();
        let is_own = |naming: &str| name.eq_ignore_ascii_case(naming.as_bytes());
        if NAMING
            .iter()
            .any(|naming| names(&lower, naming) != usize::from(is_own(naming)))
        {
            return Err("a part's name where only some see it");
        }
        let is_disposition = NAMING.first().is_some_and(|naming| is_own(naming));
        if !is_disposition {
            return Ok(Self { lines, ..self });
        }
        if self.named == Named::Already {
            return Err("a part with two names");
        }
        disposition::check(value.get(1..).unwrap_or_default())?;
        let named = Named::Already;
        Ok(Self {
            lines,
            named,
            ..self
        })
    }
}

/// How often a line in lower case has the name of such a field, with its colon.
fn names(line: &[u8], naming: &str) -> usize {
    let at = memmem::find_iter(line, naming);
    let ends = at.filter_map(|at| line.get(at + naming.len()..));
    ends.filter(|rest| rest.trim_ascii_start().starts_with(b":"))
        .count()
}

/// Whether bytes hold the name of a field that gives a part its name.
fn holds_naming(bytes: &[u8]) -> bool {
    let mut begins = memchr::memchr2_iter(b'c', b'C', bytes);
    begins.any(|at| {
        let rest = bytes.get(at..).unwrap_or_default();
        let is_there = |naming: &&str| {
            rest.get(..naming.len())
                .is_some_and(|word| word.eq_ignore_ascii_case(naming.as_bytes()))
        };
        NAMING.iter().any(is_there)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether content can be read, in pieces of every size.
    fn check(content: &str, wanted: Result<(), Refused>) {
        for size in [1, 2, 7, 64, 4096, content.len()] {
            let mut judge = |_: Asks<'_>| Err(Refused);
            let mut heads = Heads::new(Some(b"b"));
            let mut pieces = content.as_bytes().chunks(size.max(1));
            let read = pieces.try_for_each(|piece| heads.read(piece, &mut judge));
            let read = read.and_then(|()| heads.finish(&mut judge));
            assert_eq!(read, wanted, "{content} in pieces of {size}");
            assert!(heads.line.len() <= LINE_BYTES_MAX && heads.tail.len() < 64);
        }
    }

    fn part(head: &str) -> String {
        format!("--b\r\n{head}\r\n\r\nDELETE\r\n--b--\r\n")
    }

    #[test]
    fn what_clients_write_can_be_read() {
        const NAMED: &str = "Content-Disposition: form-data; name=";
        for head in [
            "\"a\"",
            "a",
            "\"a\"; filename=\"b.txt\"\r\nContent-Type: text/plain",
            "\"\u{e4} b\"; filename=\"\u{fc} (1).txt\"",
            "a; filename=b.txt; filename*=utf-8''b%20c.txt",
            "a; filename=\"=?utf-8?B?w6RhLnR4dA==?=\"; filename*=utf-8''%C3%A4a.txt",
            "\"a\\\"b\"; filename=\"c\\\\d\\\"e\"",
            "\"a%22b\"; filename=\"c%0D%0Ad\";",
            "a; filename=my file.txt",
            "a; filename*0=b; filename*1*=%63",
            "\"a\"; filename=\"content-id.txt\"",
        ] {
            check(&part(&format!("{NAMED}{head}")), Ok(()));
        }
        for content in [
            "",
            "--b--\r\n",
            "--b--",
            "\r\n--b\r\n\r\n\r\n--b--\r\n",
            "This is a message in several parts.\n--b\nContent-Type: text/plain\nMIME-Version: 1.0\n\nx\r\n\r\ny\n--b\nContent-ID: <a+1>\n\n\n--b--",
            "--b\r\nContent-Type: application/xop+xml; type=\"text/xml\"\r\nContent-ID: <root@x>\r\n\r\n--c\r\n x\r\n--b--\r\n",
            "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nContent-Disposition: x\r\n\r\n--b--\r\n\r\n",
            "--b\r\nContent-Disposition: attachment; size=1; filename=x\r\n\r\n--b--\r\n",
        ] {
            check(content, Ok(()));
        }
    }

    #[test]
    fn a_head_that_some_read_otherwise_cannot_be_read() {
        const NAMED: &str = "Content-Disposition: form-data; name=";
        let long = format!(
            "Content-Disposition: form-data; pad=\"{}\"; name=a",
            "A".repeat(4100)
        );
        let blanks = format!("Content-Disposition: form-data; {}name=a", " ".repeat(4100));
        let many = "X: y\r\n".repeat(LINES_MAX + 1);
        for head in [
            // Lines that are none to some.
            &format!("{NAMED}a\r\n \r\nPOST"),
            &format!("{NAMED}a\r\n\t\r\nPOST"),
            &format!("{NAMED}a\r\n\u{b}\r\nPOST"),
            &format!("{NAMED}a\r\n\u{c}\r\nPOST"),
            &format!("{NAMED}a\r\nX: a\n\nPOST"),
            "Content-Disposition: form-data;\r\nname=\"a\"",
            &format!("{NAMED}\"_met\r\nhod\""),
            &format!("{NAMED}a\rX: y"),
            &format!("{NAMED}a\0"),
            &format!("{NAMED}a\u{7f}"),
            ": x",
            "x Content-Type: y",
            &long,
            &blanks,
            &many,
            // Names that some find.
            &format!("X-{NAMED}a"),
            &format!("x {NAMED}a"),
            &format!(": {NAMED}a"),
            &format!("X: {NAMED}a"),
            "X: content-disposition : a; name=a",
            "X-Content-ID: a",
            &format!("{NAMED}a\r\n{NAMED}b"),
            &format!("{NAMED}a; name=b"),
            &format!("{NAMED}\"=?UTF-8?B?X21ldGhvZA==?=\""),
            &format!("{NAMED}\"=?UTF-8?Q?=5Fmet?= =?UTF-8?Q?hod?=\""),
            &format!("{NAMED}\"_met\\hod\""),
            &format!("{NAMED}a b"),
            &format!("{NAMED}\"a"),
            &format!("{NAMED}\"a\" name=\"b\""),
            &format!("{NAMED}a\"b\""),
            &format!("{NAMED}a; name*=utf-8''b"),
            &format!("{NAMED}a; name*0=b"),
            "Content-Disposition: form-data; name = a",
            "Content-Disposition: form-data; name",
            "Content-Disposition: form-data, name=a",
            "Content-Disposition: a; filename=\"x\\\"; name=\"=?UTF-8?B?X21ldGhvZA==?=\"",
        ] {
            check(&part(head), Err(Refused));
        }
        for content in [
            "--b \r\n\r\n--b--",
            "--bc\r\n\r\n--b--",
            "x--b\r\n\r\n--b--",
            "Content-Disposition: form-data; name=\"a\"\r\n\r\nDELETE\r\n--b--",
            "--b\r\n\r\n--b--\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nDELETE",
            "--b\r\nX: y\n\r\n--b--",
            "--b\nX: y\r\n\r\n--b--",
            "--b\nX: y\n\nx Content-Disposition: form-data; name=\"a\"\r\n\r\nDELETE\n--b--",
        ] {
            check(content, Err(Refused));
        }
        let mut judge = |_: Asks<'_>| Err(Refused);
        assert!(Heads::new(None).read(b"", &mut judge).is_ok());
        assert!(Heads::new(None).read(b"a=1", &mut judge).is_err());
    }

    proptest::proptest! {
        #[test]
        fn pieces_change_nothing(
            words in proptest::collection::vec(proptest::sample::select(&[
                "--b", "--", "\r\n", "\n", "X: y", "Content-Disposition: form-data; name=", "a", "=", "\r", " ", "-",
            ][..]), 0..24),
            at in 0..200_usize,
        ) {
            let content = words.concat();
            let verdict = |pieces: &[&[u8]]| {
                let mut judge = |_: Asks<'_>| Err(Refused);
                let mut heads = Heads::new(Some(b"b"));
                let mut pieces = pieces.iter();
                pieces
                    .try_for_each(|piece| heads.read(piece, &mut judge))
                    .and_then(|()| heads.finish(&mut judge))
            };
            let whole = verdict(&[content.as_bytes()]);
            let (one, two) = content.as_bytes().split_at(at.min(content.len()));
            let bytes: Vec<&[u8]> = content.as_bytes().chunks(1).collect();
            assert_eq!(verdict(&[one, two]), whole, "{content:?}");
            assert_eq!(verdict(&bytes), whole, "{content:?}");
        }
    }
}
