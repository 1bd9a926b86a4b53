//! Certificates that the gateway presents: to the one host they are for, over
//! TLS that was verified, and with keys that the command never has.

use std::fs;
use std::path::PathBuf;

use outgate_ca::AuthorityRequest;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::origin::{Demand, MARK, Origin};
use crate::{OPEN_FILES, confined, curl, shell, text, words, write};

/// A certificate, its key, and both in one file.
pub(crate) struct Identities {
    certificate: PathBuf,
    key: PathBuf,
    pub(crate) both: PathBuf,
    pub(crate) der: Vec<u8>,
}

pub(crate) fn identity(lab: &Lab, name: &str) -> Identities {
    let folder = lab.folder("identity", Identity::Own);
    let made = outgate_ca::create(&AuthorityRequest {
        name: name.to_owned(),
        permitted: Vec::new(),
        days: 30,
    })
    .expect("a certificate");
    let der = rustls::pki_types::pem::PemObject::from_pem_slice(made.certificate.as_bytes());
    let der: rustls::pki_types::CertificateDer<'_> = der.expect("a certificate");
    let both = format!("{}{}", made.certificate, made.key);
    Identities {
        certificate: write(
            &folder.join(format!("{name}.pem")),
            &made.certificate,
            0o644,
        ),
        key: write(&folder.join(format!("{name}.key")), &made.key, 0o600),
        both: write(&folder.join(format!("{name}-both.pem")), &both, 0o600),
        der: der.to_vec(),
    }
}

/// A run that may ask two hosts, which are one origin.
fn towards<'lab>(lab: &'lab Lab, origin: &Origin, rules: &[&str]) -> Sandbox<'lab> {
    let sandbox = confined(lab)
        .pin(&origin.pin("one.test"))
        .pin(&origin.pin("two.test"))
        .option("--upstream-ca", &text(&origin.authority));
    rules
        .iter()
        .fold(sandbox, |sandbox, rule| sandbox.allow(rule))
}

