//! What is learnt from sightings, and what never is.

use proptest::prelude::*;

use super::*;
use crate::recall::{MaskedValues, PastEvent};
use crate::verdict::Verdict;

/// `[-]METHOD URL`, `[-]tcp HOST:PORT [ADDRESS]`, `[-]tls HOST:PORT`, `[-]unix PATH`,
/// `[-]listen ADDRESS`; what begins with `-` was denied.
fn sighted(learner: &mut Learner<'_>, text: &str, executable: &str, time: &str) {
    let (sighted, what) = match text.strip_prefix('-') {
        Some(rest) => (Sighted::Denied, rest),
        None => (Sighted::Allowed, text),
    };
    let (word, rest) = what.split_once(' ').expect("two words");
    let event = match word {
        "tcp" => {
            let (target, address) = rest.split_once(' ').unwrap_or((rest, ""));
            let dialled = address.parse().into_iter().collect();
            PastEvent::connection(target, dialled).expect(text)
        }
        "tls" => PastEvent::tunnel(rest).expect(text),
        "unix" => PastEvent::unix(rest),
        "listen" => PastEvent::listen(rest).expect(text),
        method => {
            let (scheme, after) = rest.split_once("://").expect("a scheme");
            let (host, path) = after.split_once('/').expect("a path");
            let (origin, path) = (format!("{scheme}://{host}"), format!("/{path}"));
            PastEvent::request(method, &origin, Some(&path), MaskedValues::Plain).expect(text)
        }
    };
    learner.add(&Sighting {
        event: &event,
        sighted,
        executable,
        time,
        subject: what,
    });
}

fn learnt(seen: &[&str]) -> Learnt {
    let mut learner = Learner::default();
    for (at, text) in seen.iter().enumerate() {
        sighted(
            &mut learner,
            text,
            "/usr/bin/git",
            &format!("2026-01-01T00:00:{at:02}.000Z"),
        );
    }
    learner.learnt(&|host| host == "shared.test")
}

/// The rules that are learnt, in their order.
#[track_caller]
fn check(seen: &[&str], expected: &[&str]) {
    let learnt = learnt(seen);
    let rules: Vec<&str> = learnt.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(rules, expected, "{learnt:#?}");
    assert!(
        policy_of(&learnt.document()).is_some(),
        "{}",
        learnt.document()
    );
}

#[test]
fn requests_become_the_smallest_rules() {
    check(
        &[
            "GET https://a.test/x",
            "HEAD https://a.test/x",
            "POST https://a.test/y",
        ],
        &["GET,HEAD https://a.test/x", "POST https://a.test/y"],
    );
    check(
        &[
            "GET http://a.test:8080/u/1?n=*&k=*",
            "GET http://a.test:8080/u/1?n=*",
        ],
        &["GET http://a.test:8080/u/1?n=*"],
    );
    check(
        &[
            "GET https://a.test/u/1",
            "GET https://a.test/u/2",
            "GET https://a.test/u/3",
        ],
        &["GET https://a.test/u/*"],
    );
    check(
        &["GET https://b.test/x", "GET https://a.test/x"],
        &["GET https://a.test/x", "GET https://b.test/x"],
    );
    check(&["GET wss://a.test/events"], &["wss://a.test/events"]);
    check(&["GET https://a.test/"], &["GET https://a.test/"]);
    check(&["GET https://a.test/a%2Fb"], &["GET https://a.test/a%2Fb"]);
}

#[test]
fn what_is_no_request_has_its_own_kinds_of_lines() {
    check(
        &[
            "tcp db.test:5432 8.8.8.8",
            "tls pinned.test:443",
            "unix /run/agent.sock",
            "listen 0.0.0.0:8080",
            "listen 127.0.0.1:9090",
            "-tcp ssh.test:22",
        ],
        &[
            "0.0.0.0:8080",
            "unix:///run/agent.sock",
            "tcp://db.test:5432",
            "tls://pinned.test",
            "tcp://ssh.test:22",
        ],
    );
    let learnt = learnt(&["tcp db.test:5432 10.0.0.7"]);
    let document = learnt.document();
    assert!(
        document.contains("addresses = [\"10.0.0.7\"]"),
        "{document}"
    );
    assert!(learnt.lines[0].risks.contains(&Risk::Inside));
}

