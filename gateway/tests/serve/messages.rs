//! What passes beside the plain request and response: interim responses,
//! trailers of responses, and what origins do that they should not.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use outgate_policy::SourceKind;

use crate::harness::{
    Launcher, Origin, PATIENCE, exchange, field, read_message, response, rest, start,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

fn session(origin: &Origin) -> Launcher {
    start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ])
}

/// An origin that says this at once, and its response when told to.
fn hinting(hints: &'static str) -> (Origin, std::sync::mpsc::Sender<()>) {
    let (go, wait) = channel();
    let wait: Mutex<Receiver<()>> = Mutex::new(wait);
    let origin = Origin::start(move |mut stream, record| {
        while let Some(request) = read_message(&mut stream) {
            record(request);
            stream.write_all(hints.as_bytes()).unwrap();
            wait.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    (origin, go)
}

#[test]
fn early_hints_arrive_early() {
    let (origin, go) = hinting(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\
         Connection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 5\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
    );
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    // Over a new and over a kept connection.
    for _ in 0..3 {
        let hints = exchange(&mut client, GET);
        assert_eq!(
            hints,
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\nvia: 1.1 outgate\r\n\r\n"
        );
        assert!(response(&mut client).starts_with("HTTP/1.1 102 Processing\r\n"));
        go.send(()).unwrap();
        let answer = response(&mut client);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(field(&answer, "via"), Some("1.1 outgate"));
    }
}

#[test]
fn clients_that_know_no_interim_responses_get_none() {
    let (origin, go) = hinting("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    go.send(()).unwrap();
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let answer = String::from_utf8(rest(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert_eq!(field(&origin.requests()[0], "via"), Some("1.0 outgate"));
}

#[test]
fn interim_responses_never_stand_inside_another_response() {
    const LENGTH: usize = 8 << 20;
    let origin = Origin::start(|mut stream, _| {
        while let Some(request) = read_message(&mut stream) {
            if request.starts_with(b"GET /large") {
                write!(
                    stream,
                    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"
                )
                .unwrap();
                stream.write_all(&vec![b'x'; LENGTH]).unwrap();
            } else {
                let hint = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40);
                stream.write_all(hint.as_bytes()).unwrap();
                stream.write_all(OK.as_bytes()).unwrap();
            }
        }
    });
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    let large = GET.replace("GET /", "GET /large");
    // All sent ahead, and nothing read while the buffers fill.
    for _ in 0..2 {
        client
            .write_all([large.as_str(), GET, GET].concat().as_bytes())
            .unwrap();
    }
    std::thread::park_timeout(std::time::Duration::from_millis(200));
    let mut finals = 0;
    let mut hints = 0;
    while finals < 6 {
        let mut head = Vec::new();
        let mut one = [0];
        while !head.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut one).unwrap();
            head.push(one[0]);
        }
        let head = String::from_utf8(head).expect("a head");
        if head.starts_with("HTTP/1.1 103 Early Hints\r\n") {
            hints += 1;
            continue;
        }
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        finals += 1;
        let length = field(&head, "content-length").unwrap().parse().unwrap();
        let mut content = vec![0; length];
        client.read_exact(&mut content).unwrap();
        if length == LENGTH {
            assert!(content.iter().all(|byte| *byte == b'x'));
        } else {
            assert_eq!(content, b"ok");
        }
    }
    // Each may be left out where it comes too late, and none beyond the bound.
    assert!(hints <= 2 + 4 * 16, "{hints}");
}

#[test]
fn trailers_of_a_response_pass_to_who_takes_them() {
    let origin = Origin::http(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum, set-cookie\r\n\r\n\
         2\r\nok\r\n0\r\nx-sum: 7\r\nset-cookie: y\r\ncontent-length: 9\r\n\r\n",
    );
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    let takes = "GET / HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
    let answer = exchange(&mut client, takes);
    assert!(
        answer.ends_with("\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{answer}"
    );
    assert_eq!(field(&origin.requests()[0], "te"), Some("trailers"));
    let plain = exchange(&mut client, GET);
    assert!(plain.ends_with("\r\n\r\n2\r\nok\r\n0\r\n\r\n"), "{plain}");
}

#[test]
fn an_origin_that_leaves_in_the_middle_is_not_taken_for_complete() {
    for (answer, begun) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
            true,
        ),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Le", false),
    ] {
        let origin = Origin::start(move |mut stream, _| {
            read_message(&mut stream).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let launcher = session(&origin);
        let mut client = launcher.connect("a.test", 80);
        client.write_all(GET.as_bytes()).unwrap();
        if begun {
            // The end of the connection says that something is missing.
            let got = String::from_utf8(rest(&mut client)).unwrap();
            assert!(got.contains("half"), "{got}");
            assert!(!got.ends_with("0\r\n\r\n"), "{got}");
        } else {
            let mut got = response(&mut client);
            if got.starts_with("HTTP/1.1 103") {
                got = response(&mut client);
            }
            assert!(got.starts_with("HTTP/1.1 502"), "{answer:?}: {got}");
        }
    }
}
