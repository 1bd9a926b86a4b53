//! The command line as clap reads it: text in, options out, no I/O.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::policy_options::PolicyOptions;
use crate::why::Why;

/// Runs a command so that nothing leaves it except what the rules allow.
#[derive(Debug, Parser)]
#[command(name = "outgate", version, about, long_about = None, disable_help_subcommand = true)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

// Deferred: the options of a subcommand are built only where it is used.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Run a command confined
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<Run>),
    /// Explain what a policy decides about a request, or what was denied last
    #[command(after_help = crate::why::EXAMPLES)]
    Why(Box<Why>),
    /// Show what this kernel supports, what will be enforced, and what is missing
    Check(Check),
}

const RUN_EXAMPLES: &str = "\
Examples:
  outgate run -- make test                               no network at all
  outgate run -a 'GET http://api.example.org/repos/**' -- curl http://api.example.org/repos/a
  outgate run -a https://files.example.org -- ./fetch    TLS to one host, unopened
  outgate run -a tcp://db.example.org:5432 -- psql ...   any protocol to one host and port
  outgate run -P dev-tools -a '*' -d 'POST,PUT *' -- agent
  outgate run -p agent.toml -- agent                     rules from a file

Rules: [METHODS ][SCHEME://]HOST[:PORTS][/PATH][?QUERY]. Nothing is allowed that no rule
allows; a deny rule beats every allow rule.

Exit status: the command's own; 128+n when signal n ended it; 125 outgate could not start
it; 126 it cannot be executed; 127 it is not found; 2 bad usage or a bad policy.";

/// Run a command confined
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// Write the record of decisions to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Name of the sandbox in records
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Set an environment variable of the command
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<OsString>,
    /// With --clean-env: inherit this variable
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass: Vec<OsString>,
    /// Inherit only PATH, HOME, TERM, LANG and what --pass-env names
    #[arg(long = "clean-env")]
    pub(crate) clean: bool,
    /// Do not print the summary at the end
    #[arg(long = "no-summary")]
    pub(crate) no_summary: bool,
    /// Print how many calls were held, by kind, at the end
    #[arg(long)]
    pub(crate) counters: bool,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// Show what this kernel supports, what will be enforced, and what is missing
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// List every system call the filter holds or refuses, with the reason
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
