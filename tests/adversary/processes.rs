//! Reaching into processes outside: the launcher, the gateway, a sibling of the
//! same user. And the command's own disguises: daemons, memory files, set-user-id.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use nix::unistd::{Uid, chown};
use outgate_harness::attack::{check, leaks_bare, leaks_only_bare};
use outgate_harness::{Identity, Lab, Outcome, Witness, lab_tests};

use crate::REFUSED;

/// What the kernel answers to a process that may not reach another.
const OUT_OF_REACH: &[&str] = &[
    "EPERM", "EACCES", "ESRCH", "ENOENT", "ENOSYS", "ENXIO", "EIO", "EINVAL",
];

lab_tests! {
    fn row_30_no_other_process_can_be_traced_or_read(lab) {
        // Bare, a process of the same user is reached.
        let bare = bare(lab, "reach");
        assert_eq!(bare.errno("ptrace-seize-sibling"), "0", "{bare}");
        assert_eq!(bare.errno("pidfd-getfd-sibling"), "0", "{bare}");
        all_refused(lab, "reach", OUT_OF_REACH);
    }

    fn row_31_and_32_no_file_of_another_process_opens(lab) {
        let bare = bare(lab, "proc");
        assert_eq!(bare.errno("proc-environ-sibling"), "0", "{bare}");
        assert_eq!(bare.errno("proc-mem-sibling"), "0", "{bare}");
        all_refused(lab, "proc", OUT_OF_REACH);
    }

    fn row_33_no_other_process_can_be_signalled(lab) {
        all_refused(lab, "signal", &["EPERM", "ESRCH"]);
    }

    fn row_34_no_limit_of_another_process_can_be_set(lab) {
        let bare = bare(lab, "limit");
        assert_eq!(bare.errno("prlimit-nofile-sibling"), "0", "{bare}");
        all_refused(lab, "limit", &["EPERM", "EACCES"]);
    }

    fn row_46_a_daemon_stays_supervised(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        let probe = ["daemon", "300", &denied.address(), &allowed.address()];
        leaks_bare(lab, &denied, &probe);
        allowed.assert_leaked("bare");
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&probe);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            allowed.assert_leaked("the daemon's allowed connection");
            denied.assert_untouched("the daemon's denied connection");
        }
    }

    fn row_47_a_program_in_memory_is_confined(lab) {
        let witness = Witness::start(&lab.directory);
        let to = witness.address();
        leaks_only_bare(lab, &witness, &["again", "memfd", &to], &[(&to, REFUSED)]);
    }

    fn row_47_hiding_from_the_supervisor_gains_nothing(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        leaks_only_bare(lab, &denied, &["again", "undumpable", &denied.address()], &[("again", REFUSED)]);
        for identity in Identity::all() {
            // The call says it worked, and nothing changed: held calls go on.
            let rule = format!("tcp://{}", allowed.address());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&["again", "undumpable", &allowed.address()]);
            check(&outcome, &[("dumpable", &["0"]), ("again", &["0"])], &format!("{identity:?}"));
            allowed.assert_leaked("allowed");
        }
    }

    fn row_47_a_set_user_id_program_gains_nothing(lab) {
        let Some(identity) = Identity::all().into_iter().find(|&one| one == Identity::Nobody) else {
            return outgate_harness::skip("needs root to make a set-user-id program");
        };
        let witness = Witness::start(&lab.directory);
        let program = copy(lab, "set-user-id", 0o4755);
        let command = [program, "again".into(), "plain".into(), witness.address()];
        let bare = lab.start_bare(identity, &command).finish();
        assert!(bare.stdout.contains("effective=0"), "bare it becomes root: {bare}");
        witness.assert_leaked("set-user-id, bare");
        let outcome = lab.sandbox(identity).run(&command);
        assert!(outcome.stdout.contains("effective=65534"), "{outcome}");
        witness.assert_untouched("a set-user-id program");
    }

    fn row_47_an_unreadable_program_is_confined(lab) {
        let witness = Witness::start(&lab.directory);
        let program = copy(lab, "unreadable", 0o711);
        chown(program.as_str(), Some(Uid::from_raw(0)), None).ok();
        for identity in Identity::all() {
            let command = [program.clone(), "connect".into(), witness.address()];
            lab.start_bare(identity, &command).finish();
            witness.assert_leaked("unreadable, bare");
            let outcome = lab.sandbox(identity).run(&command);
            witness.assert_untouched("an unreadable program");
            assert!(outcome.code.is_some(), "it ends: {outcome}");
        }
    }

    fn row_55_every_kind_of_caller_is_judged(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        let expected = [("thread", REFUSED), ("fork", REFUSED), ("vfork", REFUSED)];
        leaks_only_bare(lab, &denied, &["callers", &denied.address()], &expected);
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&["callers", &allowed.address()]);
            let expected = ["thread", "fork", "vfork"].map(|name| (name, &["0"][..]));
            check(&outcome, &expected, &format!("{identity:?}"));
            allowed.assert_leaked("allowed");
        }
    }

    fn row_40_callers_that_die_while_held_do_no_harm(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let count = if outgate_harness::is_quick() { "100" } else { "1500" };
            let script = format!("{} vanish {} {count} && {} connect {}",
                lab.tool("probe"), denied.address(), lab.tool("probe"), allowed.address());
            let command = ["sh".into(), "-c".into(), script];
            let outcome = lab.sandbox(identity).allow(&rule).run(&command);
            denied.assert_untouched("callers that died");
            assert_eq!(outcome.errno(&allowed.address()), "0", "{identity:?} {outcome}");
            allowed.assert_leaked("after them");
        }
    }

    fn row_41_signals_at_1_khz_do_not_repeat_a_call(lab) {
        let origin = outgate_harness::origin::Origin::start(0);
        let to = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            for flags in ["restart", "interrupt"] {
                let before = origin.connections();
                let sandbox = lab.sandbox(identity).allow(&format!("tcp://{to}"));
                let outcome = sandbox.probe(&["ticking", &to, "2000", flags]);
                let (made, interrupted) = (outcome.number("made="), outcome.number("interrupted="));
                // A call that nobody took up yet may be interrupted, as always;
                // with SA_RESTART nobody notices.
                assert_eq!(made + interrupted, 2000, "{identity:?} {flags} {outcome}");
                assert!(interrupted == 0 || flags == "interrupt", "{identity:?} {outcome}");
                assert!(outcome.number("ticks=") > 20, "the signals came: {outcome}");
                // No call was made twice. One that was interrupted half way
                // goes on without its caller, as connect(2) says.
                let arrived = || i64::try_from(origin.connections() - before).unwrap_or(-1);
                outgate_harness::eventually(Duration::from_secs(5), || arrived() >= made);
                assert!((made..=made + interrupted).contains(&arrived()), "{} {outcome}", arrived());
            }
        }
    }

    fn row_57_nonsense_does_not_stop_the_supervisor(lab) {
        let allowed = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&["nonsense", "5000", &allowed.address()]);
            assert_eq!(outcome.errno("after-nonsense"), "0", "{identity:?} {outcome}");
            allowed.assert_leaked("after nonsense");
        }
    }
}

