//! An ordinary day: what git, npm, pip, cargo, clients of images and of clouds, agents
//! and a browser sent when they were recorded, with what their user holds. None of it
//! is refused, also under `--strict`; and none of it that holds a credential goes to a
//! stranger's host instead.

mod recording;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outgate_harness::audit::{of_kind, records};
use outgate_harness::tools::project;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::recorder::Recorder;
use recording::{Recording, Request};

/// Requests of the whole day, at least.
const REQUESTS_MIN: usize = 200;

/// Clients, at least.
const CLIENTS_MIN: usize = 20;

/// What is refused or found and should not be, by client and a part of what is said of
/// it. None that passes may join them.
const LEFT: &[(&str, &str)] = &[
    // The framing of signed uploads is no coding that the scan knows.
    ("aws", "unknown coding"),
    ("aws-session", "unknown coding"),
    // A token in its place, which the values of several requests make once more.
    ("aws-session", "aws-session-token"),
    // A password that a page asked for: nobody but who reads the page knows whose it is.
    ("browser", "secret-assignment"),
    // A key of the API, shown to the host of the other product of its issuer.
    ("codex", "chatgpt.com"),
    // Digits stay where letters are moved: one form of the token looks like another.
    ("google", "rot13>gcp-oauth-refresh"),
    ("twine", "in the values of several messages"),
    ("uv", "in the values of several messages"),
];

/// Whether a fault is one of those.
fn is_left(name: &str, said: &str) -> bool {
    let mut left = LEFT.iter();
    left.any(|(client, part)| *client == name && said.contains(part))
}

/// What the origin answers, to requests and to a WebSocket's.
const PASSED: [&str; 2] = ["200", "101"];

/// Where strangers listen.
const STRANGER: &str = "drop.example";

/// Numbers that nobody chose, or those of a run that is to be repeated.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_or(1, |since| since.as_millis() as u64);
    let given = std::env::var("OUTGATE_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or(since);
    eprintln!("OUTGATE_SEED={seed}");
    seed
}

/// A folder that holds nothing.
fn empty(lab: &Lab, name: &str) -> PathBuf {
    let folder = lab.folder(name, Identity::Own);
    fs::remove_dir_all(&folder).expect("a folder");
    lab.folder(name, Identity::Own)
}

/// What each request got: its status, and what the answer says.
struct Day {
    answers: Vec<(String, String)>,
    /// What was found, as records.
    findings: Vec<String>,
}

/// Sends requests, each to the host beside it, as the recording's user under a mode.
fn send(lab: &Lab, recording: &Recording, mode: &[&str], requests: &[(String, &Request)]) -> Day {
    let home = empty(lab, "home");
    for (name, text) in &recording.files {
        let path = home.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let folder = empty(lab, "requests");
    for (position, (host, request)) in requests.iter().enumerate() {
        let mut bytes = format!("{host}\n").into_bytes();
        bytes.extend(request.to(host));
        fs::write(folder.join(position.to_string()), bytes).expect("a request");
    }
    let replay = project().join("tests/scan/day/replay.py");
    let audit = empty(lab, "records").join("day.jsonl");
    let mut sandbox = Sandbox::plain(lab, Identity::Own)
        .option("-P", "base")
        .option("-r", &folder.to_string_lossy())
        .option("-r", &replay.to_string_lossy())
        .option("--audit", &audit.to_string_lossy())
        .limit(Duration::from_mins(2));
    let mut hosts = recording.hosts();
    hosts.push(STRANGER);
    for host in hosts {
        sandbox = sandbox
            .allow(&format!("http://{host}"))
            .allow(&format!("ws://{host}"))
            .pin(&format!("{host}:80=127.0.0.1:80"));
    }
    for (name, value) in &recording.environment {
        sandbox = sandbox.environment(name, value);
    }
    for option in mode {
        sandbox = sandbox.flag(option);
    }
    let words = [
        "/usr/bin/python3",
        &replay.to_string_lossy(),
        &folder.to_string_lossy(),
    ];
    let outcome = sandbox.run(&words.map(str::to_owned));
    let answer = |line: &str| {
        let mut words = line.splitn(3, ' ').skip(1).map(str::to_owned);
        Some((words.next()?, words.next()?))
    };
    let answers: Vec<_> = outcome.stdout.lines().filter_map(answer).collect();
    let name = &recording.name;
    assert_eq!(answers.len(), requests.len(), "{name}: all sent: {outcome}");
    let records = records(&audit);
    let findings = of_kind(&records, "finding");
    let findings = findings.iter().map(ToString::to_string).collect();
    Day { answers, findings }
}

/// Fails where something of the day is refused or found under a mode.
fn assert_passes(lab: &Lab, mode: &[&str]) {
    let origin = Recorder::start(80);
    let mut faults = Vec::new();
    for recording in &Recording::all(seed()) {
        let own = recording.requests.iter();
        let own: Vec<_> = own.map(|request| (request.host.clone(), request)).collect();
        let day = send(lab, recording, mode, &own);
        origin.take_all();
        let name = &recording.name;
        for ((status, said), (_, request)) in day.answers.iter().zip(&own) {
            if !PASSED.contains(&status.as_str()) && !is_left(name, said) {
                faults.push(format!("{name}: {}: {status} {said}", request.line()));
            }
        }
        let found = day.findings.iter().filter(|record| !is_left(name, record));
        faults.extend(found.map(|record| format!("{name}: {record}")));
    }
    assert!(faults.is_empty(), "{mode:?}: {}", faults.join("\n"));
}

#[test]
fn the_recordings_are_a_day() {
    let all = Recording::all(1);
    assert!(all.len() >= CLIENTS_MIN, "{}", all.len());
    let requests: Vec<&Request> = all.iter().flat_map(|one| &one.requests).collect();
    assert!(requests.len() >= REQUESTS_MIN, "{}", requests.len());
    let held = requests.iter().filter(|request| request.holds).count();
    assert!(held * 2 >= REQUESTS_MIN, "{held} of {}", requests.len());
}

lab_tests! {
    fn nothing_of_an_ordinary_day_is_refused_under_strict(lab) {
        assert_passes(lab, &["--strict"]);
    }

    fn nothing_of_an_ordinary_day_is_found_otherwise(lab) {
        assert_passes(lab, &[]);
    }

    fn nothing_of_an_ordinary_day_that_holds_a_credential_goes_to_a_stranger(lab) {
        let stranger = Recorder::start(80);
        let mut faults = Vec::new();
        for recording in &Recording::all(seed()) {
            for mode in [&["--strict"][..], &[]] {
                let held = recording.requests.iter().filter(|request| request.holds);
                let held: Vec<_> = held.map(|request| (STRANGER.to_owned(), request)).collect();
                if held.is_empty() {
                    continue;
                }
                let day = send(lab, recording, mode, &held);
                for ((status, said), (_, request)) in day.answers.iter().zip(&held) {
                    // An answer to HEAD has no words.
                    let is_told = said.contains("outgate denied")
                        || (status == "403" && request.head.starts_with("HEAD "));
                    if PASSED.contains(&status.as_str()) || !is_told {
                        let (name, line) = (&recording.name, request.line());
                        faults.push(format!("{name} {mode:?}: {line}: {status} {said}"));
                    }
                }
                let sent = String::from_utf8_lossy(&stranger.take_all()).into_owned();
                for value in recording.values.iter().filter(|value| sent.contains(*value)) {
                    faults.push(format!("{} {mode:?}: {value} arrived", recording.name));
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
