//! `outgate policy test --replay`: old decisions judged by an edited policy.

use crate::{Desk, Said};

/// A line of a record of the run `1`.
fn line(rest: &str) -> String {
    format!(
        "{{\"v\":1,\"time\":\"2026-01-01T00:00:00.000Z\",\"run\":\"1\",\"sandbox\":\"s\",\"executable\":\"/usr/bin/git\",{rest}}}\n"
    )
}

fn allowed(kind: &str, rest: &str) -> String {
    let rule = r#""rule":{"id":1,"text":"*","place":"-a"}"#;
    line(&format!(
        "\"kind\":\"{kind}\",\"verdict\":\"allow\",{rule},{rest}"
    ))
}

fn denied(kind: &str, reason: &str, rest: &str) -> String {
    line(&format!(
        "\"kind\":\"{kind}\",\"verdict\":\"deny\",\"reason\":\"{reason}\",\"detail\":\"no rule allows it\",{rest}"
    ))
}

fn request(host: &str, method: &str, path: &str) -> String {
    format!(r#""target":"https://{host}","method":"{method}","path":"{path}""#)
}

/// A record of every kind of decision.
fn record() -> String {
    [
        line(r#""kind":"start","verdict":"note","target":"","detail":"agent""#),
        line(r#""kind":"connect","verdict":"allow","target":"a.test:443","detail":"gateway""#),
        allowed("request", &request("a.test", "GET", "/repos/1")),
        allowed("request", &request("a.test", "GET", "/repos/2")),
        allowed("request", &request("a.test", "POST", "/repos/2")),
        allowed("request", &request("a.test", "GET", "/s?q=*")),
        allowed(
            "request",
            &format!(
                "{},\"values\":\"plain\"",
                request("a.test", "GET", "/s?q=*")
            ),
        ),
        denied("connect", "no-rule", r#""target":"b.test:443""#),
        denied("request", "no-rule", &request("b.test", "GET", "/x")),
        denied("request", "credential", &request("c.test", "POST", "/x")),
        denied("connect", "special-use", r#""target":"d.test:22""#),
        allowed("unix", r#""target":"/run/agent.sock""#),
        allowed("listen", r#""target":"0.0.0.0:8080""#),
        allowed(
            "connect",
            r#""target":"db.test:5432","detail":"direct","pin":"8.8.8.8:5432""#,
        ),
        line(r#""kind":"flow","verdict":"note","target":"a.test:443","bytes_up":1"#),
    ]
    .concat()
}

fn replay(policy: &str, more: &[&str]) -> Said {
    let desk = Desk::new();
    desk.write("run.jsonl", &record()).write("p.toml", policy);
    desk.call(&[&["policy", "test", "p.toml", "--replay", "run.jsonl"], more].concat())
}

const SAME: &str = "allow = [\"https://a.test\", \"unix:///run/agent.sock\", \"tcp://db.test:5432\"]\n\
                    listen = [\"0.0.0.0:8080\"]\n";

#[test]
fn a_policy_that_decides_alike_changes_nothing() {
    let said = replay(SAME, &[]);
    assert_eq!(
        said.stdout,
        "11 decisions of 1 run: 11 as before, 0 now denied, 0 now allowed, 0 cannot be judged again\n\
         \n\
         refused for other reasons than rules, and not judged: credential 1\n",
        "{}",
        said.stderr
    );
    assert_eq!(said.status, 0);
}

#[test]
fn what_changes_is_told_both_ways_by_groups() {
    let policy = "allow = [\"POST https://a.test/repos/*\", \"https://b.test\", \"tcp://d.test:22\", \"GET https://a.test/s?q=*\"]\n";
    let said = replay(policy, &[]);
    let expected = "\
11 decisions of 1 run: 2 as before, 5 now denied, 2 now allowed, 2 cannot be judged again

now denied, and allowed before:
  GET https://a.test/repos/*, 2 times, by git
    before  allowed by `*` (-a)
    now     no rule allows it
  connection to db.test:5432, by git
    before  allowed by `*` (-a)
    now     no rule allows it
  connection to unix:///run/agent.sock, by git
    before  allowed by `*` (-a)
    now     no rule allows it
  listening on 0.0.0.0:8080, by git
    before  allowed by `*` (-a)
    now     no rule allows it

now allowed, and denied before:
  GET https://b.test/x, by git
    before  no rule allows it
    now     allowed by `https://b.test` (p.toml:1:42)

cannot be judged again:
  GET https://a.test/s?q=*, by git
    before  allowed by `*` (-a)
    now     it depends on a value of its query, which no record holds
  connection to d.test:22, by git
    before  no rule allows it
    now     the address that its name led to is not in the record

refused for other reasons than rules, and not judged: credential 1
";
    assert_eq!(said.stdout, expected, "{}", said.stderr);
    assert_eq!(said.status, 1);
}

#[test]
fn what_may_change_is_named_and_nothing_beside_it() {
    let policy = format!("{SAME}deny = [\"POST https://a.test\"]\n");
    let said = replay(&policy, &[]);
    assert_eq!(said.status, 1, "{}", said.stdout);
    let said = replay(&policy, &["--allow-changes", "POST https://a.test/repos/*"]);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(
        said.stdout
            .contains("as --allow-changes says:\n  POST https://a.test/repos/2"),
        "{}",
        said.stdout
    );
    let said = replay(&policy, &["--allow-changes", "POST https://a.test/other"]);
    assert_eq!(said.status, 1, "{}", said.stdout);
}

#[test]
fn what_is_no_record_is_said_with_its_place() {
    let desk = Desk::new()
        .also("p.toml", SAME)
        .also("none.jsonl", "{\n")
        .also("empty.jsonl", "");
    let words = |record| ["policy", "test", "p.toml", "--replay", record];
    let hint =
        "  hint: name a record, a directory of them, or `last`: the record of the latest run\n";
    desk.expect_refusal(
        &words("none.jsonl"),
        &format!("outgate: none.jsonl:1: no record of outgate stands there\n{hint}"),
    );
    desk.expect_refusal(
        &words("absent.jsonl"),
        &format!(
            "outgate: the record `absent.jsonl`: No such file or directory (os error 2)\n{hint}"
        ),
    );
    desk.expect_refusal(
        &words("empty.jsonl"),
        "outgate: the records hold no decision\n  hint: a record holds some once a run asked for something\n",
    );
}

#[test]
fn nothing_that_a_command_chose_reaches_the_terminal_as_it_is() {
    let desk = Desk::new();
    let evil = r#""target":"https://a.test","method":"GET","path":"/\u001b[2J\u0007""#;
    desk.write("run.jsonl", &allowed("request", evil))
        .write("p.toml", "allow = []\n");
    let said = desk.call(&["policy", "test", "p.toml", "--replay", "run.jsonl"]);
    assert!(
        !said.stdout.contains(['\u{1b}', '\u{7}']),
        "{:?}",
        said.stdout
    );
    assert!(
        said.stdout.contains("cannot be judged again"),
        "{}",
        said.stdout
    );
}
