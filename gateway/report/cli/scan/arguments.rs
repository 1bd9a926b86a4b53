//! The options of `outgate scan`, as clap reads them: in `outgate` for its help and
//! completions, in `outgate-report` to obey them.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  outgate scan .                                 every file below the working directory
  git diff | outgate scan                        standard input
  outgate scan --har session.har                 recorded requests, each towards its host
  outgate scan --to api.example.org body.json    what may go to that host is no finding
  outgate scan --own --to example.org body.json  your own secrets too, whatever they look like
  outgate scan --write-baseline known.json .     accept what is there today
  outgate scan --baseline known.json .           report only what is new
  outgate scan --list                            every detector and what its leak costs

Exit status: 0 nothing was found, 1 something was, 2 bad usage or something could not be
read.";

/// Find credentials in files, directories, standard input or recorded requests
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Scan {
    /// Files and directories; `-`, or nothing, is standard input
    #[arg(value_name = "FILE|DIR|-")]
    pub(crate) paths: Vec<PathBuf>,
    /// What is read is an HTTP archive; files named *.har always are
    #[arg(long)]
    pub(crate) har: bool,
    /// The host to which it would go as content: what may go there is no finding
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,
    /// Take doubtful findings and what could not be scanned as seriously as others
    #[arg(long)]
    pub(crate) strict: bool,
    /// Add detectors from a file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) detectors: Vec<PathBuf>,
    /// Look for the values of your own secrets too: those of your variables and of
    /// files such as ~/.netrc, ~/.npmrc, ~/.aws/credentials, ~/.ssh and .env
    #[arg(long)]
    pub(crate) own: bool,
    /// Look for the values that the file lists: one a line, `VALUE -> HOST` where it
    /// may go
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets_file: Option<PathBuf>,
    /// Run a detector that is off by default, such as payment-card
    #[arg(long, value_name = "ID")]
    pub(crate) enable: Vec<String>,
    /// Do not run a detector
    #[arg(long, value_name = "ID")]
    pub(crate) disable: Vec<String>,
    /// Skip files and directories of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) skip: Vec<String>,
    /// Accept the findings that the file lists
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write what is found to the file, to accept it from now on
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Print findings as one JSON document
    #[arg(long, conflicts_with = "sarif")]
    pub(crate) json: bool,
    /// Print findings as SARIF 2.1.0
    #[arg(long)]
    pub(crate) sarif: bool,
    /// List the detectors instead: tier, where credentials may go, what a leak costs
    #[arg(long, conflicts_with_all = ["paths", "har", "to", "own", "secrets_file", "baseline", "write_baseline", "sarif"])]
    pub(crate) list: bool,
    /// Which build starts this one
    #[arg(long, value_name = "VERSION", hide = true)]
    pub(crate) build: Option<String>,
}
