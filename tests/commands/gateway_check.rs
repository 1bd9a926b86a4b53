//! `outgate gateway check`: a line for everything, and the exit status by the worst.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::Desk;

/// The line about something.
fn about<'t>(text: &'t str, name: &str) -> &'t str {
    let is = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    text.lines().find(is).unwrap_or_default()
}

/// A directory of this account alone, with an authority and a policy.
fn prepared() -> Desk {
    let desk = Desk::new();
    fs::set_permissions(&desk.directory, fs::Permissions::from_mode(0o700)).expect("a mode");
    desk.write("site.toml", "allow = [\"https://a.test\"]\n");
    let said = desk.call(&["ca", "create", "--permit", "a.test", "ca"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    desk
}

#[test]
fn a_sound_gateway_is_checked_before_it_starts() {
    let desk = prepared();
    let sound = [
        "gateway",
        "check",
        "--listen",
        "gate",
        "-p",
        "site.toml",
        "--ca",
        "ca",
        "--audit",
        "records/own.jsonl",
        "--upstream-ca",
        "ca/authority.pem",
    ];
    let said = desk.call(&sound);
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (0, ""),
        "{}",
        said.stdout
    );
    for (name, text) in [
        ("policy", "1 rules"),
        ("socket", "can be made"),
        ("ca", "vouches until "),
        ("upstream-ca", "holds 1 certificates"),
        ("limits", "open files"),
    ] {
        let line = about(&said.stdout, name);
        assert!(
            line.starts_with("ok") && line.contains(text),
            "{name}: {}",
            said.stdout
        );
    }
    assert!(!desk.directory.join("gate").exists() && !desk.directory.join("records").exists());
}

#[test]
fn every_fault_of_a_gateway_says_what_to_do() {
    let desk = prepared();
    desk.write("bad.toml", "alow = []\n").write("no.pem", "x");
    fs::set_permissions(
        desk.directory.join("ca/authority.key"),
        fs::Permissions::from_mode(0o644),
    )
    .expect("a mode");
    let open = desk.directory.join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("a mode");
    let said = desk.call(&[
        "gateway",
        "check",
        "--listen",
        "open/gate",
        "-p",
        "bad.toml",
        "--ca",
        "ca",
        "--audit",
        "/proc/own.jsonl",
        "--upstream-ca",
        "no.pem",
    ]);
    assert_eq!(said.status, 1, "{}", said.stdout);
    for name in ["policy", "socket", "ca", "upstream-ca"] {
        let line = about(&said.stdout, name);
        assert!(
            line.starts_with("fail") && line.contains("; "),
            "{name}: {}",
            said.stdout
        );
    }
    let _held = UnixListener::bind(desk.directory.join("live")).expect("a socket");
    let said = desk.call(&["gateway", "check", "--listen", "live", "--audit", "open"]);
    assert_eq!(said.status, 0, "{}", said.stdout);
    for (name, text) in [
        ("policy", "allows nothing"),
        ("socket", "end that gateway"),
        ("record", "chmod go-w"),
    ] {
        let line = about(&said.stdout, name);
        assert!(
            line.starts_with("warn") && line.contains(text),
            "{name}: {}",
            said.stdout
        );
    }
}
