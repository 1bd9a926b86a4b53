//! A user's own authority: made once, opened only with a key that nobody else can
//! have, and believed for its names alone, whoever signs with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use outgate_ca::{
    Authority, AuthorityFiles, AuthorityRequest, CaError, Created, LeafSubject, create, describe,
    establish, open,
};
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;

use crate::certificates::{Directory, address, handshake, name, openssl};

/// What a thief of the key signs, who is not held to anything.
fn forge(created: &Created, subject: &LeafSubject) -> CertifiedKey {
    let stolen = KeyPair::from_pem(&created.key).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&created.certificate, stolen).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = vec![match subject {
        LeafSubject::Name(name) => SanType::DnsName(name.as_str().try_into().unwrap()),
        LeafSubject::Address(address) => SanType::IpAddress(*address),
    }];
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let authority = CertificateDer::from_pem_slice(created.certificate.as_bytes()).unwrap();
    let der = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let signer = rustls::crypto::ring::sign::any_ecdsa_type(&der).unwrap();
    CertifiedKey::new(vec![leaf.der().clone(), authority], signer)
}

fn own(permitted: &[&str]) -> (Directory, Authority, Created) {
    let created = create(&AuthorityRequest {
        name: "own authority".to_owned(),
        permitted: permitted.iter().map(|&text| text.to_owned()).collect(),
        days: 365,
    })
    .unwrap();
    let directory = Directory::new(&format!("own-{}", permitted.join("").len()));
    let certificate = directory.write("ca.pem", &created.certificate, 0o644);
    let key = directory.write("ca.key", &created.key, 0o600);
    let authority = open(&AuthorityFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    })
    .unwrap();
    assert_eq!(authority.pem(), created.certificate);
    (directory, authority, created)
}

/// Whoever steals the key of a constrained authority can vouch for nobody else.
#[test]
fn a_constrained_authority_vouches_for_its_names_alone() {
    let (_directory, authority, created) = own(&["example.org", "192.0.2.0/24"]);
    for (subject, expected) in [
        (name("example.org"), "example.org"),
        (name("api.example.org"), "api.example.org"),
        (address("192.0.2.9"), "192.0.2.9"),
    ] {
        let leaf = authority.issue(&subject).unwrap();
        openssl(authority.pem(), &leaf, &[]).unwrap();
        handshake(authority.pem(), leaf, expected).unwrap();
    }
    for (subject, expected) in [
        (name("example.com"), "example.com"),
        (name("notexample.org"), "notexample.org"),
        (address("198.51.100.9"), "198.51.100.9"),
        (address("2001:db8::9"), "2001:db8::9"),
    ] {
        let error = authority.issue(&subject).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the authority may vouch for example.org, 192.0.2.0/24 only, and not for \
                 `{expected}`"
            )
        );
        let leaf = forge(&created, &subject);
        let answer = openssl(authority.pem(), &leaf, &[]);
        assert!(answer.is_err(), "{expected} passed");
        handshake(authority.pem(), leaf, expected).unwrap_err();
    }
}

#[test]
fn domains_alone_vouch_for_no_address() {
    let (_directory, authority, created) = own(&["*.example.org"]);
    let beyond = authority.issue(&address("192.0.2.9"));
    assert!(matches!(beyond, Err(CaError::Beyond { .. })), "{beyond:?}");
    let leaf = forge(&created, &address("192.0.2.9"));
    openssl(authority.pem(), &leaf, &[]).unwrap_err();
    handshake(authority.pem(), leaf, "192.0.2.9").unwrap_err();
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let created = create(&AuthorityRequest {
        name: "x".to_owned(),
        permitted: Vec::new(),
        days: 1,
    })
    .unwrap();
    let directory = Directory::new("modes");
    let certificate = directory.write("ca.pem", &created.certificate, 0o644);
    for mode in [0o640, 0o604, 0o660, 0o644, 0o777] {
        let key = directory.write("ca.key", &created.key, mode);
        let error = open(&AuthorityFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })
        .unwrap_err()
        .to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
    let key = directory.write("ca.key", &created.key, 0o400);
    open(&AuthorityFiles {
        certificate: certificate.clone(),
        key: key.clone(),
    })
    .unwrap();
}

