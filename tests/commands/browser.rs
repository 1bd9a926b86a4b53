//! The page of `outgate audit report` in a browser: it asks for nothing, fits every
//! screen, and is readable light, dark and printed.

use std::fs;
use std::process::Command;

use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Lab, lab_tests};
use serde_json::Value;

use crate::Desk;
use crate::audit::{ALLOWED, CONNECT, DENIED, FINISH, FLOW, START, chained, text};

/// A name as some clouds give them, without a place to break a line at.
const LONG: &str = "d-3f9a1c7e5b2d4860.execute-api.eu-central-1.long-names-of-a-cloud.example";

/// A record with everything that a page can show, in texts as long as they get.
fn record() -> String {
    let found = |detector: &str, name: &str, chain: &str| {
        format!(
            r#""finding":{{"detector":"{detector}","name":"{name}","place":"content","offset":70211,"chain":[{chain}],"inside":"backup/home/me/projects/service/.env.production.local","tier":"strong","checked":"passed","action":"block","issuers":["github.com","*.githubusercontent.com"],"mark":"5eed"}}"#
        )
    };
    let who = r#""pid":7,"executable":"/home/me/.local/share/tools/versions/node/v22.11.0/bin/node","parents":["/usr/bin/bash","/usr/bin/make"]"#;
    let mut all: Vec<String> = [START, CONNECT, ALLOWED, DENIED, FLOW]
        .map(str::to_owned)
        .into();
    for number in 0..14_u64 {
        let host = format!("{number}.{LONG}");
        let bytes = 4_u64.pow(u32::try_from(number).expect("small")) * 37;
        all.extend([
            format!(
                r#""kind":"request","verdict":"allow","target":"https://{host}","method":"POST","path":"/v1/things/{number}","rule":{{"id":1,"text":"GET,POST https://*.{LONG}/v1/**","place":"policies/agent.toml:3:9"}},{who}"#
            ),
            format!(
                r#""kind":"flow","verdict":"note","target":"{host}:443",{who},"bytes_up":{bytes},"bytes_down":{number},"duration_ms":7"#
            ),
            format!(
                r#""kind":"request","verdict":"deny","target":"https://{host}","method":"DELETE","path":"/v1/things/{number}/{}","reason":"no-rule","detail":"no rule allows it","flag":"-a 'DELETE https://{host}/v1/things/{number}/**'",{who}"#,
                "unbroken".repeat(20)
            ),
        ]);
    }
    let chain = r#""gzip","base64","percent","json","hex","utf-16","zip""#;
    for (kind, detector, name, chain) in [
        ("finding", "github-token", "GitHub token", chain),
        ("finding", "known-value", "a value of the user's", ""),
        ("canary", "aws-access-key-id", "AWS access key", r#""gzip""#),
    ] {
        let alarm = if kind == "canary" {
            r#","alarm":true"#
        } else {
            ""
        };
        all.push(format!(
            r#""kind":"{kind}","verdict":"deny"{alarm},"target":"https://{LONG}","method":"POST","path":"/up","reason":"credential","detail":"why it was refused",{},{who}"#,
            found(detector, name, chain)
        ));
    }
    all.extend([
        format!(
            r#""kind":"tunnel","verdict":"allow","target":"{LONG}:443","detail":"uninspected","rule":{{"id":1,"text":"tls://{LONG}","place":"policies/agent.toml:4:9"}},{who}"#
        ),
        format!(
            r#""kind":"finding","verdict":"note","target":"https://{LONG}","detail":"zstd","unscanned":{{"bytes":123456789,"reason":"a window above the limit"}},{who}"#
        ),
        format!(
            r#""kind":"budget","verdict":"note","target":"https://{LONG}","reason":"budget","detail":"8 of 10 MB are spent""#
        ),
        FINISH.to_owned(),
    ]);
    let members: Vec<&str> = all.iter().map(String::as_str).collect();
    text(&chained("r-1", &members))
}

/// What a browser tells of a page.
fn open(desk: &Desk, page: &str) -> Value {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/browser.py");
    let said = Command::new("python3")
        .args([program, page, "."])
        .current_dir(&desk.directory)
        .env("HOME", &desk.directory)
        .output()
        .expect("python3 runs");
    let told = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{told}");
    serde_json::from_slice(&said.stdout).expect("one JSON document")
}

/// A directory inside of the laboratory, where numbers of processes begin anew.
fn desk(lab: &Lab) -> Desk {
    Desk {
        directory: lab.folder("desk", Identity::Own),
    }
}

lab_tests! {
    fn a_report_fits_every_screen_and_asks_for_nothing(lab) {
        if !["chromium", "python3", "bash"].into_iter().all(is_there) {
            return;
        }
        let desk = desk(lab);
        desk.write("record.jsonl", &record());
        let said = desk.call(&["audit", "report", "record.jsonl", "-o", "page.html"]);
        assert_eq!(said.status, 0, "{}", said.stderr);
        let told = open(&desk, "page.html");
        if let Some(folder) = std::env::var_os("OUTGATE_SCREENSHOTS") {
            let copied = Command::new("cp").arg("-r").arg(&desk.directory).arg(folder).status();
            assert!(copied.is_ok_and(|status| status.success()), "copied");
        }
        let requests = told["requests"].as_array().expect("a list");
        assert_eq!(requests.len(), 1, "the page alone: {requests:?}");
        assert_eq!(told["complaints"], Value::Array(Vec::new()), "{told:#}");
        assert_eq!(told["pdf"], "%PDF-");
        let looks = told["looks"].as_object().expect("looks");
        assert_eq!(looks.len(), 6);
        for (name, look) in looks {
            let place = format!("{name}: {look:#}");
            assert_eq!(look["scroll"], look["width"], "nothing to the right: {place}");
            assert_eq!(look["beyond"], Value::Array(Vec::new()), "{place}");
            assert_eq!(look["cut"], Value::Array(Vec::new()), "{place}");
            let colours = look["colours"].as_u64().expect("a count");
            assert!(colours > 50, "letters have soft edges, and there are some: {place}");
            let brightness = look["brightness"].as_u64().expect("a mean");
            let is_right = match name.strip_suffix("dark") {
                Some(_) => brightness < 90,
                None => brightness > 200,
            };
            assert!(is_right, "{place}");
        }
    }

    fn a_page_that_does_not_fit_is_seen(lab) {
        if !["chromium", "python3", "bash"].into_iter().all(is_there) {
            return;
        }
        let desk = desk(lab);
        let page = "<!doctype html><body><p>a</p><p style='width:500px'>b</p><div style='width:20px;overflow:hidden;white-space:nowrap'>long text</div><img src='https://elsewhere.test/x'>";
        desk.write("page.html", page);
        let told = open(&desk, "page.html");
        assert_eq!(told["requests"].as_array().map(Vec::len), Some(2), "{told:#}");
        let light = &told["looks"]["light"];
        assert_ne!(light["scroll"], light["width"], "{told:#}");
        assert_eq!(light["beyond"].as_array().map(Vec::len), Some(1), "{told:#}");
        assert_eq!(light["cut"][0], "long text", "{told:#}");
        fs::remove_file(desk.directory.join("light.png")).expect("a picture");
    }
}
