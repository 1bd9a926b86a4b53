//! What a proxy does to plain messages (RFC 9110 7.6, RFC 9112): what passes,
//! what ends here, what is made anew.

use crate::case::{Case, Ending, Method, OPEN, Step, WS, Want};
use crate::origin::Answer;
use crate::readers::READERS;
use crate::replies::End;
use crate::stage::run;
use crate::suite::{Seen, check, hold};

const UPGRADE: &str = "GET /public/ws HTTP/1.1\r\nHost: <host>\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";

fn with(fields: &str) -> String {
    format!("GET /public/a HTTP/1.1\r\nHost: <host>\r\n{fields}\r\n\r\n")
}

/// Asserts that a request with `fields` arrives with all of `kept` and none of
/// `gone`, both in lower case.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const FIELDS: &[Row] = &[
    (
        "Connection: X-Hop, close\r\nX-Hop: 1\r\nX-End: 2",
        &["x-end: 2"],
        &["x-hop"],
    ),
    (
        "Connection: X-A\r\nConnection: X-B\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3",
        &["x-c: 3"],
        &["x-a", "x-b"],
    ),
    (
        "Connection: host, x-hop\r\nX-Hop: 1",
        &["host: "],
        &["x-hop"],
    ),
    (
        "Connection: HOST , ,, X-HOP ,\r\nX-Hop: 1",
        &["host: "],
        &["x-hop"],
    ),
    (
        "TE: trailers, gzip\r\nKeep-Alive: timeout=5",
        &[],
        &["keep-alive", "gzip"],
    ),
    ("TE: gzip", &[], &["gzip", "te:"]),
    (
        "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Authenticate: Basic",
        &[],
        &["proxy-", "c2vjcmv0"],
    ),
    (
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
        &[],
        &["upgrade", "http2", "aama"],
    ),
    ("Upgrade: websocket", &[], &["upgrade"]),
    ("Upgrade: TLS/1.0\r\nConnection: Upgrade", &[], &["upgrade"]),
    ("Expect: 100-continue", &[], &["expect"]),
    (
        "Via: 1.0 elsewhere",
        &["via: 1.0 elsewhere", "1.1 outgate"],
        &[],
    ),
    (
        "Cookie: a=b\r\nAccept: */*\r\nX-Forwarded-For: 10.0.0.1\r\nUser-Agent: x",
        &["cookie: a=b", "accept: */*", "user-agent: x"],
        &[],
    ),
    ("X-Obs: \u{e9}\u{ff}", &[], &[]),
    (
        "X-Empty:\r\nX-Blank: \t \r\nX-Tab: a\tb",
        &["x-empty:", "x-blank:", "x-tab: a\tb"],
        &[],
    ),
];

fn arrives_as(seen: &Seen, kept: &[&str], gone: &[&str]) {
    let arrived = seen.arrived().to_ascii_lowercase();
    let head = arrived.split("\r\n\r\n").next().unwrap_or_default();
    let fields = head.split_once("\r\n").map_or("", |(_, fields)| fields);
    for kept in kept {
        assert!(fields.contains(kept), "{kept:?} is gone: {arrived}");
    }
    for gone in gone {
        assert!(!fields.contains(gone), "{gone:?} arrived: {arrived}");
    }
    assert!(fields.contains("1.1 outgate"), "no Via: {arrived}");
}

