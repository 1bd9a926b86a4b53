//! What `outgate why` answers is what a run does: every question is asked and
//! then tried, by a real client against a real origin.

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::call;

/// The policy of all questions. Every address is local in the laboratory.
const POLICY: &str = r#"
extends = ["base"]
allow = ["GET,HEAD http://api.example.org:8080/repos/**", "tcp://raw.example.org:8080", "*:8080"]
deny = ["http://api.example.org/repos/secret", "POST http://files.example.org"]
[[only]]
rule = "GET http://only.example.org:8080/a"
[[pin]]
host = "api.example.org"
address = "127.0.0.1"
[[pin]]
host = "raw.example.org"
address = "127.0.0.1"
[[pin]]
host = "files.example.org"
address = "127.0.0.1"
[[pin]]
host = "only.example.org"
address = "127.0.0.1"
"#;

/// Method and URL, and whether it is allowed: neighbours differ in one thing.
const QUESTIONS: [(&str, &str, bool); 14] = [
    ("GET", "http://api.example.org:8080/repos/a", true),
    ("POST", "http://api.example.org:8080/repos/a", true),
    ("GET", "http://api.example.org:8080/repos/secret", false),
    ("GET", "http://api.example.org:8080/repos/%73ecret", false),
    ("GET", "http://api.example.org:8080/repos//secret", false),
    ("GET", "http://api.example.org:8081/repos/a", false),
    ("GET", "http://files.example.org:8080/x", true),
    ("POST", "http://files.example.org:8080/x", false),
    ("GET", "http://only.example.org:8080/a", true),
    ("GET", "http://only.example.org:8080/b", false),
    ("POST", "http://only.example.org:8080/a", false),
    ("GET", "http://127.0.0.1:8080/", false),
    ("GET", "http://raw.example.org:8080/any", true),
    ("GET", "http://raw.example.org:8081/any", false),
];

lab_tests! {
    fn a_run_does_what_why_answered(lab) {
        let policy = lab.directory.join("same.toml");
        std::fs::write(&policy, POLICY).expect("a policy");
        let policy = policy.to_string_lossy().into_owned();
        let origin = Origin::start(8080);
        for (method, url, is_allowed) in QUESTIONS {
            let why = ["why", "-p", &policy, "-X", method, url];
            let said = call(&why, &lab.directory, &lab.directory);
            assert_eq!(said.status, i32::from(!is_allowed), "{method} {url}: {}{}", said.stdout, said.stderr);
            let before = origin.arrivals().len();
            let fetch = ["curl", "-sS", "--path-as-is", "--max-time", "20", "-X", method, url].map(str::to_owned);
            let run = Sandbox::plain(lab, Identity::Own).option("-p", &policy).run(&fetch);
            let arrived = origin.arrivals().len() - before;
            assert_eq!(arrived, usize::from(is_allowed), "{method} {url}: {run}");
            assert_eq!(run.stderr.contains("outgate: denied"), !is_allowed, "{method} {url}: {run}");
        }
    }
}
