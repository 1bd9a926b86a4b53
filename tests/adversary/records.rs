//! The record of decisions: complete, in order, without secrets, and a
//! condition for every effect.

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Witness, lab_tests};

lab_tests! {
    fn every_decision_is_recorded_with_who_asked(lab) {
        let origin = Origin::start(8080);
        let denied = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let file = lab.folder("audit", identity).join("audit.jsonl");
            let sandbox = || lab.sandbox(identity).option("--audit", &file.to_string_lossy()).allow("GET http://127.0.0.1:8080/ok");
            let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
            let (yes, no) = (request("/ok?token=visible"), request("/no?token=visible"));
            let outcome = sandbox().probe(&["fetch", "127.0.0.1", "8080", &yes, &no]);
            let all = records(&file);
            let requests = of_kind(&all, "request");
            let verdicts: Vec<&str> = requests.iter().map(|record| text(record, "verdict")).collect();
            assert_eq!(verdicts, ["allow", "deny"], "{identity:?} {all:?} {outcome}");
            for record in &requests {
                assert_eq!(text(record, "executable"), lab.tool("probe"), "a kernel fact: {record}");
                assert!(!text(record, "path").contains("visible"), "{record}");
            }
            assert_eq!(text(requests[1], "reason"), "no-rule");
            // In order, each naming the one before.
            for (at, pair) in all.windows(2).enumerate() {
                assert_eq!(pair[1]["seq"], at + 2, "{pair:?}");
                assert_eq!(text(&pair[1], "prev").len(), 64, "{pair:?}");
                assert_ne!(text(&pair[1], "prev"), text(&pair[0], "prev"), "{pair:?}");
            }
            std::fs::remove_file(&file).ok();
            let outcome = sandbox().probe(&["connect", &denied.address()]);
            let all = records(&file);
            let connects = of_kind(&all, "connect");
            assert!(connects.iter().any(|record| text(record, "verdict") == "deny"), "{all:?} {outcome}");
            std::fs::remove_file(&file).ok();
        }
        assert_eq!(origin.arrivals().len(), Identity::all().len());
    }

    fn without_a_record_there_is_no_effect(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("--audit", "/dev/full").allow("GET http://127.0.0.1:8080/ok");
            let text = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
            let outcome = sandbox.probe(&["fetch", "127.0.0.1", "8080", text]);
            assert_eq!(origin.arrivals(), [], "{identity:?} {outcome}");
        }
    }
}
