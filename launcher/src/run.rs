//! One run from options to exit status: collect the policy, confine and start
//! the command, supervise it, clean up.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use outgate_handoff::{BeginFrame, GatewaySetting};
use outgate_policy::{Context, Note, Policy, Precaution, Secret, compile, printable};
use outgate_sys::spawn::SignalMask;

pub use crate::options::{FileReport, RunOptions, Sealing, Summary};
pub use crate::run_error::{Files, RunError};

use crate::denials::DenialsFile;
use crate::enforced::refuse_unenforced;
use crate::environment::Variables;
use crate::gateway_link::{GatewayLink, GatewayPlace, Opening};
use crate::opened::{OpenedList, opened};
use crate::placeholders::{self, Planted};
use crate::plan::{self, Command};
use crate::private::PrivateDirectory;
use crate::reachable::missed;
use crate::record::{self, Grants, unacceptable, unwritable};
use crate::reload::Reread;
use crate::scarcity::Score;
use crate::secrets::GuardedSecrets;
use crate::sources::check_total;
use crate::supervisor::{ChangeSetting, Farewell, Prepared, RunOutcome, Substitutes};
use crate::text::{cut, shell_word};
use crate::trust::Trust;
use crate::voice::Voice;
use crate::writable::{PlaceLooks, is_replaceable};

mod arguments;
mod begin;
mod given;
mod left;
mod names;
mod outside;
mod trusted;

use arguments::started;
use begin::{ReadyRun, signals, status, thread_error};
use given::{git, variables};
use names::Names;
use outside::left_outside;
use trusted::{bundles, is_readable, means, stores, trusts};

/// How long a shared gateway may take to agree to a run, in milliseconds.
const AGREE_MS: u16 = 10_000;

/// How long a process of the launcher's own may take to end.
const HELPERS_TIME: Duration = Duration::from_millis(200);

/// Runs a command to its end.
///
/// # Errors
/// [`RunError`] when it did not start; nothing is left running then.
pub fn run(options: &RunOptions, voice: &mut dyn Voice) -> Result<RunOutcome, RunError> {
    crate::machine::check(voice)?;
    crate::standard::sanitise()?;
    check_total(&options.sources)?;
    let (signals, mask) = signals().map_err(|source| RunError::Machine {
        what: "signals",
        source,
    })?;
    // The thread gets ready while everything else does.
    let ended = std::thread::scope(|scope| {
        let prepared = Prepared::start(scope).map_err(thread_error)?;
        confined(options, (signals, mask), prepared, voice)
    });
    outgate_sys::process::end_helpers(HELPERS_TIME);
    let (outcome, words) = ended?;
    for line in words {
        voice.say(&line);
    }
    Ok(outcome)
}

