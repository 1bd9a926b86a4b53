//! Every message of the policy language, as the user reads it.
//!
//! `messages.txt` holds blocks of a source and its messages, divided by lines
//! of dashes. Run with `OUTGATE_BLESS=1` to write what is said now, then read
//! the difference.

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a test ends where something is not as it must be"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use outgate_policy::{
    AddressSource, Context, Facts, Host, Peer, Process, RequestTarget, Scheme, Source, SourceKind,
    Verdict, compile,
};

const DIVIDER: &str = "\n----\n";
const ARROW: &str = "\n=>\n";

fn context() -> Context {
    Context {
        home: "/home/me".to_owned(),
        working_directory: "/here".to_owned(),
        private_directory: "/tmp/private".to_owned(),
        ..Context::default()
    }
}

fn source(input: &str) -> Source {
    let (kind, text) = input.split_once([' ', '\n']).unwrap_or((input, ""));
    let (kind, place) = match kind {
        "allow" => (SourceKind::Allow, "-a"),
        "deny" => (SourceKind::Deny, "-d"),
        "pin" => (SourceKind::Pin, "--resolve"),
        "read" => (SourceKind::Read, "-r"),
        "write" => (SourceKind::Write, "-w"),
        "listen" => (SourceKind::Listen, "--listen"),
        "secret" => (SourceKind::Secret, "--secret"),
        "document" => (SourceKind::Document, "agent.toml"),
        other => panic!("unknown kind `{other}`"),
    };
    Source {
        kind,
        place: place.to_owned(),
        text: text.to_owned(),
    }
}

fn messages(input: &str) -> String {
    match compile(&[source(input)], &context()) {
        Ok(policy) if policy.warnings().is_empty() => "no message".to_owned(),
        Ok(policy) => {
            let warnings: Vec<String> = policy.warnings().iter().map(ToString::to_string).collect();
            format!("warning: {}", warnings.join("\nwarning: "))
        }
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn every_message_reads_as_reviewed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    let reviewed = fs::read_to_string(&path).expect("messages.txt is readable");
    let mut current = String::new();
    for block in reviewed.trim_end().split(DIVIDER) {
        let input = block.split_once(ARROW).map_or(block, |(input, _)| input);
        let divider = if current.is_empty() { "" } else { DIVIDER };
        let _ = write!(current, "{divider}{input}{ARROW}{}", messages(input));
    }
    current.push('\n');
    if std::env::var_os("OUTGATE_BLESS").is_some() {
        fs::write(&path, &current).expect("messages.txt is writable");
    }
    for (now, then) in current.split(DIVIDER).zip(reviewed.split(DIVIDER)) {
        assert_eq!(now, then);
    }
}

#[test]
fn every_message_keeps_the_style() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    let reviewed = fs::read_to_string(&path).expect("messages.txt is readable");
    for block in reviewed.trim_end().split(DIVIDER) {
        let input = block.split_once(ARROW).map_or(block, |(input, _)| input);
        let Err(errors) = compile(&[source(input)], &context()) else {
            continue;
        };
        for error in &errors {
            let message = error.message();
            assert!(!message.ends_with('.'), "{message}");
            assert!(
                !message.starts_with(|c: char| c.is_uppercase()),
                "{message}"
            );
            assert!(!message.contains("failed to"), "{message}");
            assert!(error.line() > 0 && error.column() > 0, "{message}");
        }
    }
}

/// Rules, event, sentence, flag.
type Row<'a> = (
    &'a [(SourceKind, &'a str)],
    Facts<'a>,
    &'a str,
    Option<&'a str>,
);

