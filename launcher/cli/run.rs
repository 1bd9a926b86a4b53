//! `outgate run`: options become a run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use outgate_dlp::Plant;
use outgate_dlp::inventory::credential;
use outgate_launcher::AskTimes;
use outgate_launcher::door::Door;
use outgate_launcher::environment::Variables;
use outgate_launcher::leftovers::LeftoversMode;
use outgate_launcher::placeholders::Planted;
use outgate_launcher::reload::Reader;
use outgate_launcher::run::{FileReport, RunOptions, Sealing, Summary, run as start};
use outgate_launcher::sources::SourceCollector;
use outgate_launcher::supervisor::Farewell;
use outgate_launcher::trust::TrustMeans;
use outgate_launcher::withheld::Credentials;
use outgate_policy::{LEARNING, PolicyOption, SourceKind, preset_for};

use crate::accounts;
use crate::ca;
use crate::given_files::{absolute, readable_again};
use crate::lock_file::{self, LockBefore};
use crate::policy_options::PolicyOptions;
use crate::report;
use crate::run_options::{ASK, Leave, MonitorReach, Run, TrustWay};
use crate::trusted;
use crate::upstream;

/// What `--clean-env` inherits.
const CLEAN: [&str; 4] = ["PATH", "HOME", "TERM", "LANG"];

/// The status of a locked run that was denied something, where its command's says nothing, and
/// of one whose lock is another at its end.
const BEYOND: u8 = 3;

/// How a run is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// Rules are enforced.
    Enforced,
    /// Everything public is let through, and learnt from.
    Learning,
}

/// Runs the command and ends with its status.
pub(crate) fn run(arguments: Run) -> ExitCode {
    match launched(arguments, RunMode::Enforced) {
        Ok(status) => ExitCode::from(status),
        Err(failed) => failed,
    }
}

/// Runs the command; its status, or that of outgate where it did not run.
pub(crate) fn launched(mut arguments: Run, mode: RunMode) -> Result<u8, ExitCode> {
    take_preset(&mut arguments);
    let counters = arguments.counters;
    let locked = arguments.locked.as_deref().map(LockBefore::note);
    let options = options(arguments, mode)?;
    match start(&options, &mut report::Terminal::default()) {
        Ok(outcome) => {
            if counters {
                report::counters(outcome.counters);
            }
            Ok(match locked {
                Some(lock) => held(&lock, outcome.farewell, outcome.status),
                None => outcome.status,
            })
        }
        Err(error) => Err(report::failure(&error)),
    }
}

/// What the options of the command line say.
fn options(arguments: Run, mode: RunMode) -> Result<RunOptions, ExitCode> {
    let ask = asked_for(&arguments);
    let summary = summary(&arguments);
    let variables = variables(&arguments);
    let set = set(&arguments).map_err(|message| report::wrong(&message))?;
    let mut collector = match arguments.policy.collect() {
        Ok(collector) => collector,
        Err(error) => return Err(report::failure(&error)),
    };
    let network = if arguments.gateway.is_some() {
        upstream::Network::Elsewhere
    } else {
        upstream::Network::Own
    };
    let gateway = match door(&arguments) {
        Ok(gateway) => gateway,
        Err(message) => return Err(report::wrong(&message)),
    };
    if let Err(message) = upstream::check(arguments.upstream_proxy.as_deref(), network) {
        return Err(report::wrong(&message));
    }
    let upstream_ca = absolute(arguments.upstream_ca);
    let upstream_ca = upstream_ca.map_err(|message| report::wrong(&message))?;
    let rotation = arguments.rotation.rotation(arguments.audit.as_deref());
    let rotation = rotation.map_err(|message| report::wrong(&message))?;
    mark(&mut collector, mode, arguments.monitor);
    let lock = arguments.locked.as_deref();
    if let Err(message) = lock_file::hold(&mut collector, lock, arguments.step.as_deref()) {
        return Err(report::wrong(&message));
    }
    Ok(RunOptions {
        about_files: arguments.policy.about_files(),
        consulted: collector.consulted().to_vec(),
        git: collector.take_git(),
        repository: collector.take_repository(),
        planter: canaries,
        sources: collector.finish(),
        command: arguments.command,
        ask,
        ask_with: arguments.ask_with,
        // A lock that is widened while it holds is none.
        sealing: if arguments.sealed || arguments.locked.is_some() {
            Sealing::Sealed
        } else {
            Sealing::Open
        },
        reader: reader(arguments.policy, (mode, arguments.monitor)),
        credentials: credentials(&variables, arguments.pass),
        variables,
        set,
        name: arguments.name,
        rotation,
        audit: arguments.audit,
        gateway,
        upstream_ca,
        upstream_proxy: arguments.upstream_proxy,
        summary,
        files: if arguments.watch_files {
            FileReport::Say
        } else {
            FileReport::Omit
        },
        leftovers: about_leftovers(arguments.leftovers),
        trust: means(arguments.trust),
        authority: ca::own_authority(),
        accepted: trusted::directory(),
    })
}

/// Whether the end says what was denied.
fn summary(arguments: &Run) -> Summary {
    if arguments.no_summary {
        Summary::Omit
    } else {
        Summary::Say
    }
}

/// How long people are asked about what no rule decides.
fn asked_for(arguments: &Run) -> AskTimes {
    let by_program = arguments.ask_with.as_ref().map(|_| ASK);
    arguments.ask.or(by_program).unwrap_or_default()
}

fn about_leftovers(leave: Leave) -> LeftoversMode {
    match leave {
        Leave::Tell => LeftoversMode::Tell,
        Leave::Fail => LeftoversMode::Fail,
        Leave::Off => LeftoversMode::Off,
    }
}

