//! The head of a request to the explicit proxy: read to its last byte and no further, since
//! what comes behind it may be a tunnel's; and what stands in it. Stricter than the parser
//! that reads it again. Decides nothing.

use std::io;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Version};
use outgate_dlp::span;
use outgate_record::Reason;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::fields::names_in;
use crate::limits;
use crate::malformed::Malformed;

/// Bytes that are looked at at once.
const LOOK_BYTES: usize = 4096;

/// Fields that are for the proxy alone, and which nobody behind it gets to see.
const OURS: [HeaderName; 2] = [
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
];

/// What came of reading a head.
pub(super) enum HeadRead {
    /// The whole head, and nothing else.
    Head(Vec<u8>),
    /// The client ended before it.
    End,
    /// It is longer than heads may be.
    Long,
}

/// Reads one head, to the empty line behind it.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<HeadRead> {
    let mut head = Vec::new();
    let mut looked = vec![0; LOOK_BYTES];
    loop {
        let count = stream.peek(&mut looked).await?;
        if count == 0 {
            return Ok(HeadRead::End);
        }
        let seen = span::upto(&looked, count);
        let end = end_behind(&head, seen);
        let mut taken = vec![0; end.unwrap_or(seen.len())];
        stream.read_exact(&mut taken).await?;
        head.extend_from_slice(&taken);
        if end.is_some() {
            return Ok(HeadRead::Head(head));
        }
        if head.len() > limits::HEAD_BYTES_MAX {
            return Ok(HeadRead::Long);
        }
    }
}

/// How many of the bytes behind `head` belong to it, if its end is among them.
fn end_behind(head: &[u8], behind: &[u8]) -> Option<usize> {
    // With or without carriage returns: whatever a parser takes for an end is one.
    let mut last = span::from(head, head.len().saturating_sub(2)).to_vec();
    for (position, byte) in behind.iter().enumerate() {
        last.push(*byte);
        if last.ends_with(b"\n\r\n") || last.ends_with(b"\n\n") {
            return Some(position.saturating_add(1));
        }
        if last.len() > 2 {
            last.remove(0);
        }
    }
    None
}

/// What a head says.
#[derive(Debug)]
pub(super) struct ProxyHead {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) version: Version,
    pub(super) fields: HeaderMap,
    /// The head as it came, without what is for the proxy alone.
    pub(super) onward: Vec<u8>,
}

impl ProxyHead {
    /// Takes it apart (RFC 9112 2 to 5).
    ///
    /// # Errors
    /// A line could be read in two ways.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').map(line);
        let first = lines.next().ok_or_else(|| bad("it is empty"))??;
        let (method, target, version) = request_line(first)?;
        let mut onward = [first, b"\r\n"].concat();
        let mut fields = HeaderMap::new();
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            let (name, value) = field(line)?;
            if fields.len() >= limits::FIELDS_MAX {
                return Err(bad(&format!("more than {} fields", limits::FIELDS_MAX)));
            }
            if !OURS.contains(&name) {
                onward.extend_from_slice(line);
                onward.extend_from_slice(b"\r\n");
            }
            fields.append(name, value);
        }
        onward.extend_from_slice(b"\r\n");
        Ok(Self {
            method,
            target,
            version,
            fields,
            onward,
        })
    }

    /// The one value of a field; an error where there are several.
    pub(super) fn one(&self, name: &HeaderName) -> Result<Option<&HeaderValue>, Malformed> {
        let mut values = self.fields.get_all(name).iter();
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(bad(&format!("more than one {name}"))),
        }
    }

    /// Whether its client sends nothing after the answer.
    pub(super) fn is_last(&self) -> bool {
        let names = [
            header::CONNECTION,
            HeaderName::from_static("proxy-connection"),
        ];
        let mut said = names.iter().flat_map(|name| names_in(&self.fields, name));
        self.version == Version::HTTP_10 || said.any(|word| word.eq_ignore_ascii_case("close"))
    }

    /// Whether something follows that belongs to the request.
    pub(super) fn has_content(&self) -> bool {
        let length = self.fields.get(header::CONTENT_LENGTH);
        length.is_some_and(|length| length != "0")
            || self.fields.contains_key(header::TRANSFER_ENCODING)
    }
}

