//! `outgate gateway`: options become a shared gateway in the foreground.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_launcher::GatewaySetting;
use outgate_launcher::listener::Audience;
use outgate_launcher::run::RunError;
use outgate_launcher::share::{ShareError, ShareOptions, SocketPlace, share};
use outgate_launcher::sources::SourceCollector;
use outgate_policy::{Source, SourceKind};

use crate::accounts;
use crate::args::Gateway;
use crate::policy_options::surroundings;
use crate::report;
use crate::run::absolute;
use crate::upstream;

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
    let options = ShareOptions {
        place,
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

/// A pipe was read to its end: what it gives now is no policy.
pub(crate) fn readable_again(policies: &[PathBuf]) -> Result<(), String> {
    let other = |path: &&PathBuf| path.metadata().is_ok_and(|found| !found.is_file());
    match policies.iter().find(other) {
        None => Ok(()),
        Some(path) => Err(format!(
            "`{}` is no regular file, and cannot be read again",
            path.display()
        )),
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
    Ok(collector.finish())
}

fn place(arguments: &Gateway, directory: &Path) -> Result<SocketPlace, String> {
    let audience = match (&arguments.group, arguments.everybody) {
        (Some(group), _) => Audience::Group(accounts::group(group)?),
        (None, true) => Audience::Everybody,
        (None, false) => Audience::Owner,
    };
    if let Some(path) = &arguments.listen {
        return Ok(SocketPlace::Path(directory.join(path), audience));
    }
    let variable = |name| std::env::var(name).ok();
    let ours = variable("LISTEN_PID").as_deref() == Some(&std::process::id().to_string());
    if !ours || variable("LISTEN_FDS").as_deref() != Some("1") {
        return Err("`--listen SOCKET` is missing, and no socket was inherited".to_owned());
    }
    if audience != Audience::Owner {
        return Err("whoever made the inherited socket says who may connect".to_owned());
    }
    let socket = outgate_launcher::listener::take_inherited(LISTEN_FDS_START)?;
    Ok(SocketPlace::Inherited(socket))
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
