//! Turns on processors and disks: the command sets them for its own processes and
//! threads, and slows nobody else down, the launcher and the guardian least of all.

use outgate_harness::{Identity, Lab, Running, Witness, lab_tests};

/// What a process answers that is not the command's to set.
const REFUSED: &[&str] = &["EPERM", "EACCES", "ESRCH", "ENOENT", "ENOSYS", "EINVAL"];

/// Nice value and scheduling policy of a process, and its processors.
fn turn(pid: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, fields)| fields.split_whitespace().collect())
        .unwrap_or_default();
    // proc_pid_stat(5): the fields 19 and 41, of which the first here is the third.
    let (nice, policy) = (fields.get(16), fields.get(38));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let processors = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"));
    assert!(
        nice.is_some() && policy.is_some() && processors.is_some(),
        "{pid} is there"
    );
    format!("{nice:?} {policy:?} {processors:?}")
}

fn victim(lab: &Lab, identity: Identity) -> Running {
    let victim = lab.start_bare(identity, &lab.probe(&["victim"]));
    victim.wait_for("ready");
    victim
}

lab_tests! {
    fn nobody_outside_is_slowed_down(lab) {
        let bare = victim(lab, Identity::Own);
        let mut attack = lab.start_bare(Identity::Own, &lab.probe(&["turns"]));
        attack.wait_for("ready");
        let before = turn(bare.pid());
        attack.say(&format!("sibling {}\n", bare.pid()));
        let outcome = attack.finish();
        for call in ["setpriority", "sched_setaffinity", "sched_setscheduler", "ioprio_set"] {
            assert_eq!(outcome.errno(&format!("{call}-sibling")), "0", "{outcome}");
        }
        assert_ne!(turn(bare.pid()), before, "bare it is slowed down: {outcome}");
        bare.finish();
        let allowed = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let sibling = victim(lab, identity);
            let rule = format!("tcp://{}", allowed.address());
            let sandbox = lab.sandbox(identity).allow(&rule).with_input();
            let mut run = sandbox.start_probe(&["turns", &allowed.address()]);
            run.wait_for("ready");
            let guardian = run.child("outgate-guard").expect("a guardian");
            let all = [
                ("launcher", run.pid()),
                ("guardian", guardian),
                ("gateway", run.gateway()),
                ("sibling", sibling.pid()),
                ("first", 1),
            ];
            let before = all.map(|(_, pid)| turn(pid));
            for (who, pid) in all {
                run.say(&format!("{who} {pid}\n"));
            }
            run.end_input();
            // All answers are there before it ends, and all victims live on.
            run.wait_for("ioprio_set-user ");
            let outcome = run.finish();
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert!(outcome.reports().len() > 60, "{outcome}");
            for report in outcome.reports().iter().filter(|report| report.name != "first-connect") {
                assert!(REFUSED.contains(&report.errno.as_str()), "{identity:?}: {report:?}\n{outcome}");
            }
            assert_eq!(turn(sibling.pid()), before[3], "{identity:?}");
            assert_eq!(turn(1), before[4], "{identity:?}");
            sibling.finish();
        }
    }

    fn the_turns_of_the_launcher_and_the_guardian_stay(lab) {
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).with_input();
            let mut run = sandbox.start_probe(&["turns"]);
            run.wait_for("ready");
            let guardian = run.child("outgate-guard").expect("a guardian");
            let all = [run.pid(), guardian];
            let before = all.map(turn);
            for pid in all {
                run.say(&format!("{pid} {pid}\n"));
            }
            run.wait_for(&format!("ioprio_set-group-{guardian} "));
            assert_eq!(all.map(turn), before, "{identity:?} {}", run.output());
            run.end_input();
            run.finish();
        }
    }

    fn the_turns_of_its_own_are_the_commands(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["own-turns"]);
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert!(outcome.reports().len() > 32, "{outcome}");
            for report in outcome.reports() {
                assert_eq!(report.errno, "0", "{identity:?}: {report:?}\n{outcome}");
            }
            assert_eq!(outcome.number("nice="), 18, "{outcome}");
            assert_eq!(outcome.number("gone="), i64::from(nix::libc::ESRCH), "{outcome}");
        }
    }

    fn programs_that_set_turns_work(lab) {
        let script = "sleep 60 & \
            renice -n 5 -p $! && taskset -p 1 $! && ionice -c 3 -p $! && chrt -b -p 0 $! && \
            nice -n 3 taskset 1 chrt -i 0 ionice -c 3 true && echo all-set; kill $!";
        for identity in Identity::all() {
            let command = ["sh", "-c", script].map(str::to_owned);
            let outcome = lab.sandbox(identity).run(&command);
            assert!(outcome.stdout.contains("all-set"), "{identity:?} {outcome}");
        }
    }
}
