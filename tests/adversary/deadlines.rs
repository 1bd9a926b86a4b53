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

/// Deaf, and stopped and continued by its child all the time.
const FLICKERS: &str = "import os, signal, time
for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(one, signal.SIG_IGN)
me = os.getpid()
print('ready', flush=True)
if os.fork() == 0:
    while True:
        os.kill(me, signal.SIGSTOP); time.sleep(0.001); os.kill(me, signal.SIGCONT); time.sleep(0.001)
while True: time.sleep(0.01)";

/// Deaf, and stops whenever it is continued.
const STANDS: &str = "import os, signal
for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(one, signal.SIG_IGN)
print('ready', flush=True)
while True: os.kill(os.getpid(), signal.SIGSTOP)";

/// Thousands of listeners named like those of runs, more than are looked at of runs, in sixteen
/// processes that stay; and one of packets, as a run's own is, which nobody gets.
const DECOYS: &str = "import os, socket, sys, time\n\
    for p in range(16):\n\
    \x20   if os.fork() == 0:\n\
    \x20       kept = []\n\
    \x20       for n in range(400):\n\
    \x20           s = socket.socket(socket.AF_UNIX); s.bind(f'\\0outgate-run-0-{os.getpid()}-{n}'); s.listen(1); kept.append(s)\n\
    \x20       s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
    \x20       try: s.bind(f'\\0outgate-run-0-{os.getpid()}-x'); s.listen(1); os.write(1, b'packets\\n')\n\
    \x20       except OSError: pass\n\
    \x20       os.write(1, b'ready\\n'); time.sleep(100); os._exit(0)\n\
    time.sleep(100)\n";

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

    fn a_command_that_stops_and_goes_on_in_a_terminal_is_killed_by_name(lab) {
        let driver = lab.folder("given", Identity::Own).join("terminal.py");
        std::fs::write(&driver, include_str!("../programs/clients/terminal.py")).expect("the driver");
        for identity in Identity::all() {
            // Stops by a child of its own, and one that stays stopped.
            for (name, script) in [("flickers", FLICKERS), ("stands", STANDS)] {
                let before = Before::new(Vec::new());
                let sandbox = lab.sandbox(identity).option("--name", name).limit(Duration::from_secs(90));
                let sandbox = sandbox.wrap(&["/usr/bin/python3", &driver.to_string_lossy()]);
                let run = sandbox.with_input().start(&["python3".into(), "-c".into(), script.to_owned()]);
                run.wait_for("ready");
                std::thread::park_timeout(Duration::from_secs(2));
                let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
                let kill = lab.start_bare(identity, &[outgate, "kill".into(), name.into()]).finish();
                assert_eq!(kill.code, Some(0), "{identity:?} {name}: {kill}");
                assert!(run.child("outgate").is_none(), "{identity:?} {name}: {}", run.output());
                run.finish();
                before.assert_all_gone();
            }
        }
    }

    fn a_run_is_found_among_decoys(lab) {
        for identity in Identity::all() {
            let before = Before::new(Vec::new());
            let sandbox = lab.sandbox(identity).option("--name", "hidden").limit(Duration::from_secs(90));
            let run = sandbox.with_input().start(&["python3".into(), "-c".into(), DECOYS.to_owned()]);
            run.wait_for_count("ready", 16);
            let table = run.output();
            assert!(!table.contains("packets"), "{identity:?}: {table}");
            let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
            let asked = lab.start_bare(identity, &[outgate.clone(), "ps".into()]).finish();
            assert!(asked.stdout.contains("hidden"), "{identity:?}: {asked}");
            let kill = lab.start_bare(identity, &[outgate, "kill".into(), "hidden".into()]).finish();
            assert_eq!(kill.code, Some(0), "{identity:?}: {kill}");
            assert!(run.child("outgate").is_none(), "{identity:?}: {}", run.output());
            run.finish();
            before.assert_all_gone();
        }
    }

    fn where_memory_runs_out_the_command_goes_first(lab) {
        for identity in Identity::all() {
            let script = "cat /proc/self/oom_score_adj; echo ready; echo 0 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj; read -r end";
            let run = lab.sandbox(identity).with_input().start(&["bash".into(), "-c".into(), script.into()]);
            run.wait_for_count("1000\n", 2);
            let all = outgate_harness::leftovers::processes();
            let score = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap_or_default();
            let own = score(i32::try_from(std::process::id()).expect("a number"));
            let ours: Vec<_> = all.iter().filter(|one| one.name.starts_with("outgate")).collect();
            assert!(ours.iter().any(|one| one.name == "outgate-guard"), "{identity:?} {ours:?}");
            for one in &ours {
                assert_eq!(score(one.pid), own, "{identity:?} {one:?}");
            }
            run.finish();
        }
    }
}
