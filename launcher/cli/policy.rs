//! `outgate policy`: checks policy files, shows what is in force and where it
//! comes from, runs the expectations that stand beside rules, lists what is
//! shipped. Runs nothing and asks nobody.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueHint};
use outgate_launcher::enforced::refuse_unenforced;
use outgate_launcher::run::RunError;
use outgate_launcher::sources::{PolicyTextError, SourceCollector};
use outgate_policy::{
    Expectation, Expected, Policy, PresetKind, Process, Source, SourceKind, Verdict, compile,
    preset_kind, preset_names, preset_title,
};

use crate::grants::of_run;
use crate::policy_check::{JudgedPolicy, check, counted, judged};
use crate::policy_diff::{Diff, diff};
use crate::policy_options::{PolicyOptions, context, surroundings};
use crate::replay::replay;
use crate::schema::{Schema, schema};
use crate::{report, show};

/// Exit status when an expectation fails.
const FAILED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  outgate policy check agent.toml                every fault, with line and column
  outgate policy show -p agent.toml -a '*'       what `outgate run` with these options enforces
  outgate policy show -P dev-tools --json
  outgate policy show --of agent                 what a running command may do now
  outgate policy test agent.toml                 its [[test]] tables
  outgate policy test agent.toml --replay last   what it would change in the last run
  outgate policy diff agent.toml new.toml        what the second allows that the first does not
  outgate policy schema --manifest               for editors: the keys of outgate.toml
  outgate policy presets                         what -P and `extends` know";

