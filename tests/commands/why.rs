//! `outgate why URL`: the answer, the rule, what comes nearest, the flag.

use crate::Desk;

const AGENT: &str = r#"
extends = ["base"]
[[allow]]
rule = "GET,HEAD http://api.example.org/repos/**"
[[allow]]
rule = "https://files.example.org"
[[allow]]
rule = "tcp://db.example.org:5432"
[[deny]]
rule = "http://api.example.org/repos/secret"
[[only]]
rule = "GET http://readonly.example.org/a"
[[allow]]
rule = "https://git.example.org"
process = ["/usr/bin/git"]
[[allow]]
rule = "POST https://inside.example.org/v1/**"
"#;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("agent.toml", AGENT);
    desk
}

#[test]
fn what_is_allowed_names_the_rule_and_how_it_passes() {
    let desk = desk();
    for (question, rule, how) in [
        (
            "GET http://api.example.org/repos/a?page=2",
            "allow `GET,HEAD http://api.example.org/repos/**` (agent.toml:4:9)",
            "as this request; every further one is judged anew",
        ),
        (
            "PUT https://files.example.org/x",
            "allow `https://files.example.org` (agent.toml:6:9)",
            "as this request, in TLS that is opened; every further one is judged anew",
        ),
        (
            "POST https://inside.example.org/v1/messages",
            "allow `POST https://inside.example.org/v1/**` (agent.toml:17:9)",
            "as this request, in TLS that is opened; every further one is judged anew",
        ),
        (
            "tcp://db.example.org:5432",
            "allow `tcp://db.example.org:5432` (agent.toml:8:9)",
            "straight to its destination; what is sent is not looked at",
        ),
    ] {
        let text = format!("allowed   {question}\nby        {rule}\npasses    {how}\n");
        desk.expect(&["why", "-p", "agent.toml", question], 0, &text);
    }
}

#[test]
fn a_denial_shows_in_what_the_nearest_rule_differs_and_the_flag_that_allows_it() {
    let desk = desk();
    desk.expect(
        &[
            "why",
            "-p",
            "agent.toml",
            "-X",
            "POST",
            "http://api.example.org/users",
        ],
        1,
        "denied    POST http://api.example.org/users\n\
         because   no rule allows it\n\
         nearest   allow `GET,HEAD http://api.example.org/repos/**` (agent.toml:4:9)\n\
         \x20           method: asked for POST, the rule has GET,HEAD\n\
         \x20           path: asked for /users, the rule has /repos/**\n\
         to allow  add -a 'POST http://api.example.org/users'\n",
    );
    desk.expect(
        &["why", "-p", "agent.toml", "https://fils.example.org/x"],
        1,
        "denied    GET https://fils.example.org/x\n\
         because   no rule allows it\n\
         nearest   allow `https://files.example.org` (agent.toml:6:9)\n\
         \x20           host: asked for fils.example.org, the rule has files.example.org\n\
         to allow  add -a 'GET https://fils.example.org/x'\n",
    );
}

#[test]
fn the_flag_that_is_named_allows_what_was_denied() {
    let desk = desk();
    for question in [
        "POST http://api.example.org/users",
        "http://api.example.org/it's",
        "http://api.example.org/a*b?x=1",
        "https://api.example.org/repos/a",
        "https://inside.example.org/v1/messages",
        "tls://inside.example.org:443",
        "tcp://db.example.org:5433",
        "tls://api.example.org:8443",
        "https://api.example.org:8443/",
        "wss://api.example.org:8443/",
        "ws://events.example.org/v1",
        "http://127.0.0.1:3000/",
        "http://[2001:db8::1]/x",
        "unix:///run/agent.sock",
    ] {
        let words = ["why", "-p", "agent.toml", question];
        let denied = desk.call(&words);
        assert_eq!(denied.status, 1, "{question}: {}", denied.stdout);
        let (_, flag) = denied
            .stdout
            .split_once("to allow  add ")
            .unwrap_or_else(|| panic!("no flag for {question}: {}", denied.stdout));
        let rule = flag
            .trim_end()
            .strip_prefix("-a '")
            .and_then(|rest| rest.strip_suffix('\''))
            .unwrap_or_else(|| panic!("not a quoted rule: {flag}"))
            .replace(r"'\''", "'");
        let allowed = desk.call(&["why", "-p", "agent.toml", "-a", &rule, question]);
        assert_eq!(allowed.status, 0, "{question}: {rule}: {}", allowed.stdout);
    }
}

#[test]
fn where_looking_inside_is_forbidden_both_ways_out_are_named() {
    let desk = desk();
    let never = ["why", "-p", "agent.toml", "--intercept", "never"];
    let question = "POST https://inside.example.org/v1/messages";
    let words = [&never[..], &[question]].concat();
    desk.expect(
        &words,
        1,
        "denied    TLS to inside.example.org:443\n\
         because   the allow rule `POST https://inside.example.org/v1/**` at agent.toml:17:9 allows some requests only, and `[tls] intercept = \"never\"` forbids to look inside\n\
         to allow  add -a 'tls://inside.example.org'\n",
    );
    let words = [&never[..], &["-a", "tls://inside.example.org", question]].concat();
    assert_eq!(desk.call(&words).status, 0);
    let question = "https://files.example.org/x";
    let deny = ["-d", "POST files.example.org"];
    let words = [&never[..], &deny, &[question]].concat();
    desk.expect(
        &words,
        1,
        "denied    TLS to files.example.org:443\n\
         because   the deny rule `POST files.example.org` at -d may deny requests inside, and `[tls] intercept = \"never\"` forbids to look inside\n\
         nearest   allow `https://files.example.org` (agent.toml:6:9)\n\
         \x20           would allow it, but for the reason above\n\
         to allow  add --intercept when-needed\n",
    );
    let words = ["why", "-p", "agent.toml", "--intercept", "when-needed"];
    assert_eq!(
        desk.call(&[&words[..], &deny, &[question]].concat()).status,
        0
    );
    let posted = [&words[..], &deny, &["-X", "POST", question]].concat();
    assert_eq!(desk.call(&posted).status, 1);
}

