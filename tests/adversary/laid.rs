//! Links that a command lays where it may write: a later run, or one beside, that grants
//! a path there gives nothing of what they lead to.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests, race_time};

/// What lies where nobody granted anything.
const SECRET: &str = "1577-secret-key-2048";

/// A fresh working directory, and a place beside it that nobody grants.
fn places(lab: &Lab, identity: Identity) -> (PathBuf, PathBuf) {
    let (work, victim) = (lab.folder("work", identity), lab.folder("victim", identity));
    for place in [&work, &victim] {
        std::fs::remove_dir_all(place).ok();
    }
    lab.folder("work", identity);
    let victim = lab.folder("victim", identity);
    std::fs::write(victim.join("key"), SECRET).expect("a secret");
    (work, victim)
}

/// Reads and writes what nobody granted.
fn attack(victim: &Path) -> Vec<String> {
    let script = "cat \"$0/key\"; echo mine > \"$0/new\"; echo done";
    let mut words = ["sh", "-c", script].map(str::to_owned).to_vec();
    words.push(victim.to_string_lossy().into_owned());
    words
}

/// Nothing of it was read or written.
fn assert_kept(victim: &Path, outcome: &Outcome, what: &str) {
    assert!(!outcome.stdout.contains(SECRET), "{what} {outcome}");
    assert!(!victim.join("new").exists(), "{what} {outcome}");
}

/// How long each race is run at most: a window as wide as this is hit within tens of runs.
const RACE_MAX: Duration = Duration::from_secs(3);

/// Exchanges a directory and a link, again and again.
const SWAP: &str = "
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
print('swaps', flush=True)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    if libc.renameat2(-100, b'sub', -100, b'link', 2): sys.exit('no exchange')
    time.sleep(0.0005)
";

lab_tests! {
    fn a_link_that_a_command_laid_widens_no_later_run(lab) {
        for identity in Identity::all() {
            let (work, victim) = places(lab, identity);
            let lay = format!(
                "ln -s {0} out && mkdir deep && ln -s ../out deep/way && ln -s {0}/absent new && ln -s build in && mkdir build",
                victim.display()
            );
            let laid = Sandbox::plain(lab, identity).run(&["sh".into(), "-c".into(), lay]);
            assert_eq!(laid.code, Some(0), "{identity:?} {laid}");
            let absolute = work.join("out").to_string_lossy().into_owned();
            for (option, path) in [
                ("-w", "out"), ("-r", "out"), ("-r", "out/key"), ("-w", "out/key"), ("-w", "deep/way"),
                ("-r", "deep/way/key"), ("-w", "./deep/../out"), ("-w", &absolute), ("-r", "new"),
            ] {
                let what = format!("{identity:?} {option} {path}");
                let sandbox = Sandbox::plain(lab, identity).option(option, path);
                let outcome = sandbox.run(&attack(&victim));
                assert_kept(&victim, &outcome, &what);
                assert_eq!(outcome.code, Some(2), "{what} {outcome}");
                let names_it = outcome.stderr.contains(&*victim.to_string_lossy());
                assert!(names_it && outcome.stderr.contains("hint"), "{what} {outcome}");
            }
            // What is named itself is what is meant; what lies in the working directory is
            // granted with it.
            let named = victim.to_string_lossy().into_owned();
            let sandbox = Sandbox::plain(lab, identity).option("-w", "in").option("-w", "out").option("-w", &named);
            let outcome = sandbox.run(&attack(&victim));
            assert!(outcome.stdout.contains(SECRET) && victim.join("new").exists(), "{identity:?} {outcome}");
        }
    }

    fn a_link_of_the_user_elsewhere_is_followed_as_ever(lab) {
        for identity in Identity::all() {
            let (_, victim) = places(lab, identity);
            let link = lab.folder("elsewhere", identity).join("data");
            std::fs::remove_file(&link).ok();
            symlink(&victim, &link).expect("a link");
            let sandbox = Sandbox::plain(lab, identity).option("-w", &link.to_string_lossy());
            let outcome = sandbox.run(&attack(&victim));
            assert!(outcome.stdout.contains(SECRET) && victim.join("new").exists(), "{identity:?} {outcome}");
        }
    }

    fn a_directory_that_is_swapped_with_a_link_widens_no_run(lab) {
        for identity in Identity::all() {
            let (work, victim) = places(lab, identity);
            // Granted piece by piece, around what is denied.
            let policy = lab.directory.join("split.toml");
            let text = format!("[filesystem]\ndeny = [\"{}\"]\n", work.join("hidden").display());
            std::fs::write(&policy, text).expect("a policy");
            let policy = policy.to_string_lossy().into_owned();
            let lay = format!("mkdir sub hidden && ln -s {} link", victim.display());
            let laid = Sandbox::plain(lab, identity).run(&["sh".into(), "-c".into(), lay]);
            assert_eq!(laid.code, Some(0), "{identity:?} {laid}");
            for (option, value) in [("-r", "sub"), ("-w", "sub"), ("-p", &*policy)] {
                let time = race_time().min(RACE_MAX);
                let swap = ["python3", "-c", SWAP, &time.as_secs_f64().to_string()].map(str::to_owned);
                let swapping = Sandbox::plain(lab, identity).start(&swap);
                swapping.wait_for("swaps");
                let (mut started, began) = (0, Instant::now());
                while began.elapsed() < time {
                    let sandbox = Sandbox::plain(lab, identity).option(option, value);
                    let outcome = sandbox.run(&attack(&victim));
                    assert_kept(&victim, &outcome, &format!("{identity:?} {option} {value}"));
                    started += i32::from(outcome.stdout.contains("done"));
                }
                let outcome = swapping.finish();
                assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
                assert!(started > 0, "{identity:?} {option} {value}: some of the runs start");
            }
            assert!(work.join("hidden").exists());
        }
    }
}
