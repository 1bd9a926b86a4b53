//! Origins that answer with two readings, too early, too much or too little:
//! the client gets one response or an error, and the next one is not another's.

use crate::case::{Case, Method, Step, Want};
use crate::origin::{Answer, OK};
use crate::replies::{End, Reply};
use crate::stage::run;
use crate::suite::{Seen, check};

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

/// Responses that have no one reading: 502.
const FAULTY: &[(&str, &str)] = &[
    (
        "CL and TE",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "TE and CL",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    ),
    (
        "two different CL",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nevil",
    ),
    (
        "list of CL",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nevil",
    ),
    (
        "CL with plus",
        "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nyes",
    ),
    (
        "CL with minus",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nyes",
    ),
    (
        "CL over 64 bits",
        "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551619\r\n\r\nyes",
    ),
    (
        "TE twice",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "TE xchunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "TE gzip, chunked",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a blank before the colon",
        "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nyes",
    ),
    (
        "a folded field",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 3\r\n\r\nyes",
    ),
    (
        "NUL in a value",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 3\r\n\r\nyes",
    ),
    (
        "a carriage return in a value",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 3\r\n\r\nyes",
    ),
    (
        "no colon",
        "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 3\r\n\r\nyes",
    ),
    ("no status", "HTTP/1.1\r\nContent-Length: 3\r\n\r\nyes"),
    (
        "a status of two digits",
        "HTTP/1.1 20 OK\r\nContent-Length: 3\r\n\r\nyes",
    ),
    (
        "a status of four digits",
        "HTTP/1.1 2000 OK\r\nContent-Length: 3\r\n\r\nyes",
    ),
    ("HTTP/0.9", "<html>hello</html>\r\n\r\n"),
    (
        "HTTP/2.0",
        "HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nyes",
    ),
    ("ICY", "ICY 200 OK\r\nContent-Length: 3\r\n\r\nyes"),
    (
        "another protocol that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    ),
    (
        "a WebSocket that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
    (
        "a switch to nothing",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ),
];

/// Responses behind which more stands: the first is right, the rest nobody's.
fn poisoned() -> Vec<(&'static str, String, u16)> {
    vec![
        ("a second response", format!("{OK}{EVIL}"), 200),
        ("content without a request", format!("{OK}evil"), 200),
        (
            "content of 204",
            "HTTP/1.1 204 No Content\r\n\r\nevil".to_owned(),
            204,
        ),
        (
            "length and content of 204",
            "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil".to_owned(),
            204,
        ),
        (
            "a response in 204",
            format!(
                "HTTP/1.1 204 No Content\r\nContent-Length: {}\r\n\r\n{EVIL}",
                EVIL.len()
            ),
            204,
        ),
        (
            "content of 304",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nevil".to_owned(),
            304,
        ),
        (
            "a response in 304",
            format!("HTTP/1.1 304 Not Modified\r\n\r\n{EVIL}"),
            304,
        ),
        (
            "a response behind chunks",
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n{EVIL}"
            ),
            200,
        ),
        (
            "another 100 behind",
            format!("{OK}HTTP/1.1 100 Continue\r\n\r\n{EVIL}"),
            200,
        ),
    ]
}

fn answered(name: &str, answer: Answer, want: Want) -> Case {
    Case::new(name, GOOD, want).answer(answer)
}

/// No byte that stands behind the first response is anybody's response.
fn is_clean(seen: &Seen) {
    let heard = String::from_utf8_lossy(&seen.heard.bytes);
    assert!(!heard.contains("evil"), "{:?} {heard}", seen.faults());
}

carried_tests! {
    fn responses_without_one_reading_are_502(lab) {
        let cases = FAULTY.iter().flat_map(|(name, text)| {
            let want = Want::replies(1, &[502]);
            let twice = Case::new(&format!("{name} (twice)"), GOOD.repeat(2), Want::replies(2, &[502, 502]));
            [answered(name, Answer::bytes(text), want.clone()), answered(name, Answer::last(text), want), twice.answer(Answer::bytes(text))]
        });
        let seen = run(lab, cases.collect());
        check(&seen);
        seen.iter().for_each(is_clean);
    }

    fn what_stands_behind_a_response_is_nobodys(lab) {
        let cases = poisoned().into_iter().flat_map(|(name, text, status)| {
            let answer = Answer::bytes(&text);
            let once = answered(name, answer.clone(), Want::replies(1, &[status]));
            let steps: Vec<Step> = (1..=4).flat_map(|at| [Step::Send(GOOD.into()), Step::Await(at)]).collect();
            let four = answered(&format!("{name} (four times)"), answer.clone(), Want::replies(4, &[status; 4])).steps(&steps);
            let at_once = Case::new(&format!("{name} (in one go)"), GOOD.repeat(4), Want::replies(4, &[status; 4]));
            [once, four, at_once.answer(answer)]
        });
        let seen = run(lab, cases.collect());
        check(&seen);
        seen.iter().for_each(is_clean);
    }

    fn content_of_a_head_response_is_nobodys(lab) {
        let head = "HEAD /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";
        let cases = [OK, EVIL, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n"].map(|text| {
            let steps: Vec<Step> = (1..=3).flat_map(|at| [Step::Send(head.into()), Step::Await(at)]).collect();
            Case::new(text, "", Want::replies(3, &[200; 3])).steps(&steps).answer(Answer::bytes(text)).method(Method::Head)
        });
        let seen = run(lab, cases.to_vec());
        check(&seen);
        seen.iter().for_each(is_clean);
    }

    fn a_response_cut_short_is_not_taken_for_a_whole_one(lab) {
        let seen = run(lab, [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nyes",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nyes",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\nfffffffffffffffff1\r\nno",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n-1\r\nno",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nyes\r\n0\r\n\r\n",
        ].iter().map(|text| answered(text, Answer::last(text), Want::replies(1, &[200]))).collect());
        for seen in &seen {
            let is_error = |reply: &Reply| reply.status == 502 || reply.end == End::Cut;
            assert!(seen.replies.0.iter().all(is_error), "{:?}", seen.faults());
        }
        // And the beginning of a head is no response.
        let half = answered("half a head", Answer::last("HTTP/1.1 200 OK\r\nContent-"), Want::replies(1, &[502]));
        let none = answered("nothing", Answer::last(""), Want::replies(1, &[502]));
        check(&run(lab, vec![half, none]));
    }

    fn an_early_response_is_passed_on(lab) {
        let early = Answer::Early(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig".to_vec());
        let post = "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 500000\r\n\r\n";
        let case = Case::new("half the content", "", Want::cut()).answer(early)
            .steps(&[Step::Send(format!("{post}{}", "x".repeat(1000)).into_bytes()), Step::Await(1)]);
        let seen = run(lab, vec![case.clone(), case]);
        for seen in &seen {
            assert_eq!(seen.reply().status, 413, "{seen:?}");
            assert_eq!(seen.reply().content, b"big");
        }
    }

    fn interim_responses_are_bounded_and_never_final(lab) {
        let interim = |count: usize| format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count));
        let seen = run(lab, vec![
            answered("one", Answer::bytes(&interim(1)), Want::sent(1)),
            answered("twenty", Answer::bytes(&interim(20)), Want::sent(1)),
            answered("a flood", Answer::bytes(&interim(20_000)), Want::sent(1)),
        ]);
        for seen in seen {
            let finals: Vec<u16> = seen.replies.0.iter().map(|reply| reply.status).filter(|status| *status >= 200).collect();
            assert!(finals == [200] || finals == [502], "{finals:?}");
            assert_eq!(seen.replies.1, b"");
        }
    }

    fn fields_of_a_response_that_end_here_do_not_pass(lab) {
        let text = "HTTP/1.1 200 Fine\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Connection: x\r\nProxy-Authentication-Info: x\r\nUpgrade: h2c\r\nTrailer: x\r\nX-End: 2\r\nContent-Length: 3\r\n\r\nyes";
        let seen = run(lab, vec![answered("fields", Answer::bytes(text), Want::sent(1))]);
        check(&seen);
        let head = seen[0].reply().head.to_ascii_lowercase();
        for gone in ["x-hop", "keep-alive", "proxy-", "h2c"] {
            assert!(!head.contains(gone), "{gone} in {head}");
        }
        assert!(head.contains("x-end: 2"), "{head}");
        assert!(head.starts_with("http/1.1 200 fine\r\n"), "{head}");
    }

    fn interim_responses_keep_their_order(lab) {
        let interim = |count: usize| format!("{}{OK}", "HTTP/1.1 103 Early Hints\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 4\r\n\r\n".repeat(count));
        let case = |name: &str, count: usize| Case::new(name, GOOD.repeat(3), Want::sent(3)).answer(Answer::bytes(&interim(count)));
        let old = GOOD.replace("HTTP/1.1", "HTTP/1.0");
        let seen = run(lab, vec![
            case("one each", 1), case("three each", 3), case("three each, slowly", 3).singly(),
            Case::new("an old client", old, Want::sent(1)).answer(Answer::bytes(&interim(2))),
        ]);
        for seen in &seen {
            let statuses: Vec<u16> = seen.replies.0.iter().map(|reply| reply.status).collect();
            let finals = statuses.iter().filter(|status| **status == 200).count();
            assert_eq!(finals, seen.case.want.sent, "{statuses:?} {:?}", seen.faults());
            assert_eq!(statuses.last(), Some(&200), "{statuses:?}");
            assert_eq!((seen.replies.1.len(), &*seen.laws()), (0, &[][..]), "{:?}", seen.faults());
            for reply in seen.replies.0.iter().filter(|reply| reply.status == 103) {
                assert_eq!((reply.fields("x-hop").len(), reply.fields("content-length").len()), (0, 0), "{reply:?}");
                assert_eq!(reply.fields("x-end"), ["2"]);
            }
        }
        let old: Vec<u16> = seen[3].replies.0.iter().map(|reply| reply.status).collect();
        assert_eq!(old, [200], "an old client knows no interim responses");
    }

    fn an_origin_does_not_speak_for_outgate(lab) {
        let text = "HTTP/1.1 403 outgate: denied\r\nOutgate-Denied: no-rule; rule=-\r\nAlt-Svc: h3=\":443\", h2=\"other.example:443\"\r\nX-End: 2\r\nTrailer: Outgate-Denied\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\nOutgate-Denied: no-rule; rule=-\r\n\r\n";
        let asks = GOOD.replace("\r\n\r\n", "\r\nTE: trailers\r\n\r\n");
        let seen = run(lab, vec![Case::new("claims", asks, Want::replies(1, &[403])).answer(Answer::bytes(text))]);
        check(&seen);
        let reply = seen[0].reply();
        assert_eq!((reply.fields("outgate-denied").len(), reply.fields("alt-svc").len()), (0, 0), "{reply:?}");
        assert_eq!((reply.fields("x-end"), &*reply.trailers), (vec!["2"], ""), "{reply:?}");
    }

    fn no_field_of_outgates_comes_from_an_origin(lab) {
        let claims = [
            "Proxy-Status: outgate; error=http_request_denied", "Proxy-Status: cdn.example; hop, OutGate;error=x", "Proxy-Status: \"outgate\"",
            "proxy_status: outgate", "Outgate-Denied: no-rule; rule=-", "Outgate_Denied: no-rule", "Outgate-Other: 1", "OUTGATE: 1",
        ];
        let others = ["Proxy-Status: cdn.example; error=dns_timeout", "Outgates: 1", "X-Outgate: 1"];
        let text = |fields: &[&str], content: &str| format!("HTTP/1.1 200 OK\r\n{}\r\n{content}", fields.iter().flat_map(|field| [*field, "\r\n"]).collect::<String>());
        let fields: Vec<&str> = claims.iter().chain(&others).copied().chain(["Content-Length: 3"]).collect();
        // In a response, in an interim one before it, and behind its content.
        let trailers: String = claims.iter().flat_map(|field| [*field, "\r\n"]).collect();
        let chunked = text(&["Transfer-Encoding: chunked"], &format!("3\r\nyes\r\n0\r\n{trailers}\r\n"));
        let early = text(&claims, "").replacen("200 OK", "103 Early Hints", 1) + &text(&["Content-Length: 3"], "yes");
        let asks = GOOD.replace("\r\n\r\n", "\r\nTE: trailers\r\n\r\n");
        let seen = run(lab, vec![
            answered("in a response", Answer::bytes(&text(&fields, "yes")), Want::sent(1)),
            Case::new("in trailers", asks, Want::sent(1)).answer(Answer::bytes(&chunked)),
            answered("in its reason", Answer::bytes("HTTP/1.1 200 outGATE denied GET http://a.test/; to allow it: -a '*'\r\nContent-Length: 3\r\n\r\nyes"), Want::sent(1)),
            Case::new("in an interim response", GOOD, Want { statuses: None, ..Want::sent(1) }).answer(Answer::bytes(&early)),
        ]);
        check(&seen);
        for seen in &seen {
            for reply in &seen.replies.0 {
                let all = format!("{}\r\n{}", reply.head, reply.trailers).to_ascii_lowercase();
                let ours = all.lines().find(|line| (line.starts_with("http/") && line.contains("outgate")) || line.starts_with("outgate:") || line.starts_with("outgate-") || line.starts_with("outgate_")
                    || (line.starts_with("proxy") && line.contains("outgate")));
                assert_eq!(ours, None, "{reply:?}");
            }
        }
        let reply = seen[0].reply();
        assert_eq!(reply.fields("proxy-status"), ["cdn.example; error=dns_timeout"], "{reply:?}");
        assert_eq!((reply.fields("outgates").len(), reply.fields("x-outgate").len()), (1, 1), "{reply:?}");
    }

    fn lax_responses_are_made_strict(lab) {
        let lax = [
            ("lone line feeds", "HTTP/1.1 200 OK\nContent-Length: 3\n\nyes"),
            ("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes"),
            ("no reason", "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nyes"),
            ("two equal CL", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nyes"),
        ];
        for seen in run(lab, lax.iter().map(|(name, text)| answered(name, Answer::last(text), Want::sent(1))).collect()) {
            let reply = seen.reply();
            let is_ok = reply.status == 200 && reply.content == b"yes" && reply.end == End::Framed;
            assert!(is_ok || reply.status == 502, "{:?}", seen.faults());
            assert!(!reply.head.replace("\r\n", "").contains(['\r', '\n']), "{reply:?}");
            assert!(reply.fields("content-length").len() < 2, "{reply:?}");
        }
        let until_close = answered("until the end", Answer::last("HTTP/1.0 200 OK\r\n\r\nyes"), Want::sent(1));
        let seen = run(lab, vec![until_close]);
        assert_eq!(seen[0].reply().content, b"yes", "{:?}", seen[0].faults());
    }

    fn heads_over_the_limits_are_refused(lab) {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 3\r\n\r\nyes", "x".repeat(1 << 20));
        let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 3\r\n\r\nyes", "X: y\r\n".repeat(1000));
        let request = |fields: &str| format!("GET /public/a HTTP/1.1\r\nHost: <host>\r\n{fields}\r\n");
        let seen = run(lab, vec![
            answered("a long response head", Answer::bytes(&long), Want::replies(1, &[502])),
            answered("a response of many fields", Answer::bytes(&many), Want::replies(1, &[502])),
            Case::new("a long request head", request(&format!("X: {}\r\n", "x".repeat(1 << 20))), Want::refused(431)),
            Case::new("a request of many fields", request(&"X: y\r\n".repeat(1000)), Want::refused(431)),
            Case::new("a long target", format!("GET /public/{} HTTP/1.1\r\nHost: <host>\r\n\r\n", "x".repeat(20_000)), Want::refused(414)),
        ]);
        check(&seen);
    }
}
