//! Requests: what passes, what is denied and how it is said, and what the
//! origin gets to see.

use std::io::{Read, Write};

use outgate_handoff::Decision;
use outgate_policy::SourceKind;

use crate::harness::{Origin, exchange, field, start};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn an_allowed_request_arrives_and_its_neighbour_does_not() {
    let origin = Origin::http(OK);
    let mut launcher = start(&[
        (SourceKind::Allow, "GET http://a.test/ok"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let address = launcher.address("a.test", 80);
    assert_eq!(launcher.decide(address), Decision::Redirect);
    let mut client = launcher.flow(address);
    let denied = exchange(&mut client, "GET /admin HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(
        denied.starts_with("HTTP/1.1 403 outgate denied GET http://a.test/admin"),
        "{denied}"
    );
    assert!(
        field(&denied, "outgate-denied")
            .unwrap()
            .starts_with("no-rule; rule=-")
    );
    assert!(
        field(&denied, "proxy-status")
            .unwrap()
            .starts_with("outgate; error=http_request_denied")
    );
    assert!(
        denied.contains("to allow it: -a 'GET http://a.test/admin'"),
        "{denied}"
    );
    let allowed = exchange(&mut client, "GET /ok HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(allowed.ends_with("\r\n\r\nok"), "{allowed}");
    let seen = origin.requests();
    assert_eq!(
        seen,
        ["GET /ok HTTP/1.1\r\nhost: a.test\r\nvia: 1.1 outgate\r\n\r\n"]
    );
    let summary = launcher.finish();
    assert!(summary.contains("1 denial;"), "{summary}");
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
    assert_eq!(launcher.result(), Ok(()));
}

/// A session that allows everything on a.test, with its origin.
fn open(answer: &'static str) -> (Origin, crate::harness::Launcher) {
    let origin = Origin::http(answer);
    let launcher = start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    (origin, launcher)
}

#[test]
fn requests_with_two_readings_are_refused_and_never_arrive() {
    let (origin, launcher) = open(OK);
    let address = launcher.address("a.test", 80);
    let host = "Host: a.test\r\n";
    let rows: Vec<(String, u16)> = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: u@a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test:65536\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n", 403),
        ("GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", 403),
        ("GET http://u:p@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n", 403),
        ("TRACE / HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n", 403),
        ("get / HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a.test\n\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 03\r\n\r\nabc", 400),
        ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nX: a\r\n b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a.test\r\nExpect: x\r\n\r\n", 417),
        ("GET /%2e%2e/../x HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET /%00 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: 2130706433\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [::1%25lo]\r\n\r\n", 400),
    ]
    .iter()
    .map(|(request, status)| ((*request).to_owned(), *status))
    .chain([
        (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(20_000)), 414),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(100)), 431),
        (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "y".repeat(70_000)), 431),
        (
            format!("GET / HTTP/1.1\r\n{host}{}\r\n", "Via: 1.1 outgate\r\n".repeat(8)),
            508,
        ),
    ])
    .collect();
    for (request, status) in rows {
        let mut client = launcher.flow(address);
        let answer = exchange(&mut client, &request);
        let start = format!("HTTP/1.1 {status}");
        let shown = request.get(..80).unwrap_or(&request);
        assert!(answer.starts_with(&start), "{shown:?}\n{answer}");
    }
    assert_eq!(origin.requests(), Vec::<String>::new());
}

#[test]
fn what_is_sent_is_canonical_and_keeps_no_field_of_this_hop() {
    let (origin, launcher) = open(
        "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nConnection: X-Mine\r\nX-Mine: 1\r\n\
         Keep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\nServer: o\r\n\r\nok",
    );
    let mut client = launcher.connect("a.test", 80);
    let request = "GET http://A.test:80/a/./b/%7ex?q=1 HTTP/1.1\r\nHost: a.TEST\r\n\
         Connection: X-Hop, Host\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: gzip\r\n\
         Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\
         Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nX-End: 1\r\n\r\n";
    let answer = exchange(&mut client, request);
    let seen = origin.requests().remove(0);
    assert!(
        seen.starts_with("GET /a/b/~x?q=1 HTTP/1.1\r\nhost: a.test\r\n"),
        "{seen}"
    );
    for gone in [
        "x-hop",
        "keep-alive",
        "te",
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "http2-settings",
        "connection",
    ] {
        assert_eq!(field(&seen, gone), None, "{gone}: {seen}");
    }
    assert_eq!(field(&seen, "x-end"), Some("1"));
    assert_eq!(field(&seen, "via"), Some("1.1 outgate"));
    assert!(answer.starts_with("HTTP/1.1 200 Fine\r\n"), "{answer}");
    for gone in ["x-mine", "keep-alive", "proxy-authenticate"] {
        assert_eq!(field(&answer, gone), None, "{gone}: {answer}");
    }
    assert_eq!(field(&answer, "server"), Some("o"));
}

