//! `outgate audit summary` as a pipeline meets it: what it says, and that no name or path of a
//! command's becomes markup, a link, or a command to the runner.

#![expect(
    clippy::string_slice,
    clippy::panic,
    clippy::format_push_string,
    reason = "what is not as it should be is a failed test"
)]

use serde_json::Value;

use outgate_harness::schema::Schema;

use crate::audit::{ALLOWED, CONNECT, DENIED, FINISH, FLOW, START, chained, text};
use crate::{Desk, Said};

const MONITORED: &str = r#""kind":"request","verdict":"allow","target":"http://a.test","method":"DELETE","path":"/x","reason":"no-rule","detail":"no rule allows it","monitor":"deny","flag":"-a 'DELETE http://a.test/x'","pid":8,"executable":"/usr/bin/wget""#;
const FOUND: &str = r#""kind":"finding","verdict":"deny","target":"http://b.test","method":"POST","path":"/y","reason":"credential","detail":"a GitHub token","pid":8,"executable":"/usr/bin/curl","finding":{"detector":"github-token","name":"GitHub token","place":"content","offset":0,"chain":[],"tier":"strong","checked":"passed","action":"block","issuers":[],"mark":"m"}"#;

fn summary(lines: &[String], words: &[&str]) -> Said {
    let desk = Desk::new().also("record.jsonl", &text(lines));
    desk.call(&[&["audit", "summary", "record.jsonl"], words].concat())
}

fn denied(target: &str, path: &str, program: &str) -> String {
    let members = serde_json::json!({
        "kind": "request", "verdict": "deny", "target": target, "method": "GET", "path": path,
        "reason": "no-rule", "detail": format!("no rule allows it {path}"),
        "flag": format!("-a 'GET {target}{path}'"), "pid": 8, "executable": program,
    });
    let text = members.to_string();
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inner.expect("an object").to_owned()
}

