//! Programs of outgate that lie where the command may write: what it puts in
//! their place must not run in this run, unconfined.

use std::path::{Path, PathBuf};

use outgate_harness::{Identity, Lab, Sandbox, Witness, lab_tests};

use crate::REFUSED;

/// The programs that lie beside each other.
const PROGRAMS: [&str; 3] = ["outgate", "outgate-gateway", "outgate-report"];

/// Puts a script in the place of `name` that leaves a mark outside.
fn replacement(name: &str, mark: &str) -> String {
    format!(
        "printf '#!/bin/sh\\nid > {mark}\\n' > new && chmod 755 new && mv -f new {name} && echo replaced {name}"
    )
}

/// Copies of the programs in the working directory, which is writable.
fn beside_the_command(lab: &Lab, identity: Identity) -> (PathBuf, String) {
    let work = lab.folder("work", identity);
    copies(lab, identity, &work);
    let mark = lab.folder("outside", identity).join("mark");
    std::fs::remove_file(&mark).ok();
    (work, mark.to_string_lossy().into_owned())
}

/// Copies of the programs in a folder, all of this account.
fn copies(lab: &Lab, identity: Identity, work: &Path) {
    for name in PROGRAMS {
        std::fs::remove_file(work.join(name)).ok();
        std::fs::copy(lab.tools.programs.join(name), work.join(name)).expect("a copy");
    }
    let user = nix::unistd::Uid::from_raw(identity.uid());
    for name in PROGRAMS {
        nix::unistd::chown(&work.join(name), Some(user), None).expect("an owner");
    }
}

lab_tests! {
    fn a_replaced_gateway_never_runs(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let (work, mark) = beside_the_command(lab, identity);
            let script = format!("{}; {} connect {}", replacement("outgate-gateway", &mark), lab.tool("probe"), witness.address());
            let sandbox = lab.sandbox(identity).programs(work.clone());
            let outcome = sandbox.run(&["sh".into(), "-c".into(), script.clone()]);
            assert!(outcome.stdout.contains("replaced outgate-gateway"), "{identity:?} {outcome}");
            assert!(!Path::new(&mark).exists(), "{identity:?}: the replacement ran: {outcome}");
            assert!(REFUSED.contains(&outcome.errno(&witness.address()).as_str()), "{identity:?} {outcome}");
            witness.assert_untouched("a replaced gateway");
            // The connection was judged by the real one: it says so.
            assert!(outcome.stderr.contains("denied"), "{identity:?} {outcome}");
        }
    }

    fn a_replaced_launcher_cleans_nothing_up(lab) {
        for identity in Identity::all() {
            let (work, mark) = beside_the_command(lab, identity);
            let script = format!("{}; echo ready; sleep 30", replacement("outgate", &mark));
            let before = outgate_harness::leftovers::Before::new(vec![lab.folder("tmp", identity)]);
            let run = lab.sandbox(identity).programs(work.clone()).start(&["sh".into(), "-c".into(), script]);
            run.wait_for("ready");
            // The cleaner of a killed launcher is the program that was started.
            run.signal(nix::sys::signal::Signal::SIGKILL);
            run.finish();
            before.assert_all_gone();
            assert!(!Path::new(&mark).exists(), "{identity:?}: the replacement ran");
        }
    }

    fn programs_that_the_command_may_replace_are_pointed_out(lab) {
        for identity in Identity::all() {
            let (work, _) = beside_the_command(lab, identity);
            let run = |sandbox: Sandbox<'_>| sandbox.run(&["true".to_owned()]);
            let outcome = run(lab.sandbox(identity).programs(work));
            assert!(outcome.stderr.contains("outgate-gateway"), "{identity:?} {outcome}");
            // `outgate audit` becomes another program, later and unconfined.
            let apart = lab.folder("apart", identity);
            copies(lab, identity, &apart);
            let report = apart.join("outgate-report").to_string_lossy().into_owned();
            let outcome = run(lab.sandbox(identity).programs(apart).option("-w", &report));
            assert!(outcome.stderr.contains(&format!("may replace `{report}`")), "{identity:?} {outcome}");
            let outcome = run(lab.sandbox(identity));
            assert!(!outcome.stderr.contains("outgate-gateway"), "{identity:?} {outcome}");
            assert!(!outcome.stderr.contains("outgate-report"), "{identity:?} {outcome}");
        }
    }
}
