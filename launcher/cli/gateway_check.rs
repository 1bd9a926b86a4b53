//! `outgate gateway check`: whether a gateway with these options would start here, and what
//! it would soon lack: one line each, and what to do about it. Starts and changes nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use clap::{Args, ValueHint};
use outgate_launcher::listener;
use outgate_launcher::probe::{ProbeState, findings, record};
use outgate_launcher::room::{free_bytes, open_files_max};
use outgate_launcher::run::{RunError, gateway_program};
use outgate_launcher::sources::SourceCollector;
use outgate_policy::{Context, Source, SourceKind, compile};
use serde_json::Value;

use crate::policy_options::{KeyOptions, surroundings};
use crate::report;

/// Days before its end in which a certificate is worth a warning.
const ENDS_DAYS_MIN: u64 = 30;
/// Bytes that are free on the disk of the record, below which there is a warning.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// And below which hardly anything can be recorded.
const ROOM_BYTES_MIN: u64 = 64 << 20;
/// Open files below which a shared gateway serves few.
const OPEN_FILES_MIN: u64 = 4096;
/// Something is wrong.
const FAILED: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  outgate gateway check --listen /run/outgate/gate -p site.toml --audit /var/log/outgate
  outgate gateway check --ca /etc/outgate/ca && systemctl restart outgate

Exit status: 0 nothing is wrong, perhaps with warnings; 1 a gateway would not start or not
serve; 2 bad usage.";

/// Say whether a gateway with these options would start here, and what to do where not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayCheck {
    /// The socket it would make
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    listen: Option<PathBuf>,
    /// Add a policy file (TOML)
    #[arg(short = 'p', long = "policy", value_name = "FILE", value_hint = ValueHint::FilePath)]
    policies: Vec<PathBuf>,
    /// Add a shipped policy
    #[arg(short = 'P', long = "preset", value_name = "NAME")]
    presets: Vec<String>,
    /// Allow what the rule describes
    #[arg(short = 'a', long = "allow", value_name = "RULE")]
    allow: Vec<String>,
    /// Certificates that origins would be verified with too (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    upstream_ca: Vec<PathBuf>,
    #[command(flatten)]
    keys: KeyOptions,
    /// Where the record of all runs would go: a file, or a directory of rotated ones
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    audit: Option<PathBuf>,
}

