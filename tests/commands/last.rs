//! `outgate why last`: the denials of the latest run, from its record.

use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{Desk, Said, call};

/// A line of a record.
fn line(run: &str, rest: &str) -> String {
    format!(
        "{{\"v\":1,\"time\":\"2026-01-01T00:00:00.000Z\",\"run\":\"{run}\",\"sandbox\":\"s\",{rest}}}\n"
    )
}

const DENIED: &str = r#""verdict":"deny","reason":"no-rule","detail":"no rule allows it","pid":7,"executable":"/usr/bin/curl""#;

fn read(record: &str, more: &[&str]) -> Said {
    let desk = Desk::new();
    desk.write("record.jsonl", record);
    desk.call(&[&["why", "last", "--audit", "record.jsonl"], more].concat())
}

#[test]
fn the_words_of_a_request_stand_for_its_connection() {
    let record = [
        line("1", r#""kind":"start","verdict":"note","detail":"agent""#),
        line("1", &format!(r#""kind":"connect","target":"a.test:80",{DENIED}"#)),
        line("1", &format!(r#""kind":"request","target":"http://a.test","method":"PUT","path":"/x","flag":"-a 'PUT http://a.test/x'",{DENIED}"#)),
        line("1", &format!(r#""kind":"connect","target":"b.test:443","flag":"-a 'https://b.test'",{DENIED}"#)),
        line("1", &format!(r#""kind":"tunnel","target":"b.test:443","flag":"-a 'tls://b.test'",{DENIED}"#)),
        line("1", &format!(r#""kind":"tunnel","target":"b.test:443","flag":"-a 'https://b.test'",{DENIED}"#)),
    ]
    .concat();
    let said = read(&record, &["-n", "9"]);
    assert_eq!(
        said.stdout,
        "run       agent (s), 2026-01-01T00:00:00.000Z\n\
         record    record.jsonl\n\
         \n\
         denied    TLS to b.test:443 (2 times in a row)\n\
         because   no rule allows it\n\
         at        2026-01-01T00:00:00.000Z\n\
         asked by  /usr/bin/curl (process 7)\n\
         to allow  add -a 'https://b.test'\n\
         \n\
         denied    PUT http://a.test/x\n\
         because   no rule allows it\n\
         at        2026-01-01T00:00:00.000Z\n\
         asked by  /usr/bin/curl (process 7)\n\
         to allow  add -a 'PUT http://a.test/x'\n",
        "{}",
        said.stderr
    );
    let said = read(&record, &[]);
    assert!(
        said.stdout.ends_with("\n\nand 1 before; -n 2 shows all\n"),
        "{}",
        said.stdout
    );
}

#[test]
fn what_was_found_is_told_whether_it_passed_or_not() {
    const FOUND: &str = r#""target":"http://a.test","method":"POST","path":"/u","detail":"GitHub token (base64>github-token) in the content","finding":{"detector":"github-token"}"#;
    let record = [
        line("1", r#""kind":"request","verdict":"allow","target":"http://a.test","method":"GET""#),
        line("1", &format!(r#""kind":"finding","verdict":"note",{FOUND}"#)),
        line("1", &format!(r#""kind":"finding","verdict":"deny",{FOUND}"#)),
        line("1", &format!(r#""kind":"canary","verdict":"deny","alarm":true,{FOUND}"#)),
        line("1", r#""kind":"canary","verdict":"note","alarm":true,"target":"http://b.test","detail":"it came back""#),
        line("1", r#""kind":"finding","verdict":"note","target":"http://c.test","method":"PUT","path":"/z","detail":"it cannot be scanned","unscanned":{"bytes":7}"#),
    ]
    .concat();
    let said = read(&record, &["-n", "9"]);
    let told = said.stdout.lines().filter(|line| {
        let label = line.split(' ').next().unwrap_or_default();
        ["denied", "ALARM", "passed", "because"].contains(&label)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "passed    PUT http://c.test/z",
            "because   it cannot be scanned",
            "ALARM     a response from http://b.test",
            "because   it came back",
            "ALARM     POST http://a.test/u",
            "because   GitHub token (base64>github-token) in the content",
            "denied    POST http://a.test/u",
            "because   GitHub token (base64>github-token) in the content",
            "passed    POST http://a.test/u",
            "because   GitHub token (base64>github-token) in the content",
        ],
        "{}",
        said.stdout
    );
}

#[test]
fn only_the_latest_run_of_a_record_is_told() {
    let denied = |target| format!(r#""kind":"connect","target":"{target}",{DENIED}"#);
    let record = line("1", &denied("old.test:1")) + &line("2", &denied("new.test:1"));
    let said = read(&record, &["-n", "9"]);
    assert!(said.stdout.contains("new.test"), "{}", said.stdout);
    assert!(!said.stdout.contains("old.test"), "{}", said.stdout);
    let record = record + &line("3", r#""kind":"start","verdict":"note","detail":"x""#);
    let said = read(&record, &[]);
    assert!(
        said.stdout.ends_with("\n\nnothing was denied in it\n"),
        "{}",
        said.stdout
    );
    assert_eq!(said.status, 0);
}

#[test]
fn runs_that_share_a_record_are_kept_apart() {
    let denied = |sandbox: &str, target: &str| {
        line(
            "1",
            &format!(r#""kind":"connect","target":"{target}",{DENIED}"#),
        )
        .replace(r#""sandbox":"s""#, &format!(r#""sandbox":"{sandbox}""#))
    };
    let record = [
        denied("a", "a1.test:1"),
        denied("b", "b1.test:1"),
        denied("a", "a2.test:1"),
        denied("b", "b2.test:1"),
    ]
    .concat();
    for (more, own, other) in [
        (
            &["-n", "9"][..],
            ["b1.test", "b2.test"],
            ["a1.test", "a2.test"],
        ),
        (
            &["-n", "9", "--name", "a"],
            ["a1.test", "a2.test"],
            ["b1.test", "b2.test"],
        ),
    ] {
        let said = read(&record, more);
        assert!(
            own.iter().all(|name| said.stdout.contains(name)),
            "{}",
            said.stdout
        );
        assert!(
            !other.iter().any(|name| said.stdout.contains(name)),
            "{}",
            said.stdout
        );
    }
    let said = read(&record, &["--name", "c"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr
            .contains("it holds no decisions of a run named `c`"),
        "{}",
        said.stderr
    );
}

#[test]
fn what_a_command_chose_does_not_reach_the_terminal_as_it_is() {
    let record = [
        "not json\n".to_owned(),
        line(
            "1",
            r#""kind":"start","verdict":"note","detail":"\u001b]0;x\u0007""#,
        ),
        line(
            "1",
            &format!(r#""kind":"unix","target":"/run/\u001b[2J\nx\u202e",{DENIED}"#),
        ),
        "{\"v\":1".to_owned(),
    ]
    .concat();
    let said = read(&record, &[]);
    assert!(
        said.stdout.contains(r"unix:///run/\u{1b}[2J\nx\u{202e}"),
        "{}",
        said.stdout
    );
    let plain = |c: char| c == '\n' || c == ' ' || c.is_ascii_graphic();
    assert!(said.stdout.chars().all(plain), "{:?}", said.stdout);
}

#[test]
fn no_record_is_an_error_that_names_the_place() {
    let desk = Desk::new();
    let said = desk.call(&["why", "last"]);
    assert_eq!((said.status, said.stdout.as_str()), (2, ""));
    assert!(
        said.stderr.contains("/state/outgate/runs`\n  hint: "),
        "{}",
        said.stderr
    );
    for record in ["", "{}\n", "[]\n"] {
        let said = read(record, &[]);
        assert_eq!(said.status, 2, "{record}");
        assert!(
            said.stderr.contains("it holds no decisions"),
            "{}",
            said.stderr
        );
    }
}

lab_tests! {
    fn a_denial_of_a_real_run_is_explained_and_its_flag_allows_it(lab) {
        for identity in Identity::all() {
            let state = lab.folder("state", identity);
            let fetch = ["curl", "-sS", "http://192.0.2.7/x?token=secret"].map(str::to_owned);
            let outcome = Sandbox::plain(lab, identity).allow("POST http://192.0.2.7/x").run(&fetch);
            assert!(outcome.stdout.contains("outgate denied GET http://192.0.2.7/x"), "{outcome}");
            assert!(outcome.stderr.contains("`outgate why last` explains"), "{outcome}");
            let said = call(&["why", "last"], &lab.directory, &state);
            assert_eq!(said.status, 0, "{}", said.stderr);
            for part in [
                "run       curl (curl-",
                "\ndenied    GET http://192.0.2.7/x?token=*\n",
                "\nbecause   no rule allows it\n",
                "\nasked by  /usr/bin/curl (process ",
                "\nto allow  add -a 'GET http://192.0.2.7/x'\n",
            ] {
                assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
            }
            assert!(!said.stdout.contains("secret"), "{}", said.stdout);
            let outcome = Sandbox::plain(lab, identity).allow("GET http://192.0.2.7/x").run(&fetch);
            assert!(!outcome.stderr.contains("denied"), "{outcome}");
        }
    }

    fn a_record_elsewhere_is_named_by_the_summary(lab) {
        let file = lab.directory.join("kept.jsonl");
        let path = file.to_string_lossy().into_owned();
        let fetch = ["curl", "-sS", "http://192.0.2.7/x"].map(str::to_owned);
        let outcome = Sandbox::plain(lab, Identity::Own).option("--audit", &path).run(&fetch);
        let line = format!("outgate: `outgate why last --audit {path}` explains every decision\n");
        assert!(outcome.stderr.ends_with(&line), "{outcome}");
        let said = call(&["why", "last", "--audit", &path], &lab.directory, &lab.directory);
        assert!(said.stdout.contains("denied    GET http://192.0.2.7/x\n"), "{}", said.stdout);
    }
}
