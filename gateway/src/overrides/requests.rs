//! Requests that stand in the content of another one (`application/http` in the parts of
//! `multipart/mixed`, as stores and OData take batches), as their bytes come: each is
//! judged as if it were sent by itself, with its fields and its content. Keeps one line and
//! the head of one request; changes nothing.

use super::asks::{
    Asks, InnerContent, InnerDepth, InnerHead, Judge, Refused, Sent, TOO_DEEP, is_method,
};
use super::bodies::Bodies;
use super::media::boundary_of;

/// Bytes of a line that are looked at, at most.
const LINE_BYTES_MAX: usize = 4096;

/// Fields of one request, and bytes of a field in several lines, at most.
const FIELDS_MAX: usize = 64;
const FIELD_BYTES_MAX: usize = 8192;

/// Media types of one part that are looked at: where there are several, nobody knows which
/// counts.
const TYPES_MAX: usize = 2;

/// What of a request's head is longer than what is looked at.
const HEAD_UNENDED: &str = "a head of a request without end";

/// Finds requests in bytes as they come.
#[derive(Debug)]
pub(super) struct RequestFinder<B> {
    line: Vec<u8>,
    skips: bool,
    /// Whether the line before ended with CR, behind which LF is no further line.
    after_cr: AfterCr,
    /// Whether anything said that requests come.
    announced: Announced,
    place: RequestPlace,
    /// The media types that the head of the part names.
    types: Vec<String>,
    /// The request whose fields come.
    head: InnerHead,
    bodies: Bodies<B>,
    sent: Sent,
    /// That of the contents of requests; `None` where nobody looks at those.
    below: Option<InnerDepth>,
}

/// Whether something said that requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    Already,
    NotYet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterCr {
    Yes,
    No,
}

/// Where we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPlace {
    /// In the head of a part, which said so or did not.
    Part(Announced),
    /// Where a request line stands.
    Line,
    Fields,
    Content,
}

