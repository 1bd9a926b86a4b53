//! From a denial to a policy, with real programs: each fails, is learnt from, its policy is
//! read and edited, held against the old record, and then runs with it and with nothing
//! broader.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use outgate_harness::lab_tests;

use crate::scenario::Run;
use crate::stage::{MARK, Stage};

/// One program and what becomes of it.
struct Road {
    script: &'static str,
    /// Rules that are learnt, in their order.
    learnt: &'static [&'static str],
    /// What a person takes out of the policy, and puts in its place.
    edit: (&'static str, &'static str),
    /// Something else at the same host.
    beyond: &'static str,
}

const NPM: Road = Road {
    script: "echo '{}' > package.json; echo registry=http://npm.example/ > .npmrc; npm install --no-audit --no-fund --no-update-notifier demo-pkg && node -e 'require(\"demo-pkg\")'",
    learnt: &[
        "GET http://npm.example/demo-pkg",
        "GET http://npm.example/demo-pkg/-/demo-pkg-1.0.0.tgz",
    ],
    edit: ("demo-pkg-1.0.0.tgz", "demo-pkg-*.tgz"),
    beyond: "http://npm.example/other-pkg",
};

const PUSH: Road = Road {
    script: "git clone -q http://live.example/git/project.git here && cd here && git config user.name x && git config user.email x@x.example && echo more > more && git add more && git commit -q -m second && git push -q origin +HEAD:refs/heads/pushed && echo from-the-real-origin",
    learnt: &[
        "POST http://live.example/git/project.git/git-receive-pack",
        "POST http://live.example/git/project.git/git-upload-pack",
        "GET http://live.example/git/project.git/info/refs?service=*",
    ],
    edit: (
        "[[allow]]",
        "[[allow]]\nnote = \"the project and no other\"",
    ),
    beyond: "http://live.example/git/other.git/info/refs?service=git-receive-pack",
};

/// What a person goes through, step by step.
fn travel(stage: &mut Stage<'_>, road: &Road) {
    let folder = stage.lab.folder("learnt", stage.identity);
    let place = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // It fails.
    let run = Run::make(stage, stage.sandbox(), road.script);
    eprintln!("--- it fails\n{}", run.outcome);
    assert!(!run.outcome.stdout.contains(MARK), "denied: {run}");
    assert_eq!(stage.seen().requests, [""; 0], "denied: {run}");
    // It is learnt from.
    let (record, policy) = (place("record.jsonl"), place("learnt.toml"));
    let sandbox = stage.sandbox().subcommand("learn");
    let sandbox = sandbox.option("--audit", &record).option("-o", &policy);
    let run = Run::make(stage, sandbox, road.script);
    assert!(run.outcome.stdout.contains(MARK), "learnt: {run}");
    assert!(
        run.outcome
            .stderr
            .contains("outgate: learning: everything public was let through"),
        "{run}"
    );
    stage.seen();
    let text = fs::read_to_string(&policy).expect("a policy");
    eprintln!("--- learnt\n{}\n{text}", run.outcome);
    let rules: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("rule = "))
        .collect();
    let expected: Vec<String> = road
        .learnt
        .iter()
        .map(|rule| format!("\"{rule}\""))
        .collect();
    assert_eq!(rules, expected, "{text}");
    // It is read, and edited.
    let (gone, come) = road.edit;
    assert!(text.contains(gone), "{text}");
    fs::write(&policy, text.replace(gone, come)).expect("a policy");
    // The old decisions stay as they were.
    let said = replayed(stage, &policy, &record);
    eprintln!("--- edited: `{gone}` is `{come}`; replayed\n{said}");
    assert!(said.contains(" 0 now denied, 0 now allowed, "), "{said}");
    // It runs with the policy, and nothing beyond it does.
    let run = Run::make(stage, stage.sandbox().option("-p", &policy), road.script);
    eprintln!("--- with the policy\n{}", run.outcome);
    assert!(run.outcome.stdout.contains(MARK), "allowed: {run}");
    assert_eq!(run.outcome.stderr, "", "no complaint: {run}");
    stage.seen();
    let beyond = format!("curl -sS -o got -w '%{{http_code}}' {}", road.beyond);
    let run = Run::make(stage, stage.sandbox().option("-p", &policy), &beyond);
    eprintln!("--- beyond it\n{}", run.outcome);
    assert!(run.outcome.stdout.contains("403"), "beyond: {run}");
    assert_eq!(stage.seen().requests, [""; 0], "beyond: {run}");
}

/// What `outgate policy test --replay` says; it finds nothing that was allowed and is denied.
fn replayed(stage: &Stage<'_>, policy: &str, record: &str) -> String {
    let outgate: PathBuf = stage.lab.tools.programs.join("outgate");
    let mut call = Command::new(outgate);
    call.args(["policy", "test", policy, "--replay", record])
        .current_dir(stage.work());
    let output = call.output().expect("outgate starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{errors}");
    said
}

lab_tests! {
    fn npm_install_runs_with_the_policy_that_it_taught(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["gem", "dpkg-deb", "node"]) else {
            return;
        };
        crate::packages::publish(&stage);
        travel(&mut stage, &NPM);
    }

    fn git_push_runs_with_the_policy_that_it_taught(lab) {
        let Some(mut stage) = Stage::start(lab, &["git"]) else {
            return;
        };
        crate::versions::publish(&stage);
        travel(&mut stage, &PUSH);
    }
}