#[test]
fn a_denied_connection_is_told_by_its_requests() {
    check(
        &["-tcp a.test:443", "-GET https://a.test/x"],
        &["GET https://a.test/x"],
    );
    check(&["-tcp a.test:443"], &["https://a.test"]);
    check(&["-tcp a.test:443", "-tls a.test:443"], &["https://a.test"]);
    check(
        &["-tcp a.test:8443", "-tls a.test:8443"],
        &["https://a.test:8443"],
    );
    let event = PastEvent::connection("a.test:80", Vec::new()).expect("a connection");
    let mut learner = Learner::default();
    learner.add(&Sighting {
        event: &event,
        sighted: Sighted::Raw,
        executable: "",
        time: "",
        subject: "",
    });
    let learnt = learner.learnt(&|_| false);
    assert_eq!(learnt.lines[0].text, "tcp://a.test:80");
    check(
        &["-tcp a.test:8443", "-GET https://a.test:8443/x"],
        &["GET https://a.test:8443/x"],
    );
}

#[test]
fn there_is_no_rule_for_what_nobody_reaches_by_accident() {
    let seen = [
        "GET http://169.254.169.254/latest",
        "-GET http://169.254.169.254/latest",
        "GET http://metadata.google.internal/x",
        "tcp named.test:80 169.254.169.254",
        "-GET http://127.0.0.1:3000/x",
        "-GET http://localhost:3000/x",
        "-tcp 10.0.0.1:22",
        "-GET http://192.168.1.1/x",
    ];
    let learnt = learnt(&seen);
    assert_eq!(learnt.lines, []);
    let told: u64 = learnt.left_out.iter().map(|(_, _, count)| count).sum();
    assert_eq!(told, 8);
    // What a rule had granted was asked for.
    check(
        &["GET http://localhost:3000/x", "GET http://10.0.0.1/x"],
        &["GET http://10.0.0.1/x", "GET http://localhost:3000/x"],
    );
}

#[test]
fn there_is_no_rule_for_a_host_to_which_a_credential_was_on_its_way() {
    let mut learner = Learner::default();
    for text in [
        "GET https://evil.test/x",
        "tls evil.test:8443",
        "-tcp evil.test:22",
        "GET https://good.test/x",
    ] {
        sighted(&mut learner, text, "", "t");
    }
    learner.refuse("Evil.test", "a credential was on its way there");
    let learnt = learner.learnt(&|_| false);
    let rules: Vec<&str> = learnt.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(rules, ["GET https://good.test/x"]);
    assert_eq!(learnt.left_out.len(), 3);
}

