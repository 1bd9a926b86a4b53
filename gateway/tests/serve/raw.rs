//! Connections without a protocol to look into, and those of none at all.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

use outgate_handoff::{CallQuestion, Decision, FlowFrame, ToGateway};
use outgate_policy::SourceKind;

use crate::harness::{Origin, process, rest, start};

#[test]
fn a_raw_rule_answers_with_the_pinned_address_or_relays() {
    let origin = Origin::start(|mut stream, record| {
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).unwrap();
        record(bytes.to_vec());
        stream.write_all(b"pong").unwrap();
    });
    let mut launcher = start(&[
        (SourceKind::Allow, "tcp://db.test:5432"),
        (SourceKind::Pin, &origin.pin("db.test", 5432)),
    ]);
    let address = launcher.address("db.test", 5432);
    assert_eq!(
        launcher.decide(address),
        Decision::Direct(vec![origin.address])
    );
    let other = launcher.address("db.test", 5433);
    assert_eq!(launcher.decide(other), Decision::Deny);
    let mut client = launcher.flow(address);
    client.write_all(b"ping").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut client), b"pong");
    let pins: Vec<_> = launcher
        .records()
        .into_iter()
        .filter_map(|record| Some(record["pin"].as_str()?.to_owned()))
        .collect();
    assert_eq!(pins, [origin.address.to_string()]);
}

#[test]
fn what_is_neither_http_nor_tls_is_closed_without_a_byte_to_anybody() {
    let origin = Origin::http("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut launcher = start(&[
        (SourceKind::Allow, "http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let address = launcher.address("a.test", 80);
    for bytes in [
        &b"SSH-2.0-x\r\n"[..],
        b"\x00\x01\x02\x03",
        b"GET /\r\n",
        b"\x16\x02\x00",
    ] {
        let mut client = launcher.flow(address);
        client.write_all(bytes).unwrap();
        assert_eq!(rest(&mut client), b"", "{bytes:?}");
    }
    launcher.finish();
    assert!(origin.requests().is_empty());
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
}

#[test]
fn a_request_in_single_bytes_is_a_request() {
    let origin = Origin::http("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let launcher = start(&[
        (SourceKind::Allow, "http://a.test"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let mut client = launcher.connect("a.test", 80);
    for byte in b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" {
        client.write_all(&[*byte]).unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    assert!(rest(&mut client).starts_with(b"HTTP/1.1 200"));
}

#[test]
fn unix_sockets_are_reached_by_inode_and_pass_bytes_only() {
    let path = std::env::temp_dir().join(format!("outgate-unix-{}.sock", std::process::id()));
    std::fs::remove_file(&path).ok();
    let listener = UnixListener::bind(&path).unwrap();
    let rule = format!("unix://{}", path.display());
    let mut launcher = start(&[(SourceKind::Allow, &rule)]);
    let question = CallQuestion::Unix {
        path: path.to_str().unwrap().into(),
    };
    assert_eq!(launcher.ask(question.clone()).decision, Decision::Redirect);
    let inode = nix::fcntl::open(
        &path,
        nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_CLOEXEC,
        nix::sys::stat::Mode::empty(),
    )
    .unwrap();
    // Whatever the path names by now, the judged inode is meant.
    std::fs::remove_file(&path).unwrap();
    let (mut client, accepted) = UnixStream::pair().unwrap();
    let flow = ToGateway::Flow(FlowFrame {
        question,
        process: process(),
    });
    launcher.send(&flow, &[accepted.as_raw_fd(), inode.as_raw_fd()]);
    drop(accepted);
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"hello").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"hello");
    server.write_all(b"back").unwrap();
    drop(server);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"back");
}
