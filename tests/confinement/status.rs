//! Exit codes, signals and standard streams: as if the command ran unwrapped.

use std::time::Duration;

use nix::sys::signal::Signal;
use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{shell, words};

lab_tests! {
    fn the_commands_exit_code_is_passed_on(lab) {
        for identity in Identity::all() {
            for code in [0, 1, 7, 125, 126, 127, 255] {
                let outcome = Sandbox::plain(lab, identity).run(&shell(&format!("exit {code}")));
                assert_eq!(outcome.code, Some(code), "{identity:?} {outcome}");
                assert_eq!(outcome.stderr, "", "nothing to say: {outcome}");
            }
        }
    }

    fn a_signal_that_ends_the_command_is_shown_as_a_shell_does(lab) {
        for identity in Identity::all() {
            // 34 and 64 are the first and the last real-time signal.
            let signals = [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("USR1", 10), ("PIPE", 13), ("34", 34), ("64", 64)];
            for (name, number) in signals {
                let outcome = lab.sandbox(identity).run(&shell(&format!("kill -{name} $$")));
                assert_eq!(outcome.code, Some(128 + number), "{identity:?} {outcome}");
            }
        }
    }

    fn a_command_that_is_not_there_is_127_and_one_that_cannot_run_126(lab) {
        for identity in Identity::all() {
            let missing = lab.sandbox(identity).run(&words(&["outgate-no-such-command"]));
            assert_eq!(missing.code, Some(127), "{missing}");
            assert!(missing.stderr.contains("outgate-no-such-command"), "{missing}");
            let missing = lab.sandbox(identity).run(&words(&["/nowhere/at/all"]));
            assert_eq!(missing.code, Some(127), "{missing}");
            let missing = lab.sandbox(identity).run(&words(&[""]));
            assert_eq!(missing.code, Some(127), "{missing}");
            let refused = lab.sandbox(identity).run(&words(&["/etc/passwd"]));
            assert_eq!(refused.code, Some(126), "{refused}");
            let folder = lab.sandbox(identity).run(&words(&["/etc"]));
            assert_eq!(folder.code, Some(126), "{folder}");
        }
    }

    fn usage_errors_are_2_and_name_the_place(lab) {
        for identity in Identity::all() {
            for rule in ["GET http://", "*.com", "http://a b/", "unknown://x", "tcp://host.example"] {
                let outcome = lab.sandbox(identity).allow(rule).run(&words(&["true"]));
                assert_eq!(outcome.code, Some(2), "{rule} {outcome}");
                assert!(outcome.stderr.contains("-a"), "it names the option: {outcome}");
                assert!(outcome.stdout.is_empty(), "{outcome}");
            }
            let outcome = lab.sandbox(identity).flag("--no-such-flag").run(&words(&["true"]));
            assert_eq!(outcome.code, Some(2), "{outcome}");
            let outcome = lab.sandbox(identity).option("-p", "/nowhere.toml").run(&words(&["true"]));
            assert_eq!(outcome.code, Some(2), "{outcome}");
        }
    }

    fn what_no_policy_can_say_is_refused(lab) {
        let policy = lab.directory.join("more.toml");
        for identity in Identity::all() {
            std::fs::write(&policy, "monitor = true").expect("a file");
            let outcome = lab.sandbox(identity).option("-p", &policy.to_string_lossy()).run(&words(&["true"]));
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(outcome.stderr.contains("only who starts a run can say"), "{outcome}");
        }
    }

    fn a_place_for_temporary_files_is_named_when_there_is_none_and_absolute_when_there_is(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).environment("TMPDIR", "/no/such/place").run(&words(&["true"]));
            assert_eq!(outcome.code, Some(125), "{outcome}");
            assert!(outcome.stderr.contains("/no/such/place"), "{outcome}");
            let script = "cd /; touch $TMPDIR/file && case $TMPDIR in /*) echo absolute;; esac";
            let outcome = Sandbox::plain(lab, identity).environment("TMPDIR", ".").run(&shell(script));
            assert_eq!(outcome.stdout, "absolute\n", "{identity:?} {outcome}");
        }
    }

    fn a_working_directory_that_no_policy_can_name_is_refused(lab) {
        let script = "d=$(printf 'w\\377'); mkdir -p \"$d\" && cd \"$d\" && exec \"$@\"";
        for identity in Identity::all() {
            let outcome = Sandbox::plain(lab, identity).wrap(&["sh", "-c", script, "sh"]).run(&words(&["true"]));
            assert_eq!(outcome.code, Some(125), "{identity:?} {outcome}");
            assert!(outcome.stderr.contains("UTF-8"), "{outcome}");
        }
    }

    fn a_policy_without_the_system_says_so(lab) {
        for identity in Identity::all() {
            let sandbox = Sandbox::plain(lab, identity).option("-P", "none").option("-w", ".");
            let outcome = sandbox.run(&words(&["true"]));
            assert_eq!(outcome.code, Some(126), "{outcome}");
            assert!(outcome.stderr.contains("-P base"), "{outcome}");
        }
    }

    fn signals_to_the_launcher_reach_the_command(lab) {
        for identity in Identity::all() {
            for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
                let script = format!("trap 'echo caught; exit 9' {}; echo ready; while :; do read -t 1 x || :; done", signal.as_str().trim_start_matches("SIG"));
                let run = lab.sandbox(identity).with_input().start(&words(&["bash", "-c", &script]));
                run.wait_for("ready");
                run.signal(signal);
                run.wait_for("caught");
                let outcome = run.finish();
                assert_eq!(outcome.code, Some(9), "{identity:?} {signal} {outcome}");
            }
        }
    }

    fn standard_streams_pass_unchanged(lab) {
        for identity in Identity::all() {
            let mut run = Sandbox::plain(lab, identity).with_input().start(&shell("cat; echo err >&2"));
            let text = "line\u{0}\u{1b}[0m ü\n".repeat(5000);
            run.say(&text);
            run.end_input();
            let outcome = run.finish();
            assert!(outcome.stdout == text, "{} of {} bytes", outcome.stdout.len(), text.len());
            assert_eq!(outcome.stderr, "err\n");
        }
    }

    fn a_wall_time_ends_the_run(lab) {
        let policy = lab.directory.join("wall.toml");
        std::fs::write(&policy, "[limits]\nwall_time = \"1s\"\n").expect("a file");
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("-p", &policy.to_string_lossy());
            let outcome = sandbox.limit(Duration::from_secs(20)).run(&words(&["sleep", "15"]));
            assert!(outcome.code.is_some_and(|code| code != 0), "{outcome}");
            assert!(outcome.elapsed < Duration::from_secs(10), "{outcome}");
        }
    }

    fn nothing_denied_means_nothing_said(lab) {
        for identity in Identity::all() {
            let outcome = Sandbox::plain(lab, identity).run(&shell("echo hello"));
            assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("hello\n", ""));
        }
    }
}
