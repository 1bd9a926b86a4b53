//! TLS that is opened: what is inside is judged request by request, what is
//! not HTTP goes nowhere, and origins are verified.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outgate_ca::{Authority, LeafSubject};
use outgate_policy::SourceKind;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConnection, HandshakeKind, ServerConnection, StreamOwned};

use crate::harness::{Launcher, Origin, exchange, read_message, start_trusting};

mod attacks;
mod local;
mod origins;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A connection whose first bytes come in two pieces.
struct Pieces {
    stream: TcpStream,
    cut: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let cut = std::mem::take(&mut self.cut).min(bytes.len());
        if cut > 0 {
            self.stream.write_all(&bytes[..cut])?;
            std::thread::park_timeout(Duration::from_millis(3));
            return Ok(cut);
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

type Inside = StreamOwned<ClientConnection, Pieces>;

/// What a client trusts, says and offers.
struct Client<'a> {
    pem: &'a str,
    name: &'a str,
    protocols: &'a [&'a [u8]],
    cut: usize,
}

impl Client<'_> {
    fn open(&self, stream: TcpStream) -> Inside {
        let cut = self.cut;
        StreamOwned::new(self.connection(), Pieces { stream, cut })
    }

    fn connection(&self) -> ClientConnection {
        let mut roots = rustls::RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = self.protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(self.name.to_owned()).unwrap();
        ClientConnection::new(Arc::new(config), name).unwrap()
    }
}

/// A client that is as it should be.
fn inside(launcher: &Launcher, name: &str) -> Inside {
    let client = Client {
        pem: &launcher.authority,
        name,
        protocols: &[b"http/1.1"],
        cut: 0,
    };
    client.open(launcher.connect(name, 443))
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A directory with the certificate of the origins' authority.
struct Trusted {
    authority: Authority,
    file: PathBuf,
}

impl Trusted {
    fn new() -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let authority = Authority::for_run("origins").unwrap();
        let name = format!("outgate-origins-{}-{count}.pem", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, authority.pem()).unwrap();
        Self { authority, file }
    }

    /// An origin with a certificate for `name`: records each request.
    fn origin(&self, name: &str, protocols: &[&[u8]]) -> Origin {
        origin(&self.authority, name, protocols)
    }

    fn start(&self, rules: &[(SourceKind, &str)]) -> Launcher {
        start_trusting(rules, std::slice::from_ref(&self.file))
    }
}

impl Drop for Trusted {
    fn drop(&mut self) {
        std::fs::remove_file(&self.file).ok();
    }
}

