//! Reads the responses a client got, strictly enough to tell one from the next.

use crate::case::Method;

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Status line and fields, as they came.
    pub(crate) head: String,
    /// Decoded content.
    pub(crate) content: Vec<u8>,
    /// Trailer fields, as they came.
    pub(crate) trailers: String,
    /// Whether it ended by its own framing, or by the end of the connection.
    pub(crate) end: End,
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Framed,
    Unframed,
    /// Bytes are missing.
    Cut,
}

impl Reply {
    /// The values of a field; `name` in lower case.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect()
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

/// Content and trailers of a chunked message, and the bytes it took.
pub(crate) fn chunked(bytes: &[u8]) -> Option<(Vec<u8>, String, usize)> {
    let (mut at, mut content) = (0, Vec::new());
    loop {
        let line_end = find(&bytes[at..], b"\r\n")? + at;
        let size = std::str::from_utf8(&bytes[at..line_end]).ok()?;
        let size = usize::from_str_radix(size, 16).ok()?;
        at = line_end + 2;
        if size == 0 {
            break;
        }
        content.extend(bytes.get(at..at.checked_add(size)?)?);
        at += size;
        if bytes.get(at..at + 2)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
    if bytes.get(at..at + 2)? == b"\r\n" {
        return Some((content, String::new(), at + 2));
    }
    let end = find(&bytes[at..], b"\r\n\r\n")? + at;
    let trailers = String::from_utf8_lossy(&bytes[at..end]).into_owned();
    Some((content, trailers, end + 4))
}

fn next(bytes: &[u8], method: Method) -> Option<(Reply, usize)> {
    let end = find(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok())?;
    let mut reply = Reply {
        status,
        head,
        content: Vec::new(),
        trailers: String::new(),
        end: End::Framed,
    };
    let rest = &bytes[end..];
    if (100..200).contains(&status) || status == 204 || status == 304 || method == Method::Head {
        return Some((reply, end));
    }
    if !reply.fields("transfer-encoding").is_empty() {
        return Some(match chunked(rest) {
            Some((content, trailers, length)) => {
                reply.content = content;
                reply.trailers = trailers;
                (reply, end + length)
            }
            None => cut(reply, bytes, end),
        });
    }
    let length = reply.fields("content-length").first().copied();
    Some(match length.map(|text| text.parse::<usize>().ok()) {
        Some(Some(length)) if length <= rest.len() => {
            reply.content = rest[..length].to_vec();
            (reply, end + length)
        }
        Some(_) => cut(reply, bytes, end),
        None => {
            reply.content = rest.to_vec();
            reply.end = End::Unframed;
            (reply, bytes.len())
        }
    })
}

fn cut(mut reply: Reply, bytes: &[u8], end: usize) -> (Reply, usize) {
    reply.content = bytes[end..].to_vec();
    reply.end = End::Cut;
    (reply, bytes.len())
}

/// All responses in `bytes`, and what is left behind them.
pub(crate) fn read(bytes: &[u8], method: Method) -> (Vec<Reply>, Vec<u8>) {
    let (mut at, mut all) = (0, Vec::new());
    while let Some((reply, length)) = next(&bytes[at..], method) {
        let switched = reply.status == 101;
        all.push(reply);
        at += length;
        if switched {
            break;
        }
    }
    (all, bytes[at..].to_vec())
}

/// Whole final responses.
pub(crate) fn finals(bytes: &[u8], method: Method) -> usize {
    read(bytes, method)
        .0
        .iter()
        .filter(|reply| (reply.status >= 200 || reply.status == 101) && reply.end == End::Framed)
        .count()
}
