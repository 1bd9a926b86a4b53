//! Requests: what passes, what is denied and how it is said, and what the
//! origin gets to see.

use outgate_handoff::{Decision, SourceKind};

use crate::harness::{Origin, exchange, field, start};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn an_allowed_request_arrives_and_its_neighbour_does_not() {
    let origin = Origin::http(OK);
    let mut launcher = start(&[
        (SourceKind::Allow, "GET http://a.test/ok"),
        (SourceKind::Pin, &origin.pin("a.test", 80)),
    ]);
    let address = launcher.address("a.test", 80);
    assert_eq!(launcher.decide(address), Decision::Redirect);
    let mut client = launcher.flow(address);
    let denied = exchange(&mut client, "GET /admin HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(
        denied.starts_with("HTTP/1.1 403 outgate: denied GET http://a.test/admin"),
        "{denied}"
    );
    assert!(
        field(&denied, "outgate-denied")
            .unwrap()
            .starts_with("no-rule; rule=-")
    );
    assert!(
        field(&denied, "proxy-status")
            .unwrap()
            .starts_with("outgate; error=http_request_denied")
    );
    assert!(
        denied.contains("to allow it: -a 'GET http://a.test/admin'"),
        "{denied}"
    );
    let allowed = exchange(&mut client, "GET /ok HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert!(allowed.ends_with("\r\n\r\nok"), "{allowed}");
    let seen = origin.requests();
    assert_eq!(
        seen,
        ["GET /ok HTTP/1.1\r\nhost: a.test\r\nvia: 1.1 outgate\r\n\r\n"]
    );
    let summary = launcher.finish();
    assert!(summary.contains("1 denial;"), "{summary}");
    assert_eq!(launcher.notices.len(), 1, "{:?}", launcher.notices);
    assert_eq!(launcher.result(), Ok(()));
}
