//! Connections that the kernel leads to the gateway: judged as those of any other front.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use outgate_policy::SourceKind;

use crate::harness::{PATIENCE, start_redirected};

/// What comes back for a request that was led to the gateway on its way to this address;
/// nothing where the connection is refused.
#[expect(clippy::disallowed_methods, reason = "the client of a test")]
fn asked(rule: &str, at: SocketAddr, listener: TcpListener) -> String {
    let mut launcher = start_redirected(&[(SourceKind::Allow, rule)], listener.into());
    let mut client = TcpStream::connect(at).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET /x HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).ok();
    launcher.finish();
    String::from_utf8(answer).unwrap()
}

#[test]
fn what_the_kernel_leads_here_is_judged_by_the_address_that_it_was_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    let answer = asked("http://127.0.0.1:9", at, listener);
    assert_eq!(answer, "", "no rule is about it");

    // To another address of the machine, and there by the same rule.
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 7).into(), port);
    let answer = asked(&format!("POST http://{at}"), at, listener);
    assert!(
        answer.contains(&format!("outgate denied GET http://{at}/x")),
        "{answer}"
    );
}
