//! The options of `outgate why`, and what it says where no flag helps: for what judges
//! requests, files and records alike.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use outgate_policy::DenialReason;

use crate::policy_options::PolicyOptions;

/// Exit status when the answer is no.
pub(crate) const DENIED: u8 = 1;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate why -p agent.toml https://api.example.org/repos/a
  outgate why -p agent.toml 'POST https://api.example.org/repos/a'
  outgate why -a '*' http://127.0.0.1:3000/                what `*` leaves out
  outgate why -p agent.toml tcp://db.example.org:5432
  outgate why -p agent.toml --as /usr/bin/git https://git.example.org/
  outgate why ./data/key.pem                               may a command read or write it?
  outgate why last                                         what the last run was denied
  outgate why last --as-policy                             the same as a policy file

No name is resolved: where a name leads to a private address that no rule grants, a run
denies what is allowed here.

Exit status: 0 allowed, 1 denied, 2 bad usage or a bad policy.";

/// Explain what a policy decides about a request, or what was denied last
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line, as clap reads it"
)]
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// What to judge: a URL, with a method before it or not; a path; a run, or the word `last`
    ///
    /// URLs begin with http, https, ws, wss, tls, tcp or unix and `://`. Without method it
    /// is a GET. Paths begin with `/`, `./`, `../` or `~/`. The word `last` explains what the
    /// last run was denied, and so does the name of any other that left a record.
    #[arg(value_name = "URL|PATH|RUN|last")]
    pub(crate) question: String,
    /// Judge a request with this method
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Judge what this executable asks for, for rules with `process`
    #[arg(long = "as", value_name = "PATH")]
    pub(crate) executable: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// Of a run: each denial instead of groups, the latest first
    #[arg(long, conflicts_with = "count")]
    pub(crate) all: bool,
    /// Of a run: the rules that would have allowed it, as a policy file
    #[arg(long, conflicts_with_all = ["count", "all"])]
    pub(crate) as_policy: bool,
    /// Of a run: this many denials instead of groups, the latest first
    #[arg(short = 'n', long = "count", value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    /// Of a run: read this record instead of the latest run's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Of a run: the one of this name in the record
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// What to do where no flag helps, for every reason.
pub(crate) fn repair(reason: DenialReason, place: &str) -> String {
    match reason {
        DenialReason::DenyRule => {
            format!("take out or narrow the deny rule at {place}; no rule that allows beats it")
        }
        DenialReason::OnlyRule => {
            format!("widen the rule at {place}, or add another `only` rule for this host")
        }
        DenialReason::Process => format!("add the executable to `process` at {place}"),
        DenialReason::SpecialUse | DenialReason::OtherMethod => {
            "no flag does; see the reason".to_owned()
        }
        DenialReason::NeedsInspection => {
            format!("narrow a deny rule, or widen one that allows to the whole host, at {place}")
        }
        DenialReason::NoRule | DenialReason::Malformed => {
            "nothing can: such a thing is never sent".to_owned()
        }
    }
}
