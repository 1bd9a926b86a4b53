//! The public cases of agent-egress-bench, as traffic through both programs:
//! each leak contained, nothing harmless refused; also with other secrets and
//! other names, drawn anew each time.

use std::path::PathBuf;
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

/// Runs the cases with these options, and asserts that all went well.
fn run(name: &str, options: &[&str]) {
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
    let outgate = std::env::var_os("OUTGATE_BIN_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_outgate")),
        |directory| PathBuf::from(directory).join("outgate"),
    );
    let policy = project().join("tests/scan/egress.toml");
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.base_prefix)"])
        .output()
        .expect("python3");
    let python = String::from_utf8_lossy(&python.stdout).trim().to_owned();
    let folder = cases.parent().expect("a folder");
    let wrap = format!(
        "{} run --no-summary -p {} -r {} -r {python} -r {{dir}} --upstream-ca {{ca}} --",
        outgate.display(),
        policy.display(),
        folder.display(),
    );
    let mut command = Command::new("python3");
    command
        .arg(&cases)
        .args(["--netns", "--tier", "egress", "--client-wrap", &wrap])
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

#[test]
fn the_public_cases_are_contained_and_nothing_else_is() {
    run("public", &[]);
}

#[test]
fn other_secrets_and_other_names_change_nothing() {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let seed = std::env::var("OUTGATE_SEED").unwrap_or_else(|_| since.as_micros().to_string());
    println!("seed {seed}");
    run(
        "fresh",
        &[
            "--fresh-secrets",
            &seed,
            "--host-mode",
            "neutral",
            "--seed",
            &seed,
        ],
    );
}