#[test]
fn the_host_of_another_port_is_regenerated_from_the_destination() {
    let origin = Origin::http(OK);
    let launcher = start(&[
        (SourceKind::Allow, "http://a.test:8080"),
        (SourceKind::Pin, &origin.pin("a.test", 8080)),
    ]);
    let mut client = launcher.connect("a.test", 8080);
    exchange(&mut client, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(field(&origin.requests()[0], "host"), Some("a.test:8080"));
}

#[test]
fn a_denied_host_is_told_and_never_resolved() {
    let mut launcher = start(&[(SourceKind::Allow, "http://a.test")]);
    let address = launcher.address("denied.test", 80);
    assert_eq!(launcher.decide(address), Decision::Redirect);
    let mut client = launcher.flow(address);
    let request = "GET /x HTTP/1.1\r\nHost: denied.test\r\nAccept: application/json\r\n\r\n";
    let answer = exchange(&mut client, request);
    assert!(
        answer.starts_with("HTTP/1.1 403 outgate denied GET http://denied.test/x"),
        "{answer}"
    );
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(value["reason"], "no-rule");
    let message = value["message"].as_str().unwrap();
    assert!(
        message.starts_with("outgate denied GET http://denied.test/x"),
        "{message}"
    );
    // The connection is kept: the next refusal comes over it, too.
    let again = exchange(&mut client, "GET /y HTTP/1.1\r\nHost: denied.test\r\n\r\n");
    assert!(again.starts_with("HTTP/1.1 403"), "{again}");
    let kinds: Vec<_> = launcher
        .records()
        .iter()
        .map(|record| format!("{} {}", record["kind"], record["verdict"]).replace('"', ""))
        .collect();
    assert_eq!(
        kinds,
        [
            "start note",
            "dns note",
            "connect deny",
            "request deny",
            "request deny"
        ]
    );
}

#[test]
fn an_origin_that_refuses_is_a_bad_gateway() {
    let launcher = start(&[(SourceKind::Allow, "http://127.0.0.1:1")]);
    let mut client = launcher.flow("127.0.0.1:1".parse().unwrap());
    let answer = exchange(&mut client, "GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        field(&answer, "proxy-status")
            .unwrap()
            .contains("connection_refused"),
        "{answer}"
    );
}

#[test]
fn expectations_are_answered_after_the_verdict() {
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    let head =
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let go = exchange(&mut client, head);
    assert_eq!(go, "HTTP/1.1 100 Continue\r\n\r\n");
    let answer = exchange(&mut client, "12345");
    assert!(answer.ends_with("ok"), "{answer}");
    let seen = origin.requests().remove(0);
    assert!(seen.ends_with("\r\n\r\n12345"), "{seen}");
    assert_eq!(field(&seen, "expect"), None);
    let mut denied = launcher.connect("b.test", 80);
    let head = head.replace("a.test", "b.test");
    assert!(exchange(&mut denied, &head).starts_with("HTTP/1.1 403"));
}

#[test]
fn options_for_nobody_else_is_answered_here_and_others_are_counted_down() {
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    let own = "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";
    let answer = exchange(&mut client, own);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(origin.requests().is_empty());
    let next = "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 3\r\n\r\n";
    exchange(&mut client, next);
    let seen = origin.requests().remove(0);
    assert!(seen.starts_with("OPTIONS * HTTP/1.1\r\n"), "{seen}");
    assert_eq!(field(&seen, "max-forwards"), Some("2"));
}

#[test]
fn one_connection_to_the_origin_serves_many_requests() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CONNECTIONS: AtomicU32 = AtomicU32::new(0);
    let origin = Origin::start(|mut stream, record| {
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        while let Some(request) = crate::harness::read_message(&mut stream) {
            record(request);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let launcher = start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let address = launcher.address("a.test", 80);
    for _ in 0..3 {
        let mut client = launcher.flow(address);
        for method in ["GET", "POST", "GET"] {
            let request =
                format!("{method} / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi");
            assert!(exchange(&mut client, &request).ends_with("ok"));
        }
    }
    assert_eq!(origin.requests().len(), 9);
    assert_eq!(CONNECTIONS.load(Ordering::Relaxed), 1);
}

#[test]
fn a_kept_connection_that_the_origin_closed_is_replaced() {
    let origin = Origin::start(|mut stream, record| {
        if let Some(request) = crate::harness::read_message(&mut stream) {
            record(request);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let launcher = start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let mut client = launcher.connect("a.test", 80);
    for round in 0..20 {
        let answer = exchange(&mut client, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert!(answer.ends_with("ok"), "{round}: {answer}");
    }
    assert_eq!(origin.requests().len(), 20);
}

#[test]
fn responses_with_two_readings_become_502() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        let (_origin, launcher) = open(answer);
        let mut client = launcher.connect("a.test", 80);
        let got = exchange(&mut client, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 502"), "{answer:?}\n{got}");
    }
}

#[test]
fn heads_without_content_have_none() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"),
    ] {
        let (origin, launcher) = open(answer);
        let mut client = launcher.connect("a.test", 80);
        for _ in 0..2 {
            let request = format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            client.write_all(request.as_bytes()).unwrap();
            let mut head = Vec::new();
            let mut one = [0];
            while !head.ends_with(b"\r\n\r\n") {
                client.read_exact(&mut one).unwrap();
                head.push(one[0]);
            }
            let head = String::from_utf8(head).unwrap();
            assert_eq!(head.as_bytes()[..12], answer.as_bytes()[..12], "{head}");
            if method == "HEAD" {
                assert_eq!(field(&head, "content-length"), Some("5000"));
            }
        }
        assert_eq!(origin.requests().len(), 2);
    }
}

#[test]
fn trailers_pass_but_not_those_that_frame_or_authorise() {
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    let request = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-sum, authorization\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\nauthorization: y\r\n\r\n";
    let answer = exchange(&mut client, request);
    assert!(answer.ends_with("ok"), "{answer}");
    let seen = String::from_utf8_lossy(&origin.seen.lock().unwrap()[0]).into_owned();
    assert!(!seen.contains("authorization: y"), "{seen}");
    assert!(seen.ends_with("0\r\nx-sum: 7\r\n\r\n"), "{seen}");
}

#[test]
fn a_denied_upload_is_told_why_before_the_connection_goes() {
    let launcher = start(&[(SourceKind::Allow, "GET http://a.test")]);
    let mut client = launcher.connect("a.test", 80);
    let size = 2 << 20;
    let mut request = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n");
    request.push_str(&"x".repeat(size));
    let answer = exchange(&mut client, &request);
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn a_websocket_needs_its_own_rule_and_is_relayed_under_it() {
    let origin = Origin::start(|mut stream, record| {
        let Some(request) = crate::harness::read_message(&mut stream) else {
            return;
        };
        record(request);
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nearly")
            .unwrap();
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let launcher = start(&[
        (SourceKind::Allow, "http://a.test"),
        (SourceKind::Allow, "ws://a.test/socket"),
        // What is sent here is text, and no frames.
        (SourceKind::Document, "inspect = { mode = \"off\" }"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let address = launcher.address("a.test", 80);
    let request = |path| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: a2V5\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
    };
    let mut denied = launcher.flow(address);
    let answer = exchange(&mut denied, &request("/other"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let mut client = launcher.flow(address);
    let answer = exchange(&mut client, &request("/socket"));
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert_eq!(field(&answer, "sec-websocket-accept"), Some("x"));
    client.write_all(b"ping").unwrap();
    let mut bytes = [0; 9];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"earlyping");
    let seen = origin.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(field(&seen[0], "sec-websocket-key"), Some("a2V5"));
}

#[test]
fn old_clients_without_host_are_served_by_their_destination() {
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    client.write_all(b"GET /x HTTP/1.0\r\n\r\n").unwrap();
    let answer = String::from_utf8(crate::harness::rest(&mut client)).unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
    let seen = origin.requests().remove(0);
    assert_eq!(field(&seen, "host"), Some("a.test"));
}

#[test]
fn requests_sent_ahead_are_each_judged_and_answered_in_order() {
    let origin = Origin::http(OK);
    let launcher = start(&[
        (SourceKind::Allow, "GET http://a.test/ok"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let mut client = launcher.connect("a.test", 80);
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let ahead = [request("/ok"), request("/no"), request("/ok")].concat();
    client.write_all(ahead.as_bytes()).unwrap();
    let statuses: Vec<_> = (0..3)
        .map(|_| {
            crate::harness::response(&mut client)
                .split(' ')
                .nth(1)
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(statuses, ["200", "403", "200"]);
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn a_second_request_for_another_host_is_denied() {
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    assert!(exchange(&mut client, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").ends_with("ok"));
    let answer = exchange(&mut client, "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(field(&answer, "outgate-denied"), Some("authority; rule=-"));
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_smuggled_second_request_has_one_reading() {
    // The length says that the second request is content of the first; the
    // coding, that it is a request of its own. Later heads are the parser's.
    let (origin, launcher) = open(OK);
    let mut client = launcher.connect("a.test", 80);
    assert!(exchange(&mut client, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").ends_with("ok"));
    let inner = "GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let content = format!("0\r\n\r\n{inner}");
    let outer = format!(
        "POST /outer HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\
         Transfer-Encoding: chunked\r\n\r\n{content}",
        content.len()
    );
    client.write_all(outer.as_bytes()).unwrap();
    crate::harness::rest(&mut client);
    for seen in origin.requests() {
        assert!(!seen.contains("smuggled"), "{seen}");
        assert!(
            field(&seen, "content-length").is_none() || field(&seen, "transfer-encoding").is_none(),
            "{seen}"
        );
    }
}
