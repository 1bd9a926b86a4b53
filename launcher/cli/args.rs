//! The command line as clap reads it: text in, options out, no I/O.

use clap::{Parser, Subcommand};
use outgate_report::{Audit, Scan};

use crate::approve::Approve;
use crate::ca::AuthorityArguments;
use crate::check::Check;
use crate::gateway::Gateway;
use crate::grants::{Grant, Revoke};
use crate::learn::Learn;
use crate::leftovers::Leftovers;
use crate::lock::LockCommand;
use crate::manual::{Completions, Manual};
use crate::policy::PolicyArguments;
use crate::run_options::Run;
use crate::runs::Named;
use crate::token::TokenArguments;
use crate::top::Top;
use crate::trust::Trust;
use crate::up::Up;
use crate::why_options::Why;

/// Runs a command so that nothing leaves it except what the rules allow.
#[derive(Debug, Parser)]
#[command(name = "outgate", version, about, long_about = None, disable_help_subcommand = true)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  outgate run -- make test                       run without any network
  outgate run -P github -- git clone https://github.com/owner/name
  outgate why last                               what was denied, and the flag that allows it
  outgate why -P github https://example.org/     the same before anything runs
  outgate grant agent https://example.org --for 10m   allow a running command more
  outgate leftovers                              what the last run wrote that runs later
  outgate learn --from last -o agent.toml        make a policy of what the last run did
  outgate up test                                run a command of the project's outgate.toml
  outgate lock -- make deps                      hold a pipeline to what it reached
  outgate policy check agent.toml                is the policy right?
  outgate scan .                                 credentials in files, offline
  outgate audit report -o report.html            where the data of the last run went
  outgate check --clients                        can commands be confined here, and who trusts that?
  outgate ca create --permit example.org         an authority of your own

`outgate COMMAND --help` shows more.";

// Deferred: the options of a subcommand are built only where it is used.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Run a command confined
    #[command(after_help = RUN_EXAMPLES, after_long_help = RUN_DETAILS)]
    Run(Box<Run>),
    /// Run a command of the project's manifest
    Up(Up),
    /// Show what a project's manifest grants, and accept it
    Trust(Trust),
    /// Make a policy of what runs did
    #[command(after_help = crate::learn::EXAMPLES)]
    Learn(Box<Learn>),
    /// Hold a pipeline to what it reached
    #[command(after_help = crate::lock::EXAMPLES)]
    Lock(Box<LockCommand>),
    /// Explain what a policy decides about a request, or what was denied last
    #[command(after_help = crate::why_options::EXAMPLES)]
    Why(Box<Why>),
    /// Serve many runs with one gateway
    Gateway(Box<Gateway>),
    /// Say which sandboxes a gateway's proxy serves
    Token(TokenArguments),
    /// List your runs (root: everybody's)
    Ps,
    /// Watch what a shared gateway does: sandboxes, denials, alarms, questions
    Top(Top),
    /// End a run and all its processes
    Kill(Named),
    /// Show a run: its policy, its gateway, its record
    Inspect(Named),
    /// Answer what runs with --ask ask
    Approve(Approve),
    /// Allow a running command more
    Grant(Grant),
    /// Take back what was granted to a running command
    Revoke(Revoke),
    /// Have a run read its policy files again
    Reload(Named),
    /// Show what a run wrote that runs later, or put it back
    #[command(after_help = crate::leftovers::EXAMPLES)]
    Leftovers(Leftovers),
    /// Make an authority of your own, and have programs trust it
    Ca(AuthorityArguments),
    /// Check, show and test policies
    Policy(Box<PolicyArguments>),
    /// Find credentials in files, directories, standard input or recorded requests
    Scan(Box<Scan>),
    /// Read, search, verify, show and export records of what was decided
    Audit(Box<Audit>),
    /// Show what this kernel supports, what will be enforced, and what is missing
    Check(Check),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual page, or write all of them into a directory
    Man(Manual),
}

/// The examples, in the short and in the long help.
macro_rules! run_examples {
    () => {
        "\
Examples:
  outgate run -- make test                               no network at all
  outgate run -a 'GET https://api.example.org/repos/**' -- curl https://api.example.org/repos/a
  outgate run -a https://files.example.org -- ./fetch    everything to one host, TLS unopened
  outgate run -a tcp://db.example.org:5432 -- psql ...   any protocol to one host and port
  outgate run -P dev-tools -P github -- agent            shipped files and hosts
  outgate run -p agent.toml -- agent                     rules from a file
  outgate run -a '*' -d '**.example.org' -- ./crawl      everything public but these hosts"
    };
}

/// The exit status, in both.
macro_rules! run_status {
    () => {
        "\
Exit status: the command's own; 128+n when signal n ended it; 125 outgate could not start
it; 126 it cannot be executed; 127 it is not found; 2 bad usage or a bad policy; with
--leftovers=fail, 3 when it left something behind that runs later; with --locked, 3 when it
asked for more than the lock has, or when the lock is another at its end."
    };
}

const RUN_EXAMPLES: &str = concat!(
    run_examples!(),
    "\n\n\
Rules: [METHODS ][SCHEME://]HOST[:PORTS][/PATH][?QUERY]; --help shows each kind. Nothing is
allowed that no rule allows; a deny rule beats every allow rule.\n\n",
    run_status!(),
);

const RUN_DETAILS: &str = concat!(
    run_examples!(),
    "\n\n\
Rules:
  GET,HEAD https://api.example.org/repos/**  these methods, below this path
  https://api.example.org/x?page=*&lang=en   these keys in the query, with these values
  https://files.example.org                  one host, whatever is asked there
  tls://pinned.example.org                   the same, in TLS that is never opened
  api.example.org                            http and https, on their usual ports
  *.example.org    **.example.org            names below; these and the name itself
  http://localhost:3000                      your own server on this machine
  10.2.0.0/16:8443                           addresses; private ones only like this
  tcp://db.example.org:5432                  any protocol to one port
  wss://events.example.org/v1                WebSocket, which https:// does not include
  unix:///run/user/1000/agent.sock           a Unix socket
  *                                          every public host

Nothing is allowed that no rule allows; a deny rule beats every allow rule, and covers every
protocol and port unless it names some. Names are resolved outside the sandbox, after they
were allowed. `outgate why` says what a rule does, `outgate policy` what all of them do.

TLS:
  It is opened where a rule has to see requests inside, and to say in words what is denied:
  with an authority made for this run alone (or with yours, --ca), which the command is told to
  trust (SSL_CERT_FILE and variables like it). A client that brings its own roots needs a tls://
  rule. Origins are verified by the system's authorities and those of --upstream-ca; one that
  asks for a certificate gets that of --client-cert.

Secrets:
  --secret GH_TOKEN=env:GH_TOKEN@api.github.com            from a variable of yours
  --secret 'KEY=file:~/.key@api.example.org:8443/v1/**'    from a file; with port and path
  --secret 'KEY=cmd:pass show key@api.example.org;in=query'   what a command prints
  --secret AWS=aws:env@s3.eu-west-1.amazonaws.com          keys that sign, never sent
  The command sees a placeholder. The gateway replaces it, over verified TLS to that host
  alone, in fields that carry credentials and where `;in=` says: `fields`, `query`, `path`,
  `content`, or the name of a field. Anywhere else it is denied and recorded; a value that
  comes back is masked. A rule must allow the host as well (-a).

Files:
  Without -p, -r, -w and a shipped policy about files, those of `base` hold: system
  directories can be read and executed, the working directory and a private temporary
  directory written, and the rest of the home directory is hidden.\n\n",
    run_status!(),
);