/// Whoever has a key by another name, or owns it, has it for good.
#[test]
fn a_key_that_others_can_have_is_refused() {
    let directory = Directory::new("names");
    let place = AuthorityFiles::of(&directory.0.join("ca"));
    let request = AuthorityRequest {
        name: "x".to_owned(),
        permitted: Vec::new(),
        days: 1,
    };
    establish(&directory.0.join("ca"), &request).unwrap();
    open(&place).unwrap();
    let second = directory.0.join("second");
    fs::hard_link(&place.key, &second).unwrap();
    let error = open(&place).unwrap_err().to_string();
    assert!(error.contains("a second name elsewhere"), "{error}");
    fs::remove_file(&place.key).unwrap();
    std::os::unix::fs::symlink(&second, &place.key).unwrap();
    let error = open(&place).unwrap_err().to_string();
    assert!(error.contains("is a link"), "{error}");
    fs::remove_file(&place.key).unwrap();
    // A pipe would hold up whoever opens it.
    nix::unistd::mkfifo(&place.key, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let error = open(&place).unwrap_err().to_string();
    assert!(error.contains("is no regular file"), "{error}");
    if nix::unistd::geteuid().is_root() {
        fs::remove_file(&place.key).unwrap();
        fs::rename(&second, &place.key).unwrap();
        nix::unistd::chown(&place.key, Some(1.into()), None).unwrap();
        let error = open(&place).unwrap_err().to_string();
        assert!(error.contains("belongs to user 1"), "{error}");
    }
}

/// What is there is never written over, and half an authority is not left.
#[test]
fn an_authority_is_made_once() {
    let directory = Directory::new("once");
    let home = directory.0.join("deep/ca");
    let request = AuthorityRequest {
        name: "team \u{1b}[2J".to_owned(),
        permitted: vec!["**.Example.ORG".to_owned()],
        days: 30,
    };
    let made = establish(&home, &request).unwrap();
    let place = AuthorityFiles::of(&home);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    assert_eq!((mode(&place.key), mode(&place.certificate)), (0o600, 0o644));
    assert_eq!(made.scope.permitted(), ["example.org"]);
    assert_eq!(made.name, "team  [2J");
    let before = fs::read(&place.key).unwrap();
    for kept in [&place.certificate, &place.key] {
        let error = establish(&home, &request).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
        assert_eq!(fs::read(&place.key).unwrap_or_default(), before);
        fs::remove_file(kept).unwrap();
        if *kept == place.certificate {
            // A link to nothing is something, too.
            std::os::unix::fs::symlink("/nowhere/at/all", kept).unwrap();
            establish(&home, &request).unwrap_err();
            fs::remove_file(kept).unwrap();
            establish(&home, &request).unwrap_err();
        } else {
            assert!(!place.certificate.exists());
        }
    }
    establish(&home, &request).unwrap();
}

#[test]
fn an_authority_that_does_not_hold_is_refused() {
    let directory = Directory::new("other");
    let make = |name: &str| {
        let request = AuthorityRequest {
            name: name.to_owned(),
            permitted: Vec::new(),
            days: 1,
        };
        let home = directory.0.join(name);
        establish(&home, &request).unwrap();
        AuthorityFiles::of(&home)
    };
    let (one, two) = (make("one"), make("two"));
    let mixed = AuthorityFiles {
        certificate: one.certificate.clone(),
        key: two.key.clone(),
    };
    let error = open(&mixed).unwrap_err().to_string();
    assert!(
        error.contains("is the certificate of another key"),
        "{error}"
    );
    assert_eq!(describe(&one).unwrap().name, "one");
    // A server's certificate, and an authority of yesterday.
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
    for (certificate, part) in [
        (params.self_signed(&key).unwrap(), "lacks CA:TRUE"),
        (
            {
                params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
                params.not_after = rcgen::date_time_ymd(2020, 1, 2);
                params.self_signed(&key).unwrap()
            },
            "ended on 2020-01-02",
        ),
    ] {
        let place = AuthorityFiles {
            certificate: directory.write("other.pem", &certificate.pem(), 0o644),
            key: directory.write("other.key", &key.serialize_pem(), 0o600),
        };
        let error = open(&place).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn files_that_are_no_authority_are_named() {
    let created = create(&AuthorityRequest {
        name: "x".to_owned(),
        permitted: Vec::new(),
        days: 1,
    })
    .unwrap();
    let directory = Directory::new("faults");
    let certificate = directory.write("ca.pem", &created.certificate, 0o644);
    let key = directory.write("ca.key", &created.key, 0o600);
    let nothing = directory.write("nothing", "", 0o600);
    let large = directory.write("large", &"x".repeat(100_000), 0o600);
    for (certificate, key, part) in [
        (&certificate, &nothing, "nothing: holds no private key"),
        (&nothing, &key, "nothing: holds no certificate"),
        (&certificate, &large, "large: is longer than"),
        (
            &certificate,
            &directory.0.join("absent"),
            "absent: No such file",
        ),
    ] {
        let error = open(&AuthorityFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })
        .unwrap_err()
        .to_string();
        assert!(error.contains(part), "{error}");
    }
}
