//! The gateway stopped, killed and started again under running commands:
//! nothing leaves that nobody decided, and commands go on once it is back.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Running, Witness, eventually, is_quick, lab_tests};

use crate::gate::{Gate, Plan, curl, shell};

fn rounds() -> usize {
    if is_quick() { 6 } else { 24 }
}

lab_tests! {
    fn commands_survive_a_gateway_that_dies_again_and_again(lab) {
        let origin = Origin::start(8080);
        // What no rule allows: anything that arrives there was not decided.
        let witness = Witness::start(&lab.directory);
        let port = witness.address().rsplit(':').next().expect("a port").to_owned();
        let plan = Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
            "--resolve", "w.example=192.0.2.9",
        ]);
        let mut gate = Gate::start(lab, Identity::Own, &plan);
        let stop = lab.directory.join("stop");
        let runs: Vec<Running> = Identity::all()
            .into_iter()
            .chain([Identity::Own])
            .enumerate()
            .map(|(number, identity)| {
                let script = format!(
                    "while [ ! -e {} ]; do \
                     curl -s -m 20 -o /dev/null http://a.example:8080/{number}; \
                     curl -s -m 20 -o /dev/null http://w.example:{port}/; \
                     curl -s -m 20 -o /dev/null http://192.0.2.9:{port}/; \
                     curl -s -m 20 -o /dev/null telnet://127.0.0.1:{port} </dev/null; \
                     done; echo over",
                    stop.display()
                );
                gate.sandbox(lab, identity).limit(Duration::from_secs(200)).start(&shell(&script))
            })
            .collect();
        let arrived = |number: usize| {
            let line = format!("GET /{number} ");
            origin.arrivals().iter().filter(|arrival| arrival.line().starts_with(&line)).count()
        };
        for round in 0..rounds() {
            let before: Vec<usize> = (0..runs.len()).map(arrived).collect();
            let goes_on = eventually(Duration::from_secs(40), || {
                before.iter().enumerate().all(|(number, before)| arrived(number) > *before)
            });
            let said: Vec<String> = runs.iter().map(Running::errors).collect();
            assert!(goes_on, "round {round}: {before:?} {said:?}");
            let (front, server) = (gate.front(), gate.server());
            match round % 3 {
                0 => kill(server, Signal::SIGKILL).expect("it serves"),
                1 => kill(front, Signal::SIGKILL).expect("it is there"),
                _ => kill(front, Signal::SIGTERM).expect("it is there"),
            }
            gate.finish();
            // While nobody listens nothing moves.
            gate = Gate::start(lab, Identity::Own, &plan);
        }
        std::fs::write(&stop, "").expect("a file");
        for run in runs {
            let outcome = run.finish();
            assert!(outcome.stdout.contains("over"), "{outcome}");
            assert!(outcome.stderr.contains("the gateway is gone"), "{outcome}");
            assert!(outcome.stderr.contains("until it is back"), "{outcome}");
        }
        witness.assert_untouched("while gateways died");
    }

    fn without_its_gateway_a_run_is_refused_at_once(lab) {
        let origin = Origin::start(8080);
        let plan = Plan::new(&["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"]);
        let gate = Gate::start(lab, Identity::Own, &plan);
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .with_input()
            .start(&shell("while read go; do curl -sS -m 20 -w '%{http_code}\\n' -o /dev/null http://a.example:8080/ 2>&1; echo done $go; done"));
        run.say("1\n");
        assert!(run.wait_for("done 1").contains("200"));
        kill(gate.server(), Signal::SIGKILL).expect("it serves");
        let ended = gate.finish();
        assert_eq!(ended.code, Some(125), "{ended}");
        run.say("2\n");
        let said = run.wait_for("done 2");
        assert_eq!(said.matches("200").count(), 1, "{said}");
        let arrived = origin.arrivals().len();
        assert_eq!(arrived, 1);
        let gate = Gate::start(lab, Identity::Own, &plan);
        // The launcher looks by itself, too.
        let mut turn = 2;
        let back = eventually(Duration::from_secs(20), || {
            turn += 1;
            run.say(&format!("{turn}\n"));
            run.wait_for(&format!("done {turn}")).matches("200").count() > 1
        });
        assert!(back, "{} {}", run.output(), run.errors());
        let outcome = run.finish();
        assert!(outcome.stderr.contains("until it is back"), "{outcome}");
        gate.end();
    }

    fn a_stopped_gateway_is_not_waited_for(lab) {
        let _origin = Origin::start(8080);
        let plan = Plan::new(&["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"]);
        let gate = Gate::start(lab, Identity::Own, &plan);
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .with_input()
            .start(&shell("echo here; read go; curl -sS -m 60 http://a.example:8080/; echo curl $?"));
        run.wait_for("here");
        kill(gate.server(), Signal::SIGSTOP).expect("it serves");
        run.say("go\n");
        let outcome = gate.sandbox(lab, Identity::Own).run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("did not answer"), "{outcome}");
        let outcome = run.finish();
        assert!(outcome.elapsed < Duration::from_secs(55), "{outcome}");
        assert!(!outcome.stdout.contains("curl 0"), "{outcome}");
        kill(gate.server(), Signal::SIGCONT).expect("it is there");
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        assert_eq!(gate.end().code, Some(0));
    }

    fn its_end_in_order_ends_flows_and_closes_the_record(lab) {
        let _origin = Origin::start(8080);
        let plan = Plan::new(&["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"]);
        let gate = Gate::start(lab, Identity::Own, &plan);
        let run = gate.sandbox(lab, Identity::Own).option("--name", "held").start(&crate::gate::python(
            "import socket\ns=socket.create_connection(('a.example',8080))\n\
             s.sendall(b'GET / HTTP/1.1\\r\\nHost: a.example:8080\\r\\n\\r\\n')\n\
             s.recv(1000); print('open',flush=True)\n\
             while s.recv(1000): pass\n\
             print('closed')",
        ));
        run.wait_for("open");
        let record = gate.record.clone();
        assert_eq!(gate.end().code, Some(0));
        let outcome = run.finish();
        assert!(outcome.stdout.contains("closed"), "{outcome}");
        let records = outgate_harness::audit::records(&record);
        crate::gate::assert_chained(&records);
        let last = records.last().expect("a record");
        assert_eq!((&last["kind"], &last["session"]), (&"finish".into(), &0.into()), "{last}");
        let held = records.iter().filter(|record| record["sandbox"] == "held");
        let kinds: Vec<String> = held.map(|record| record["kind"].to_string()).collect();
        assert!(kinds.contains(&"\"flow\"".to_owned()), "{kinds:?}");
        assert_eq!(kinds.last().map(String::as_str), Some("\"finish\""), "{kinds:?}");
    }
}
