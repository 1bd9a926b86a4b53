//! Content of any size, in bounded memory, as it comes.

use std::io::{Read, Write};

use outgate_policy::SourceKind;

use crate::harness::{Launcher, Origin, exchange, field, read_message, rest, start};

const PIECE: usize = 64 * 1024;
const PIECES: usize = 1024;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn session(origin: &Origin) -> Launcher {
    start(&[
        (SourceKind::Allow, "* http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ])
}

fn head(stream: &mut std::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut one).unwrap();
        bytes.push(one[0]);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_download_is_streamed_and_a_slow_reader_holds_it_back() {
    let origin = Origin::start(|mut stream, _| {
        read_message(&mut stream).unwrap();
        let length = PIECE * PIECES;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        for number in 0..PIECES {
            let piece = vec![u8::try_from(number % 251).unwrap(); PIECE];
            if stream.write_all(&piece).is_err() {
                return;
            }
        }
    });
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    let before = resident_kib();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .unwrap();
    let head = head(&mut client);
    assert_eq!(field(&head, "content-length"), Some("67108864"));
    // Nobody reads for a while: no more than buffers may fill.
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    let held = resident_kib().saturating_sub(before);
    let mut piece = vec![0; PIECE];
    for number in 0..PIECES {
        client.read_exact(&mut piece).unwrap();
        let expected = u8::try_from(number % 251).unwrap();
        assert!(piece.iter().all(|byte| *byte == expected), "{number}");
    }
    let grown = resident_kib().saturating_sub(before);
    // Other tests of this program run beside; a gathered body would be 64 MiB.
    assert!(
        held < 32 * 1024 && grown < 32 * 1024,
        "{held} KiB, {grown} KiB"
    );
}

#[test]
fn an_upload_in_chunks_arrives_whole() {
    let origin = Origin::start(|mut stream, record| {
        let mut bytes = Vec::new();
        let mut one = [0];
        while !bytes.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut one).unwrap();
            bytes.push(one[0]);
        }
        record(bytes);
        let mut total = 0;
        let mut buffer = vec![0; PIECE];
        let mut tail = Vec::new();
        loop {
            let count = stream.read(&mut buffer).unwrap();
            total += count;
            tail.extend_from_slice(&buffer[..count]);
            let cut = tail.len().saturating_sub(5);
            tail.drain(..cut);
            if tail == b"0\r\n\r\n" {
                break;
            }
        }
        record(total.to_string().into_bytes());
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
    });
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    client
        .write_all(b"PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    let piece = vec![7; PIECE];
    for _ in 0..PIECES {
        write!(client, "{PIECE:x}\r\n").unwrap();
        client.write_all(&piece).unwrap();
        client.write_all(b"\r\n").unwrap();
    }
    client.write_all(b"0\r\n\r\n").unwrap();
    assert!(head(&mut client).starts_with("HTTP/1.1 200"));
    let seen = origin.requests();
    assert_eq!(field(&seen[0], "transfer-encoding"), Some("chunked"));
    let total: usize = seen[1].parse().unwrap();
    assert!(total > PIECE * PIECES, "{total}");
}

#[test]
fn events_come_through_one_by_one() {
    let origin = Origin::start(|mut stream, _| {
        head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            .unwrap();
        let mut one = [0];
        for _ in 0..5 {
            stream.write_all(b"8\r\ndata: x\n\r\n").unwrap();
            // The next event is sent once the client says it has this one.
            if stream.read(&mut one).unwrap_or(0) == 0 {
                return;
            }
        }
    });
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    client
        .write_all(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n")
        .unwrap();
    // The response begins while the request is still being sent.
    assert!(head(&mut client).starts_with("HTTP/1.1 200"));
    let mut event = [0; 13];
    for _ in 0..4 {
        client.read_exact(&mut event).unwrap();
        assert_eq!(&event, b"8\r\ndata: x\n\r\n");
        client.write_all(b"y").unwrap();
    }
}

#[test]
fn a_connection_goes_on_after_it_was_quiet() {
    let origin = Origin::http("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    let quiet = || std::thread::park_timeout(std::time::Duration::from_millis(170));
    let get = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let (first, second) = get.split_at(20);
    for round in 0..4 {
        // Whole, in two parts with a rest between, and with content.
        assert!(exchange(&mut client, get).ends_with("ok"), "{round}");
        quiet();
        client.write_all(first.as_bytes()).unwrap();
        quiet();
        assert!(exchange(&mut client, second).ends_with("ok"), "{round}");
        let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nab";
        client.write_all(head.as_bytes()).unwrap();
        quiet();
        assert!(exchange(&mut client, "cd").ends_with("ok"), "{round}");
        quiet();
    }
    let seen = origin.requests();
    assert_eq!(seen.len(), 12);
    assert!(seen[2].ends_with("\r\n\r\nabcd"), "{}", seen[2]);
    // A connection that was to end does not come back to life.
    client
        .write_all(b"GET /\tx HTTP/1.1\r\nHost: b.test\r\n\r\n")
        .unwrap();
    let answer = String::from_utf8(rest(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(origin.requests().len(), 12);
}

#[test]
fn a_last_response_that_is_read_slowly_stays_the_last() {
    let origin = Origin::start(|mut stream, record| {
        while let Some(request) = read_message(&mut stream) {
            record(request);
            let length = 4 << 20;
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
            )
            .unwrap();
            stream.write_all(&vec![b'x'; length]).unwrap();
        }
    });
    let launcher = session(&origin);
    let mut client = launcher.connect("a.test", 80);
    let last = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    client.write_all(last.as_bytes()).unwrap();
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    client.write_all(last.as_bytes()).ok();
    let answer = rest(&mut client);
    assert!(answer.len() > 4 << 20 && answer.len() < 5 << 20);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn content_that_is_not_read_is_no_request_later() {
    let launcher = start(&[(SourceKind::Allow, "GET http://a.test")]);
    let mut client = launcher.connect("a.test", 80);
    let head = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 500\r\n\r\n";
    let answer = exchange(&mut client, head);
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    let inner = "DELETE /inner HTTP/1.1\r\nHost: a.test\r\n\r\n";
    client.write_all(inner.as_bytes()).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    rest(&mut client);
    for record in launcher.records() {
        assert_ne!(record["method"], "DELETE", "{record}");
    }
}
