//! Leaves as strict verifiers see them: webpki by a whole handshake in memory,
//! and OpenSSL's own program with its strict mode.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use outgate_ca::{Authority, AuthorityRequest, CaError, LeafSubject, create};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;

/// A directory that goes away with the test.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        // Tests run side by side in one process, and several ask for the same name.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("outgate-ca-{name}-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn name(text: &str) -> LeafSubject {
    LeafSubject::Name(text.to_owned())
}

pub(crate) fn address(text: &str) -> LeafSubject {
    LeafSubject::Address(text.parse::<IpAddr>().unwrap())
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A handshake in memory: whether a client that trusts `pem` accepts `leaf` as
/// `expected`.
pub(crate) fn handshake(
    pem: &str,
    leaf: CertifiedKey,
    expected: &str,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(leaf))));
    let expected = ServerName::try_from(expected.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(client), expected)?;
    let mut server = rustls::ServerConnection::new(Arc::new(server))?;
    for _ in 0..8 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok(());
        }
    }
    panic!("no end of the handshake");
}

/// `openssl verify` in strict mode, with a hostname or an address.
pub(crate) fn openssl(pem: &str, leaf: &CertifiedKey, expected: &[&str]) -> Result<(), String> {
    let directory = Directory::new(&format!("openssl-{}", expected.join("").len()));
    let ca = directory.write("ca.pem", pem, 0o644);
    let der = directory.0.join("leaf.der");
    let mut file = fs::File::create(&der).unwrap();
    file.write_all(leaf.cert.first().unwrap()).unwrap();
    let output = Command::new("openssl")
        .args(["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile"])
        .arg(&ca)
        .args(expected)
        .arg(&der)
        .output()
        .expect("openssl is installed");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The certificate in OpenSSL's words.
fn described(der: &[u8]) -> String {
    let directory = Directory::new("described");
    let path = directory.0.join("certificate.der");
    fs::write(&path, der).unwrap();
    let output = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .arg(&path)
        .output()
        .expect("openssl is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn strict_verifiers_accept_a_leaf_for_its_host_only() {
    let authority = Authority::for_run("test").unwrap();
    let long = format!("{}.{}.example.org", "a".repeat(60), "b".repeat(60));
    for (subject, expected, option) in [
        (
            name("api.example.org"),
            "api.example.org",
            "-verify_hostname",
        ),
        (name(&long), long.as_str(), "-verify_hostname"),
        (
            name("xn--bcher-kva.example"),
            "xn--bcher-kva.example",
            "-verify_hostname",
        ),
        (address("192.0.2.7"), "192.0.2.7", "-verify_ip"),
        (address("2001:db8::7"), "2001:db8::7", "-verify_ip"),
    ] {
        let leaf = authority.issue(&subject).unwrap();
        openssl(authority.pem(), &leaf, &[option, expected]).unwrap();
        let other = openssl(
            authority.pem(),
            &leaf,
            &["-verify_hostname", "other.example"],
        );
        assert!(other.is_err(), "{subject:?} passed for another host");
        handshake(authority.pem(), leaf, expected).unwrap();
        let leaf = authority.issue(&subject).unwrap();
        handshake(authority.pem(), leaf, "other.example").unwrap_err();
    }
}

#[test]
fn a_leaf_says_what_verifiers_ask_for() {
    let authority = Authority::for_run("test").unwrap();
    let leaf = authority.issue(&name("api.example.org")).unwrap();
    let text = described(leaf.cert.first().unwrap());
    for needed in [
        "TLS Web Server Authentication",
        "X509v3 Subject Key Identifier",
        "X509v3 Authority Key Identifier",
        "DNS:api.example.org",
        "CA:FALSE",
        "Digital Signature",
        "prime256v1",
    ] {
        assert!(text.contains(needed), "{needed} is missing:\n{text}");
    }
    assert!(!text.contains("IP Address"), "{text}");
    let issuer = described(authority.certificate());
    for needed in [
        "CA:TRUE, pathlen:0",
        "Certificate Sign",
        "Subject Key Identifier: ",
    ] {
        assert!(issuer.contains(needed), "{needed} is missing:\n{issuer}");
    }
}

/// Browsers refuse leaves of 200 days; a clock may be a day behind.
#[test]
fn a_leaf_is_dated_back_and_short() {
    let authority = Authority::for_run("test").unwrap();
    let leaf = authority.issue(&name("api.example.org")).unwrap();
    let pem = openssl_pem(leaf.cert.first().unwrap());
    let ends_within = |days: u64| {
        let seconds = (days * 86_400).to_string();
        let mut openssl = Command::new("openssl");
        openssl.args(["x509", "-noout", "-checkend", &seconds]);
        let directory = Directory::new(&format!("dates-{days}"));
        openssl
            .arg("-in")
            .arg(directory.write("leaf.pem", &pem, 0o644));
        !openssl.output().expect("openssl").status.success()
    };
    assert!(!ends_within(190), "too short");
    assert!(ends_within(195), "too long");
    let day_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(24);
    let day_ago = day_ago
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .to_string();
    openssl(authority.pem(), &leaf, &["-attime", &day_ago]).unwrap();
}

fn openssl_pem(der: &[u8]) -> String {
    let directory = Directory::new("pem");
    let path = directory.0.join("leaf.der");
    fs::write(&path, der).unwrap();
    let output = Command::new("openssl")
        .args(["x509", "-in"])
        .arg(&path)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn serials_differ_although_the_key_is_shared() {
    let authority = Authority::for_run("test").unwrap();
    let serial = |host: &str| {
        let text = described(authority.issue(&name(host)).unwrap().cert.first().unwrap());
        let line = text
            .lines()
            .skip_while(|line| !line.contains("Serial Number"))
            .nth(1);
        line.unwrap_or_default().trim().to_owned()
    };
    let serials = [
        serial("a.example"),
        serial("b.example"),
        serial("a.example"),
    ];
    assert!(
        serials.iter().all(|serial| serial.len() > 30),
        "{serials:?}"
    );
    assert_ne!(serials[0], serials[1]);
    assert_ne!(serials[0], serials[2]);
}

#[test]
fn a_run_does_not_trust_another_runs_leaves() {
    let (one, other) = (
        Authority::for_run("same").unwrap(),
        Authority::for_run("same").unwrap(),
    );
    let leaf = other.issue(&name("api.example.org")).unwrap();
    openssl(one.pem(), &leaf, &[]).unwrap_err();
    handshake(one.pem(), leaf, "api.example.org").unwrap_err();
}

#[test]
fn odd_constraints_and_names_are_refused() {
    for text in [
        "",
        "a..b",
        "10.0.0.0/33",
        "::/129",
        "exa mple.org",
        "10.0.0.0/x",
        "-/8",
    ] {
        let request = AuthorityRequest {
            name: "x".to_owned(),
            permitted: vec![text.to_owned()],
            days: 1,
        };
        assert!(
            matches!(create(&request), Err(CaError::Constraint(_))),
            "{text}"
        );
    }
    let authority = Authority::for_run("test").unwrap();
    assert!(matches!(
        authority.issue(&name("bücher.example")),
        Err(CaError::Name(_))
    ));
}

/// Nothing that prints an authority prints its key.
#[test]
fn keys_are_not_printed() {
    let created = create(&AuthorityRequest {
        name: "x".to_owned(),
        permitted: Vec::new(),
        days: 1,
    })
    .unwrap();
    assert!(!format!("{created:?}").contains("PRIVATE"));
    let authority = Authority::for_run("test").unwrap();
    assert_eq!(format!("{authority:?}"), "Authority { .. }");
}
