//! Content whose end is in doubt, and what stands behind it: an origin gets a
//! whole request or never one.

use crate::case::{Case, Step, Want};
use crate::stage::run;
use crate::suite::{check, hold};

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
const CHUNKED: &str =
    "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Chunks that end the connection before the request is whole.
const BROKEN: &[(&str, &str)] = &[
    (
        "a size over 64 bits",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "a size that wraps",
        "fffffffffffffffff5\r\nhello\r\n0\r\n\r\n",
    ),
    ("a negative size", "-5\r\nhello\r\n0\r\n\r\n"),
    ("a size with plus", "+5\r\nhello\r\n0\r\n\r\n"),
    ("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
    ("no size", "\r\nhello\r\n0\r\n\r\n"),
    ("a blank before the size", " 5\r\nhello\r\n0\r\n\r\n"),
    ("no digit at all", "hello\r\nhello\r\n0\r\n\r\n"),
    ("a size with an underscore", "0_5\r\nhello\r\n0\r\n\r\n"),
    ("a size in quotes", "\"5\"\r\nhello\r\n0\r\n\r\n"),
    ("NUL behind the size", "5\0\r\nhello\r\n0\r\n\r\n"),
    ("a lone line feed behind the size", "5\nhello\r\n0\r\n\r\n"),
    (
        "a lone carriage return behind the size",
        "5\rhello\r\n0\r\n\r\n",
    ),
    (
        "a lone line feed in an extension",
        "5;a\nhello\r\n0\r\n\r\n",
    ),
    (
        "a line feed hidden in an extension",
        "5;\nxx\r\nhello\r\n0\r\n\r\n",
    ),
    ("a lone line feed behind the data", "5\r\nhello\n0\r\n\r\n"),
    ("nothing behind the data", "5\r\nhello0\r\n\r\n"),
    ("more data than the size", "3\r\nhello\r\n0\r\n\r\n"),
    (
        "a lone line feed behind the last size",
        "5\r\nhello\r\n0\n\r\n",
    ),
    ("no last chunk", "5\r\nhello\r\n"),
    ("less data than the size", "50\r\nhello\r\n0\r\n\r\n"),
    ("half a last chunk", "5\r\nhello\r\n0\r\n"),
    ("a lone line feed at the end", "5\r\nhello\r\n0\r\n\n"),
    ("a trailer without a colon", "5\r\nhello\r\n0\r\nX\r\n\r\n"),
    (
        "a trailer with a blank before the colon",
        "5\r\nhello\r\n0\r\nX : y\r\n\r\n",
    ),
    ("a folded trailer", "5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n"),
    ("a trailer with NUL", "5\r\nhello\r\n0\r\nX: a\0b\r\n\r\n"),
    (
        "a request as trailer",
        "5\r\nhello\r\n0\r\nGET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n",
    ),
];

/// Chunks that are whole, whatever stands between: sent on without it.
const WHOLE: &[(&str, &str)] = &[
    ("plain", "5\r\nhello\r\n0\r\n\r\n"),
    ("two", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    ("zeros before the size", "0005\r\nhello\r\n000\r\n\r\n"),
    ("an extension", "5;name=value\r\nhello\r\n0;x\r\n\r\n"),
    (
        "an extension in quotes",
        "5;name=\"a;b\"\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "a request in an extension",
        "5;GET /secret HTTP/1.1\r\nhello\r\n0\r\n\r\n",
    ),
    ("a blank behind the size", "5 \r\nhello\r\n0\r\n\r\n"),
    (
        "trailers that frame",
        "5\r\nhello\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: identity\r\n\r\n",
    ),
    (
        "trailers that route",
        "5\r\nhello\r\n0\r\nHost: other.example\r\nAuthorization: Basic eA==\r\n\r\n",
    ),
    (
        "trailers that override",
        "5\r\nhello\r\n0\r\nX-HTTP-Method-Override: DELETE\r\nX-Original-URL: /secret\r\n\r\n",
    ),
];

/// Lengths that are not what comes.
fn lengths() -> Vec<Case> {
    let post = |length: usize, content: &str| {
        format!(
            "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: {length}\r\n\r\n{content}"
        )
    };
    let smuggled = "GET /secret HTTP/1.1\r\nHost: <host>\r\n\r\n";
    let inside = smuggled.replace("<host>", "other.example");
    vec![
        Case::new(
            "less content than the length",
            post(50, "hello"),
            Want::cut(),
        ),
        Case::new("no content", post(5, ""), Want::cut()),
        Case::new(
            "a request behind the length",
            post(5, &format!("hello{smuggled}")),
            Want::replies(1, &[200, 403]),
        ),
        Case::new(
            "a good one behind the length",
            post(5, &format!("hello{GOOD}")),
            Want::sent(2),
        ),
        Case::new(
            "garbage behind the length",
            post(5, "helloHELLO\r\n\r\n"),
            Want::replies(1, &[200, 400]),
        ),
        Case::new(
            "a line end behind the length",
            post(5, &format!("hello\r\n{GOOD}")),
            Want::sent(2),
        ),
        Case::new(
            "a request inside the length",
            post(inside.len(), &inside),
            Want::sent(1),
        ),
        Case::new(
            "CL.0: a GET with a request as content",
            format!(
                "GET /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: {}\r\n\r\n{inside}",
                inside.len()
            ),
            Want::sent(1),
        ),
        Case::new(
            "a GET without length, and a request behind",
            format!("{GOOD}{smuggled}"),
            Want::replies(1, &[200, 403]),
        ),
        Case::new(
            "an end in the middle of a head",
            "GET /public/a HTTP/1.1\r\nHost: <host>\r\n",
            Want::closed(),
        ),
    ]
}

carried_tests! {
    fn broken_chunks_are_no_request(lab) {
        let broken = |(name, text): &(&str, &str)| Case::new(name, format!("{CHUNKED}{text}"), Want::cut());
        let behind = |(name, text): &(&str, &str)| Case::new(
            &format!("{name} (and a good one behind)"),
            format!("{CHUNKED}{text}{GOOD}"),
            Want::cut(),
        );
        // What lacks its end takes what is behind for it, rightly.
        let lacks = |name: &str| name.starts_with("less data") || name.starts_with("half") || name.starts_with("no last");
        let seen = hold(lab, BROKEN.iter().map(broken)
            .chain(BROKEN.iter().filter(|(name, _)| !lacks(name)).map(behind)).collect());
        for seen in seen {
            assert!(seen.replies.0.iter().all(|reply| reply.status >= 400), "{:?}", seen.faults());
            // It is the client's fault, and no origin's.
            assert!(seen.replies.0.iter().all(|reply| reply.status == 400), "{}: {:?}", seen.case.name, seen.replies);
        }
    }

    fn whole_chunks_arrive_without_what_stood_between(lab) {
        let whole = |(name, text): &(&str, &str)| Case::new(name, format!("{CHUNKED}{text}{GOOD}"), Want::sent(2));
        for seen in hold(lab, WHOLE.iter().map(whole).collect()) {
            let arrived = seen.arrived().to_ascii_lowercase();
            for word in ["name", "secret", "other", "authorization", "override", "original", "identity"] {
                assert!(!arrived.contains(word), "{word} in {arrived}");
            }
        }
    }

    fn what_stands_behind_content_asks_for_nothing(lab) {
        // WEBrick takes it for fields of the head.
        let names = [
            "X-Method", "X-HTTP-Method", "x_http_method", "Verb-Override", "X-HTTP-Method-Override", "X-Original-URI", "X-Rewrite-Url",
            "X_Forwarded_Host", "X-Forwarded-Proto", "Destination", "X-Copy-From", "X-Amz-Copy-Source", "Script-Name", "X-Matched-Path",
            "Content-Type", "Content_Type", "Host", "Authorization",
        ];
        let fields = names.map(|name| format!("{name}: asked\r\n")).concat();
        let head = format!("POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum, {}\r\n\r\n", names.join(", "));
        let text = format!("{head}5\r\nhello\r\n0\r\n{fields}X-Checksum: seven\r\n\r\n{GOOD}");
        for seen in hold(lab, vec![Case::new("fields behind content", text, Want::sent(2))]) {
            let arrived = seen.arrived().to_ascii_lowercase();
            assert!(arrived.contains("x-checksum: seven"), "others arrive: {arrived}");
            assert!(!arrived.contains("asked"), "{arrived}");
        }
    }

    fn a_long_line_does_not_hide_what_follows(lab) {
        // A parser may skip any number of blanks and zeros; who follows it must not tire first.
        let long = |size: &str| format!("{CHUNKED}{size}\r\nhello\r\n0\r\n\r\nGET /public/a HTTP/1.1\nHost: <host>\n\n");
        let blanks = long(&format!("5{}", " ".repeat(70_000)));
        let zeros = long(&format!("{}5", "0".repeat(70_000)));
        let cases = [("blanks", blanks), ("zeros", zeros)].map(|(name, text)| Case::new(name, text, Want::cut()));
        for seen in run(lab, cases.to_vec()) {
            assert_eq!(seen.laws(), [""; 0], "{:?}", seen.faults());
            assert!(seen.allowed.len() < 2, "{:?}", seen.faults());
        }
    }

    fn a_length_says_where_the_next_request_begins(lab) {
        hold(lab, lengths());
        let split = lengths().into_iter().map(|case| {
            let Some(Step::Send(bytes)) = case.steps.first().cloned() else { return case };
            let at = bytes.windows(4).position(|part| part == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
            let (head, content) = bytes.split_at(at);
            let steps = [Step::Send(head.to_vec()), Step::Pause(20), Step::Send(content.to_vec())];
            case.steps(&steps)
        });
        check(&run(lab, split.collect()));
    }
}