/// A copy of the probe with a mode of its own.
fn copy(lab: &Lab, name: &str, mode: u32) -> String {
    let path = lab.directory.join(name);
    std::fs::copy(lab.tool("probe"), &path).expect("a copy");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    path.to_string_lossy().into_owned()
}

/// The attack `what` on a sibling, without outgate.
fn bare(lab: &Lab, what: &str) -> Outcome {
    let sibling = lab.start_bare(Identity::Own, &lab.probe(&["victim"]));
    sibling.wait_for("ready");
    let mut attack = lab.start_bare(Identity::Own, &lab.probe(&["outsiders", what]));
    attack.wait_for("ready");
    attack.say(&format!("sibling {}\n", sibling.pid()));
    attack.finish()
}

/// The attack `what` on launcher, gateway and a sibling: every report must be a
/// refusal, and all three must live on.
fn all_refused(lab: &Lab, what: &str, errnos: &[&str]) {
    let allowed = Witness::start(&lab.directory);
    for identity in Identity::all() {
        let sibling = lab.start_bare(identity, &lab.probe(&["victim"]));
        sibling.wait_for("ready");
        let rule = format!("tcp://{}", allowed.address());
        let sandbox = lab.sandbox(identity).allow(&rule).with_input();
        let mut run = sandbox.start_probe(&["outsiders", what, &allowed.address()]);
        run.wait_for("ready");
        let (launcher, gateway) = (run.pid(), run.gateway());
        let guardian = run.child("outgate-guard").expect("a guardian");
        run.say(&format!(
            "launcher {launcher}\nguardian {guardian}\ngateway {gateway}\nsibling {}\n",
            sibling.pid()
        ));
        run.end_input();
        let outcome = run.finish();
        assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
        let reports = outcome.reports();
        assert!(reports.len() > 3, "{outcome}");
        for report in reports
            .iter()
            .filter(|report| report.name != "first-connect")
        {
            assert!(
                errnos.contains(&report.errno.as_str()),
                "{identity:?}: {report:?}\n{outcome}"
            );
        }
        assert!(sibling.output().contains("ready"));
        let sibling = sibling.finish();
        assert_eq!(sibling.code, Some(0), "the sibling was hit: {sibling}");
    }
}
