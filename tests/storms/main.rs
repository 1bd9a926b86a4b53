//! Trees that multiply without end and as fast as they can: with every call that
//! makes processes, with and without a limit of processes, of users and of root.
//! All of it ends in time, and nobody else.
//!
//! Nothing here runs where its number is not bounded: a laboratory has a process
//! table of its own, whose size is set before (`kernel.pid_max` of the namespace). Nor
//! does it run beside tests of other things, which would wait among the storms.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]

use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use outgate_harness::leftovers::processes;
use outgate_harness::{Identity, Lab, Running, Sandbox, lab_tests};

/// Every way to multiply.
const KINDS: [&str; 8] = [
    "fork", "memory", "sibling", "session", "daemon", "vfork", "threads", "shell",
];

/// What a shell does with the least to type.
const SHELL: &str =
    "trap '' TERM CHLD HUP INT; exec 2> /dev/null; echo ready; f() { f | f & }; f; f";

/// Process ids in the laboratory, at most.
const PROCESSES_MAX: &str = "600";
/// The first kernel on which they are the laboratory's alone.
const BOUNDED_SINCE: (u32, u32) = (6, 14);

/// The wall time of a run that has one.
const WALL_TIME: Duration = Duration::from_secs(1);
/// That of one that takes long to grow.
const LONG_WALL_TIME: Duration = Duration::from_secs(4);
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long a storm takes to be over once it is killed, at most.
const END: Duration = Duration::from_secs(2);
/// How long a storm has to grow.
const GROWTH: Duration = Duration::from_millis(700);

/// Bounds the number of processes, and waits until no other storm is on: how soon
/// one ends is not to be measured in another. `None` where the bound would be other
/// people's too.
fn alone(lab: &Lab) -> Option<File> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let bounded = version >= BOUNDED_SINCE
        && std::fs::write("/proc/sys/kernel/pid_max", PROCESSES_MAX).is_ok()
        && std::fs::read_to_string("/proc/sys/kernel/pid_max")
            .is_ok_and(|max| max.trim() == PROCESSES_MAX);
    if !bounded {
        outgate_harness::skip("the number of processes cannot be bounded (Linux 6.14)");
        return None;
    }
    // Beside the programs, which all laboratories share.
    let turn = File::create(lab.tools.probes.join("storm.lock")).expect("a file");
    turn.lock().expect("a lock");
    // The test measures: it must not wait among those whose end it waits for. What
    // it starts does not inherit that.
    let own = std::process::id().to_string();
    Command::new("chrt")
        .args(["-a", "-R", "-f", "-p", "1", &own])
        .output()
        .ok();
    Some(turn)
}

/// Accounts, each with and without a limit of processes of the policy's.
fn bounds() -> Vec<(Identity, Option<u32>)> {
    let accounts = Identity::all().into_iter();
    accounts
        .flat_map(|one| [(one, Some(60)), (one, None)])
        .collect()
}

/// A storm in a sandbox, and a bystander of the same account outside.
struct Storm {
    run: Running,
    bystander: Running,
    began: Instant,
    what: String,
}

impl Storm {
    fn start(
        lab: &Lab,
        kind: &str,
        (identity, limit): (Identity, Option<u32>),
        wall: &str,
    ) -> Self {
        let bystander = lab.start_bare(identity, &lab.probe(&["victim"]));
        bystander.wait_for("ready");
        let limit = limit.map_or(String::new(), |limit| format!("processes = {limit}\n"));
        let policy = lab.directory.join("storm.toml");
        std::fs::write(&policy, format!("[limits]\n{limit}{wall}")).expect("a file");
        let sandbox: Sandbox<'_> = lab
            .sandbox(identity)
            .option("-p", &policy.to_string_lossy())
            .option("--name", "storm")
            .limit(Duration::from_secs(25));
        let command = match kind {
            "shell" => ["bash", "-c", SHELL].map(str::to_owned).to_vec(),
            kind => lab.probe(&["storm", kind]),
        };
        let what = format!("{kind}, {identity:?}, {limit:?}");
        let began = Instant::now();
        let run = sandbox.start(&command);
        run.wait_for("ready");
        Self {
            run,
            bystander,
            began,
            what,
        }
    }

    /// Asserts that all of it was over `limit` after `since`, but the bystander.
    fn ends_within(self, since: Instant, limit: Duration) {
        let what = self.what.clone();
        let took = self.over(since);
        assert!(took < limit, "{what}: over after {took:?}");
    }

    /// How long after `since` all of it is over, but the bystander.
    fn over(self, since: Instant) -> Duration {
        let bystander = self.bystander.pid();
        let own = i32::try_from(std::process::id()).expect("a process id");
        let left = || {
            let mut all = processes();
            all.retain(|one| ![1, own, bystander].contains(&one.pid));
            all
        };
        let over = outgate_harness::eventually(Duration::from_secs(20), || left().is_empty());
        let took = since.elapsed();
        assert!(over, "{}: {} are left", self.what, left().len());
        let outcome = self.run.finish();
        assert!(!outcome.held, "{}: {outcome}", self.what);
        assert!(self.bystander.output().contains("ready"));
        let bystander = self.bystander.finish();
        assert_eq!(bystander.code, Some(0), "{}: hit: {bystander}", self.what);
        took
    }
}

