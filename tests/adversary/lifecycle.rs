//! Killed, stopped and continued: whatever happens to launcher and gateway,
//! nothing gets out, the command notices soon, and nothing stays behind.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_harness::leftovers::Before;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Running, Witness, lab_tests};

/// How often something is killed.
fn rounds() -> u32 {
    if outgate_harness::is_quick() { 10 } else { 200 }
}

/// A number that looks random and is the same in every run.
fn scrambled(round: u32) -> u32 {
    round.wrapping_mul(2_654_435_761) >> 16
}

/// A command that connects to an allowed and to a denied place all the time.
fn connecting(lab: &Lab, identity: Identity, allowed: &str, denied: &str) -> Running {
    let sandbox = lab.sandbox(identity).allow(&format!("tcp://{allowed}"));
    let run = sandbox.start_probe(&["loop", allowed, denied]);
    run.wait_for(&format!("loop {allowed} errno=0"));
    run.wait_for(&format!("loop {denied} errno=111"));
    run
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).ok();
}

fn pause(milliseconds: u32) {
    std::thread::park_timeout(Duration::from_millis(milliseconds.into()));
}

lab_tests! {
    fn row_42_a_killed_launcher_takes_everything_with_it(lab) {
        kill_loop(lab, Victim::Launcher);
    }

    fn row_27_and_42_a_killed_gateway_closes_the_way_out(lab) {
        kill_loop(lab, Victim::Gateway);
    }

    fn row_43_a_stopped_launcher_holds_everything(lab) {
        let (origin, denied) = (Origin::start(0), Witness::start(&lab.directory));
        let allowed = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            let run = connecting(lab, identity, &allowed, &denied.address());
            send(run.pid(), Signal::SIGSTOP);
            pause(50);
            let before = origin.connections();
            pause(400);
            assert_eq!(origin.connections(), before, "{identity:?}: connections while it is stopped");
            denied.assert_untouched("a stopped launcher");
            send(run.pid(), Signal::SIGCONT);
            let on = outgate_harness::eventually(Duration::from_secs(3), || origin.connections() > before);
            assert!(on, "{identity:?}: it goes on: {}", run.output());
            send(run.pid(), Signal::SIGTERM);
            run.finish();
            denied.assert_untouched("a stopped launcher");
        }
    }

    fn row_43_a_stopped_gateway_lets_nothing_new_out(lab) {
        let (origin, denied) = (Origin::start(0), Witness::start(&lab.directory));
        for identity in Identity::all() {
            let allowed = format!("127.0.0.1:{}", origin.port());
            let rule = format!("GET http://{allowed}/ok");
            let sandbox = lab.sandbox(identity).allow(&rule);
            let run = sandbox.start_probe(&["loop", &allowed, &denied.address()]);
            run.wait_for(&format!("loop {} errno=111", denied.address()));
            let gateway = run.gateway();
            send(gateway, Signal::SIGSTOP);
            pause(500);
            denied.assert_untouched("a stopped gateway");
            send(gateway, Signal::SIGCONT);
            pause(100);
            send(run.pid(), Signal::SIGTERM);
            run.finish();
            denied.assert_untouched("a continued gateway");
        }
    }

    fn a_terminated_run_leaves_nothing_behind(lab) {
        let (origin, denied) = (Origin::start(0), Witness::start(&lab.directory));
        let allowed = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
                let before = watched(lab, identity);
                let run = connecting(lab, identity, &allowed, &denied.address());
                run.signal(signal);
                let outcome = run.finish();
                assert_eq!(outcome.code, Some(128 + signal as i32), "{identity:?} {signal} {outcome}");
                before.assert_all_gone();
            }
        }
    }

    fn whoever_starts_a_run_learns_how_it_ended(lab) {
        let ignores = "import os,signal,sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])";
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).wrap(&["/usr/bin/python3", "-c", ignores]);
            let outcome = sandbox.run(&["sh", "-c", "exit 3"].map(str::to_owned));
            assert_eq!(outcome.code, Some(3), "{identity:?} {outcome}");
        }
    }

    fn a_tree_that_renews_itself_ends_with_the_launcher(lab) {
        for identity in Identity::all() {
            let before = watched(lab, identity);
            let run = lab.sandbox(identity).start_probe(&["breed", "8", "400"]);
            run.wait_for("ready");
            run.signal(Signal::SIGKILL);
            run.finish();
            before.assert_gone_but_files();
        }
    }

    fn who_is_dead_does_not_stay(lab) {
        let allowed = Witness::start(&lab.directory);
        // Whatever a run leaves becomes a child of this process.
        nix::sys::prctl::set_child_subreaper(true).expect("orphans come here");
        for identity in Identity::all() {
            let orphans = "n=0; while [ $n -lt 300 ]; do (sh -c 'exit 3' & exit) ; n=$((n+1)); done; \
                (trap '' CHLD; (sh -c 'echo $$ >last; kill -9 $$' &)); \
                while ! [ -s last ] || kill -0 $(cat last) 2>/dev/null; do sleep 0.05; done; echo made; read -r end";
            let connect = format!("{} connect {}; {orphans}", lab.tool("probe"), allowed.address());
            let sandbox = lab.sandbox(identity).allow(&format!("tcp://{}", allowed.address()));
            let mut run = sandbox.with_input().start(&["sh".into(), "-c".into(), connect]);
            run.wait_for("made");
            let none = || outgate_harness::leftovers::dead().is_empty();
            let gone = outgate_harness::eventually(Duration::from_secs(3), none);
            assert!(gone, "{identity:?}: {:?}", outgate_harness::leftovers::dead());
            run.say("end\n");
            let outcome = run.finish();
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            // Not soon, but at once: nobody may be there to wait for them.
            let dead = outgate_harness::leftovers::dead();
            assert!(dead.is_empty(), "{identity:?}: {dead:?}");
            assert!(outgate_harness::eventually(Duration::from_secs(3), none), "{identity:?}: {:?}", outgate_harness::leftovers::dead());
        }
    }

    fn a_run_that_ends_leaves_nothing_behind(lab) {
        let allowed = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let before = watched(lab, identity);
            let sandbox = lab.sandbox(identity).allow(&format!("tcp://{}", allowed.address()));
            let outcome = sandbox.probe(&["datagram", &allowed.address()]);
            assert!(!outcome.held, "{outcome}");
            before.assert_all_gone();
            let sandbox = lab.sandbox(identity).allow(&format!("tcp://{}", allowed.address()));
            let outcome = sandbox.probe(&["connect", &allowed.address()]);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            allowed.forget();
            before.assert_all_gone();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Launcher,
    Gateway,
}

