//! The Debian package: made by its one command from the programs under test, unpacked into
//! a directory, and used from there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::{Identity, lab_tests};

use crate::outgate;

/// Makes the package in a directory; nothing where this is no Debian.
fn package(output: &Path) -> Option<PathBuf> {
    Command::new("dpkg-deb").arg("--version").output().ok()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/debian/package.sh");
    let programs = outgate().parent().expect("a folder").to_owned();
    let made = Command::new(script)
        .arg("--programs")
        .arg(programs)
        .arg("--output")
        .arg(output)
        .env("OUTGATE_DEB_COMPRESSION", "none")
        .env("SOURCE_DATE_EPOCH", "1790000000")
        .output()
        .expect("the script");
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
    let path = String::from_utf8(made.stdout).expect("a path");
    Some(PathBuf::from(path.trim()))
}

fn said(words: &[&str], path: &Path) -> String {
    let (program, rest) = words.split_first().expect("a program");
    let done = Command::new(program)
        .args(rest)
        .arg(path)
        .output()
        .expect("dpkg-deb");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("text")
}

lab_tests! {
    fn the_package_has_what_its_users_look_for_and_runs_from_where_it_is(lab) {
        let output = lab.folder("package", Identity::Own);
        let Some(package) = package(&output) else {
            println!("skipped: no dpkg-deb");
            return;
        };
        let listed = said(&["dpkg-deb", "--contents"], &package);
        for line in listed.lines() {
            assert!(line.contains(" root/root "), "{line}");
            assert!(!line.starts_with("-rws") && !line.contains("w- root"), "{line}");
        }
        for name in [
            "./usr/bin/outgate", "./usr/bin/outgate-gateway", "./usr/bin/outgate-report",
            "./usr/share/man/man1/outgate.1.gz", "./usr/share/man/man1/outgate-audit-query.1.gz",
            "./usr/share/bash-completion/completions/outgate",
            "./usr/share/doc/outgate/copyright", "./usr/share/doc/outgate/LICENSES.gz",
        ] {
            assert!(listed.lines().any(|line| line.ends_with(name)), "{name}: {listed}");
        }
        let control = said(&["dpkg-deb", "--field"], &package);
        assert!(control.starts_with("Package: outgate\nVersion: "), "{control}");
        let root = output.join("root");
        fs::remove_dir_all(&root).ok();
        let unpacked = Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root).status();
        assert!(unpacked.expect("dpkg-deb").success());
        let program = root.join("usr/bin/outgate");
        assert_eq!(fs::metadata(&program).expect("a program").permissions().mode() & 0o7777, 0o755);
        // Nothing of the machine it was made on.
        let licences = Command::new("zcat").arg(root.join("usr/share/doc/outgate/LICENSES.gz")).output().expect("zcat");
        let licences = String::from_utf8_lossy(&licences.stdout);
        assert!(licences.contains("rustls v") && !licences.contains("(/"), "{}", licences.chars().take(2000).collect::<String>());
        for identity in Identity::all() {
            let work = lab.folder("packaged", identity);
            let mut words = identity.prefix();
            words.push(program.to_string_lossy().into_owned());
            let mut command = Command::new(words.remove(0));
            command.args(words)
                .args(["run", "--", "sh", "-c", "echo ran"]).current_dir(&work)
                .env("HOME", lab.folder("home", identity)).env_remove("XDG_STATE_HOME");
            let done = command.output().expect("setpriv");
            let errors = String::from_utf8_lossy(&done.stderr);
            assert_eq!(String::from_utf8_lossy(&done.stdout), "ran\n", "{identity:?}: {errors}");
        }
        fs::remove_dir_all(&root).ok();
    }
}
