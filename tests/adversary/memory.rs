//! Memory that runs out: the kernel ends processes of the command, and never those that
//! end the rest of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, lab_tests};

/// What all of a run may have, in bytes: its three programs and the command's.
const BYTES_MAX: u64 = 256 << 20;

/// Many small processes that never end, and one that takes all memory there is, again and
/// again: its own, or that of files in memory, which belongs to no process.
const EATERS: [&str; 2] = [
    "import mmap\nheld = []\nwhile True:\n    own = mmap.mmap(-1, 1 << 22)\n    own.write(b'x' * (1 << 22))\n    held.append(own)",
    "import os\nwhile True:\n    one = os.memfd_create('x')\n    os.write(one, b'x' * (1 << 22))",
];

/// A group of processes with a bound on their memory, removed when this is dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Below the group of this test, in either version of the hierarchy.
    fn make() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("outgate-test-{}", std::process::id());
        let old = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let has = controllers.split(',').any(|one| one == "memory");
            has.then(|| Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/')))
        });
        let (above, limit) = match old {
            Some(above) => (above, "memory.limit_in_bytes"),
            None => (PathBuf::from("/sys/fs/cgroup"), "memory.max"),
        };
        // The group of this test may lie below what is mounted here.
        let above = [above, PathBuf::from("/sys/fs/cgroup/memory")]
            .into_iter()
            .find(|path| path.is_dir())?;
        let group = Self(above.join(name));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(limit), BYTES_MAX.to_string()).ok()?;
        fs::write(group.0.join("memory.swap.max"), "0").ok();
        Some(group)
    }

    fn add(&self, pid: i32) -> bool {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).is_ok()
    }

    /// How often the kernel ended somebody.
    fn ended(&self) -> u64 {
        let text = ["memory.events", "memory.oom_control"]
            .map(|name| fs::read_to_string(self.0.join(name)));
        let text = text.into_iter().flatten().collect::<String>();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        outgate_harness::eventually(Duration::from_secs(2), || fs::remove_dir(&self.0).is_ok());
    }
}

lab_tests! {
    fn a_command_that_takes_all_memory_ends_with_all_it_started(lab) {
        let Some(group) = MemoryGroup::make() else {
            return outgate_harness::skip("no group of processes with a bound on memory can be made");
        };
        for identity in Identity::all() {
            for eater in EATERS {
                let before = Before::new(vec![lab.folder("tmp", identity)]);
                let script = "n=0; while [ $n -lt 60 ]; do (while :; do sleep 1000; done) & n=$((n+1)); done; \
                    echo started; while :; do python3 -c \"$0\"; echo again; done";
                let policy = lab.folder("policies", identity).join("time.toml");
                fs::write(&policy, "[limits]\nwall_time = \"8s\"\n").expect("a policy");
                let mut run = lab.sandbox(identity)
                    .option("-p", &policy.to_string_lossy())
                    .wrap(&["sh", "-c", "read -r go; exec \"$@\"", "sh"])
                    .with_input()
                    .start(&["sh", "-c", script, eater].map(str::to_owned));
                if !group.add(run.pid()) {
                    return outgate_harness::skip("no process can be put into the group");
                }
                let earlier = group.ended();
                run.say("go\n");
                let outcome = run.finish();
                assert!(outcome.stdout.contains("started"), "{identity:?} {outcome}");
                assert!(group.ended() > earlier, "memory ran out: {identity:?} {outcome}");
                // By itself, and not by the kernel: who supervises lives on.
                assert!(outcome.code.is_some(), "{identity:?} {outcome}");
                assert!(!outcome.held, "{identity:?} {outcome}");
                before.assert_all_gone();
            }
        }
    }
}
