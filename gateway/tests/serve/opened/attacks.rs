//! Clients that do with opened TLS what it is not for.

use std::io::{Read, Write};
use std::sync::Arc;

use outgate_ca::LeafSubject;
use outgate_policy::SourceKind;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, HandshakeKind, ServerConnection, StreamOwned};

use super::{Always, Client, Inside, Pieces, Trusted, get, inside};
use crate::harness::{Launcher, Origin, exchange, read_message};

/// What an HTTP/2 client sends for one GET.
fn h2_request(authority: &str, path: &str) -> Vec<u8> {
    let literal = |index: u8, text: &str| {
        let mut field = vec![index, u8::try_from(text.len()).unwrap()];
        field.extend_from_slice(text.as_bytes());
        field
    };
    let mut fields = vec![0x82, 0x87];
    fields.extend(literal(0x44, path));
    fields.extend(literal(0x41, authority));
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.extend([0, 0, u8::try_from(fields.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(fields);
    bytes
}

/// An origin's, for a.test, without a word about versions.
fn plain_config(trusted: &Trusted) -> Arc<rustls::ServerConfig> {
    let leaf = trusted
        .authority
        .issue(&LeafSubject::Name("a.test".to_owned()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(leaf))));
    Arc::new(config)
}

/// An origin that did not agree on HTTP/2 would read frames as something
/// else, and with them what the client put into them.
#[test]
fn an_origin_without_http2_gets_none_of_its_bytes() {
    let trusted = Trusted::new();
    let config = plain_config(&trusted);
    let origin = Origin::start(move |stream, record| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let mut buffer = [0; 256];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            record(buffer[..count].to_vec());
        }
    });
    let mut launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let client = Client {
        pem: &launcher.authority,
        name: "a.test",
        protocols: &[b"h2"],
        cut: 0,
    };
    let mut client = client.open(launcher.connect("a.test", 443));
    client.write_all(&h2_request("a.test", "/x")).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains("HTTP/2") {
        match client.read(&mut buffer) {
            Ok(count @ 1..) => answer.extend_from_slice(&buffer[..count]),
            ended => panic!("{ended:?} after {:?}", String::from_utf8_lossy(&answer)),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains("a.test:443: it does not speak HTTP/2"),
        "{answer}"
    );
    drop(client);
    launcher.finish();
    assert_eq!(origin.requests(), Vec::<String>::new());
}

/// `localhost` is another word for an address, and clients look for it in the
/// certificate.
#[test]
fn a_client_of_localhost_is_answered_as_that() {
    let trusted = Trusted::new();
    let launcher = trusted.start(&[(SourceKind::Allow, "GET https://localhost:8443/x")]);
    for (name, host) in [
        ("localhost", "localhost:8443"),
        ("127.0.0.1", "127.0.0.1:8443"),
    ] {
        let client = Client {
            pem: &launcher.authority,
            name,
            protocols: &[b"http/1.1"],
            cut: 0,
        };
        let mut client = client.open(launcher.flow("127.0.0.1:8443".parse().unwrap()));
        let answer = get(&mut client, host, "/y");
        assert!(answer.starts_with("HTTP/1.1 403"), "{name}: {answer}");
    }
}

/// An origin is asked what it speaks before any request: in the record first.
#[test]
fn asking_an_origin_what_it_speaks_is_recorded() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[b"h2", b"http/1.1"]);
    let mut launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    for _ in 0..2 {
        let client = Client {
            pem: &launcher.authority,
            name: "a.test",
            protocols: &[b"h2", b"http/1.1"],
            cut: 0,
        };
        let mut client = client.open(launcher.connect("a.test", 443));
        client.conn.complete_io(&mut client.sock).unwrap();
        // One that ends without a word would be told why, in a record of its own.
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
    }
    launcher.finish();
    let asked: Vec<_> = launcher
        .records()
        .into_iter()
        .filter(|record| record["kind"] == "tunnel")
        .map(|record| (record["verdict"].clone(), record["target"].clone()))
        .collect();
    assert_eq!(asked, [("note".into(), "a.test:443".into())]);
}

/// Which requests a rule for WebSockets lets through, and no other, inside too.
#[test]
fn a_websocket_inside_needs_its_own_rule() {
    let trusted = Trusted::new();
    let offer = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
    };
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Allow, "wss://a.test/w"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    for (request, status) in [
        (offer("/x"), "403"),
        (offer("/w"), "200"),
        ("GET /w HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(), "403"),
    ] {
        let mut client = inside(&launcher, "a.test");
        let answer = exchange(&mut client, &request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{request}: {answer}"
        );
    }
    assert_eq!(origin.requests().len(), 1);
}