#[test]
fn a_summary_says_what_was_reached_denied_and_found() {
    let monitor = START.replace("agent\"", "agent\",\"mode\":\"monitor\"");
    let lines = chained(
        "r-1",
        &[
            &monitor, CONNECT, ALLOWED, DENIED, DENIED, MONITORED, FOUND, FLOW, FINISH,
        ],
    );
    let said = summary(&lines, &[]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    for part in [
        "2 allowed, 3 denied, 1 finding, 0 alarms.",
        "> **Rules were not enforced.** 1 run only monitored or learned; what rules deny was let through 1 time.",
        "- held back: `GitHub token` in `POST http://b.test/y`",
        "### Denied\n\n- `PUT http://a.test/x` (2 times), by `wget`: `no rule allows it`\n\nTo allow this:\n\n```text\n-a 'PUT http://a.test/x'\n```",
        "### Let through in spite of the rules\n\n- `DELETE http://a.test/x`, by `wget`",
        "- `a.test`: 2 allowed, **1 in spite of the rules**, 1.5 kB sent, 20 B received, by `curl`, `wget`",
    ] {
        assert!(said.stdout.contains(part), "{part}\n{}", said.stdout);
    }
    let document: Value =
        serde_json::from_str(&summary(&lines, &["--format", "json"]).stdout).expect("JSON");
    let schema = Schema::new(include_str!("../../gateway/report/summary.schema.json"));
    assert_eq!(
        schema.faults(&document),
        Vec::<String>::new(),
        "{document:#}"
    );
    assert_eq!(document["enforced"], false);
    assert_eq!(document["denied"][0]["count"], 2);
    assert_eq!(
        document["monitored"][0]["to_allow"][0],
        "-a 'DELETE http://a.test/x'"
    );
    let sarif: Value =
        serde_json::from_str(&summary(&lines, &["--format", "sarif"]).stdout).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let ids: Vec<_> = results
        .iter()
        .map(|one| one["ruleId"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(ids, ["finding", "denied", "monitored"]);
    for result in results {
        let index =
            usize::try_from(result["ruleIndex"].as_u64().expect("a number")).expect("it fits");
        assert_eq!(
            sarif["runs"][0]["tool"]["driver"]["rules"][index]["id"],
            result["ruleId"]
        );
        assert_eq!(
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "record.jsonl"
        );
    }
}

#[test]
fn a_pipeline_fails_on_what_it_says_it_fails_on() {
    let quiet = chained("r-1", &[START, CONNECT, ALLOWED, FINISH]);
    let denied = chained("r-1", &[START, DENIED, FINISH]);
    let monitored = chained("r-1", &[START, MONITORED, FINISH]);
    let found = chained("r-1", &[START, FOUND, FINISH]);
    // What was denied was taken out.
    let altered: Vec<String> = denied
        .iter()
        .filter(|line| !line.contains("\"deny\""))
        .cloned()
        .collect();
    assert_eq!(altered.len() + 1, denied.len());
    for (lines, words, status) in [
        (
            &quiet,
            &["--fail-on", "denied", "--fail-on", "finding"][..],
            0,
        ),
        (&denied, &["--fail-on", "denied"], 1),
        (&denied, &["--fail-on", "finding"], 0),
        (&denied, &[], 0),
        (&monitored, &["--fail-on", "denied"], 1),
        (&found, &["--fail-on", "finding"], 1),
        (&found, &["--fail-on", "denied"], 1),
        (&found, &["--fail-on", "nothing"], 2),
        (&altered, &["--fail-on", "denied"], 1),
        (&altered, &["--fail-on", "finding"], 1),
        (&altered, &[], 0),
    ] {
        assert_eq!(summary(lines, words).status, status, "{words:?}");
    }
    let desk = Desk::new().also("empty.jsonl", "");
    let said = desk.call(&["audit", "summary", "empty.jsonl"]);
    assert_eq!((said.status, said.stdout.as_str()), (2, ""));
}

/// What somebody may call a host, a path or a program to be more than text.
const HOSTILE: [&str; 14] = [
    "x`</code><script>alert(1)</script>",
    "``` \n::error::owned",
    "\n::error file=a::owned",
    "\r\n::set-output name=a::b",
    "##[error]owned",
    "###[group]x ##vso[task.setvariable variable=a]b",
    "[click](https://evil.test)",
    "![x](https://evil.test/p.png)",
    "@everyone #1 https://evil.test www.evil.test",
    "<img src=x onerror=alert(1)>",
    "| a | b |\n|---|---|",
    "\u{202e}gnp.exe\u{2028}::warning::x",
    "$`\\href{javascript:alert(1)}{x}`$",
    "{0} [0](1) \\",
];

#[test]
fn no_name_of_a_command_is_markup_or_a_command_to_the_runner() {
    let members: Vec<String> = HOSTILE
        .iter()
        .map(|text| {
            denied(
                &format!("http://a.test{text}"),
                &format!("/{text}"),
                &format!("/bin/{text}"),
            )
        })
        .collect();
    let mut all = vec![START];
    all.extend(members.iter().map(String::as_str));
    let lines = chained("r-1", &all);
    for format in ["markdown", "json", "sarif"] {
        let said = summary(&lines, &["--format", format]);
        assert_eq!(said.status, 0, "{}", said.stderr);
        let text = said.stdout;
        assert!(text.is_ascii() && !text.contains('\r'), "{format}");
        assert!(!text.contains("##["), "{format}: {text}");
        assert!(!text.contains("##vso"), "{format}: {text}");
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::"), "{format}: {line}");
        }
    }
    let markdown = summary(&lines, &[]).stdout;
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        match &fence {
            Some(open) if line == open => fence = None,
            // Nothing of what is inside can be the end of it.
            Some(open) => assert!(
                line.starts_with('-') && !line.contains(open.as_str()),
                "{line}"
            ),
            None if line.starts_with("```") => {
                fence = Some(line.trim_end_matches("text").to_owned());
            }
            None => {
                let outside = outside_of_code(line);
                for sign in ['<', '[', '!', '@', '|', '$', '\\', '`', '\''] {
                    assert!(!outside.contains(sign), "{sign} in {outside}: {line}");
                }
                assert!(!outside.contains("evil"), "{outside}: {line}");
            }
        }
    }
    assert!(fence.is_none());
    let sarif: Value =
        serde_json::from_str(&summary(&lines, &["--format", "sarif"]).stdout).expect("JSON");
    for result in sarif["runs"][0]["results"].as_array().expect("results") {
        let text = result["message"]["text"].as_str().expect("a text");
        let bare = text
            .replace("\\\\", "")
            .replace("\\[", "")
            .replace("\\]", "");
        assert!(!bare.contains('[') && !bare.contains(']'), "{text}");
        assert!(
            !text
                .replace("{{", "")
                .replace("}}", "")
                .contains(['{', '}']),
            "{text}"
        );
    }
}

/// A line without its code spans, as CommonMark reads them: a run of backticks, up to the next
/// of the same length.
fn outside_of_code(line: &str) -> String {
    let mut outside = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        outside.push_str(&rest[..at]);
        let run = rest[at..]
            .chars()
            .take_while(|letter| *letter == '`')
            .count();
        let behind = &rest[at + run..];
        let mut from = 0;
        rest = loop {
            let Some(next) = behind[from..].find('`') else {
                panic!("a span without an end: {line}");
            };
            let next = from + next;
            let length = behind[next..]
                .chars()
                .take_while(|letter| *letter == '`')
                .count();
            if length == run {
                break &behind[next + run..];
            }
            from = next + length;
        };
    }
    outside.push_str(rest);
    outside
}

#[test]
fn a_summary_of_several_large_records_stays_small() {
    let desk = Desk::new();
    for file in ["a.jsonl", "b.jsonl"] {
        let mut text = String::new();
        for number in 0..20_000 {
            let line = denied(
                &format!("https://h{number}-{file}.test"),
                &format!("/{number}"),
                &format!("/bin/p{number}"),
            );
            text.push_str(&format!(
                "{{\"v\":1,\"seq\":{number},\"run\":\"{file}\",\"sandbox\":\"s\",{line}}}\n"
            ));
        }
        desk.write(file, &text);
    }
    for format in ["markdown", "json", "sarif"] {
        let said = desk.call(&["audit", "summary", "--format", format, "a.jsonl", "b.jsonl"]);
        assert_eq!(said.status, 0, "{}", said.stderr);
        assert!(
            said.stdout.len() < 400_000,
            "{format}: {} bytes",
            said.stdout.len()
        );
    }
    let said = desk.call(&["audit", "summary", "a.jsonl", "b.jsonl"]);
    assert!(
        said.stdout.contains("0 allowed, 40000 denied"),
        "every one is counted"
    );
    assert!(
        said.stdout.contains("in no group"),
        "what was left out is said"
    );
}
