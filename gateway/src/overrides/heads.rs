//! The heads of the parts of multipart content (RFC 2046 5.1), as its bytes come, and the
//! values of those whose name is a key for the method. Each head is one that every program
//! reads alike, or holds nothing that could be such a key, or the content is refused, since
//! programs find names in what others take for a value. A head may begin wherever the
//! boundary stands. Keeps one head and one value; changes nothing.

use memchr::memmem;

use super::asks::{Asks, Judge, Keys, Refused, Sent};
use super::disposition::{self, Unclear};
use super::keys::{Which, is_coded, which};
use super::late::{Late, NAMING};
use super::pairs::text;
use super::words;

/// Bytes of a line of a head, at most.
const LINE_BYTES_MAX: usize = 4096;

/// Lines of a head, at most.
const LINES_MAX: usize = 64;

/// Bytes of a head, and of a value that is looked at, at most.
const HEAD_BYTES_MAX: usize = 16 << 10;
const VALUE_BYTES_MAX: usize = 4096;

/// What each content must be that does not say how it is split.
const UNSPLIT: &str = "parts without a boundary that all find";

/// What no boundary is followed by.
const UNENDED: &str = "a boundary that goes on";

/// Checks the heads in bytes as they come.
#[derive(Debug)]
pub(super) struct PartHeads {
    /// What stands before each part: the boundary behind two hyphens. None where not every
    /// program finds the same.
    delimiter: Option<Vec<u8>>,
    keys: Keys,
    sent: Sent,
    place: HeadPlace,
    /// The lines of a head that are over.
    head: Vec<u8>,
    /// The value of a part whose name is a key, as far as it came.
    value: Vec<u8>,
    late: Late,
    /// The line of a head that is not over.
    line: Vec<u8>,
    /// Bytes outside of heads that may begin something that is looked for.
    tail: Vec<u8>,
    /// The byte before those.
    before: Option<u8>,
}

/// Where we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadPlace {
    /// Before the first part, or behind the last one.
    Around,
    /// Behind a boundary.
    Delimiter,
    Head(PartHead),
    /// Behind a head, of a part that has such a key for its name or not.
    Value(Option<Which>),
}

/// What was seen of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartHead {
    end: HeadLineEnd,
    lines: usize,
    named: DispositionSeen,
    key: Option<Which>,
    coded: Coded,
    read: Read,
}

/// Whether it says that its part is in a coding that changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coded {
    Yes,
    No,
}

/// Whether every program reads a head alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Alike,
    Otherwise,
}

/// Whether a head had its content-disposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DispositionSeen {
    Already,
    NotYet,
}

/// What ends the lines of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadLineEnd {
    CrLf,
    /// Some clients write that; to some programs the head goes on in the value then.
    Lf,
}

/// Why content is not read on.
#[derive(Debug, Clone, Copy)]
enum Stop {
    /// It cannot be read.
    Unread(&'static str),
    Refused,
}

impl From<&'static str> for Stop {
    fn from(what: &'static str) -> Self {
        Self::Unread(what)
    }
}

impl Stop {
    fn judged(self, judge: Judge<'_>) -> Result<(), Refused> {
        match self {
            Self::Unread(what) => judge(Asks::UnreadMethod(what)),
            Self::Refused => Err(Refused),
        }
    }
}

impl PartHeads {
    pub(super) fn new(boundary: Option<&[u8]>, sent: Sent) -> Self {
        Self {
            delimiter: boundary.map(|boundary| [b"--", boundary].concat()),
            keys: Keys::new(),
            sent,
            place: HeadPlace::Around,
            head: Vec::new(),
            value: Vec::new(),
            late: Late::default(),
            line: Vec::new(),
            tail: Vec::new(),
            before: None,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        self.checked(bytes, judge)
            .or_else(|stop| stop.judged(judge))
    }

    /// The end.
    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let left = std::mem::take(&mut self.tail);
        let end = match self.place {
            HeadPlace::Delimiter if !matches!(self.line.trim_ascii(), b"" | b"-" | b"--") => {
                Err(Stop::Unread(UNENDED))
            }
            // To those who saw its end, what is left of it is a value.
            HeadPlace::Head(_) => {
                self.head.append(&mut self.line);
                self.holds_no_key()
            }
            HeadPlace::Around | HeadPlace::Delimiter | HeadPlace::Value(_) => self
                .outside(&left)
                .and_then(|()| self.over(&left, judge))
                .and_then(|()| self.value_ends(judge)),
        };
        end.or_else(|stop| stop.judged(judge))
    }

