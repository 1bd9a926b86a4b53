//! `outgate ps`, `kill` and `inspect`: runs are found, asked and ended by who
//! may, and nothing a command does can change the list.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_harness::leftovers::Before;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Running, eventually, lab_tests};

use crate::gate::{Gate, Plan, outgate, python, shell};

fn is_listed(lab: &outgate_harness::Lab, identity: Identity, name: &str) -> bool {
    let outcome = outgate(lab, identity, &["ps"]);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    outcome
        .stdout
        .lines()
        .any(|line| line.starts_with(&format!("{name} ")))
}

fn start(lab: &outgate_harness::Lab, identity: Identity, name: &str) -> Running {
    let run = lab.sandbox(identity).option("--name", name).start(&shell(
        "sleep 300 & setsid sleep 300 & echo here; sleep 300",
    ));
    run.wait_for("here");
    run
}

lab_tests! {
    fn runs_are_listed_shown_and_ended(lab) {
        let before = Before::new(vec![]);
        let own = Identity::Own;
        assert_eq!(outgate(lab, own, &["ps"]).stdout.lines().count(), 1);
        let (one, two) = (start(lab, own, "one"), start(lab, own, "two"));
        assert!(is_listed(lab, own, "one") && is_listed(lab, own, "two"));
        let outcome = outgate(lab, own, &["inspect", "one"]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        for part in ["name       one\n", &format!("process    {} ", one.pid()), "policy     preset `base`, -r, -w\n", "gateway    its own"] {
            assert!(outcome.stdout.contains(part), "{part}: {outcome}");
        }
        let outcome = outgate(lab, own, &["kill", "one"]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        // When kill returns it is over: the launcher is gone, and the list knows.
        assert!(!is_listed(lab, own, "one"));
        let ended = one.finish();
        assert_eq!(ended.code, Some(143), "{ended}");
        assert!(is_listed(lab, own, "two"));
        let outcome = outgate(lab, own, &["kill", "one"]);
        assert_eq!(outcome.code, Some(1), "{outcome}");
        assert!(outcome.stderr.contains("no run of yours"), "{outcome}");
        let outcome = outgate(lab, own, &["kill", &two.pid().to_string()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        two.finish();
        before.assert_all_gone();
    }

    fn what_ignores_sigterm_is_ended_too(lab) {
        let before = Before::new(vec![]);
        let run = lab
            .sandbox(Identity::Own)
            .option("--name", "deaf")
            .start(&shell("trap '' TERM; sleep 300 & echo here; while :; do sleep 1; done"));
        run.wait_for("here");
        let outcome = outgate(lab, Identity::Own, &["kill", "deaf"]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        run.finish();
        before.assert_all_gone();
    }

    fn a_launcher_that_stopped_is_ended_too(lab) {
        let run = start(lab, Identity::Own, "still");
        run.signal(Signal::SIGSTOP);
        let outcome = outgate(lab, Identity::Own, &["ps"]);
        assert!(outcome.stdout.contains("does not answer"), "{outcome}");
        let outcome = outgate(lab, Identity::Own, &["kill", &run.pid().to_string()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        run.finish();
    }

    fn two_of_one_name_must_be_told_apart(lab) {
        let (one, two) = (start(lab, Identity::Own, "twin"), start(lab, Identity::Own, "twin"));
        let outcome = outgate(lab, Identity::Own, &["kill", "twin"]);
        assert_eq!(outcome.code, Some(1), "{outcome}");
        for run in [one, two] {
            let pid = run.pid().to_string();
            assert!(outcome.stderr.contains(&pid), "{outcome}");
            assert_eq!(outgate(lab, Identity::Own, &["kill", &pid]).code, Some(0));
            run.finish();
        }
    }

    fn a_killed_launcher_leaves_no_entry(lab) {
        let run = start(lab, Identity::Own, "gone");
        run.signal(Signal::SIGKILL);
        run.finish();
        let gone = eventually(Duration::from_secs(5), || !is_listed(lab, Identity::Own, "gone"));
        assert!(gone, "still listed");
    }

    fn users_see_and_end_their_own_runs_only(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let (roots, theirs) = (start(lab, Identity::Own, "roots"), start(lab, Identity::Nobody, "theirs"));
        assert!(!is_listed(lab, Identity::Nobody, "roots"));
        assert!(is_listed(lab, Identity::Nobody, "theirs"));
        for name in ["roots".to_owned(), roots.pid().to_string()] {
            let outcome = outgate(lab, Identity::Nobody, &["kill", &name]);
            assert_eq!(outcome.code, Some(1), "{outcome}");
        }
        assert!(is_listed(lab, Identity::Own, "roots") && is_listed(lab, Identity::Own, "theirs"));
        // Not by speaking to the launcher directly either.
        let ask = python(
            "import socket\n\
             for line in open('/proc/net/unix'):\n\
             \x20 if '@outgate-run-0-' in line:\n\
             \x20  s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             \x20  s.connect('\\0'+line.split('@')[1].strip())\n\
             \x20  s.settimeout(5)\n\
             \x20  try: s.send(bytes([202,0,0,0,0,0,0,0]+[0]*8)); print('answer', s.recv(9999))\n\
             \x20  except OSError as e: print('closed')\n\
             print('asked')",
        );
        let outcome = lab.start_bare(Identity::Nobody, &ask).finish();
        assert!(outcome.stdout.contains("asked"), "{outcome}");
        assert!(outcome.stdout.contains("answer b''") || outcome.stdout.contains("closed"), "{outcome}");
        assert!(is_listed(lab, Identity::Own, "roots"));
        for run in [roots, theirs] {
            kill(Pid::from_raw(run.pid()), Signal::SIGTERM).expect("it runs");
            run.finish();
        }
    }

    fn a_command_can_neither_reach_nor_forge_entries(lab) {
        for identity in Identity::all() {
            let other = start(lab, identity, "other");
            let outgate_program = lab.tools.programs.join("outgate");
            let attack = python(&format!(
                "import socket,subprocess\n\
                 for line in open('/proc/net/unix'):\n\
                 \x20 if '@outgate-run-' in line:\n\
                 \x20  s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
                 \x20  try: s.connect('\\0'+line.split('@')[1].strip()); print('entered')\n\
                 \x20  except OSError as e: print('refused')\n\
                 for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):\n\
                 \x20 s=socket.socket(socket.AF_UNIX,kind)\n\
                 \x20 s.bind('\\0outgate-run-{uid}-1-%d' % kind)\n\
                 \x20 try: s.listen(9)\n\
                 \x20 except OSError: pass\n\
                 print(subprocess.run([{outgate_program:?},'kill','other'],capture_output=True).returncode, flush=True)\n\
                 print('ready', flush=True)\n\
                 import time; time.sleep(60)",
                uid = identity.uid()
            ));
            let run = lab.sandbox(identity).option("--name", "attacker").start(&attack);
            let said = run.wait_for("ready");
            assert!(said.contains("refused") && !said.contains("entered"), "{said}");
            assert!(said.contains("\n1\n"), "{said}");
            // The two that are there, and no third.
            let listed = outgate(lab, identity, &["ps"]);
            assert_eq!(listed.stdout.lines().count(), 3, "{listed}");
            assert!(is_listed(lab, identity, "other") && is_listed(lab, identity, "attacker"));
            for run in [run, other] {
                kill(Pid::from_raw(run.pid()), Signal::SIGTERM).expect("it runs");
                run.finish();
            }
        }
    }

    fn inspect_counts_what_the_record_holds_for_this_run(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let script = "curl -s -o /dev/null http://a.example:8080/; curl -s -o /dev/null http://b.example:8080/; echo here; sleep 60";
        let shared = gate.sandbox(lab, Identity::Own).option("--name", "shared").start(&shell(script));
        let private = lab
            .sandbox(Identity::Own)
            .option("--name", "private")
            .allow("http://a.example:8080")
            .pin("a.example=192.0.2.1")
            .start(&shell(script));
        for (run, name) in [(shared, "shared"), (private, "private")] {
            run.wait_for("here");
            let outcome = outgate(lab, Identity::Own, &["inspect", name]);
            // A connection and a request each.
            assert!(outcome.stdout.contains("verdicts   2 allowed, 2 denied"), "{outcome}");
            let socket = gate.socket.to_string_lossy().into_owned();
            assert_eq!(outcome.stdout.contains(&socket), name == "shared", "{outcome}");
            assert_eq!(outgate(lab, Identity::Own, &["kill", name]).code, Some(0));
            run.finish();
            // Of one that has ended its record tells; a shared gateway's is not the run's own.
            let outcome = outgate(lab, Identity::Own, &["inspect", name]);
            assert_eq!(outcome.code, Some(i32::from(name == "shared")), "{outcome}");
            if name == "private" {
                for part in ["name       private\n", "state      ended\n", "ended      20", "verdicts   2 allowed, 2 denied", "denials    outgate why private"] {
                    assert!(outcome.stdout.contains(part), "{part}: {outcome}");
                }
                let record = outcome.stdout.lines().find_map(|line| line.strip_prefix("record     "));
                assert!(record.is_some_and(|path| std::path::Path::new(path).is_file()), "{outcome}");
            }
        }
    }

    fn crowds_of_another_account_keep_nobody_from_a_run(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        // The last word is the launcher's own: a signal.
        for how in ["kill", "signal"] {
            let run = start(lab, Identity::Own, "wanted");
            let flood = python(
                "import socket,time\n\
                 names={'\\0'+line.split('@')[1].strip() for line in open('/proc/net/unix') if '@outgate-run-0-' in line}\n\
                 until=time.time()+20\n\
                 print('floods', len(names), flush=True)\n\
                 while time.time()<until:\n\
                 \x20 for name in names:\n\
                 \x20  s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.setblocking(False)\n\
                 \x20  try: s.connect(name)\n\
                 \x20  except OSError: pass\n\
                 \x20  s.close()\n",
            );
            let crowd: Vec<Running> = (0..4).map(|_| lab.start_bare(Identity::Nobody, &flood)).collect();
            for one in &crowd {
                one.wait_for("floods 1");
            }
            let begun = Instant::now();
            let outcome = outgate(lab, Identity::Own, &["ps"]);
            assert!(outcome.stdout.contains("wanted ") && !outcome.stdout.contains("does not answer"), "{outcome}");
            if how == "kill" {
                let outcome = outgate(lab, Identity::Own, &["kill", "wanted"]);
                assert_eq!(outcome.code, Some(0), "{outcome}");
            } else {
                run.signal(Signal::SIGTERM);
            }
            let outcome = run.finish();
            let took = begun.elapsed();
            for one in crowd {
                one.signal(Signal::SIGKILL);
                one.finish();
            }
            assert_eq!(outcome.code, Some(143), "{how} {outcome}");
            assert!(took < Duration::from_secs(8), "{how} {took:?}");
        }
    }

    fn no_other_account_chooses_what_root_ends(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let named = |name: &str| {
            let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            format!("{hash:016x}")
        };
        // One who listened and went away, whose socket another holds: its process id is
        // whoever's comes next. And one of root's that the kernel names as another account's.
        let left = format!(
            "import os,socket,time\n\
             s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             r,w=os.pipe()\n\
             if os.fork()==0:\n\
             \x20 s.bind('\\0outgate-run-65534-%d-1-{}'%os.getpid()); s.listen(64)\n\
             \x20 os._exit(0)\n\
             os.wait(); print('ready', flush=True); time.sleep(60)",
            named("left")
        );
        let lent = format!(
            "import os,signal,socket,time\n\
             def told(*_): print('told', flush=True)\n\
             for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGINT): signal.signal(number, told)\n\
             s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             s.bind('\\0outgate-run-65534-%d-1-{}'%os.getpid())\n\
             os.seteuid(65534); s.listen(64); os.seteuid(0)\n\
             print('ready', flush=True)\n\
             until=time.time()+60\n\
             while time.time()<until: time.sleep(1)",
            named("lent")
        );
        for (name, who, script) in [("left", Identity::Nobody, left), ("lent", Identity::Own, lent)] {
            let fake = lab.start_bare(who, &python(&script));
            fake.wait_for("ready");
            let outcome = outgate(lab, Identity::Own, &["kill", name]);
            assert_eq!(outcome.code, Some(1), "{name} {outcome}");
            // A kernel before 6.5 has no word on whether the first one is gone.
            let is_refused = outcome.stderr.contains("is not of the account");
            let is_none = outcome.stderr.contains("no run of yours") && name == "left";
            assert!(is_refused || is_none, "{name} {outcome}");
            fake.signal(Signal::SIGKILL);
            let ended = fake.finish();
            assert!(!ended.stdout.contains("told"), "{name} {ended}");
            assert_eq!(ended.signal, Some(Signal::SIGKILL as i32), "{name} {ended}");
        }
    }
}