lab_tests! {
    fn a_certificate_is_presented_to_its_host_alone(lab) {
        let own = identity(lab, "own");
        // The second host stays closed, whatever looks inside.
        let rules = ["https://one.test", "tls://two.test"];
        for files in [format!("{}:{}", text(&own.certificate), text(&own.key)), text(&own.both)] {
            let origin = Origin::start(lab, &["one.test", "two.test"], Demand::Wish);
            let sandbox = towards(lab, &origin, &rules)
                .option("--client-cert", &format!("one.test={files}"));
            let record = lab.directory.join("record.jsonl");
            fs::remove_file(&record).ok();
            let sandbox = sandbox.option("--audit", &text(&record));
            let authority = text(&origin.authority);
            // So its own authority is trusted there.
            let fetch = format!(
                "curl -sS https://one.test/a && curl -sS --cacert {authority} https://two.test/b"
            );
            let fetched = sandbox.option("-r", &authority).run(&shell(&fetch));
            assert_eq!(fetched.code, Some(0), "{fetched}");
            assert_eq!(fetched.stdout, format!("{MARK}{MARK}"), "{fetched}");
            let visits = origin.visits();
            let of = |name: &str| {
                let own = visits.iter().filter(|visit| visit.server_name.as_deref() == Some(name));
                own.cloned().collect::<Vec<_>>()
            };
            let (one, two) = (of("one.test"), of("two.test"));
            assert!(!one.is_empty() && !two.is_empty(), "{visits:?}");
            assert!(one.iter().all(|visit| visit.certificate.as_ref() == Some(&own.der)), "{one:?}");
            assert!(two.iter().all(|visit| visit.certificate.is_none()), "{two:?}");
            let record = fs::read_to_string(&record).expect("a record");
            let presented = record.lines().filter(|line| line.contains("certificate presented"));
            let hosts: Vec<bool> = presented.map(|line| line.contains("one.test:443")).collect();
            assert_eq!(hosts, vec![true; one.len()], "{record}");
            assert!(!record.contains("PRIVATE"));
        }
    }

    fn an_opened_host_without_one_gets_none(lab) {
        let own = identity(lab, "own");
        let origin = Origin::start(lab, &["one.test", "two.test"], Demand::Certificate);
        let rules = ["GET https://one.test/**", "GET https://two.test/**"];
        let client = format!("one.test={}", text(&own.both));
        let fetched = towards(lab, &origin, &rules)
            .option("--client-cert", &client)
            .run(&curl("https://one.test/a"));
        assert!(fetched.stdout.starts_with(MARK), "{fetched}");
        let fetched = towards(lab, &origin, &rules)
            .option("--client-cert", &client)
            .run(&curl("https://two.test/a"));
        assert!(fetched.stdout.ends_with("502"), "{fetched}");
        let visits = origin.visits();
        assert!(visits.iter().all(|visit| visit.server_name.as_deref() == Some("one.test")));
        // A host whose TLS is never opened is none that it is presented to.
        let fetched = towards(lab, &origin, &["tls://one.test"])
            .option("--client-cert", &client)
            .option("-r", &text(&origin.authority))
            .run(&words(&["curl", "-sS", "--cacert", &text(&origin.authority), "https://one.test/"]));
        assert_ne!(fetched.code, Some(0), "{fetched}");
        assert_eq!(origin.visits(), []);
    }

    fn an_origin_that_is_not_verified_gets_no_certificate(lab) {
        let own = identity(lab, "own");
        let origin = Origin::start(lab, &["other.test"], Demand::Wish);
        let client = format!("one.test={}", text(&own.both));
        let fetched = towards(lab, &origin, &["https://one.test"])
            .option("--client-cert", &client)
            .run(&curl("https://one.test/a"));
        assert!(fetched.stdout.ends_with("502"), "{fetched}");
        assert!(fetched.stdout.contains("is for another name"), "{fetched}");
        assert_eq!(origin.visits(), []);
    }

    fn the_command_does_not_get_the_key(lab) {
        let own = identity(lab, "own");
        let origin = Origin::start(lab, &["one.test"], Demand::Wish);
        let folder = lab.folder("identity", Identity::Own);
        let client = format!("one.test={}:{}", text(&own.certificate), text(&own.key));
        // Readable is what lies beside it.
        let script = format!(
            "cat {} >/dev/null && echo certificate; cat {key}; \
             ln {key} ./own; mv {folder} ./moved; {OPEN_FILES}; env | grep -a 'PRIVATE[ ]KEY'; grep -rla 'PRIVATE[ ]KEY' \"$TMPDIR\"; true",
            text(&own.certificate),
            key = text(&own.key),
            folder = text(&folder),
        );
        let tried = towards(lab, &origin, &["https://one.test"])
            .option("--client-cert", &client)
            .option("-r", &text(&folder))
            .run(&shell(&script));
        assert_eq!(tried.code, Some(0), "{tried}");
        assert_eq!(tried.stdout, "certificate\n", "{tried}");
        assert!(tried.stderr.contains("Permission denied"), "{tried}");
        // A grant of the key itself, or for writing around it, starts nothing.
        for (option, path) in [("-r", text(&own.key)), ("-w", text(&own.key)), ("-w", text(&folder))] {
            let refused = towards(lab, &origin, &["https://one.test"])
                .option("--client-cert", &client)
                .option(option, &path)
                .run(&shell("echo started"));
            assert_eq!(refused.code, Some(2), "{option} {path}: {refused}");
            assert_eq!(refused.stdout, "", "{refused}");
            assert!(refused.stderr.contains("lies where the command may"), "{refused}");
        }
    }

    fn files_that_cannot_be_presented_start_nothing(lab) {
        let own = identity(lab, "own");
        let other = identity(lab, "other");
        let folder = lab.folder("identity", Identity::Own);
        let open = write(&folder.join("open.key"), &fs::read_to_string(&own.key).expect("a key"), 0o640);
        let empty = write(&folder.join("empty.pem"), "", 0o600);
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let locked = write(&folder.join("locked.key"), locked, 0o600);
        let second = folder.join("second.key");
        fs::hard_link(&other.key, &second).expect("a link");
        let origin = Origin::start(lab, &["one.test"], Demand::Wish);
        for (certificate, key, code, part) in [
            (&own.certificate, &open, 125, "others may use this key (mode 640); chmod 600 it"),
            (&own.certificate, &second, 125, "a second name elsewhere"),
            (&own.certificate, &identity(lab, "third").key, 125, "is not the certificate of"),
            (&empty, &own.key, 125, "holds no certificate in PEM"),
            (&own.certificate, &locked, 125, "holds no private key in PEM, or a locked one"),
            (&own.certificate, &folder.join("absent.key"), 2, "No such file"),
        ] {
            let client = format!("one.test={}:{}", text(certificate), text(key));
            let refused = towards(lab, &origin, &["https://one.test"])
                .option("--client-cert", &client)
                .run(&shell("echo started"));
            assert_eq!(refused.code, Some(code), "{refused}");
            assert_eq!(refused.stdout, "", "{refused}");
            assert!(refused.stderr.contains(part), "{part}: {refused}");
        }
        for (option, value, part) in [
            ("--client-cert", "one.test", "write HOST=CERT.pem:KEY.pem"),
            ("--client-cert", "*.test=/x.pem", "a certificate is presented to one host"),
        ] {
            let refused = confined(lab).option(option, value).run(&shell("echo started"));
            assert_eq!(refused.code, Some(2), "{refused}");
            assert!(refused.stderr.contains(part), "{part}: {refused}");
        }
        let client = format!("one.test={}", text(&own.both));
        let refused = confined(lab)
            .option("--client-cert", &client)
            .option("--intercept", "never")
            .run(&shell("echo started"));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("forbids to open TLS"), "{refused}");
    }
}