/// A denial as the user meets it: sentence and flag.
fn denial(rules: &[(SourceKind, &str)], facts: &Facts<'_>) -> (String, Option<String>) {
    let sources: Vec<Source> = rules
        .iter()
        .map(|(kind, text)| Source {
            kind: *kind,
            place: if *kind == SourceKind::Document {
                "agent.toml"
            } else {
                "-a"
            }
            .to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    let policy = compile(&sources, &context()).expect("a policy");
    match policy.evaluate(facts) {
        Verdict::Allow(permit) => panic!("{facts:?} was allowed by {:?}", permit.rule()),
        Verdict::Deny(denial) => (denial.sentence(), denial.hint()),
    }
}

fn check_request(rules: &[(SourceKind, &str)], row: [&str; 5]) {
    let [method, host, target, sentence, hint] = row;
    let parsed = Host::parse(host).expect(host);
    let peer = match &parsed {
        Host::Name(name) => Peer::Name(name),
        Host::Address(address) => Peer::Address(*address),
    };
    let facts = Facts::Request {
        process: Process {
            executable: "/usr/bin/curl",
        },
        peer,
        port: 80,
        scheme: Scheme::Http,
        method,
        target: &RequestTarget::parse(target).expect(target),
    };
    let (found, flag) = denial(rules, &facts);
    assert_eq!(found, sentence);
    assert_eq!(flag.unwrap_or_default(), hint);
}

#[test]
fn denied_requests_say_what_would_allow_them() {
    check_request(
        &[],
        [
            "GET",
            "api.example.org",
            "/admin?token=1",
            "outgate denied GET http://api.example.org/admin: no rule allows it",
            "-a 'GET http://api.example.org/admin'",
        ],
    );
    check_request(
        &[],
        [
            "GET",
            "api.example.org",
            "/it's/*",
            "outgate denied GET http://api.example.org/it's/*: no rule allows it",
            r"-a 'GET http://api.example.org/it'\''s/%2A'",
        ],
    );
    check_request(
        &[],
        [
            "get",
            "api.example.org",
            "/x/..;/y",
            "outgate denied get http://api.example.org/x/..;/y: no rule allows it",
            "-a 'http://api.example.org'",
        ],
    );
    check_request(
        &[(
            SourceKind::Document,
            "deny = [\"* */admin/**\"]\nallow = [\"*\"]",
        )],
        [
            "GET",
            "api.example.org",
            "/admin",
            "outgate denied GET http://api.example.org/admin: the deny rule `* */admin/**` at agent.toml:1:10 denies it",
            "",
        ],
    );
    check_request(
        &[(SourceKind::Document, "only = [\"GET api.example.org\"]")],
        [
            "POST",
            "api.example.org",
            "/",
            "outgate denied POST http://api.example.org/: the only rule `GET api.example.org` at agent.toml:1:10 allows nothing else there",
            "",
        ],
    );
    check_request(
        &[(SourceKind::Allow, "*")],
        [
            "GET",
            "10.0.0.1",
            "/",
            "outgate denied GET http://10.0.0.1/: a private-use address needs a rule that names it; `*` is public hosts only",
            "-a 'GET http://10.0.0.1/'",
        ],
    );
    check_request(
        &[(SourceKind::Allow, "*")],
        [
            "GET",
            "0.0.0.0",
            "/",
            "outgate denied GET http://0.0.0.0/: an unspecified address is never a destination",
            "",
        ],
    );
    check_request(
        &[(
            SourceKind::Document,
            "[[allow]]\nrule = \"api.example.org\"\nprocess = [\"/usr/bin/git\", \"/usr/bin/gh\"]",
        )],
        [
            "GET",
            "api.example.org",
            "/",
            "outgate denied GET http://api.example.org/: the allow rule `api.example.org` at agent.toml:2:9 allows it for /usr/bin/git, /usr/bin/gh only",
            "",
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn denied_connections_say_what_would_allow_them() {
    let host = Host::parse("db.example.org").expect("a name");
    let Host::Name(name) = &host else {
        panic!("not a name")
    };
    let process = Process {
        executable: "/usr/bin/psql",
    };
    let peer = Peer::Name(name);
    let rows: Vec<Row<'_>> = vec![
        (
            &[],
            Facts::Connect {
                process,
                peer,
                port: 5432,
            },
            "outgate denied connection to db.example.org:5432: no rule allows it",
            Some("-a 'tcp://db.example.org:5432'"),
        ),
        (
            &[],
            Facts::Connect {
                process,
                peer,
                port: 443,
            },
            "outgate denied connection to db.example.org:443: no rule allows it",
            Some("-a 'https://db.example.org'"),
        ),
        (
            &[],
            Facts::Connect {
                process,
                peer: Peer::Address([127, 0, 0, 1].into()),
                port: 3000,
            },
            "outgate denied connection to 127.0.0.1:3000: no rule allows it",
            Some("-a 'http://localhost:3000'"),
        ),
        (
            &[],
            Facts::Connect {
                process,
                peer: Peer::Address([127, 0, 0, 1].into()),
                port: 6379,
            },
            "outgate denied connection to 127.0.0.1:6379: no rule allows it",
            Some("-a 'tcp://localhost:6379'"),
        ),
        (
            &[],
            Facts::Connect {
                process,
                peer: Peer::Address([10, 0, 0, 1].into()),
                port: 3000,
            },
            "outgate denied connection to 10.0.0.1:3000: no rule allows it",
            Some("-a 'tcp://10.0.0.1:3000'"),
        ),
        (
            &[],
            Facts::Connect {
                process,
                peer,
                port: 0,
            },
            "outgate denied connection to db.example.org:0: it is malformed",
            None,
        ),
        (
            &[],
            Facts::Tunnel {
                process,
                peer,
                port: 8443,
            },
            "outgate denied TLS to db.example.org:8443: no rule allows it",
            Some("-a 'tls://db.example.org:8443'"),
        ),
        (
            &[
                (SourceKind::Allow, "https://db.example.org"),
                (SourceKind::Document, "tls = { intercept = \"always\" }"),
            ],
            Facts::Tunnel {
                process,
                peer,
                port: 443,
            },
            "outgate denied TLS to db.example.org:443: `[tls] intercept = \"always\"` opens all TLS",
            Some("-a 'tls://db.example.org'"),
        ),
        (
            &[(SourceKind::Allow, "GET db.example.org")],
            Facts::Tunnel {
                process,
                peer,
                port: 443,
            },
            "outgate denied TLS to db.example.org:443: the allow rule `GET db.example.org` at -a allows some requests only, so TLS is opened to judge them",
            Some("-a 'tls://db.example.org'"),
        ),
        (
            &[
                (SourceKind::Allow, "GET db.example.org"),
                (SourceKind::Document, "tls = { intercept = \"never\" }"),
            ],
            Facts::Tunnel {
                process,
                peer,
                port: 443,
            },
            "outgate denied TLS to db.example.org:443: the allow rule `GET db.example.org` at -a allows some requests only, and `[tls] intercept = \"never\"` forbids to look inside",
            Some("-a 'tls://db.example.org'"),
        ),
        (
            &[
                (SourceKind::Allow, "db.example.org"),
                (SourceKind::Deny, "* */admin"),
                (SourceKind::Document, "tls = { intercept = \"never\" }"),
            ],
            Facts::Tunnel {
                process,
                peer,
                port: 443,
            },
            "outgate denied TLS to db.example.org:443: the deny rule `* */admin` at -a may deny requests inside, and `[tls] intercept = \"never\"` forbids to look inside",
            Some("--intercept when-needed"),
        ),
        (
            &[
                (SourceKind::Allow, "tcp://db.example.org:443"),
                (SourceKind::Deny, "* */admin"),
            ],
            Facts::Connect {
                process,
                peer,
                port: 443,
            },
            "outgate denied connection to db.example.org:443: the deny rule `* */admin` at -a may deny requests inside, and what passes under a tcp:// rule is not looked at",
            None,
        ),
        (
            &[
                (SourceKind::Allow, "db.example.org"),
                (SourceKind::Deny, "* */admin"),
            ],
            Facts::Tunnel {
                process,
                peer,
                port: 443,
            },
            "outgate denied TLS to db.example.org:443: the deny rule `* */admin` at -a may deny requests inside, so TLS is opened to judge them",
            None,
        ),
        (
            &[(SourceKind::Allow, "db.example.org")],
            Facts::Dial {
                process,
                peer,
                port: 443,
                address: "10.1.2.3".parse().expect("an address"),
                source: AddressSource::Resolved,
            },
            "outgate denied connection to db.example.org:443: the name leads to a private-use address, which only `--resolve` or the rule's own `addresses` can grant",
            None,
        ),
        (
            &[],
            Facts::Unix {
                process,
                path: "/run/a\u{1b}b.sock",
            },
            "outgate denied connection to unix:///run/a\\u{1b}b.sock: no rule allows it",
            None,
        ),
    ];
    for (rules, facts, sentence, hint) in rows {
        let (found, flag) = denial(rules, &facts);
        assert_eq!(found, sentence);
        assert_eq!(flag.as_deref(), hint);
    }
    let facts = Facts::Listen {
        process,
        address: "0.0.0.0:80".parse().expect("an address"),
    };
    let (found, flag) = denial(&[], &facts);
    assert_eq!(
        found,
        "outgate denied listening on 0.0.0.0:80: no rule allows it"
    );
    assert_eq!(flag.as_deref(), Some("--listen '0.0.0.0:80'"));
}
