//! The table of issuers in the documentation of detectors: made of the data, and the same.

use std::fmt::Write as _;
use std::path::Path;

use outgate_dlp::{Detector, Detectors, Scope, Text};

const BEGIN: &str = "<!-- issuers: made by the tests -->\n";
const END: &str = "<!-- end of issuers -->\n";
const RENEW: &str = "OUTGATE_BLESS=1 cargo test --package outgate-dlp --test places table";

fn code(list: &[Text]) -> String {
    let words: Vec<String> = list.iter().map(|own| format!("`{own}`")).collect();
    words.join(" ")
}

fn hosts(detector: &Detector) -> String {
    let mut hosts = code(&detector.issuers);
    if let Scope::Registry(registry) = detector.scope {
        let _ = write!(
            hosts,
            "the registry that {} is configured for",
            registry.word()
        );
    }
    if detector.scope == Scope::Claims {
        hosts.push_str("the hosts that it names");
    }
    if !detector.except.is_empty() {
        let _ = write!(hosts, " but {}", code(&detector.except));
    }
    hosts
}

fn places(detector: &Detector) -> String {
    let mut places = Vec::new();
    if !detector.places.is_empty() {
        places.push(code(&detector.places));
    }
    for (word, list) in [("forms", &detector.forms), ("JSON", &detector.documents)] {
        if !list.is_empty() {
            places.push(format!("{word}: {}", code(list)));
        }
    }
    if !detector.unplaced.is_empty() {
        places.push(detector.unplaced.to_string());
    }
    if !detector.is_placed() {
        places.push("anywhere".to_owned());
    }
    places.join("; ")
}

fn tenancy(detector: &Detector) -> String {
    let mut words = Vec::new();
    if !detector.tenant_hosts.is_empty() {
        words.push(format!("only spelt out: {}", code(&detector.tenant_hosts)));
    }
    if !detector.harmless.is_empty() {
        words.push(detector.harmless.to_string());
    }
    words.join("; ")
}

fn table() -> String {
    let mut text =
        "| detector | issuers | places | names of customers |\n|---|---|---|---|\n".to_owned();
    for detector in Detectors::shipped().iter() {
        if matches!(detector.scope, Scope::Never | Scope::User) {
            continue;
        }
        let row = [hosts(detector), places(detector), tenancy(detector)]
            .map(|cell| cell.trim().to_owned());
        let _ = writeln!(text, "| `{}` | {} |", detector.id, row.join(" | "));
    }
    text
}

#[test]
fn the_table_of_issuers_says_what_the_data_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("detectors/README.md");
    let there = std::fs::read_to_string(&path).expect("the documentation");
    let (before, rest) = there.split_once(BEGIN).expect("the beginning of the table");
    let (old, after) = rest.split_once(END).expect("the end of the table");
    let new = table();
    if std::env::var("OUTGATE_BLESS").is_ok_and(|value| value == "1") {
        let text = [before, BEGIN, &new, END, after].concat();
        std::fs::write(&path, text).expect("the documentation");
        return;
    }
    for (old, new) in old.lines().zip(new.lines()) {
        assert_eq!(old, new, "`{RENEW}` writes it anew");
    }
    assert_eq!(old, new, "`{RENEW}` writes it anew");
}