impl<B: InnerContent> RequestFinder<B> {
    /// Announced already where the type of the whole content says it.
    pub(super) fn new(
        announced: Announced,
        boundary: Option<&[u8]>,
        (sent, depth): (Sent, InnerDepth),
    ) -> Self {
        Self {
            line: Vec::new(),
            skips: false,
            after_cr: AfterCr::No,
            announced,
            place: match announced {
                Announced::Already => RequestPlace::Line,
                Announced::NotYet => RequestPlace::Content,
            },
            types: Vec::new(),
            head: InnerHead::default(),
            bodies: Bodies::new(boundary),
            sent,
            below: depth.below(),
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            let was_cr = std::mem::replace(&mut self.after_cr, AfterCr::No);
            if was_cr == AfterCr::Yes
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                self.bodies.read(b"\n", judge)?;
                bytes = rest;
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', bytes);
            let (content, rest) = bytes
                .split_at_checked(end.unwrap_or(bytes.len()))
                .unwrap_or_default();
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(content.get(..room).unwrap_or(content));
            self.bodies.read(content, judge)?;
            if content.len() > room && !self.skips {
                self.skips = true;
                self.line_is(judge)?;
            }
            if let Some(end) = rest.first() {
                self.after_cr = if *end == b'\r' {
                    AfterCr::Yes
                } else {
                    AfterCr::No
                };
                self.bodies.read(&[*end], judge)?;
                self.line_ends(judge)?;
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// The end.
    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.line_ends(judge)?;
        self.bodies.finish(judge)
    }

    /// A line is over.
    fn line_ends(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if !std::mem::take(&mut self.skips) {
            self.line_is(judge)?;
        }
        self.line.clear();
        Ok(())
    }

    fn line_is(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if self.place == RequestPlace::Content
            && self.announced == Announced::NotYet
            && !self.line.starts_with(b"--")
            && !self.skips
            && memchr::memmem::find(&self.line, b"/").is_none()
        {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&self.line).into_owned();
        let is_blank = line.trim().is_empty();
        let lower = line.to_ascii_lowercase();
        // A line that does not end may go on with it.
        let announces = lower.contains("application/http")
            || (self.skips && lower.trim_start().starts_with("content"));
        if announces {
            self.announced = Announced::Already;
        }
        if line.starts_with("--") {
            self.place = RequestPlace::Part(Announced::NotYet);
            self.types.clear();
            return Ok(());
        }
        if matches!(self.place, RequestPlace::Part(_)) {
            self.part_is(&line);
        }
        match self.place {
            RequestPlace::Part(said) if is_blank => {
                self.part_begins();
                self.place = match said {
                    Announced::Already => RequestPlace::Line,
                    Announced::NotYet => RequestPlace::Content,
                };
                Ok(())
            }
            RequestPlace::Part(_) if announces => {
                self.place = RequestPlace::Part(Announced::Already);
                Ok(())
            }
            RequestPlace::Part(_) if is_coded(&lower) && self.announced == Announced::Already => {
                judge(Asks::Unread("requests in a coding that is not read"))
            }
            RequestPlace::Part(_) | RequestPlace::Line | RequestPlace::Content if is_blank => {
                Ok(())
            }
            RequestPlace::Fields if line.is_empty() => {
                self.place = RequestPlace::Content;
                self.content(judge)
            }
            // To some blanks end a head, and to others they are a part of it.
            RequestPlace::Fields if is_blank => self.content(judge),
            RequestPlace::Fields => self.field(&line, judge),
            RequestPlace::Part(_) | RequestPlace::Line | RequestPlace::Content => {
                self.request(&line, judge)
            }
        }
    }

    /// A line that may begin a request.
    fn request(&mut self, line: &str, judge: Judge<'_>) -> Result<(), Refused> {
        let mut words = line.split_ascii_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(());
        };
        let is_line = match words.next() {
            Some(version) => version.to_ascii_uppercase().starts_with("HTTP/"),
            // Of methods that nobody lists, where nothing else can stand.
            None => is_method(method) || (self.place == RequestPlace::Line && is_token(method)),
        };
        if self.announced == Announced::NotYet || !is_line || words.next().is_some() {
            if self.place == RequestPlace::Line {
                self.place = RequestPlace::Content;
            }
            return Ok(());
        }
        if self.skips {
            return judge(Asks::Unread("a request line without end"));
        }
        self.place = RequestPlace::Fields;
        self.head = InnerHead {
            method: method.to_owned(),
            target: target.to_owned(),
            fields: Vec::new(),
        };
        judge(Asks::Request { method, target })
    }

    fn field(&mut self, line: &str, judge: Judge<'_>) -> Result<(), Refused> {
        // Some still take what begins with a blank for more of the line before (RFC 9112 5.2).
        let goes_on = line.starts_with([' ', '\t']);
        let fields = &mut self.head.fields;
        if goes_on && let Some((_, value)) = fields.last_mut() {
            if value.len() + line.len() > FIELD_BYTES_MAX {
                return judge(Asks::Unread(HEAD_UNENDED));
            }
            value.push(' ');
            value.push_str(line.trim());
        } else {
            let Some((name, value)) = line.split_once(':') else {
                return Ok(());
            };
            if fields.len() >= FIELDS_MAX {
                return judge(Asks::Unread(HEAD_UNENDED));
            }
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let InnerHead {
            method,
            target,
            fields,
        } = &self.head;
        let Some((name, value)) = fields.last() else {
            return Ok(());
        };
        if self.skips && name.to_ascii_lowercase().starts_with("content") {
            return judge(Asks::Unread(HEAD_UNENDED));
        }
        judge(Asks::Field {
            method,
            target,
            name,
            value: value.trim(),
        })
    }

    /// A line of the head of a part.
    fn part_is(&mut self, line: &str) {
        if line.starts_with([' ', '\t'])
            && let Some(kind) = self.types.last_mut()
        {
            if kind.len() < FIELD_BYTES_MAX {
                kind.push(' ');
                kind.push_str(line.trim());
            }
        } else if let Some((name, kind)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-type")
            && self.types.len() < TYPES_MAX
        {
            self.types.push(kind.trim().to_owned());
        }
    }

    /// The head of a part is over, which may have parts of its own.
    fn part_begins(&mut self) {
        let [kind] = self.types.as_slice() else {
            return;
        };
        let is_multipart = kind.to_ascii_lowercase().starts_with("multipart/");
        if let Some(boundary) = boundary_of(kind).filter(|_| is_multipart) {
            self.bodies.nests(&boundary);
        }
    }

    /// The head of a request is over.
    fn content(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let Some(below) = self.below else {
            return judge(Asks::Unread(TOO_DEEP));
        };
        let content = B::of_request(&self.head, self.sent, below);
        self.bodies.begins(&self.head, content, judge)
    }
}

/// Whether a line of a part's head says that its content is in a coding (RFC 2045 6).
fn is_coded(line: &str) -> bool {
    let codings = ["base64", "quoted-printable", "binhex"];
    line.starts_with("content-transfer-encoding")
        && codings.iter().any(|coding| line.contains(coding))
}

/// Whether it may be a method (RFC 9110 9.1).
fn is_token(word: &str) -> bool {
    word.bytes().all(super::disposition::is_of_token)
}

#[cfg(test)]
mod tests {
    use super::super::asks::told::Told;
    use super::*;

    fn found(announced: Announced, content: &str, size: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            found.push(match asks {
                Asks::Request { method, target } => format!("{method} {target}"),
                Asks::Field { name, value, .. } => format!("{name}: {value}"),
                Asks::Within {
                    target,
                    asks: Asks::Named { value, .. },
                    ..
                } if value.trim().is_empty() => format!("{target} is empty"),
                Asks::Within {
                    target,
                    asks: Asks::Named { value, .. },
                    ..
                } => format!("{target} holds {}", value.trim()),
                other => format!("{other:?}"),
            });
            Ok(())
        };
        let depth = InnerDepth::default();
        let boundary = (announced == Announced::NotYet).then_some(&b"b"[..]);
        let mut requests = RequestFinder::<Told>::new(announced, boundary, (Sent::AtTheEnd, depth));
        for piece in content.as_bytes().chunks(size) {
            requests.read(piece, &mut judge).unwrap();
        }
        requests.finish(&mut judge).unwrap();
        found
    }

    #[test]
    fn each_request_of_a_batch_is_found() {
        let batch = "--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nDELETE /v1/a HTTP/1.1\r\nAccept: x\r\n\r\n--b\r\nContent-Type: Application/HTTP; msgtype=request\r\n\r\nmerge b?c\r\nX: y\r\n\r\nnot one\r\n--b--\r\n";
        let wanted = [
            "DELETE /v1/a",
            "Accept: x",
            "/v1/a is empty",
            "merge b?c",
            "X: y",
            "b?c holds not one",
        ];
        for size in [1, 3, 4096] {
            assert_eq!(found(Announced::NotYet, batch, size), wanted);
            let lines = batch.replace("\r\n", "\n");
            assert_eq!(found(Announced::NotYet, &lines, size), wanted);
        }
        let blanks = batch.replace("Type: app", &format!("Type:{}app", " ".repeat(4200)));
        assert_eq!(found(Announced::NotYet, &blanks, 100), wanted);
        let text = "--b\r\nContent-Type: text/plain\r\n\r\nDELETE /v1/a HTTP/1.1\r\n--b--\r\n";
        assert!(found(Announced::NotYet, text, 64).is_empty());
        assert_eq!(found(Announced::Already, "PUT /a HTTP/1.1", 64), ["PUT /a"]);
        assert_eq!(found(Announced::Already, "LINK /a", 64), ["LINK /a"]);
        let folded = "PUT /a HTTP/1.1\r\nX:\r\n y\r\n \r\nZ: z\r\n\r\nc";
        let wanted = [
            "PUT /a",
            "X: ",
            "X: y",
            "Z: z",
            "/a holds Z: z\r\n\r\nc",
            "/a holds c",
        ];
        assert_eq!(found(Announced::Already, folded, 5), wanted);
        let answer =
            "--b\nContent-Type: application/http\n\nHTTP/1.1 200 OK\nX: y\n\nSome words\n--b--";
        assert!(found(Announced::NotYet, answer, 64).is_empty());
        // What some take for a border and what may begin a request are content to others.
        let within = batch.replace("not one", "{\r\n--x\r\n--b-\nGET /d HTTP/1.1\r\n\r\n}");
        let found_in = found(Announced::NotYet, &within, 7);
        assert!(found_in.contains(&"GET /d".to_owned()), "{found_in:?}");
        assert!(
            found_in
                .iter()
                .any(|one| one.starts_with("b?c holds {") && one.ends_with('}')),
            "{found_in:?}"
        );
        let changes = "--b\r\nContent-Type: multipart/mixed;\r\n boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nPUT /a HTTP/1.1\r\n\r\n{}\r\n--c\r\nContent-Type: application/http\r\n\r\nPUT /b HTTP/1.1\r\n\r\n{}\r\n--c--\r\n--b--\r\n";
        let wanted = ["PUT /a", "/a holds {}", "PUT /b", "/b holds {}"];
        assert_eq!(found(Announced::NotYet, changes, 9), wanted);
        let coded = batch.replace("Content-ID: 1", "Content-Transfer-Encoding: base64");
        assert!(found(Announced::NotYet, &coded, 64)[0].contains("coding"));
        let long = format!("DELETE /{} HTTP/1.1", "x".repeat(9000));
        let long = found(Announced::Already, &long, 100);
        assert!(
            long.len() == 1 && long[0].contains("without end"),
            "{long:?}"
        );
    }
}