carried_tests! {
    fn fields_that_end_here_do_not_pass(lab) {
        let cases = FIELDS.iter().map(|(fields, ..)| Case::new(fields, with(fields), Want::sent(1)));
        let seen = hold(lab, cases.collect());
        for (seen, (_, kept, gone)) in seen.iter().zip(FIELDS.iter().chain(FIELDS)) {
            arrives_as(seen, kept, gone);
        }
    }

    fn content_passes_with_every_method(lab) {
        let cases = ["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "PURGE"].into_iter().flat_map(|method| {
            let head = format!("{method} /public/a HTTP/1.1\r\nHost: <host>\r\n");
            let how = if method == "HEAD" { Method::Head } else { Method::Other };
            [
                Case::new(&format!("{method} with length"), format!("{head}Content-Length: 5\r\n\r\nhello"), Want::sent(1)).method(how),
                Case::new(&format!("{method} with chunks"), format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), Want::sent(1)).method(how),
            ]
        });
        for seen in hold(lab, cases.collect()) {
            let taken = READERS[0].1(&seen.arrivals[0]).requests;
            assert_eq!(taken[0].content, b"hello", "{:?}: {}", seen.case.name, seen.arrived());
        }
        // And what is broken is not sent as if it had none.
        let broken = ["GET", "HEAD"].map(|method| {
            Case::new(method, format!("{method} /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\n\r\nhello"), Want::cut())
        });
        hold(lab, broken.to_vec());
    }

    fn the_authority_is_made_anew(lab) {
        let seen = hold(lab, vec![
            Case::new("absolute form", "GET <scheme>://<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("absolute form in upper case", "GET <SCHEME>://<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("absolute form on the scheme's own port", "GET <scheme>://<name>/public/a HTTP/1.1\r\nHost: <name>:<port>\r\n\r\n", Want::sent(1)).port(80),
            Case::new("absolute form without a path", "GET <scheme>://<host> HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)).zone(OPEN),
            Case::new("no port", "GET /public/a HTTP/1.1\r\nHost: <name>\r\n\r\n", Want::sent(1)),
            Case::new("a trailing dot", "GET /public/a HTTP/1.1\r\nHost: <name>.:8080\r\n\r\n", Want::sent(1)),
            Case::new("blanks around", "GET /public/a HTTP/1.1\r\nHost: \t <host> \t\r\n\r\n", Want::sent(1)),
            Case::new("HTTP/1.0", "GET /public/a HTTP/1.0\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("HTTP/1.0 without Host", "GET /public/a HTTP/1.0\r\n\r\n", Want::sent(1)),
            Case::new("an empty line before", "\r\nGET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)).zone(OPEN),
            Case::new("an unknown method", "PURGE /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("a dotted path", "GET /public/a/../b/%2e%2e/c HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("a query", "GET /public/a?b=c&d=%2F%20e HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
            Case::new("another address in a query", "GET /public/a?u=http://other.example/ HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)),
        ]);
        for seen in seen {
            let host = format!("\r\nhost: {}\r\n", seen.host);
            let arrived = seen.arrived();
            assert!(arrived.contains(&host) && arrived.contains(" HTTP/1.1\r\n"), "{host} {arrived}");
            assert!(!arrived.contains(" http://"), "{arrived}");
        }
    }

    fn options_count_down_and_may_end_here(lab) {
        let options = |left: &str| format!("OPTIONS /public/a HTTP/1.1\r\nHost: <host>\r\nMax-Forwards: {left}\r\n\r\n");
        let seen = hold(lab, vec![
            Case::new("5", options("5"), Want::sent(1)),
            Case::new("1", options("1"), Want::sent(1)),
        ]);
        for (seen, left) in seen.iter().zip(["4", "0", "4", "0"]) {
            assert!(seen.arrived().contains(&format!("max-forwards: {left}\r\n")), "{}", seen.arrived());
        }
        for seen in run(lab, vec![Case::new("0", options("0"), Want::refused(200))]) {
            assert!(seen.arrivals.is_empty(), "{:?}", seen.faults());
            assert_eq!(seen.reply().status, 200);
        }
    }

    fn a_request_in_circles_is_stopped(lab) {
        let via = |count: usize| with(&format!("Via: {}", vec!["1.1 outgate"; count].join(", ")));
        let lines = |count: usize| with(&vec!["Via: 1.1 outgate"; count].join("\r\n"));
        hold(lab, vec![
            Case::new("once", via(1), Want::sent(1)),
            Case::new("often", via(50), Want::refused(508)),
            Case::new("often, line by line", lines(50), Want::refused(508)),
        ]);
    }

    fn expect_is_answered_here_after_the_decision(lab) {
        let head = |path: &str| format!("POST {path} HTTP/1.1\r\nHost: <host>\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        let waits = |name: &str, path: &str, want: Want| {
            // The content only after the go, or after a while, as clients do.
            let steps = [Step::Send(head(path).into_bytes()), Step::Pause(300), Step::Send(b"hello".to_vec())];
            Case::new(name, "", want).steps(&steps)
        };
        let seen = run(lab, vec![
            waits("allowed", "/public/a", Want::replies(1, &[200])),
            Case::new("denied", head("/secret"), Want::refused(403)).ending(Ending::Open(300)),
        ]);
        assert_eq!(seen[0].reply().status, 100, "{:?}", seen[0]);
        assert!(seen[0].arrived().ends_with("\r\n\r\nhello"), "{:?}", seen[0].arrived());
        assert_eq!(seen[1].reply().status, 403, "no go for what is denied: {:?}", seen[1]);
        check(&seen);
    }

    fn websocket_passes_where_a_rule_says_so(lab) {
        let frame = b"\x81\x85\x01\x02\x03\x04\x69\x67\x6f\x68\x6e";
        let echo = Answer::Echo(SWITCHING.as_bytes().to_vec());
        let case = |name: &str| Case::new(name, UPGRADE, Want::replies(1, &[101])).zone(WS).answer(echo.clone());
        let later = [Step::Send(UPGRADE.into()), Step::Await(1), Step::Send(frame.to_vec())];
        let at_once = [UPGRADE.as_bytes(), frame].concat();
        let plain = UPGRADE.replace("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", "");
        let seen = run(lab, vec![
            case("frames later").steps(&later),
            case("a frame at once").steps(&[Step::Send(at_once.clone())]),
            case("byte by byte").steps(&[Step::SendSingly(at_once)]),
            Case::new("a plain request there", plain, Want::refused(403)).zone(WS),
            Case::new("another path", UPGRADE.replace("/ws", "/other"), Want::refused(403)).zone(WS),
        ]);
        // Under another key it says the same.
        let said = |frame: &[u8]| {
            let (head, masked) = frame.split_at(6);
            let key = head[2..].iter().cycle();
            let plain: Vec<u8> = masked.iter().zip(key).map(|(byte, key)| byte ^ key).collect();
            (head[..2].to_vec(), plain)
        };
        for seen in &seen[..3] {
            assert_eq!(seen.reply().status, 101, "{:?}", seen.faults());
            assert_eq!(said(&seen.replies.1), said(frame), "what came back: {:?}", seen.faults());
            let arrived = seen.arrived().to_ascii_lowercase();
            assert!(arrived.contains("upgrade: websocket\r\n") && arrived.contains("connection: upgrade\r\n"), "{arrived}");
        }
        check(&seen[3..]);
        // What the origin says at once belongs to the tunnel already.
        let early = Answer::Echo([SWITCHING.as_bytes(), b"\x81\x02hi"].concat());
        for seen in run(lab, vec![case("early").answer(early.clone()), case("early, byte by byte").answer(early).singly()]) {
            assert_eq!((seen.reply().status, &*seen.replies.1), (101, &b"\x81\x02hi"[..]), "{:?}", seen.faults());
        }
    }

    fn a_refused_switch_leaves_no_tunnel(lab) {
        let hidden = "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n";
        let closing = "HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nno!";
        let at_once = format!("{UPGRADE}{hidden}");
        let later = [Step::Send(UPGRADE.into()), Step::Await(1), Step::Send(hidden.into())];
        let case = |name: &str, status: u16| Case::new(name, &at_once, Want::replies(1, &[status, 403])).zone(WS);
        hold(lab, vec![
            case("200, and a request behind", 200),
            case("200, and a request later", 200).steps(&later),
            case("426, and a request behind", 426).answer(Answer::bytes(closing)),
            case("426, and a request later", 426).steps(&later).answer(Answer::bytes(closing)),
        ]);
    }

    fn what_follows_an_end_is_not_read(lab) {
        let close = with("Connection: close");
        let old = "GET /public/a HTTP/1.0\r\nHost: <host>\r\n\r\n";
        let keep = "GET /public/a HTTP/1.0\r\nHost: <host>\r\nConnection: keep-alive\r\n\r\n";
        let good = with("X: y");
        let expect = "DELETE /public/a HTTP/1.1\r\nHost: <host>\r\nExpect: 100-continue\r\nContent-Length: 48\r\n\r\n";
        let inside = "GET /public/a HTTP/1.1\r\nHost: smuggled.example\r\n\r\n";
        hold(lab, vec![
            Case::new("close", format!("{close}{good}"), Want::sent(1)),
            Case::new("an old one", format!("{old}{good}"), Want::sent(1)),
            Case::new("an old one that stays", format!("{keep}{good}"), Want::sent(2)),
            Case::new("content of a denied one that waits", format!("{expect}{inside}"), Want::refused(403)),
        ]);
    }

    fn an_old_client_gets_no_chunks(lab) {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\nX: y\r\n\r\n";
        let old = "GET /public/a HTTP/1.0\r\nHost: <host>\r\n\r\n";
        let seen = hold(lab, vec![Case::new("chunks", old, Want::sent(1)).answer(Answer::bytes(chunked))]);
        for seen in seen {
            let reply = seen.reply();
            assert!(reply.fields("transfer-encoding").is_empty(), "{reply:?}");
            assert_eq!((&*reply.content, reply.end), (&b"yes"[..], End::Unframed), "{reply:?}");
        }
    }

    fn a_target_is_sent_as_it_was_judged(lab) {
        let targets = [
            ("/public/a?b=c&d=%2F%20e", "/public/a?b=c&d=%2F%20e"),
            ("/public/a?", "/public/a?"),
            ("/public/a?u=http://other.example/&x=a+b;c=d", "/public/a?u=http://other.example/&x=a+b;c=d"),
            ("/public/a/../b/./c", "/public/b/c"),
            ("/public/%61%7e?%61", "/public/a~?%61"),
            ("/public/%c3%a9", "/public/%C3%A9"),
            ("/public/a;b=c", "/public/a;b=c"),
        ];
        let cases = targets.map(|(said, _)| Case::new(said, format!("GET {said} HTTP/1.1\r\nHost: <host>\r\n\r\n"), Want::sent(1)));
        let seen = hold(lab, cases.to_vec());
        for (seen, (_, sent)) in seen.iter().zip(targets.iter().chain(&targets)) {
            assert!(seen.arrived().starts_with(&format!("GET {sent} HTTP/1.1\r\n")), "{sent}: {}", seen.arrived());
        }
    }

    fn head_has_fields_and_no_content(lab) {
        let head = "HEAD /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
        let seen = hold(lab, vec![Case::new("HEAD", head.repeat(3), Want::sent(3)).method(Method::Head)]);
        for seen in seen {
            assert_eq!(seen.reply().fields("content-length"), ["3"]);
            assert_eq!(seen.replies.1, b"");
        }
    }
}
