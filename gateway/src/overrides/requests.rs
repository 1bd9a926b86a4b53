//! Requests that stand in the content of another one (`application/http` in the parts of
//! `multipart/mixed`, as stores and OData take batches), as their bytes come: each is
//! judged as if it were sent by itself, with its fields. Keeps one line and the target of
//! one request; changes nothing.

use super::asks::{Asks, Judge, Refused, is_method};

/// Bytes of a line that are looked at, at most.
const LINE_BYTES_MAX: usize = 4096;

/// Finds requests in bytes as they come.
#[derive(Debug)]
pub(super) struct Requests {
    line: Vec<u8>,
    skips: bool,
    /// Whether the line before ended with CR, behind which LF is no further line.
    after_cr: AfterCr,
    /// Whether anything said that requests come.
    announced: Announced,
    place: Place,
    /// The request whose fields come.
    method: String,
    target: String,
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
enum Place {
    /// In the head of a part, which said so or did not.
    Part(Announced),
    /// Where a request line stands.
    Line,
    Fields,
    Content,
}

impl Requests {
    /// Announced already where the type of the whole content says it.
    pub(super) fn new(announced: Announced) -> Self {
        Self {
            line: Vec::new(),
            skips: false,
            after_cr: AfterCr::No,
            announced,
            place: match announced {
                Announced::Already => Place::Line,
                Announced::NotYet => Place::Content,
            },
            method: String::new(),
            target: String::new(),
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            let was_cr = std::mem::replace(&mut self.after_cr, AfterCr::No);
            if was_cr == AfterCr::Yes
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
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
                self.finish(judge)?;
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// A line is over.
    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if !std::mem::take(&mut self.skips) {
            self.line_is(judge)?;
        }
        self.line.clear();
        Ok(())
    }

    fn line_is(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        if self.place == Place::Content
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
            self.place = Place::Part(Announced::NotYet);
            return Ok(());
        }
        match self.place {
            Place::Part(said) if is_blank => {
                self.place = match said {
                    Announced::Already => Place::Line,
                    Announced::NotYet => Place::Content,
                };
                Ok(())
            }
            Place::Part(_) if announces => {
                self.place = Place::Part(Announced::Already);
                Ok(())
            }
            Place::Part(_) if is_coded(&lower) && self.announced == Announced::Already => {
                judge(Asks::Unread("requests in a coding that is not read"))
            }
            Place::Part(_) | Place::Line | Place::Content if is_blank => Ok(()),
            Place::Fields if is_blank => {
                self.place = Place::Content;
                Ok(())
            }
            Place::Fields => self.field(&line, judge),
            Place::Part(_) | Place::Line | Place::Content => self.request(&line, judge),
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
            None => is_method(method) || (self.place == Place::Line && is_token(method)),
        };
        if self.announced == Announced::NotYet || !is_line || words.next().is_some() {
            if self.place == Place::Line {
                self.place = Place::Content;
            }
            return Ok(());
        }
        if self.skips {
            return judge(Asks::Unread("a request line without end"));
        }
        self.place = Place::Fields;
        method.clone_into(&mut self.method);
        target.clone_into(&mut self.target);
        judge(Asks::Request { method, target })
    }

    fn field(&self, line: &str, judge: Judge<'_>) -> Result<(), Refused> {
        let Some((name, value)) = line.split_once(':') else {
            return Ok(());
        };
        judge(Asks::Field {
            method: &self.method,
            target: &self.target,
            name: name.trim(),
            value: value.trim(),
        })
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
    use super::*;

    fn found(announced: Announced, content: &str, size: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            found.push(match asks {
                Asks::Request { method, target } => format!("{method} {target}"),
                Asks::Field { name, value, .. } => format!("{name}: {value}"),
                other => format!("{other:?}"),
            });
            Ok(())
        };
        let mut requests = Requests::new(announced);
        for piece in content.as_bytes().chunks(size) {
            requests.read(piece, &mut judge).unwrap();
        }
        requests.finish(&mut judge).unwrap();
        found
    }

    #[test]
    fn each_request_of_a_batch_is_found() {
        let batch = "--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nDELETE /v1/a HTTP/1.1\r\nAccept: x\r\n\r\n--b\r\nContent-Type: Application/HTTP; msgtype=request\r\n\r\nmerge b?c\r\nX: y\r\n\r\nnot one\r\n--b--\r\n";
        let wanted = ["DELETE /v1/a", "Accept: x", "merge b?c", "X: y"];
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
        let answer =
            "--b\nContent-Type: application/http\n\nHTTP/1.1 200 OK\nX: y\n\nSome words\n--b--";
        assert!(found(Announced::NotYet, answer, 64).is_empty());
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
