//! The public cases of agent-egress-bench, as traffic through both programs, from a run and by
//! the explicit proxy: each leak contained, nothing harmless refused; also with other secrets and
//! other names, drawn anew each time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use outgate_harness::tools::project;
use outgate_harness::{Running, is_ci, skip_here};

/// Cases whose leak is not contained yet: forms without a credential in them, and
/// pieces that look like none by themselves. None that is contained may join them.
const LEFT: &[&str] = &[];

/// The harness of the cases, where it lies beside the project.
fn cases() -> Option<PathBuf> {
    let path = project().join("../shared/cases/agent-egress-bench/run.py");
    path.exists().then_some(path)
}

/// How the traffic of the cases reaches the gateway.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Its client is a run's command.
    Launcher,
    /// Its client asks the explicit proxy.
    Proxy,
}

impl Way {
    /// The options of the harness for this: how the client is started, or the proxy.
    fn options(self, cases: &Path) -> [String; 2] {
        let outgate = std::env::var_os("OUTGATE_BIN_DIR").map_or_else(
            || PathBuf::from(env!("CARGO_BIN_EXE_outgate")),
            |directory| PathBuf::from(directory).join("outgate"),
        );
        let (outgate, policy) = (outgate.display(), project().join("tests/scan/egress.toml"));
        let policy = policy.display();
        match self {
            Self::Launcher => {
                let python = Command::new("python3")
                    .args(["-c", "import sys; print(sys.base_prefix)"])
                    .output()
                    .expect("python3");
                let python = String::from_utf8_lossy(&python.stdout).trim().to_owned();
                let folder = cases.parent().expect("a folder");
                let line = format!(
                    "{outgate} run --no-summary -p {policy} -r {} -r {python} -r {{dir}} \
                     --upstream-ca {{ca}} --",
                    folder.display(),
                );
                ["--client-wrap".to_owned(), line]
            }
            Self::Proxy => {
                let script = project().join("tests/scan/cases_proxy.py");
                let line = format!(
                    "exec python3 {} {{port}} {outgate} {policy} {{ca}} {{dir}}",
                    script.display()
                );
                ["--proxy-cmd".to_owned(), line]
            }
        }
    }
}

/// Runs the cases this way and with these options, and asserts that all went well.
fn run(name: &str, way: Way, options: &[&str]) {
    let Some(cases) = cases() else {
        assert!(!is_ci(), "the cases are not beside the project");
        return skip_here("the cases are not beside the project");
    };
    let cases = cases.canonicalize().expect("a path");
    let directory =
        std::env::temp_dir().join(format!("outgate-cases-{}-{name}", std::process::id()));
    let [work, home] = ["work", "home"].map(|name| directory.join(name));
    for folder in [&work, &home] {
        std::fs::create_dir_all(folder).expect("a directory");
    }
    let mut command = Command::new("python3");
    command
        .arg(&cases)
        .args(["--netns", "--tier", "egress"])
        .args(way.options(&cases))
        .args(["--max-fp", "0"])
        .arg("--out")
        .arg(directory.join("results.jsonl"))
        .args(options)
        .env("HOME", &home)
        .current_dir(&work);
    let limit = std::time::Duration::from_mins(4);
    let outcome = Running::start(&mut command, limit).finish();
    let results = std::fs::read_to_string(directory.join("results.jsonl")).unwrap_or_default();
    let failed = results
        .lines()
        .filter(|line| line.contains("\"score\": \"fail\""));
    let missed: Vec<&str> = failed
        .filter(|line| {
            !LEFT
                .iter()
                .any(|left| line.contains(&format!("\"{left}\"")))
        })
        .collect();
    assert!(
        results.lines().count() > 30,
        "{name} {options:?}: all ran: {outcome}"
    );
    assert!(
        missed.is_empty(),
        "{name} {options:?}: {outcome}\n{missed:#?}"
    );
    std::fs::remove_dir_all(&directory).ok();
}

/// Words for other secrets and other names, drawn anew.
fn fresh(way: Way, name: &str) {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let seed = std::env::var("OUTGATE_SEED").unwrap_or_else(|_| since.as_micros().to_string());
    eprintln!("seed {seed}");
    let secrets = ["--fresh-secrets", &seed, "--seed", &seed];
    run(
        name,
        way,
        &[&secrets[..], &["--host-mode", "neutral"]].concat(),
    );
}

#[test]
fn the_public_cases_are_contained_and_nothing_else_is() {
    run("public", Way::Launcher, &[]);
}

#[test]
fn other_secrets_and_other_names_change_nothing() {
    fresh(Way::Launcher, "fresh");
}

#[test]
fn the_public_cases_by_the_explicit_proxy_are_contained_and_nothing_else_is() {
    run("public-proxy", Way::Proxy, &[]);
}

#[test]
fn by_the_explicit_proxy_other_secrets_and_other_names_change_nothing() {
    fresh(Way::Proxy, "fresh-proxy");
}
