//! Which files a command opened in vain, as a second run tells: each once, with what grants
//! it, and nothing that a hostile command could have its user grant unseen.

use std::fs;
use std::os::unix::fs::symlink;

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{home, project, write};

/// Runs a script of a shell in a run that tells.
fn told(lab: &Lab, identity: Identity, script: &str) -> Outcome {
    let sandbox = Sandbox::plain(lab, identity).within(project(lab, identity, "p"));
    let sandbox = sandbox.flag("--watch-files");
    sandbox.run(&["sh", "-c", script].map(str::to_owned))
}

/// The lines about files.
fn lines(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    let mut about = lines.skip_while(|line| !line.contains("opened in vain"));
    about.next();
    about.collect()
}

lab_tests! {
    fn what_was_opened_in_vain_is_named_with_what_grants_it(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            let place = |name: &str| home.join(name).to_string_lossy().into_owned();
            for file in ["data/in put", "data/out", "data/beside"] {
                write(&home.join(file), "text\n", identity);
            }
            let script = "cat ~/data/in\\ put ~/data/in\\ put; cd ~/data; cat ../data/beside; (echo x >> out) 2>/dev/null; \
                          cat ~/nothing-there; echo > $TMPDIR/own; cat $TMPDIR/own /etc/passwd > /dev/null";
            let outcome = told(lab, identity, script);
            let expected = [
                format!("  -r '{}'", place("data/in put")),
                format!("  -r {}", place("data/beside")),
                format!("  -w {}", place("data/out")),
            ];
            assert_eq!(lines(&outcome), expected, "{outcome}");
            // What is named is what was missing.
            let sandbox = Sandbox::plain(lab, identity).within(project(lab, identity, "p")).flag("--watch-files");
            let sandbox = sandbox.option("-r", &place("data/in put")).option("-r", &place("data/beside")).option("-w", &place("data/out"));
            let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
            assert!(outcome.stderr.ends_with("outgate: the command opened no file in vain that you may open\n"), "{outcome}");
            assert_eq!(fs::read_to_string(home.join("data/out")).expect("a file"), "text\nx\n", "{outcome}");
            // It costs a held call for each open, so nobody has it who did not ask.
            let sandbox = Sandbox::plain(lab, identity).within(project(lab, identity, "p"));
            let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
            assert!(!outcome.stderr.contains("opened in vain"), "{outcome}");
        }
    }

    fn a_command_has_nobody_grant_what_it_chose(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            let shown = home.to_string_lossy().into_owned();
            for file in [".ssh/id_ed25519", "data/one", ".bashrc"] {
                write(&home.join(file), "a-secret-of-the-users-own\n", identity);
            }
            for number in 0..40 {
                write(&home.join(format!("many/{number:02}")), "x", identity);
            }
            let work = project(lab, identity, "p");
            symlink(home.join(".ssh/id_ed25519"), work.join("harmless")).expect("a link");
            let script = "cat harmless; echo x >> ~/.bashrc; ls ~ /; cat /proc/1/environ; \
                          cat \"$(printf '%s/data/\\033[2Kx\\nname' ~)\" ~/data/one; echo x > \"$(printf '%s/data/\\033[2Kx\\nname' ~)\"; \
                          cat ~/many/*; for n in $(seq -w 0 39); do cat ~/many/$n; done; true";
            let outcome = told(lab, identity, script);
            let about = lines(&outcome);
            let look = "credentials lie there, or programs start from it; look before it is granted";
            for line in [
                format!("  # {shown}/.ssh/id_ed25519: {look}"),
                format!("  # {shown}/.bashrc: {look}"),
                format!("  # {shown}: it holds the home directory; name what is needed below it"),
                format!("  -r {shown}/data/one"),
            ] {
                assert!(about.contains(&line.as_str()), "{line}: {outcome}");
            }
            assert_eq!(about.len(), 17, "{outcome}");
            assert!(about.last().is_some_and(|line| line.starts_with("  and ")), "{outcome}");
            assert!(about.iter().all(|line| !line.contains('\u{1b}')), "{outcome}");
            assert!(!outcome.stdout.contains("a-secret"), "{outcome}");
            assert!(about.iter().all(|line| !line.contains("/proc")), "{outcome}");
            assert!(about.iter().all(|line| !line.starts_with("  -") || !line.contains("ssh")), "{outcome}");
        }
    }
}