fn origin(authority: &Authority, name: &str, protocols: &[&[u8]]) -> Origin {
    let leaf = authority
        .issue(&LeafSubject::Name(name.to_owned()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(leaf))));
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    Origin::start(move |stream, record| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while let Some(request) = read_message(&mut stream) {
            record(request);
            if stream.write_all(ANSWER.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn get(stream: &mut Inside, host: &str, path: &str) -> String {
    exchange(
        stream,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
}

/// Whether a connection ends without another byte of content.
fn ends(stream: &mut Inside) -> bool {
    let mut buffer = [0; 64];
    matches!(stream.read(&mut buffer), Ok(0) | Err(_))
}

#[test]
fn requests_inside_are_judged_one_by_one() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let mut launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let mut client = inside(&launcher, "a.test");
    assert!(get(&mut client, "a.test", "/x").starts_with("HTTP/1.1 200"));
    let denied = get(&mut client, "a.test", "/y");
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    assert!(
        denied.contains("outgate denied GET https://a.test/y: no rule"),
        "{denied}"
    );
    assert!(denied.contains("-a 'GET https://a.test/y'"), "{denied}");
    assert!(get(&mut client, "a.test", "/x").starts_with("HTTP/1.1 200"));
    drop(client);
    launcher.finish();
    let requests = origin.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for request in &requests {
        assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
        assert!(
            request.to_ascii_lowercase().contains("host: a.test\r\n"),
            "{request}"
        );
    }
    let judged: Vec<_> = launcher
        .records()
        .into_iter()
        .filter(|record| record["kind"] == "request")
        .map(|record| {
            (
                record["verdict"].clone(),
                record["target"].clone(),
                record["path"].clone(),
            )
        })
        .collect();
    let row = |verdict: &str, path: &str| (verdict.into(), "https://a.test".into(), path.into());
    assert_eq!(
        judged,
        [row("allow", "/x"), row("deny", "/y"), row("allow", "/x")]
    );
}

/// A proxy that takes a short first read for something else passes it on raw.
#[test]
fn the_client_hello_in_any_pieces_is_opened_all_the_same() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let address = launcher.address("a.test", 443);
    for cut in 1..=64 {
        let client = Client {
            pem: &launcher.authority,
            name: "a.test",
            protocols: &[],
            cut,
        };
        let mut client = client.open(launcher.flow(address));
        let denied = get(&mut client, "a.test", "/secret");
        assert!(denied.starts_with("HTTP/1.1 403"), "cut at {cut}: {denied}");
    }
    assert!(origin.requests().is_empty());
}

#[test]
fn another_authority_inside_is_refused() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Allow, "GET https://b.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    for (host, status) in [
        ("b.test", 403),
        ("a.test:80", 403),
        ("a.test:8443", 403),
        ("a.test, b.test", 400),
        ("x@a.test", 400),
    ] {
        let mut client = inside(&launcher, "a.test");
        let answer = get(&mut client, host, "/x");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{host}: {answer}"
        );
        assert!(ends(&mut client), "{host}");
    }
    for request in [
        "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET https://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
    ] {
        let mut client = inside(&launcher, "a.test");
        let answer = exchange(&mut client, request);
        assert!(answer.starts_with("HTTP/1.1 40"), "{request}: {answer}");
    }
    assert!(origin.requests().is_empty());
    // The neighbours pass.
    for host in ["a.test", "A.test", "a.test:443"] {
        let mut client = inside(&launcher, "a.test");
        assert!(
            get(&mut client, host, "/x").starts_with("HTTP/1.1 200"),
            "{host}"
        );
    }
}