    fn checked(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Stop> {
        let Some(delimiter) = self.delimiter.clone() else {
            return if bytes.is_empty() {
                Ok(())
            } else {
                Err(UNSPLIT.into())
            };
        };
        let mut window = std::mem::take(&mut self.tail);
        window.extend_from_slice(bytes);
        let mut rest = window.as_slice();
        while !rest.is_empty() {
            rest = match self.place {
                HeadPlace::Around | HeadPlace::Value(_) => {
                    self.up_to_head(rest, &delimiter, judge)?
                }
                HeadPlace::Delimiter | HeadPlace::Head(_) => self.up_to_line(rest)?,
            };
        }
        match self.place {
            // What some take for its value may be on its way.
            HeadPlace::Head(head) if head.read == Read::Otherwise => self.holds_no_key(),
            _ => Ok(()),
        }
    }

    /// Passes over what is no head; what is left of the bytes.
    fn up_to_head<'b>(
        &mut self,
        bytes: &'b [u8],
        delimiter: &[u8],
        judge: Judge<'_>,
    ) -> Result<&'b [u8], Stop> {
        let found = memmem::find(bytes, delimiter);
        let at = found.unwrap_or(bytes.len().saturating_sub(delimiter.len() - 1));
        let (over, rest) = bytes.split_at_checked(at).unwrap_or_default();
        self.outside(over)?;
        self.over(over, judge)?;
        if found.is_none() {
            self.tail = rest.to_vec();
            return Ok(&[]);
        }
        if !matches!(self.before, None | Some(b'\n')) {
            return Err("a boundary within a line".into());
        }
        self.value_ends(judge)?;
        self.place = HeadPlace::Delimiter;
        self.line.clear();
        Ok(rest.get(delimiter.len()..).unwrap_or_default())
    }

    /// Bytes outside of heads are over.
    fn over(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Stop> {
        self.before = bytes.last().copied().or(self.before);
        self.late.read(bytes)?;
        let HeadPlace::Value(Some(which)) = self.place else {
            return Ok(());
        };
        // The value goes on up to the border, and many leave away what is blank before it.
        let is_sign = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        let begin = if self.value.is_empty() {
            bytes.iter().position(is_sign).unwrap_or(bytes.len())
        } else {
            0
        };
        let bytes = bytes.get(begin..).unwrap_or_default();
        let end = memchr::memchr2(b'\r', b'\n', bytes);
        let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if self.value.len() + line.len() > VALUE_BYTES_MAX {
            self.place = HeadPlace::Value(None);
            return match which {
                Which::Own => Err("a value without end".into()),
                Which::Other | Which::Tunnel => Ok(()),
            };
        }
        self.value.extend_from_slice(line);
        match end {
            Some(_) => self.value_ends(judge),
            None => Ok(()),
        }
    }

    /// The value of a key is over.
    fn value_ends(&mut self, judge: Judge<'_>) -> Result<(), Stop> {
        let HeadPlace::Value(Some(which)) = self.place else {
            return Ok(());
        };
        self.place = HeadPlace::Value(None);
        let value = text(&std::mem::take(&mut self.value));
        let judged = which.judge(&value, self.sent, judge);
        judged.map_err(|Refused| Stop::Refused)
    }

    /// Whether bytes outside of heads are none to anybody.
    fn outside(&self, bytes: &[u8]) -> Result<(), Stop> {
        // To some what stands before the first boundary is a part as well.
        if self.place == HeadPlace::Around && memchr::memchr(b'=', bytes).is_some() {
            return Err("something outside of its parts".into());
        }
        Ok(())
    }

    /// Whether no reading of the head so far holds a key.
    fn holds_no_key(&self) -> Result<(), Stop> {
        if words::may_hold_key(&self.head) || words::may_be_spread(&self.head) {
            return Err("a part's head that some read otherwise".into());
        }
        Ok(())
    }

    /// Takes bytes up to the end of a line; what is left of them.
    fn up_to_line<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], Stop> {
        let end = memchr::memchr(b'\n', bytes);
        let end = end.map_or(bytes.len(), |at| at + 1);
        let (piece, rest) = bytes.split_at_checked(end).unwrap_or_default();
        if self.line.len() + piece.len() > LINE_BYTES_MAX {
            return Err("a line of a part's head without end".into());
        }
        self.line.extend_from_slice(piece);
        if self.line.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            self.line_is(&line)?;
        }
        Ok(rest)
    }

    /// A line of a head, or what stands behind a boundary, with its end.
    fn line_is(&mut self, line: &[u8]) -> Result<(), Stop> {
        self.before = Some(b'\n');
        let HeadPlace::Head(mut head) = self.place else {
            self.head.clear();
            self.place = match (line, line.strip_prefix(b"--")) {
                (b"\r\n", _) => HeadPlace::Head(PartHead::new(HeadLineEnd::CrLf)),
                (b"\n", _) => HeadPlace::Head(PartHead::new(HeadLineEnd::Lf)),
                (_, Some(rest)) if rest.trim_ascii().is_empty() => HeadPlace::Around,
                _ => return Err(UNENDED.into()),
            };
            return Ok(());
        };
        let is_behind_end = self.head.is_empty() || self.head.ends_with(b"\r\n");
        let is_end = match head.end {
            HeadLineEnd::CrLf => line == b"\r\n" && is_behind_end,
            HeadLineEnd::Lf => matches!(line, b"\n" | b"\r\n"),
        };
        if is_end {
            return self.head_ends(head, line);
        }
        self.head.extend_from_slice(line);
        head.lines += 1;
        if self.head.len() > HEAD_BYTES_MAX || head.lines > LINES_MAX {
            return Err("a part's head without end".into());
        }
        head.take(line, &self.keys)?;
        self.place = HeadPlace::Head(head);
        Ok(())
    }

    /// The line that ends a head.
    fn head_ends(&mut self, head: PartHead, line: &[u8]) -> Result<(), Stop> {
        if head.read == Read::Otherwise {
            self.holds_no_key()?;
        }
        if self.head.ends_with(b"\r\n") && line == b"\r\n" {
            self.late.end();
        } else {
            self.late.begin(&self.head, line);
        }
        self.head.clear();
        self.value.clear();
        self.place = HeadPlace::Value(head.key);
        match (head.key, self.sent) {
            (Some(_), _) if head.coded == Coded::Yes => {
                Err("a value in a coding that is not read".into())
            }
            // Some of it may be on its way.
            (Some(Which::Own), Sent::AsItComes) => Err("a value to come".into()),
            _ => Ok(()),
        }
    }
}

