//! The stub: every name an address of its own, and no question to anybody.

use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

use outgate_handoff::ToGateway;
use outgate_policy::SourceKind;

use crate::harness::{Launcher, framed, question, read_framed, start};

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const HTTPS: u16 = 65;

/// Asks over a connection: response code, answers, whole reply.
fn ask(launcher: &Launcher, name: &str, kind: u16) -> (u8, u16, Vec<u8>) {
    let mut stream = launcher.flow("192.0.2.53:53".parse().unwrap());
    stream.write_all(&framed(&question(name, kind))).unwrap();
    let reply = read_framed(&mut stream);
    assert_eq!(reply[..2], [0x12, 0x34]);
    (
        reply[3] & 15,
        u16::from_be_bytes([reply[6], reply[7]]),
        reply,
    )
}

#[test]
fn names_get_addresses_and_other_types_get_nothing() {
    let launcher = start(&[(SourceKind::Allow, "http://a.test")]);
    for (name, kind, code, answers) in [
        ("a.test", A, 0, 1),
        ("denied.test", A, 0, 1),
        ("A.TeSt", A, 0, 1),
        ("a.test", AAAA, 0, 0),
        ("a.test", HTTPS, 0, 0),
        ("secret.data.denied.test", TXT, 0, 0),
        ("localhost", A, 0, 1),
        ("localhost", AAAA, 0, 1),
        ("127.1", A, 3, 0),
        ("1.2.3.4", A, 3, 0),
        ("a..test", A, 0, 1),
        ("x.onion", A, 3, 0),
        ("1.0.0.10.in-addr.arpa", PTR, 3, 0),
        ("1.0.0.127.in-addr.arpa", PTR, 0, 1),
    ] {
        let (got, count, _) = ask(&launcher, name, kind);
        assert_eq!((got, count), (code, answers), "{name} {kind}");
    }
}

#[test]
fn the_address_leads_back_to_the_name() {
    let launcher = start(&[]);
    let address = launcher.address("a.test", 80);
    let IpAddr::V4(v4) = address.ip() else {
        panic!("{address}")
    };
    assert_eq!(v4.octets()[0], 198);
    let [a, b, c, d] = v4.octets();
    let (code, count, reply) = ask(&launcher, &format!("{d}.{c}.{b}.{a}.in-addr.arpa"), PTR);
    assert_eq!((code, count), (0, 1));
    assert!(
        reply.windows(8).any(|bytes| bytes == b"\x01a\x04test\x00"),
        "{reply:?}"
    );
}

#[test]
fn a_synthetic_address_nobody_asked_for_is_refused() {
    let mut launcher = start(&[(SourceKind::Allow, "*")]);
    let decision = launcher.decide("198.19.200.200:80".parse().unwrap());
    assert_eq!(decision, outgate_handoff::Decision::Deny);
}

#[test]
fn datagrams_are_answered_from_the_address_that_was_asked() {
    let launcher = start(&[]);
    // The command may ask any server of its resolv.conf; all lead here.
    for (bound, asked) in [("0.0.0.0:0", "127.0.0.53"), ("[::]:0", "::1")] {
        let stub = UdpSocket::bind(bound).unwrap();
        let port = stub.local_addr().unwrap().port();
        launcher.send(&ToGateway::Stub, &[stub.as_raw_fd()]);
        let server: IpAddr = asked.parse().unwrap();
        let any: IpAddr = if server.is_ipv4() { "127.0.0.1" } else { "::1" }
            .parse()
            .unwrap();
        let client = UdpSocket::bind((any, 0)).unwrap();
        client
            .set_read_timeout(Some(crate::harness::PATIENCE))
            .unwrap();
        for noise in [&b""[..], b"x", &[0xff; 40], &[0x12; 600]] {
            client.send_to(noise, (server, port)).unwrap();
        }
        let mut buffer = [0; 1500];
        client
            .send_to(&question("a.test", A), (server, port))
            .unwrap();
        let reply = loop {
            let (count, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(from, (server, port).into());
            if buffer[..2] == [0x12, 0x34] && count > 12 {
                break &buffer[..count];
            }
        };
        assert_eq!(reply[3] & 15, 0);
        assert_eq!(reply[7], 1);
    }
}

#[test]
fn malformed_questions_end_in_an_error_or_silence() {
    use std::io::Read;
    let launcher = start(&[]);
    let mut response = question("a.test", A);
    response[2] |= 0x80;
    let mut two = question("a.test", A);
    two[5] = 2;
    let mut looped = question("", A);
    looped.truncate(12);
    looped.extend([0xc0, 12, 0, 1, 0, 1]);
    for (bytes, code) in [
        (two, Some(1)),
        (looped, Some(1)),
        (response, None),
        (vec![1, 2, 3], None),
        (vec![0; 5000], None),
    ] {
        let mut stream = launcher.flow("192.0.2.53:53".parse().unwrap());
        stream.write_all(&framed(&bytes)).unwrap();
        if let Some(code) = code {
            assert_eq!(read_framed(&mut stream)[3] & 15, code, "{bytes:?}");
        } else {
            let mut one = [0];
            assert_eq!(stream.read(&mut one).unwrap_or(0), 0, "{bytes:?}");
        }
    }
}

#[test]
fn each_name_is_recorded_once() {
    let launcher = start(&[]);
    for _ in 0..3 {
        ask(&launcher, "a.test", A);
        ask(&launcher, "a.test", AAAA);
    }
    let names = launcher
        .records()
        .into_iter()
        .filter(|record| record["kind"] == "dns");
    assert_eq!(names.count(), 1);
}