#[test]
fn each_line_has_its_evidence_and_its_risks() {
    let document = learnt(&[
        "POST http://shared.test/u/1",
        "-POST http://shared.test/u/2",
        "POST http://shared.test/u/3",
        "-TRACE https://a.test/x",
    ])
    .document();
    assert_eq!(
        document,
        "\
# Learnt from 4 decisions by `outgate learn`.
# Read each line, and take out what the command is not to have. Then
#   outgate policy test THIS-FILE --replay RECORD   # what would change
#   outgate run -p THIS-FILE -- COMMAND

# 2 times, denied once, by git
#   first 2026-01-01T00:00:00.000Z POST http://shared.test/u/1
#   last  2026-01-01T00:00:02.000Z POST http://shared.test/u/3
# risk: the host keeps content of many tenants; a method that can upload; without TLS: \
anybody on the way reads and changes it; was denied in these runs
[[allow]]
rule = \"POST http://shared.test/u/*\"
process = [\"/usr/bin/git\"]

# Left out:
#   TRACE https://a.test/x: no rule can name this method
"
    );
}

#[test]
fn all_of_a_host_of_many_tenants_is_said() {
    let paths: Vec<String> = (0..90)
        .map(|at| format!("GET https://shared.test/{}", "a/".repeat(at)))
        .collect();
    let seen: Vec<&str> = paths.iter().map(String::as_str).collect();
    let learnt = learnt(&seen);
    let whole: Vec<_> = learnt
        .lines
        .iter()
        .filter(|line| {
            line.risks.contains(&Risk::AllOfManyTenants) || line.risks.contains(&Risk::Broad)
        })
        .map(|line| line.text.as_str())
        .collect();
    assert_eq!(whole, ["GET https://shared.test/a/**"]);
}

#[test]
fn an_executable_that_cannot_be_named_makes_a_rule_for_any() {
    let mut learner = Learner::default();
    sighted(&mut learner, "GET https://a.test/x", "/usr/bin/git", "1");
    sighted(&mut learner, "GET https://a.test/x", "", "2");
    sighted(&mut learner, "GET https://a.test/y", "/usr/bin/*", "3");
    sighted(
        &mut learner,
        "GET https://a.test/z",
        "/usr/bin/g\u{1b}",
        "3",
    );
    let learnt = learner.learnt(&|_| false);
    for line in &learnt.lines {
        let LineKind::Allow { process, .. } = &line.kind else {
            panic!("{line:?}");
        };
        assert_eq!(process, &Vec::<String>::new());
        assert!(line.risks.contains(&Risk::AnyProgram));
    }
}

#[test]
fn what_is_allowed_already_is_not_learnt() {
    let policy = policy_of("allow = [\"GET https://a.test/x\"]\n").unwrap();
    let mut learner = Learner::beyond(&policy);
    sighted(&mut learner, "GET https://a.test/x", "", "1");
    sighted(&mut learner, "GET https://a.test/y", "", "1");
    let learnt = learner.learnt(&|_| false);
    assert_eq!(learnt.lines.len(), 1);
    let text = learnt
        .added_to("allow = [\"GET https://a.test/x\"]\n")
        .unwrap();
    assert!(
        text.starts_with("allow = [\"GET https://a.test/x\",\n    # once\n"),
        "{text}"
    );
    let policy = policy_of(&text).unwrap();
    assert_eq!(policy.rules().count(), 2);
}

fn seen() -> impl Strategy<Value = String> {
    let method = prop_oneof![Just("GET"), Just("POST"), Just("-GET"), Just("-PUT")];
    let host = prop_oneof![
        Just("https://a.test"),
        Just("http://b.test:8080"),
        Just("https://shared.test"),
        Just("https://evil.test"),
        Just("http://169.254.169.254"),
        Just("http://127.0.0.1:3000"),
        Just("wss://a.test"),
    ];
    let path =
        "(/([0-9]{1,3}|[a-c]{1,2}|%2F|a;b|x%2e|\\*|[0-9a-f]{8}|v1|%61)){0,4}/?(\\?(k|p|q)=\\*)?";
    (method, host, path).prop_map(|(method, host, path)| {
        let path = path.strip_prefix('/').unwrap_or(&path);
        format!("{method} {host}/{path}")
    })
}

proptest! {
    #[test]
    fn what_was_seen_is_allowed_by_what_was_learnt_or_left_out(
        all in prop::collection::vec((seen(), prop_oneof![Just("/usr/bin/git"), Just("/bin/x"), Just("")]), 1..50)
    ) {
        let mut learner = Learner::default();
        let mut again = Learner::default();
        for (at, (text, by)) in all.iter().enumerate() {
            sighted(&mut learner, text, by, &format!("{at:03}"));
        }
        for (at, (text, by)) in all.iter().enumerate().rev() {
            sighted(&mut again, text, by, &format!("{at:03}"));
        }
        for learner in [&mut learner, &mut again] {
            learner.refuse("evil.test", "credential");
        }
        let learnt = learner.learnt(&|_| false);
        let document = learnt.document();
        prop_assert_eq!(&document, &again.learnt(&|_| false).document());
        let policy = policy_of(&document).expect("a policy");
        let left: u64 = learnt.left_out.iter().map(|(_, _, count)| count).sum();
        let mut uncovered = 0;
        for (text, by) in &all {
            let url = text.trim_start_matches('-');
            let question = Question::parse(url).expect("a question");
            let verdict = policy.answer(&question, Process { executable: by });
            let is_allowed = matches!(verdict, Verdict::Allow(_));
            let is_refused = url.contains("evil") || url.contains("169.254")
                || url.contains("127.0.0.1") && text.starts_with('-');
            if is_refused && !url.contains("127.0.0.1") {
                prop_assert!(!is_allowed, "{}", text);
            }
            uncovered += u64::from(!is_allowed);
        }
        prop_assert!(uncovered <= left, "{} of {}\n{}", uncovered, left, document);
        // Learning from it again changes nothing.
        let text = learnt.added_to("").expect("a document");
        prop_assert!(policy_of(&text).is_some());
    }
}
