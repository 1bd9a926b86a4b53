//! Laws of the decision, tried on random policies and events.
//!
//! Only the public interface is used. Vocabulary is small on purpose, so that
//! rules and events meet often.

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a test ends where something is not as it must be"
)]

mod exceptions;
mod readings;

use outgate_policy::{
    AddressSource, Context, DenialReason, Facts, Host, HostName, Peer, Policy, Process,
    RequestTarget, Scheme, Source, SourceKind, Verdict, compile,
};
use proptest::prelude::*;

fn source(kind: SourceKind, text: &str) -> Source {
    Source {
        kind,
        place: "-a".to_owned(),
        text: text.to_owned(),
    }
}

fn context() -> Context {
    Context {
        home: "/home/me".to_owned(),
        working_directory: "/here".to_owned(),
        private_directory: "/tmp/private".to_owned(),
        ..Context::default()
    }
}

fn policy(sources: &[Source]) -> Policy {
    compile(sources, &context()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// An event with everything it borrows.
#[derive(Debug, Clone)]
enum Event {
    Connect(Host, u16),
    Tunnel(Host, u16),
    Dial(Host, u16, std::net::IpAddr, AddressSource),
    Request(Host, u16, Scheme, String, RequestTarget),
    Unix(String),
}

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(address) => Peer::Address(*address),
    }
}

fn judge(policy: &Policy, event: &Event, executable: &str) -> Verdict {
    let process = Process { executable };
    match event {
        Event::Connect(host, port) => policy.evaluate(&Facts::Connect {
            process,
            peer: peer(host),
            port: *port,
        }),
        Event::Tunnel(host, port) => policy.evaluate(&Facts::Tunnel {
            process,
            peer: peer(host),
            port: *port,
        }),
        Event::Dial(host, port, address, source) => policy.evaluate(&Facts::Dial {
            process,
            peer: peer(host),
            port: *port,
            address: *address,
            source: *source,
        }),
        Event::Request(host, port, scheme, method, target) => policy.evaluate(&Facts::Request {
            process,
            peer: peer(host),
            port: *port,
            scheme: *scheme,
            method,
            target,
        }),
        Event::Unix(path) => policy.evaluate(&Facts::Unix { process, path }),
    }
}

fn is_allowed(policy: &Policy, event: &Event, executable: &str) -> bool {
    matches!(judge(policy, event, executable), Verdict::Allow(_))
}

const HOSTS: &[&str] = &[
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "xa.test",
    "localhost",
    "127.0.0.1",
    "8.8.8.8",
    "10.0.0.1",
    "[2606:4700::1]",
    "[64:ff9b::808:808]",
];

const PATTERNS: &[&str] = &[
    "*",
    "a.test",
    "*.a.test",
    "**.a.test",
    "localhost",
    "127.0.0.1",
    "8.8.8.8",
    "8.0.0.0/8",
    "10.0.0.0/8",
];

const PATHS: &[&str] = &[
    "", "/**", "/", "/a", "/a/", "/a/*", "/a/**", "/**/b", "/a%2Fb", "/A;x",
];

fn rule() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "", "http://", "https://", "ws://", "wss://", "tls://", "tcp://",
    ]);
    let methods = prop::sample::select(vec!["", "GET ", "GET,POST "]);
    let host = prop::sample::select(PATTERNS);
    let port = prop::sample::select(vec!["", ":80", ":443", ":*", ":80-8080"]);
    let path = prop::sample::select(PATHS);
    let query = prop::sample::select(vec!["", "?k=v", "?k=*"]);
    (methods, scheme, host, port, path, query).prop_map(
        |(methods, scheme, host, port, path, query)| match scheme {
            "tls://" => format!("{scheme}{host}{port}"),
            "tcp://" => format!(
                "{scheme}{host}{}",
                if port.is_empty() { ":443" } else { port }
            ),
            "ws://" | "wss://" => format!("{scheme}{host}{port}{path}{query}"),
            _ => format!("{methods}{scheme}{host}{port}{path}{query}"),
        },
    )
}

