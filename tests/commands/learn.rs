//! `outgate learn --from`: records become a policy that a person reads.

use std::fs;

use crate::{Desk, Said};

/// A line of a record of the run `1`, the numbered second of a day.
fn line(second: u32, rest: &str) -> String {
    format!(
        "{{\"v\":1,\"time\":\"2026-01-01T00:00:{second:02}.000Z\",\"run\":\"1\",\"sandbox\":\"s\",\"executable\":\"/usr/bin/git\",{rest}}}\n"
    )
}

fn request(second: u32, verdict: &str, host: &str, method: &str, path: &str) -> String {
    let reason = if verdict == "deny" {
        ",\"reason\":\"no-rule\""
    } else {
        ""
    };
    line(
        second,
        &format!(
            r#""kind":"request","verdict":"{verdict}"{reason},"target":"https://{host}","method":"{method}","path":"{path}""#
        ),
    )
}

fn record() -> String {
    [
        request(1, "allow", "a.test", "GET", "/repos/1"),
        request(2, "allow", "a.test", "GET", "/repos/2"),
        request(3, "deny", "a.test", "GET", "/repos/3"),
        request(4, "deny", "user.github.io", "POST", "/x?k=*").replace("\"/x?k=*\"", "\"/x?k=*\",\"values\":\"plain\""),
        line(5, r#""kind":"finding","verdict":"deny","target":"https://evil.test","method":"POST","path":"/u","detail":"GitHub token in the content","reason":"credential""#),
        request(6, "allow", "evil.test", "GET", "/ok"),
        line(7, r#""kind":"connect","verdict":"deny","reason":"special-use","target":"169.254.169.254:80""#),
        line(8, r#""kind":"unix","verdict":"deny","reason":"no-rule","target":"/run/agent.sock""#),
        line(9, r#""kind":"listen","verdict":"deny","reason":"no-rule","target":"0.0.0.0:8080""#),
        request(10, "deny", "b.test", "GET", "/denied").replace("no-rule", "deny-rule"),
    ]
    .concat()
}

fn learn(desk: &Desk, more: &[&str]) -> Said {
    desk.call(&[&["learn", "--from", "run.jsonl"], more].concat())
}

const LEARNT: &str = "\
# Learnt from 7 decisions by `outgate learn`.
# Read each line, and take out what the command is not to have. Then
#   outgate policy test THIS-FILE --replay RECORD   # what would change
#   outgate run -p THIS-FILE -- COMMAND

listen = [
    # denied once, by git
    #   2026-01-01T00:00:09.000Z listening on 0.0.0.0:8080
    # risk: was denied in these runs; others on the network may connect
    \"0.0.0.0:8080\",
]

# denied once, by git
#   2026-01-01T00:00:08.000Z connection to unix:///run/agent.sock
# risk: was denied in these runs; a service outside that does what it is told
[[allow]]
rule = \"unix:///run/agent.sock\"
process = [\"/usr/bin/git\"]

# 2 times, denied once, by git
#   first 2026-01-01T00:00:01.000Z GET https://a.test/repos/1
#   last  2026-01-01T00:00:03.000Z GET https://a.test/repos/3
# risk: was denied in these runs
[[allow]]
rule = \"GET https://a.test/repos/*\"
process = [\"/usr/bin/git\"]

# denied once, by git
#   2026-01-01T00:00:04.000Z POST https://user.github.io/x?k=*
# risk: the host keeps content of many tenants; a method that can upload; was denied in these runs
[[allow]]
rule = \"POST https://user.github.io/x?k=*\"
process = [\"/usr/bin/git\"]

# Left out:
#   GET https://b.test/denied: a rule denies it
#   GET https://evil.test/ok: a credential was on its way there
#   POST https://evil.test/u: a credential was on its way there
#   connection to 169.254.169.254:80: it led to an address that is not public
";

#[test]
fn a_record_becomes_a_policy_with_evidence_and_risks() {
    let desk = Desk::new();
    desk.write("run.jsonl", &record());
    let said = learn(&desk, &[]);
    assert_eq!(said.stdout, LEARNT, "{}", said.stderr);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    // Again, and into a file: the same bytes.
    let said = learn(&desk, &["-o", "p.toml"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert_eq!(
        fs::read_to_string(desk.directory.join("p.toml")).unwrap(),
        LEARNT
    );
    assert_eq!(
        said.stderr,
        "outgate: note: p.toml: 4 lines learnt, 4 left out; read them before a run has them\n"
    );
    let said = desk.call(&["policy", "check", "p.toml"]);
    assert!(
        said.stdout.contains("p.toml: ok, 3 rules"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    // What was allowed and is no secret's host stays allowed, and what it teaches is allowed.
    let said = desk.call(&[
        "policy",
        "test",
        "p.toml",
        "--replay",
        "run.jsonl",
        "--allow-changes",
        "https://evil.test",
    ]);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("9 decisions of 1 run: 4 as before, 1 now denied, 4 now allowed, 0 cannot be judged again\n"), "{}", said.stdout);
}

#[test]
fn what_is_merged_is_added_and_shown_and_nothing_goes() {
    let desk = Desk::new();
    let own = "# mine\nallow = [\n    \"GET https://a.test/**\", # all\n]\n[tls]\nintercept = \"always\"\n";
    desk.write("run.jsonl", &record()).write("own.toml", own);
    let said = learn(&desk, &["--merge", "own.toml"]);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    let merged = fs::read_to_string(desk.directory.join("own.toml")).unwrap();
    for kept in own.lines() {
        assert!(merged.contains(kept), "{kept} in {merged}");
    }
    let shown: Vec<&str> = said
        .stdout
        .lines()
        .filter(|line| line.starts_with('+'))
        .collect();
    assert_eq!(shown.len(), 1 + 5 + 8 + 1, "{}", said.stdout);
    assert!(
        !said
            .stdout
            .lines()
            .skip(2)
            .any(|line| line.starts_with('-')),
        "{}",
        said.stdout
    );
    assert!(
        !merged.contains("repos/"),
        "what was allowed is not there twice: {merged}"
    );
    let again = learn(&desk, &["--merge", "own.toml"]);
    assert_eq!(again.status, 1, "{}", again.stdout);
    assert_eq!(
        again.stderr,
        "outgate: note: `own.toml` allows all of it already\n"
    );
    assert_eq!(
        fs::read_to_string(desk.directory.join("own.toml")).unwrap(),
        merged
    );
}

#[test]
fn what_cannot_be_added_to_stays_as_it_is() {
    let desk = Desk::new();
    desk.write("run.jsonl", &record())
        .write("own.toml", "allow = [\"GET https://a.test\"\n");
    let said = learn(&desk, &["--merge", "own.toml"]);
    assert_eq!(said.status, 2, "{}", said.stdout);
    assert!(said.stderr.contains("own.toml:"), "{}", said.stderr);
    desk.write(
        "empty.jsonl",
        &line(1, r#""kind":"start","verdict":"note""#),
    );
    let said = desk.call(&["learn", "--from", "empty.jsonl", "-o", "new.toml"]);
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (1, "outgate: note: there was nothing to learn\n")
    );
    assert!(!desk.directory.join("new.toml").exists());
}

#[test]
fn a_difference_of_policies_is_told_in_words() {
    let desk = Desk::new()
        .also("a.toml", "allow = [\"GET https://a.test/x\"]\n")
        .also(
            "b.toml",
            "allow = [\"GET,POST https://a.test/x\"]\n[filesystem]\nread = [\"/srv\"]\n",
        );
    desk.expect(
        &["policy", "diff", "a.toml", "a.toml"],
        0,
        "both allow the same\n",
    );
    let wider = "\
b.toml allows, and a.toml does not:
  allow `GET,POST https://a.test/x` (b.toml:1:11)
    for one POST https://a.test/x
    there   no rule allows it
    near    `GET https://a.test/x` (a.toml:1:11): method: asked for POST, the rule has GET
  filesystem.read: reading below `/srv`
";
    desk.expect(&["policy", "diff", "a.toml", "b.toml"], 1, wider);
    let narrower = format!("{wider}\na.toml widens nothing\n");
    desk.expect(&["policy", "diff", "b.toml", "a.toml"], 0, &narrower);
}
