//! Machines that lack something: each missing part is either replaced by a
//! fallback that is as tight, or the run is refused with a sentence.

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Outcome, Witness, lab_tests};

use crate::words;

/// Runs what follows in a user namespace that allows no further one.
const NO_USER_NAMESPACES: [&str; 7] = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"",
    "sh",
];

fn is_refused_with(outcome: &Outcome, word: &str) {
    assert_eq!(outcome.code, Some(125), "{outcome}");
    assert!(!outcome.stdout.contains("started"), "{outcome}");
    assert!(
        outcome.stderr.to_lowercase().contains(word),
        "it names {word}: {outcome}"
    );
    assert!(outcome.stderr.starts_with("outgate:"), "{outcome}");
}

lab_tests! {
    fn without_landlock_nothing_is_started(lab) {
        let refuse = lab.tool("refuse");
        for identity in Identity::all() {
            for missing in ["landlock_create_ruleset=ENOSYS", "landlock_create_ruleset=EOPNOTSUPP", "landlock_restrict_self=EPERM"] {
                let outcome = lab.sandbox(identity).wrap(&[&refuse, missing]).run(&words(&["echo", "started"]));
                is_refused_with(&outcome, "landlock");
            }
        }
    }

    fn without_seccomp_nothing_is_started(lab) {
        let refuse = lab.tool("refuse");
        for identity in Identity::all() {
            for missing in ["seccomp=EPERM", "seccomp=ENOSYS"] {
                let outcome = lab.sandbox(identity).wrap(&[&refuse, missing]).run(&words(&["echo", "started"]));
                is_refused_with(&outcome, "seccomp");
            }
        }
    }

    fn without_pidfd_getfd_the_way_out_still_works_and_is_as_narrow(lab) {
        let (origin, denied) = (Origin::start(8080), Witness::start(&lab.directory));
        let text = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
        for identity in Identity::all() {
            let sandbox = || lab.sandbox(identity).wrap(&[&lab.tool("nogetfd")]).allow("GET http://127.0.0.1:8080/ok");
            let outcome = sandbox().probe(&["connect", &denied.address()]);
            denied.assert_untouched("without pidfd_getfd");
            assert_ne!(outcome.errno(&denied.address()), "0", "{outcome}");
            let outcome = sandbox().probe(&["fetch", "127.0.0.1", "8080", text]);
            assert!(outcome.stdout.contains("from-here"), "{identity:?} {outcome}");
            assert!(outcome.stderr.contains("pidfd_getfd"), "it warns: {outcome}");
        }
        assert!(origin.connections() > 0);
    }

    fn without_other_calls_everything_fails_closed(lab) {
        let denied = Witness::start(&lab.directory);
        let refuse = lab.tool("refuse");
        for identity in Identity::all() {
            for missing in [
                "pidfd_open=EPERM", "process_vm_readv=EPERM", "openat2=ENOSYS", "close_range=ENOSYS",
                "memfd_create=EPERM", "unshare=EPERM", "pidfd_getfd=EPERM,process_vm_readv=EPERM",
            ] {
                let sandbox = lab.sandbox(identity).wrap(&[&refuse, missing]).allow("tcp://127.0.0.1:9");
                let outcome = sandbox.probe(&["connect", &denied.address(), &denied.at("[::1]")]);
                denied.assert_untouched(missing);
                assert!(outcome.code.is_some(), "{identity:?} {missing}: it ends: {outcome}");
            }
        }
    }

    fn what_a_machine_lacks_is_told_by_the_check_and_by_the_run(lab) {
        // A run on such a machine serves a granted request, or says what is missing;
        // what it cannot do without, the check knows, too.
        let origin = Origin::start(8080);
        let refuse = lab.tool("refuse");
        let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        let text = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
        let calls = [
            "process_vm_readv", "close_range", "openat2", "pidfd_open", "pidfd_getfd", "memfd_create",
            "pidfd_send_signal", "timer_create", "signalfd4", "timerfd_create", "execveat", "prlimit64",
            "faccessat2", "epoll_pwait2", "statx", "unshare", "setns",
        ];
        for call in calls {
            for missing in [format!("{call}=EPERM"), format!("{call}=ENOSYS")] {
                let sandbox = lab.sandbox(Identity::Own).wrap(&[&refuse, &missing]).allow("GET http://127.0.0.1:8080/ok");
                let outcome = sandbox.probe(&["fetch", "127.0.0.1", "8080", text]);
                let served = outcome.code == Some(0) && outcome.stdout.contains("from-here");
                let told = outcome.stderr.contains(call);
                assert!(served || told, "{missing}: {outcome}");
                let check = words(&[&refuse, &missing, &outgate, "check"]);
                let check = lab.start_bare(Identity::Own, &check).finish();
                assert_eq!(check.code == Some(125), outcome.code == Some(125), "{missing}: {check} {outcome}");
                assert!(served || check.stdout.contains(call), "{missing}: {check}");
            }
        }
        // What is done without a word would surprise its user.
        for call in ["openat2", "pidfd_open", "pidfd_getfd"] {
            let missing = format!("{call}=EPERM");
            let sandbox = lab.sandbox(Identity::Own).wrap(&[&refuse, &missing]).allow("GET http://127.0.0.1:8080/ok");
            let outcome = sandbox.probe(&["fetch", "127.0.0.1", "8080", text]);
            assert!(outcome.stderr.contains(call), "{missing}: {outcome}");
        }
        assert!(origin.connections() > 0);
    }

    fn without_proc_a_run_says_so(lab) {
        let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        for words_of in [&["run", "-r", "/", "--", "true"][..], &["check"]] {
            let mut command = words(&["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh", &outgate]);
            command.extend(words(words_of));
            let outcome = lab.start_bare(Identity::Own, &command).finish();
            assert_eq!(outcome.code, Some(125), "{outcome}");
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(said.contains("/proc is not mounted"), "{outcome}");
        }
    }

    fn without_user_namespaces_datagrams_stay_here_and_names_still_work(lab) {
        let witness = Witness::start(&lab.directory);
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let sandbox = || lab.sandbox(identity).wrap(&NO_USER_NAMESPACES).allow("GET http://allowed.example:8080/ok").pin("allowed.example:8080=127.0.0.1:8080");
            let outcome = sandbox().probe(&["datagram", &witness.address()]);
            witness.assert_untouched("without user namespaces");
            assert!(outcome.code.is_some(), "{outcome}");
            let text = "GET /ok HTTP/1.1\r\nHost: allowed.example:8080\r\n\r\n";
            let outcome = sandbox().probe(&["fetch", "allowed.example", "8080", text]);
            assert!(outcome.stdout.contains("from-here"), "{identity:?} {outcome}");
        }
        assert!(origin.connections() > 0);
    }

    fn the_check_says_of_namespaces_what_a_run_does(lab) {
        let refuse = lab.tool("refuse");
        let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        let outside = std::fs::read_to_string("/etc/resolv.conf").expect("a file");
        let no_capability = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
        let no_more = [&NO_USER_NAMESPACES[..], &no_capability].concat();
        let ways: [&[&str]; 5] = [&[], &no_capability, &no_more, &[&refuse, "unshare=EPERM"], &[&refuse, "unshare=ENOSYS"]];
        let mut replaced = 0;
        for identity in Identity::all() {
            for way in ways {
                if identity == Identity::Nobody && way.contains(&"setpriv") {
                    continue;
                }
                let mut command = words(way);
                command.extend(words(&[&outgate, "check"]));
                let check = lab.start_bare(identity, &command).finish();
                let is_replaced = check.stdout.contains("replaced  namespaces");
                assert_eq!(check.stdout.contains("resolv.conf and hosts are substituted"), is_replaced, "{check}");
                let sandbox = lab.sandbox(identity).wrap(way);
                let outcome = sandbox.run(&words(&["cat", "/etc/resolv.conf"]));
                assert_eq!(outcome.code, Some(0), "{way:?}: {outcome}");
                assert_eq!(outcome.stdout != outside, is_replaced, "{identity:?} {way:?}: {outcome}");
                replaced += usize::from(is_replaced);
            }
        }
        assert!(replaced >= 2);
    }

    fn row_56_nested_runs_are_never_wider(lab) {
        let denied = Witness::start(&lab.directory);
        let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        for identity in Identity::all() {
            let rule = format!("tcp://{}", denied.address());
            let mut command = words(&[&outgate, "run", "-r", "/", "-a", &rule, "--"]);
            command.extend(lab.probe(&["connect", &denied.address()]));
            let outcome = lab.sandbox(identity).run(&command);
            denied.assert_untouched("a nested run that allows more");
            let refused = outcome.code == Some(125) && outcome.stderr.contains("outgate");
            let narrowed = outcome.stdout.contains("ECONNREFUSED");
            assert!(refused || narrowed, "{identity:?} {outcome}");
        }
    }

    fn the_gateway_must_be_of_the_same_build_or_nothing_gets_out(lab) {
        // A launcher without its gateway: the command runs, its connections do not.
        let denied = Witness::start(&lab.directory);
        let alone = lab.directory.join("alone");
        std::fs::create_dir_all(&alone).expect("a folder");
        std::fs::copy(lab.tools.programs.join("outgate"), alone.join("outgate")).expect("a copy");
        let outgate = alone.join("outgate").to_string_lossy().into_owned();
        for identity in Identity::all() {
            let mut command = identity.prefix();
            let rule = format!("tcp://{}", denied.address());
            command.extend(words(&[&outgate, "run", "-r", "/", "-a", &rule, "--"]));
            command.extend(lab.probe(&["connect", &denied.address()]));
            let outcome = lab.start_bare(Identity::Own, &command).finish();
            denied.assert_untouched("a launcher without a gateway");
            assert!(outcome.stderr.contains("outgate-gateway"), "it names what is missing: {outcome}");
        }
    }
}
