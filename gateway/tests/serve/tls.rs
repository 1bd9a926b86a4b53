//! TLS that stays closed: the name in its ClientHello must be the destination's.

use std::io::{Read, Write};
use std::net::Shutdown;

use outgate_policy::SourceKind;

use crate::harness::{Launcher, Origin, rest, start};

fn vector16(content: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(content);
    out
}

/// A ClientHello with these extensions, in records of at most `record` bytes.
pub(crate) fn hello(name: Option<&str>, more: &[u8], record: usize) -> Vec<u8> {
    let mut extensions = more.to_vec();
    if let Some(name) = name {
        let mut entry = vec![0];
        entry.extend(vector16(name.as_bytes()));
        extensions.extend([0, 0]);
        extensions.extend(vector16(&vector16(&entry)));
    }
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(vector16(&extensions));
    let mut message = vec![1];
    message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
    message.extend(body);
    let mut out = Vec::new();
    for piece in message.chunks(record) {
        out.extend([22, 3, 1]);
        out.extend(vector16(piece));
    }
    out
}

/// An origin that echoes until the end of what it gets, then says goodbye.
fn echo() -> Origin {
    Origin::start(|mut stream, record| {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    all.extend_from_slice(&buffer[..count]);
                    stream.write_all(&buffer[..count]).unwrap();
                }
            }
        }
        record(all);
        stream.write_all(b"bye").ok();
    })
}