const TEST_EXAMPLES: &str = "\
Examples:
  outgate policy test agent.toml
  outgate policy test tests/*.toml

In a policy, or in a file of its own with `policy = \"agent.toml\"` at its top:

  [[test]]
  request = \"GET http://api.example.org/repos/a\"
  expect = \"allow\"
  rule = \"GET http://api.example.org/repos/**\"    # optional: the rule that must decide
  process = \"/usr/bin/git\"                        # optional: who asks

With --replay the files are one policy, and the decisions of old runs are judged by it:

  outgate policy test agent.toml --replay last
  outgate policy test -p agent.toml --replay monday.jsonl --replay tuesday.jsonl
  outgate policy test agent.toml --replay last --allow-changes 'POST https://api.example.org'

A RECORD is a record, a directory of them, or `last`: the record of the latest run.

Exit status: 0 all hold, 1 one fails or something that was allowed is denied, 2 a file is wrong
or holds no tests.";

/// Check, show and test policies
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Report every fault and warning of policy files
    Check(Check),
    /// Show the policy that a run with these options would have
    Show(Box<Show>),
    /// Run the expectations that stand in policy files
    Test(Test),
    /// Say what one policy allows that another does not
    Diff(Diff),
    /// List the shipped policies
    Presets(Presets),
    /// Print a JSON Schema of the policy document, for editors
    Schema(Schema),
}

/// Report every fault and warning of policy files
#[derive(Debug, Args)]
struct Check {
    /// Policy files; each is checked by itself, with what it extends, and outgate.toml for each
    /// of its commands
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// Show the policy that a run with these options would have
#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    policy: PolicyOptions,
    /// That of this run, as it is in force now: with what was granted since
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Run the expectations that stand in policy files
#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
struct Test {
    /// Files with `[[test]]` tables; with --replay, a policy
    #[arg(value_name = "FILE", required_unless_present = "replay", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Judge the decisions of these records by the policy, and say what would change
    #[arg(long, value_name = "RECORD", value_hint = ValueHint::FilePath)]
    replay: Vec<PathBuf>,
    /// Of what was allowed, this may be denied: a rule
    #[arg(long = "allow-changes", value_name = "RULE", requires = "replay")]
    allow_changes: Vec<String>,
    /// Add a policy file (TOML)
    #[arg(short = 'p', long = "policy", value_name = "FILE", requires = "replay", value_hint = ValueHint::FilePath)]
    policies: Vec<PathBuf>,
    /// Add a shipped policy
    #[arg(short = 'P', long = "preset", value_name = "NAME", requires = "replay")]
    presets: Vec<String>,
    /// Allow what the rule describes
    #[arg(short = 'a', long = "allow", value_name = "RULE", requires = "replay")]
    allow: Vec<String>,
    /// Deny what the rule describes
    #[arg(short = 'd', long = "deny", value_name = "RULE", requires = "replay")]
    deny: Vec<String>,
    /// Use this address for a host instead of asking DNS
    #[arg(long, value_name = "HOST[:PORT]=ADDR[:PORT]", requires = "replay")]
    resolve: Vec<String>,
}

/// List the shipped policies
#[derive(Debug, Args)]
struct Presets {
    /// Print the document of this one
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Does what the subcommand says.
pub(crate) fn policy(arguments: &PolicyArguments) -> ExitCode {
    match &arguments.command {
        Command::Check(options) => check(&options.files),
        Command::Show(options) => shown(options),
        Command::Test(options) if options.replay.is_empty() => test(&options.files),
        Command::Test(options) => replayed(options),
        Command::Diff(options) => diff(options),
        Command::Presets(options) => presets(options.name.as_deref()),
        Command::Schema(options) => schema(options),
    }
}

fn shown(options: &Show) -> ExitCode {
    let policy = match &options.of {
        None => options
            .policy
            .compile()
            .map_err(|error| report::failure(&error)),
        Some(name) => of_run(name).map_err(|message| {
            report::wrong(&message);
            ExitCode::from(FAILED)
        }),
    };
    match policy {
        Ok(policy) if options.json => report::line(&show::json(&policy)),
        Ok(policy) => report::line(&show::text(&policy)),
        Err(failed) => return failed,
    }
    ExitCode::SUCCESS
}

fn test(files: &[PathBuf]) -> ExitCode {
    let mut all = 0;
    let mut failed = 0;
    for path in files {
        let policies = match judged(path) {
            Ok(policies) => policies,
            Err(status) => return status,
        };
        if policies.iter().all(|own| own.tests.is_empty()) {
            let message = format!("`{}` holds no [[test]]", path.display());
            let hint = "add one with `request` and `expect`; `outgate policy test --help` shows it";
            return report::wrong_with_hint(&message, hint);
        }
        for own in &policies {
            for one in &own.tests {
                all += 1;
                if let Err(lines) = run(own, one) {
                    failed += 1;
                    for line in lines {
                        report::line(&line);
                    }
                }
            }
        }
    }
    if failed > 0 {
        report::line(&format!("{failed} of {} failed", counted(all, "test")));
        return ExitCode::from(FAILED);
    }
    let hold = if all == 1 { "holds" } else { "hold" };
    report::line(&format!("{} {hold}", counted(all, "test")));
    ExitCode::SUCCESS
}

/// Judges old decisions by the policy that the options make.
fn replayed(options: &Test) -> ExitCode {
    let policies = replaying(options).and_then(|policy| {
        let rule = |text: &String| Source {
            kind: SourceKind::Allow,
            place: "--allow-changes".to_owned(),
            text: text.clone(),
        };
        let sources: Vec<Source> = options.allow_changes.iter().map(rule).collect();
        Ok((policy, compile(&sources, &context()?)?))
    });
    match policies {
        Ok((policy, may_change)) => replay(&options.replay, &policy, &may_change),
        Err(error) => report::failure(&error),
    }
}

/// The policy by which old decisions are judged.
fn replaying(options: &Test) -> Result<Policy, RunError> {
    let mut collector = SourceCollector::new(surroundings());
    for name in &options.presets {
        collector.preset(name)?;
    }
    for path in options.policies.iter().chain(&options.files) {
        collector.file(path)?;
    }
    collector.base()?;
    for (kind, place, list) in [
        (SourceKind::Allow, "-a", &options.allow),
        (SourceKind::Deny, "-d", &options.deny),
        (SourceKind::Pin, "--resolve", &options.resolve),
    ] {
        for text in list {
            collector.text(kind, place, text);
        }
    }
    let policy = compile(&collector.finish(), &context()?)?;
    refuse_unenforced(&policy).map_err(|key| RunError::NotEnforced { key })?;
    Ok(policy)
}

/// Compares one expectation; what is wrong with it, in lines.
fn run(own: &JudgedPolicy, one: &Expectation) -> Result<(), Vec<String>> {
    let policy = &own.policy;
    let process = Process {
        executable: &one.process,
    };
    let verdict = policy.answer(&one.question, process);
    let (actual, rule, because) = match &verdict {
        Verdict::Allow(permit) => {
            let rule = permit.rule();
            let by = format!("allowed by `{}` ({})", rule.text, rule.place);
            (Expected::Allow, Some(rule), by)
        }
        Verdict::Deny(denial) => {
            let by = format!("denied: {}", denial.because());
            (Expected::Deny, denial.rule(), by)
        }
    };
    // One of a manifest may be for several commands.
    let command = own.command.as_ref().map(|name| format!(" (`{name}`)"));
    let command = command.unwrap_or_default();
    let head = format!("{}: {}{command}", one.place, one.question);
    if actual == one.expected {
        let is_other = |text: &String| rule.is_none_or(|rule| *rule.text != **text);
        return match one.rule.as_ref().filter(|text| is_other(text)) {
            Some(text) => Err(vec![format!(
                "{head}: expected the rule `{text}` to decide, is {because}"
            )]),
            None => Ok(()),
        };
    }
    let expected = one.expected.as_str();
    let mut lines = vec![format!("{head}: expected {expected}, is {because}")];
    if actual == Expected::Deny {
        for near in policy.nearest(&one.question, process) {
            let rule = &near.rule;
            let effect = rule.effect.as_str();
            lines.push(format!(
                "  nearest: {effect} `{}` ({})",
                rule.text, rule.place
            ));
            lines.extend(near.differs.iter().map(|part| format!("    {part}")));
        }
    }
    Err(lines)
}

fn presets(name: Option<&str>) -> ExitCode {
    let Some(name) = name else {
        let sections = [
            (PresetKind::Agent, "Agents, with their files and hosts:"),
            (
                PresetKind::Tool,
                "\nTools, with their files, hosts and registries:",
            ),
            (PresetKind::Files, "\nFiles, without any host:"),
            (
                PresetKind::Hosts,
                "\nHosts, beside the files of others or of `base`:",
            ),
            (
                PresetKind::Registries,
                "\nHosts that you configured for a client, beside the same files:",
            ),
        ];
        for (kind, title) in sections {
            report::line(title);
            let is_of_kind = |name: &&&str| preset_kind(name) == Some(kind);
            for name in preset_names().iter().filter(is_of_kind) {
                let title = preset_title(name).unwrap_or_default();
                report::line(&format!("  {name:<12} {title}"));
            }
        }
        report::line("\n`outgate policy presets NAME` prints one.");
        return ExitCode::SUCCESS;
    };
    match outgate_policy::preset(name) {
        Some(text) => {
            report::line(text.trim_end());
            ExitCode::SUCCESS
        }
        None => report::failure(&RunError::Source(PolicyTextError::Preset {
            name: name.to_owned(),
        })),
    }
}
