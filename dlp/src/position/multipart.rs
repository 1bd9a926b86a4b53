//! In which part of multipart content something stands (RFC 2046 5.1): above all of a
//! form (RFC 7578), by the name of its field and that of the file. Follows content as it
//! comes, and keeps where its parts begin and what they are called, within bounds. Of a
//! part that is a JSON document the path is told as well.

use super::path::Document;
use super::{IsClean, Spread, shown};
use crate::budget::wide;
use crate::limits;
use crate::span;

/// Follows one content.
#[derive(Debug)]
pub(crate) struct MultipartParts {
    /// The boundary with what stands before it.
    delimiter: Vec<u8>,
    state: MultipartState,
    list: Vec<MultipartPart>,
    /// The fields of the part that begins.
    fields: Vec<u8>,
    /// The parts that are documents.
    document: Document,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MultipartState {
    /// Between delimiters: so many bytes of one came.
    Within(usize),
    /// Behind a delimiter, and so many dashes.
    Line(u8),
    /// Behind a delimiter that has ended, but its line has not.
    Padding,
    /// In the fields of a part; on a line without anything or not.
    Fields(PartLineState),
    /// Behind the last part.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartLineState {
    Empty,
    Begun,
}

/// One part: its fields and its content.
#[derive(Debug)]
struct MultipartPart {
    /// Where its fields begin.
    from: u64,
    /// Where its content begins, if it does.
    content: Option<u64>,
    /// Where the delimiter behind it is.
    to: u64,
    name: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
}

impl MultipartParts {
    /// Of content that says to be of this media type; nothing where it has no parts.
    pub(crate) fn of(media_type: &[u8]) -> Option<Self> {
        let (essence, parameters) = split(media_type, b';');
        let essence = essence.trim_ascii().to_ascii_lowercase();
        if !essence.starts_with(b"multipart/") {
            return None;
        }
        let boundary = parameter(parameters, b"boundary")?;
        let is_boundary = (1..=limits::BOUNDARY_BYTES_MAX).contains(&boundary.len());
        let delimiter = [b"\n--", boundary.as_slice()].concat();
        (is_boundary && !boundary.contains(&b'\n')).then(|| Self {
            delimiter,
            // As if a line had ended before the first.
            state: MultipartState::Within(1),
            list: Vec::new(),
            fields: Vec::new(),
            document: Document::default(),
        })
    }

    /// Takes the next bytes, of which the first has this offset.
    pub(crate) fn push(&mut self, at: u64, bytes: &[u8]) {
        let mut place = 0;
        while let Some(byte) = bytes.get(place).copied() {
            let here = at.saturating_add(wide(place));
            let used = match self.state {
                MultipartState::Over => return,
                MultipartState::Within(came) => {
                    let rest = span::from(bytes, place);
                    let used = self.within(rest, came);
                    let content = span::upto(rest, used);
                    if self.list.last().is_some_and(|part| part.content.is_some()) {
                        self.document.push(here, content);
                    }
                    used
                }
                MultipartState::Line(dashes) => {
                    self.line(here, byte, dashes);
                    1
                }
                MultipartState::Padding => {
                    self.padding(here, byte);
                    1
                }
                MultipartState::Fields(line) => {
                    self.field(here, byte, line);
                    1
                }
            };
            place = place.saturating_add(used);
        }
    }

    /// Between delimiters: says how many bytes that took.
    fn within(&mut self, bytes: &[u8], came: usize) -> usize {
        // The end of a line stands nowhere else in a delimiter.
        if came == 0 {
            let line = memchr::memchr(b'\n', bytes);
            self.state = MultipartState::Within(usize::from(line.is_some()));
            return line.map_or(bytes.len(), |place| place.saturating_add(1));
        }
        let rest = span::from(&self.delimiter, came);
        let same = rest
            .iter()
            .zip(bytes)
            .take_while(|(one, other)| one == other);
        let same = same.count();
        self.state = if same == rest.len() {
            MultipartState::Line(0)
        } else if same < bytes.len() {
            MultipartState::Within(0)
        } else {
            MultipartState::Within(came.saturating_add(same))
        };
        same
    }

    /// Behind the boundary: the line is a delimiter if nothing follows that counts.
    fn line(&mut self, at: u64, byte: u8, dashes: u8) {
        match (byte, dashes) {
            (b'-', 0) => self.state = MultipartState::Line(1),
            (b'-', 1) => {
                self.shut(at);
                self.state = MultipartState::Over;
            }
            (_, 0) => self.padding(at, byte),
            _ => self.state = MultipartState::Within(0),
        }
    }

