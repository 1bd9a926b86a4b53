//! `outgate scan` as a person and as a program meets it: what is found, where it
//! is said, and that no output holds what was found.

use std::io::Write;
use std::process::{Command, Stdio};

use outgate_dlp::sample;
use serde_json::Value;

use crate::{Desk, Said, outgate};

/// A token that its issuer would know by its checksum, and nobody issued.
pub(crate) fn token(seed: u64) -> String {
    String::from_utf8(sample("ghp_{b62:30}{crc62}", seed)).expect("letters")
}

/// The same desk with a file that holds a token in its third line.
fn desk(seed: u64) -> Desk {
    let text = format!("import os\n\nuse_it(\"{}\")\n", token(seed));
    Desk::new().also("a.py", &text)
}

/// Runs `outgate scan` with something on standard input.
pub(crate) fn scan_input(desk: &Desk, words: &[&str], input: &[u8]) -> Said {
    let mut child = Command::new(outgate())
        .arg("scan")
        .args(words)
        .current_dir(&desk.directory)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("outgate starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    Said {
        status: output.status.code().expect("an exit status"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// No part of a token that tells it from others is in what was said.
#[track_caller]
pub(crate) fn assert_silent_about(said: &Said, token: &str) {
    let (_, body) = token.split_at(4);
    for part in body.as_bytes().windows(6) {
        let part = std::str::from_utf8(part).expect("letters");
        let told = said.stdout.contains(part) || said.stderr.contains(part);
        assert!(
            !told,
            "`{part}` of a token in\n{}{}",
            said.stdout, said.stderr
        );
    }
}

pub(crate) fn document(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).expect("one JSON document")
}

#[test]
fn a_finding_has_line_and_column_and_no_value() {
    let desk = desk(1);
    let said = desk.call(&["scan", "a.py"]);
    assert_eq!(said.status, 1, "{}{}", said.stdout, said.stderr);
    assert!(
        said.stdout.starts_with("a.py:3:9: github-token  "),
        "{}",
        said.stdout
    );
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
    assert!(
        said.stderr.starts_with("outgate: 1 to refuse in 1 file, "),
        "{}",
        said.stderr
    );
    assert_silent_about(&said, &token(1));
}

#[test]
fn clean_files_are_no_finding() {
    let desk = Desk::new().also("b.txt", "ghp_ is how they begin\n");
    let said = desk.call(&["scan", "."]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (0, ""),
        "{}",
        said.stderr
    );
    assert_eq!(said.stderr, "outgate: nothing found in 1 file, 23 bytes\n");
}

#[test]
fn standard_input_is_scanned_where_nothing_is_named() {
    let desk = Desk::new();
    let text = format!("one\ntwo {}\n", token(2));
    for words in [&[][..], &["-"]] {
        let said = scan_input(&desk, words, text.as_bytes());
        assert_eq!(said.status, 1, "{}", said.stderr);
        assert!(
            said.stdout.starts_with("-:2:5: github-token"),
            "{}",
            said.stdout
        );
        assert_silent_about(&said, &token(2));
    }
    let said = scan_input(&desk, &[], b"");
    assert_eq!(said.status, 0, "{}", said.stdout);
}

#[test]
fn what_may_go_to_a_host_is_no_finding_towards_it() {
    let key = String::from_utf8(sample("sk_live_{b62:99}", 3)).expect("letters");
    let desk = desk(3).also("b.py", &format!("use_it(\"{key}\")\n"));
    let check = |host: &str, file: &str, status: i32| {
        let said = desk.call(&["scan", "--to", host, file]);
        assert_eq!(said.status, status, "{host}: {}", said.stdout);
    };
    // A file is content, and clients show these in fields.
    check("api.stripe.com", "b.py", 1);
    check("evil.test", "b.py", 1);
    check("api.github.com", "a.py", 1);
    check("github.com", "a.py", 1);
    desk.expect_refusal(
        &["scan", "--to", "*.github.com", "a.py"],
        "outgate: `--to *.github.com` is not a host; write `api.example.org`\n",
    );
    desk.expect_refusal(
        &["scan", "--to", "https://github.com", "a.py"],
        "outgate: `--to https://github.com` is not a host; write `api.example.org`\n",
    );
}

#[test]
fn a_baseline_accepts_what_it_lists_and_nothing_else() {
    let desk = desk(4);
    let said = desk.call(&["scan", "--write-baseline", "known.json", "a.py"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert_eq!(said.stderr, "outgate: 1 finding accepted in `known.json`\n");
    let text = std::fs::read_to_string(desk.directory.join("known.json")).expect("a file");
    assert!(!text.contains(&token(4)), "{text}");
    let said = desk.call(&["scan", "--baseline", "known.json", "a.py"]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (0, ""),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("1 accepted by the baseline"),
        "{}",
        said.stderr
    );
    // Elsewhere it is the same credential; another one is not.
    desk.write("moved.txt", &format!("x {}\n", token(4)));
    desk.write("new.txt", &format!("x {}\n", token(5)));
    let said = desk.call(&[
        "scan",
        "--baseline",
        "known.json",
        "--skip",
        "known.json",
        ".",
    ]);
    assert_eq!(said.status, 1);
    assert!(
        said.stdout.starts_with("./new.txt:1:3: github-token"),
        "{}",
        said.stdout
    );
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
}

#[test]
fn a_baseline_that_is_none_is_refused() {
    let desk = desk(4);
    for (text, message) in [
        (
            "nothing",
            "this is no baseline: expected ident at line 1 column 2",
        ),
        ("{}", "this is no baseline of version 1"),
        (
            r#"{"version":1,"key":"00","accepted":[]}"#,
            "a baseline has a `key` and a list `accepted`",
        ),
    ] {
        desk.write("b.json", text);
        let message = format!("outgate: b.json: {message}\n");
        desk.expect_refusal(&["scan", "--baseline", "b.json", "a.py"], &message);
    }
}

#[test]
fn programs_read_json_and_sarif() {
    let desk = desk(6);
    let said = desk.call(&["scan", "--json", "a.py"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert_silent_about(&said, &token(6));
    let json = document(&said);
    let finding = &json["findings"][0];
    assert_eq!(finding["path"], "a.py");
    assert_eq!(finding["line"], 3);
    assert_eq!(finding["column"], 9);
    assert_eq!(finding["detector"], "github-token");
    assert_eq!(finding["action"], "refuse");
    assert_eq!(finding["checked"], "passed");
    assert_eq!(json["summary"]["refused"], 1);
    let said = desk.call(&["scan", "--sarif", "a.py"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert_silent_about(&said, &token(6));
    let sarif = document(&said);
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "github-token");
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a.py");
    assert_eq!(place["region"]["startLine"], 3);
    let rules = &sarif["runs"][0]["tool"]["driver"]["rules"];
    let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
    assert_eq!(rules[index]["id"], "github-token");
}

#[test]
fn a_finding_in_a_document_has_its_path() {
    let text = format!(
        "{{\n \"a\": [\"x\", {{\"b c\": \"key:\\n{}\"}}],\n \"{}\": 1\n}}\n",
        token(8),
        token(9)
    );
    let desk = Desk::new().also("a.json", &text);
    let silent = |said: &Said| {
        assert_silent_about(said, &token(8));
        assert_silent_about(said, &token(9));
    };
    let said = desk.call(&["scan", "a.json"]);
    silent(&said);
    for line in ["in $.a[1]['b c'], checked", "in a name in $, checked"] {
        assert!(said.stdout.contains(line), "{}", said.stdout);
    }
    let said = desk.call(&["scan", "--json", "a.json"]);
    silent(&said);
    let json = document(&said);
    let findings = json["findings"].as_array().expect("findings");
    let mut paths: Vec<&str> = findings
        .iter()
        .filter_map(|finding| finding["inside"].as_str())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths, ["$.a[1]['b c']", "a name in $"]);
    let said = desk.call(&["scan", "--sarif", "a.json"]);
    silent(&said);
    let sarif = document(&said);
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let mut paths: Vec<&str> = results
        .iter()
        .filter_map(|one| one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].as_str())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths, ["$.a[1]['b c']", "a name in $"]);
    let message = results[0]["message"]["text"].as_str().expect("a message");
    assert!(message.contains(") in "), "{message}");
    // Of what is no document there is none.
    let desk = Desk::new().also("a.py", &format!("[words] = \"{}\"\n", token(8)));
    let said = desk.call(&["scan", "--sarif", "a.py"]);
    let place = &document(&said)["runs"][0]["results"][0]["locations"][0];
    assert_eq!(place["logicalLocations"], Value::Array(Vec::new()));
}

#[test]
fn values_without_a_form_are_found_where_the_user_names_them() {
    let value = "kV8pq2Lmz-R41x_Qw7";
    let coded = "a1Y4cHEyTG16LVI0MXhfUXc3";
    let text = format!("a: {value}\nb: {coded}\n");
    let desk = Desk::new().also("a.txt", &text);
    let said = desk.call(&["scan", "a.txt"]);
    assert_eq!(said.status, 0, "{}", said.stdout);
    desk.write("mine.txt", &format!("# mine\n{value} -> *.example.org\n"));
    let said = desk.call(&["scan", "--json", "--secrets-file", "mine.txt", "a.txt"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    let json = document(&said);
    let findings = json["findings"].as_array().expect("a list");
    assert!(
        findings
            .iter()
            .all(|finding| finding["detector"] == "known-value"),
        "{json:#}"
    );
    let lines: Vec<u64> = findings
        .iter()
        .filter_map(|finding| finding["line"].as_u64())
        .collect();
    assert!(lines.contains(&1), "{json:#}");
    assert!(
        !said.stdout.contains(value) && !said.stdout.contains(coded),
        "{}",
        said.stdout
    );
    let words = [
        "scan",
        "--secrets-file",
        "mine.txt",
        "--to",
        "api.example.org",
        "a.txt",
    ];
    assert_eq!(desk.call(&words).status, 0);
    desk.expect_refusal(
        &["scan", "--secrets-file", "none.txt", "a.txt"],
        "outgate: none.txt: there is no such file\n",
    );
    // A value that is not looked for would count as found nowhere.
    desk.write("short.txt", &format!("{value}\nshort\n"));
    desk.expect_refusal(
        &["scan", "--secrets-file", "short.txt", "a.txt"],
        "outgate: short.txt:2: its value is shorter than 10 bytes; take it out\n",
    );
}

#[test]
fn own_secrets_are_read_from_the_project_and_go_nowhere_it_says() {
    let desk = Desk::new().also(".env", "API_TOKEN=kV8pq2Lmz-R41x_Qw7\n");
    desk.write("a.txt", "x=kV8pq2Lmz-R41x_Qw7\n");
    let said = desk.call(&["scan", "--own", "--json", "a.txt"]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    let json = document(&said);
    assert_eq!(json["findings"][0]["detector"], "known-value", "{json:#}");
    assert_eq!(
        json["findings"][0]["action"], "refuse",
        "nobody says where it is for"
    );
    assert!(!said.stdout.contains("kV8pq2"), "{}", said.stdout);
}

#[test]
fn wrong_options_are_refused_with_the_repair() {
    let desk = desk(8);
    desk.expect_refusal(
        &["scan", "--enable", "nope", "a.py"],
        "outgate: no detector `nope`; `outgate scan --list` shows all\n",
    );
    desk.expect_refusal(
        &["scan", "missing"],
        "outgate: missing: No such file or directory (os error 2)\n",
    );
    desk.write("own.toml", "[[detector]]\nid = \"x\"\nseverity = 1\n");
    let said = desk.call(&["scan", "--detectors", "own.toml", "a.py"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr
            .contains("own.toml:3: unknown key `severity` in a detector"),
        "{}",
        said.stderr
    );
    let said = desk.call(&["scan", "--json", "--sarif", "a.py"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr.contains("cannot be used with"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_detector_can_be_added_and_another_left_out() {
    let own = r#"
[[detector]]
id = "acme-key"
name = "ACME key"
cost = "Opens every door."
reference = "https://acme.example/keys"
tier = "strong"
literals = ["acme_"]
pattern = '''acme_[0-9a-f]{24}'''
scope = "never"
samples = ["acme_{hex:24}"]
near_misses = ["acme_{hex:23}", "acme_ alone"]
"#;
    let key = String::from_utf8(sample("acme_{hex:24}", 1)).expect("letters");
    let desk = desk(9).also("own.toml", own);
    desk.write("b.txt", &format!("{key}\n"));
    let said = desk.call(&[
        "scan",
        "--detectors",
        "own.toml",
        "--disable",
        "github-token",
        "a.py",
        "b.txt",
    ]);
    assert_eq!(said.status, 1, "{}", said.stderr);
    assert!(
        said.stdout.starts_with("b.txt:1:1: acme-key  ACME key"),
        "{}",
        said.stdout
    );
    assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
}

#[test]
fn doubtful_findings_weigh_more_when_strict() {
    let wrong = token(10).replace("ghp_", "ghp_A");
    let (wrong, _) = wrong.split_at(40);
    let desk = Desk::new().also("a.txt", &format!("{wrong}\n"));
    let said = desk.call(&["scan", "--json", "a.txt"]);
    let json = document(&said);
    assert_eq!(json["findings"][0]["checked"], "failed", "{json:#}");
    assert_eq!(json["findings"][0]["action"], "report");
    let json = document(&desk.call(&["scan", "--strict", "--json", "a.txt"]));
    assert_eq!(json["findings"][0]["action"], "refuse");
}

#[test]
fn every_detector_is_listed_with_what_its_leak_costs() {
    let desk = Desk::new();
    let said = desk.call(&["scan", "--list"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert!(said.stdout.contains("github-token"), "{}", said.stdout);
    assert!(
        said.stdout.contains("Moves money, refunds payments"),
        "{}",
        said.stdout
    );
    let json = document(&desk.call(&["scan", "--list", "--json"]));
    let list = json["detectors"].as_array().expect("a list");
    assert!(list.len() >= 135, "{}", list.len());
    assert!(list.iter().all(|detector| detector["cost"].is_string()));
    let of = |id: &str| list.iter().find(|one| one["id"] == id).expect("a detector");
    assert_eq!(of("telegram-bot-token")["places"][0], "/bot*");
    assert_eq!(of("jfrog-key")["tenant_hosts"][0], "*.jfrog.io");
    let told = "*.jfrog.io (if a rule spells it out); not in content";
    assert!(said.stdout.contains(told), "{}", said.stdout);
}

#[test]
fn links_are_not_followed_and_names_cannot_steer_a_terminal() {
    let desk = desk(11);
    std::os::unix::fs::symlink(".", desk.directory.join("loop")).expect("a link");
    let name = "b\u{1b}[2J.txt";
    desk.write(name, &format!("{}\n", token(12)));
    let said = desk.call(&["scan", "."]);
    assert_eq!(said.status, 1);
    assert_eq!(said.stdout.lines().count(), 2, "{}", said.stdout);
    assert!(!said.stdout.contains('\u{1b}'), "{}", said.stdout);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let desk = Desk::new();
    let mut child = Command::new(outgate())
        .args(["scan", "--list"])
        .current_dir(&desk.directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("outgate starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
