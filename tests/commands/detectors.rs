//! What `outgate policy` says about the detectors and budgets of a policy.

use outgate_dlp::sample;
use serde_json::Value;

use crate::Desk;
use crate::scan::{scan_input, token};

const OWN: &str = r#"[[inspect.detector]]
id = "payment-card"
mode = "block"
[[inspect.detector]]
id = "mycorp-token"
pattern = "mycorp_[0-9A-Za-z]{24}"
issuers = ["*.corp.example"]
tenants = "many"
[[inspect.allow]]
detector = "github-token"
host = "git.corp.example"
[[allow]]
rule = "https://paste.example.org"
budget = "10M"
"#;

#[test]
fn a_policy_with_detectors_is_checked_by_the_engine() {
    let desk = Desk::new();
    desk.write("own.toml", OWN);
    desk.expect(
        &["policy", "check", "own.toml"],
        0,
        "own.toml: ok, 1 rule, no warnings\n",
    );
    for (from, to, says) in [
        (
            "payment-card",
            "payment-cart",
            "own.toml:2:7: no detector `payment-cart`",
        ),
        (
            "{24}",
            "+",
            "own.toml:6:12: detector `mycorp-token`: the pattern has no longest match",
        ),
        (
            "]{24}",
            "",
            "own.toml:6:12: detector `mycorp-token`: the pattern is not one, at byte 7",
        ),
        (
            "mycorp_[0",
            "[0",
            "own.toml:6:12: detector `mycorp-token`: no literal",
        ),
        (
            "mycorp-token",
            "openai-key",
            "own.toml:5:7: there is another detector `openai-key`",
        ),
        ("*.corp", "*", "the issuer `*.example`"),
        (
            "github-token",
            "db-uri",
            "own.toml:10:13: what `db-uri` finds may go nowhere",
        ),
        ("github-token", "known-value", "--known NAME@HOST"),
    ] {
        desk.write("own.toml", &OWN.replace(from, to));
        let said = desk.call(&["policy", "check", "own.toml"]);
        assert_eq!(said.status, 2, "{says}: {said:?}");
        assert!(said.stderr.contains(says), "{says}: {said:?}");
    }
    // A mode for what an extended file describes is for a detector that there is.
    desk.write("own.toml", OWN).write(
        "more.toml",
        "extends = [\"./own.toml\"]\n[[inspect.detector]]\nid = \"mycorp-token\"\nmode = \"warn\"\n",
    );
    let said = desk.call(&["policy", "check", "more.toml"]);
    assert_eq!(said.status, 0, "{said:?}");
}

#[test]
fn detectors_allowances_and_budgets_are_shown_with_their_places() {
    let desk = Desk::new();
    desk.write("own.toml", OWN);
    let said = desk.call(&[
        "policy",
        "show",
        "-p",
        "own.toml",
        "--detector",
        "iban=warn",
    ]);
    for line in [
        "https://paste.example.org  at most 10485760 bytes out",
        "payment-card = block",
        "mycorp-token  mycorp_[0-9A-Za-z]{24}  to *.corp.example, not in content",
        "iban = warn",
        "github-token to git.corp.example",
    ] {
        assert!(said.stdout.contains(line), "{line}: {said:?}");
    }
    let said = desk.call(&["policy", "show", "-p", "own.toml", "--json"]);
    let shown: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(shown["rules"][0]["budget"], 10 << 20);
    assert_eq!(shown["scan"]["detectors"][0]["mode"], "block");
    assert_eq!(
        shown["scan"]["detectors"][1]["issuers"][0],
        "*.corp.example"
    );
    assert_eq!(shown["scan"]["detectors"][1]["tenants"], "many");
    assert_eq!(
        shown["scan"]["allowances"][0]["hosts"][0],
        "git.corp.example"
    );
    let said = desk.call(&["policy", "show", "--detector", "iban=perhaps"]);
    assert_eq!(said.status, 2, "{said:?}");
}

