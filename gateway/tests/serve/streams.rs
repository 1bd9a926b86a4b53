//! Content of any size, in bounded memory, as it comes.

use std::io::{Read, Write};

use outgate_handoff::SourceKind;

use crate::harness::{Launcher, Origin, field, read_message, start};

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