/// How something is.
enum State {
    Fine(String),
    /// And what to do.
    Warning(String, &'static str),
    Wrong(String, &'static str),
}

use State::{Fine, Warning, Wrong};

/// Looks at everything, and says it.
pub(crate) fn check(options: &GatewayCheck) -> ExitCode {
    let mut lines = vec![("machine", machine()), ("policy", policy(options))];
    lines.extend(
        options
            .listen
            .as_deref()
            .map(|path| ("socket", socket(path))),
    );
    let authority = options.keys.ca.as_deref();
    lines.extend(authority.map(|path| ("ca", authority_of(path, SystemTime::now()))));
    lines.extend(
        options
            .upstream_ca
            .iter()
            .map(|path| ("upstream-ca", certificates(path))),
    );
    lines.extend(
        options
            .audit
            .as_deref()
            .map(|path| ("record", records(path))),
    );
    lines.push(("limits", limits()));
    let mut status = ExitCode::SUCCESS;
    for (name, state) in lines {
        let (mark, text, advice) = match state {
            Fine(text) => ("ok  ", text, None),
            Warning(text, advice) => ("warn", text, Some(advice)),
            Wrong(text, advice) => {
                status = ExitCode::from(FAILED);
                ("fail", text, Some(advice))
            }
        };
        let text = text.lines().next().unwrap_or_default();
        let advice = advice
            .map(|advice| format!("; {advice}"))
            .unwrap_or_default();
        report::line(&format!("{mark}  {name:<12} {text}{advice}"));
    }
    status
}

/// What the kernel has.
fn machine() -> State {
    let missing = findings()
        .into_iter()
        .find(|it| matches!(it.state, ProbeState::Missing));
    match missing {
        None => Fine("the kernel has what is needed".to_owned()),
        Some(it) => Wrong(
            format!("{}: {}", it.name, it.detail),
            "`outgate check` says more",
        ),
    }
}

fn sources(options: &GatewayCheck) -> Result<Vec<Source>, RunError> {
    let mut collector = SourceCollector::new(surroundings());
    for name in &options.presets {
        collector.preset(name)?;
    }
    for path in &options.policies {
        collector.file(path)?;
    }
    for rule in &options.allow {
        collector.text(SourceKind::Allow, "gateway -a", rule);
    }
    options.keys.collect(&mut collector);
    Ok(collector.finish())
}

fn policy(options: &GatewayCheck) -> State {
    const ADVICE: &str = "`outgate policy check FILE` says more";
    let sources = match sources(options) {
        Ok(sources) => sources,
        Err(fault) => return Wrong(report::chain(&fault), ADVICE),
    };
    let current = std::env::current_dir().unwrap_or_default();
    let context = Context {
        home: std::env::var("HOME").unwrap_or_default(),
        working_directory: current.to_string_lossy().into_owned(),
        ..Context::default()
    };
    match compile(&sources, &context) {
        Err(faults) => Wrong(faults.to_string(), ADVICE),
        Ok(policy) if !policy.has_network_rules() => {
            Warning("it allows nothing".to_owned(), "give it -a, -P or -p")
        }
        Ok(policy) => Fine(format!("{} rules", policy.rules().count())),
    }
}

fn socket(path: &Path) -> State {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match listener::look(&path) {
        Ok(()) => Fine(format!("`{}` can be made", path.display())),
        Err(error @ listener::ListenError::Live { .. }) => Warning(
            report::chain(&error),
            "end that gateway first, or name another socket",
        ),
        Err(error) => Wrong(
            report::chain(&error),
            "name a directory that only you or root may write, such as one below /run",
        ),
    }
}

/// The authority, as the program says that knows certificates.
fn authority_of(directory: &Path, now: SystemTime) -> State {
    const ADVICE: &str = "make one with `outgate ca create`";
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let asked = Command::new(gateway_program())
        .args(["authority", env!("CARGO_PKG_VERSION"), "show"])
        .arg(&directory)
        .arg("json")
        .output();
    let said = match asked {
        Ok(said) => said,
        Err(error) => {
            let fault = format!("`{}`: {error}", gateway_program().display());
            return Wrong(fault, "install the programs side by side");
        }
    };
    let Ok(about) = serde_json::from_slice::<Value>(&said.stdout) else {
        let fault = String::from_utf8_lossy(&said.stderr);
        return Wrong(fault.trim_start_matches("outgate: ").to_owned(), ADVICE);
    };
    let text = |name: &str| about.get(name).and_then(Value::as_str).unwrap_or_default();
    if about.get("usable").and_then(Value::as_bool) != Some(true) {
        return Wrong(text("fault").to_owned(), ADVICE);
    }
    let until = text("until");
    let end = outgate_record::milliseconds(&format!("{until}T00:00:00.000Z"));
    let end = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(end.unwrap_or(0)));
    let days = end
        .unwrap_or(SystemTime::UNIX_EPOCH)
        .duration_since(now)
        .map_or(0, |left| left.as_secs() / 86_400);
    let said = format!(
        "`{}` vouches until {until}, {days} days",
        directory.display()
    );
    if days < ENDS_DAYS_MIN {
        return Warning(said, "make a new one in time, and have clients trust both");
    }
    Fine(said)
}

fn certificates(path: &Path) -> State {
    const ADVICE: &str = "name a file with certificates in PEM";
    let shown = path.display();
    match std::fs::read(path) {
        Err(error) => Wrong(format!("`{shown}`: {error}"), ADVICE),
        Ok(text) => {
            let mark = b"-----BEGIN CERTIFICATE-----";
            match text.windows(mark.len()).filter(|own| own == mark).count() {
                0 => Wrong(format!("`{shown}` holds no certificate"), ADVICE),
                count => Fine(format!("`{shown}` holds {count} certificates")),
            }
        }
    }
}

/// Whether the record can be written, by nobody else, and for how long.
fn records(place: &Path) -> State {
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let about = place.metadata().ok();
    let directory = match (&about, place.parent()) {
        (Some(about), _) if about.is_dir() => place.as_path(),
        (_, Some(parent)) => parent,
        (_, None) => place.as_path(),
    };
    let finding = record(Some(directory));
    if !matches!(finding.state, ProbeState::Present) {
        let fault = finding
            .detail
            .split(": nothing leaves")
            .next()
            .unwrap_or_default();
        return Wrong(fault.to_owned(), "name another place with --audit");
    }
    let there = directory
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(directory);
    let free = match free_bytes(there) {
        Ok(free) => free,
        Err(error) => {
            let fault = format!("`{}`: {error}", there.display());
            return Wrong(fault, "name another place with --audit");
        }
    };
    let said = format!("`{}`: {} MiB free", place.display(), free >> 20);
    if free < ROOM_BYTES_MIN {
        return Wrong(said, "make room: what cannot be recorded does not happen");
    }
    let mode = about
        .as_ref()
        .or(there.metadata().ok().as_ref())
        .map_or(0, MetadataExt::mode);
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let what = format!("others may write `{}`", place.display());
        return Warning(what, "take that right from them: chmod go-w");
    }
    if free < FREE_BYTES_MIN {
        return Warning(
            said,
            "make room, or keep less: --audit-rotate, --audit-keep-days",
        );
    }
    Fine(said)
}

/// How many it could serve.
fn limits() -> State {
    let hard = open_files_max();
    if hard < OPEN_FILES_MIN {
        return Warning(
            format!("{hard} open files"),
            "raise the hard limit: LimitNOFILE= of the service, or ulimit -Hn",
        );
    }
    Fine(format!("{hard} open files"))
}
