//! Requests that stand in the content of another one (`application/http` in the parts of
//! `multipart/mixed`, as stores and OData take batches), as their bytes come: each is
//! judged as if it were sent by itself. Keeps one line; changes nothing.

use super::asks::{Asks, Judge, Refused, is_method};

/// Bytes of a line that are looked at, at most.
const LINE_BYTES_MAX: usize = 4096;

/// Finds request lines in bytes as they come.
#[derive(Debug)]
pub(super) struct Requests {
    line: Vec<u8>,
    skips: bool,
    announced: Announced,
}

impl Requests {
    /// Announced already where the type of the whole content says it.
    pub(super) fn new(announced: Announced) -> Self {
        Self {
            line: Vec::new(),
            skips: false,
            announced,
        }
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| b"\r\n".contains(byte));
            let (content, rest) = bytes
                .split_at_checked(end.unwrap_or(bytes.len()))
                .unwrap_or_default();
            if !self.skips {
                let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
                self.line
                    .extend_from_slice(content.get(..room).unwrap_or(content));
                if content.len() > room {
                    self.skips = true;
                    self.line_is(judge)?;
                }
            }
            if end.is_some() {
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
        if self.line.is_empty() {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&self.line);
        let lower = line.to_ascii_lowercase();
        if lower.contains("application/http") {
            self.announced = Announced::Already;
            return Ok(());
        }
        if self.announced == Announced::NotYet {
            return Ok(());
        }
        let is_coded = ["base64", "quoted-printable", "binhex"]
            .iter()
            .any(|coding| lower.contains(coding));
        if lower.starts_with("content-transfer-encoding") && is_coded {
            return judge(Asks::Unread("requests in a coding that is not read"));
        }
        let mut words = line.split_ascii_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Ok(());
        };
        let is_line = match words.next() {
            Some(version) => version.to_ascii_uppercase().starts_with("HTTP/"),
            None => is_method(method),
        };
        if !is_line || words.next().is_some() {
            return Ok(());
        }
        if self.skips {
            return judge(Asks::Unread("a request line without end"));
        }
        judge(Asks::Request { method, target })
    }
}

/// Whether something said that requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    Already,
    NotYet,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(announced: Announced, content: &str, size: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut judge = |asks: Asks<'_>| {
            found.push(match asks {
                Asks::Request { method, target } => format!("{method} {target}"),
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
        let batch = "--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nDELETE /v1/a HTTP/1.1\r\nAccept: x\r\n\r\n--b\r\nContent-Type: Application/HTTP; msgtype=request\r\n\r\nget b?c\r\n\r\n--b--\r\n";
        for size in [1, 3, 4096] {
            assert_eq!(
                found(Announced::NotYet, batch, size),
                ["DELETE /v1/a", "get b?c"]
            );
        }
        let text = "--b\r\nContent-Type: text/plain\r\n\r\nDELETE /v1/a HTTP/1.1\r\n--b--\r\n";
        assert!(found(Announced::NotYet, text, 64).is_empty());
        assert_eq!(found(Announced::Already, "PUT /a HTTP/1.1", 64), ["PUT /a"]);
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