#[test]
fn what_is_not_http_goes_nowhere_inside_either() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/**"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    for words in [
        &b"SSH-2.0-OpenSSH_9\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
          \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
          \x00\x00\x00\x00\x02\x13\x01\x01\x00",
        b"\x00\x01\x02\x03",
    ] {
        let mut client = inside(&launcher, "a.test");
        client.write_all(words).unwrap();
        assert!(ends(&mut client), "{words:?}");
    }
    assert!(origin.requests().is_empty());
}

#[test]
fn a_denied_host_is_told_why_inside_tls() {
    let trusted = Trusted::new();
    let mut launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
    let mut client = inside(&launcher, "denied.test");
    let answer = get(&mut client, "denied.test", "/p");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(
        answer.contains("outgate denied GET https://denied.test/p"),
        "{answer}"
    );
    drop(client);
    launcher.finish();
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
}

#[test]
fn a_name_that_is_not_the_destinations_gets_an_alert() {
    let trusted = Trusted::new();
    let launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
    let client = Client {
        pem: &launcher.authority,
        name: "b.test",
        protocols: &[],
        cut: 0,
    };
    let mut client = client.open(launcher.connect("a.test", 443));
    let error = client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap_err();
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
}

#[test]
fn an_origin_that_cannot_be_verified_gets_no_request() {
    let trusted = Trusted::new();
    let stranger = Authority::for_run("stranger").unwrap();
    for (origin, part) in [
        (
            origin(&stranger, "a.test", &[]),
            "an issuer that this machine does not trust",
        ),
        (trusted.origin("other.test", &[]), "is for another name"),
    ] {
        let launcher = trusted.start(&[
            (SourceKind::Allow, "GET https://a.test/x"),
            (SourceKind::Pin, &origin.pin("a.test", 443)),
        ]);
        for protocols in [&[&b"http/1.1"[..]][..], &[b"h2", b"http/1.1"]] {
            let client = Client {
                pem: &launcher.authority,
                name: "a.test",
                protocols,
                cut: 0,
            };
            let mut client = client.open(launcher.connect("a.test", 443));
            let answer = get(&mut client, "a.test", "/x");
            assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
            assert!(answer.contains(part), "{answer}");
        }
        assert!(origin.requests().is_empty());
    }
}

/// What was to be opened is never passed unopened because the client minds.
#[test]
fn a_client_that_says_nothing_after_the_handshake_is_told_in_both_versions() {
    let trusted = Trusted::new();
    for protocols in [&[][..], &[&b"h2"[..]]] {
        let mut launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
        let client = Client {
            pem: &launcher.authority,
            name: "a.test",
            protocols,
            cut: 0,
        };
        let mut client = client.open(launcher.connect("a.test", 443));
        client.conn.complete_io(&mut client.sock).unwrap();
        drop(client);
        launcher.finish();
        let notices = launcher.notices.join("\n");
        assert!(notices.contains("said nothing once it saw"), "{notices}");
        assert!(notices.contains("--trust splice"), "{notices}");
    }
}

#[test]
fn a_client_that_does_not_trust_us_reaches_nobody() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let mut launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let client = Client {
        pem: trusted.authority.pem(),
        name: "a.test",
        protocols: &[],
        cut: 0,
    };
    let mut client = client.open(launcher.connect("a.test", 443));
    let request = b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let error = client.write_all(request).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    // Its alert is still to be sent.
    client.conn.write_tls(&mut client.sock).unwrap();
    drop(client);
    launcher.finish();
    assert!(origin.requests().is_empty());
    let notices = launcher.notices.join("\n");
    assert!(
        notices.contains("does not trust the certificate of this run"),
        "{notices}"
    );
    assert!(notices.contains("-a 'tls://a.test'"), "{notices}");
}

#[test]
fn client_and_origin_speak_the_same_version() {
    let trusted = Trusted::new();
    let both: &[&[u8]] = &[b"h2", b"http/1.1"];
    for (offers, knows, agreed) in [
        (both, both, &b"h2"[..]),
        (both, &[b"http/1.1"], b"http/1.1"),
        (both, &[], b"http/1.1"),
        (&[b"http/1.0", b"http/1.1"], both, b"http/1.1"),
        (&[b"http/1.0"], both, b"http/1.0"),
    ] {
        let origin = trusted.origin("a.test", knows);
        let launcher = trusted.start(&[
            (SourceKind::Allow, "GET https://a.test/x"),
            (SourceKind::Pin, &origin.pin("a.test", 443)),
        ]);
        for _ in 0..2 {
            let client = Client {
                pem: &launcher.authority,
                name: "a.test",
                protocols: offers,
                cut: 0,
            };
            let mut client = client.open(launcher.connect("a.test", 443));
            client.conn.complete_io(&mut client.sock).unwrap();
            assert_eq!(client.conn.alpn_protocol(), Some(agreed));
        }
    }
}

/// Every connection shows its ClientHello: nothing is resumed, nothing is early.
#[test]
fn nothing_is_resumed() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(launcher.authority.as_bytes()).unwrap();
    roots.add(root).unwrap();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        config.enable_early_data = true;
        let config = Arc::new(config);
        for _ in 0..3 {
            let name = ServerName::try_from("a.test").unwrap();
            let connection = ClientConnection::new(Arc::clone(&config), name).unwrap();
            let stream = launcher.connect("a.test", 443);
            let mut client = StreamOwned::new(connection, Pieces { stream, cut: 0 });
            assert!(client.conn.early_data().is_none());
            assert!(get(&mut client, "a.test", "/x").starts_with("HTTP/1.1 200"));
            assert_eq!(client.conn.handshake_kind(), Some(HandshakeKind::Full));
            assert_eq!(client.conn.protocol_version(), Some(version.version));
        }
    }
}
