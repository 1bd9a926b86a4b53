//! Every denied request over every way in: the same decision whichever way it
//! is asked, first or behind a request that is allowed.

use crate::case::{CASE, Case, DENIED, Ending, Fields, Pace, Step, Want};
use crate::frames;
use crate::origin::Answer;
use crate::stage::{run, run_shared};
use crate::suite::{Seen, check};

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";

/// A request, whatever carries it.
#[derive(Debug, Clone, Copy)]
struct Request {
    zone: &'static str,
    method: &'static str,
    authority: &'static str,
    path: &'static str,
}

/// A rule that denies, and a request it denies.
const DENIALS: &[(&str, Request)] = &[
    (
        "no rule for the host",
        request(DENIED, "GET", "<host>", "/public/a"),
    ),
    (
        "no rule for the path",
        request(CASE, "GET", "<host>", "/secret"),
    ),
    (
        "a deny rule for the path",
        request(CASE, "GET", "<host>", "/public/private/a"),
    ),
    (
        "a deny rule for a reading of the path",
        request(CASE, "GET", "<host>", "/public/x/..%2fprivate/a"),
    ),
    (
        "a dotted way out",
        request(CASE, "GET", "<host>", "/public/../secret"),
    ),
    (
        "a deny rule for the method",
        request(CASE, "DELETE", "<host>", "/public/a"),
    ),
    (
        "another host",
        request(CASE, "GET", "other.example:8080", "/public/a"),
    ),
    (
        "another port",
        request(CASE, "GET", "<name>:8081", "/public/a"),
    ),
    (
        "the metadata service",
        request(CASE, "GET", "169.254.169.254", "/public/a"),
    ),
    (
        "itself by address",
        request(CASE, "GET", "127.0.0.1:8080", "/public/a"),
    ),
    (
        "a user before the host",
        request(CASE, "GET", "<host>@other.example", "/public/a"),
    ),
    ("TRACE", request(CASE, "TRACE", "<host>", "/public/a")),
];

const fn request(
    zone: &'static str,
    method: &'static str,
    authority: &'static str,
    path: &'static str,
) -> Request {
    Request {
        zone,
        method,
        authority,
        path,
    }
}

/// A way in: its name, and the bytes that ask for a request there.
type Ingress = (&'static str, fn(&Request) -> Vec<u8>);

const INGRESSES: &[Ingress] = &[
    ("origin form", |ask| {
        format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n\r\n",
            ask.method, ask.path, ask.authority
        )
        .into()
    }),
    ("absolute form", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("{method} <scheme>://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
            .into()
    }),
    ("HTTP/1.0", |ask| {
        format!(
            "{} {} HTTP/1.0\r\nHost: {}\r\nConnection: keep-alive\r\n\r\n",
            ask.method, ask.path, ask.authority
        )
        .into()
    }),
    ("with chunks", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").into()
    }),
    ("with Expect", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello").into()
    }),
    ("an upgrade to WebSocket", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n").into()
    }),
    ("an upgrade to HTTP/2", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n").into_bytes();
        bytes.extend(frames::beginning());
        bytes
    }),
    ("through CONNECT", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n{method} {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into()
    }),
    ("through a CONNECT that would be allowed", |ask| {
        let Request {
            method,
            authority,
            path,
            ..
        } = ask;
        format!("CONNECT <host> HTTP/1.1\r\nHost: <host>\r\n\r\n{method} {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into()
    }),
];

/// The fields of a stream that asks for it.
fn stream(ask: &Request) -> Fields {
    fields(&[
        (":method", ask.method),
        (":scheme", "<scheme>"),
        (":authority", ask.authority),
        (":path", ask.path),
    ])
}

fn fields(fields: &[(&str, &str)]) -> Fields {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(owned).collect()
}

fn streams(name: &str, streams: Vec<Fields>) -> Case {
    let steps = [Step::Streams(streams, Pace::AtOnce)];
    Case::new(name, "", Want::closed())
        .steps(&steps)
        .ending(Ending::Open(300))
}

/// Frames with fields or an end of a stream, or of the connection.
fn answers(seen: &Seen) -> usize {
    let frames = frames::read(&seen.heard.bytes);
    frames
        .iter()
        .filter(|frame| matches!(frame.0, 1 | 3 | 7))
        .count()
}