/// Makes everything ready, and runs the command. `mask` is what the signals were before.
/// Returns with the outcome lines to say once it is over.
fn confined<'scope>(
    options: &RunOptions,
    (signals, mask): (SignalFd, SignalMask),
    prepared: Prepared<'scope>,
    voice: &'scope mut dyn Voice,
) -> Result<(RunOutcome, Vec<String>), RunError> {
    let machine = |what| move |source| RunError::Machine { what, source };
    let directory = std::env::current_dir()
        .and_then(nameable)
        .map_err(machine("the working directory"))?;
    let private = private_directory(&directory)?;
    let context = context(&options.variables, &directory, private.path());
    let (policy, secrets) = policy(options, &context, voice)?;
    let score = Score::open();
    // Hidden from tracers of the same user before there is anything to find.
    drop(outgate_sys::process::hide());
    drop(outgate_sys::process::adopt_orphans());
    let names = Names::here();
    let (mut variables, java) = variables(options, &policy, private.path(), voice);
    git(options, &policy, (private.held(), &mut variables), voice)
        .map_err(machine("git's settings"))?;
    let trust = trusts(&policy, options, private.path())
        .then(|| Trust::prepare(private.held(), java, &mut variables));
    let means = means(trust.as_ref(), options);
    let bundles = trust.map(|trust| bundles(trust, means, &prepared));
    let denials = is_readable(&policy, private.path()).then(|| DenialsFile::below(private.held()));
    variables.extend(denials.as_ref().map(DenialsFile::variable));
    let command = Command {
        variables,
        arguments: started(&policy, &options.command).0,
        mask,
        directory: context.working_directory.clone(),
        private_directory: private.path().to_owned(),
        private_identity: private.identity(),
        opens: names.opens(bundles.as_ref().map(|_| means), options.files),
    };
    let mut opening = opening(options, (&policy, &secrets), context.clone())?;
    let planted = planted(options, &policy, &mut opening).map_err(machine("canaries"))?;
    let status = status(&opening, options, &policy);
    let changes = changes(options, &opening, context.clone());
    let (mut plan, reach) = plan::build(&policy, &command)?;
    secrets.check(&reach.readable, &reach.writable)?;
    let looks = PlaceLooks::default();
    let grants = Grants::new(&policy, &reach.writable, &looks);
    unwritable(grants, options, &context)?;
    let mut link = link((grants, options), opening, voice)?;
    let unready = |reason| RunError::Unready { reason };
    placeholders::settle(&policy, &mut link, &mut plan, voice).map_err(unready)?;
    if secrets.are_read() || is_recorded_by_name(options, &policy) {
        agreed(&mut link).map_err(unready)?;
    }
    if let Some(planted) = planted {
        planted.plant(private.held(), &mut plan).map_err(unready)?;
    }
    // While the bundles are made.
    let leaving = left::watch(options, (grants, &reach), &command, &status.name);
    let (stores, late) = stores(bundles, means, &mut link, voice)?;
    let (opened, list) = opened(options.files);
    let ready = ReadyRun {
        options,
        policy: &policy,
        link,
        reach,
        substitutes: Substitutes {
            hosts: names.hosts(),
            stores,
            opened,
        },
        late,
        denials,
        leaving,
        changes,
        private: &private,
        score,
    };
    let outcome = ready.serve(plan, (signals, status), prepared, voice)?;
    let words = about_files(list, (options, &policy), outcome, &directory);
    // The tree is gone, so the directory goes, if the guardian did not remove it.
    Ok((outcome, private.end().into_iter().chain(words).collect()))
}

/// What is wrong with secrets, or with the record, is said before anything runs.
fn agreed(link: &mut GatewayLink) -> Result<(), String> {
    link.start();
    link.agreed(AGREE_MS)
}

/// What changes the policy of a run while it goes on.
fn changes(options: &RunOptions, opening: &Opening, context: Context) -> ChangeSetting {
    ChangeSetting {
        base: opening.sources.clone(),
        begin: opening.begin.clone(),
        sealing: options.sealing,
        reread: Reread::new(options.reader.clone(), options.sources.clone(), context),
    }
}

/// Which files the command opened in vain, where that was noted, or what it may have missed.
fn about_files(
    list: Option<OpenedList>,
    (options, policy): (&RunOptions, &Policy),
    outcome: RunOutcome,
    directory: &Path,
) -> Vec<String> {
    match list {
        Some(list) => list.words(policy, options.home()),
        None => after_failure(options, policy, outcome, directory),
    }
}

/// A word after a run that failed without any about denials, if the policy keeps a file
/// from the command that it plausibly looked for.
fn after_failure(
    options: &RunOptions,
    policy: &Policy,
    outcome: RunOutcome,
    directory: &Path,
) -> Vec<String> {
    let is_silent = outcome.status != 0 && outcome.farewell == Farewell::Nothing;
    // Ended by a signal: somebody wanted that.
    if !is_silent || outcome.status > 128 || options.summary == Summary::Omit {
        return Vec::new();
    }
    let home = options.home().map_or(Path::new("/"), Path::new);
    let Some(path) = missed(policy, &options.command, (home, directory)) else {
        return Vec::new();
    };
    let path = printable(&path.to_string_lossy());
    let words = options.about_files.iter().chain([&path]);
    let words: Vec<String> = words.map(|word| shell_word(&printable(word))).collect();
    let words = words.join(" ");
    vec![format!(
        "outgate: the command may not read `{path}`, if that is what it missed: outgate why {words}"
    )]
}

/// A directory of the run's own, below the one for temporary files.
fn private_directory(directory: &Path) -> Result<PrivateDirectory, RunError> {
    let temporary = directory.join(std::env::temp_dir());
    nameable(temporary.clone())
        .and_then(|temporary| PrivateDirectory::create(&temporary))
        .map_err(|source| RunError::Private {
            parent: temporary.display().to_string(),
            source,
        })
}

