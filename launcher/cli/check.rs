//! `outgate check`: what this machine supports and what that means.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_launcher::filter::{Arch, FilterOptions, Opens, listing};
use outgate_launcher::probe::{ProbeRow, ProbeState, findings, record, sealed_network};
use outgate_launcher::record::records_directory;

use crate::clients;
use crate::report;

const CHECK_EXAMPLES: &str = "\
Examples:
  outgate check                                  what this kernel supports
  outgate check -v                               and every system call that is held or refused
  outgate check --clients                        which clients trust what a run opens

Exit status: 0 commands can be confined here, 125 they cannot; with --clients, 1 when a client
that is here trusts no run.";

/// Show what this kernel supports, what will be enforced, and what is missing
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct Check {
    /// List every system call the filter holds or refuses, with the reason
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Try every known client that is installed: does it trust a run, and by what?
    #[arg(long)]
    pub(crate) clients: bool,
    /// Ask about this record in the place of the usual one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
}

/// Prints the ladder; fails when outgate would refuse to run here.
pub(crate) fn check(arguments: &Check) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let mut missing = false;
    for finding in findings().into_iter().chain([records(arguments)]) {
        let mark = match finding.state {
            ProbeState::Present => "ok      ",
            ProbeState::Replaced => "replaced",
            ProbeState::Missing => {
                missing = true;
                "missing "
            }
        };
        report::line(&format!("{mark}  {:<12} {}", finding.name, finding.detail));
    }
    if missing {
        report::line("\noutgate refuses to run commands here.");
        status = ExitCode::from(125);
    } else {
        report::line("\noutgate can confine commands here.");
    }
    if arguments.verbose {
        let opens = if sealed_network().is_ok() {
            Opens::Pass
        } else {
            Opens::Trap
        };
        report::line("\nSystem calls that are held or refused:");
        report::line(listing(Arch::native(), &FilterOptions { opens }).trim_end());
    }
    if arguments.clients && !missing {
        report::line("");
        return clients::check();
    }
    status
}

/// Whether there will be records, and where.
fn records(arguments: &Check) -> ProbeRow {
    if let Some(file) = &arguments.audit {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        return record(file.parent());
    }
    let variable = |name: &str| std::env::var_os(name);
    let directory = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    record(directory.as_deref())
}
