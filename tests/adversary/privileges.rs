//! Other doors: rings, namespaces, foreign architectures, filters on top of
//! ours, terminals, and calls no command needs.

use outgate_harness::attack::{check, leaks_bare, leaks_only_bare};
use outgate_harness::{Identity, Witness, lab_tests};

use crate::REFUSED;

/// SIGSYS as a shell shows it: the filter killed the process.
const KILLED: i32 = 128 + 31;

lab_tests! {
    fn row_29_io_uring_does_not_exist(lab) {
        let witness = Witness::start(&lab.directory);
        let expected = ["ring-setup", "ring-enter", "ring-register"].map(|name| (name, &["ENOSYS"][..]));
        leaks_only_bare(lab, &witness, &["ring", &witness.address()], &expected);
    }

    fn row_35_no_namespace_is_made_or_entered(lab) {
        let bare = lab.bare(Identity::Own, &["namespaces"]);
        for name in ["unshare-user", "unshare-net", "clone3-user-net", "setns-net"] {
            assert_eq!(bare.errno(name), "0", "bare it works: {bare}");
        }
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["namespaces"]);
            assert_eq!(outcome.reports().len(), bare.reports().len(), "{outcome}");
            for report in outcome.reports() {
                let errnos = if report.name.starts_with("clone3") { ["ENOSYS", "ENOSYS"] } else { ["EPERM", "EBADF"] };
                assert!(errnos.contains(&report.errno.as_str()), "{identity:?}: {report:?}");
            }
        }
    }

    fn row_36_the_32_bit_gate_kills(lab) {
        let witness = Witness::start(&lab.directory);
        let probe = ["int80", &witness.address()];
        leaks_bare(lab, &witness, &probe);
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&probe);
            witness.assert_untouched("the 32-bit gate");
            assert_eq!(outcome.code, Some(KILLED), "{identity:?} {outcome}");
        }
    }

    fn row_36_x32_calls_kill(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["x32", &witness.address()]);
            witness.assert_untouched("an x32 call");
            assert_eq!(outcome.code, Some(KILLED), "{identity:?} {outcome}");
        }
    }

    fn row_36_a_32_bit_program_is_killed(lab) {
        if !std::path::Path::new(&lab.tool("elf32")).exists() {
            return outgate_harness::skip("no 32-bit C compiler");
        }
        let witness = Witness::start(&lab.directory);
        let command = [lab.tool("elf32"), "127.0.0.1".into(), witness.port().to_string()];
        lab.start_bare(Identity::Own, &command).finish();
        witness.assert_leaked("a 32-bit program");
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).run(&command);
            witness.assert_untouched("a 32-bit program");
            assert_eq!(outcome.code, Some(KILLED), "{identity:?} {outcome}");
        }
    }

    fn row_37_filters_of_the_command_widen_nothing(lab) {
        let witness = Witness::start(&lab.directory);
        let expected = [
            ("install-allow", &["0"][..]), ("connect-allow", REFUSED),
            ("install-log", &["0"][..]), ("connect-log", REFUSED),
            ("connect-trace", &["ECONNREFUSED", "ENOSYS"][..]),
            ("connect-notify", &["ECONNREFUSED", "ENOSYS"][..]),
            ("install-listener", &["EBUSY"][..]), ("connect-listener", REFUSED),
            ("install-tsync", &["0"][..]), ("connect-tsync", REFUSED),
        ];
        leaks_only_bare(lab, &witness, &["filters", &witness.address()], &expected);
    }

    fn row_50_terminals_take_no_foreign_input(lab) {
        let names = ["tiocsti", "tioclinux"];
        let bare = lab.bare(Identity::Own, &["terminal"]);
        check(&bare, &names.map(|name| (name, &["ENOTTY"][..])), "bare");
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["terminal"]);
            check(&outcome, &names.map(|name| (name, &["EPERM"][..])), &format!("{identity:?}"));
        }
    }

    fn row_51_calls_no_command_needs_are_refused(lab) {
        let bare = lab.bare(Identity::Own, &["forbidden"]);
        let answered = bare.reports().iter().filter(|report| !["EPERM", "ENOSYS"].contains(&report.errno.as_str())).count();
        assert!(answered > 20, "bare, root is answered otherwise: {bare}");
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["forbidden"]);
            assert_eq!(outcome.reports().len(), bare.reports().len(), "{outcome}");
            for report in outcome.reports() {
                assert!(["EPERM", "ENOSYS"].contains(&report.errno.as_str()), "{identity:?}: {report:?}");
            }
        }
    }

    fn root_keeps_no_capability(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["capabilities"]);
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                assert!(outcome.stdout.contains(&format!("{set}:\t0000000000000000")), "{identity:?} {outcome}");
            }
            if identity == Identity::Own && nix::unistd::geteuid().is_root() {
                assert!(outcome.stdout.contains("CapBnd:\t0000000000000000"), "{outcome}");
            }
            assert!(outcome.stdout.contains("NoNewPrivs:\t1"), "{outcome}");
            assert!(outcome.stdout.contains("Seccomp:\t2"), "{outcome}");
        }
    }
}
