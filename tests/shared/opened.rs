//! TLS that a shared gateway opens: each run has an authority of its own, which
//! nobody else's commands trust.

use std::fs;

use outgate_harness::{Identity, lab_tests};

use crate::gate::{Gate, Plan, shell};

/// The last certificate of the bundle that a command is given.
const LAST: &str = r#"awk '/BEGIN CERT/ { last = "" } { last = last $0 "\n" } END { printf "%s", last }' "$SSL_CERT_FILE""#;

lab_tests! {
    fn no_run_trusts_the_authority_of_another(lab) {
        let rules = ["-a", "GET https://a.example/x", "--resolve", "a.example=192.0.2.1"];
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&rules));
        let mut met: Vec<String> = Vec::new();
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            for _ in 0..2 {
                let outcome = gate.sandbox(lab, identity).run(&shell(LAST));
                let own = outcome.stdout.clone();
                assert!(own.starts_with("-----BEGIN CERTIFICATE-----"), "{outcome}");
                assert!(!met.contains(&own), "an authority for every run: {outcome}");
                met.push(own);
            }
            // A command of one that trusts the authority of each of the others.
            fs::write(work.join("others.pem"), met.concat()).expect("a bundle");
            let ask = "curl -sS --max-time 20 -o /dev/null -w '%{http_code} ' https://denied.example/";
            let script = format!("{ask}; {ask} --cacert others.pem; echo $?");
            let outcome = gate.sandbox(lab, identity).run(&shell(&script));
            assert_eq!(outcome.stdout.trim(), "403 000 60", "{outcome}");
        }
        let outcome = gate.end();
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
}