/// Now, in nanoseconds of the clock that the stamps of a storm are made of.
fn stamp() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// When each of the processes of a storm ran last that wrote stamps.
fn stamps(lab: &Lab, identity: Identity) -> Vec<i64> {
    let path = lab.folder("work", identity).join("stamps");
    let bytes = std::fs::read(&path).expect("stamps");
    std::fs::remove_file(path).expect("removed");
    let (all, _) = bytes.as_chunks();
    let all = all.iter().copied().map(i64::from_ne_bytes);
    // The last is a mark.
    all.take(64).filter(|stamp| *stamp > 0).collect()
}

/// Each kind with some bounds, so that all bounds had a turn.
fn in_turn() -> Vec<(&'static str, (Identity, Option<u32>))> {
    KINDS
        .into_iter()
        .zip(bounds().into_iter().cycle())
        .collect()
}

lab_tests! {
    fn every_storm_ends_with_the_launcher(lab) {
        let Some(_turn) = alone(lab) else {
            return;
        };
        for kind in KINDS {
            for bound in bounds() {
                // A process takes SIGKILL when its own turn comes, the launcher among all
                // of the storm: late once in a while, where others use the processors.
                let over = || {
                    let storm = Storm::start(lab, kind, bound, "");
                    std::thread::park_timeout(GROWTH);
                    storm.run.signal(Signal::SIGKILL);
                    storm.over(Instant::now())
                };
                let took = over();
                let took = if took < END { took } else { over() };
                assert!(took < END, "{kind}, {bound:?}: over after {took:?}");
            }
        }
    }

    fn every_storm_ends_at_its_time(lab) {
        let Some(_turn) = alone(lab) else {
            return;
        };
        let wall = format!("wall_time = \"{}s\"\n", WALL_TIME.as_secs());
        for (kind, bound) in in_turn() {
            let storm = Storm::start(lab, kind, bound, &wall);
            let began = storm.began;
            storm.ends_within(began, WALL_TIME + GRACE + END);
        }
    }

    fn what_is_killed_runs_no_more_while_the_kernel_frees_its_memory(lab) {
        let Some(_turn) = alone(lab) else {
            return;
        };
        let wall = format!("wall_time = \"{}s\"\n", LONG_WALL_TIME.as_secs());
        for identity in Identity::all() {
            for wall in [wall.as_str(), ""] {
                let began = stamp();
                let storm = Storm::start(lab, "mappings", (identity, None), wall);
                storm.run.wait_for("grown");
                let grown = stamp();
                let killed = if wall.is_empty() {
                    std::thread::park_timeout(GROWTH);
                    storm.run.signal(Signal::SIGKILL);
                    stamp()
                } else {
                    began + i64::try_from((LONG_WALL_TIME + GRACE).as_nanos()).expect("a time")
                };
                let took = storm.over(Instant::now());
                let stamps = stamps(lab, identity);
                let late = killed + i64::try_from(END.as_nanos()).expect("a time");
                let what = format!("{identity:?} {wall:?}: over after {took:?}, killed {killed}");
                assert!(stamps.len() > 10, "{what}: {stamps:?}");
                assert!(stamps.iter().any(|stamp| *stamp > grown), "{what}: none ran {stamps:?}");
                assert!(stamps.iter().all(|stamp| *stamp < late), "{what}: ran on {stamps:?}");
            }
        }
    }

    fn every_storm_is_killed_by_name(lab) {
        let Some(_turn) = alone(lab) else {
            return;
        };
        for (kind, bound) in in_turn().into_iter().rev().step_by(2) {
            // From another terminal, which is there before the storm takes every
            // number that a process could have.
            let outgate = lab.tools.programs.join("outgate");
            let script = format!("read go; exec {} kill storm", outgate.display());
            let words = ["setsid", "--fork", "--wait", "sh", "-c", &script].map(str::to_owned);
            let mut kill = lab.start_bare(bound.0, &words);
            let storm = Storm::start(lab, kind, bound, "");
            std::thread::park_timeout(GROWTH);
            let since = Instant::now();
            kill.say("go\n");
            let kill = kill.finish();
            assert_eq!(kill.code, Some(0), "{}: {kill}", storm.what);
            storm.ends_within(since, GRACE + END);
        }
    }

    fn a_launcher_that_stands_still_does_not_lengthen_the_wall_time(lab) {
        let Some(_turn) = alone(lab) else {
            return;
        };
        let wall = format!("wall_time = \"{}s\"\n", WALL_TIME.as_secs());
        for bound in bounds() {
            let storm = Storm::start(lab, "fork", bound, &wall);
            storm.run.signal(Signal::SIGSTOP);
            let (launcher, began) = (storm.run.pid(), storm.began);
            let ended = || {
                let all = processes();
                all.iter().all(|one| one.name != "probe" || one.pid == storm.bystander.pid())
            };
            let over = outgate_harness::eventually(Duration::from_secs(20), ended);
            let took = began.elapsed();
            assert!(over && took < WALL_TIME + GRACE + END, "{}: {took:?}", storm.what);
            assert!(processes().iter().any(|one| one.pid == launcher && one.state == 'T'));
            storm.run.signal(Signal::SIGCONT);
            let since = Instant::now();
            storm.ends_within(since, END);
        }
    }
}