impl PartHead {
    fn new(end: HeadLineEnd) -> Self {
        Self {
            end,
            lines: 0,
            named: DispositionSeen::NotYet,
            key: None,
            coded: Coded::No,
            read: Read::Alike,
        }
    }

    /// One more line: a field as RFC 5322 2.2 has it, on one line, or something else.
    fn take(&mut self, line: &[u8], keys: &Keys) -> Result<(), Stop> {
        let content = match self.end {
            HeadLineEnd::CrLf => line.strip_suffix(b"\r\n"),
            HeadLineEnd::Lf => line.strip_suffix(b"\n"),
        };
        let Some((name, value)) = content.and_then(field) else {
            self.read = Read::Otherwise;
            return Ok(());
        };
        let lower = line.to_ascii_lowercase();
        let is_own = |naming: &str| name.eq_ignore_ascii_case(naming.as_bytes());
        let strays = |naming: &&str| names(&lower, naming) != usize::from(is_own(naming));
        if NAMING.iter().any(strays) {
            self.read = Read::Otherwise;
        }
        if is_coded(&String::from_utf8_lossy(line)) {
            self.coded = Coded::Yes;
        }
        let [disposition, id] = NAMING;
        if is_own(id) {
            return self.has_name(value, keys);
        }
        if !is_own(disposition) {
            return Ok(());
        }
        if self.named == DispositionSeen::Already {
            self.read = Read::Otherwise;
        }
        self.named = DispositionSeen::Already;
        match disposition::name_of(value) {
            Ok(name) => self.has_name(name, keys),
            Err(Unclear::Odd) => {
                self.read = Read::Otherwise;
                Ok(())
            }
            Err(Unclear::Spread) => Err("a name that is written in several ways".into()),
        }
    }

