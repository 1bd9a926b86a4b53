//! Requests nobody thought of: made from a grammar and then damaged. Whatever
//! arrives is what was judged, to every reader; what was not allowed does not
//! arrive at all. `OUTGATE_SEED` (hexadecimal) repeats a run.

use std::hash::{BuildHasher, RandomState};

use outgate_harness::is_quick;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::{CASE, Case, Cut, OPEN, Want};
use crate::readers::READERS;
use crate::stage::run;
use crate::suite::Seen;

const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "TRACE", "CONNECT", "get", "G\tET", "",
];

const TARGETS: &[&str] = &[
    "/public/a",
    "/public/a",
    "/public/a?b=c",
    "/secret",
    "/public/../secret",
    "/public/%2e%2e/secret",
    "/public//private/a",
    "/public/..;/private",
    "/public/a#b",
    "//other.example/public/a",
    "/public/\\..\\secret",
    "<scheme>://<host>/public/a",
    "<scheme>://<host>/secret",
    "<scheme>://other.example/public/a",
    "<other>://<host>/public/a",
    "<scheme>://<host>@other.example/",
    "<host>",
    "*",
    "",
    "/public/%00",
    "/public/\u{e9}",
    "/public/a%20b",
    "/public/a b",
];

const VERSIONS: &[&str] = &[
    "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "http/1.1", "HTTP/2.0",
    "",
];

const FIELDS: &[&str] = &[
    "Host: <host>",
    "Host: <name>",
    "Host: other.example",
    "Host: <host>, other.example",
    "Host : <host>",
    "host:<host>",
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: 05",
    "Content-Length: +5",
    "Content-Length: 5, 5",
    "Content_Length: 9",
    "content-length:5",
    "Content-Length: 50",
    "Content-Length : 5",
    "Content-Length: 5 5",
    "Content-Length\t: 5",
    "Transfer-Encoding: chunked",
    "transfer-encoding:chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding : chunked",
    "Transfer_Encoding: chunked",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: Chunked",
    "X: y\r\n Transfer-Encoding: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "Connection: close",
    "Connection: keep-alive",
    "Connection: content-length",
    "Connection: transfer-encoding, host",
    "Connection: upgrade",
    "Upgrade: websocket",
    "Upgrade: h2c",
    "Expect: 100-continue",
    "Expect: x",
    "TE: trailers",
    "Trailer: Host",
    "Via: 1.1 x",
    "Max-Forwards: 0",
    "X-HTTP-Method-Override: DELETE",
    "X-Original-URL: /secret",
    "X-Forwarded-Host: other.example",
    "Accept: */*",
    "X:",
    "X: \u{e9}",
    "X: a\0b",
    ": x",
    "GET /secret HTTP/1.1",
    "Range: bytes=0-",
];

const CONTENTS: &[&str] = &[
    "",
    "",
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;x=y\r\nhello\r\n0\r\nHost: other.example\r\n\r\n",
    "0\r\n\r\n",
    "0\r\n\r\nGET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n",
    "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n",
    "5\r\nhello\r\n0\r\n\nGET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n",
    "5\nhello\n0\n\n",
    "ffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
    "00000005\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
];

const LINE_ENDS: &[&str] = &["\n", "\r", "\r\r\n", "\r\n\r\n", "\n\r\n"];

/// Bytes that mean something to somebody.
const SPECIAL: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    ",",
    "#",
    "%",
    "?",
    "@",
    "/",
    "\\",
    "\x0b",
    "\x0c",
    "\x7f",
    "\u{85}",
    "\u{a0}",
    "0",
    "5",
    "chunked",
    "\r\n\r\n",
    "\n\n",
    "\r\nHost: other.example",
    "\r\nContent-Length: 5",
    "\r\nTransfer-Encoding: chunked",
    "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n",
];

