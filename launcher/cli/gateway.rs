//! `outgate gateway`: options become a shared gateway in the foreground.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use outgate_launcher::listener::{self, Audience};
use outgate_launcher::proxied::ProxyOptions;
use outgate_launcher::run::RunError;
use outgate_launcher::service::ServiceManager;
use outgate_launcher::share::{AdminPlace, ShareError, ShareOptions, SocketPlace, share};
use outgate_launcher::sources::SourceCollector;
use outgate_launcher::tokens::StoredToken;
use outgate_launcher::voice::Voice;
use outgate_launcher::{GatewaySetting, activation};
use outgate_policy::{PolicyOption, Source, SourceKind};

use crate::accounts;
use crate::gateway_check::{self, GatewayCheck};
use crate::gateway_limits::LimitOptions;
use crate::gateway_page::{self, PageOptions};
use crate::gateway_status::{self, StatusOptions};
use crate::given_files::{absolute, readable_again};
use crate::log_format::LogFormat;
use crate::policy_options::{KeyOptions, surroundings};
use crate::report;
use crate::rotation::RotationOptions;
use crate::run_options::MonitorReach;
use crate::token;
use crate::upstream;

/// Serve many runs with one gateway
#[derive(Debug, Args)]
#[command(after_help = GATEWAY_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Gateway {
    #[command(subcommand)]
    pub(crate) task: Option<GatewayTask>,
    /// Make the socket there; without it, systemd's (LISTEN_FDS)
    #[arg(long, value_name = "SOCKET")]
    pub(crate) listen: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) by_proxy: ProxyPlace,
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
    #[command(flatten)]
    pub(crate) rotation: RotationOptions,
    /// Say how the gateway is on this Unix socket, to you and root alone; `none`: nowhere
    /// [default: the name of --listen and .admin]
    #[arg(long, value_name = "SOCKET|none")]
    pub(crate) admin: Option<PathBuf>,
    /// Show a live page at this address of this machine, to browsers that `outgate gateway
    /// page` lets in; port 0: a free one
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) admin_listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    /// Write what the gateway says as lines of JSON
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// The explicit proxy.
#[derive(Debug, Args)]
pub(crate) struct ProxyPlace {
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
}

/// What is asked of a gateway that runs, or about one.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayTask {
    /// Show how a gateway is: sandboxes, limits, record
    Status(StatusOptions),
    /// Print an address that lets one browser see a gateway's live page, once and soon
    Page(PageOptions),
    /// Say whether a gateway with these options would start here, and what to do where not
    Check(Box<GatewayCheck>),
}

const GATEWAY_EXAMPLES: &str = "\
Examples:
  outgate gateway --listen /run/user/1000/gate -a https://files.example.org
  outgate run --gateway /run/user/1000/gate -- ./fetch
  outgate gateway --listen /run/outgate/gate --group agents -p site.toml   several users
  outgate gateway --listen /run/outgate/gate --ca /etc/outgate/ca -p site.toml
  outgate gateway --listen /run/outgate/gate -p site.toml --audit /var/log/outgate \
          --audit-rotate 100M --audit-rotate 1d --audit-keep-days 30
  outgate gateway --listen /run/user/1000/gate -p site.toml --admin-listen 127.0.0.1:7070
  outgate gateway page /run/user/1000/gate                        then open what it prints
  outgate gateway --proxy 127.0.0.1:3128 --ca ~/ca -p site.toml   for containers; see `token`

What a run may do is what both its own policy and the gateway's allow; a run without
network rules of its own gets the gateway's. Paths, environment and limits are the run's.
SIGHUP has it read the -p files again: a faulty one changes nothing, and it says what is
allowed more than before. SIGTERM or Ctrl-C ends it: nothing new is taken, and what runs
has the time of --drain. A limit that is not given is worked out from the open files.";

/// Bytes of the path of an admin socket: of the 107 that there are, those that its name while
/// it is made leaves.
const ADMIN_PATH_BYTES_MAX: usize = 94;

/// Shares a gateway until a signal ends it.
pub(crate) fn gateway(arguments: &Gateway) -> ExitCode {
    if let Some(task) = &arguments.task {
        return asked(task);
    }
    let sources = match sources(arguments) {
        Ok(sources) => sources,
        Err(error) => return report::failure(&error),
    };
    let directory = match std::env::current_dir() {
        Ok(directory) => directory,
        Err(error) => return report::wrong(&format!("the working directory: {error}")),
    };
    let (place, admin, page) = match doors(arguments, &directory) {
        Ok(places) => places,
        Err(message) => return report::wrong(&message),
    };
    let service = match manager() {
        Ok(service) => service,
        Err(message) => return report::wrong(&message),
    };
    let home = std::env::var("HOME")
        .ok()
        .filter(|home| home.starts_with('/'));
    let home = home.unwrap_or_default();
    let settings = absolute(arguments.upstream_ca.clone()).and_then(|files| {
        let trusted = files.into_iter().map(GatewaySetting::UpstreamCa);
        let records = records(arguments, &directory, &home)?;
        let limits = arguments.limits.settings();
        Ok(trusted.chain(records).chain(limits).collect())
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
        admin,
        page,
        ending_time: arguments.limits.ending_time(),
        service,
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
    let mut voice = arguments.log_format.voice();
    match share(options, &mut read, &mut *voice) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failed(&error, arguments.log_format, &mut *voice);
            ExitCode::from(error.status())
        }
    }
}

