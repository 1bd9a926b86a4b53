//! The beginning of TLS: in every segmentation, for nobody and for others,
//! with what is not TLS at all, and with what somebody puts below it.

use outgate_harness::lab_tests;

use crate::case::{CASE, Carrier, Case, DENIED, Ending, HelloPace, OPEN, Step, Want};
use crate::origin::Answer;
use crate::replies::End;
use crate::stage::{carry, run};
use crate::suite::check;

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
const BAD: &str = "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n";

/// Encrypted Client Hello (RFC 9849), as an outer ClientHello has it.
const ECH: &[u8] = &[0xfe, 0x0d, 0, 4, 0, 0, 1, 0];

fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short text");
    [&length.to_be_bytes(), bytes].concat()
}

/// The extension that names a server (RFC 6066 3).
fn server_name(name: &[u8]) -> Vec<u8> {
    let entry = [&[0][..], &sized(name)].concat();
    [&[0, 0][..], &sized(&sized(&entry))].concat()
}

/// A ClientHello (RFC 8446 4.1.2) with these extensions.
pub(crate) fn with(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    let versions = [0, 43, 0, 3, 2, 3, 4];
    body.extend(sized(&[&versions, extensions].concat()));
    let length = u32::try_from(body.len()).expect("a short text");
    let handshake = [&[1][..], &length.to_be_bytes()[1..], &body].concat();
    [&[22, 3, 1][..], &sized(&handshake)].concat()
}

/// One that asks for `name`, or for nobody.
pub(crate) fn hello(name: Option<&str>) -> Vec<u8> {
    with(&name.map_or_else(Vec::new, |name| server_name(name.as_bytes())))
}

/// ClientHellos that lead to nobody: what they are, and their bytes. `<name>` has
/// always the same length, so that it can stand in them.
fn strangers(name: &str) -> Vec<(&'static str, Vec<u8>)> {
    let own = server_name(name.as_bytes());
    let two = [
        &[0][..],
        &sized(name.as_bytes()),
        &[0],
        &sized(b"b.example"),
    ]
    .concat();
    vec![
        ("no name", hello(None)),
        ("another name", hello(Some("other.example"))),
        ("another name of the zone", hello(Some("x.case.example"))),
        ("a name below", hello(Some(&format!("x.{name}")))),
        (
            "a name that begins alike",
            hello(Some(&format!("{name}.other.example"))),
        ),
        ("a final dot", hello(Some(&format!("{name}.")))),
        ("two final dots", hello(Some(&format!("{name}..")))),
        ("a leading dot", hello(Some(&format!(".{name}")))),
        ("an address", hello(Some("127.0.0.1"))),
        ("an address in brackets", hello(Some("[::1]"))),
        ("a name with a port", hello(Some(&format!("{name}:8080")))),
        (
            "a name with NUL",
            hello(Some(&format!("{name}\0.other.example"))),
        ),
        (
            "a name with a line end",
            hello(Some(&format!("{name}\r\n"))),
        ),
        ("an empty name", hello(Some(""))),
        (
            "a name that is not ASCII",
            hello(Some("\u{e9}.case.example")),
        ),
        ("the name twice", with(&[own.clone(), own.clone()].concat())),
        (
            "two names at once",
            with(&[&[0, 0][..], &sized(&sized(&two))].concat()),
        ),
        (
            "another name behind",
            with(&[own.clone(), server_name(b"other.example")].concat()),
        ),
        (
            "an outer name, the true one hidden",
            with(&[own.clone(), ECH.to_vec()].concat()),
        ),
        ("nothing but a hidden name", with(ECH)),
        (
            "a name hidden the old way",
            with(&[&own[..], &[0xff, 0xce, 0, 1, 0]].concat()),
        ),
    ]
}

/// A word about it: a fatal alert (RFC 8446 6).
fn is_alert(bytes: &[u8]) -> bool {
    bytes.starts_with(&[21, 3, 3, 0, 2, 2]) && bytes.len() == 7
}

