//! What a command does to the private directory of its run: fills it so that nobody gets it
//! empty, puts it and the files in it elsewhere, and lays links in their place. Nothing
//! that lies outside of its grants is read, written or removed for it, and the run ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, Witness, lab_tests};

/// Text that looks like a certificate, and lies where nobody granted anything.
const SECRET: &str = "MTU3Ny1zZWNyZXQtY2VydGlmaWNhdGU";

/// Makes directories within each other, from the innermost outwards, and says so.
const NEST: &str = "
import os, sys
os.chdir(os.environ['TMPDIR'])
os.mkdir('a')
for number in range(int(sys.argv[1])):
    os.mkdir('b')
    os.rename('a', 'b/a')
    os.rename('b', 'a')
    if number % 100 == 0: open('a/f', 'w').close()
print('made', flush=True)
";

/// Makes many directories with a file each, and says so.
const FILL: &str = "
import os, sys
os.chdir(os.environ['TMPDIR'])
for number in range(int(sys.argv[1])):
    os.mkdir(str(number))
    open(f'{number}/f', 'w').close()
print('made', flush=True)
";

fn python(script: &str, words: &[&str]) -> Vec<String> {
    let all = ["python3", "-c", script];
    all.iter()
        .chain(words)
        .map(|&word| word.to_owned())
        .collect()
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// A directory that nobody grants, with a file that holds what looks like a certificate.
fn victim(lab: &Lab, identity: Identity) -> PathBuf {
    let victim = lab.folder("victim", identity);
    let text = format!("-----BEGIN CERTIFICATE-----\n{SECRET}\n-----END CERTIFICATE-----\n");
    fs::write(victim.join("key"), text).expect("a secret");
    victim
}

/// Asserts that nothing there changed, and that nobody said what it holds.
fn assert_kept(victim: &Path, outcome: &Outcome, what: &str) {
    let names = fs::read_dir(victim).expect("a directory").flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["key"], "{what} {outcome}");
    let text = fs::read_to_string(victim.join("key")).unwrap_or_default();
    assert!(text.contains(SECRET), "{what} {outcome}");
    assert!(!outcome.stdout.contains(SECRET), "{what} {outcome}");
}

/// How long the end of a run takes, from the last word of its command.
fn end(sandbox: Sandbox<'_>, command: &[String]) -> (Duration, Outcome) {
    let run = sandbox.limit(Duration::from_mins(2)).start(command);
    let made = || run.output().contains("made");
    outgate_harness::eventually(Duration::from_secs(90), made);
    let said = Instant::now();
    let outcome = run.finish();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    (said.elapsed(), outcome)
}

/// How long the end may take on a busy machine: two seconds are for the directory.
const END_MAX: Duration = Duration::from_secs(8);

