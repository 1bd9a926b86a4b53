//! The confined client where there is no curl: one request over HTTPS, and the
//! content of the response on standard output. It knows nothing of outgate; it
//! trusts whom `SSL_CERT_FILE` names, as clients do.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Bytes of a response that are read, at most.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024;

/// Fetches `url`, with content if there is any, and prints what comes back.
#[expect(
    clippy::disallowed_methods,
    reason = "it is a command as any other, not a part of the gateway"
)]
pub(crate) fn fetch(url: &str, content: Option<&str>) -> io::Result<()> {
    let rest = url
        .strip_prefix("https://")
        .ok_or_else(|| io::Error::other("only https:// is understood"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config()?), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect((host, 443))?);
    let (method, content) = content.map_or(("GET", ""), |content| ("POST", content));
    let length = content.len();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{content}"
    );
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

fn config() -> io::Result<ClientConfig> {
    let file = std::env::var("SSL_CERT_FILE").map_err(io::Error::other)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(io::Error::other)? {
        let certificate = certificate.map_err(io::Error::other)?;
        // One that cannot be read vouches for nobody.
        roots.add(certificate).ok();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
