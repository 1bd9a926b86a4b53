//! A connection through an upstream proxy: CONNECT to an address that was
//! vetted before (RFC 9110 9.3.6), so the proxy resolves nothing and learns no
//! name. Credentials go to the proxy and nowhere else.

use std::io;

use outgate_dlp::span;
use outgate_policy::{Proxy, Vetted, printable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits;

/// Asks the proxy at the other end of `stream` for a tunnel to `to`. What the
/// origin says first is left to be read.
///
/// # Errors
/// Why not, in words for people, without address or credentials.
pub(super) async fn tunnel(
    mut stream: TcpStream,
    proxy: &Proxy,
    to: Vetted,
) -> Result<TcpStream, String> {
    let to = to.address();
    let broken = |error: io::Error| error.to_string();
    let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
    if let Some(value) = proxy.authorization() {
        request.push_str("Proxy-Authorization: ");
        request.push_str(value);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    let head = head(&mut stream).await?;
    match status(&head) {
        Some((200..=299, _)) => Ok(stream),
        Some((407, _)) if proxy.authorization().is_none() => Err(
            "it wants credentials (407); put them into its URL as http://USER:PASSWORD@HOST:PORT"
                .to_owned(),
        ),
        Some((407, _)) => Err("it does not take these credentials (407)".to_owned()),
        Some((code, reason)) => Err(format!(
            "it makes no tunnel to port {}: {code} {}",
            to.port(),
            printable(reason)
        )),
        None => Err("it does not speak HTTP".to_owned()),
    }
}

/// Reads a response head and not a byte more: behind it is the tunnel.
async fn head(stream: &mut TcpStream) -> Result<Vec<u8>, String> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    let mut seen = [0; 1024];
    loop {
        let count = stream.peek(&mut seen).await.map_err(|e| e.to_string())?;
        let new = span::upto(&seen, count);
        if new.is_empty() {
            return Err("it closed the connection".to_owned());
        }
        let before = head.len();
        head.extend_from_slice(new);
        let from = before.saturating_sub(END.len());
        let ahead = span::from(&head, from);
        let end = ahead.windows(END.len()).position(|bytes| bytes == END);
        let end = end.map(|at| from + at + END.len());
        head.truncate(end.unwrap_or(head.len()));
        let taken = head.len().saturating_sub(before);
        let read = stream.read_exact(seen.get_mut(..taken).unwrap_or_default());
        read.await.map_err(|error| error.to_string())?;
        if end.is_some() {
            return Ok(head);
        }
        if head.len() > limits::PROXY_HEAD_BYTES_MAX {
            return Err("the head of its answer is too long".to_owned());
        }
    }
}

/// Status code and reason of a response head.
fn status(head: &[u8]) -> Option<(u16, &str)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let rest = line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| line.strip_prefix("HTTP/1.0 "))?;
    let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    code.parse()
        .ok()
        .filter(|_| digits)
        .map(|code| (code, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// What becomes of a tunnel through a proxy that answers in these pieces;
    /// what it was told, and what came behind its answer.
    fn asked(proxy: &str, pieces: &[&[u8]]) -> (Result<String, String>, String) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            let mut byte = [0];
            while !heard.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                heard.push(byte[0]);
            }
            for piece in pieces {
                stream.write_all(&piece).unwrap();
                std::thread::yield_now();
            }
            String::from_utf8(heard).unwrap()
        });
        let proxy = Proxy::parse(proxy).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let got = runtime.unwrap().block_on(async {
            let stream = TcpStream::connect(at).await.unwrap();
            let to = Proxy::parse("192.0.2.1:443").unwrap();
            let to = to.vetted("192.0.2.1:443".parse().unwrap()).unwrap();
            match tunnel(stream, &proxy, to).await {
                Ok(mut stream) => {
                    let mut rest = String::new();
                    stream.read_to_string(&mut rest).await.unwrap();
                    Ok(rest)
                }
                Err(why) => Err(why),
            }
        });
        (got, server.join().unwrap())
    }

    #[test]
    fn a_proxy_is_told_an_address_and_what_follows_its_answer_is_kept() {
        for pieces in [
            &[&b"HTTP/1.1 200 OK\r\n\r\nhello"[..]][..],
            &[
                b"HTTP/1.0 200 Connection established\r\nVia: x\r\n\r",
                b"\nhel",
                b"lo",
            ],
            &[b"HTTP/1.1 204\r\n", b"\r\n", b"hello"],
        ] {
            let (got, heard) = asked("http://p.test:1", pieces);
            assert_eq!(got.as_deref(), Ok("hello"));
            assert_eq!(
                heard,
                "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n\r\n"
            );
        }
        let (_, heard) = asked("http://me:pw@p.test:1", &[b"HTTP/1.1 200 OK\r\n\r\n"]);
        assert!(
            heard.contains("\r\nProxy-Authorization: Basic bWU6cHc=\r\n"),
            "{heard}"
        );
    }

    #[test]
    fn a_proxy_that_makes_no_tunnel_says_why_without_secrets() {
        for (answer, words) in [
            (
                &[&b"HTTP/1.1 403 Forbidden\r\n\r\n"[..]][..],
                "port 443: 403 Forbidden",
            ),
            (&[b"HTTP/1.1 407 Who\r\n\r\n"], "these credentials"),
            (&[b"HTTP/1.1 0200 OK\r\n\r\n"], "does not speak HTTP"),
            (&[b"SSH-2.0-x\r\n\r\n"], "does not speak HTTP"),
            (&[b"HTTP/1.1 200 OK\r\n"], "closed the connection"),
            (&[b"HTTP/1.1 500 \x1b[2J\r\n\r\n"], "500 \\u{1b}[2J"),
        ] {
            let (got, _) = asked("http://me:secret@p.test:1", answer);
            let why = got.unwrap_err();
            assert!(why.contains(words), "{why}");
            assert!(
                !why.contains("secret") && !why.contains("192.0.2.1"),
                "{why}"
            );
        }
        let (got, _) = asked("http://p.test:1", &[b"HTTP/1.1 407 Who\r\n\r\n"]);
        assert!(got.unwrap_err().contains("USER:PASSWORD"));
    }
}
