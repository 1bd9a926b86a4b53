//! `outgate leftovers`: what a run wrote that runs by itself later, as differences, and puts
//! it back. What is shown was a command's to choose: nothing of it reaches the terminal
//! unescaped.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use outgate_launcher::leftovers::{KeptLeftovers, LeftoversError, Reverted, diff, find, revert};
use outgate_launcher::record::records_directory;
use outgate_policy::printable;

use crate::report;

/// There is nothing of such a run, or not all of it could be put back.
const FAILED: u8 = 1;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate leftovers                  what the last run that left anything wrote
  outgate leftovers agent-4711       of the last run of this name (outgate ps, run --name)
  outgate leftovers --revert         put back what was there before

What counts: git hooks and settings that execute, shell scripts of directories (.envrc),
editors' tasks and settings, development containers, settings of agents, settings and scripts of
package managers, workflows of forges, start files of shells and sessions, programs on your
PATH, and links to where the command may not go. Files that people run by name do not count.

--revert takes only what outgate noted before the run. It leaves alone what changed since the
run ended, and keeps what it replaces beside the run's record.

Exit status: 0; 1 when there is no such run, or something could not be put back.";

/// Show what a run wrote that runs later, or put it back
#[derive(Debug, Args)]
pub(crate) struct Leftovers {
    /// Name of the run, or of its record [default: the last that left anything]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Put back what was there before, and keep what is replaced
    #[arg(long)]
    pub(crate) revert: bool,
}

/// Shows or reverts.
pub(crate) fn leftovers(arguments: &Leftovers) -> ExitCode {
    let variable = |name| std::env::var_os(name);
    let Some(records) = records_directory(variable("XDG_STATE_HOME"), variable("HOME")) else {
        return failed("neither XDG_STATE_HOME nor HOME says where runs leave their records");
    };
    let (path, kept) = match find(&records, arguments.run.as_deref()) {
        Ok(found) => found,
        Err(error @ LeftoversError::None { .. }) if arguments.run.is_none() => {
            drop(error);
            report::line("no run left anything behind that runs later");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            report::error(&error, None);
            return ExitCode::from(FAILED);
        }
    };
    report::line(&format!("run       {}", printable(&kept.run)));
    let directory = kept.directory.to_string_lossy();
    report::line(&format!("directory {}", printable(&directory)));
    if arguments.revert {
        return put_back(&path, &kept);
    }
    for left in &kept.left {
        report::line("");
        report::line(&left.detail());
        for line in diff(left) {
            report::line(&line);
        }
    }
    ExitCode::SUCCESS
}

fn put_back(path: &Path, kept: &KeptLeftovers) -> ExitCode {
    let (done, backup) = match revert(path, kept) {
        Ok(done) => done,
        Err(error) => {
            report::error(&error, None);
            return ExitCode::from(FAILED);
        }
    };
    let mut status = ExitCode::SUCCESS;
    for (left, done) in kept.left.iter().zip(&done) {
        let name = printable(&left.path().to_string_lossy());
        match done {
            Reverted::Restored => report::line(&format!("restored  {name}")),
            Reverted::Removed => report::line(&format!("removed   {name}")),
            Reverted::Left(why) => {
                report::line(&format!("left      {name}: {}", printable(why)));
                status = ExitCode::from(FAILED);
            }
        }
    }
    let backup = backup.to_string_lossy();
    report::line(&format!("replaced  kept in {}", printable(&backup)));
    status
}

fn failed(message: &str) -> ExitCode {
    report::wrong(message);
    ExitCode::from(FAILED)
}
