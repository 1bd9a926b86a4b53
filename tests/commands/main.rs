//! The subcommands beside `run`, as a person meets them: what they print, where,
//! and with which exit status. Against the real programs.

#![expect(
    clippy::expect_used,
    reason = "a test ends where something is not as it must be"
)]

mod archives;
mod audit;
mod audit_report;
mod browser;
mod detectors;
mod editors;
mod gateway_check;
mod last;
mod learn;
mod learning;
mod lines;
mod lock;
mod manifest_checks;
mod manifests;
mod manual;
mod monitor;
mod package;
mod policy;
mod presets;
mod programs;
mod project;
mod replay;
mod rotation;
mod same;
mod scan;
mod schema;
mod summary;
mod up;
mod why;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What one invocation did.
#[derive(Debug)]
struct Said {
    status: i32,
    stdout: String,
    stderr: String,
}

/// A directory of one test, in which `outgate` is called; removed at its end.
struct Desk {
    directory: PathBuf,
}

impl Desk {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outgate-commands-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).expect("a fresh directory");
        Self { directory }
    }

    /// Writes a file below the directory.
    fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.directory.join(name), text).expect("a file");
        self
    }

    /// The same, with the directory.
    fn also(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// Runs `outgate WORDS…` here.
    fn call(&self, words: &[&str]) -> Said {
        call(words, &self.directory, &self.directory.join("state"))
    }

    /// Runs it and compares everything it says on standard output.
    #[track_caller]
    fn expect(&self, words: &[&str], status: i32, stdout: &str) {
        let said = self.call(words);
        let whole = format!("{words:?}\n{}{}", said.stdout, said.stderr);
        assert_eq!(said.stdout, stdout, "{whole}");
        assert_eq!(said.stderr, "", "{whole}");
        assert_eq!(said.status, status, "{whole}");
    }

    /// Runs it and compares everything it says on standard error.
    #[track_caller]
    fn expect_refusal(&self, words: &[&str], stderr: &str) {
        let said = self.call(words);
        let whole = format!("{words:?}\n{}{}", said.stdout, said.stderr);
        assert_eq!(said.stderr, stderr, "{whole}");
        assert_eq!(said.stdout, "", "{whole}");
        assert_eq!(said.status, 2, "{whole}");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        fs::remove_dir_all(&self.directory).ok();
    }
}

/// Runs `outgate WORDS…` in a directory, with the state of runs in another.
fn call(words: &[&str], directory: &Path, state: &Path) -> Said {
    let output = Command::new(outgate())
        .args(words)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/home/me")
        .env("XDG_STATE_HOME", state)
        .stdin(Stdio::null())
        .output()
        .expect("outgate starts");
    Said {
        status: output.status.code().expect("an exit status"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The launcher that cargo built, or the one in `OUTGATE_BIN_DIR`.
fn outgate() -> PathBuf {
    match std::env::var_os("OUTGATE_BIN_DIR") {
        Some(folder) => fs::canonicalize(folder).expect("a folder").join("outgate"),
        None => Path::new(env!("CARGO_BIN_EXE_outgate")).to_owned(),
    }
}