/// A denial that cannot be explained is in the record all the same.
#[test]
fn a_denied_client_hello_that_goes_no_further_is_recorded() {
    let trusted = Trusted::new();
    for protocols in [&[&b"foo"[..]][..], &[b"h2"], &[b"http/1.1"]] {
        let mut launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
        let client = Client {
            pem: trusted.authority.pem(),
            name: "denied.test",
            protocols,
            cut: 0,
        };
        let mut client = client.open(launcher.connect("denied.test", 443));
        assert!(client.write_all(b"GET / HTTP/1.1\r\n\r\n").is_err());
        drop(client);
        launcher.finish();
        let denied = launcher
            .records()
            .into_iter()
            .any(|record| record["verdict"] == "deny" && record["target"] == "denied.test:443");
        assert!(denied, "{protocols:?}");
    }
}

/// Servers behind one name need not be alike, nor stay as they were.
#[test]
fn an_origin_that_speaks_http2_no_more_is_asked_anew() {
    let trusted = Trusted::new();
    let old = plain_config(&trusted);
    let mut new = rustls::ServerConfig::clone(&old);
    new.alpn_protocols = vec![b"h2".to_vec()];
    let new = Arc::new(new);
    let count = std::sync::atomic::AtomicU32::new(0);
    let origin = Origin::start(move |stream, record| {
        let first = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let config = if first { &new } else { &old };
        let connection = ServerConnection::new(Arc::clone(config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        if first {
            // Agrees, and leaves.
            stream.conn.complete_io(&mut stream.sock).ok();
            return;
        }
        while let Some(request) = read_message(&mut stream) {
            record(request);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
        }
    });
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let client = || {
        let client = Client {
            pem: &launcher.authority,
            name: "a.test",
            protocols: &[b"h2", b"http/1.1"],
            cut: 0,
        };
        client.open(launcher.connect("a.test", 443))
    };
    let mut first = client();
    first.write_all(&h2_request("a.test", "/x")).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains("HTTP/2") {
        match first.read(&mut buffer) {
            Ok(count @ 1..) => answer.extend_from_slice(&buffer[..count]),
            ended => panic!("{ended:?}"),
        }
    }
    let mut second = client();
    assert!(get(&mut second, "a.test", "/x").starts_with("HTTP/1.1 200"));
    assert_eq!(second.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(origin.requests().len(), 1);
}

/// 0-RTT can be played again, and comes before anything was judged. A client
/// that has a ticket for it, from whomever, sends it all the same.
#[test]
fn early_data_is_not_taken() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/**"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    // A server of the same name that gives such tickets.
    let mut generous = rustls::ServerConfig::clone(&plain_config(&trusted));
    generous.max_early_data_size = 1 << 14;
    let generous = Arc::new(generous);
    let tickets = Origin::start(move |stream, record| {
        let connection = ServerConnection::new(Arc::clone(&generous)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while let Some(request) = read_message(&mut stream) {
            record(request);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
        }
    });
    let mut roots = rustls::RootCertStore::empty();
    for pem in [launcher.authority.as_str(), trusted.authority.pem()] {
        let root = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        roots.add(root).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.enable_early_data = true;
    let config = Arc::new(config);
    let client = || {
        let name = ServerName::try_from("a.test").unwrap();
        ClientConnection::new(Arc::clone(&config), name).unwrap()
    };
    #[expect(clippy::disallowed_methods, reason = "the command's own server")]
    let stream = std::net::TcpStream::connect(tickets.address).unwrap();
    let mut stream = StreamOwned::new(client(), Pieces { stream, cut: 0 });
    let answer = exchange(&mut stream, "GET /t HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    for early in ["/early", "/secret"] {
        let mut connection = client();
        let request = format!("GET {early} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let mut data = connection.early_data().expect("the attack is possible");
        data.write_all(request.as_bytes()).unwrap();
        let stream = launcher.connect("a.test", 443);
        let mut stream = StreamOwned::new(connection, Pieces { stream, cut: 0 });
        let answer = get(&mut stream, "a.test", "/late");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!stream.conn.is_early_data_accepted());
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
        // A ticket is for one attempt.
        #[expect(clippy::disallowed_methods, reason = "the command's own server")]
        let stream = std::net::TcpStream::connect(tickets.address).unwrap();
        let mut stream = StreamOwned::new(client(), Pieces { stream, cut: 0 });
        exchange(&mut stream, "GET /t HTTP/1.1\r\nHost: a.test\r\n\r\n");
    }
    let arrived = origin.requests();
    assert_eq!(arrived.len(), 2, "{arrived:?}");
    assert!(
        arrived
            .iter()
            .all(|request| request.starts_with("GET /late")),
        "{arrived:?}"
    );
}

/// Names have no case (RFC 4343), also in a ClientHello.
#[test]
fn a_name_in_upper_case_is_the_same_name() {
    let trusted = Trusted::new();
    let origin = trusted.origin("a.test", &[]);
    let launcher = trusted.start(&[
        (SourceKind::Allow, "GET https://a.test/x"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    for name in ["A.TEST", "A.test"] {
        let mut client = inside_as(&launcher, name);
        let answer = get(&mut client, "a.test", "/x");
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        let answer = get(&mut client, "a.test", "/y");
        assert!(answer.starts_with("HTTP/1.1 403"), "{name}: {answer}");
    }
}

/// A client that calls a.test so.
fn inside_as(launcher: &Launcher, name: &str) -> Inside {
    let client = Client {
        pem: &launcher.authority,
        name,
        protocols: &[],
        cut: 0,
    };
    client.open(launcher.connect("a.test", 443))
}

/// Names that are hard to put into a certificate: denied in words, in TLS or in
/// an alert, soon, and nobody else suffers.
#[test]
fn odd_names_are_answered_too() {
    let trusted = Trusted::new();
    let launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
    let label = "x".repeat(63);
    let long = format!("{label}.{label}.{label}.{}", "y".repeat(61));
    for name in [
        long.as_str(),
        &format!("{label}.test"),
        "under_score.test",
        "-a.test",
        "xn--nxasmq6b.test",
        "xn--.test",
        "single",
        "a.123",
        "0x7f.1.test",
    ] {
        let stream = launcher.connect(name, 443);
        let mut roots = rustls::RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(launcher.authority.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let Ok(server) = ServerName::try_from(name.to_owned()) else {
            continue;
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), server).unwrap();
        let mut client = StreamOwned::new(connection, Pieces { stream, cut: 0 });
        let answer = get(&mut client, name, "/");
        assert!(answer.starts_with("HTTP/1.1 403"), "{name}: {answer}");
        assert!(answer.contains(name), "{name}: {answer}");
    }
}

/// A ClientHello of one record, with an Encrypted Client Hello behind its other
/// extensions (RFC 9849 5).
fn with_hidden_name(hello: &[u8]) -> Vec<u8> {
    // Its kind, algorithms and key, and what is hidden, each with its length.
    let mut hidden = vec![0xfe, 0x0d, 0, 74, 0, 0, 1, 0, 1, 7, 0, 32];
    hidden.extend([8; 32]);
    hidden.extend([0, 32]);
    hidden.extend([9; 32]);
    let more = u16::try_from(hidden.len()).unwrap();
    let mut bytes = hello.to_vec();
    // Behind versions and random: session, suites, compression.
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(bytes[at]);
    at += 2 + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    at += 1 + usize::from(bytes[at]);
    // The lengths of the record, the message and the extensions.
    for length in [3, 7, at] {
        let grown = u16::from_be_bytes([bytes[length], bytes[length + 1]]) + more;
        bytes[length..length + 2].copy_from_slice(&grown.to_be_bytes());
    }
    bytes.extend(hidden);
    bytes
}

/// Browsers hide a name from everybody, mostly one that means nothing.
#[test]
fn a_name_hidden_beside_the_open_one_counts_for_nothing() {
    let trusted = Trusted::new();
    let launcher = trusted.start(&[(SourceKind::Allow, "GET https://a.test/x")]);
    // The open one is a host's own, or not: a handshake goes on, or an alert comes.
    for (name, record) in [("a.test", 22), ("b.test", 21)] {
        let client = Client {
            pem: &launcher.authority,
            name,
            protocols: &[b"http/1.1"],
            cut: 0,
        };
        for hides in [false, true] {
            let mut hello = Vec::new();
            client.connection().write_tls(&mut hello).unwrap();
            if hides {
                hello = with_hidden_name(&hello);
            }
            let mut stream = launcher.connect("a.test", 443);
            stream.write_all(&hello).unwrap();
            let mut first = [0];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(first, [record], "{name}, hidden: {hides}");
        }
    }
}