/// A damage to bytes: where, of 65536 parts, and what.
#[derive(Debug, Clone)]
enum Damage {
    Insert(u16, &'static str),
    Replace(u16, &'static str),
    Remove(u16),
    Double(u16, u8),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |part: u16| usize::from(part) * bytes.len() / 65536;
        match *self {
            Self::Insert(part, text) => {
                let at = place(part);
                bytes.splice(at..at, text.bytes());
            }
            Self::Replace(part, text) => {
                let at = place(part);
                let end = (at + 1).min(bytes.len());
                bytes.splice(at..end, text.bytes());
            }
            Self::Remove(part) if !bytes.is_empty() => {
                let at = place(part);
                bytes.remove(at);
            }
            Self::Double(part, count) => {
                let at = place(part);
                let end = (at + usize::from(count)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(end..end, again);
            }
            Self::Remove(_) => {}
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<u16>(), select(SPECIAL)).prop_map(|(at, text)| Damage::Insert(at, text)),
        (any::<u16>(), select(SPECIAL)).prop_map(|(at, text)| Damage::Replace(at, text)),
        any::<u16>().prop_map(Damage::Remove),
        (any::<u16>(), any::<u8>()).prop_map(|(at, count)| Damage::Double(at, count)),
    ]
}

/// A request as the grammar has it, right or wrong.
fn any_request() -> impl Strategy<Value = String> {
    // Mostly right in each part, so that one wrong part gets far.
    let mostly = |right: &'static str, all: &'static [&'static str]| prop_oneof![6 => Just(right), 1 => select(all)];
    let line = (
        prop_oneof![3 => Just("POST"), 3 => Just("GET"), 1 => select(METHODS)],
        mostly("/public/a", TARGETS),
        mostly("HTTP/1.1", VERSIONS),
    );
    let fields = vec((select(FIELDS), mostly("\r\n", LINE_ENDS)), 0..3);
    (line, fields, select(CONTENTS)).prop_map(|((method, target, version), fields, content)| {
        let mut text = format!("{method} {target} {version}\r\nHost: <host>\r\n");
        for (field, end) in fields {
            text.push_str(field);
            text.push_str(end);
        }
        text.push_str("\r\n");
        text.push_str(content);
        text
    })
}

/// One that is right, so that what is damaged would be allowed whole.
fn good_request() -> impl Strategy<Value = String> {
    let framings = [
        ("", ""),
        ("Content-Length: 5\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        (
            "Transfer-Encoding: chunked\r\nTE: trailers\r\n",
            "2\r\nhe\r\n3;x\r\nllo\r\n0\r\nX: y\r\n\r\n",
        ),
    ];
    let method = select(&["GET", "POST", "PUT", "HEAD"][..]);
    (method, select(framings.to_vec())).prop_map(|(method, (fields, content))| {
        format!(
            "{method} /public/a HTTP/1.1\r\nHost: <host>\r\nAccept: */*\r\n{fields}\r\n{content}"
        )
    })
}

fn connection() -> impl Strategy<Value = Vec<u8>> {
    let one = || prop_oneof![3 => good_request(), 2 => any_request()];
    let damages = prop_oneof![1 => Just(Vec::new()), 4 => vec(damage(), 1..4)];
    (vec(one(), 1..4), damages).prop_map(|(requests, damages)| {
        let mut bytes = requests.concat().into_bytes();
        for damage in damages {
            damage.apply(&mut bytes);
        }
        bytes
    })
}

/// Sixteen hexadecimal digits: given, or new each time.
fn seed() -> String {
    std::env::var("OUTGATE_SEED")
        .unwrap_or_else(|_| format!("{:016x}", RandomState::new().hash_one(std::process::id())))
}

fn cases(seed: &str, count: usize) -> Vec<Case> {
    let mut bytes = [0; 32];
    for (into, from) in bytes.iter_mut().zip(seed.bytes().cycle()) {
        *into = from;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (connection(), select(&[CASE, CASE, OPEN][..]), any::<u8>());
    (0..count)
        .map(|number| {
            let tree = strategy.new_tree(&mut runner).expect("a connection");
            let (bytes, zone, pace) = tree.current();
            let case = Case::new(&format!("number {number}"), bytes, Want::cut()).zone(zone);
            if pace < 32 { case.singly() } else { case }
        })
        .collect()
}

/// What must hold of any connection.
fn faults(seen: &Seen) -> Vec<String> {
    let mut faults = seen.laws();
    let strict = READERS[0].1;
    let whole: usize = seen
        .arrivals
        .iter()
        .map(|bytes| strict(bytes).requests.len())
        .sum();
    let good = seen
        .replies
        .0
        .iter()
        .filter(|reply| reply.status == 200)
        .count();
    // An OPTIONS that goes no further is answered here (RFC 9110 7.6.2).
    let ends_here = seen.allowed.iter().any(|judged| judged.method == "OPTIONS");
    if good > whole && !ends_here {
        faults.push(format!("{good} good responses to {whole} requests"));
    }
    if seen.heard.end != "eof" {
        faults.push(format!("the connection ended with `{}`", seen.heard.end));
    }
    for secret in ["/secret", "other.example:", "TRACE ", "CONNECT "] {
        let heads = seen
            .arrivals
            .iter()
            .flat_map(|bytes| strict(bytes).requests);
        if seen.case.zone == CASE
            && heads
                .into_iter()
                .any(|one| format!("{} {} {}:", one.method, one.target, one.host).contains(secret))
        {
            faults.push(format!("{secret} arrived"));
        }
    }
    faults
}

carried_tests! {
    fn whatever_arrives_was_judged(lab) {
        let seed = seed();
        eprintln!("OUTGATE_SEED={seed}");
        let count = if is_quick() { 300 } else { 900 };
        let seen = run(lab, cases(&seed, count));
        let bad: Vec<String> = seen.iter().filter(|seen| !faults(seen).is_empty())
            .map(|seen| format!("{:#?}\n{:?}", faults(seen), seen.faults())).collect();
        assert!(bad.is_empty(), "OUTGATE_SEED={seed}: {} of {count}\n{}", bad.len(), bad.join("\n"));
        // Vacuous if nothing got through, or nothing was stopped.
        let arrived = seen.iter().filter(|seen| !seen.arrivals.is_empty()).count();
        let stopped = seen.iter().filter(|seen| !seen.denied.is_empty()).count();
        assert!(arrived * 10 > count && stopped * 10 > count, "{arrived} arrived, {stopped} stopped of {count}");
        assert!(seen.iter().all(|seen| seen.case.want.cut == Cut::Last));
    }
}
