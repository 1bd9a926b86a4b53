//! `outgate gateway`: options become a shared gateway in the foreground.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use outgate_launcher::GatewaySetting;
use outgate_launcher::listener::Audience;
use outgate_launcher::proxied::ProxyOptions;
use outgate_launcher::run::RunError;
use outgate_launcher::share::{ShareError, ShareOptions, SocketPlace, share};
use outgate_launcher::sources::SourceCollector;
use outgate_launcher::tokens::StoredToken;
use outgate_policy::{PolicyOption, Source, SourceKind};

use crate::accounts;
use crate::given_files::{absolute, readable_again};
use crate::policy_options::{KeyOptions, surroundings};
use crate::report;
use crate::run_options::MonitorReach;
use crate::token;
use crate::upstream;

/// Serve many runs with one gateway
#[derive(Debug, Args)]
#[command(after_help = GATEWAY_EXAMPLES)]
pub(crate) struct Gateway {
    /// Make the socket there; without it, systemd's (LISTEN_FDS)
    #[arg(long, value_name = "SOCKET")]
    pub(crate) listen: Option<PathBuf>,
    /// Be a proxy at ADDR:PORT, for clients that show a token (`outgate token`): HTTP, CONNECT
    /// and SOCKS5
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) proxy: Option<SocketAddr>,
    /// Let --proxy listen for other hosts: tokens and http:// cross the network unencrypted
    #[arg(long, requires = "proxy")]
    pub(crate) proxy_plaintext: bool,
    /// Where the tokens are [default: tokens in the state directory]
    #[arg(long, value_name = "DIR", requires = "proxy")]
    pub(crate) tokens: Option<PathBuf>,
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
    /// Let through what this policy denies, and record it, as `outgate run --monitor` does; the
    /// rules of a run that has some of its own that allow are enforced
    #[arg(long, value_name = "REACH", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "public")]
    pub(crate) monitor: Option<MonitorReach>,
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
  outgate gateway --proxy 127.0.0.1:3128 --ca ~/ca -p site.toml   for containers; see `token`

What a run may do is what both its own policy and the gateway's allow; a run without
network rules of its own gets the gateway's. Paths, environment and limits are the run's.
SIGHUP has it read the -p files again: a faulty one changes nothing. SIGTERM or Ctrl-C
ends it.";

/// The first descriptor systemd passes (sd_listen_fds(3)).
const LISTEN_FDS_START: i32 = 3;

