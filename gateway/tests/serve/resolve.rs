//! Names that are allowed, and a DNS server that records who asks it what.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex};

use outgate_handoff::Decision;
use outgate_policy::SourceKind;

use crate::harness::{Launcher, Origin, exchange, field, start};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that answers A questions from a list of addresses, the last one
/// again and again, and records the names it was asked for.
struct Server {
    document: String,
    asked: Arc<Mutex<Vec<String>>>,
}

/// The name and type of a question.
fn parse(message: &[u8]) -> (String, u8) {
    let mut name = String::new();
    let mut at = 12;
    while message[at] != 0 {
        let length = usize::from(message[at]);
        name.push_str(&String::from_utf8_lossy(&message[at + 1..=at + length]));
        name.push('.');
        at += length + 1;
    }
    (name, message[at + 2])
}

fn reply(message: &[u8], address: Option<[u8; 4]>) -> Vec<u8> {
    let (name, _) = parse(message);
    let question_end = 12 + name.len() + 1 + 4;
    let mut reply = message[..question_end].to_vec();
    reply[2] = 0x81;
    reply[3] = 0x80;
    reply[6..12].fill(0);
    if let Some(address) = address {
        reply[7] = 1;
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        reply.extend(address);
    }
    reply
}

/// With no addresses at all the server stays silent.
fn server(addresses: &'static [[u8; 4]]) -> Server {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let document = format!("[dns]\nservers = [\"{}\"]\n", socket.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut buffer = [0; 1500];
        let mut count = 0;
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let message = &buffer[..length];
            let (name, kind) = parse(message);
            log.lock().unwrap().push(format!("{name} {kind}"));
            let Some(last) = addresses.last() else {
                continue;
            };
            let address = (kind == 1).then(|| {
                count += 1;
                *addresses.get(count - 1).unwrap_or(last)
            });
            socket.send_to(&reply(message, address), from).unwrap();
        }
    });
    Server { document, asked }
}

impl Server {
    fn launcher(&self, rules: &[&str]) -> Launcher {
        let mut sources = vec![(SourceKind::Document, self.document.as_str())];
        sources.extend(rules.iter().map(|rule| (SourceKind::Allow, *rule)));
        start(&sources)
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked.dedup();
        asked
    }
}

fn get(launcher: &Launcher, name: &str, port: u16) -> String {
    let mut client = launcher.connect(name, port);
    let request = format!("GET / HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n");
    exchange(&mut client, &request)
}

#[test]
fn a_name_is_resolved_once_and_keeps_its_address() {
    let origin = Origin::http(OK);
    let port = origin.address.port();
    let server = server(&[[127, 0, 0, 1], [127, 9, 9, 9]]);
    let rule = format!("http://a.test:{port}");
    // The second rule grants loopback for the name by its literal.
    let net = format!("http://127.0.0.1:{port}");
    let launcher = server.launcher(&[&rule, &net]);
    for _ in 0..2 {
        let answer = get(&launcher, "a.test", port);
        // Whatever the verdict on the address is, it does not change.
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    assert_eq!(server.asked(), ["a.test. 1", "a.test. 28"]);
    assert_eq!(server.asked.lock().unwrap().len(), 2);
    assert!(origin.requests().is_empty());
}

#[test]
fn a_name_that_leads_inside_is_denied_without_naming_the_address() {
    for address in [
        &[[10, 1, 2, 3]],
        &[[127, 0, 0, 1]],
        &[[169, 254, 169, 254]],
        &[[198, 18, 0, 5]],
        &[[0, 0, 0, 0]],
    ] as [&'static [[u8; 4]]; 5]
    {
        let server = server(address);
        let mut launcher = server.launcher(&["http://a.test", "tcp://a.test:5432"]);
        let answer = get(&launcher, "a.test", 80);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(
            field(&answer, "outgate-denied")
                .unwrap()
                .starts_with("special-use"),
            "{answer}"
        );
        let text = address[0].map(|byte| byte.to_string()).join(".");
        assert!(!answer.contains(&text), "{answer}");
        let raw = launcher.address("a.test", 5432);
        assert_eq!(launcher.decide(raw), Decision::Deny);
    }
}

#[test]
fn names_that_no_rule_allows_are_never_asked_for() {
    let server = server(&[[127, 0, 0, 1]]);
    let mut launcher = server.launcher(&["GET http://a.test/x"]);
    let denied = launcher.address("secret.denied.test", 80);
    assert_eq!(launcher.decide(denied), Decision::Redirect);
    assert!(get(&launcher, "secret.denied.test", 80).starts_with("HTTP/1.1 403"));
    // A request that is denied asks for nothing either.
    assert!(get(&launcher, "a.test", 80).starts_with("HTTP/1.1 403"));
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[test]
fn a_silent_server_is_a_gateway_timeout_and_an_unknown_name_a_bad_gateway() {
    let silent = server(&[]);
    let launcher = silent.launcher(&["http://a.test"]);
    let answer = get(&launcher, "a.test", 80);
    assert!(answer.starts_with("HTTP/1.1 50"), "{answer}");
    assert!(
        field(&answer, "proxy-status").unwrap().contains("dns_"),
        "{answer}"
    );
}

#[test]
fn a_slow_name_holds_up_nobody() {
    let silent = server(&[]);
    let origin = Origin::http(OK);
    let pin = origin.pin("b.test", 80);
    let mut launcher = start(&[
        (SourceKind::Document, silent.document.as_str()),
        (SourceKind::Allow, "tcp://a.test:5432"),
        (SourceKind::Allow, "http://b.test"),
        (SourceKind::Pin, &pin),
    ]);
    let slow = launcher.address("a.test", 5432);
    let question = outgate_handoff::CallQuestion::Connect { destination: slow };
    let ask = outgate_handoff::Ask {
        question,
        process: crate::harness::process(),
        hold: outgate_handoff::HoldForm::Refuse,
    };
    launcher.send(&outgate_handoff::ToGateway::Ask(77, ask), &[]);
    let begun = std::time::Instant::now();
    let answer = get(&launcher, "b.test", 80);
    assert!(answer.ends_with("ok"), "{answer}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    match launcher.receive() {
        Some(outgate_handoff::ToLauncher::Answer(77, answer)) => {
            assert_eq!(answer.decision, Decision::Deny);
        }
        other => panic!("{other:?}"),
    }
}