lab_tests! {
    fn directories_in_each_other_are_all_removed_and_keep_nobody(lab) {
        for identity in Identity::all() {
            // In memory, where a directory costs little and their depth would show.
            let place = format!("/run/nest-{}", identity.uid());
            fs::create_dir(&place).expect("a directory");
            nix::unistd::chown(place.as_str(), Some(nix::unistd::Uid::from_raw(identity.uid())), None).ok();
            let sandbox = lab.sandbox(identity).environment("TMPDIR", &place);
            let (time, outcome) = end(sandbox, &python(NEST, &["100000"]));
            assert!(time < END_MAX, "{identity:?} took {time:?}: {outcome}");
            let empty = || fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
            // Where many wait for a processor, two seconds are none.
            assert!(empty() || outcome.stderr.contains("is removed beside"), "{identity:?} {outcome}");
            assert!(outgate_harness::eventually(Duration::from_secs(30), empty), "{identity:?} {outcome}");
        }
    }

    fn what_takes_long_to_remove_is_removed_beside(lab) {
        for identity in Identity::all() {
            let before = Before::new(vec![lab.folder("tmp", identity)]);
            let (time, outcome) = end(lab.sandbox(identity), &python(FILL, &["4000"]));
            assert!(time < END_MAX, "{identity:?} took {time:?}: {outcome}");
            let path = lab.folder("tmp", identity);
            let empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
            let said = outcome.stderr.contains("outgate: what the command left in its temporary directory");
            assert!(said || empty(), "{identity:?} {outcome}");
            assert!(outgate_harness::eventually(Duration::from_secs(100), empty), "{identity:?} {outcome}");
            before.assert_all_gone();
        }
    }

    fn a_bundle_swapped_for_a_link_shows_and_changes_nothing(lab) {
        let allowed = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let victim = victim(lab, identity);
            let work = lab.folder("work", identity);
            let key = victim.join("key").display().to_string();
            // The bundle that the user named lies where the command may write; those of the
            // run lie in its own directory. Each opened afterwards has its content by then.
            for (what, swap) in [
                ("named", format!("ln -sf {key} own.pem")),
                ("written", format!("cd $TMPDIR; for f in *.pem *.p12 wgetrc; do mv $f x-$f; ln -s {key} $f; done")),
                ("moved", format!("mv $TMPDIR/ca-bundle.pem .; ln -s {key} $TMPDIR/ca-bundle.pem")),
                ("joined", "ln $TMPDIR/ca-bundle.pem x.pem; rm $TMPDIR/*.pem; mkdir $TMPDIR/ca-bundle.pem".to_owned()),
            ] {
                fs::write(work.join("own.pem"), "-----BEGIN CERTIFICATE-----\nT1dO\n-----END CERTIFICATE-----\n").expect("a bundle");
                let script = format!(
                    "({swap}); cat $TMPDIR/* $CURL_CA_BUNDLE $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS 2>/dev/null; cat $TMPDIR/x-* *.pem 2>/dev/null; echo end"
                );
                let bundle = work.join("own.pem").display().to_string();
                let sandbox = Sandbox::plain(lab, identity)
                    .allow(&format!("GET https://{}/**", allowed.address()))
                    .environment("CURL_CA_BUNDLE", &bundle);
                let outcome = sandbox.run(&shell(&script));
                assert!(outcome.stdout.ends_with("end\n"), "{what} {identity:?} {outcome}");
                assert_kept(&victim, &outcome, &format!("{what} {identity:?}"));
                let text = fs::read_to_string(victim.join("key")).expect("the secret");
                assert!(!text.contains("OUTGATE") && text.lines().count() == 3, "{what} {identity:?}: {text}");
                for name in ["own.pem", "x.pem", "ca-bundle.pem"] {
                    fs::remove_file(work.join(name)).ok();
                }
            }
        }
    }

    fn a_private_directory_put_elsewhere_leads_the_launcher_nowhere(lab) {
        let denied = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let victim = victim(lab, identity);
            let tmp = lab.folder("tmp", identity);
            let granted = tmp.display().to_string();
            let connect = format!("{} connect {}", lab.tool("probe"), denied.address());
            for (what, swap) in [
                ("link", format!("mv $TMPDIR {granted}/away; ln -s {} $TMPDIR", victim.display())),
                ("way", format!("mv $TMPDIR {granted}/away; mkdir $TMPDIR; ln -s {}/key $TMPDIR/outgate-denials.txt", victim.display())),
                ("other", format!("mv $TMPDIR {granted}/away; mv {granted}/kept $TMPDIR")),
            ] {
                // Of somebody else where that is possible, so that the command cannot empty it.
                let kept = tmp.join("kept");
                fs::create_dir_all(kept.join("deep")).expect("a directory");
                fs::write(kept.join("deep/file"), "x").expect("a file");
                if nix::unistd::geteuid().is_root() {
                    let owner = Some(nix::unistd::Uid::from_raw(identity.uid()));
                    nix::unistd::chown(&kept, owner, None).ok();
                }
                fs::set_permissions(kept.join("deep"), fs::Permissions::from_mode(0o500)).expect("a mode");
                let script = format!("{swap}; {connect}; {connect}; echo \"at $TMPDIR\"");
                let sandbox = Sandbox::plain(lab, identity)
                    .option("-P", "base")
                    .option("-r", "/")
                    .option("-w", &granted)
                    .allow("GET https://example.test/**");
                let outcome = sandbox.run(&shell(&script));
                assert!(outcome.stdout.contains("at /"), "{what} {identity:?} {outcome}");
                assert_kept(&victim, &outcome, &format!("{what} {identity:?}"));
                denied.assert_untouched("a denied place");
                if what == "other" {
                    let place = outcome.stdout.lines().find_map(|line| line.strip_prefix("at "));
                    let place = PathBuf::from(place.expect("a place"));
                    assert!(place.join("deep/file").exists(), "{identity:?} {outcome}");
                }
                // Its own is empty wherever it is by then.
                let away = fs::read_dir(tmp.join("away")).map_or(0, Iterator::count);
                assert_eq!(away, 0, "{what} {identity:?} {outcome}");
                fs::remove_dir_all(&tmp).ok();
                lab.folder("tmp", identity);
            }
        }
    }
}