/// What the gateway said, in all that came back.
fn is_refusal(seen: &Seen) -> bool {
    let heard = String::from_utf8_lossy(&seen.heard.bytes);
    !heard.contains("yes") && !heard.contains("HTTP/1.1 101") && !heard.contains("HTTP/1.1 200")
}

/// Every denial over every way in that is HTTP/1.
fn over_http1() -> Vec<Case> {
    let mut cases = Vec::new();
    for (denial, ask) in DENIALS {
        for (ingress, bytes) in INGRESSES {
            let name = format!("{denial}: {ingress}");
            let case = Case::new(&name, bytes(ask), Want::closed()).zone(ask.zone);
            cases.extend([case.clone(), case.clone().first_alone(1), case.singly()]);
        }
    }
    cases
}

/// Every denial as a stream of HTTP/2.
fn over_http2() -> Vec<Case> {
    let mut cases = Vec::new();
    for (denial, ask) in DENIALS {
        let one = stream(ask);
        let with_host = [one.clone(), fields(&[("host", ask.authority)])].concat();
        for (name, all) in [
            ("a stream", vec![one.clone()]),
            ("with Host", vec![with_host]),
            ("twice", vec![one.clone(), one]),
        ] {
            let case = streams(&format!("{denial}: {name}"), all).zone(ask.zone);
            cases.extend([case.clone(), case.singly()]);
        }
    }
    cases
}

/// Asserts that each was denied, in words, and that nothing arrived.
fn all_denied(seen: &[Seen]) {
    for seen in seen {
        assert_eq!(seen.laws(), [""; 0], "{:?}", seen.faults());
        assert!(
            seen.arrivals.is_empty() && is_refusal(seen),
            "{:?}",
            seen.faults()
        );
        assert!(
            !seen.denied.is_empty() && seen.allowed.is_empty(),
            "{:?}",
            seen.faults()
        );
        assert!(seen.heard.is_ended(), "{:?}", seen.faults());
        let in_words = seen
            .replies
            .0
            .first()
            .is_some_and(|reply| reply.status >= 400);
        assert!(in_words || answers(seen) > 0, "{:?}", seen.faults());
    }
}

