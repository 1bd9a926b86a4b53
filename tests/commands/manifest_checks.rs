//! `outgate policy check` and `test` of a manifest: what its commands name and expect is judged
//! as in policy files, for each of them.

use outgate_harness::{Identity, lab_tests};

use crate::manifests::Project;

/// Detectors and tests of all commands, of one, and in a file beside.
const MANIFEST: &str = r#"extends = ["./ci/own.toml"]
deny = ["* */admin/**"]
[[inspect.detector]]
id = "mycorp-token"
pattern = "mycorp_[0-9A-Za-z]{24}"
issuers = ["*.corp.example"]
[[test]]
request = "http://a.example/admin/x"
expect = "deny"
[run.deps]
command = ["true"]
allow = ["http://a.example"]
[[run.deps.inspect.detector]]
id = "iban"
mode = "block"
[[run.deps.test]]
request = "http://a.example/x"
expect = "allow"
[run.test]
command = ["true"]
"#;

const BESIDE: &str = "[[inspect.detector]]\nid = \"payment-card\"\nmode = \"warn\"\n";

lab_tests! {
    fn detectors_and_tests_of_a_manifest_are_judged_for_each_command(lab) {
        let project = Project::new(lab, Identity::Own, "checked");
        project.folder("src/p/ci");
        let beside = |text: &str| project.write("ci/own.toml", text);
        let check = |text: &str| {
            project.write("outgate.toml", text);
            project.call(&["policy", "check", "outgate.toml"])
        };
        beside(BESIDE);
        let said = check(MANIFEST);
        assert_eq!((said.status, &*said.stderr), (0, ""), "{said:?}");
        assert_eq!(said.stdout, "outgate.toml: ok, 2 commands, 3 tests, no warnings\n");
        for (from, to, says) in [
            ("\"iban\"", "\"ibam\"", "outgate.toml:14:7: no detector `ibam`"),
            ("{24}", "+", "outgate.toml:5:12: detector `mycorp-token`: the pattern has no longest match"),
            ("expect = \"allow\"", "expect = \"maybe\"", "outgate.toml:18:11: `maybe` is no value of `expect`"),
            ("request = \"http://a.example/admin/x\"", "request = \"a.example\"", "outgate.toml:8:12: `a.example` has no scheme"),
        ] {
            let said = check(&MANIFEST.replacen(from, to, 1));
            assert_eq!((said.status, &*said.stdout), (2, ""), "{to}: {said:?}");
            assert!(said.stderr.starts_with("outgate: "), "{said:?}");
            assert_eq!(said.stderr.matches(says).count(), 1, "{to}: {said:?}");
        }
        // In a file that the manifest extends, and from elsewhere.
        beside(&BESIDE.replace("payment-card", "payment-cart"));
        let said = check(MANIFEST);
        assert!(said.status == 2 && said.stderr.contains("ci/own.toml:2:7: no detector `payment-cart`"), "{said:?}");
        beside(BESIDE);
        let deep = project.directory.join("deep");
        let said = project.call_in(&deep, &["policy", "check", "../outgate.toml"]);
        assert_eq!((said.status, &*said.stdout), (0, "../outgate.toml: ok, 2 commands, 3 tests, no warnings\n"), "{said:?}");
        // They are run as well, each by the policy of its command.
        let said = project.call(&["policy", "test", "outgate.toml"]);
        assert_eq!((said.status, &*said.stdout), (0, "3 tests hold\n"), "{said:?}");
        project.write("outgate.toml", &MANIFEST.replace("* */admin/**", "* */other/**"));
        let said = project.call(&["policy", "test", "outgate.toml"]);
        assert_eq!(said.status, 1, "{said:?}");
        let wanted = "outgate.toml:8:12: GET http://a.example/admin/x (`deps`): expected deny, is allowed by";
        assert!(said.stdout.contains(wanted) && said.stdout.ends_with("1 of 3 tests failed\n"), "{said:?}");
        // Nothing was accepted by that.
        let said = project.call(&["up", "deps"]);
        assert_ne!(said.status, 0, "{said:?}");
    }
}