fn unix_rule() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "unix:///run/a.sock",
        "unix:///run/*",
        "unix:///run/**",
    ])
    .prop_map(str::to_owned)
}

fn rules() -> impl Strategy<Value = Vec<Source>> {
    let kind = prop::sample::select(vec![SourceKind::Allow, SourceKind::Allow, SourceKind::Deny]);
    let one = prop_oneof![9 => rule(), 1 => unix_rule()];
    let plain = (kind, one).prop_map(|(kind, text)| source(kind, &text));
    let excepted =
        exceptions::excepted().prop_map(|(deny, except)| exceptions::source_of(&deny, &except));
    let one = prop_oneof![9 => plain, 1 => excepted];
    prop::collection::vec(one, 0..6)
}

fn event() -> impl Strategy<Value = Event> {
    let host = prop::sample::select(HOSTS).prop_map(|host| Host::parse(host).expect(host));
    let port = prop::sample::select(vec![0, 80, 443, 8080]);
    let scheme = prop::sample::select(vec![Scheme::Http, Scheme::Https, Scheme::Ws, Scheme::Wss]);
    let method = prop::sample::select(vec!["GET", "POST", "get"]);
    let target = target();
    let address = prop::sample::select(vec![
        "8.8.8.8",
        "10.0.0.1",
        "127.0.0.1",
        "0.0.0.0",
        "64:ff9b::808:808",
    ]);
    let address = address.prop_map(|address| address.parse().expect("an address"));
    let origin = prop::sample::select(vec![AddressSource::Resolved, AddressSource::Pinned]);
    (host, port, scheme, method, target, address, origin, 0..10).prop_map(
        |(host, port, scheme, method, target, address, origin, kind)| match kind {
            0 => Event::Connect(host, port),
            1 => Event::Tunnel(host, port),
            2 | 3 => Event::Dial(host, port, address, origin),
            4 => Event::Unix("/run/a.sock".to_owned()),
            _ => Event::Request(host, port, scheme, method.to_owned(), target),
        },
    )
}

/// Spellings in which servers disagree.
fn spelling() -> impl Strategy<Value = String> {
    "(/|//|/\\./|/\\.\\./|%2[fF]|%5[cC]|;|/\\.\\.;|%252[fF]|%2561|%61|a|A|b|\\.|%2[eE]|\\?k=v){0,7}"
        .prop_map(|rest| format!("/{rest}"))
}

fn target() -> impl Strategy<Value = RequestTarget> {
    spelling().prop_filter_map("not a target", |text| RequestTarget::parse(&text).ok())
}

fn executable() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "/usr/bin/curl"])
}

/// Path segments as one kind of server sees them, lower case.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a server does or does not"
)]
struct Server {
    name: &'static str,
    decodings: usize,
    parameters: bool,
    backslashes: bool,
}

const SERVERS: &[Server] = &[
    Server {
        name: "plain",
        decodings: 1,
        parameters: false,
        backslashes: false,
    },
    Server {
        name: "with parameters",
        decodings: 1,
        parameters: true,
        backslashes: false,
    },
    Server {
        name: "with backslashes",
        decodings: 1,
        parameters: false,
        backslashes: true,
    },
    Server {
        name: "behind another",
        decodings: 2,
        parameters: false,
        backslashes: false,
    },
    Server {
        name: "with everything",
        decodings: 2,
        parameters: true,
        backslashes: true,
    },
];

fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (Some(byte), Some(rest)) = (digits, part.get(2..)) {
            out.push(char::from(byte));
            out.push_str(rest);
        } else {
            out.push('%');
            out.push_str(part);
        }
    }
    out
}

