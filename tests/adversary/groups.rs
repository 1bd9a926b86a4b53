//! Process groups, by which a kernel sends signals past Landlock, and the names of the standard
//! streams, which lead to whatever the caller opened.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outgate_harness::{Identity, Lab, Outcome, lab_tests};

/// What is tried, and how.
const TRIED: &str = include_str!("groups.py");

/// A shell's line in a session of its own, without a terminal, as a job of CI has it. `$OUTGATE`
/// is the program, `$TRIED` what Python runs.
fn session(lab: &Lab, identity: Identity, line: &str) -> Outcome {
    let outgate = lab.tools.programs.join("outgate");
    let words = [
        "env".to_owned(),
        format!("OUTGATE={}", outgate.display()),
        format!("HOME={}", lab.folder("home", identity).display()),
        format!("TRIED={TRIED}"),
        "setsid".to_owned(),
        "-w".to_owned(),
        "bash".to_owned(),
        "-c".to_owned(),
        line.to_owned(),
    ];
    lab.start_bare(identity, &words).finish()
}

fn reports(outcome: &Outcome) -> BTreeMap<&str, &str> {
    let lines = outcome.stdout.lines();
    lines.filter_map(|line| line.split_once('=')).collect()
}

/// A file with a secret that no grant covers, to which others append.
fn log(lab: &Lab, identity: Identity) -> std::path::PathBuf {
    let folder = lab.folder("elsewhere", identity);
    let log = folder.join("log");
    fs::write(&log, "AN-EARLIER-SECRET\n").expect("a file");
    if identity != Identity::Own {
        let user = Some(nix::unistd::Uid::from_raw(identity.uid()));
        nix::unistd::chown(&log, user, None).expect("its owner");
    }
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).expect("its mode");
    log
}

lab_tests! {
    fn no_command_joins_a_job_outside(lab) {
        // A job in a group of its own, in the session of the run.
        let line = |run: &str| format!("set -m; sleep 60 & job=$!; set +m; {run} python3 -c \"$TRIED\" join $job; kill $job");
        for identity in Identity::all() {
            let bare = session(lab, identity, &line(""));
            assert_eq!(reports(&bare).get("outside"), Some(&"0"), "{bare}");
            let inside = session(lab, identity, &line("$OUTGATE run --"));
            let said = reports(&inside);
            assert_eq!(said.get("outside"), Some(&"EPERM"), "{identity:?} {inside}");
            // What shells do with jobs of their own.
            for own in ["own", "of-a-child", "beside-a-child", "back"] {
                assert_eq!(said.get(own), Some(&"0"), "{identity:?} {own} {inside}");
            }
            let gone = "whose-leader-is-gone";
            assert_eq!(said.get(gone), reports(&bare).get(gone), "{identity:?} {inside}");
        }
    }

    fn no_command_hangs_up_who_started_it(lab) {
        let line = |run: &str| format!("sleep 30 & helper=$!; {run} python3 -c \"$TRIED\" hang-up; echo status=$?; kill $helper && echo helper=0");
        for identity in Identity::all() {
            let bare = session(lab, identity, &line(""));
            assert!(!bare.stdout.contains("status="), "bare it is hung up: {bare}");
            let inside = session(lab, identity, &line("$OUTGATE run --"));
            let said = reports(&inside);
            assert!(inside.stdout.contains("tried"), "{identity:?} {inside}");
            assert_eq!(said.get("status"), Some(&"0"), "{identity:?} {inside}");
            assert_eq!(said.get("helper"), Some(&"0"), "{identity:?} {inside}");
        }
    }

    fn what_is_appended_to_is_not_read_by_the_name_of_the_stream(lab) {
        for identity in Identity::all() {
            let log = log(lab, identity);
            let log = log.display();
            let reads = format!("exec 4>&1; for name in {log} /proc/self/fd/4 /dev/fd/4; do cat $name; done > copy 2> errors");
            let run = format!("$OUTGATE run -- sh -c '{reads}' >> {log}; cat copy");
            let outcome = session(lab, identity, &run);
            assert!(!outcome.stdout.contains("AN-EARLIER-SECRET"), "{identity:?} {outcome}");
            let run = format!("$OUTGATE run -- sh -c 'cat {log} /dev/stderr > copy' 2>> {log}; cat copy");
            let outcome = session(lab, identity, &run);
            assert!(!outcome.stdout.contains("AN-EARLIER-SECRET"), "{identity:?} {outcome}");
            // A directory opens nothing below it.
            let folder = lab.folder("elsewhere", identity);
            let run = format!("$OUTGATE run -- sh -c 'cat /dev/stdin/log {log} {}/log' < {}; true", folder.display(), folder.display());
            let outcome = session(lab, identity, &run);
            assert!(!outcome.stdout.contains("AN-EARLIER-SECRET"), "{identity:?} {outcome}");
            // What was opened for reading is read by its name, and what is written to, written.
            let run = format!("$OUTGATE run -- sh -c 'cat /dev/stdin' < {log}; $OUTGATE run -- sh -c 'echo by-name > /dev/stderr' 2>&1 | cat");
            let outcome = session(lab, identity, &run);
            assert!(outcome.stdout.contains("AN-EARLIER-SECRET"), "{identity:?} {outcome}");
            assert!(outcome.stdout.contains("by-name"), "{identity:?} {outcome}");
        }
    }

    fn who_has_no_terminal_for_its_streams_opens_none(lab) {
        let outgate = lab.tools.programs.join("outgate");
        let outgate = outgate.display();
        let asks = "sh -c '(exec 3< /dev/tty) && echo OPENED > told || echo CLOSED > told'";
        for identity in Identity::all() {
            for (streams, expected) in [("</dev/null >/dev/null 2>&1", "CLOSED"), ("</dev/null >/dev/null", "OPENED")] {
                let line = format!("{outgate} run -- {asks} {streams}");
                let words = ["script", "-qec", &line, "/dev/null"].map(str::to_owned);
                let outcome = lab.start_bare(identity, &words).finish();
                let told = fs::read_to_string(lab.folder("work", identity).join("told")).unwrap_or_default();
                assert_eq!(told.trim(), expected, "{identity:?} {streams} {outcome}");
            }
        }
    }
}