/// Shares a gateway until a signal ends it.
pub(crate) fn gateway(arguments: &Gateway) -> ExitCode {
    let sources = match sources(arguments) {
        Ok(sources) => sources,
        Err(error) => return report::failure(&error),
    };
    let directory = match std::env::current_dir() {
        Ok(directory) => directory,
        Err(error) => return report::wrong(&format!("the working directory: {error}")),
    };
    let place = match place(arguments, &directory) {
        Ok(place) => place,
        Err(message) => return report::wrong(&message),
    };
    let home = std::env::var("HOME")
        .ok()
        .filter(|home| home.starts_with('/'));
    let home = home.unwrap_or_default();
    let settings = absolute(arguments.upstream_ca.clone()).map(|files| {
        let trusted = files.into_iter().map(GatewaySetting::UpstreamCa);
        let records = records(arguments.audit.as_deref(), &directory, &home);
        trusted.chain(records).collect()
    });
    let settings = match settings {
        Ok(settings) => settings,
        Err(message) => return report::wrong(&message),
    };
    let upstream_proxy = arguments.upstream_proxy.clone();
    if let Err(message) = upstream::check(upstream_proxy.as_deref(), upstream::Network::Own) {
        return report::wrong(&message);
    }
    let proxy = match proxy(arguments) {
        Ok(proxy) => proxy,
        Err(message) => return report::wrong(&message),
    };
    let options = ShareOptions {
        place,
        proxy,
        sources,
        settings,
        upstream_proxy,
        home,
        working_directory: directory.to_string_lossy().into_owned(),
    };
    let mut read = || {
        readable_again(&arguments.policies)?;
        let read = self::sources(arguments);
        read.map_err(|error| report::chain(&error))
    };
    match share(options, &mut read, &mut report::Terminal::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &ShareError) -> ExitCode {
    report::error(error, error.hint());
    ExitCode::from(error.status())
}

fn sources(arguments: &Gateway) -> Result<Vec<Source>, RunError> {
    let mut collector = SourceCollector::new(surroundings());
    for name in &arguments.presets {
        collector.preset(name)?;
    }
    for path in &arguments.policies {
        collector.file(path)?;
    }
    let texts = [
        (SourceKind::Allow, "gateway -a", &arguments.allow),
        (SourceKind::Deny, "gateway -d", &arguments.deny),
        (SourceKind::Pin, "gateway --resolve", &arguments.resolve),
    ];
    for (kind, place, list) in texts {
        for text in list {
            collector.text(kind, place, text);
        }
    }
    arguments.keys.collect(&mut collector);
    if let Some(reach) = arguments.monitor {
        let kind = SourceKind::Option(PolicyOption::Monitor);
        collector.text(kind, "gateway --monitor", reach.word());
    }
    Ok(collector.finish())
}

fn place(arguments: &Gateway, directory: &Path) -> Result<Option<SocketPlace>, String> {
    let audience = match (&arguments.group, arguments.everybody) {
        (Some(group), _) => Audience::Group(accounts::group(group)?),
        (None, true) => Audience::Everybody,
        (None, false) => Audience::Owner,
    };
    if let Some(path) = &arguments.listen {
        return Ok(Some(SocketPlace::Path(directory.join(path), audience)));
    }
    let variable = |name| std::env::var(name).ok();
    let ours = variable("LISTEN_PID").as_deref() == Some(&std::process::id().to_string());
    if !ours || variable("LISTEN_FDS").as_deref() != Some("1") {
        if arguments.proxy.is_some() {
            return Ok(None);
        }
        return Err(
            "`--listen SOCKET` and `--proxy ADDR` are missing, and no socket was inherited"
                .to_owned(),
        );
    }
    if audience != Audience::Owner {
        return Err("whoever made the inherited socket says who may connect".to_owned());
    }
    let socket = outgate_launcher::listener::take_inherited(LISTEN_FDS_START)?;
    Ok(Some(SocketPlace::Inherited(socket)))
}

/// The explicit proxy, bound before the gateway confines itself.
fn proxy(arguments: &Gateway) -> Result<Option<ProxyOptions<'static>>, String> {
    let Some(address) = arguments.proxy else {
        return Ok(None);
    };
    if !address.ip().to_canonical().is_loopback() {
        if !arguments.proxy_plaintext {
            return Err(format!(
                "`--proxy {address}` would listen for other hosts, whose tokens and http:// \
                 requests cross the network unencrypted; say --proxy-plaintext if that network \
                 is yours alone, as one between containers is"
            ));
        }
        report::warning(&format!(
            "the proxy at {address} is not encrypted: tokens and http:// requests cross the \
             network in the clear"
        ));
    }
    let listener =
        TcpListener::bind(address).map_err(|error| format!("`--proxy {address}`: {error}"))?;
    Ok(Some(ProxyOptions {
        listener,
        tokens: token::directory(arguments.tokens.as_deref())?,
        read: Box::new(token_policy),
    }))
}

/// The policy of a token's sandbox, below the gateway's: its file, or nothing of its own.
fn token_policy(token: &StoredToken) -> Result<Vec<Source>, String> {
    let mut collector = SourceCollector::new(surroundings());
    if let Some(path) = &token.policy {
        let read = collector.file(path);
        read.map_err(|error| report::chain(&error))?;
    }
    Ok(collector.finish())
}

/// Where records go: the option, or the state directory.
fn records(audit: Option<&Path>, directory: &Path, home: &str) -> Option<GatewaySetting> {
    if let Some(file) = audit {
        return Some(GatewaySetting::RecordFile(directory.join(file)));
    }
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| (!home.is_empty()).then(|| Path::new(home).join(".local/state")));
    state.map(|state| GatewaySetting::RecordDirectory(state.join("outgate/gateways")))
}
