//! A chat with a model: what an agent sends all day. Its key goes to the issuer,
//! in the field of the issuer, and nothing else of the chat looks like one.
//! Elsewhere the same chat is refused for its key, and for nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use outgate_dlp::{Detectors, sample};
use outgate_harness::audit::{records, text};
use outgate_harness::servers::serve;
use outgate_harness::{Identity, lab_tests};
use serde_json::Value;

use crate::scenario::Run;
use crate::stage::Stage;

/// Whose models they are, and whose they are not. Both lead to the same origin.
const ISSUER: &str = "api.anthropic.com";
const OTHER: &str = "other.example";

/// Where that listens.
const ORIGIN: &str = "127.0.0.1:443";

/// A key that nobody issued.
fn key() -> String {
    let detectors = Detectors::shipped();
    let mut keys = detectors.iter().filter(|one| &*one.id == "anthropic-key");
    let templates = &keys.next().expect("a detector").samples;
    let made = sample(templates.first().expect("a sample"), 7);
    String::from_utf8(made).expect("text")
}

/// Starts the origin; the file of what it got.
fn origin(stage: &Stage<'_>) -> PathBuf {
    let folder = stage.lab.folder("chat", Identity::Own);
    let (program, log) = (folder.join("chat.py"), folder.join("chat.log"));
    fs::write(&program, include_str!("origins/chat.py")).expect("the origin");
    let [certificate, secret] = stage.secrets();
    let (program, log_name) = (program.to_string_lossy(), log.to_string_lossy());
    let line = [
        "python3",
        &program,
        ORIGIN,
        &log_name,
        &certificate,
        &secret,
    ];
    serve(&line, &folder, &[ORIGIN]);
    fs::remove_file(&log).ok();
    log
}

/// Holds the chat with a host, and what was recorded of it.
fn chat(stage: &Stage<'_>, host: &str, key: &str) -> (Run, Vec<Value>) {
    let record = stage
        .lab
        .folder("record", stage.identity)
        .join("chat.jsonl");
    let sandbox = stage
        .allowing(&[&format!("GET,POST https://{host}/v1/**")])
        .option("--audit", &record.to_string_lossy())
        .pin(&format!("{host}:443={ORIGIN}"));
    let script = format!(
        "KEY='{key}' python3 - {host} <<'E'\n{}\nE",
        include_str!("tools/chat.py")
    );
    let run = Run::make(stage, sandbox, &script);
    let all = records(&record);
    fs::remove_file(&record).expect("a record");
    (run, all)
}

/// What the origin got since it was asked last: connections, and requests.
fn arrived(log: &Path) -> (usize, Vec<String>) {
    let lines = fs::read_to_string(log).unwrap_or_default();
    fs::remove_file(log).ok();
    let (connections, requests): (Vec<&str>, Vec<&str>) =
        lines.lines().partition(|line| *line == "+");
    let requests = requests.into_iter().map(str::to_owned).collect();
    (connections.len(), requests)
}

/// Asserts that the whole chat was held, and that nobody saw anything in it.
fn assert_held(run: &Run, all: &[Value], requests: &[String], host: &str) {
    assert_eq!(run.outcome.code, Some(0), "{host}: {run}");
    assert_eq!(run.outcome.stderr, "", "no complaint: {host}: {run}");
    assert!(run.outcome.stdout.ends_with("turns 9\n"), "{host}: {run}");
    // A file, five turns.
    assert_eq!(requests.len(), 6, "{host}: {requests:?}");
    let begins = |kind: &str| all.iter().any(|record| text(record, "kind") == kind);
    assert!(begins("request") && begins("finish"), "{host}: {all:?}");
    for record in all {
        let is_silent = record.get("finding").is_none() && record.get("unscanned").is_none();
        assert!(is_silent, "{host}: {record}");
        assert_ne!(text(record, "kind"), "finding", "{host}: {record}");
        assert_ne!(text(record, "verdict"), "deny", "{host}: {record}");
        assert_ne!(text(record, "detail"), "uninspected", "{host}: {record}");
    }
}

lab_tests! {
    fn a_chat_with_a_model_passes_and_its_key_goes_nowhere_else(lab) {
        let Some(stage) = Stage::with_tools(lab, &[]) else { return };
        let (log, key) = (origin(&stage), key());
        let (run, all) = chat(&stage, ISSUER, &key);
        let (_, requests) = arrived(&log);
        assert_held(&run, &all, &requests, ISSUER);
        let other = chat(&stage, OTHER, "");
        assert_held(&other.0, &other.1, &arrived(&log).1, OTHER);

        let (run, all) = chat(&stage, OTHER, &key);
        assert_eq!(run.outcome.code, Some(1), "{run}");
        assert_eq!(arrived(&log), (0, Vec::new()), "nothing arrives: {run}");
        assert!(run.outcome.stdout.contains("outgate denied POST"), "{run}");
        let told = run.lines_about(OTHER).concat();
        assert!(told.contains("anthropic-key") && told.contains("it may go to"), "{run}");
        let found: Vec<&Value> = all.iter().filter_map(|record| record.get("finding")).collect();
        let places: Vec<&str> = found.iter().map(|finding| text(finding, "place")).collect();
        assert!(places.iter().any(|place| place.contains("x-api-key")), "{places:?}");
        for finding in found {
            assert_eq!(text(finding, "detector"), "anthropic-key", "{finding}");
        }
        let whole = format!("{}{}{all:?}", run.outcome.stderr, run.words());
        assert!(!whole.contains(&key), "it is shown nowhere: {run}");
    }
}