    fn padding(&mut self, at: u64, byte: u8) {
        self.state = match byte {
            b' ' | b'\t' | b'\r' => MultipartState::Padding,
            b'\n' => {
                self.shut(at);
                self.begin(at.saturating_add(1))
            }
            _ => MultipartState::Within(0),
        };
    }

    /// The part before the delimiter that ends at `at`, or a little before, is over.
    fn shut(&mut self, at: u64) {
        let end = at.saturating_sub(wide(self.delimiter.len()));
        self.document.lose(end);
        if let Some(last) = self.list.last_mut() {
            last.to = end;
        }
    }

    /// A part begins.
    fn begin(&mut self, from: u64) -> MultipartState {
        if self.list.len() >= limits::PARTS_MAX {
            return MultipartState::Over;
        }
        self.fields.clear();
        self.list.push(MultipartPart {
            from,
            content: None,
            to: u64::MAX,
            name: None,
            file: None,
        });
        MultipartState::Fields(PartLineState::Empty)
    }

    /// In the fields of a part.
    fn field(&mut self, at: u64, byte: u8, line: PartLineState) {
        if self.fields.len() < limits::PART_FIELDS_BYTES_MAX {
            self.fields.push(byte);
        }
        self.state = match (byte, line) {
            (b'\n', PartLineState::Empty) => {
                self.content(at.saturating_add(1));
                // What stands before the content ends a line.
                MultipartState::Within(1)
            }
            (b'\n', PartLineState::Begun) => MultipartState::Fields(PartLineState::Empty),
            (b'\r', line) => MultipartState::Fields(line),
            _ => MultipartState::Fields(PartLineState::Begun),
        };
    }

    /// The fields are over.
    fn content(&mut self, at: u64) {
        self.document.restart(at);
        let Some(part) = self.list.last_mut() else {
            return;
        };
        part.content = Some(at);
        if self.fields.len() < limits::PART_FIELDS_BYTES_MAX {
            (part.name, part.file) = names(&self.fields);
        }
    }

    /// The part that holds the place.
    pub(crate) fn inside(&self, spread: Spread, is_clean: IsClean<'_>) -> Option<String> {
        let (number, part, is_content) = match spread {
            Spread::Between(first, last) => {
                let (number, part) = self.holds(first)?;
                let content = part.content.unwrap_or(part.to);
                let is_content = first >= content;
                let end = if is_content { part.to } else { content };
                (last < end).then_some((number, part, is_content))?
            }
            Spread::Run(start) => {
                let (number, part) = self.begins(start)?;
                (number, part, true)
            }
            Spread::Unknown => return None,
        };
        if !is_content {
            return Some(format!("the header of part {number}"));
        }
        let shown = |name: &Option<Vec<u8>>| shown(name.as_deref()?, '`', is_clean);
        let mut text = match shown(&part.name) {
            Some(name) => format!("part `{name}`"),
            None => format!("part {number}"),
        };
        if let Some(file) = shown(&part.file) {
            text = format!("{text}, file `{file}`");
        }
        if let Some(path) = self.document.inside(spread, is_clean) {
            text = format!("{text}, {path}");
        }
        Some(text)
    }

    /// The part with the content in which a run stands: what goes over the offset, or else
    /// begins shortly behind it, since ends of lines before it count as the run's.
    fn begins(&self, start: u64) -> Option<(usize, &MultipartPart)> {
        let until = start.saturating_add(limits::RUN_LAG_BYTES);
        let has = |part: &MultipartPart| {
            let content = part.content.filter(|content| *content <= until);
            content.is_some() && start < part.to
        };
        let number = self.list.iter().position(has)?;
        Some((number.saturating_add(1), self.list.get(number)?))
    }

    /// The part that goes over this offset, and its number.
    fn holds(&self, offset: u64) -> Option<(usize, &MultipartPart)> {
        let number = self.list.partition_point(|part| part.from <= offset);
        let part = self.list.get(number.checked_sub(1)?)?;
        (offset < part.to).then_some((number, part))
    }
}

/// The name of a field of the form and that of a file, from the fields of a part
/// (RFC 7578 4.2).
fn names(fields: &[u8]) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    for line in fields.split(|byte| *byte == b'\n') {
        let (name, value) = split(line, b':');
        if name
            .trim_ascii()
            .eq_ignore_ascii_case(b"content-disposition")
        {
            let (_, parameters) = split(value, b';');
            return (
                parameter(parameters, b"name"),
                parameter(parameters, b"filename"),
            );
        }
    }
    (None, None)
}

