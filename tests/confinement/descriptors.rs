//! Descriptors that came from outside: none stays open but the three standard
//! ones, and those may not be sockets that can name a destination.

use outgate_harness::{Identity, Witness, lab_tests};

lab_tests! {
    fn row_44_nothing_is_inherited(lab) {
        let witness = Witness::start(&lab.directory);
        let port = witness.port().to_string();
        for identity in Identity::all() {
            // Descriptors 7, 8 and 9 are a socket, a directory and a listener.
            let stdio = lab.tool("stdio");
            let sandbox = lab.sandbox(identity).wrap(&[&stdio, "none", "127.0.0.1", &port]);
            let outcome = sandbox.allow("tcp://127.0.0.1:9").probe(&["descriptors"]);
            let open: Vec<&str> = outcome.stdout.lines().filter_map(|line| line.strip_prefix("descriptor ")).collect();
            assert!(open.iter().all(|line| ["0", "1", "2"].contains(&line.split(' ').next().unwrap_or_default())), "{identity:?} {outcome}");
            assert_eq!(open.len(), 3, "{outcome}");
        }
    }

    fn row_44_hostile_standard_input_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let port = witness.port().to_string();
        let stdio = lab.tool("stdio");
        for identity in Identity::all() {
            for kind in ["udp", "udp-open", "tcp-open"] {
                let sandbox = lab.sandbox(identity).wrap(&[&stdio, kind, "127.0.0.1", &port]).inherit_input();
                let outcome = sandbox.run(&["echo".to_owned(), "started".to_owned()]);
                assert_eq!(outcome.code, Some(125), "{identity:?} {kind} {outcome}");
                assert!(!outcome.stdout.contains("started"), "{kind} {outcome}");
                assert!(outcome.stderr.contains("standard input"), "{kind} {outcome}");
            }
            let sandbox = lab.sandbox(identity).wrap(&[&stdio, "tcp", "127.0.0.1", &port]).inherit_input();
            let outcome = sandbox.run(&["echo".to_owned(), "started".to_owned()]);
            assert_eq!(outcome.code, Some(0), "a connected stream is fine: {outcome}");
        }
        let bytes: usize = witness.sightings().iter().map(|seen| seen.bytes.len()).sum();
        assert_eq!(bytes, 0, "no byte came");
    }
}
