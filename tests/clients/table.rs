//! The table of clients, where it is asked for: how long each takes for the same work beside
//! outgate and inside. Asserts that the work was done both ways; says times and judges none.

use std::fs;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use outgate_harness::Outcome;
use outgate_harness::table::add_row;

use crate::scenario::{Run, Scenario};
use crate::stage::{DYNAMIC, FILES, MOVING, SERVED, Stage, is_opened};

/// Names the file to which each scenario adds a row.
const TABLE: &str = "OUTGATE_CLIENTS_TABLE";

/// How often each is started in both ways, one after the other.
const ROUNDS: usize = 5;

/// Adds the row of a scenario to the table. Over TLS there is none: what is beside outgate
/// trusts no authority of a test.
pub(crate) fn add(stage: &mut Stage<'_>, scenario: &Scenario<'_>) {
    static NAMES: Once = Once::new();
    let Some(file) = std::env::var_os(TABLE).filter(|_| !is_opened()) else {
        return;
    };
    NAMES.call_once(|| name_hosts(stage));
    let (mut beside, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        beside.push(took(scenario, &self::beside(stage, scenario)));
        let run = Run::make(stage, stage.allowing(scenario.allow), scenario.script);
        inside.push(took(scenario, &run.outcome));
    }
    stage.seen();
    add_row(&file, scenario.name, [beside, inside]);
}

/// Has the machine know where names lead that only the gateway's resolver knows otherwise.
fn name_hosts(stage: &Stage<'_>) {
    let names: Vec<&str> = SERVED
        .split(',')
        .filter_map(|name| name.trim().strip_prefix("DNS:"))
        .filter(|&name| name != MOVING)
        .collect();
    let hosts = format!(
        "127.0.0.1 localhost\n{FILES} {}\n{DYNAMIC} {MOVING}\n",
        names.join(" ")
    );
    let file = stage.lab.directory.join("hosts");
    fs::write(&file, hosts).expect("a file");
    let mounted = Command::new("mount")
        .arg("--bind")
        .arg(&file)
        .arg("/etc/hosts")
        .status();
    assert!(
        mounted.expect("mount runs").success(),
        "names for the bare run"
    );
}

/// The scenario as its user makes it without outgate.
fn beside(stage: &Stage<'_>, scenario: &Scenario<'_>) -> Outcome {
    stage.empty_work();
    let script = format!("export HOME=$PWD; exec 2> errors; {}", scenario.script);
    let mut line = stage.environment();
    line.extend(["bash", "-c", &script].map(str::to_owned));
    stage.lab.start_bare(stage.identity, &line).finish()
}

fn took(scenario: &Scenario<'_>, outcome: &Outcome) -> Duration {
    assert!(
        outcome.stdout.contains(scenario.shows),
        "{}: {outcome}",
        scenario.name
    );
    outcome.elapsed
}
