//! Origins that are not who they say, or not any more: none gets a request, and
//! the client is told what is wrong with each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outgate_policy::SourceKind;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ServerConnection, StreamOwned};
use time::OffsetDateTime;

use super::{Always, Client, get};
use crate::harness::{Launcher, Origin, read_message, start_trusting};

const DAY: time::Duration = time::Duration::DAY;

/// An authority whose leaves may be anything.
struct Careless {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Careless {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A leaf, with a key that may be another's.
    fn leaf(&self, params: &CertificateParams, key: Key) -> CertifiedKey {
        let own = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&own, &self.issuer).unwrap();
        let key = match key {
            Key::Own => own,
            Key::Another => KeyPair::generate().unwrap(),
        };
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signer = rustls::crypto::ring::sign::any_ecdsa_type(&der).unwrap();
        CertifiedKey::new(vec![leaf.der().clone()], signer)
    }
}

#[derive(Clone, Copy)]
enum Key {
    Own,
    Another,
}

/// A certificate for these names that is as it should be.
fn sound(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - DAY, now + DAY);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn changed(names: &[&str], change: impl Fn(&mut CertificateParams)) -> CertificateParams {
    let mut params = sound(names);
    change(&mut params);
    params
}

/// An origin with this certificate: records whatever it is sent inside TLS.
fn origin(leaf: CertifiedKey) -> Origin {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(leaf))));
    let config = Arc::new(config);
    Origin::start(move |stream, record| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while let Some(request) = read_message(&mut stream) {
            record(request);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).ok();
        }
    })
}

/// What a client of `https://a.b.test/x` is answered.
fn ask(launcher: &Launcher) -> String {
    let client = Client {
        pem: &launcher.authority,
        name: "a.b.test",
        protocols: &[b"h2", b"http/1.1"],
        cut: 0,
    };
    let mut client = client.open(launcher.connect("a.b.test", 443));
    get(&mut client, "a.b.test", "/x")
}

fn rules(origin: &Origin) -> [(SourceKind, String); 2] {
    [
        (SourceKind::Allow, "GET https://a.b.test/x".to_owned()),
        (SourceKind::Pin, origin.pin("a.b.test", 443)),
    ]
}

fn launch(origin: &Origin, authority: &Careless, name: &str) -> Launcher {
    let file = std::env::temp_dir().join(format!("outgate-{name}-{}.pem", std::process::id()));
    std::fs::write(&file, &authority.pem).unwrap();
    let rules = rules(origin);
    let rules = rules.each_ref().map(|(kind, text)| (*kind, text.as_str()));
    let launcher = start_trusting(&rules, std::slice::from_ref(&file));
    std::fs::remove_file(file).unwrap();
    launcher
}

#[test]
fn certificates_with_any_fault_are_told_and_get_no_request() {
    let authority = Careless::new("origins");
    let now = OffsetDateTime::now_utc();
    let own = &["a.b.test"][..];
    let anybody = "is for another name";
    let cases: [(&str, CertificateParams, Key, &str); 14] = [
        ("another name", sound(&["b.test"]), Key::Own, anybody),
        ("a name below", sound(&["x.a.b.test"]), Key::Own, anybody),
        ("no name", sound(&[]), Key::Own, anybody),
        ("an address", sound(&["127.0.0.1"]), Key::Own, anybody),
        ("too wide", sound(&["*.test"]), Key::Own, anybody),
        ("everybody", sound(&["*"]), Key::Own, anybody),
        ("a part", sound(&["a*.b.test"]), Key::Own, anybody),
        (
            "ended",
            changed(own, |params| params.not_after = now - DAY / 2),
            Key::Own,
            "has expired",
        ),
        (
            "not begun",
            changed(own, |params| params.not_before = now + DAY / 2),
            Key::Own,
            "is not valid yet",
        ),
        (
            "of a client",
            changed(own, |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }),
            Key::Own,
            "is not for servers",
        ),
        (
            "of an authority",
            changed(own, |params| {
                params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }),
            Key::Own,
            "is one of an authority, not of a server",
        ),
        ("with another's key", sound(own), Key::Another, "signature"),
        ("forged", sound(own), Key::Own, "has a wrong signature"),
        (
            "of a stranger",
            sound(own),
            Key::Own,
            "an issuer that this machine does not trust",
        ),
    ];
    for (case, params, key, part) in cases {
        let other = match case {
            "forged" => Some("origins"),
            "of a stranger" => Some("stranger"),
            _ => None,
        };
        let other = other.map(Careless::new);
        let issuer = other.as_ref().unwrap_or(&authority);
        let origin = origin(issuer.leaf(&params, key));
        let answer = ask(&launch(&origin, &authority, "faults"));
        assert!(answer.starts_with("HTTP/1.1 502"), "{case}: {answer}");
        assert!(answer.contains(part), "{case}: {answer}");
        assert_eq!(origin.requests(), [""; 0], "{case}");
    }
    // The neighbours are believed.
    for names in [&["a.b.test"][..], &["*.b.test"], &["x.test", "A.B.test"]] {
        let origin = origin(authority.leaf(&sound(names), Key::Own));
        let answer = ask(&launch(&origin, &authority, "sound"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{names:?}: {answer}");
        assert_eq!(origin.requests().len(), 1);
    }
}

/// What an origin says instead of a handshake, and how it ends.
#[test]
fn what_is_no_handshake_of_an_origin_is_a_bad_gateway_in_time() {
    let authority = Careless::new("origins");
    let words: [(&str, &[u8]); 6] = [
        ("nothing, and the end", b""),
        (
            "plain HTTP",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        ),
        ("an alert", b"\x15\x03\x03\x00\x02\x02\x28"),
        ("a record without end", b"\x16\x03\x03\x40\x00\x02"),
        ("a record that is too long", b"\x16\x03\x03\xff\xff\x02"),
        ("zeros", &[0; 100]),
    ];
    for (case, words) in words {
        let origin = Origin::start(move |mut stream: TcpStream, record| {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap_or(0);
            record(buffer[..count].to_vec());
            stream.write_all(words).ok();
        });
        let begun = Instant::now();
        let answer = ask(&launch(&origin, &authority, "words"));
        assert!(answer.starts_with("HTTP/1.1 502"), "{case}: {answer}");
        assert!(!answer.contains("evil"), "{case}: {answer}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{case}");
        // It saw ClientHellos and nothing of the request.
        let seen = origin.seen.lock().unwrap();
        assert!(
            !seen.is_empty() && seen.iter().all(|bytes| bytes.first() == Some(&22)),
            "{case}"
        );
    }
}

/// One that never answers is given up, for this client and for the next.
#[test]
fn an_origin_that_never_shakes_hands_is_given_up() {
    let authority = Careless::new("origins");
    let origin = Origin::start(|mut stream, record| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).ok();
        record(all);
    });
    let launcher = launch(&origin, &authority, "silent");
    let client = Client {
        pem: &launcher.authority,
        name: "a.b.test",
        protocols: &[],
        cut: 0,
    };
    let mut client = client.open(launcher.connect("a.b.test", 443));
    let begun = Instant::now();
    let answer = get(&mut client, "a.b.test", "/x");
    assert!(answer.starts_with("HTTP/1.1 50"), "{answer}");
    assert!(
        answer.contains("no end of the TLS handshake within 10 s"),
        "{answer}"
    );
    assert!(begun.elapsed() < Duration::from_secs(15));
}