fn open(rule: &str) -> (Origin, Launcher) {
    let origin = echo();
    let launcher = start(&[
        (SourceKind::Document, "[tls]\nintercept = \"never\"\n"),
        (SourceKind::Allow, rule),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    (origin, launcher)
}

#[test]
fn a_client_hello_for_the_destination_is_tunnelled_unchanged_in_any_pieces() {
    let (origin, launcher) = open("tls://a.test");
    let address = launcher.address("a.test", 443);
    let whole = hello(Some("a.test"), &[], 16384);
    let mut streams = Vec::new();
    for cut in 1..whole.len() {
        let mut client = launcher.flow(address);
        client.write_all(&whole[..cut]).unwrap();
        streams.push((cut, client));
    }
    for (cut, client) in &mut streams {
        client.write_all(&whole[*cut..]).unwrap();
        client.write_all(b"more").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
    }
    let expected = [&whole[..], b"more"].concat();
    for (cut, client) in &mut streams {
        let got = rest(client);
        assert_eq!(got, [&expected[..], b"bye"].concat(), "cut at {cut}");
    }
    let seen = origin.seen.lock().unwrap();
    assert_eq!(seen.len(), whole.len() - 1);
    assert!(seen.iter().all(|bytes| *bytes == expected));
}

#[test]
fn other_names_no_name_and_hidden_names_get_an_alert_and_reach_nobody() {
    let (origin, launcher) = open("https://a.test");
    let address = launcher.address("a.test", 443);
    let ech = [0xfe, 0x0d, 0, 1, 0];
    for (hello, alert) in [
        (hello(Some("b.test"), &[], 16384), 112),
        (hello(Some("a.test.b.test"), &[], 3), 112),
        (hello(Some("a.test."), &[], 16384), 112),
        (hello(Some("127.0.0.1"), &[], 16384), 112),
        (hello(None, &[], 16384), 112),
        (hello(Some("a.test"), &ech, 16384), 49),
    ] {
        let mut client = launcher.flow(address);
        client.write_all(&hello).unwrap();
        assert_eq!(rest(&mut client), [21, 3, 3, 0, 2, 2, alert]);
    }
    // The neighbour passes.
    let mut client = launcher.flow(address);
    client.write_all(&hello(Some("A.test"), &[], 5)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(rest(&mut client).ends_with(b"bye"));
    assert_eq!(origin.seen.lock().unwrap().len(), 1);
}

#[test]
fn a_denied_name_gets_access_denied_and_a_line() {
    let (_, mut launcher) = open("https://a.test");
    let mut client = launcher.connect("b.test", 443);
    client
        .write_all(&hello(Some("b.test"), &[], 16384))
        .unwrap();
    assert_eq!(rest(&mut client), [21, 3, 3, 0, 2, 2, 49]);
    launcher.finish();
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
    assert!(
        launcher.notices[0].contains("b.test"),
        "{:?}",
        launcher.notices
    );
}

#[test]
fn rules_that_need_a_look_inside_do_not_open_a_tunnel() {
    let (origin, mut launcher) = open("GET https://a.test/x");
    let mut client = launcher.connect("a.test", 443);
    client
        .write_all(&hello(Some("a.test"), &[], 16384))
        .unwrap();
    assert_eq!(rest(&mut client), [21, 3, 3, 0, 2, 2, 49]);
    launcher.finish();
    assert!(origin.seen.lock().unwrap().is_empty());
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
}

#[test]
fn a_bare_address_needs_no_name_and_takes_none() {
    let origin = echo();
    let address = origin.address;
    let rule = format!("https://{address}");
    let launcher = start(&[
        (SourceKind::Allow, &rule),
        (SourceKind::Document, "inspect = { mode = \"off\" }"),
    ]);
    let mut client = launcher.flow(address);
    client
        .write_all(&hello(Some("a.test"), &[], 16384))
        .unwrap();
    assert_eq!(rest(&mut client), [21, 3, 3, 0, 2, 2, 112]);
    let mut client = launcher.flow(address);
    client.write_all(&hello(None, &[], 16384)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(rest(&mut client).ends_with(b"bye"));
}

#[test]
fn each_direction_ends_by_itself() {
    // The origin ends first; what the client sends afterwards still arrives.
    let origin = Origin::start(|mut stream, record| {
        stream.write_all(b"first").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        record(all);
    });
    let mut launcher = start(&[
        (SourceKind::Allow, "tls://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let mut client = launcher.connect("a.test", 443);
    let hello = hello(Some("a.test"), &[], 16384);
    client.write_all(&hello).unwrap();
    assert_eq!(rest(&mut client), b"first");
    client.write_all(b"last").unwrap();
    drop(client);
    // The end of the session waits for what is on its way.
    launcher.finish();
    for _ in 0..200 {
        if !origin.seen.lock().unwrap().is_empty() {
            break;
        }
        std::thread::yield_now();
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    assert_eq!(
        origin.seen.lock().unwrap()[0],
        [&hello[..], b"last"].concat()
    );
    let flow = launcher
        .records()
        .into_iter()
        .rfind(|record| record["kind"] == "flow")
        .unwrap();
    assert_eq!(flow["bytes_up"], hello.len() + 4);
    assert_eq!(flow["bytes_down"], 5);
}

#[test]
fn much_is_carried_whole_and_held_back_by_a_slow_reader() {
    const BYTES: usize = 24 << 20;
    let origin = Origin::start(|mut stream, record| {
        // What comes in goes back, changed, while it is still coming.
        let mut buffer = vec![0; 100_000];
        let mut total: usize = 0;
        loop {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    total += count;
                    for byte in &mut buffer[..count] {
                        *byte = byte.wrapping_add(1);
                    }
                    stream.write_all(&buffer[..count]).unwrap();
                }
            }
        }
        record(total.to_string().into_bytes());
    });
    let launcher = start(&[
        (SourceKind::Allow, "tls://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 443)),
    ]);
    let hello = hello(Some("a.test"), &[], 16384);
    let mut client = launcher.connect("a.test", 443);
    let mut sender = client.try_clone().unwrap();
    let first = hello.clone();
    let writer = std::thread::spawn(move || {
        sender.write_all(&first).unwrap();
        let piece: Vec<u8> = (0..65_521_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut left = BYTES;
        while left > 0 {
            let count = left.min(piece.len());
            sender.write_all(&piece[..count]).unwrap();
            left -= count;
        }
        sender.shutdown(Shutdown::Write).unwrap();
    });
    // Nobody reads for a while.
    std::thread::park_timeout(std::time::Duration::from_millis(200));
    let got = rest(&mut client);
    writer.join().unwrap();
    assert_eq!(got.len(), BYTES + hello.len());
    let (head, body) = got.split_at(hello.len());
    assert!(
        head.iter()
            .zip(&hello)
            .all(|(a, b)| *a == b.wrapping_add(1))
    );
    let expected = |at: usize| (at % 65_521).to_le_bytes()[0].wrapping_add(1);
    assert!(
        body.iter()
            .enumerate()
            .all(|(at, byte)| *byte == expected(at))
    );
}
