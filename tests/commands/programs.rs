//! Which program does what: three that are installed together, and what is said where one of
//! them is missing. Against the real programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Desk, outgate};

/// Texts that only what writes reports and reads archives has.
const OF_REPORTS: [&str; 3] = [
    "sarif-2.1.0",
    "Open Cybersecurity Schema Framework",
    "The page needs nothing beside itself",
];

fn holds(program: &Path, text: &str) -> bool {
    let bytes = fs::read(program).expect("a program");
    memchr::memmem::find(&bytes, text.as_bytes()).is_some()
}

#[test]
fn what_writes_reports_is_not_in_the_daemon_that_holds_keys() {
    let (launcher, of) = (outgate(), |name: &str| outgate().with_file_name(name));
    assert!(launcher.is_file());
    for text in OF_REPORTS {
        assert!(
            holds(&of("outgate-report"), text),
            "`{text}` is written by reports"
        );
        assert!(
            !holds(&of("outgate-gateway"), text),
            "`{text}` in the gateway"
        );
    }
    // And what speaks TLS is not in what reads anybody's files.
    let text = "rustls";
    assert!(
        holds(&of("outgate-gateway"), text),
        "the gateway speaks TLS"
    );
    assert!(
        !holds(&of("outgate-report"), text),
        "`{text}` in what reads records"
    );
}

#[test]
fn a_missing_program_is_named_with_what_to_do() {
    let desk = Desk::new();
    let alone = desk.directory.join("outgate");
    fs::copy(outgate(), &alone).expect("a copy");
    for words in [&["audit", "verify", "last"][..], &["scan", "."]] {
        let start = || {
            let mut command = Command::new(&alone);
            command.args(words).current_dir(&desk.directory).env_clear();
            command.output()
        };
        // What another test starts meanwhile may hold the copy open for a moment.
        let mut tries = (0..100).map(|_| start());
        let is_busy = |tried: &std::io::Result<_>| matches!(tried, Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy);
        let output = tries.find(|tried| !is_busy(tried)).expect("a start");
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {said}");
        let missing = desk.directory.join("outgate-report");
        let named = format!("outgate: `{}`: No such file", missing.display());
        assert!(said.starts_with(&named), "{words:?}: {said}");
        assert!(said.contains("  hint: "), "{words:?}: {said}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn programs_of_two_builds_do_not_work_together() {
    let report = outgate().with_file_name("outgate-report");
    for words in [
        &["audit", "--build", "0.0.0", "verify", "last"][..],
        &["scan", "--build", "0.0.0", "."],
    ] {
        let output = Command::new(&report)
            .args(words)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("install both together"), "{words:?}: {said}");
    }
    // Started by hand it says who starts it.
    let output = Command::new(&report)
        .arg("serve")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("usage: outgate-report audit"), "{said}");
}
