//! The command line as clap reads it: text in, options out, no I/O.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use outgate_report::{Audit, Scan};

use crate::approve::Approve;
use crate::ca::AuthorityArguments;
use crate::grants::{Grant, Revoke, seconds};
use crate::learn::Learn;
use crate::leftovers::Leftovers;
use crate::lock::LockCommand;
use crate::manual::{Completions, Manual};
use crate::policy::PolicyArguments;
use crate::policy_options::{KeyOptions, PolicyOptions};
use crate::why::Why;

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
    /// Make a policy of what runs did
    #[command(after_help = crate::learn::EXAMPLES)]
    Learn(Box<Learn>),
    /// Hold a pipeline to what it reached
    #[command(after_help = crate::lock::EXAMPLES)]
    Lock(Box<LockCommand>),
    /// Explain what a policy decides about a request, or what was denied last
    #[command(after_help = crate::why::EXAMPLES)]
    Why(Box<Why>),
    /// Serve many runs with one gateway
    Gateway(Box<Gateway>),
    /// List your runs (root: everybody's)
    Ps,
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
asked for more than the lock has."
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

/// How the command is made to trust what the gateway opens.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TrustWay {
    /// By variables: SSL_CERT_FILE and those like it
    Variables,
    /// And in the bundles of certificates that programs open; each open is held, which costs time
    Splice,
}

/// What is done about files that the command wrote and that run later.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Leave {
    /// They are told at the end and recorded
    Tell,
    /// And the exit status is 3
    Fail,
    /// Nobody looks
    Off,
}

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
    /// Use the shared gateway that listens there
    #[arg(long, value_name = "SOCKET")]
    pub(crate) gateway: Option<PathBuf>,
    /// With --gateway: it is run by this user, neither root nor you
    #[arg(long = "gateway-user", value_name = "USER", requires = "gateway")]
    pub(crate) gateway_user: Option<String>,
    /// Verify origins with the certificates in FILE too (PEM), beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Vec<PathBuf>,
    /// How the command is made to trust what is opened
    #[arg(long, value_name = "HOW", default_value = "variables")]
    pub(crate) trust: TrustWay,
    /// Connect through this proxy [default: https_proxy, http_proxy, no_proxy]
    ///
    /// The gateway resolves names and checks addresses itself, and asks the proxy for a
    /// tunnel to the address. `none`: through no proxy, whatever the environment says.
    #[arg(long, value_name = "URL|none", conflicts_with = "gateway")]
    pub(crate) upstream_proxy: Option<String>,
    /// Name of the sandbox in records
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Set an environment variable of the command
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<OsString>,
    /// Inherit this variable: a credential that no rule needs, or with --clean-env any
    #[arg(long = "pass-env", value_name = "NAME")]
    pub(crate) pass: Vec<OsString>,
    /// Inherit only PATH, HOME, TERM, LANG and what --pass-env names
    #[arg(long = "clean-env")]
    pub(crate) clean: bool,
    /// Take the shipped policy for the program that is run, if there is one and no
    /// other policy is named
    #[arg(long)]
    pub(crate) auto: bool,
    /// Hold a request that no rule decides, and ask who runs `outgate approve`; for this long
    /// [default: 60s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "60s", value_parser = seconds, conflicts_with = "sealed")]
    pub(crate) ask: Option<u32>,
    /// Allow what this lock says and nothing else, whatever policies allow; status 3 if
    /// anything was denied [default: outgate.lock]
    ///
    /// `outgate lock` writes it. Denials of policies, files and limits stay as they are, and
    /// nobody may change the run while it goes on.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = crate::lock::FILE, conflicts_with = "ask")]
    pub(crate) locked: Option<PathBuf>,
    /// With --locked: this step of it alone
    #[arg(long, value_name = "NAME", requires = "locked")]
    pub(crate) step: Option<String>,
    /// Nobody may change the policy while the run goes on: no grants, no reload
    #[arg(long)]
    pub(crate) sealed: bool,
    /// Do not print the summary at the end
    #[arg(long = "no-summary")]
    pub(crate) no_summary: bool,
    /// Say at the end which files the command opened in vain, and what would grant them; each
    /// open is held for that, which costs time
    #[arg(long = "watch-files")]
    pub(crate) watch_files: bool,
    /// What is done about written files that run later: git hooks, tasks, start files
    #[arg(long, value_name = "WHAT", default_value = "tell")]
    pub(crate) leftovers: Leave,
    /// Print how many calls were held, by kind, at the end
    #[arg(long)]
    pub(crate) counters: bool,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

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

// A run, for `outgate kill` and `outgate inspect`; described where it is used..
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name of the run, or the process id that `outgate ps` shows
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Serve many runs with one gateway
#[derive(Debug, Args)]
#[command(after_help = GATEWAY_EXAMPLES)]
pub(crate) struct Gateway {
    /// Make the socket there; without it, systemd's (LISTEN_FDS)
    #[arg(long, value_name = "SOCKET")]
    pub(crate) listen: Option<PathBuf>,
    /// Let members of this group connect, not only you
    #[arg(long, value_name = "GROUP", conflicts_with = "everybody")]
    pub(crate) group: Option<String>,
    /// Let every user of the machine connect
    #[arg(long = "all-users")]
    pub(crate) everybody: bool,
    /// Add a policy file (TOML)
    #[arg(short = 'p', long = "policy", value_name = "FILE")]
    pub(crate) policies: Vec<PathBuf>,
    /// Add a shipped policy
    #[arg(short = 'P', long = "preset", value_name = "NAME")]
    pub(crate) presets: Vec<String>,
    /// Allow what the rule describes, where the run allows it too
    #[arg(short = 'a', long = "allow", value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Deny what the rule describes, whatever other rules allow
    #[arg(short = 'd', long = "deny", value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Use this address for a host instead of asking DNS
    #[arg(long, value_name = "HOST[:PORT]=ADDR[:PORT]")]
    pub(crate) resolve: Vec<String>,
    /// Verify origins with the certificates in FILE too (PEM), beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyOptions,
    /// Connect through this proxy [default: https_proxy, http_proxy, no_proxy]
    #[arg(long, value_name = "URL|none")]
    pub(crate) upstream_proxy: Option<String>,
    /// Write the record of all runs to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
}

const GATEWAY_EXAMPLES: &str = "\
Examples:
  outgate gateway --listen /run/user/1000/gate -a https://files.example.org
  outgate run --gateway /run/user/1000/gate -- ./fetch
  outgate gateway --listen /run/outgate/gate --group agents -p site.toml   several users
  outgate gateway --listen /run/outgate/gate --ca /etc/outgate/ca -p site.toml

What a run may do is what both its own policy and the gateway's allow; a run without
network rules of its own gets the gateway's. Paths, environment and limits are the run's.
SIGHUP has it read the -p files again: a faulty one changes nothing. SIGTERM or Ctrl-C
ends it.";
