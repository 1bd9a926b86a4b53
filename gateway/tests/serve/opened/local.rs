//! Servers of this machine over TLS, as clients call them: verified by that
//! name, greeted and asked by it, and never by the other one.

use outgate_policy::SourceKind;

use super::{Client, Trusted, get};
use crate::harness::{Launcher, field};

/// Asks for `/x` of a server on loopback that the client calls `name`.
fn ask(launcher: &Launcher, name: &str, port: u16, protocols: &[&[u8]]) -> String {
    let client = Client {
        pem: &launcher.authority,
        name,
        protocols,
        cut: 0,
    };
    let mut client = client.open(launcher.flow(([127, 0, 0, 1], port).into()));
    get(&mut client, &format!("{name}:{port}"), "/x")
}

/// A server on loopback has a certificate for what people call it.
#[test]
fn localhost_is_verified_as_the_client_calls_it() {
    let trusted = Trusted::new();
    let own = trusted.origin("localhost", &[b"h2", b"http/1.1"]);
    let other = trusted.origin("other.test", &[b"http/1.1"]);
    let rule = |port| format!("GET https://localhost:{port}/x");
    let (own_port, other_port) = (own.address.port(), other.address.port());
    let launcher = trusted.start(&[
        (SourceKind::Allow, &rule(own_port)),
        (SourceKind::Allow, &rule(other_port)),
    ]);
    let answer = ask(&launcher, "localhost", own_port, &[b"http/1.1"]);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let requests = own.requests();
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    let host = format!("localhost:{own_port}");
    assert_eq!(field(request, "host"), Some(host.as_str()), "{request}");
    // The same address by its number is somebody this certificate is not for,
    // whatever connection is kept.
    let answer = ask(&launcher, "127.0.0.1", own_port, &[b"http/1.1"]);
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("is for another name"), "{answer}");
    // And no certificate of another name is good for localhost.
    let answer = ask(&launcher, "localhost", other_port, &[b"http/1.1"]);
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert_eq!(own.requests().len(), 1);
    assert_eq!(other.requests(), Vec::<String>::new());
}
