//! What a run that monitors may do behind a shared gateway: its own rules are let go, the
//! gateway's only where the gateway itself monitors.

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, audit, lab_tests};

use crate::gate::{Gate, Plan, curl};

const ABOVE: [&str; 8] = [
    "-a",
    "http://a.example:8080",
    "-d",
    "* */denied",
    "--resolve",
    "a.example=192.0.2.1",
    "--resolve",
    "b.example=192.0.2.2",
];

lab_tests! {
    fn the_ceiling_of_a_shared_gateway_holds_whatever_a_run_says(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&ABOVE));
        for identity in Identity::all() {
            for (options, url, code) in [
                (&["--monitor"][..], "http://a.example:8080/denied", "403"),
                (&["--monitor=all"], "http://a.example:8080/denied", "403"),
                (&["--monitor=all"], "http://b.example:8080/x", "403"),
                (&["--monitor=all", "-a=*"], "http://b.example:8080/x", "403"),
                // Its own rules are its own to let go.
                (&["-a=GET http://a.example:8080/own"], "http://a.example:8080/other", "403"),
                (&["--monitor", "-a=GET http://a.example:8080/own"], "http://a.example:8080/other", "200"),
                (&["--monitor", "-d=* */mine"], "http://a.example:8080/mine", "200"),
            ] {
                let mut run = gate.sandbox(lab, identity);
                for option in options {
                    run = run.flag(option);
                }
                let outcome = run.run(&curl(url, 20));
                assert!(outcome.stdout.starts_with(code), "{options:?} {url} {identity:?}: {outcome}");
            }
        }
        let lines: Vec<String> = origin.arrivals().iter().map(|one| one.line().to_owned()).collect();
        assert!(lines.iter().all(|line| line.contains("/other") || line.contains("/mine")), "{lines:?}");
        let records = gate.records();
        let marked = records.iter().filter(|one| audit::text(one, "monitor") == "deny" && audit::text(one, "kind") == "request");
        assert_eq!(marked.count(), 2 * Identity::all().len());
    }

    fn a_gateway_that_monitors_lets_its_own_rules_go_and_no_others(lab) {
        let origin = Origin::start(8080);
        let plan: Vec<&str> = ABOVE.iter().copied().chain(["--monitor"]).collect();
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&plan));
        for (options, url, code) in [
            (&[][..], "http://a.example:8080/denied", "200"),
            (&["-a=http://a.example:8080"], "http://a.example:8080/denied", "200"),
            (&["-a=http://a.example:8080/x"], "http://a.example:8080/denied", "403"),
            (&["-a=http://b.example:8080"], "http://b.example:8080/x", "200"),
            (&["-a=http://a.example:8080", "-d=* */mine"], "http://a.example:8080/mine", "403"),
        ] {
            let mut run = gate.sandbox(lab, Identity::Own);
            for option in options {
                run = run.flag(option);
            }
            let outcome = run.run(&curl(url, 20));
            assert!(outcome.stdout.starts_with(code), "{options:?} {url}: {outcome}");
        }
        assert!(origin.connections() > 0);
    }
}