/// The value of a parameter: a word, or quoted (RFC 9110 5.6.6). A backslash stands for
/// itself unless what follows would have to be escaped: paths have them.
fn parameter(mut rest: &[u8], wanted: &[u8]) -> Option<Vec<u8>> {
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b';'))?;
        let (name, behind) = rest.split_at_checked(end)?;
        let is_wanted = name.trim_ascii().eq_ignore_ascii_case(wanted);
        let Some((b'=', behind)) = behind.split_first() else {
            rest = behind.get(1..)?;
            continue;
        };
        let (value, behind) = if let [b'"', quoted @ ..] = behind.trim_ascii_start() {
            let (value, behind) = unquote(quoted)?;
            (value, split(behind, b';').1)
        } else {
            let (value, behind) = split(behind, b';');
            (value.trim_ascii().to_vec(), behind)
        };
        if is_wanted {
            return Some(value);
        }
        rest = behind;
    }
    None
}

/// What stands before the closing quote, and what behind; nothing where there is none.
fn unquote(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = bytes;
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some((value, behind)),
            [b'\\', escaped @ (b'"' | b'\\'), behind @ ..] | [escaped, behind @ ..] => {
                value.push(*escaped);
                behind
            }
            [] => return None,
        };
    }
}

/// What is before the first of these bytes, and what behind it.
fn split(bytes: &[u8], at: u8) -> (&[u8], &[u8]) {
    let place = memchr::memchr(at, bytes).unwrap_or(bytes.len());
    let (before, rest) = bytes.split_at_checked(place).unwrap_or((bytes, &[]));
    (before, rest.get(1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands in content for the place that is asked for.
    const HERE: char = '@';

    const TYPE: &[u8] = b"multipart/form-data; boundary=XyZ";

    /// What is told of the place, with the content in pieces of this length.
    fn told(content: &str, length: usize) -> Option<String> {
        let at = content.find(HERE).expect("a place");
        let mut own = MultipartParts::of(TYPE).expect("a boundary");
        for (number, piece) in content.as_bytes().chunks(length).enumerate() {
            own.push(wide(number * length), piece);
        }
        let is_clean = |name: &[u8]| !name.starts_with(b"ghp_");
        own.inside(Spread::Between(wide(at), wide(at)), &is_clean)
    }

    fn check(content: &str, expected: Option<&str>) {
        for length in (1..=64.min(content.len())).chain([content.len()]) {
            let found = told(content, length);
            let shown: String = content.chars().take(120).collect();
            assert_eq!(found.as_deref(), expected, "{shown} by {length}");
        }
    }

    /// A part with such a disposition, and this content.
    fn part(disposition: &str, content: &str) -> String {
        format!(
            "--XyZ\r\nContent-Type: text/plain\r\ncontent-disposition:{disposition}\r\n\r\n{content}\r\n"
        )
    }

    #[test]
    fn parts_are_told_by_their_names() {
        for (disposition, expected) in [
            (" form-data; name=\"key\"", "part `key`"),
            (
                "form-data; filename=\"id.txt\"; name=\"key\"",
                "part `key`, file `id.txt`",
            ),
            (
                "form-data; name=key; filename=id.txt",
                "part `key`, file `id.txt`",
            ),
            ("form-data; NAME = \"key\" ; x", "part `key`"),
            (
                r#"form-data; name="a\"b; name=\\c""#,
                r#"part `a"b; name=\\c`"#,
            ),
            (
                r#"form-data; name="a"; filename="C:\x\y.txt""#,
                r"part `a`, file `C:\\x\\y.txt`",
            ),
            (
                r#"form-data; filename="name=no"; name="a""#,
                "part `a`, file `name=no`",
            ),
            ("form-data; name=\"a`\x1b[2J\"", "part `a\\`\\u001b[2J`"),
            ("form-data; name=\"\"", "part ``"),
            // What holds a credential, is too long, or is not there.
            (
                "form-data; name=\"ghp_x\"; filename=\"a\"",
                "part 2, file `a`",
            ),
            ("form-data; name=\"a\"; filename=\"ghp_x\"", "part `a`"),
            ("form-data", "part 2"),
            ("form-data; name=\"open", "part 2"),
            ("form-data; name", "part 2"),
        ] {
            let first = part("form-data; name=\"first\"", "x");
            let last = part("form-data; name=\"last\"", "z");
            let content = format!("{first}{}{last}--XyZ--\r\n", part(disposition, "y @ y"));
            check(&content, Some(expected));
        }
        let long = "n".repeat(limits::NAME_BYTES_SHOWN + 1);
        check(
            &part(&format!("form-data; name={long}"), "@"),
            Some("part 1"),
        );
        let fields = format!("{}{}", "x".repeat(5000), "; name=a");
        check(&part(&fields, "@"), Some("part 1"));
        check(&part(&"n".repeat(1 << 20), "@"), Some("part 1"));
    }

    #[test]
    fn only_delimiters_end_a_part() {
        for inside in [
            "\r\n--XyZa\r\n@",
            "\r\n--XyZ-\r\n@",
            "\r\n--XyZ x\r\n@",
            "\r\n --XyZ\r\n@",
            "\r\n--Xy\r\n--X@",
            "\r\n\r\n\r\n@",
            "\n--xyz\n@",
            "@",
        ] {
            check(&part("x; name=a", inside), Some("part `a`"));
        }
        for (content, expected) in [
            ("--XyZ\r\n\r\n@", Some("part 1")),
            ("--XyZ \t\r\n\r\n@", Some("part 1")),
            ("words\r\n--XyZ\r\n\r\n@", Some("part 1")),
            ("--XyZ\n\n@", Some("part 1")),
            ("--XyZ\r\n\r\n\r\n--XyZ\r\n\r\n@", Some("part 2")),
            ("--XyZ\r\n\r\n--XyZ\r\n\r\n@", Some("part 2")),
            // Before the first, behind the last, and without any.
            ("@\r\n--XyZ\r\n\r\nx", None),
            ("--XyZ\r\n\r\nx\r\n--XyZ--\r\n@", None),
            ("--XyZ--\r\n--XyZ\r\n\r\n@", None),
            ("@", None),
            ("\r\n--XyZa\r\n\r\n@", None),
            // The fields themselves.
            ("--XyZ\r\nX: @\r\n\r\nx", Some("the header of part 1")),
            ("--XyZ\r\nX: @", Some("the header of part 1")),
        ] {
            check(content, expected);
        }
        check(
            &format!("--XyZ\r\nX: {}@", "x".repeat(100_000)),
            Some("the header of part 1"),
        );
    }

    #[test]
    fn parts_that_are_documents_have_paths() {
        let content = [
            part("form-data; name=a", "{\"b\":\"x\"}"),
            part("form-data; name=c", "[\"y\",\"@\"]"),
            part("form-data; name=d", "{\"e\":\"z\"}"),
        ];
        check(&content.concat(), Some("part `c`, $[1]"));
        check(
            &part("form-data; name=a", "words [\"@\"]"),
            Some("part `a`"),
        );
    }

    #[test]
    fn a_place_between_two_parts_is_in_none() {
        let content = [part("x; name=a", "12345"), part("x; name=b", "12345")].concat();
        let mut own = MultipartParts::of(TYPE).expect("a boundary");
        own.push(0, content.as_bytes());
        let inside = |spread| own.inside(spread, &|_| true);
        let first = wide(content.find("12345").expect("the first"));
        let last = wide(content.rfind("12345").expect("the last"));
        assert_eq!(
            inside(Spread::Between(first, first + 4)).as_deref(),
            Some("part `a`")
        );
        assert_eq!(inside(Spread::Between(first, last)), None);
        assert_eq!(inside(Spread::Between(first - 10, first)), None);
        let lag = limits::RUN_LAG_BYTES;
        assert_eq!(inside(Spread::Run(first)).as_deref(), Some("part `a`"));
        assert_eq!(inside(Spread::Run(last)).as_deref(), Some("part `b`"));
        assert_eq!(inside(Spread::Run(last - lag)).as_deref(), Some("part `b`"));
        assert_eq!(inside(Spread::Unknown), None);
    }

    #[test]
    fn parts_are_counted() {
        let content = |count: usize| format!("{}--XyZ\r\n\r\n@", "--XyZ\r\n\r\n\r\n".repeat(count));
        let most = limits::PARTS_MAX;
        check(&content(most - 1), Some(&format!("part {most}")));
        check(&content(most), None);
    }

    #[test]
    fn a_boundary_is_needed() {
        let boundary =
            |length: usize| format!("multipart/mixed; boundary=\"{}\"", "x".repeat(length));
        for (media_type, is_followed) in [
            ("multipart/form-data; boundary=x", true),
            ("Multipart/Form-Data ; charset=y; Boundary=\"x y\"", true),
            ("multipart/form-data", false),
            ("multipart/form-data; boundary=", false),
            ("multipart/form-data; boundary=\"x", false),
            ("application/json; boundary=x", false),
            ("", false),
            (&boundary(limits::BOUNDARY_BYTES_MAX), true),
            (&boundary(limits::BOUNDARY_BYTES_MAX + 1), false),
        ] {
            let parts = MultipartParts::of(media_type.as_bytes());
            assert_eq!(parts.is_some(), is_followed, "{media_type}");
        }
    }
}
