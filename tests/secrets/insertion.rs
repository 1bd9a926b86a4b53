//! What arrives at the host a secret is for: the value, in the positions the
//! policy names, byte for byte.

use outgate_harness::{Identity, lab_tests};

use crate::origin::field;
use crate::stage::{Stage, TOKEN, VALUE, assert_hidden, base64, bash};

/// Runs a script and gives the only request that arrived.
fn one(stage: &Stage<'_>, secrets: &[&str], script: &str) -> String {
    let outcome = stage.run(secrets, script);
    assert_eq!(outcome.code, Some(0), "{script}: {outcome}");
    assert_hidden(&outcome.stdout, script);
    assert_hidden(&outcome.stderr, script);
    assert_eq!(stage.findings(), [], "{script}");
    let seen = stage.seen();
    assert_eq!(seen.len(), 1, "{script}: {seen:?}");
    seen.into_iter().next().unwrap_or_default()
}

const FIELD: &str = r#"curl -sSf -H "Authorization: Bearer $KEY" https://api.test/x"#;

lab_tests! {
    fn a_value_takes_the_place_of_its_placeholder_in_a_credential_field(lab) {
        let stage = Stage::new(lab);
        for (secret, value) in [
            ("KEY=env:REAL@api.test", VALUE),
            ("KEY=env:REAL_TOKEN@api.test", TOKEN),
            ("KEY=env:REAL@API.Test.", VALUE),
            ("KEY=env:REAL@api.test:443/x", VALUE),
            ("KEY=env:REAL@api.test/**", VALUE),
            ("KEY=cmd:printf %s \"$REAL_TOKEN\"@api.test", TOKEN),
        ] {
            let request = one(&stage, &[secret], FIELD);
            let expected = format!("Bearer {value}");
            assert_eq!(field(&request, "authorization"), Some(&*expected), "{secret}");
            assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
        }
        let file = lab.folder("home", Identity::Own).join("key");
        std::fs::write(&file, format!("{VALUE}\n")).expect("a file");
        let secret = format!("KEY=file:{}@api.test", file.display());
        let request = one(&stage, &[&secret], FIELD);
        assert_eq!(field(&request, "authorization"), Some(&*format!("Bearer {VALUE}")));
    }

    fn basic_credentials_are_decoded_replaced_and_encoded_again(lab) {
        let stage = Stage::new(lab);
        let both = &["KEY=env:REAL@api.test", "USER_ID=env:REAL_TOKEN@api.test"];
        for (script, plain) in [
            (r#"curl -sSf -u "user:$KEY" https://api.test/x"#, format!("user:{VALUE}")),
            (r#"curl -sSf -u "$USER_ID:$KEY" https://api.test/x"#, format!("{TOKEN}:{VALUE}")),
            (r#"curl -sSf -u "$KEY:" https://api.test/x"#, format!("{VALUE}:")),
            (r#"curl -sSf "https://git:$KEY@api.test/x""#, format!("git:{VALUE}")),
        ] {
            let request = one(&stage, both, script);
            let expected = format!("Basic {}", base64(plain.as_bytes()));
            assert_eq!(field(&request, "authorization"), Some(&*expected), "{script}");
        }
    }

    fn other_positions_are_those_that_are_named(lab) {
        let stage = Stage::new(lab);
        let escaped = "s3cr3t%2FV4lue%2Bof%3Dthe%22first%26kind";
        let json = VALUE.replace('"', "\\\"");
        for (places, script, expected) in [
            ("query", r#"curl -sSf "https://api.test/q?a=1&key=$KEY&b=2""#,
                format!("GET /q?a=1&key={escaped}&b=2 HTTP/1.1")),
            ("query", r#"curl -sSf "https://api.test/q?key=%$(printf %s "${KEY:0:1}" | xxd -p)${KEY:1}""#,
                format!("GET /q?key={escaped} HTTP/1.1")),
            ("path", r#"curl -sSf "https://api.test/bot$KEY/send""#,
                format!("GET /bot{escaped}/send HTTP/1.1")),
            ("x-my-key", r#"curl -sSf -H "X-My-Key: $KEY" https://api.test/x"#,
                format!("x-my-key: {VALUE}")),
            ("fields", r#"curl -sSf -H "Any-Thing: a $KEY b $KEY" https://api.test/x"#,
                format!("any-thing: a {VALUE} b {VALUE}")),
            ("content", r#"curl -sSf -d "{\"k\":\"$KEY\"}" -H 'Content-Type: application/json' https://api.test/x"#,
                format!("{{\"k\":\"{json}\"}}")),
            ("content", r#"curl -sSf -d "a=1&k=$KEY" https://api.test/x"#,
                format!("a=1&k={escaped}")),
            ("content", r#"curl -sSf -d "<$KEY>" -H 'Content-Type: text/plain' https://api.test/x"#,
                format!("<{VALUE}>")),
            ("content", r#"(printf 'a%.0s' {1..300000}; printf %s "$KEY"; printf 'b%.0s' {1..9000}) | curl -sSf -T - -H 'Content-Type: text/plain' https://api.test/x"#,
                VALUE.to_owned()),
            ("content", r#"(printf 'a%.0s' {1..300000}; printf %s "$KEY") >f; curl -sSf --data-binary @f -H 'Content-Type: text/plain' https://api.test/x; rm f"#,
                VALUE.to_owned()),
        ] {
            let secret = format!("KEY=env:REAL@api.test;in={places}");
            let request = one(&stage, &[&secret], script);
            let found = request.contains(&expected)
                || request.to_ascii_lowercase().contains(&expected.to_ascii_lowercase());
            assert!(found, "{script}: {}", &request[..request.len().min(2000)]);
        }
    }

    fn content_keeps_its_length_where_nothing_is_replaced(lab) {
        let stage = Stage::new(lab);
        for script in [
            "curl -sSf -d 'no placeholder' https://api.test/x",
            "head -c 500000 /dev/zero | tr '\\0' a >f; curl -sSf --data-binary @f https://api.test/x; rm f",
        ] {
            let request = one(&stage, &["KEY=env:REAL@api.test"], script);
            let length = field(&request, "content-length").expect("a length");
            let content = request.split_once("\r\n\r\n").expect("content").1;
            assert_eq!(length, content.len().to_string(), "{script}");
        }
    }

    fn a_host_is_the_same_in_any_spelling(lab) {
        let stage = Stage::new(lab);
        for url in ["https://API.Test/x", "https://api.test./x", "https://api.test:443/x"] {
            let script = format!(r#"curl -sSf -H "Authorization: $KEY" {url}"#);
            let request = one(&stage, &["KEY=env:REAL@api.test"], &script);
            assert_eq!(field(&request, "authorization"), Some(VALUE), "{url}");
        }
    }

    fn the_second_request_of_a_connection_is_like_the_first(lab) {
        let stage = Stage::new(lab);
        let script = r#"curl -sSf -H "Authorization: $KEY" https://api.test/1 https://api.test/2 https://api.test/3"#;
        let outcome = stage.run(&["KEY=env:REAL@api.test"], script);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let seen = stage.seen();
        assert_eq!(seen.len(), 3, "{seen:?}");
        for request in seen {
            assert_eq!(field(&request, "authorization"), Some(VALUE));
        }
    }

    fn no_command_writes_what_prints_its_secret(lab) {
        let stage = Stage::new(lab);
        let project = lab.folder("project of one", Identity::Own);
        let place = project.display();
        std::fs::write(project.join("print"), "#!/bin/sh\ntouch ran\n").expect("a program");
        std::fs::write(project.join("json.py"), "open('ran','w')\n").expect("a module");
        for line in [
            "./print".to_owned(),
            format!("sh '{place}'/print"),
            format!("cd \"{place}\" && ./absent"),
        ] {
            let run = stage.sandbox(&[&format!("KEY=cmd:{line}@api.test")]);
            let outcome = run.within(project.clone()).run(&bash("echo started"));
            assert_eq!((outcome.code, &*outcome.stdout), (Some(2), ""), "{line}: {outcome}");
            let told = "what secret KEY comes from";
            assert!(outcome.stderr.contains(told), "{line}: {outcome}");
        }
        // What takes its modules or settings from where it is started finds nothing of the
        // command's.
        let line = "KEY=cmd:python3 -c 'import json; print(16*\"v\")'@api.test";
        let outcome = stage.sandbox(&[line]).within(project.clone()).run(&bash("echo started"));
        assert_eq!((outcome.code, &*outcome.stdout), (Some(0), "started\n"), "{outcome}");
        assert!(!project.join("ran").exists(), "{outcome}");
    }

    fn a_value_that_cannot_be_had_or_is_none_stops_the_run(lab) {
        let stage = Stage::new(lab);
        for (secret, words) in [
            ("KEY=env:NO_SUCH@api.test", "secret KEY: the variable NO_SUCH is not set"),
            ("KEY=file:/no/such@api.test", "secret KEY: /no/such"),
            ("KEY=cmd:exit 3@api.test", "secret KEY: the command `exit 3` ended with"),
            ("KEY=cmd:printf short@api.test", "fewer than 8 bytes"),
            ("KEY=env:REAL@*", "not the name of one host"),
            ("KEY=REAL@api.test", "hint:"),
        ] {
            let outcome = stage.sandbox(&[secret]).run(&bash("echo ran"));
            assert!(!outcome.stdout.contains("ran"), "{secret}: {outcome}");
            assert!(matches!(outcome.code, Some(2 | 125)), "{secret}: {outcome}");
            assert!(outcome.stderr.contains(words), "{secret}: {outcome}");
            assert_hidden(&outcome.stderr, secret);
        }
    }
}