/// Notes what is there; temporary and runtime folders must stay empty.
fn watched(lab: &Lab, identity: Identity) -> Before {
    let folders = ["tmp", "run", "home", "work"].map(|name| lab.folder(name, identity));
    Before::new(folders.to_vec())
}

fn kill_loop(lab: &Lab, victim: Victim) {
    let (origin, denied) = (Origin::start(0), Witness::start(&lab.directory));
    let allowed = format!("127.0.0.1:{}", origin.port());
    for round in 0..rounds() {
        let all = Identity::all();
        let identity = all[round as usize % all.len()];
        let before = watched(lab, identity);
        let run = connecting(lab, identity, &allowed, &denied.address());
        pause(scrambled(round) % 12);
        match victim {
            Victim::Launcher => {
                run.signal(Signal::SIGKILL);
                let killed = Instant::now();
                let outcome = run.finish();
                assert!(
                    killed.elapsed() < Duration::from_secs(2),
                    "round {round}: {outcome}"
                );
            }
            Victim::Gateway => {
                send(run.gateway(), Signal::SIGKILL);
                let killed = Instant::now();
                run.wait_for(&format!("loop {allowed} errno=111"));
                assert!(
                    killed.elapsed() < Duration::from_secs(1),
                    "round {round}: {}",
                    run.output()
                );
                send(run.pid(), Signal::SIGTERM);
                run.finish();
            }
        }
        before.assert_gone_but_files();
    }
    denied.assert_untouched("a killed part");
}