#[test]
fn a_rule_that_forbids_is_named_with_what_to_do() {
    let desk = desk();
    desk.expect(
        &["why", "-p", "agent.toml", "http://api.example.org/repos/secret"],
        1,
        "denied    GET http://api.example.org/repos/secret\n\
         because   the deny rule `http://api.example.org/repos/secret` at agent.toml:10:9 denies it\n\
         nearest   allow `GET,HEAD http://api.example.org/repos/**` (agent.toml:4:9)\n\
         \x20           would allow it, but for the reason above\n\
         to allow  take out or narrow the deny rule at agent.toml:10:9; no rule that allows beats it\n",
    );
    desk.expect(
        &["why", "-p", "agent.toml", "http://readonly.example.org/b"],
        1,
        "denied    GET http://readonly.example.org/b\n\
         because   the only rule `GET http://readonly.example.org/a` at agent.toml:12:9 allows nothing else there\n\
         to allow  widen the rule at agent.toml:12:9, or add another `only` rule for this host\n",
    );
    desk.expect(
        &["why", "-p", "agent.toml", "https://git.example.org/"],
        1,
        "denied    GET https://git.example.org/\n\
         because   the allow rule `https://git.example.org` at agent.toml:14:9 allows it for /usr/bin/git only\n\
         to allow  add the executable to `process` at agent.toml:14:9\n",
    );
    let git = [
        "why",
        "-p",
        "agent.toml",
        "--as",
        "/usr/bin/git",
        "https://git.example.org/",
    ];
    assert_eq!(desk.call(&git).status, 0);
}

#[test]
fn without_options_nothing_is_allowed_and_the_same_options_as_run_are_taken() {
    let desk = desk();
    assert_eq!(desk.call(&["why", "https://api.example.org"]).status, 1);
    for options in [
        &["-a", "api.example.org"][..],
        &[
            "-P",
            "none",
            "-a",
            "api.example.org",
            "-r",
            "/usr",
            "-w",
            ".",
            "--listen",
            "3000",
        ],
        &[
            "-a",
            "http://api.example.org",
            "--resolve",
            "api.example.org:80=127.0.0.1:8080",
        ],
        &["-a", "*", "--intercept", "when-needed"],
        &["-a", "*", "--intercept", "always"],
        &["-a", "*", "--intercept", "never"],
    ] {
        let words = [&["why"], options, &["http://api.example.org/x"]].concat();
        assert_eq!(desk.call(&words).status, 0, "{words:?}");
        let denied = [
            &["why"],
            options,
            &["-d", "api.example.org", "http://api.example.org/x"],
        ];
        assert_eq!(desk.call(&denied.concat()).status, 1, "{words:?}");
    }
}

#[test]
fn wrong_questions_are_usage_errors_with_the_repair() {
    let desk = desk();
    desk.expect_refusal(
        &["why", "api.example.org"],
        "outgate: `api.example.org` has no scheme\n  \
         hint: write `https://api.example.org` or `http://api.example.org`\n",
    );
    desk.expect_refusal(
        &["why", "http://a.test/%zz"],
        "outgate: the request target holds a `%` that two hexadecimal digits do not follow\n  \
         hint: such a request is refused with 400, whatever the rules say\n",
    );
    desk.expect_refusal(
        &["why", "-a", "*.com", "https://a.test"],
        "outgate: -a:1:1: `*.com` covers everybody who registers a name under `com`\n  \
         hint: name the organisation: `*.example.com`; `*` alone is every public host\n",
    );
    assert_eq!(desk.call(&["why"]).status, 2);
    assert_eq!(
        desk.call(&["why", "-p", "absent.toml", "https://a.test"])
            .status,
        2
    );
}

#[test]
fn a_query_that_decides_is_in_the_hint_without_its_values() {
    let desk = Desk::new();
    let rule = "GET http://a.example/x?page=1";
    let question = "http://a.example/x?page=2&token=secret";
    let said = desk.call(&["why", "-a", rule, question]);
    assert_eq!(said.status, 1, "{}", said.stdout);
    assert!(
        said.stdout.contains("needs another query"),
        "{}",
        said.stdout
    );
    let hint = "GET http://a.example/x?page=*";
    assert!(
        said.stdout.contains(&format!("-a '{hint}'")),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains("secret"), "{}", said.stdout);
    assert_eq!(
        desk.call(&["why", "-a", rule, "-a", hint, question]).status,
        0
    );
    // A key that the request does not have cannot be demanded of it.
    let said = desk.call(&["why", "-a", rule, "http://a.example/x"]);
    assert!(
        said.stdout.contains("-a 'GET http://a.example/x'\n"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_query_that_asks_for_another_method_is_answered_as_a_run_would() {
    let desk = desk();
    for path in ["/v1/messages", "/v1/messages%3F_method=DELETE"] {
        let query = if path.contains('%') {
            ""
        } else {
            "?_method=DELETE"
        };
        let url = format!("https://inside.example.org{path}");
        desk.expect(
            &["why", "-p", "agent.toml", &format!("POST {url}{query}")],
            1,
            &format!(
                "denied    POST {url}\n\
                 because   `_method` in the query asks for DELETE, which the rules do not allow\n\
                 nearest   allow `POST https://inside.example.org/v1/**` (agent.toml:17:9)\n\
                 \x20           would allow it, but for the reason above\n\
                 to allow  add -a 'DELETE {url}'\n"
            ),
        );
    }
}
