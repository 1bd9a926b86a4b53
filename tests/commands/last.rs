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
    let said = read(&record, &["-n", "1"]);
    assert!(
        said.stdout
            .ends_with("\n\nand 1 before; --all tells each\n"),
        "{}",
        said.stdout
    );
    assert_eq!(
        read(&record, &["--all"]).stdout,
        read(&record, &["-n", "9"]).stdout
    );
}

/// Requests for these paths of one host, one by one.
fn requests(host: &str, paths: impl Iterator<Item = String>) -> String {
    let request = |path: String| {
        line(
            "1",
            &format!(
                r#""kind":"request","target":"https://{host}","method":"GET","path":"{path}","flag":"-a 'GET https://{host}{path}'",{DENIED}"#
            ),
        )
    };
    paths.map(request).collect()
}

#[test]
fn without_more_words_it_is_a_digest() {
    let record = [
        line("1", r#""kind":"start","verdict":"note","detail":"agent""#),
        requests("a.test", (1..=40).map(|id| format!("/users/{id}"))),
        requests("b.test", std::iter::once("/once".to_owned())),
        line("1", r#""kind":"finding","verdict":"deny","target":"https://c.test","method":"POST","path":"/u","detail":"GitHub token in the content","reason":"credential""#),
        line("1", r#""kind":"request","target":"https://d.test","method":"GET","path":"/x","verdict":"deny","reason":"deny-rule","detail":"the deny rule `d.test` at -d denies it""#),
    ]
    .concat();
    let said = read(&record, &[]);
    assert_eq!(
        said.stdout,
        "run       agent (s), 2026-01-01T00:00:00.000Z\n\
         record    record.jsonl\n\
         \n\
         secret    POST https://c.test/u\n\
         because   GitHub token\n\
         \n\
         denied    40 times: GET https://a.test/users/*   (asked by curl)\n\
         to allow  -a 'GET https://a.test/users/*'\n\
         \n\
         denied    GET https://d.test/x\n\
         because   the deny rule `d.test` at -d denies it\n\
         \n\
         denied    GET https://b.test/once   (asked by curl)\n\
         to allow  -a 'GET https://b.test/once'\n\
         \n\
         --all tells each, --as-policy prints a policy file to read and keep\n",
        "{}",
        said.stderr
    );
    let said = read(&record, &["--as-policy"]);
    assert_eq!(
        said.stdout,
        "# What would have allowed what agent (s) was denied at 2026-01-01T00:00:00.000Z.\n\
         # Take out what it is not to have, and then: outgate run -p THIS-FILE -- COMMAND\n\
         \n\
         allow = [\n    \
         # GET https://a.test/users/*, 40 times, by curl\n    \
         \"GET https://a.test/users/*\",\n    \
         # GET https://b.test/once, once, by curl\n    \
         \"GET https://b.test/once\",\n\
         ]\n\
         \n\
         # Left out, since no rule can or should allow it:\n\
         #   POST https://c.test/u: GitHub token\n\
         #   GET https://d.test/x: the deny rule `d.test` at -d denies it\n",
        "{}",
        said.stderr
    );
}

#[test]
fn a_flood_is_told_within_bounds() {
    let letters = |number: usize| {
        let letter =
            |shift: usize| char::from(b'a' + u8::try_from(number / shift % 26).expect("a letter"));
        format!("/{}{}{}", letter(676), letter(26), letter(1))
    };
    let record = requests("a.test", (0..3000).map(letters));
    let said = read(&record, &[]);
    assert!(said.stdout.lines().count() < 60, "{}", said.stdout);
    assert!(
        said.stdout
            .contains("\n... and 988 more groups: outgate why last --all\n"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("\n... and 2000 denials in no group\n"),
        "{}",
        said.stdout
    );
    let said = read(&record, &["--all"]);
    assert!(
        said.stdout
            .ends_with("\n\nand 2000 more before, which only the record has\n"),
        "{}",
        said.stdout
    );
}

#[test]
fn no_suggested_policy_lets_a_credential_go() {
    const FOUND: &str = r#""kind":"finding","verdict":"deny","method":"POST","detail":"GitHub token in the content","reason":"credential""#;
    let denied = |rule: &str, target: &str, kind: &str| {
        line(
            "1",
            &format!(r#""kind":"{kind}","target":"{target}","flag":"-a '{rule}'",{DENIED}"#),
        )
    };
    for (target, path, rule) in [
        ("https://a.test", "/u/1", "tls://a.test"),
        ("https://a.test", "/u/1", "tcp://a.test:443"),
        ("https://a.test", "/u/1", "https://a.test"),
        ("https://a.test", "/u/1", "POST https://a.test/u/*"),
        ("https://a.test", "/u/1", "*"),
        ("http://a.test:8080", "/u/1", "tcp://a.test:8080"),
        (
            "https://a.test",
            "/u/[hidden token]",
            "POST https://a.test/u/*",
        ),
    ] {
        let record = [
            line(
                "1",
                &format!(r#""target":"{target}","path":"{path}",{FOUND}"#),
            ),
            denied(rule, "a.test:443", "tunnel"),
            denied("tcp://b.test:22", "b.test:22", "connect"),
        ]
        .concat();
        let said = read(&record, &["--as-policy"]);
        let quoted = format!("    {rule:?},");
        assert!(
            !said.stdout.contains(&quoted),
            "{rule} for {target}{path}\n{}",
            said.stdout
        );
        assert!(
            said.stdout.contains("    \"tcp://b.test:22\",\n"),
            "{}",
            said.stdout
        );
    }
}

#[test]
fn a_run_is_found_by_its_name() {
    let desk = Desk::new();
    let runs = desk.directory.join("state/outgate/runs");
    std::fs::create_dir_all(&runs).expect("a directory");
    for (file, name, host) in [("1-1", "first", "a.test"), ("2-2", "second", "b.test")] {
        let record = requests(host, std::iter::once("/x".to_owned()))
            .replace(r#""sandbox":"s""#, &format!(r#""sandbox":"{name}""#));
        desk.write(&format!("state/outgate/runs/{file}.jsonl"), &record);
    }
    for (word, host) in [
        ("first", "a.test"),
        ("second", "b.test"),
        ("1-1", "a.test"),
        ("last", "b.test"),
    ] {
        let said = desk.call(&["why", word]);
        assert!(
            said.stdout
                .contains(&format!("denied    GET https://{host}/x\n")),
            "{word}: {}{}",
            said.stdout,
            said.stderr
        );
    }
    let said = desk.call(&["why", "third"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr.contains("`third` has no scheme"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_path_is_judged_by_the_grants() {
    let desk = Desk::new();
    desk.write("file", "");
    std::fs::create_dir(desk.directory.join("in")).expect("a directory");
    let directory = desk.directory.canonicalize().expect("a place");
    let directory = directory.display();
    let said = desk.call(&["why", "-P", "none", "-r", "in", "./file"]);
    assert_eq!(
        (said.stdout.as_str(), said.status),
        (
            &*format!(
                "path      {directory}/file\n\
                 read      denied: no grant is at it or above it\n\
                 write     denied: no grant is at it or above it\n\
                 to allow  add -r {directory}/file to read, -w {directory}/file to write as well\n\
                 judged    as `outgate run -P none -r in -- ...` in this directory; a run with other options may differ\n"
            ),
            1
        ),
        "{}",
        said.stderr
    );
    let said = desk.call(&["why", "-P", "none", "-r", "in", "./in/new\u{1b}[2J"]);
    assert_eq!(
        (said.stdout.as_str(), said.status),
        (
            &*format!(
                "path      {directory}/in/new\\u{{1b}}[2J (nothing is there)\n\
                 read      allowed by the grant `{directory}/in` (-r)\n\
                 write     denied: no grant is at it or above it\n\
                 judged    as `outgate run -P none -r in -- ...` in this directory; a run with other options may differ\n"
            ),
            0
        ),
        "{}",
        said.stderr
    );
    // What would show the whole home directory is not suggested, nor what is around it.
    for (path, advice) in [
        (
            "~/.ssh/id",
            "make it, and add -r {home}/.ssh/id to read, -w {home}/.ssh/id to write as well",
        ),
        (
            "~",
            "name what is needed below it: it holds the home directory",
        ),
        (
            "/",
            "name what is needed below it: it holds the home directory",
        ),
    ] {
        let home = desk.directory.join("in");
        let output = std::process::Command::new(crate::outgate())
            .args(["why", "-P", "none", path])
            .env_clear()
            .env("HOME", &home)
            .current_dir(&desk.directory)
            .output()
            .expect("outgate");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let home = home.canonicalize().expect("a place");
        let advice = advice.replace("{home}", &home.to_string_lossy());
        let found = said
            .lines()
            .find_map(|line| line.strip_prefix("to allow  "));
        assert_eq!(found, Some(&*advice), "{said}");
    }
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
