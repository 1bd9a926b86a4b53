//! The confined client where there is no curl: one GET over HTTP/1.1, and the
//! content of the response on standard output. It knows nothing of outgate.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Bytes of a response that are read, at most.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024;

/// Fetches `url` and prints the content.
#[expect(
    clippy::disallowed_methods,
    reason = "it is a command as any other, not a part of the gateway"
)]
pub(crate) fn fetch(url: &str) -> io::Result<()> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| io::Error::other("only http:// is understood"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = match authority.rsplit_once(':') {
        Some(_) => TcpStream::connect(authority)?,
        None => TcpStream::connect((authority, 80))?,
    };
    let head = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut response = Vec::new();
    stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    let (_, content) = response
        .split_once("\r\n\r\n")
        .ok_or_else(|| io::Error::other("the response has no end of its head"))?;
    print!("{content}");
    Ok(())
}
