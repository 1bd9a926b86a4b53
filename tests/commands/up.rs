//! Which command `outgate up` runs, and of which manifest an acceptance is taken back.

use outgate_harness::{Identity, lab_tests};

use crate::manifests::Project;

lab_tests! {
    fn nothing_but_the_command_of_the_manifest_runs_by_its_name(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "named");
            own.write("outgate.toml", "[run.t]\ncommand = [\"echo\", \"its own\"]\n");
            for words in [&["up", "t", "echo", "another"][..], &["up", "t", "--sealed", "echo", "--", "x"]] {
                let said = own.call(words);
                assert_eq!((said.status, said.stdout.as_str()), (2, ""), "{words:?}: {said:?}");
                assert!(said.stderr.contains("behind `--`"), "{said:?}");
            }
            // Arguments alone are for the only command.
            let said = own.call(&["up", "--", "-k", "--", "x"]);
            assert_eq!((said.status, said.stdout.as_str()), (0, "its own -k -- x\n"), "{said:?}");
        }
    }

    fn nothing_is_made_by_a_link_that_lies_where_the_command_writes(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "made");
            let outside = own.directory.join("../../out");
            std::os::unix::fs::symlink(&outside, own.directory.join("link")).expect("a link");
            own.write(
                "outgate.toml",
                "[run.t]\ncommand = [\"true\"]\n[run.t.filesystem]\n\
                 new = { \"./link/planted\" = \"text\", \"./plain/planted\" = \"text\" }\n",
            );
            let said = own.call(&["trust", "--yes"]);
            assert_eq!(said.status, 0, "{said:?}");
            let said = own.call(&["up", "t"]);
            assert!(!outside.join("planted").exists(), "{said:?}");
        }
    }

    fn an_acceptance_is_taken_back_of_the_directory_that_is_named(lab) {
        let own = Project::new(lab, Identity::Own, "revoked");
        let text = "allow = [\"a.example\"]\n[run.t]\ncommand = [\"true\"]\n";
        own.write("outgate.toml", text);
        let below = own.write("deep/outgate.toml", text);
        for place in [".", "deep"] {
            let said = own.call(&["trust", place, "--yes"]);
            assert_eq!(said.status, 0, "{said:?}");
        }
        std::fs::remove_file(&below).expect("it was there");
        let said = own.call(&["trust", "--revoke", "deep"]);
        assert_eq!(said.status, 0, "{said:?}");
        let left = own.call(&["trust", "--list"]).stdout;
        assert!(!left.contains("deep") && left.contains("outgate.toml"), "{left}");
        own.write("deep/outgate.toml", text);
        let said = own.call_in(&own.directory.join("deep"), &["up", "t"]);
        assert_eq!(said.status, 2, "nobody accepts it any more: {said:?}");
    }
}