/// Does what is asked of a gateway that runs, or about one.
fn asked(task: &GatewayTask) -> ExitCode {
    match task {
        GatewayTask::Status(options) => gateway_status::status(options),
        GatewayTask::Page(options) => gateway_page::page(options),
        GatewayTask::Check(options) => gateway_check::check(options),
    }
}

fn failed(error: &ShareError, format: LogFormat, voice: &mut dyn Voice) {
    match format {
        LogFormat::Text => report::error(error, error.hint()),
        LogFormat::Json => {
            let text = report::chain(error);
            for line in text.lines().chain(error.hint()) {
                voice.say(&format!("outgate: error: {line}"));
            }
        }
    }
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

/// Where launchers and who runs it connect, and their browser.
fn doors(
    arguments: &Gateway,
    directory: &Path,
) -> Result<(Option<SocketPlace>, AdminPlace, Option<TcpListener>), String> {
    let (place, admin) = places(arguments, directory)?;
    let page = gateway_page::listener(arguments.admin_listen, &admin)?;
    Ok((place, admin, page))
}

/// Where launchers connect, if anywhere, and where it says how it is: made, or inherited.
fn places(
    arguments: &Gateway,
    directory: &Path,
) -> Result<(Option<SocketPlace>, AdminPlace), String> {
    let audience = match (&arguments.group, arguments.everybody) {
        (Some(group), _) => Audience::Group(accounts::group(group)?),
        (None, true) => Audience::Everybody,
        (None, false) => Audience::Owner,
    };
    let named = match &arguments.admin {
        Some(path) if path.as_os_str() == "none" => Some(AdminPlace::None),
        Some(path) => Some(AdminPlace::Path(directory.join(path))),
        None => None,
    };
    if let Some(path) = &arguments.listen {
        let path = directory.join(path);
        let admin = named.unwrap_or_else(|| beside(&path));
        return Ok((Some(SocketPlace::Path(path, audience)), admin));
    }
    let variable = |name| std::env::var(name).ok();
    let ours = variable("LISTEN_PID").as_deref() == Some(&std::process::id().to_string());
    if !ours && arguments.by_proxy.proxy.is_some() {
        return Ok((None, named.unwrap_or(AdminPlace::None)));
    }
    if !ours {
        return Err(
            "`--listen SOCKET` and `--proxy ADDR` are missing, and no socket was inherited"
                .to_owned(),
        );
    }
    if audience != Audience::Owner {
        return Err("whoever made the inherited socket says who may connect".to_owned());
    }
    let (count, names) = (variable("LISTEN_FDS"), variable("LISTEN_FDNAMES"));
    let passed = activation::passed(count.as_deref(), names.as_deref())?;
    let admin = match (named, passed.admin) {
        (Some(_), Some(_)) => {
            return Err(
                "`--admin` and an inherited socket named `admin` are two places".to_owned(),
            );
        }
        (Some(named), None) => named,
        (None, Some(number)) => AdminPlace::Inherited(listener::take_inherited_admin(number)?),
        (None, None) => AdminPlace::None,
    };
    let socket = listener::take_inherited(passed.runs)?;
    Ok((Some(SocketPlace::Inherited(socket)), admin))
}

/// The admin socket beside the other, where its name is short enough (unix(7)).
fn beside(path: &Path) -> AdminPlace {
    let admin = gateway_status::beside(path);
    if admin.as_os_str().len() <= ADMIN_PATH_BYTES_MAX {
        return AdminPlace::Path(admin);
    }
    report::note("the name of an admin socket beside this one is too long; --admin names another");
    AdminPlace::None
}

/// Who started this as a service and wants to hear of it (sd_notify(3)).
fn manager() -> Result<ServiceManager, String> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(ServiceManager::default());
    };
    let variable = |name| std::env::var(name).ok();
    let own = std::process::id().to_string();
    let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == own);
    let micros = variable("WATCHDOG_USEC").filter(|_| is_ours);
    let micros = micros.and_then(|micros| micros.parse().ok());
    let watchdog = micros
        .filter(|micros| *micros > 0)
        .map(Duration::from_micros);
    ServiceManager::at(&socket, watchdog)
        .map_err(|error| format!("NOTIFY_SOCKET={}: {error}", socket.to_string_lossy()))
}

/// The explicit proxy, bound before the gateway confines itself.
fn proxy(arguments: &Gateway) -> Result<Option<ProxyOptions<'static>>, String> {
    let Some(address) = arguments.by_proxy.proxy else {
        return Ok(None);
    };
    if !address.ip().to_canonical().is_loopback() {
        if !arguments.by_proxy.proxy_plaintext {
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
        tokens: token::directory(arguments.by_proxy.tokens.as_deref())?,
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
fn records(
    arguments: &Gateway,
    directory: &Path,
    home: &str,
) -> Result<Option<GatewaySetting>, String> {
    if let Some(place) = &arguments.audit {
        let place = directory.join(place);
        return Ok(Some(match arguments.rotation.rotation(Some(&place))? {
            Some(rotation) => GatewaySetting::RotatedRecords(place, rotation),
            None => GatewaySetting::RecordFile(place),
        }));
    }
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| (!home.is_empty()).then(|| Path::new(home).join(".local/state")));
    Ok(state.map(|state| GatewaySetting::RecordDirectory(state.join("outgate/gateways"))))
}
