//! Clients that send credentials where their own configuration has them sent: the
//! scan knows whose they are. Without that configuration, and towards anybody
//! else, the same tokens are refused.

use std::fs;

use outgate_harness::lab_tests;

use crate::packages::{PIP, publish};
use crate::scenario::{Run, assert_denied};
use crate::stage::Stage;

/// In the form of a vendor, with the right sum, and issued by nobody.
const TOKEN: &str = "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";
/// Of no form.
const PASSWORD: &str = "kV8pq2Lm-zR41x_Qw7Tz9uYb3";

/// What a user keeps: for clients, and for the scan.
fn files() -> [(&'static str, String); 2] {
    [
        (
            ".npmrc",
            format!("//npm.example/:_authToken={TOKEN}\nregistry=http://npm.example/\n"),
        ),
        (
            ".netrc",
            format!(
                "machine pypi.example login me password {PASSWORD}\n\
                 machine live.example login me password {PASSWORD}\n\
                 machine crates.example login me password {PASSWORD}\n"
            ),
        ),
    ]
}

/// A use of a client, the rule for it, and what it shows when it worked.
const USES: [(&str, &str, &str); 4] = [
    (
        "echo '{}' > package.json; npm install --no-audit --no-fund --no-update-notifier demo-pkg && node -e 'require(\"demo-pkg\")'",
        "GET http://npm.example",
        "from-the-real-origin",
    ),
    (
        "PIP --target here demo-pkg && PYTHONPATH=here python3 -m demo_pkg",
        "GET http://pypi.example",
        "from-the-real-origin",
    ),
    (
        "git -c http.extraHeader=\"Authorization: Basic $(printf 'me:%s' \"$PASSWORD\" | base64 -w0)\" clone -q http://live.example/git/project.git here && cat here/file",
        "GET,POST http://live.example",
        "first line",
    ),
    (
        "curl -sSn http://crates.example/index/config.json",
        "GET http://crates.example",
        "dl",
    ),
];

lab_tests! {
    fn tokens_go_where_their_owner_configured_them(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["gem", "dpkg-deb", "node"]) else { return };
        publish(&stage);
        crate::versions::publish(&stage);
        let home = lab.folder("home", stage.identity);
        for (name, text) in files() {
            fs::write(home.join(name), text).expect("a file");
        }
        // The clients find the same at home.
        let setup = files()
            .map(|(name, text)| format!("printf '%s' '{text}' > {name}; chmod 600 {name}; "))
            .concat();
        for (script, rule, shows) in USES {
            let script = format!("{setup} PASSWORD='{PASSWORD}'; {}", script.replace("PIP", PIP));
            let run = Run::make(&stage, stage.allowing(&[rule]), &script);
            assert_eq!(run.outcome.code, Some(0), "{rule}: {run}");
            assert!(run.outcome.stdout.contains(shows), "{rule}: {run}");
            assert_eq!(run.outcome.stderr, "", "no complaint: {rule}: {run}");
            assert_ne!(stage.seen().requests, [""; 0], "{rule}");
        }
        // Elsewhere they are refused, whatever the command's own files say.
        for value in [TOKEN, PASSWORD] {
            let script = format!(
                "printf '%s' 'machine site.example login me password {value}' > .netrc; curl -sSn http://site.example/hello"
            );
            let run = Run::make(&stage, stage.allowing(&["http://site.example"]), &script);
            assert_denied(&mut stage, &run, "site.example", &format!("{run}"));
        }
        for (name, _) in files() {
            fs::remove_file(home.join(name)).expect("a file");
        }
        // Without them nobody knows whose the token is.
        let run = Run::make(
            &stage,
            stage.allowing(&["GET http://npm.example"]),
            &format!("curl -sS -H 'Authorization: Bearer {TOKEN}' http://npm.example/demo-pkg"),
        );
        assert_denied(&mut stage, &run, "npm.example", &format!("{run}"));
    }
}