lab_tests! {
    fn a_client_hello_in_any_pieces_is_opened_all_the_same(lab) {
        carry(Carrier::Tls);
        let all = (1..=64).map(HelloPace::Cut).chain([HelloPace::Singly]);
        let cases = all.flat_map(|hello| {
            [
                Case::new("allowed", GOOD, Want::sent(1)),
                Case::new("denied", BAD, Want::refused(403)),
                Case::new("a denied host", GOOD, Want::refused(403)).zone(DENIED),
            ]
            .map(|mut case| {
                case.name = format!("{} {hello:?}", case.name);
                case.hello(hello)
            })
        });
        check(&run(lab, cases.collect()));
    }

    fn a_client_hello_for_nobody_or_another_leads_nowhere(lab) {
        carry(Carrier::Tls);
        // Cases are numbered as they are run, from 0 in each laboratory.
        let count = strangers("").len();
        let zones = [CASE, OPEN, DENIED];
        let cases = (0..count * zones.len()).map(|number| {
            let zone = zones[number / count];
            let (name, bytes) = strangers(&format!("c{number}.{zone}.example")).swap_remove(number % count);
            Case::new(&format!("{name} to {zone}"), bytes, Want::closed()).zone(zone).bare()
        });
        let cases: Vec<Case> = cases.collect();
        for seen in run(lab, cases) {
            assert!(seen.arrivals.is_empty() && seen.allowed.is_empty(), "{:?}", seen.faults());
            assert!(is_alert(&seen.heard.bytes) || seen.heard.bytes.is_empty(), "{:?}", seen.faults());
            assert!(!seen.denied.is_empty() && seen.heard.is_ended(), "{:?}", seen.faults());
        }
    }

    fn what_is_not_tls_gets_nowhere_where_only_tls_may_pass(lab) {
        carry(Carrier::Tls);
        let upgrade = "GET /public/a HTTP/1.1\r\nHost: <host>\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n";
        let requests = [
            ("a request", GOOD),
            ("a request for https", "GET https://<host>/public/a HTTP/1.1\r\nHost: <host>\r\n\r\n"),
            ("CONNECT", "CONNECT <host> HTTP/1.1\r\nHost: <host>\r\n\r\n"),
            ("an upgrade to TLS", upgrade),
        ];
        let mut cases = Vec::new();
        for zone in [CASE, OPEN, DENIED] {
            for (name, text) in requests {
                for port in [80, 8080] {
                    let case = Case::new(&format!("{name} to {zone}:{port}"), text, Want::closed());
                    cases.push(case.zone(zone).port(port).bare());
                }
            }
        }
        for seen in run(lab, cases) {
            assert!(seen.arrivals.is_empty() && seen.allowed.is_empty(), "{:?}", seen.faults());
            assert!(matches!(seen.reply().status, 400 | 403), "{:?}", seen.faults());
            assert!(!seen.denied.is_empty() && seen.heard.is_ended(), "{:?}", seen.faults());
        }
    }

    fn what_is_put_below_tls_ends_it(lab) {
        carry(Carrier::Tls);
        let below: [(&str, &[u8]); 7] = [
            ("a plain request", GOOD.as_bytes()),
            ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
            ("a record of nobody", b"\x17\x03\x03\x00\x20AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            ("a second ClientHello", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"),
            ("a plain alert", b"\x15\x03\x03\x00\x02\x01\x00"),
            ("a record that is too long", b"\x17\x03\x03\xff\xff"),
            ("zeros", &[0; 64]),
        ];
        let cases = below.map(|(name, bytes)| {
            let steps = [Step::Send(GOOD.into()), Step::Await(1), Step::Below(bytes.to_vec()), Step::Send(GOOD.into())];
            Case::new(name, "", Want::sent(1)).steps(&steps).ending(Ending::Open(2000))
        });
        for seen in run(lab, cases.to_vec()) {
            assert_eq!(seen.laws(), [""; 0], "{:?}", seen.faults());
            assert_eq!((seen.allowed.len(), seen.replies.0.len()), (1, 1), "{:?}", seen.faults());
            assert_ne!(seen.heard.end, "open", "{:?}", seen.faults());
        }
    }

    fn an_end_that_tls_was_not_told_of_is_no_end(lab) {
        carry(Carrier::Tls);
        let until_the_end = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nyes";
        let torn = |name: &str, text: &str| {
            let answer = Answer::Torn(text.as_bytes().to_vec());
            Case::new(name, GOOD, Want::sent(1)).answer(answer)
        };
        let whole = Case::new("told", GOOD, Want::sent(1)).answer(Answer::last(until_the_end));
        let seen = run(lab, vec![
            whole,
            torn("by the length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"),
            torn("until the end", until_the_end),
            torn("short of the length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nyes"),
            torn("half a head", "HTTP/1.1 200 OK\r\nContent-"),
        ]);
        for seen in &seen[..2] {
            let reply = seen.reply();
            assert_eq!((reply.status, &*reply.content), (200, &b"yes"[..]), "{:?}", seen.faults());
            assert_ne!(reply.end, End::Cut, "{:?}", seen.faults());
            assert!(seen.heard.is_ended(), "{:?}", seen.faults());
        }
        for seen in &seen[2..] {
            let reply = seen.reply();
            let is_error = reply.status == 502 || reply.end == End::Cut || seen.heard.end == "torn";
            assert!(is_error, "{:?}", seen.faults());
        }
    }
}
