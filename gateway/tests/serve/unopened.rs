//! TLS that passes with nobody looking into it is counted: in the summary of a
//! run that has one, and in the record of every run.

use std::io::Write;
use std::net::Shutdown;

use outgate_policy::SourceKind;

use crate::harness::{Launcher, Origin, rest, start};
use crate::tls::hello;

/// Makes this many connections to a name that reach their origin.
fn pass(launcher: &Launcher, name: &str, count: usize) {
    for _ in 0..count {
        let mut client = launcher.connect(name, 443);
        client.write_all(&hello(Some(name), &[], 16384)).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(!rest(&mut client).is_empty(), "{name}");
    }
}

fn running(origin: &Origin) -> Launcher {
    let names = ["a.test", "b.test", "c.test", "d.test", "e.test"];
    let pins: Vec<String> = names.iter().map(|name| origin.pin(name, 443)).collect();
    let rules: Vec<String> = names.iter().map(|name| format!("tls://{name}")).collect();
    let pins = pins.iter().map(|pin| (SourceKind::Pin, pin.as_str()));
    let rules = rules.iter().map(|rule| (SourceKind::Allow, rule.as_str()));
    start(&pins.chain(rules).collect::<Vec<_>>())
}

/// The last record's words.
fn end(launcher: &Launcher) -> String {
    let records = launcher.records();
    let last = records.last().unwrap();
    assert_eq!(last["kind"], "finish", "{last}");
    last["detail"].as_str().unwrap().to_owned()
}

#[test]
fn what_passed_unopened_is_counted() {
    let origin = Origin::start(|mut stream, record| {
        // Unread bytes would make a reset of the end.
        record(rest(&mut stream));
        stream.write_all(b"bytes").ok();
    });
    let mut quiet = running(&origin);
    pass(&quiet, "b.test", 1);
    // Nothing was denied, so nothing is said; the record knows.
    assert_eq!(quiet.finish(), "");
    assert_eq!(
        end(&quiet),
        "status 0; 1 connection passed unopened (b.test)"
    );
    let mut told = running(&origin);
    for (name, count) in [("c.test", 1), ("a.test", 2), ("e.test", 3), ("b.test", 1)] {
        pass(&told, name, count);
    }
    for denied in ["x.test", "y.test", "z.test"] {
        let mut client = told.connect(denied, 443);
        client.write_all(&hello(Some(denied), &[], 16384)).unwrap();
        rest(&mut client);
    }
    pass(&told, "d.test", 1);
    let summary = told.finish();
    let lines: Vec<&str> = summary.lines().collect();
    assert!(
        lines.len() <= outgate_handoff::SUMMARY_LINES_MAX,
        "{summary}"
    );
    let unopened = "8 connections passed unopened (e.test, a.test, b.test, c.test, …)";
    assert!(
        lines.contains(&format!("outgate: {unopened}").as_str()),
        "{summary}"
    );
    assert_eq!(end(&told), format!("status 0; {unopened}"));
    // None, no word.
    let mut none = running(&origin);
    none.finish();
    assert_eq!(end(&none), "status 0");
}
