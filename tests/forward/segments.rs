//! Interception dodged by a byte: the beginning of a connection in every
//! segmentation, of HTTP, of HTTP/2 and of TLS, and of what is none of them.

use crate::case::{CASE, Case, DENIED, Ending, Step, Want};
use crate::client_hellos::hello;
use crate::stage::run;
use crate::suite::check;

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What nobody may send to an `http://` rule, and its first bytes.
fn foreign() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("TLS for another name", hello(Some("other.example"))),
        ("TLS for the same name", hello(Some("c0.case.example"))),
        ("TLS without a name", hello(None)),
        (
            "an old TLS ClientHello",
            b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10".to_vec(),
        ),
        ("a TLS alert", b"\x15\x03\x01\x00\x02\x02\x28".to_vec()),
        ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        (
            "SMTP",
            b"EHLO other.example\r\nMAIL FROM:<a@b>\r\n".to_vec(),
        ),
        ("Redis", b"*1\r\n$4\r\nPING\r\n".to_vec()),
        ("PostgreSQL", b"\x00\x00\x00\x08\x04\xd2\x16\x2f".to_vec()),
        (
            "SOCKS5",
            b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x1f\x90".to_vec(),
        ),
        (
            "the PROXY protocol",
            b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /secret HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        ),
        (
            "the PROXY protocol, binary",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x50\0\x50".to_vec(),
        ),
        ("HTTP/0.9", b"GET /secret\r\n".to_vec()),
        (
            "HTTP/2 in words",
            b"GET /secret HTTP/2.0\r\nHost: a\r\n\r\n".to_vec(),
        ),
        (
            "half a preface",
            b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(),
        ),
        ("ICY", b"GET /secret ICY/1.0\r\nHost: a\r\n\r\n".to_vec()),
        (
            "a tab",
            b"GET\t/secret HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        ),
        (
            "two blanks",
            b"GET  /secret HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        ),
        (
            "a blank before",
            b" GET /secret HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        ),
        ("NUL", b"\0GET /secret HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("nothing but line ends", b"\r\n\r\n\r\n\r\n\r\n".to_vec()),
        ("Telnet", b"\xff\xfb\x1f\xff\xfb\x20".to_vec()),
    ]
}

/// The first 1 to `count` bytes alone, and every byte alone.
fn segmented(case: &Case, count: usize) -> Vec<Case> {
    (1..=count)
        .map(|alone| case.clone().first_alone(alone))
        .chain([case.clone(), case.clone().singly()])
        .collect()
}

carried_tests! {
    fn the_first_bytes_alone_change_nothing(lab) {
        let post = "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 5\r\n\r\nhello";
        let cases = [
            Case::new("an allowed GET", GOOD, Want::sent(1)),
            Case::new("an allowed POST", post, Want::sent(1)),
            Case::new("two", format!("{GOOD}{GOOD}"), Want::sent(2)),
            Case::new("a denied GET", "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::refused(403)),
            Case::new("a denied POST to another", "POST / HTTP/1.1\r\nHost: other.example\r\n\r\n", Want::refused(403)),
            Case::new("a denied host", GOOD, Want::refused(403)).zone(DENIED),
            Case::new("CONNECT", "CONNECT <host> HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::refused(403)),
        ];
        check(&run(lab, cases.iter().flat_map(|case| segmented(case, 5)).collect()));
    }

    fn what_is_not_http_never_arrives(lab) {
        let mut cases = Vec::new();
        for (name, bytes) in foreign() {
            for zone in [CASE, DENIED] {
                let case = Case::new(&format!("{name} to {zone}"), &bytes, Want::closed()).zone(zone);
                cases.extend(segmented(&case, 3));
            }
        }
        let seen = run(lab, cases);
        for seen in &seen {
            let heard = String::from_utf8_lossy(&seen.heard.bytes).into_owned();
            // A word of refusal is welcome: a TLS alert, or a 400 of the parser.
            let alert = seen.heard.bytes.starts_with(b"\x15\x03");
            assert!(heard.is_empty() || alert || heard.starts_with("HTTP/1.1 400"), "{:?}", seen.faults());
            assert_eq!(seen.laws(), [""; 0], "{:?}", seen.faults());
            assert!(seen.arrivals.is_empty(), "{:?}", seen.faults());
            assert!(!seen.denied.is_empty(), "no record: {:?}", seen.faults());
        }
    }

    fn an_http2_preface_in_pieces_is_a_preface(lab) {
        let case = Case::new("the preface", PREFACE, Want::closed()).zone(DENIED).versions(&["h2"], &["h2"]);
        let steps = (1..PREFACE.len()).map(|cut| {
            let (first, rest) = PREFACE.split_at(cut);
            case.clone().steps(&[Step::Send(first.to_vec()), Step::Pause(5), Step::Send(rest.to_vec())])
        });
        for seen in run(lab, steps.chain([case.clone(), case.clone().singly()]).collect()) {
            // SETTINGS of the server come first (RFC 9113 3.4), whatever it says then.
            assert_eq!(seen.heard.bytes.get(3), Some(&4), "{:?}", seen.faults());
            assert!(seen.arrivals.is_empty(), "{:?}", seen.faults());
        }
    }

    fn nothing_leaves_before_a_head_is_whole(lab) {
        let parts = ["GET /public/a HTTP/1.1\r\nHost: <host>\r\nX: ", "\r\n\r\n"];
        let open = |name: &str, text: &str| {
            let case = Case::new(name, text, Want::closed());
            case.ending(Ending::Open(400))
        };
        let seen = run(lab, vec![
            open("half a head", parts[0]),
            open("a head without its last byte", &format!("{}y\r\n\r", parts[0])),
            open("half a request line", "GET /public/a HTT"),
            open("a method", "GET "),
            open("nothing", ""),
        ]);
        for seen in seen {
            assert!(seen.arrivals.is_empty() && seen.heard.bytes.is_empty(), "{:?}", seen.faults());
            assert_eq!(seen.allowed, []);
        }
    }
}
