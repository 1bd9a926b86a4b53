//! Clients that do not keep to the protocol, frame by frame.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use outgate_policy::SourceKind;

use super::peers::{Streamed, hello, session};
use crate::harness::{Origin, exchange, rest, start};

/// A frame (RFC 9113 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A field as it is (RFC 7541 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        bytes.push(u8::try_from(text.len()).unwrap());
        bytes.extend(text.bytes());
    }
    bytes
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Preface, settings, and these fields as the first stream.
fn opening(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    bytes.extend(frame(1, 5, 1, &block));
    bytes
}

/// The first frame of this kind: its payload.
fn next(stream: &mut TcpStream, kind: u8) -> Option<Vec<u8>> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).ok()?;
        if head[3] == kind {
            return Some(payload);
        }
    }
}

#[test]
fn pseudo_fields_that_are_missing_double_or_foreign_end_the_stream() {
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const GOODBYE: u8 = 7;
    let origin = Streamed::start(hello);
    let launcher = session(&origin);
    let (method, scheme) = ((":method", "GET"), (":scheme", "http"));
    let (authority, path) = ((":authority", "a.test"), (":path", "/"));
    for (fields, kind) in [
        (&[method, scheme, path][..], HEADERS),
        (&[method, scheme, path, ("host", "a.test")], HEADERS),
        (&[method, authority, path], RESET),
        (&[method, scheme, authority], RESET),
        (&[scheme, authority, path], RESET),
        (&[method, scheme, authority, path, authority], RESET),
        (&[method, scheme, authority, path, (":path", "/b")], RESET),
        (&[method, scheme, authority, path, (":x", "y")], GOODBYE),
        (&[method, scheme, authority, ("x", "y"), path], RESET),
        (
            &[method, scheme, authority, path, ("connection", "x")],
            RESET,
        ),
        (
            &[method, scheme, authority, path, ("transfer-encoding", "x")],
            RESET,
        ),
        (&[method, scheme, authority, path, ("te", "gzip")], RESET),
        (&[method, scheme, authority, path, ("Upper", "y")], GOODBYE),
        (
            &[method, (":protocol", "websocket"), scheme, authority, path],
            RESET,
        ),
    ] {
        let mut client = launcher.connect("a.test", 80);
        client.write_all(&opening(fields)).unwrap();
        let payload = next(&mut client, kind).unwrap_or_else(|| panic!("{fields:?}"));
        if kind == HEADERS {
            // `:status: 400` as the static table has it.
            assert_eq!(payload[0], 0x8c, "{fields:?}");
        }
    }
    assert_eq!(origin.requests(), Vec::<String>::new());
}

#[test]
fn floods_end_the_connection_and_nothing_else() {
    let origin = Streamed::start(|(_, mut respond)| {
        Box::pin(async move {
            std::future::poll_fn(|cx| respond.poll_reset(cx)).await.ok();
        })
    });
    let mut launcher = session(&origin);
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a.test"),
        (":path", "/"),
    ];
    let block: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    // Streams that are reset at once.
    let mut resets = opening(&fields);
    for stream in 1..2000_u32 {
        resets.extend(frame(1, 5, 2 * stream + 1, &block));
        resets.extend(frame(3, 0, 2 * stream + 1, &[0, 0, 0, 8]));
    }
    // A head without an end.
    let mut endless = PREFACE.to_vec();
    endless.extend(frame(4, 0, 0, &[]));
    endless.extend(frame(1, 1, 1, &block));
    for _ in 0..2000 {
        endless.extend(frame(9, 0, 1, &literal("x", &"y".repeat(100))));
    }
    // Frames longer than allowed, of no stream, and of no sense.
    let mut long = opening(&fields);
    long.extend(frame(0, 0, 1, &vec![0; 40_000]));
    let mut even = PREFACE.to_vec();
    even.extend(frame(4, 0, 0, &[]));
    even.extend(frame(1, 5, 2, &block));
    let garbage = [PREFACE, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"].concat();
    for bytes in [resets, endless, long, even, garbage] {
        let mut attacker = launcher.connect("a.test", 80);
        attacker.write_all(&bytes).ok();
        let goodbye = next(&mut attacker, 7);
        assert!(goodbye.is_some_and(|payload| payload[4..8] != [0; 4]));
        rest(&mut attacker);
    }
    let mut other = launcher.connect("denied.test", 80);
    let answer = exchange(&mut other, "GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    launcher.finish();
    let malformed = launcher
        .records()
        .iter()
        .filter(|record| record["reason"] == "malformed")
        .count();
    assert_eq!(malformed, 5);
}

#[test]
fn settings_and_pings_that_nobody_reads_the_answers_of_stop_being_read() {
    let origin = Streamed::start(hello);
    let launcher = session(&origin);
    for frame in [frame(4, 0, 0, &[]), frame(6, 0, 0, &[0; 8])] {
        let mut attacker = launcher.connect("a.test", 80);
        attacker.write_all(PREFACE).unwrap();
        attacker.write_all(&self::frame(4, 0, 0, &[])).unwrap();
        attacker
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let many = frame.repeat(10_000);
        let mut sent = 0_usize;
        while let Ok(count) = attacker.write(&many) {
            sent += count;
            assert!(sent < 512 << 20, "everything is taken");
        }
    }
}

/// A server of something else could find a request in the content of another.
#[test]
fn an_origin_that_shows_no_settings_gets_nothing_of_the_client() {
    let origin = Origin::start(|mut stream, record| {
        let mut buffer = [0; 4096];
        let patience = Some(Duration::from_millis(500));
        stream.set_read_timeout(patience).unwrap();
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            record(buffer[..count].to_vec());
        }
        stream.write_all(b"HTTP/1.1 400 no\r\n\r\n").unwrap();
    });
    let launcher = start(&[
        (SourceKind::Allow, "GET,POST http://a.test/p"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let mut stream = launcher.connect("a.test", 80);
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let mut head = vec![0x83, 0x86];
    head.extend(literal(":authority", "a.test"));
    head.extend(literal(":path", "/p"));
    bytes.extend(frame(1, 4, 1, &head));
    bytes.extend(frame(
        0,
        1,
        1,
        b"\r\nGET /secret HTTP/1.1\r\nHost: a.test\r\n\r\n",
    ));
    stream.write_all(&bytes).unwrap();
    // The answer: a bad gateway.
    assert!(next(&mut stream, 1).is_some());
    let seen = origin.requests().concat();
    assert!(seen.starts_with("PRI * HTTP/2.0"), "{seen:?}");
    assert!(!seen.contains("secret"), "{seen:?}");
}