    /// The part has this name.
    fn has_name(&mut self, name: &[u8], keys: &Keys) -> Result<(), Stop> {
        let is_plain = memchr::memchr(b'\\', name).is_none() && memmem::find(name, b"=?").is_none();
        if !is_plain && words::may_hold_key(name) {
            return Err("a part's name that some read otherwise".into());
        }
        self.key = self.key.max(which(&text(name), keys));
        Ok(())
    }
}

/// The name and the value of a field, where a line is one to everybody.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
    let is_plain = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    let is_token = !name.is_empty() && name.iter().copied().all(disposition::is_of_token);
    (is_token && value.iter().all(is_plain)).then(|| (name, value.get(1..).unwrap_or_default()))
}

/// How often a line in lower case has the name of such a field, with its colon.
fn names(line: &[u8], naming: &str) -> usize {
    let at = memmem::find_iter(line, naming);
    let ends = at.filter_map(|at| line.get(at + naming.len()..));
    ends.filter(|rest| rest.trim_ascii_start().starts_with(b":"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::asks::is_known;
    use super::*;

    /// Whether content can be read, in pieces of every size.
    fn check(content: &str, wanted: Result<(), Refused>) {
        for size in [1, 2, 7, 64, 4096, content.len()] {
            let mut judge = |_: Asks<'_>| Err(Refused);
            let mut heads = PartHeads::new(Some(b"b"), Sent::AtTheEnd);
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
            "\"a\"; filename=\"C:\\x\\_method.py\"",
            "\"a\"; filename=\"q\\\"b.txt\"",
            "\"a\"; filename=\"a\\\"",
            "\"a\"; filename=\"page?id=?x.html\"",
            "\"a\"; filename=\"http-method.txt\"",
            "a b",
            "\"=?utf-8?B?w6Q=?=\"",
            "a\r\n\r\nContent-Disposition: form-data; name=_method",
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
            check(&part(&format!("{head}\r\nX: method")), Err(Refused));
        }
        for content in [
            "--b \r\n\r\n--b--",
            "--bc\r\n\r\n--b--",
            "x--b\r\n\r\n--b--",
            "Content-Disposition: form-data; name=\"a\"\r\n\r\nDELETE\r\n--b--",
            "--b\r\n\r\n--b--\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nDELETE",
            "--b\r\nX: method\n\r\n--b--",
            "--b\nX: method\r\n\r\n--b--",
            "--b\nX: y\n\nx Content-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\n--b--",
        ] {
            check(content, Err(Refused));
        }
        let mut judge = |_: Asks<'_>| Err(Refused);
        assert!(
            PartHeads::new(None, Sent::AtTheEnd)
                .read(b"", &mut judge)
                .is_ok()
        );
        assert!(
            PartHeads::new(None, Sent::AtTheEnd)
                .read(b"a=1", &mut judge)
                .is_err()
        );
    }

    const PART: &str = "--b\r\nContent-Disposition: form-data; name=NAME\r\n\r\nVALUE\r\n--b--\r\n";

    /// What stands behind `name=` in a part's head, and the part's value.
    const PARTS: [(&str, &str, bool, bool); 24] = [
        ("\"a\"", "delete", true, true),
        ("\"_method\"", "put", true, false),
        ("\"_method\"", "delete", false, false),
        ("_method", "delete", false, false),
        ("\"_Met\\hod\"", "delete", false, false),
        ("a; name*=utf-8''%5Fmethod", "delete", false, false),
        ("\r\n \"_method\"", "delete", false, false),
        // Names in sections, and in what nobody reads.
        ("a; name*0=\"_met\"; name*1=\"hod\"", "delete", false, false),
        (
            "a;\r\n name*0=\"_met\";\r\n name*1=\"hod\"",
            "delete",
            false,
            false,
        ),
        (
            "a; NAME*1*=hod; name*0*=utf-8''%5Fmet",
            "delete",
            false,
            false,
        ),
        ("a; name*=ibm037''%6D%94", "delete", false, false),
        ("a; name *= utf-7''+AF8-", "delete", false, false),
        ("a; name*=utf-8''b", "delete", true, true),
        ("a; filename*0=b; filename*1=c", "delete", true, true),
        ("a; filename*=utf-16''b", "delete", true, true),
        // Lines that end otherwise.
        ("\"verb\"\r\rX", "delete", false, false),
        ("a;x=y\r\rname=\"_method\"", "delete", false, false),
        ("a;\rname=\"_method\"", "delete", false, false),
        ("a", "delete\rname=_method", true, true),
        ("\"a\"", "_method=delete", true, true),
        ("\"X-HTTP-Method-Override\"", "DELETE", false, false),
        ("\"method\"", "put", true, true),
        ("\"method\"", "merge", true, true),
        ("\"http_method\"", "merge", false, false),
    ];

    /// Whether a form of parts may be sent that was read whole, and whether one that goes on
    /// as it comes, where PUT and POST are allowed.
    fn judged(form: &str, held: (bool, bool)) {
        let passes = |sent: Sent, size: usize| {
            let mut judge = |asks: Asks<'_>| match asks {
                Asks::Method { value, .. } if ["put", "post"].contains(&value) => Ok(()),
                Asks::Tunnelled { value, .. } if !is_known(value) => Ok(()),
                Asks::Named { .. } => Ok(()),
                _ => Err(Refused),
            };
            let mut heads = PartHeads::new(Some(b"b"), sent);
            let mut pieces = form.as_bytes().chunks(size);
            let read = pieces.try_for_each(|piece| heads.read(piece, &mut judge));
            read.and_then(|()| heads.finish(&mut judge)).is_ok()
        };
        for size in [1, 2, 7, 64, form.len()] {
            let found = (passes(Sent::AtTheEnd, size), passes(Sent::AsItComes, size));
            assert_eq!(found, held, "{form} in pieces of {size}");
        }
    }

    fn named(name: &str, value: &str) -> String {
        PART.replace("NAME", name).replace("VALUE", value)
    }

    #[test]
    fn a_part_is_judged_by_its_name_however_it_is_written() {
        for (name, value, held, sent) in PARTS {
            judged(&named(name, value), (held, sent));
        }
        judged(&named("\"method\"", "standard"), (true, true));
        for (name, value, end, passes) in [
            ("\"_method\"", "delete", "\r", false),
            ("\"_method\"", "delete", "\n", false),
            ("\"verb\"", "delete", "\r", false),
            ("\"verb\"", "x", "\r", false),
            ("a", "put", "\n", true),
        ] {
            let part = named(name, value).replace("\r\n", end);
            judged(&part, (passes, passes));
        }
        for (name, coding, passes) in [
            ("_method", "base64", false),
            ("verb", "base64", false),
            ("file", "base64", true),
            ("verb", "8bit", true),
        ] {
            let head = format!("Content-Transfer-Encoding: {coding}\r\nContent");
            let part = named(name, "REVMRVRF").replacen("Content", &head, 1);
            judged(&part, (passes, passes));
        }
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
                let mut heads = PartHeads::new(Some(b"b"), Sent::AtTheEnd);
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
