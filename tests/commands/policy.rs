//! `outgate policy check`, `show`, `test` and `presets`.

use std::collections::BTreeSet;

use outgate_policy::{preset, preset_names};
use serde_json::Value;

use crate::Desk;

const FULL: &str = r#"extends = ["team.toml"]
listen = ["3000"]
[filesystem]
read = ["/usr"]
write = ["$TMPDIR/x"]
[[allow]]
rule = "GET http://api.example.org/repos/**"
process = ["/usr/bin/git"]
[[pin]]
host = "api.example.org:443"
address = "192.0.2.7:8443"
[tls]
intercept = "never"
[environment]
pass = ["PATH", "HOME"]
set = { CI = "1" }
[limits]
memory = "4G"
[[test]]
request = "http://api.example.org/repos/a"
expect = "allow"
process = "/usr/bin/git"
rule = "GET http://api.example.org/repos/**"
[[test]]
request = "http://api.example.org/repos/secret"
expect = "deny"
process = "/usr/bin/git"
rule = "http://api.example.org/repos/secret"
"#;

const TEAM: &str = r#"extends = []
[[deny]]
rule = "http://api.example.org/repos/secret"
[tls]
intercept = "when-needed"
"#;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("full.toml", FULL).write("team.toml", TEAM);
    desk
}

#[test]
fn a_sound_policy_is_said_to_be_so() {
    let desk = desk();
    desk.expect(
        &["policy", "check", "full.toml", "team.toml"],
        0,
        "full.toml: ok, 2 rules, 2 tests, no warnings\nteam.toml: ok, 1 rule, no warnings\n",
    );
}

