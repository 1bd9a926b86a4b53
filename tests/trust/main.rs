//! Whom a command is made to trust, whom the gateway trusts, and as whom it
//! presents itself: with authorities, certificates and clients as people have
//! them, and with commands that want the keys.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]

mod authority;
mod local;
mod origin;
mod presented;
mod stores;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox};

/// Longest time of a command that is no run, in seconds.
const COMMAND_SECONDS_MAX: u64 = 180;

/// `outgate WORDS…`, not as a run.
fn outgate(lab: &Lab, words: &[&str]) -> Outcome {
    outgate_with(lab, words, &[])
}

/// The same with more variables.
fn outgate_with(lab: &Lab, words: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = std::process::Command::new(lab.tools.programs.join("outgate"));
    command
        .args(words)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", lab.folder("home", Identity::Own))
        .env("TMPDIR", lab.folder("tmp", Identity::Own))
        .env("XDG_STATE_HOME", lab.folder("state", Identity::Own))
        .envs(variables.iter().copied())
        .current_dir(lab.folder("work", Identity::Own))
        .stdin(Stdio::null());
    Running::start(&mut command, Duration::from_secs(COMMAND_SECONDS_MAX)).finish()
}

/// A line of a shell: looks for keys in every file that a process has open.
const OPEN_FILES: &str = "for open in /proc/[0-9]*/fd/*; do \
     case \"$(readlink \"$open\")\" in \"\"|/dev/*|pipe:*|socket:*|anon_inode:*) ;; \
     *) timeout 2 cat \"$open\" ;; esac; done 2>/dev/null | grep -a 'PRIVATE[ ]KEY'";

/// A sandbox as people use it.
fn confined(lab: &Lab) -> Sandbox<'_> {
    let work = lab.folder("work", Identity::Own);
    Sandbox::plain(lab, Identity::Own)
        .option("-P", "base")
        .option("-w", &work.to_string_lossy())
}

/// A command line of words.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A shell's command line.
fn shell(script: &str) -> Vec<String> {
    words(&["sh", "-c", script])
}

/// curl's command line: the body, and the status on a line of its own.
fn curl(url: &str) -> Vec<String> {
    words(&[
        "curl",
        "-sS",
        "--max-time",
        "20",
        "-w",
        "\n%{http_code}",
        url,
    ])
}

/// Writes a file with this mode.
fn write(path: &Path, text: &str, mode: u32) -> PathBuf {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    path.to_owned()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
