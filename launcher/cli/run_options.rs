//! The options of `outgate run`, which `learn` and `lock` run commands with as well: text in,
//! options out.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use outgate_launcher::AskTimes;

use crate::duration::seconds;
use crate::lock_file;
use crate::policy_options::PolicyOptions;
use crate::rotation::RotationOptions;

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

/// How far a run that monitors lets go.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum MonitorReach {
    /// Public hosts; credentials, addresses inside and networks that rules deny stay refused
    Public,
    /// These too, but services of metadata, and your own known secrets away from their hosts
    All,
}

impl MonitorReach {
    /// As the policy reads it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::All => "all",
        }
    }
}

/// How long people are asked where nobody says: no request waits for as long as cargo, the
/// hastiest client known, which gives up after thirty seconds; all others wait for a minute and
/// more.
pub(crate) const ASK: AskTimes = AskTimes {
    held_seconds: 25,
    open_seconds: 300,
};

/// How long people are asked: the usual time, or this one.
fn asked(text: &str) -> Result<AskTimes, String> {
    if text.is_empty() {
        return Ok(ASK);
    }
    seconds(text).map(|seconds| AskTimes {
        held_seconds: seconds,
        open_seconds: seconds,
    })
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
    #[command(flatten)]
    pub(crate) rotation: RotationOptions,
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
    /// [default: 25s]
    ///
    /// Then it is denied: "asked, no answer yet; try again". Without TIME that is before any
    /// known client gives up (cargo does after 30 seconds), and the question stays open for
    /// five minutes, so that who tries again finds its answer. With TIME both take that long,
    /// ten minutes at most.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", value_parser = asked, conflicts_with = "sealed")]
    pub(crate) ask: Option<AskTimes>,
    /// As --ask, and start this program to answer, outside of the confinement and with your
    /// environment: a line of JSON for each question and each answer (`outgate approve --help`)
    #[arg(long = "ask-with", value_name = "CMD", conflicts_with_all = ["sealed", "locked"])]
    pub(crate) ask_with: Option<String>,
    /// Let through what rules deny, and record and say so each time: for trying out a policy
    ///
    /// Hosts, methods and paths alone: credentials on their way out, addresses of metadata,
    /// private and loopback addresses that no rule grants, and networks that rules deny stay
    /// refused, and so does content that nobody can look into where rules are strict. What is
    /// neither HTTP nor TLS that can be opened stays refused, and so do requests hidden in
    /// requests that rules allow. Files, Unix sockets, ports listened on, quotas and limits
    /// are not monitored: they hold.
    ///
    /// `=all` lets go of addresses inside, of networks that rules deny, of credentials (with a
    /// warning) and of `--strict` too. Addresses of metadata and link-local ones, placeholders
    /// of secrets, canaries, and values of your own that outgate knows still go nowhere else.
    ///
    /// The policy of a shared gateway holds whatever a run says.
    #[arg(long, value_name = "REACH", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "public", conflicts_with_all = ["ask", "ask_with", "locked"])]
    pub(crate) monitor: Option<MonitorReach>,
    /// Allow what this lock says and nothing else, whatever policies allow; status 3 if
    /// anything was denied [default: outgate.lock]
    ///
    /// `outgate lock` writes it. Denials of policies, files and limits stay as they are, and
    /// nobody may change the run while it goes on.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = lock_file::FILE, conflicts_with = "ask")]
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