/// What the server serves for a path that was sent.
fn served(server: &Server, path: &str) -> Vec<String> {
    let strip = |path: String| -> String {
        if !server.parameters {
            return path;
        }
        let segments: Vec<&str> = path
            .split('/')
            .map(|s| s.split(';').next().unwrap_or(""))
            .collect();
        segments.join("/")
    };
    let mut path = strip(path.to_owned());
    for _ in 0..server.decodings {
        path = strip(decode(&path));
    }
    if server.backslashes {
        path = path.replace('\\', "/");
    }
    let mut kept: Vec<String> = Vec::new();
    for segment in path.split('/').filter(|s| !s.is_empty() && *s != ".") {
        if segment == ".." {
            kept.pop();
        } else {
            kept.push(segment.to_lowercase());
        }
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn adding_a_deny_never_allows(rules in rules(), deny in rule(), event in event(), exe in executable()) {
        let before = policy(&rules);
        let mut more = rules;
        more.push(source(SourceKind::Deny, &deny));
        if !is_allowed(&before, &event, exe) {
            prop_assert!(!is_allowed(&policy(&more), &event, exe));
        }
    }

    #[test]
    fn adding_an_allow_never_denies(rules in rules(), allow in rule(), event in event(), exe in executable()) {
        let before = policy(&rules);
        let mut more = rules;
        more.push(source(SourceKind::Allow, &allow));
        if is_allowed(&before, &event, exe) {
            prop_assert!(is_allowed(&policy(&more), &event, exe));
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(rules in rules(), event in event(), exe in executable()) {
        let forward = is_allowed(&policy(&rules), &event, exe);
        let mut reversed = rules;
        reversed.reverse();
        prop_assert_eq!(is_allowed(&policy(&reversed), &event, exe), forward);
    }

    #[test]
    fn what_is_dialled_could_be_connected(rules in rules(), event in event(), exe in executable()) {
        let policy = policy(&rules);
        if let Event::Dial(host, port, ..) | Event::Request(host, port, ..) | Event::Tunnel(host, port) = &event
            && is_allowed(&policy, &event, exe)
        {
            let connect = Event::Connect(host.clone(), *port);
            prop_assert!(is_allowed(&policy, &connect, exe));
        }
    }

    #[test]
    fn no_server_serves_what_a_rule_denies(spelling in spelling()) {
        let denies = [source(SourceKind::Allow, "a.test"), source(SourceKind::Deny, "a.test/a/b/**")];
        let policy = policy(&denies);
        if let Ok(target) = RequestTarget::parse(&spelling) {
            let path = target.path().to_owned();
            let host = Host::parse("a.test").expect("a name");
            let event = Event::Request(host, 443, Scheme::Https, "GET".to_owned(), target);
            if is_allowed(&policy, &event, "") {
                for server in SERVERS {
                    let segments = served(server, &path);
                    prop_assert!(!segments.starts_with(&["a".to_owned(), "b".to_owned()]), "{} serves {path}", server.name);
                }
            }
        }
    }

    #[test]
    fn no_server_serves_what_no_rule_allows(spelling in spelling()) {
        let policy = policy(&[source(SourceKind::Allow, "a.test/a/**")]);
        if let Ok(target) = RequestTarget::parse(&spelling) {
            let path = target.path().to_owned();
            let host = Host::parse("a.test").expect("a name");
            let event = Event::Request(host, 443, Scheme::Https, "GET".to_owned(), target);
            if is_allowed(&policy, &event, "") {
                for server in SERVERS.iter().filter(|server| !server.parameters) {
                    let segments = served(server, &path);
                    prop_assert!(segments.starts_with(&["a".to_owned()]), "{} serves {path}", server.name);
                }
            }
        }
    }

    #[test]
    fn the_hint_of_a_denial_allows_it(rules in rules(), event in event(), exe in executable()) {
        let before = policy(&rules);
        let Verdict::Deny(denial) = judge(&before, &event, exe) else {
            return Ok(());
        };
        prop_assert!(denial.sentence().bytes().all(|b| (0x20..0x7f).contains(&b)));
        let Some(hint) = denial.hint() else {
            return Ok(());
        };
        prop_assert!(matches!(denial.reason(), DenialReason::NoRule | DenialReason::SpecialUse | DenialReason::NeedsInspection));
        let text = hint.strip_prefix("-a '").and_then(|h| h.strip_suffix('\'')).expect("a quoted rule");
        let mut more = rules;
        more.push(source(SourceKind::Allow, text));
        let event = match event {
            // A name is dialled only after its address was vetted as well.
            Event::Dial(host, port, ..) => Event::Connect(host, port),
            other => other,
        };
        let after = judge(&policy(&more), &event, exe);
        match after {
            Verdict::Allow(_) => {}
            // Its own methods may be denied, which only a look at the others tells.
            Verdict::Deny(next) => prop_assert!(next.reason() != DenialReason::NoRule, "{hint}: {}", next.sentence()),
        }
    }

    #[test]
    fn any_text_is_compiled_or_refused(text in "\\PC{0,60}", kind in 0..8) {
        let kinds = [
            SourceKind::Document, SourceKind::Allow, SourceKind::Deny, SourceKind::Pin,
            SourceKind::Read, SourceKind::Write, SourceKind::Listen,
            SourceKind::Secret,
        ];
        let kind = kinds[usize::try_from(kind).expect("an index")];
        if let Err(errors) = compile(&[source(kind, &text)], &context()) {
            prop_assert!(errors.iter().count() > 0);
        }
    }

    #[test]
    fn rule_like_texts_are_compiled_or_refused(text in "[A-Z,* ]{0,5}[a-z:/*.\\[\\]0-9%?=&-]{0,40}") {
        for kind in [SourceKind::Allow, SourceKind::Deny] {
            let first = compile(&[source(kind, &text)], &context());
            let again = compile(&[source(kind, &text)], &context());
            prop_assert_eq!(first.is_ok(), again.is_ok());
        }
    }
}

#[test]
fn names_and_addresses_are_different_peers() {
    let policy = policy(&[
        source(SourceKind::Allow, "8.8.8.8"),
        source(SourceKind::Allow, "a.test"),
    ]);
    let name = HostName::parse("a.test").expect("a name");
    let process = Process { executable: "" };
    let by_name = Facts::Connect {
        process,
        peer: Peer::Name(&name),
        port: 443,
    };
    assert!(matches!(policy.evaluate(&by_name), Verdict::Allow(_)));
    let other = HostName::parse("b.test").expect("a name");
    let facts = Facts::Dial {
        process,
        peer: Peer::Name(&other),
        port: 443,
        address: "8.8.8.8".parse().expect("an address"),
        source: AddressSource::Pinned,
    };
    assert!(matches!(policy.evaluate(&facts), Verdict::Deny(_)));
}

/// A project's own document of `deny` and `only` rules.
fn project() -> impl Strategy<Value = Source> {
    let list = || prop::collection::vec(rule(), 0..4);
    (list(), list()).prop_map(|(deny, only)| Source {
        kind: SourceKind::Project,
        place: ".outgate.toml".to_owned(),
        text: format!("deny = {deny:?}\nonly = {only:?}\n"),
    })
}

proptest! {
    #[test]
    fn a_project_only_takes_away(
        rules in rules(), project in project(), event in event(), executable in executable()
    ) {
        let allows = |policy: &Policy| is_allowed(policy, &event, executable);
        let without = policy(&rules);
        let with = policy(&[rules.clone(), vec![project]].concat());
        prop_assert!(!allows(&with) || allows(&without));
        let empty = Source {
            kind: SourceKind::Project,
            place: ".outgate.toml".to_owned(),
            text: String::new(),
        };
        let unchanged = policy(&[rules, vec![empty]].concat());
        prop_assert_eq!(allows(&unchanged), allows(&without));
    }
}
