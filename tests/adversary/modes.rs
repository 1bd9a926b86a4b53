//! Set-user-ID and set-group-ID programs: none is left behind, by whatever call
//! it would be made, since whoever executes it later is confined by nobody.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use outgate_harness::{Identity, Lab, Outcome, lab_tests};

/// Every call that takes a mode, and what it left.
const EVERY_CALL: &str = include_str!("modes.py");

/// Modes that ordinary programs give: one line each, and nothing may fail.
const ORDINARY: &str = "
set -eu
umask 022
cd \"$1\"
echo '#!/bin/sh' > plain; chmod 755 plain; chmod u+x,g-w plain; chmod 1777 .; chmod 755 .
install -m 750 plain installed; install -d -m 700 private; mkdir -m 711 made; mkfifo -m 600 pipe
cp -p plain copied; cp -r private again; tar -cf archive plain private; mkdir out; tar -xpf archive -C out
/usr/bin/python3 -c 'import os, tempfile, shutil
tempfile.mkstemp(dir=\".\"); tempfile.TemporaryFile(dir=\".\"); shutil.copytree(\"private\", \"tree\")
os.close(os.open(\"plain\", os.O_RDONLY, 0o6755)); os.close(os.open(\"new\", os.O_CREAT | os.O_WRONLY, 0o1666))'
stat -c '%a %n' plain installed private made pipe copied new
";

fn python(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy().into_owned();
    [
        "/usr/bin/python3".into(),
        "-c".into(),
        EVERY_CALL.into(),
        folder,
    ]
    .into()
}

/// The name of each attempt, its errno, and the bits it left.
fn attempts(outcome: &Outcome) -> Vec<(&str, &str, &str)> {
    outcome
        .stdout
        .lines()
        .filter_map(|line| {
            let (name, result) = line.split_once('=')?;
            let (errno, bits) = result.split_once(' ')?;
            Some((name, errno, bits))
        })
        .collect()
}

/// A folder that anybody may search, with a set-ID program in it that was there.
fn folder(lab: &Lab, identity: Identity, name: &str) -> std::path::PathBuf {
    let folder = lab.folder("work", identity).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let given = folder.join("given");
    std::fs::copy("/bin/true", &given).expect("a program");
    for path in [&folder, &given] {
        std::os::unix::fs::chown(path, Some(identity.uid()), Some(identity.uid()))
            .expect("an owner");
    }
    let mode = std::fs::Permissions::from_mode(0o6755);
    std::fs::set_permissions(&given, mode).expect("a mode");
    folder
}

/// How many programs in a folder have one of the bits.
fn set_id(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .filter(|entry| entry.file_name() != "given")
        .filter(|entry| entry.metadata().is_ok_and(|stat| stat.mode() & 0o6000 != 0))
        .count()
}

lab_tests! {
    fn no_set_user_id_program_is_left_behind_by_any_call(lab) {
        for identity in Identity::all() {
            let bare = folder(lab, identity, "bare");
            let outcome = lab.start_bare(identity, &python(&bare)).finish();
            let tried = attempts(&outcome);
            assert!(tried.len() >= 90, "{outcome}");
            for (name, errno, bits) in &tried {
                let kept = *bits != "0" || name.starts_with("mkdir");
                assert!(*errno == "0" && kept, "bare {name} works: {outcome}");
            }
            assert!(set_id(&bare) > 70, "{outcome}");
            let ours = folder(lab, identity, "ours");
            let outcome = lab.sandbox(identity).run(&python(&ours));
            assert_eq!(attempts(&outcome).len(), tried.len(), "{identity:?} {outcome}");
            for (name, errno, bits) in attempts(&outcome) {
                let shown = ["program", "mkdir"].iter().any(|start| name.starts_with(start));
                let refused = ["EPERM", "ENOSYS"].contains(&errno);
                assert!(bits == "0" && (refused || shown), "{identity:?} {name}: {errno} {bits}\n{outcome}");
            }
            assert!(outcome.stdout.ends_with("made 0\n"), "{identity:?} {outcome}");
            assert_eq!(set_id(&ours), 0, "{identity:?} {outcome}");
        }
    }

    fn ordinary_modes_are_given_as_ever(lab) {
        let line = |folder: &str| ["sh", "-c", ORDINARY, "sh", folder].map(str::to_owned);
        for identity in Identity::all() {
            let expected = "755 plain\n750 installed\n700 private\n711 made\n600 pipe\n755 copied\n1644 new\n";
            let bare = lab.start_bare(identity, &line(&folder(lab, identity, "bare").to_string_lossy())).finish();
            assert_eq!(bare.stdout, expected, "{identity:?} {bare}");
            let outcome = lab.sandbox(identity).run(&line(&folder(lab, identity, "ours").to_string_lossy()));
            assert_eq!(outcome.stdout, expected, "{identity:?} {outcome}");
        }
    }
}
