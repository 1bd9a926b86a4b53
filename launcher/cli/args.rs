//! The command line as clap reads it: text in, options out, no I/O.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs a command so that nothing leaves it except what the rules allow.
#[derive(Debug, Parser)]
#[command(name = "outgate", version, about, long_about = None, disable_help_subcommand = true)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command confined
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<Run>),
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

/// Options of `outgate run`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Add a policy file (TOML)
    #[arg(short = 'p', long = "policy", value_name = "FILE")]
    pub(crate) policies: Vec<PathBuf>,
    /// Add a shipped policy: base, none, dev-tools
    #[arg(short = 'P', long = "preset", value_name = "NAME")]
    pub(crate) presets: Vec<String>,
    /// Allow what the rule describes
    #[arg(short = 'a', long = "allow", value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny what the rule describes, whatever other rules allow
    #[arg(short = 'd', long = "deny", value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Let the command read and execute below PATH
    #[arg(short = 'r', long = "read", value_name = "PATH")]
    pub(crate) read: Vec<String>,
    /// Let the command read, execute and write below PATH
    #[arg(short = 'w', long = "write", value_name = "PATH")]
    pub(crate) write: Vec<String>,
    /// Let the command listen on a port, of loopback unless an address is given
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) listen: Vec<String>,
    /// Use this address for a host instead of asking DNS
    #[arg(long, value_name = "HOST[:PORT]=ADDR[:PORT]")]
    pub(crate) resolve: Vec<String>,
    /// When TLS is opened to look inside
    #[arg(long, value_name = "WHEN")]
    pub(crate) intercept: Option<Intercept>,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Intercept {
    /// Where a rule needs to see inside
    WhenNeeded,
    /// Always, except for tls:// rules
    Always,
    /// Never: what needs a look inside is denied
    Never,
}

/// Options of `outgate check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// List every system call the filter holds or refuses, with the reason
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
