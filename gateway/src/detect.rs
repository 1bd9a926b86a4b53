//! What a connection speaks, from its first bytes: "more" until it is certain.
//! Decides nothing else; what is none of the known protocols is `Unknown`,
//! and there is no raw fallback.

use outgate_dlp::span;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::client_hello::{self, ClientHello, HelloSoFar};
use crate::limits;

/// RFC 9113 3.4.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Detected {
    /// The beginning of several things.
    More,
    /// A whole ClientHello.
    Tls(ClientHello),
    /// A request line and the end of its head.
    Http1,
    /// The HTTP/2 preface.
    Http2,
    /// None of these, and why.
    Unknown(&'static str),
}

/// Looks at all bytes read so far.
pub(crate) fn detect(bytes: &[u8]) -> Detected {
    match bytes.first() {
        None => Detected::More,
        Some(22) => match client_hello::parse(bytes) {
            HelloSoFar::Incomplete => Detected::More,
            HelloSoFar::Complete(hello) => Detected::Tls(hello),
            HelloSoFar::Invalid(why) => Detected::Unknown(why),
        },
        Some(_) if HTTP2_PREFACE.starts_with(bytes) => {
            if bytes.len() == HTTP2_PREFACE.len() {
                Detected::Http2
            } else {
                Detected::More
            }
        }
        Some(_) if bytes.starts_with(HTTP2_PREFACE) => Detected::Http2,
        Some(_) => http1(bytes),
    }
}

fn http1(bytes: &[u8]) -> Detected {
    // Empty lines before the request line are tolerated (RFC 9112 2.2).
    let start = bytes
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(bytes.len());
    if start > 4 {
        return Detected::Unknown("not HTTP");
    }
    let bytes = span::from(bytes, start);
    let method = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
        .count();
    if method > limits::METHOD_BYTES_MAX {
        return Detected::Unknown("not HTTP");
    }
    match bytes.get(method) {
        None => return Detected::More,
        Some(b' ') if method > 0 => {}
        Some(_) => return Detected::Unknown("not HTTP"),
    }
    let Some(line_end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return Detected::More;
    };
    let line = span::upto(bytes, line_end);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let version = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    if !version.starts_with(b"HTTP/1.") {
        return Detected::Unknown("not HTTP/1");
    }
    if head_ends(bytes) {
        Detected::Http1
    } else {
        Detected::More
    }
}

/// Whether an empty line is there, with or without carriage returns: what the
/// parser accepts as an end must count as one here too.
fn head_ends(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

/// What a connection turned out to be.
pub(crate) enum Classified {
    Certain(Detected, Vec<u8>),
    /// Closed without a byte.
    Silent,
    Unknown(&'static str),
}

/// Reads until it is certain what is spoken, within time and bytes.
pub(crate) async fn classify(stream: &mut (impl AsyncRead + Unpin)) -> Classified {
    let deadline = Instant::now() + limits::CLASSIFY_TIME;
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match timeout_at(deadline, stream.read_buf(&mut bytes)).await {
            Err(_) => {
                return Classified::Unknown("nothing that HTTP or TLS begins with came in time");
            }
            Ok(Err(_)) => return Classified::Silent,
            Ok(Ok(0)) if bytes.is_empty() => return Classified::Silent,
            Ok(Ok(0)) => {
                return Classified::Unknown("the connection ended before it was clear what it is");
            }
            Ok(Ok(_)) => {}
        }
        match detect(&bytes) {
            Detected::More if bytes.len() >= limits::CLASSIFY_BYTES_MAX => {
                // An endless head: the parser has its own answer to that.
                return match bytes.first() {
                    Some(22) => Classified::Unknown("the TLS ClientHello is too long"),
                    _ => Classified::Certain(Detected::Http1, bytes),
                };
            }
            Detected::More => {}
            Detected::Unknown(why) => return Classified::Unknown(why),
            certain => return Classified::Certain(certain, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_hello::tests as hello;

    fn split_everywhere(bytes: &[u8], last: fn(&Detected) -> bool) {
        for cut in 0..bytes.len() {
            assert_eq!(detect(&bytes[..cut]), Detected::More, "cut at {cut}");
        }
        assert!(last(&detect(bytes)), "{:?}", detect(bytes));
    }

    #[test]
    fn every_segmentation_gives_the_same_answer() {
        split_everywhere(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", |d| {
            *d == Detected::Http1
        });
        split_everywhere(b"\r\nPRIX / HTTP/1.0\nHost: a\n\n", |d| {
            *d == Detected::Http1
        });
        split_everywhere(HTTP2_PREFACE, |d| *d == Detected::Http2);
        split_everywhere(&hello::hello(&hello::sni("a.example.org"), 7), |d| {
            matches!(d, Detected::Tls(_))
        });
    }

    #[test]
    fn everything_else_is_unknown() {
        for bytes in [
            &b"SSH-2.0-OpenSSH_9\r\n"[..],
            b"*1\r\n$4\r\nPING\r\n",
            b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
            b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
            b"GET\t/ HTTP/1.1\r\n",
            b"GET /\r\n",
            b"EHLO example.org\r\n",
            b"\r\n\r\n\r\n\r\n",
            b"\x80\x2e\x01\x03\x01",
        ] {
            assert!(matches!(detect(bytes), Detected::Unknown(_)), "{bytes:?}");
        }
    }
}
