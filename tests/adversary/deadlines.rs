//! Wall time against a command that does not want to end: it stops itself, deaf to
//! what a polite launcher sends. Those that multiply are in `tests/storms`.

use std::time::Duration;

use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

/// Wall time 1 s and 5 s until everything is killed, and a busy machine.
const END_SECONDS_MAX: u64 = 14;

/// A sandbox whose time is over after a second.
fn short(lab: &Lab, identity: Identity) -> Sandbox<'_> {
    let policy = lab.directory.join("wall.toml");
    std::fs::write(&policy, "[limits]\nwall_time = \"1s\"\n").expect("a file");
    let sandbox = lab
        .sandbox(identity)
        .option("-p", &policy.to_string_lossy());
    sandbox.limit(Duration::from_secs(30))
}

/// Runs `script` and asserts that it and all it left end in time.
fn ends(sandbox: Sandbox<'_>, script: &str, what: &str) {
    let work = sandbox.work();
    let before = Before::new(Vec::new());
    let outcome = sandbox.run(&["bash".into(), "-c".into(), script.to_owned()]);
    let in_time = outcome.elapsed < Duration::from_secs(END_SECONDS_MAX);
    assert!(in_time && !outcome.held, "{what}: {outcome}");
    assert!(
        outcome.code.is_some_and(|code| code != 0),
        "{what}: {outcome}"
    );
    before.assert_all_gone();
    // What outlived it would have gone on counting.
    let ticks = std::fs::read_to_string(work.join("tick")).unwrap_or_default();
    let last = ticks.lines().count();
    assert!(last < 100, "{what}: {last} ticks");
    std::fs::remove_file(work.join("tick")).ok();
}

const STOPS: &str =
    "echo ready; (for i in $(seq 200); do echo $i >> tick; sleep 0.1; done) & kill -STOP $$";

lab_tests! {
    fn a_command_that_stops_itself_ends_in_time(lab) {
        for identity in Identity::all() {
            ends(short(lab, identity), STOPS, &format!("{identity:?}"));
            ends(short(lab, identity), &format!("trap '' TERM; {STOPS}; kill -STOP $$"), &format!("{identity:?} deaf"));
        }
    }

    fn a_command_that_stops_itself_in_a_terminal_ends_in_time(lab) {
        // There the launcher stops with it, as a shell expects of a job.
        let driver = lab.folder("given", Identity::Own).join("terminal.py");
        std::fs::write(&driver, include_str!("../programs/clients/terminal.py")).expect("the driver");
        for identity in Identity::all() {
            for script in [STOPS.to_owned(), format!("trap '' TERM; {STOPS}; kill -STOP $$; kill -STOP $$")] {
                let sandbox = short(lab, identity).wrap(&["/usr/bin/python3", &driver.to_string_lossy()]);
                // The end of input would hang the terminal up.
                let before = Before::new(Vec::new());
                let run = sandbox.with_input().start(&["bash".into(), "-c".into(), script.clone()]);
                run.wait_for("ready");
                assert!(run.child("outgate").is_some(), "it runs in the terminal");
                let gone = outgate_harness::eventually(Duration::from_secs(END_SECONDS_MAX), || run.child("outgate").is_none());
                assert!(gone, "{identity:?} {script}: {}", run.output());
                run.finish();
                before.assert_all_gone();
            }
        }
    }
}
