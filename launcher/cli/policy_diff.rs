//! `outgate policy diff`: in words, what one policy allows that another does not, both ways.
//! Each difference is shown by an event that the decision function judges differently, or
//! said to be possible where none was found.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_launcher::run::RunError;
use outgate_launcher::sources::SourceCollector;
use outgate_policy::{Policy, Widening, WideningKind, Widenings, compile, preset_names, printable};

use crate::policy_options::{context, surroundings};
use crate::report;

/// Exit status when the second policy allows more.
const WIDER: u8 = 1;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate policy diff agent.toml agent-new.toml
  outgate policy diff base agent.toml            what a file adds to a shipped policy

Exit status: 0 the second allows nothing that the first denies, 1 it does, 2 a policy is wrong.";

/// Say what one policy allows that another does not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    /// The policy as it was: a file, or the name of a shipped one
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    before: PathBuf,
    /// The policy as it is to be
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    after: PathBuf,
}

/// Compares two policies.
pub(crate) fn diff(options: &Diff) -> ExitCode {
    let policies = policy(&options.before).and_then(|before| Ok((before, policy(&options.after)?)));
    let (before, after) = match policies {
        Ok(policies) => policies,
        Err(error) => return report::failure(&error),
    };
    let wider = Widenings::between(&before, &after);
    let narrower = Widenings::between(&after, &before);
    if wider.is_empty() && narrower.is_empty() {
        report::line("both allow the same");
        return ExitCode::SUCCESS;
    }
    let (one, other) = (options.before.display(), options.after.display());
    tell(&format!("{other} allows, and {one} does not:"), &wider);
    tell(&format!("{one} allows, and {other} does not:"), &narrower);
    if wider.is_empty() {
        report::line(&format!("\n{other} widens nothing"));
        return ExitCode::SUCCESS;
    }
    ExitCode::from(WIDER)
}

fn policy(path: &Path) -> Result<Policy, RunError> {
    let mut collector = SourceCollector::new(surroundings());
    let name = path
        .to_str()
        .filter(|name| preset_names().contains(name) && !path.exists());
    match name {
        Some(name) => collector.preset(name)?,
        None => collector.file(path)?,
    }
    collector.base()?;
    Ok(compile(&collector.finish(), &context()?)?)
}

pub(crate) fn tell(title: &str, found: &Widenings) {
    if found.is_empty() {
        return;
    }
    report::line(title);
    for own in &found.rules {
        report_widening(own);
    }
    for other in &found.others {
        report::line(&format!("  {}: {}", other.key, printable(&other.what)));
    }
}

fn report_widening(own: &Widening) {
    let rule = &own.rule;
    report::line(&format!(
        "  {} `{}` ({})",
        rule.effect.as_str(),
        printable(&rule.text),
        printable(&rule.place)
    ));
    let Some(shown) = &own.shown else {
        report::line(match own.about {
            WideningKind::Reach => {
                "    perhaps: it is not plain that all of it is allowed there, and no event was found"
            }
            WideningKind::Look => {
                "    perhaps looked at less: it is not plain that it is scanned and counted alike"
            }
        });
        return;
    };
    report::line(&format!("    for one {}", printable(&shown.event)));
    let word = match own.about {
        WideningKind::Reach => "there",
        WideningKind::Look => "but  ",
    };
    report::line(&format!("    {word}   {}", printable(&shown.because)));
    for near in &shown.nearest {
        report::line(&format!("    near    {}", printable(near)));
    }
}