/// The words for a head that is longer than heads may be.
pub(super) fn long() -> Malformed {
    Malformed {
        status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        reason: Reason::Malformed,
        because: format!("its head is longer than {} bytes", limits::HEAD_BYTES_MAX),
    }
}

fn bad(because: &str) -> Malformed {
    Malformed::bad(&format!("request to the proxy: {because}"))
}

/// One line without its end, which has one spelling.
fn line(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let line = bytes.strip_suffix(b"\r\n");
    let line = line.filter(|line| !line.contains(&b'\r') && !line.contains(&0));
    line.ok_or_else(|| bad("a line does not end with CRLF, or holds CR or NUL"))
}

fn request_line(line: &[u8]) -> Result<(Method, String, Version), Malformed> {
    let text = str::from_utf8(line).ok().filter(|text| text.is_ascii());
    let mut words = text.unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the first line is not METHOD TARGET VERSION"));
    };
    let version = match version {
        "HTTP/1.1" => Version::HTTP_11,
        "HTTP/1.0" => Version::HTTP_10,
        _ => return Err(bad("it is not HTTP/1.1")),
    };
    let method = Method::from_bytes(method.as_bytes())
        .ok()
        .filter(|method| method.as_str().len() <= limits::METHOD_BYTES_MAX)
        .ok_or_else(|| bad("the method is no short token"))?;
    if target.is_empty() || target.len() > limits::TARGET_BYTES_MAX {
        return Err(bad("the request target is empty or too long"));
    }
    Ok((method, target.to_owned(), version))
}

fn field(line: &[u8]) -> Result<(HeaderName, HeaderValue), Malformed> {
    let odd = || bad("a field line is not NAME: VALUE");
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, rest) = colon
        .and_then(|colon| line.split_at_checked(colon))
        .ok_or_else(odd)?;
    // No blank before the colon, and no line that goes on the one before.
    let name = HeaderName::from_bytes(name).map_err(|_| odd())?;
    let value = rest.strip_prefix(b":").unwrap_or_default().trim_ascii();
    let value = HeaderValue::from_bytes(value).map_err(|_| odd())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_where_it_ends_however_it_is_cut() {
        for (text, end) in [
            ("CONNECT a:1 HTTP/1.1\r\n\r\n\x16\x03", 24),
            ("GET / HTTP/1.0\r\na: b\r\n\r\nGET", 24),
            ("G\n\nx", 3),
            ("G\n\r\nx", 4),
        ] {
            for cut in 0..end {
                let (head, behind) = text.as_bytes().split_at(cut);
                assert_eq!(end_behind(head, behind), Some(end - cut), "{text:?} {cut}");
            }
        }
        for text in ["", "GET", "GET / HTTP/1.1\r\na: b\r\n", "\r\r", "\r\n"] {
            assert_eq!(end_behind(b"", text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_for_the_proxy_goes_no_further() {
        let text = "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nPROXY-authorization: Basic \
                    YTp0\r\nX: y\r\nProxy-Connection: keep-alive\r\nContent-Length: 2\r\n\r\n";
        let head = ProxyHead::parse(text.as_bytes()).unwrap();
        let onward = "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nX: y\r\nContent-Length: \
                      2\r\n\r\n";
        assert_eq!(String::from_utf8(head.onward.clone()).unwrap(), onward);
        assert!(head.has_content());
        let shown = head.one(&header::PROXY_AUTHORIZATION).unwrap();
        assert_eq!(shown.unwrap(), "Basic YTp0");
    }

    #[test]
    fn lines_with_two_readings_are_refused() {
        for text in [
            "",
            "\r\n",
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / x HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nProxy-Authorization: a\r\n\tb\r\n\r\n",
            "GET / HTTP/1.1\r\nHost\r\n\r\n",
            "GET / HTTP/1.1\r\n: a\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\n\r\n",
        ] {
            assert!(ProxyHead::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let twice =
            "CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: a\r\nproxy-authorization: b\r\n\r\n";
        let head = ProxyHead::parse(twice.as_bytes()).unwrap();
        assert!(head.one(&header::PROXY_AUTHORIZATION).is_err());
    }
}