#[test]
fn faults_of_an_option_name_it_as_it_was_typed() {
    let desk = Desk::new();
    desk.write("own.toml", OWN);
    for (option, value, says) in [
        (
            "--detector",
            "payment-cart=block",
            "no detector `payment-cart`",
        ),
        (
            "--detector",
            "Payment=block",
            "`Payment` is no id of a detector",
        ),
        ("--known", "MYCORP_TOKEN@*.corp.example", "`*.corp.example`"),
    ] {
        for command in ["show", "check"] {
            let arguments: &[&str] = match command {
                "show" => &["policy", "show", "-p", "own.toml", option, value],
                _ => &["run", "-p", "own.toml", option, value, "--", "true"],
            };
            let said = desk.call(arguments);
            let is_engines = value.starts_with("payment");
            if is_engines {
                // The engine is asked when the first connection is made.
                continue;
            }
            assert_ne!(said.status, 0, "{arguments:?}: {said:?}");
            let place = format!("{option} {value}: ");
            assert!(said.stderr.contains(&place), "{place}: {said:?}");
            assert!(said.stderr.contains(says), "{says}: {said:?}");
            assert!(!said.stderr.contains(":2:"), "{said:?}");
        }
    }
    let said = desk.call(&[
        "policy",
        "show",
        "-p",
        "own.toml",
        "--detector",
        "iban=warn",
    ]);
    let line = said
        .stdout
        .lines()
        .find(|line| line.contains("iban = warn"));
    assert!(
        line.is_some_and(|line| line.ends_with("  --detector iban=warn")),
        "{said:?}"
    );
}

#[test]
fn the_mode_of_a_rule_is_shown_and_explained() {
    let desk = Desk::new();
    desk.write(
        "own.toml",
        "allow = [\"a.test\", { rule = \"a.test/x/**\", inspect = \"warn\" }, \
         { rule = \"a.test/x/y\", inspect = \"block\" }]\n",
    );
    let said = desk.call(&["policy", "show", "-p", "own.toml"]);
    assert!(
        said.stdout.contains("a.test/x/**  inspect = warn"),
        "{said:?}"
    );
    let said = desk.call(&["policy", "show", "-p", "own.toml", "--json"]);
    let shown: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(shown["rules"][0]["inspect"], Value::Null);
    assert_eq!(shown["rules"][1]["inspect"], "warn");
    for (path, mode) in [
        ("/", "block: "),
        ("/x/a", "warn: "),
        ("/x/y", "block: "),
        ("/x/Y", "block: "),
    ] {
        let said = desk.call(&["why", "-p", "own.toml", &format!("http://a.test{path}")]);
        assert_eq!(said.status, 0, "{said:?}");
        assert!(
            said.stdout.contains(&format!("scanned   {mode}")),
            "{path}: {said:?}"
        );
    }
    // Where TLS is never opened, a rule that asks for a scan allows nothing inside.
    desk.write(
        "never.toml",
        "extends = [\"./own.toml\"]\n[tls]\nintercept = \"never\"\n",
    );
    let said = desk.call(&["policy", "check", "never.toml"]);
    assert!(said.stderr.contains("take `inspect` out"), "{said:?}");
}

#[test]
fn of_what_is_turned_around_the_same_is_said_as_on_the_way_out() {
    let token = token(29);
    let reversed: String = token.chars().rev().collect();
    let moved: String = token.chars().map(rot13).collect();
    // One of a form without a checksum.
    let google = String::from_utf8(sample("AIza{b64u:35}", 5)).expect("letters");
    let google: String = google.chars().rev().collect();
    for (text, default) in [
        (&reversed, "refuse"),
        (&moved, "refuse"),
        (&google, "report"),
    ] {
        for (words, action) in [
            (&["--json"][..], default),
            (&["--json", "--strict"], "refuse"),
        ] {
            let said = scan_input(&Desk::new(), words, format!("a {text} b\n").as_bytes());
            let report: Value = serde_json::from_str(&said.stdout).expect("a document");
            assert_eq!(
                report["findings"][0]["action"], action,
                "{words:?} {said:?}"
            );
        }
    }
}

fn rot13(letter: char) -> char {
    let base = if letter.is_ascii_lowercase() {
        b'a'
    } else {
        b'A'
    };
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii_alphabetic() => char::from((byte - base + 13) % 26 + base),
        _ => letter,
    }
}