#[test]
fn every_fault_of_every_file_is_reported_with_its_place() {
    let desk = desk();
    desk.write(
        "bad.toml",
        "alow = [\"a.test\"]\nallow = [\"*.com\", \"GET http://\"]\n[limits]\nmemory = \"lots\"\n",
    )
    .write("worse.toml", "allow = [\n")
    .write(
        "tests.toml",
        "[[test]]\nrequest = \"a.test\"\nexpect = \"deny\"\n",
    )
    .write("strict.toml", "monitor = true\n");
    let said = desk.call(&[
        "policy",
        "check",
        "bad.toml",
        "full.toml",
        "worse.toml",
        "tests.toml",
        "strict.toml",
        "absent.toml",
    ]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    for place in [
        "outgate: bad.toml:1:1: unknown key `alow`\n  hint: did you mean `allow`?\n",
        "outgate: bad.toml:2:11: `*.com` covers ",
        "outgate: bad.toml:2:31: the rule names no host\n",
        "outgate: bad.toml:4:11: `lots` is not a size\n",
        "outgate: worse.toml:1:",
        "outgate: tests.toml:2:12: `a.test` has no scheme\n",
        "outgate: the policy sets `monitor`, which only who starts a run can say\n",
        "outgate: policy file `absent.toml`: No such file",
    ] {
        assert!(said.stderr.contains(place), "{place}: {}", said.stderr);
    }
    assert_eq!(
        said.stdout,
        "full.toml: ok, 2 rules, 2 tests, no warnings\n"
    );
}

#[test]
fn what_deserves_a_second_look_is_warned_of() {
    let desk = Desk::new();
    desk.write(
        "wide.toml",
        "allow = [\"https://*.github.io\"]\n[filesystem]\nread = [\"/nowhere/at/all\"]\n",
    );
    let said = desk.call(&["policy", "check", "wide.toml"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert_eq!(said.stdout, "wide.toml: ok, 1 rule, 2 warnings\n");
    assert_eq!(
        said.stderr,
        "outgate: warning: wide.toml:1:19: `*.github.io` covers every customer of `github.io`, not one organisation\n  \
         hint: name the host: `mine.github.io`\n\
         outgate: warning: wide.toml:3:10: `/nowhere/at/all` is not on this machine, so a run here is refused\n"
    );
}

#[test]
fn rules_about_what_is_inside_tls_are_warned_of_where_it_stays_closed() {
    let desk = Desk::new();
    let rules = "allow = [\"GET api.example.org\", \"GET http://api.example.org\", \"https://api.example.org\", \"wss://api.example.org\"]\n\
                 deny = [\"* */admin/**\", \"http://*/admin\"]\n";
    desk.write(
        "inside.toml",
        &format!("{rules}[tls]\nintercept = \"never\"\n"),
    );
    let said = desk.call(&["policy", "check", "inside.toml"]);
    assert_eq!(
        said.stdout, "inside.toml: ok, 6 rules, 3 warnings\n",
        "{}",
        said.stderr
    );
    let never = "`[tls] intercept = \"never\"` forbids to look inside TLS, so";
    let instead = "or write `intercept = \"when-needed\"`";
    assert_eq!(
        said.stderr,
        format!(
            "outgate: warning: inside.toml:1:11: `GET api.example.org`: {never} it allows nothing over TLS\n  \
             hint: allow the whole host with `https://HOST`, {instead}\n\
             outgate: warning: inside.toml:1:91: `wss://api.example.org`: {never} it allows nothing over TLS\n  \
             hint: allow the whole host with `https://HOST`, {instead}\n\
             outgate: warning: inside.toml:2:10: `* */admin/**`: {never} TLS to every host it covers is denied\n  \
             hint: write `http://` before the host, or deny the whole host, {instead}\n"
        )
    );
    for switch in ["", "[tls]\nintercept = \"always\"\n"] {
        desk.write("open.toml", &format!("{rules}{switch}"));
        let said = desk.call(&["policy", "check", "open.toml"]);
        assert_eq!(said.stdout, "open.toml: ok, 6 rules, no warnings\n");
    }
    // What is warned of is what happens, and only then.
    let ask = |switch: &str, options: &[&str], question: &str| {
        let words = [&["why", "--intercept", switch], options, &[question]].concat();
        desk.call(&words).status
    };
    let whole = "https://api.example.org";
    for (options, question, never, opened) in [
        (&["-a", whole][..], "https://api.example.org/x", 0, 0),
        (
            &["-a", "GET api.example.org"],
            "https://api.example.org/x",
            1,
            0,
        ),
        (
            &["-a", "wss://api.example.org"],
            "wss://api.example.org/x",
            1,
            0,
        ),
        (
            &["-a", whole, "-d", "* */admin/**"],
            "https://api.example.org/x",
            1,
            0,
        ),
        (
            &["-a", whole, "-d", "* */admin/**"],
            "https://api.example.org/admin/x",
            1,
            1,
        ),
        (
            &["-a", whole, "-d", "http://*/admin/**"],
            "https://api.example.org/x",
            0,
            0,
        ),
    ] {
        assert_eq!(
            ask("never", options, question),
            never,
            "{options:?} {question}"
        );
        assert_eq!(
            ask("when-needed", options, question),
            opened,
            "{options:?} {question}"
        );
        assert_eq!(
            ask("always", options, question),
            opened,
            "{options:?} {question}"
        );
    }
}

#[test]
fn everything_in_force_is_shown_with_its_place() {
    let desk = desk();
    let said = desk.call(&[
        "policy",
        "show",
        "-p",
        "full.toml",
        "-a",
        "https://files.example.org",
    ]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let lines: Vec<String> = said
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for line in [
        "deny http://api.example.org/repos/secret team.toml:3:9",
        "allow GET http://api.example.org/repos/** for /usr/bin/git full.toml:7:9",
        "allow https://files.example.org -a",
        "pin api.example.org:443 = 192.0.2.7:8443 full.toml:11:12",
        "listen 127.0.0.1:3000 full.toml:2:12",
        "read /usr full.toml:4:10",
        "write $TMPDIR/x full.toml:5:11",
        "pass PATH HOME full.toml:15:8",
        "set CI=1 full.toml:16:15",
        "limit memory = 4294967296 full.toml:18:10",
        // The last one wins, and what it replaced is not named.
        "set tls.intercept = never full.toml:13:13",
        "set dns.pin = run default",
    ] {
        assert!(
            lines.iter().any(|own| own == line),
            "{line}: {}",
            said.stdout
        );
    }
    assert!(!said.stdout.contains("when-needed"), "{}", said.stdout);
}

#[test]
fn json_says_the_same() {
    let desk = desk();
    let said = desk.call(&["policy", "show", "-p", "full.toml", "--json"]);
    let value: Value = serde_json::from_str(&said.stdout).expect("JSON");
    for (pointer, text) in [
        ("/rules/0/effect", "deny"),
        ("/rules/0/place", "team.toml:3:9"),
        ("/rules/1/process/0", "/usr/bin/git"),
        ("/pins/0/address", "192.0.2.7:8443"),
        ("/files/write/0/path", "$TMPDIR/x"),
        ("/environment/set/CI", "1"),
        ("/limits/memory/value", "4294967296"),
        ("/limits/memory/place", "full.toml:18:10"),
        ("/settings/tls.intercept/value", "never"),
        ("/settings/tls.intercept/place", "full.toml:13:13"),
    ] {
        let found = value.pointer(pointer).and_then(Value::as_str);
        assert_eq!(found, Some(text), "{pointer}: {}", said.stdout);
    }
    assert_eq!(value.pointer("/settings/dns.pin/place"), Some(&Value::Null));
}

#[test]
fn without_options_the_shipped_base_is_shown() {
    let said = Desk::new().call(&["policy", "show"]);
    assert!(
        said.stdout
            .contains("nothing leaves: no rule allows a host"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("preset `base`:"), "{}", said.stdout);
    assert!(said.stdout.contains("  write  $TMPDIR "), "{}", said.stdout);
}

#[test]
fn tests_that_hold_are_counted() {
    let desk = desk();
    desk.expect(&["policy", "test", "full.toml"], 0, "2 tests hold\n");
    desk.write(
        "apart.toml",
        "policy = [\"none\", \"team.toml\"]\n[[test]]\nrequest = \"http://api.example.org/repos/secret\"\nexpect = \"deny\"\n",
    );
    desk.expect(&["policy", "test", "apart.toml"], 0, "1 test holds\n");
    desk.expect(
        &["policy", "test", "full.toml", "apart.toml"],
        0,
        "3 tests hold\n",
    );
}

#[test]
fn a_test_that_fails_shows_what_was_expected_and_which_rule_decided() {
    let desk = desk();
    desk.write(
        "apart.toml",
        r#"policy = "full.toml"
[[test]]
request = "POST http://api.example.org/repos/a"
expect = "allow"
process = "/usr/bin/git"
[[test]]
request = "http://api.example.org/repos/a"
expect = "deny"
process = "/usr/bin/git"
[[test]]
request = "http://api.example.org/repos/secret"
expect = "deny"
process = "/usr/bin/git"
rule = "api.example.org/**"
[[test]]
request = "http://api.example.org/repos/secret"
expect = "deny"
"#,
    );
    desk.expect(
        &["policy", "test", "apart.toml"],
        1,
        "apart.toml:3:12: POST http://api.example.org/repos/a: expected allow, is denied: no rule allows it\n  \
         nearest: allow `GET http://api.example.org/repos/**` (full.toml:7:9)\n    \
         method: asked for POST, the rule has GET\n\
         apart.toml:7:12: GET http://api.example.org/repos/a: expected deny, is allowed by `GET http://api.example.org/repos/**` (full.toml:7:9)\n\
         apart.toml:11:12: GET http://api.example.org/repos/secret: expected the rule `api.example.org/**` to decide, is denied: the deny rule `http://api.example.org/repos/secret` at team.toml:3:9 denies it\n\
         3 of 4 tests failed\n",
    );
}

#[test]
fn a_file_without_tests_or_with_a_wrong_policy_is_no_success() {
    let desk = desk();
    desk.expect_refusal(
        &["policy", "test", "team.toml"],
        "outgate: `team.toml` holds no [[test]]\n  \
         hint: add one with `request` and `expect`; `outgate policy test --help` shows it\n",
    );
    desk.write(
        "lost.toml",
        "policy = \"absent\"\n[[test]]\nrequest = \"http://a.test\"\nexpect = \"deny\"\n",
    );
    let said = desk.call(&["policy", "test", "lost.toml"]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("there is no shipped policy `absent`"),
        "{}",
        said.stderr
    );
    let said = desk.call(&["policy", "test", "full.toml", "absent.toml"]);
    assert_eq!((said.status, said.stdout.as_str()), (2, ""));
}

#[test]
fn expectations_change_nothing_in_a_run() {
    let desk = desk();
    let with = desk.call(&["policy", "show", "-p", "full.toml"]).stdout;
    let without = FULL.split("[[test]]").next().expect("the policy");
    desk.write("full.toml", without);
    assert_eq!(
        desk.call(&["policy", "show", "-p", "full.toml"]).stdout,
        with
    );
}

#[test]
fn shipped_policies_are_listed_with_what_they_are_for() {
    let desk = Desk::new();
    let said = desk.call(&["policy", "presets"]);
    let rows: Vec<(&str, &str)> = said
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .collect();
    let listed: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
    let names: BTreeSet<&str> = preset_names().iter().copied().collect();
    assert_eq!(listed, names, "{}", said.stdout);
    for (name, title) in rows {
        assert!((10..=85).contains(&title.trim().len()), "{name}: {title}");
    }
    let document = preset("base").expect("base").trim_end().to_owned() + "\n";
    desk.expect(&["policy", "presets", "base"], 0, &document);
    assert_eq!(desk.call(&["policy", "presets", "nope"]).status, 2);
}

#[test]
fn hosts_alone_leave_the_files_of_base() {
    let desk = Desk::new().also("agent.toml", "extends = [\"base\", \"github\"]\n");
    let files = |words: &[&str]| {
        let said = desk.call(words);
        let (_, files) = said.stdout.split_once("\nfiles\n").expect("files");
        files.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let base = files(&["policy", "show"]);
    assert_eq!(files(&["policy", "show", "-P", "github"]), base);
    assert_eq!(
        files(&["policy", "show", "-P", "gitlab", "-P", "github"]),
        base
    );
    assert_eq!(files(&["policy", "show", "-p", "agent.toml"]), base);
    let tools = files(&["policy", "show", "-P", "dev-tools"]);
    assert_eq!(
        files(&["policy", "show", "-P", "dev-tools", "-P", "gitlab"]),
        tools
    );
    assert_ne!(tools, base);
    let said = desk.call(&["policy", "show", "-P", "none", "-P", "github"]);
    assert!(!said.stdout.contains("\nfiles\n"), "{}", said.stdout);
}

#[test]
fn what_programs_are_started_with_is_shown() {
    let desk = Desk::new();
    desk.write(
        "own.toml",
        "[[arguments]]\nprogram = \"browse\"\nfirst = [\"--no-sandbox\"]\nunless = [\"--sandbox\"]\n\
         text = \"its own sandbox is off\"\n",
    );
    let said = desk.call(&["policy", "show", "-p", "own.toml"]).stdout;
    let line = said.lines().find(|line| line.contains("--no-sandbox"));
    let line = line.expect("a line about the arguments");
    assert!(
        line.contains("browse --no-sandbox … (unless it has --sandbox)")
            && line.contains("own.toml:1"),
        "{line}"
    );
    let said = desk.call(&["policy", "show", "-p", "own.toml", "--json"]);
    let value: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(value["arguments"][0]["first"][0], "--no-sandbox");
}