/// The canaries of a run, of which its own gateway is told.
fn planted(
    options: &RunOptions,
    policy: &Policy,
    opening: &mut Opening,
) -> std::io::Result<Option<Planted>> {
    let GatewayPlace::Private { settings, .. } = &mut opening.whose else {
        return Ok(None);
    };
    let planted = placeholders::planted(policy, options.planter)?;
    settings.extend(planted.as_ref().map(Planted::setting));
    Ok(planted)
}

/// Whether somebody named the record that requests of this run need.
fn is_recorded_by_name(options: &RunOptions, policy: &Policy) -> bool {
    let is_named = options.audit.is_some() || policy.audit_file().is_some();
    is_named && policy.reaches_out()
}

/// The policy of a run, and the keys that it names.
fn policy(
    options: &RunOptions,
    context: &Context,
    voice: &mut dyn Voice,
) -> Result<(Policy, GuardedSecrets), RunError> {
    let policy = compile(&options.sources, context)?;
    refuse_unenforced(&policy).map_err(|key| RunError::NotEnforced { key })?;
    crate::home::check(&policy, context)?;
    for followed in crate::made::settle(policy.filesystem(), context)? {
        voice.say(&followed);
    }
    let secrets = GuardedSecrets::of(&policy)?
        .hiding(options.authority.as_deref())
        .closing(options.accepted.as_deref(), &policy);
    let policy = secrets.hide(policy, &options.sources, context)?;
    for warning in policy.warnings() {
        voice.say(&format!("outgate: warning: {warning}"));
    }
    let (command, besides) = started(&policy, &options.command);
    for note in besides.chain(notes(&policy, &command)) {
        voice.say(&format!("outgate: note: {note}"));
    }
    for note in left_outside(&options.command, &options.variables) {
        voice.say(&format!("outgate: note: {note}"));
    }
    Ok((policy, secrets))
}

/// What of the policy's notes the start of a command calls for.
fn notes<'p>(policy: &'p Policy, command: &[OsString]) -> impl Iterator<Item = &'p str> {
    let holds = |word: &String| {
        let mut arguments = command.iter().map(|argument| argument.to_string_lossy());
        arguments.any(|argument| argument.contains(word.as_str()))
    };
    let called = move |note: &&Note| !note.unless.is_empty() && !note.unless.iter().any(holds);
    policy.notes().iter().filter(called).map(|note| &*note.text)
}

/// The gateway, if the command can alter neither the record nor what its user accepted.
fn link(
    (grants, options): (Grants<'_>, &RunOptions),
    opening: Opening,
    voice: &mut dyn Voice,
) -> Result<GatewayLink, RunError> {
    let link = linked(grants, opening, voice)?;
    unacceptable(grants, options.accepted.as_deref())?;
    Ok(link)
}

/// The gateway: a shared one is there and has agreed, or an own one that is
/// started when it is needed.
fn linked(
    grants: Grants<'_>,
    mut opening: Opening,
    voice: &mut dyn Voice,
) -> Result<GatewayLink, RunError> {
    match &mut opening.whose {
        GatewayPlace::Private {
            program, settings, ..
        } => {
            record::settle(grants, settings)?;
            let replaceable = [program.clone(), report_program()]
                .iter()
                .find_map(|program| replaceable(grants, program));
            let mut link = GatewayLink::Idle(Box::new(opening));
            if let Some(warning) = replaceable {
                // A command that can replace the gateway's program finds it running.
                link.start();
                voice.say(&warning);
            }
            Ok(link)
        }
        GatewayPlace::Shared(door) => {
            let socket = door.path().display().to_string();
            if let Some(grant) = grants.writable(door.path()) {
                return Err(RunError::Socket {
                    socket,
                    grant: grant.to_owned(),
                });
            }
            let mut link = GatewayLink::Idle(Box::new(opening));
            link.start();
            match link.agreed(AGREE_MS) {
                Ok(()) => Ok(link),
                Err(reason) => Err(RunError::Gateway { socket, reason }),
            }
        }
    }
}

/// A path that a policy can name: in any other encoding it would be taken for
/// another, and what it should grant would be missing without a word.
fn nameable(path: PathBuf) -> std::io::Result<PathBuf> {
    if path.to_str().is_some() {
        return Ok(path);
    }
    let what = format!(
        "`{}` is not UTF-8, which no policy can name",
        path.display()
    );
    Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what))
}

