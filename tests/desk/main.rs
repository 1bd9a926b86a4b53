//! What a person meets in the first minute: ordinary repositories, settings and
//! directories, from an empty home directory and a used one, and what a hostile
//! command could make of what is found there. Real programs; the run is the
//! default one unless a test says otherwise.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]

mod base;
mod denials;
mod digest;
mod elsewhere;
mod git;
mod leftovers;
mod opened;
mod programs;
mod push;
mod tls;
mod tools;
mod trees;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Gid, Uid, chown};
use outgate_harness::{Identity, Lab, Outcome, Sandbox};

/// The home directory of an account, as [`Sandbox`] sets it.
fn home(lab: &Lab, identity: Identity) -> PathBuf {
    lab.folder("home", identity)
}

/// Writes a file that the account owns, with the directories above it.
fn write(path: &Path, text: &str, identity: Identity) {
    let mut made = vec![path.to_owned()];
    let mut above = path.parent();
    while let Some(parent) = above.filter(|parent| !parent.exists()) {
        made.push(parent.to_owned());
        above = parent.parent();
    }
    fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
    fs::write(path, text).expect("a file");
    if identity == Identity::Nobody {
        let id = identity.uid();
        for path in made {
            chown(&path, Some(Uid::from_raw(id)), Some(Gid::from_raw(id))).expect("chown");
        }
    }
}

/// Runs a script without outgate, as the account; it must succeed.
#[track_caller]
fn bare(lab: &Lab, identity: Identity, directory: &Path, script: &str) -> String {
    let mut words = identity.prefix();
    words.extend(["sh", "-ec", script].map(str::to_owned));
    let (program, arguments) = words.split_first().expect("a command");
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home(lab, identity))
        .current_dir(directory)
        .output()
        .expect("a shell");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{script}\n{stdout}{stderr}");
    stdout
}

/// Runs a script in a run without options, in this directory.
fn run(lab: &Lab, identity: Identity, directory: &Path, script: &str) -> Outcome {
    let sandbox = Sandbox::plain(lab, identity).within(directory.to_owned());
    sandbox.run(&["sh", "-c", script].map(str::to_owned))
}

/// What a run that must succeed prints.
#[track_caller]
fn prints(lab: &Lab, identity: Identity, directory: &Path, script: &str) -> String {
    let outcome = run(lab, identity, directory, script);
    assert_eq!(outcome.code, Some(0), "{script}\n{outcome}");
    outcome.stdout
}

/// A fresh directory below the home directory.
fn project(lab: &Lab, identity: Identity, name: &str) -> PathBuf {
    let path = home(lab, identity).join(name);
    write(&path.join("README"), "a project\n", identity);
    path
}

/// Identity for git, as people set it.
const WHO: &str = "git config --global user.name Ada && git config --global user.email ada@b.test";
