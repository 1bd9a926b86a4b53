//! `outgate grant`, `revoke` and `reload`: the policy of a run changed while it goes on, by
//! its user. What may change, the run's launcher says, and the gateway judges it whole.

use std::process::ExitCode;

use clap::Args;
use outgate_launcher::runs::{PolicyChange, Run};
use outgate_policy::{Policy, Source, SourceKind, Widenings, compile};

use crate::duration::seconds;
use crate::policy_diff::tell;
use crate::policy_options::context;
use crate::report;
use crate::runs::{FAILED, Named, find};

pub(crate) const GRANT_EXAMPLES: &str = "\
Examples:
  outgate grant agent 'GET https://api.example.org/repos/**'
  outgate grant agent https://files.example.org --for 10m
  outgate grant agent 'POST https://api.example.org/issues' --once

The run is named as `outgate ps` shows it. Only the user who started it, and root, may change
it; no command can, and a run started with --sealed is changed by nobody. A deny rule beats a
grant, a shared gateway's policy bounds it, and files, variables and limits stay as they are.

Exit status: 0 it is in force, 1 it is not and nothing changed, 2 bad usage or a bad rule.";

/// Allow a running command more
#[derive(Debug, Args)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct Grant {
    #[command(flatten)]
    run: Named,
    /// Allow what the rule describes
    #[arg(value_name = "RULE")]
    rule: String,
    /// For this long: 90s, 10m, 2h, 1d [default: as long as the run]
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    time: Option<u32>,
    /// For one request
    #[arg(long)]
    once: bool,
}

/// Take back what was granted to a running command
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    run: Named,
    /// The rule, as it was granted
    #[arg(
        value_name = "RULE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    rule: Option<String>,
    /// All that was granted
    #[arg(long)]
    all: bool,
}

/// Grants a rule.
pub(crate) fn grant(options: &Grant) -> ExitCode {
    // What is wrong with a rule is shown with its place, and what is risky is said.
    if let Err(failed) = judged(&options.rule) {
        return failed;
    }
    change(
        &options.run,
        &PolicyChange::Grant {
            rule: options.rule.clone(),
            seconds: options.time.unwrap_or(0),
            once: options.once,
        },
    )
}

/// Revokes a rule, or all.
pub(crate) fn revoke(options: &Revoke) -> ExitCode {
    let rule = options.rule.clone().unwrap_or_default();
    change(&options.run, &PolicyChange::Revoke { rule })
}

/// Has a run read its policy files again, and says what that changed.
pub(crate) fn reload(named: &Named) -> ExitCode {
    let done = find(named).and_then(|mut run| {
        let before = policy(&mut run)?;
        let line = run.change(&PolicyChange::Reload)?;
        Ok((line, before, policy(&mut run)?))
    });
    let (line, before, after) = match done {
        Ok(done) => done,
        Err(message) => return failed(&message),
    };
    report::line(&line);
    let wider = Widenings::between(&before, &after);
    let narrower = Widenings::between(&after, &before);
    tell("allowed now, and not before:", &wider);
    tell("allowed before, and not now:", &narrower);
    ExitCode::SUCCESS
}

/// The policy of a run as it is in force.
pub(crate) fn of_run(name: &str) -> Result<Policy, String> {
    let named = Named {
        name: name.to_owned(),
    };
    policy(&mut find(&named)?)
}

fn policy(run: &mut Run) -> Result<Policy, String> {
    let (sources, context) = run.policy()?;
    compile(&sources, &context).map_err(|errors| errors.to_string())
}

fn judged(rule: &str) -> Result<(), ExitCode> {
    let source = Source {
        kind: SourceKind::Allow,
        place: "RULE".to_owned(),
        text: rule.to_owned(),
    };
    let context = context().map_err(|error| report::failure(&error))?;
    let policy = compile(&[source], &context);
    let policy = policy.map_err(|errors| report::failure(&errors.into()))?;
    for warning in policy.warnings() {
        report::warning(&warning.to_string());
    }
    Ok(())
}

fn change(named: &Named, change: &PolicyChange) -> ExitCode {
    match find(named).and_then(|mut run| run.change(change)) {
        Ok(line) => {
            report::line(&line);
            ExitCode::SUCCESS
        }
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    report::wrong(message);
    ExitCode::from(FAILED)
}