/// The directories that paths of a policy begin in.
pub fn context(variables: &Variables, directory: &Path, private: &Path) -> Context {
    let home = variables.get(std::ffi::OsStr::new("HOME"));
    Context {
        home: home
            .map(|home| home.to_string_lossy().into_owned())
            .filter(|home| home.starts_with('/'))
            .unwrap_or_default(),
        working_directory: directory.to_string_lossy().into_owned(),
        private_directory: private.to_string_lossy().into_owned(),
        variables: variables.iter().filter_map(place_named).collect(),
    }
}

/// A variable that names an absolute path.
fn place_named((name, value): (&OsString, &OsString)) -> Option<(String, String)> {
    let value = value.to_str().filter(|value| value.starts_with('/'))?;
    Some((name.to_str()?.to_owned(), value.to_owned()))
}

fn opening(
    options: &RunOptions,
    (policy, secrets): (&Policy, &GuardedSecrets),
    context: Context,
) -> Result<Opening, RunError> {
    let program = options.command.first();
    let base = program
        .and_then(|program| Path::new(program).file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = options
        .name
        .clone()
        .unwrap_or_else(|| format!("{base}-{}", std::process::id()));
    let whose = match &options.gateway {
        None => GatewayPlace::Private {
            program: gateway_program(),
            settings: gateway_settings(options, (policy, secrets), &context),
            variables: upstream_variables(options.upstream_proxy.clone()),
        },
        Some(_) if secrets.are_read() => return Err(RunError::NotOurs),
        Some(door) => {
            let record = options.audit.as_deref().map(Path::to_string_lossy);
            let record = record.or(policy.audit_file().map(Into::into));
            if let Some(record) = record {
                return Err(RunError::Recorded {
                    record: record.into_owned(),
                });
            }
            GatewayPlace::Shared(door.clone())
        }
    };
    Ok(Opening {
        whose,
        sandbox: cut(name, outgate_handoff::NAME_BYTES_MAX),
        sources: options.sources.clone(),
        ends: Vec::new(),
        begin: BeginFrame {
            home: context.home,
            working_directory: context.working_directory,
            private_directory: context.private_directory,
            // Arguments may hold secrets: only the program is recorded.
            command: cut(
                program
                    .map(|program| program.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                outgate_handoff::LINE_BYTES_MAX,
            ),
            ask: options.ask,
        },
    })
}

/// What the environment of a gateway says of its upstream proxy, where the
/// command line does: other users may read arguments, but not this.
pub(crate) fn upstream_variables(proxy: Option<String>) -> Vec<(String, String)> {
    let name = outgate_policy::UPSTREAM_PROXY.to_owned();
    proxy
        .into_iter()
        .map(|proxy| (name.clone(), proxy))
        .collect()
}

/// What the gateway is told beside the policy.
fn gateway_settings(
    options: &RunOptions,
    (policy, secrets): (&Policy, &GuardedSecrets),
    context: &Context,
) -> Vec<GatewaySetting> {
    let mut settings = secrets.settings().to_vec();
    let trusted = options.upstream_ca.iter().cloned();
    settings.extend(trusted.map(GatewaySetting::UpstreamCa));
    let named = policy.secrets().iter().map(Secret::named);
    settings.extend(named.map(GatewaySetting::Secret));
    if placeholders::scans(policy) && policy.settings().known == Precaution::On {
        settings.push(GatewaySetting::OwnSecrets);
    }
    settings.extend(record::audit_setting(options, policy, context));
    settings
}

/// What to say of a program of ours that the command may replace; nothing where it may not.
fn replaceable(grants: Grants<'_>, program: &Path) -> Option<String> {
    let grant = grants
        .writable(program)
        .filter(|_| is_replaceable(program))?;
    Some(format!(
        "outgate: warning: the command may replace `{}` (by the grant `{grant}`): what it leaves \
         there runs unconfined the next time",
        program.display()
    ))
}

/// The gateway's program: beside our own.
pub fn gateway_program() -> PathBuf {
    beside_own("outgate-gateway")
}

/// The program that reads records and scans files: beside our own.
pub fn report_program() -> PathBuf {
    beside_own("outgate-report")
}

fn beside_own(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or_else(|| Path::new("/")).join(name)
}