carried_tests! {
    fn a_denied_request_is_denied_over_every_ingress(lab) {
        all_denied(&run(lab, over_http1()));
    }

    fn a_denied_request_is_denied_as_a_stream_too(lab) {
        all_denied(&run(lab, over_http2()));
    }

    fn and_behind_a_shared_gateway(lab) {
        all_denied(&run_shared(lab, [over_http1(), over_http2()].concat()));
        let good = Case::new("an allowed one", GOOD.repeat(2), Want::sent(2));
        check(&run_shared(lab, vec![good.clone(), good.singly()]));
    }

    fn and_behind_an_allowed_one(lab) {
        let mut cases = Vec::new();
        for (denial, ask) in DENIALS.iter().filter(|(_, ask)| ask.zone == CASE) {
            for (ingress, bytes) in INGRESSES {
                let name = format!("{denial}: {ingress}");
                let bytes = bytes(ask);
                let steps = [Step::Send(GOOD.into()), Step::Await(1), Step::Send(bytes.clone())];
                cases.push(Case::new(&name, "", Want::sent(1)).steps(&steps));
                cases.push(Case::new(&name, [GOOD.as_bytes(), &bytes].concat(), Want::sent(1)));
            }
        }
        for seen in run(lab, cases) {
            assert_eq!(seen.laws(), [""; 0], "{:?}", seen.faults());
            assert_eq!(seen.allowed.len(), 1, "{:?}", seen.faults());
            assert_eq!(seen.reply().status, 200, "{:?}", seen.faults());
            let later: Vec<u16> = seen.replies.0.iter().skip(1).map(|reply| reply.status).collect();
            assert!(!later.is_empty() && later.iter().all(|status| *status >= 400), "{:?}", seen.faults());
        }
    }

    fn streams_with_two_readings_are_refused(lab) {
        let path = ("path", ":path");
        let all: &[(&str, &[(&str, &str)])] = &[
            ("two paths", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), (":path", "/secret")]),
            ("two authorities", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":authority", "other.example"), (":path", "/public/a")]),
            ("two methods", &[(":method", "GET"), (":method", "DELETE"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a")]),
            ("another Host", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("host", "other.example")]),
            ("two Hosts", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("host", "<host>"), ("host", "other.example")]),
            ("Host alone", &[(":method", "GET"), (":scheme", "<scheme>"), (":path", "/public/a"), ("host", "other.example")]),
            ("nobody", &[(":method", "GET"), (":scheme", "<scheme>"), (":path", "/public/a")]),
            ("a path with a line end", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a HTTP/1.1\r\nHost: other.example\r\n\r\nGET /secret")]),
            ("a path with a blank", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a HTTP/1.1")]),
            ("a method with a blank", &[(":method", "GET /secret HTTP/1.1"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a")]),
            ("a value with a line end", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x", "y\r\nHost: other.example")]),
            ("a value with a line feed", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x", "y\nhost: other.example")]),
            ("a value with a carriage return", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x", "y\rhost: other.example")]),
            ("a value with NUL", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x", "y\0z")]),
            ("a name with a line end", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x\r\nhost", "other.example")]),
            ("a name with NUL", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x\0", "y")]),
            ("a path with NUL", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a\0b")]),
            ("an authority with a line end", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>\r\nx: y"), (":path", "/public/a")]),
            ("a method with a line end", &[(":method", "GET\r\n"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a")]),
            ("a name with a colon", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("x: y", "z")]),
            ("a name in upper case", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("Host", "other.example")]),
            ("a transfer coding", &[(":method", "POST"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("transfer-encoding", "chunked")]),
            ("a connection field", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("connection", "host")]),
            ("a length without content", &[(":method", "POST"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/a"), ("content-length", "50")]),
            ("a user before the host", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "other.example@<host>"), (":path", "/public/a")]),
            ("an authority with a path", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>/public"), (":path", "/public/a")]),
            ("another scheme", &[(":method", "GET"), (":scheme", "<other>"), (":authority", "<host>"), (":path", "/public/a")]),
            ("a file", &[(":method", "GET"), (":scheme", "file"), (":authority", "<host>"), (":path", "/public/a")]),
            ("an absolute path", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "<scheme>://other.example/public/a")]),
            ("an asterisk", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "*")]),
            ("no path", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>")]),
            ("an empty path", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "")]),
            ("CONNECT", &[(":method", "CONNECT"), (":authority", "<host>")]),
            ("CONNECT to another", &[(":method", "CONNECT"), (":authority", "other.example:443")]),
            ("an extended CONNECT", &[(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "<scheme>"), (":authority", "<host>"), (":path", "/public/ws")]),
            ("a pseudo-field behind", &[(":method", "GET"), (":scheme", "<scheme>"), (":authority", "<host>"), ("x", "y"), (path.1, "/secret")]),
        ];
        let cases = all.iter().flat_map(|(name, all)| {
            let case = streams(name, vec![fields(all)]);
            [case.clone(), case.singly()]
        });
        let cases: Vec<Case> = cases.collect();
        for seen in run(lab, cases) {
            assert!(seen.arrivals.is_empty() && is_refusal(&seen), "{:?}", seen.faults());
            assert_eq!(seen.allowed, [], "{:?}", seen.faults());
        }
    }

    fn an_allowed_stream_arrives_as_one(lab) {
        let ask = request(CASE, "GET", "<host>", "/public/a");
        // Streams go only to an origin that shows its settings.
        let settings = Answer::Early(frames::frame(4, 0, 0, &[]));
        let case = streams("one stream", vec![stream(&ask)]).answer(settings);
        for seen in run(lab, vec![case.clone(), case.singly()]) {
            assert_eq!(seen.allowed.len(), 1, "{:?}", seen.faults());
            assert_eq!(seen.arrivals.len(), 1, "{:?}", seen.faults());
            let rest = seen.arrivals[0].strip_prefix(&frames::beginning()[..24]);
            let kinds: Vec<u8> = frames::read(rest.expect("the preface")).iter().map(|frame| frame.0).collect();
            assert!(kinds.contains(&4) && kinds.contains(&1), "settings and a head: {kinds:?}");
        }
    }
}