/// The status of a run that was held to a lock. The next one goes by what is in it now: a
/// command that wrote it has no status of its own.
fn held(lock: &LockBefore, farewell: Farewell, status: u8) -> u8 {
    let status = match farewell {
        Farewell::Said => beyond(&lock.named, status),
        Farewell::Nothing => status,
    };
    if !lock.is_another_now() {
        return status;
    }
    let shown = lock.named.display();
    report::note(&format!(
        "`{shown}` is another than when this run began, and the next locked run goes by it: see \
         `git diff -- {shown}` or `outgate leftovers`, and put it back unless you changed it"
    ));
    BEYOND
}

/// Says that a command asked for more than a lock has; the status then.
fn beyond(lock: &Path, status: u8) -> u8 {
    report::note(&format!(
        "what was denied is not in `{}`: `outgate lock -- COMMAND` writes it anew, and its \
         difference says what changed",
        lock.display()
    ));
    match status {
        0 => BEYOND,
        status => status,
    }
}

fn means(way: TrustWay) -> TrustMeans {
    match way {
        TrustWay::Variables => TrustMeans::Variables,
        TrustWay::Splice => TrustMeans::Splice,
    }
}

/// Marks the policy of a run that learns, or that monitors.
fn mark(collector: &mut SourceCollector, mode: RunMode, monitor: Option<MonitorReach>) {
    if mode == RunMode::Learning {
        collector.text(SourceKind::Learning, "learning", LEARNING);
    }
    if let Some(reach) = monitor {
        let kind = SourceKind::Option(PolicyOption::Monitor);
        collector.text(kind, "--monitor", reach.word());
    }
}

/// What reads the same policy again.
fn reader(options: PolicyOptions, (mode, monitor): (RunMode, Option<MonitorReach>)) -> Reader {
    Reader::new(move || {
        readable_again(&options.policies)?;
        let collected = options.collect();
        let mut collector = collected.map_err(|error| report::chain(&error))?;
        mark(&mut collector, mode, monitor);
        Ok(collector.finish())
    })
}

/// Canaries of a run, under names that neither this environment nor a secret has. The gateway
/// of the run inherits the environment, and makes the same ones.
fn canaries(is_secret: &dyn Fn(&str) -> bool) -> io::Result<Planted> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    let is_taken = |plant: &Plant| match plant {
        Plant::Variable(name) => std::env::var_os(name).is_some() || is_secret(name),
        // The private directory is new.
        Plant::File(_) => false,
    };
    let mut planted = Planted {
        seed,
        variables: Vec::new(),
        files: Vec::new(),
    };
    for canary in outgate_dlp::planted(seed, &is_taken) {
        let content = String::from_utf8_lossy(canary.content.expose()).into_owned();
        match canary.plant {
            Plant::Variable(name) => planted.variables.push((name, content)),
            Plant::File(path) => planted.files.push((path, content)),
        }
    }
    Ok(planted)
}

/// Takes the shipped policy for the program, with `--auto`, or says that there is one.
fn take_preset(arguments: &mut Run) {
    let own = &arguments.policy;
    if !own.presets.is_empty() || !own.policies.is_empty() || own.manifest.is_some() {
        return;
    }
    let program = arguments.command.first().map(Path::new);
    let name = program.and_then(Path::file_name).and_then(OsStr::to_str);
    let Some((name, preset)) = name.and_then(|name| Some((name, preset_for(name)?))) else {
        return;
    };
    if arguments.auto {
        arguments.policy.presets.push(preset.to_owned());
        return;
    }
    report::note(&format!(
        "there is a shipped policy for `{name}`: `-P {preset}` takes it, and so does `--auto`"
    ));
}

/// The shared gateway, by a path that stays the same when links change.
fn door(arguments: &Run) -> Result<Option<Door>, String> {
    let Some(path) = &arguments.gateway else {
        return Ok(None);
    };
    let owner = match &arguments.gateway_user {
        Some(user) => Some(accounts::user(user)?),
        None => None,
    };
    // One that does not exist is a gateway that does not run.
    let found = path.canonicalize().or_else(|_| std::path::absolute(path));
    let found = found.unwrap_or_else(|_| path.clone());
    Ok(Some(Door::new(found, owner)))
}

fn variables(arguments: &Run) -> Variables {
    let mut variables: Variables = std::env::vars_os().collect();
    if arguments.clean {
        variables.retain(|name, _| {
            CLEAN.iter().any(|kept| name == kept) || arguments.pass.contains(name)
        });
    }
    variables
}

/// What holds credentials among them.
fn credentials(variables: &Variables, passed: Vec<OsString>) -> Credentials {
    let found = variables.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        Some((name.to_owned(), credential(name, value)?))
    });
    Credentials {
        hosts: found.collect(),
        passed,
    }
}

/// What `--env` sets.
fn set(arguments: &Run) -> Result<Variables, String> {
    let wrong = |pair: &OsStr| format!("--env takes NAME=VALUE, not `{}`", pair.to_string_lossy());
    arguments
        .set
        .iter()
        .map(|pair| split(pair).ok_or_else(|| wrong(pair)))
        .collect()
}

fn split(pair: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = pair.as_bytes();
    let at = bytes
        .iter()
        .position(|byte| *byte == b'=')
        .filter(|at| *at > 0)?;
    let (name, rest) = bytes.split_at_checked(at)?;
    let (_, value) = rest.split_first()?;
    Some((
        OsStr::from_bytes(name).to_owned(),
        OsStr::from_bytes(value).to_owned(),
    ))
}
