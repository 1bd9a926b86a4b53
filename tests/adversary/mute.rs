//! A file system that never answers: whoever connects below it waits by himself. The
//! command's other calls are answered, and the run ends whenever somebody wants that.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outgate_harness::leftovers::Before;
use outgate_harness::run::Running;
use outgate_harness::{Identity, Lab, lab_tests};

/// Longest time another call may take, and longest until a run has ended.
const OTHERS_US_MAX: i64 = 1_000_000;
const END_SECONDS_MAX: u64 = 4;

/// The file system, where it is mounted, as long as it lives.
struct Mute {
    process: Running,
    folder: PathBuf,
}

impl Mute {
    /// Mounts it, if this machine has what that takes. Its requests are `taken` by
    /// its process, or `left` where they are.
    fn at(lab: &Lab, how: &str) -> Option<Self> {
        let folder = lab.directory.join(format!("mute-{how}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let words = lab.probe(&["mute", &folder.to_string_lossy(), how]);
        let process = lab.start_bare(Identity::Own, &words);
        let said = process.wait_for("\n");
        if said.contains("no fuse") {
            outgate_harness::skip(&said);
            return None;
        }
        Some(Self { process, folder })
    }

    fn path(&self) -> String {
        self.folder.join("server").to_string_lossy().into_owned()
    }

    /// Ends it, and what waits for it with it.
    fn end(self) {
        self.process.signal(Signal::SIGKILL);
        self.process.finish();
        detach(&self.folder);
    }
}

fn detach(folder: &Path) {
    let umount = std::process::Command::new("umount")
        .arg("-l")
        .arg(folder)
        .output();
    assert!(
        umount.is_ok_and(|done| done.status.success()),
        "it was mounted"
    );
}

/// A way to end a run that waits: does something to it, and says how it ends.
type End = fn(&Lab, Identity, &Running);

lab_tests! {
    fn a_file_system_that_never_answers_delays_nobody_else(lab) {
        for how in ["taken", "left"] {
            for identity in Identity::all() {
                let Some(mute) = Mute::at(lab, how) else { return };
                let run = lab.sandbox(identity).start_probe(&["beside-mute", &mute.path(), "5000"]);
                run.wait_for("waits");
                run.signal(Signal::SIGTERM);
                let outcome = run.finish();
                let what = format!("{how} {identity:?} {outcome}");
                assert_eq!(outcome.errno("listen"), "0", "{what}");
                assert!(outcome.number("max_us=") < OTHERS_US_MAX, "{what}");
                assert_eq!(outcome.number("made="), outcome.number("tries="), "{what}");
                assert!(outcome.number("tries=") > 100, "{what}");
                // Nobody waits for it without end either.
                assert!(outcome.number("answered=") >= 4, "{what}");
                assert_eq!(outcome.number("last="), 110, "{what}");
                mute.end();
            }
        }
    }

    fn a_run_ends_whatever_a_file_system_does(lab) {
        let ends: [(&str, End); 4] = [
            ("interrupt", |_, _, run| run.signal(Signal::SIGINT)),
            ("kill", |lab, identity, run| {
                let mut kill = identity.prefix();
                let outgate = lab.tools.programs.join("outgate");
                kill.extend([outgate.to_string_lossy().into_owned(), "kill".to_owned(), run.pid().to_string()]);
                let done = std::process::Command::new(&kill[0]).args(&kill[1..]).output();
                assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{done:?}");
            }),
            ("death", |_, _, run| run.signal(Signal::SIGKILL)),
            ("wall time", |_, _, _| ()),
        ];
        let policy = lab.directory.join("wall.toml");
        std::fs::write(&policy, "[limits]\nwall_time = \"3s\"\n").expect("a file");
        for how in ["taken", "left"] {
            for identity in Identity::all() {
                for (name, end) in ends {
                    let before = Before::new(Vec::new());
                    let Some(mute) = Mute::at(lab, how) else { return };
                    let mut sandbox = lab.sandbox(identity).limit(Duration::from_secs(20));
                    if name == "wall time" {
                        sandbox = sandbox.option("-p", &policy.to_string_lossy());
                    }
                    let run = sandbox.start_probe(&["beside-mute", &mute.path(), "1000"]);
                    run.wait_for("waits");
                    let begun = Instant::now();
                    end(lab, identity, &run);
                    let outcome = run.finish();
                    let took = begun.elapsed();
                    let what = format!("{how} {identity:?} {name} {outcome}");
                    assert!(took < Duration::from_secs(END_SECONDS_MAX), "{took:?} {what}");
                    assert!(outcome.code.is_some() || outcome.signal.is_some(), "{what}");
                    mute.end();
                    before.assert_all_gone();
                }
            }
        }
    }
}
