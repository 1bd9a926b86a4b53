//! Calls that wait in the kernel for what the command keeps: the lock of its memory, the
//! lock of a socket, a turn on a processor. Who serves them waits too, but not who ends
//! the run.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, Lab, lab_tests};

/// How soon a run is over, on a machine that is busy with it: a hundred times what it takes
/// where nothing waits. What waits, waits for several times that.
const ENDED_MAX: Duration = Duration::from_millis(2500);

/// Address space that takes 10 ms to go through, and page tables of 8 MiB.
const MIB: &str = "4096";
/// Threads that wait in line for the lock: whoever comes after them waits for seconds.
const THREADS: &str = "400";
/// Processes that keep one processor.
const HOGS: &str = "150";
/// How long each goes on, in seconds, if nobody ends it.
const SECONDS: &str = "40";

const MEMORY: &[&str] = &["memory-lock", MIB, THREADS, SECONDS];
const SOCKET: &[&str] = &["socket-lock", MIB, THREADS, SECONDS];
const TURN: &[&str] = &["no-turn", HOGS, SECONDS];

/// By what a run is ended.
#[derive(Debug, Clone, Copy)]
enum End {
    Name,
    Signal(Signal),
}

lab_tests! {
    fn a_run_that_locks_its_memory_ends_when_it_is_asked_to(lab) {
        ends(lab, MEMORY, End::Name);
        ends(lab, MEMORY, End::Signal(Signal::SIGTERM));
    }

    fn a_run_that_locks_its_memory_ends_with_its_launcher(lab) {
        ends(lab, MEMORY, End::Signal(Signal::SIGKILL));
    }

    fn a_run_that_locks_a_socket_ends_when_it_is_asked_to(lab) {
        ends(lab, SOCKET, End::Name);
        ends(lab, SOCKET, End::Signal(Signal::SIGTERM));
    }

    fn a_run_that_locks_a_socket_ends_with_its_launcher(lab) {
        ends(lab, SOCKET, End::Signal(Signal::SIGKILL));
    }

    fn a_run_that_gives_no_turn_ends_when_it_is_asked_to(lab) {
        ends(lab, TURN, End::Name);
        ends(lab, TURN, End::Signal(Signal::SIGTERM));
    }

    fn a_run_that_gives_no_turn_ends_with_its_launcher(lab) {
        ends(lab, TURN, End::Signal(Signal::SIGKILL));
    }
}

/// Has a run make its supervisor wait, and ends it meanwhile.
fn ends(lab: &Lab, probe: &[&str], end: End) {
    // Two that keep one processor keep it from each other's end as well.
    let first = fs::File::create(lab.tools.probes.join("first-processor.lock"));
    let first = first.expect("a file to lock");
    first.lock().expect("the first processor");
    for identity in Identity::all() {
        let what = format!("{identity:?} {probe:?} {end:?}");
        let before = Before::new(Vec::new());
        let run = lab
            .sandbox(identity)
            .option("--name", "waits")
            .limit(Duration::from_mins(1))
            .start_probe(probe);
        run.wait_for("others wait");
        let began = Instant::now();
        match end {
            End::Name => ask_by_name(lab, identity),
            End::Signal(signal) => run.signal(signal),
        }
        wait_for_the_tree();
        let outcome = run.finish();
        let took = began.elapsed();
        assert!(took < ENDED_MAX, "{what}: {took:?} {outcome}");
        assert!(outcome.code != Some(0), "{what} {outcome}");
        before.assert_all_gone();
    }
}

/// Waits until nobody of the command and no guardian is left.
fn wait_for_the_tree() {
    let is_of_run = |name: &str| ["probe", "outgate-guard"].contains(&name);
    let is_over = || {
        let all = outgate_harness::leftovers::processes();
        !all.iter().any(|process| is_of_run(&process.name))
    };
    outgate_harness::eventually(Duration::from_secs(50), is_over);
}

/// `outgate ps` answers, and `outgate kill` ends the run.
fn ask_by_name(lab: &Lab, identity: Identity) {
    for (order, says) in [(&["ps"][..], "waits"), (&["kill", "waits"], "")] {
        let mut words = identity.prefix();
        let program = lab.tools.programs.join("outgate");
        words.push(program.to_string_lossy().into_owned());
        words.extend(order.iter().map(ToString::to_string));
        let (program, arguments) = words.split_first().expect("a command");
        let answer = Command::new(program)
            .args(arguments)
            .env("XDG_RUNTIME_DIR", lab.folder("run", identity))
            .output()
            .expect("outgate");
        assert!(answer.status.success(), "{identity:?} {answer:?}");
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        assert!(text.contains(says), "{identity:?} {order:?}: {text}");
    }
}
