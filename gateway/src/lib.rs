//! The gateway: decides, resolves, forwards and records what leaves a sandbox.
//!
//! One control connection per sandbox brings its policy, questions and
//! connections ([`Gateway::serve`]). Every question and every request ends in
//! the policy's one decision function; what it permits is dialled, relayed
//! and recorded here, and nowhere else. The process confines itself
//! ([`confine`]) before it serves. It knows nothing of how the command is
//! confined.

#![forbid(unsafe_code)]

mod accept;
mod admit;
mod alarm;
mod ask;
mod audit;
mod body;
mod broker;
mod budget;
mod caller;
mod carrier;
mod client_hello;
pub mod config;
mod confine;
mod content;
mod control;
mod decide;
mod destination;
mod detect;
mod duplex;
mod either;
mod exchange;
mod fields;
mod filter;
mod filters;
mod flow;
mod followed;
mod forward;
mod framing;
mod heads;
mod hosts;
mod http1;
mod http2;
mod in_force;
mod intercept;
mod interim;
mod known;
mod limits;
mod linger;
mod lock;
mod malformed;
mod memory;
mod names;
mod origin;
mod overrides;
mod own_origin;
mod proxy;
mod random;
mod recorder;
mod refusal;
mod replay;
mod replies;
mod request_target;
mod resolve;
mod respond;
mod rules;
mod scan;
mod seek;
mod serve;
mod session;
mod share;
mod stub;
mod target;
mod tasks;
mod tenant;
mod text;
mod tls;
mod trial;
mod tunnel;
mod unix;
mod uri_authority;
mod websocket;

pub use audit::AuditTarget;
pub use broker::{SecretSourceError, Vault, VaultError};
pub use confine::{ConfineError, ServedRuns, confine, end_with_parent};
pub use control::ControlError;
#[cfg(any(test, fuzzing))]
pub use framing::fuzz;
pub use outgate_ca as authority;
pub use serve::Gateway;
pub use trial::trial;

use broker::Keeper;
use known::CredentialInventory;

use std::io;
use std::os::fd::{OwnedFd, RawFd};

/// Why a private gateway could not serve its launcher.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The inherited descriptor is not a socket of a launcher.
    #[error("descriptor {number} cannot be taken over")]
    Handoff {
        /// Its number.
        number: RawFd,
        /// Why.
        source: io::Error,
    },
    /// The place for the records cannot be used.
    #[error("the audit record cannot be kept at `{path}`; `--audit FILE` names another place")]
    Audit {
        /// The place.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file that the operator trusts cannot be used.
    #[error("--upstream-ca {path}: {fault}")]
    UpstreamCa {
        /// Its path.
        path: String,
        /// What is wrong with it.
        fault: String,
    },
    /// The user's own authority cannot be used.
    #[error("the authority (--ca): {0}")]
    Authority(#[from] outgate_ca::CaError),
    /// A certificate to present cannot be used.
    #[error("--client-cert: {0}")]
    Identity(String),
    /// The proxy that the operator names cannot be used.
    #[error("the upstream proxy in {variable}: {fault}", variable = outgate_policy::UPSTREAM_PROXY)]
    UpstreamProxy {
        /// What is wrong with it.
        fault: String,
    },
    /// A secret cannot be read.
    #[error(transparent)]
    Secret(#[from] VaultError),
    /// The user's own secrets cannot be looked up.
    #[error("{0}")]
    Known(String),
    /// What looks at secrets again does not run.
    #[error("the keeper of secrets")]
    Keeper(#[source] io::Error),
    /// The process could not confine itself.
    #[error("confining the gateway")]
    Confine(#[from] ConfineError),
    /// The event loop could not start.
    #[error("event loop")]
    Runtime(#[source] io::Error),
    /// Nothing was served, and the launcher was told why, which tells the user.
    #[error("the launcher was told why")]
    Reported,
    /// The session ended in disorder.
    #[error("session ended")]
    Control(#[from] ControlError),
}

/// Takes over an inherited descriptor: owned from here on, close-on-exec.
///
/// # Errors
/// The number names no open descriptor.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    control::adopt(number)
}

/// Serves one launcher on an inherited socket until its sandbox is empty:
/// opens the records, confines the process, then serves.
///
/// # Errors
/// See [`ServeError`].
pub fn serve_private(config: &config::PrivateCommand) -> Result<(), ServeError> {
    let handoff = |source| ServeError::Handoff {
        number: config.handoff,
        source,
    };
    end_with_parent()?;
    let socket = adopt(config.handoff).map_err(handoff)?;
    let prepared = control::settings(&socket).map_err(ServeError::from);
    match prepared.and_then(|settings| private(&settings)) {
        Ok((runtime, gateway)) => {
            let served = runtime.block_on(gateway.serve(socket));
            // What is done aside is done for nobody any more.
            runtime.shutdown_background();
            Ok(served?)
        }
        Err(error) => {
            let is_reported = control::refuse(&socket, &error);
            Err(if is_reported {
                ServeError::Reported
            } else {
                error
            })
        }
    }
}

/// The same with everything that only a private gateway reads.
fn private(
    settings: &config::GatewaySettings,
) -> Result<(tokio::runtime::Runtime, Gateway), ServeError> {
    let secrets = &settings.secrets;
    let vault = Vault::read(secrets)?;
    let inventory =
        CredentialInventory::gather(&settings.known, secrets).map_err(ServeError::Known)?;
    let keeper = Keeper::start(secrets).map_err(ServeError::Keeper)?;
    let (runtime, gateway) = prepare(settings, ServedRuns::One)?;
    Ok((runtime, gateway.with(vault, keeper).knowing(inventory)))
}

/// Keeps secrets for the gateway that started this process: looks again at where
/// they come from, until the gateway is gone. Is not confined, since it opens
/// the user's files and runs the user's commands; it hears nobody but the gateway.
///
/// # Errors
/// See [`ServeError`].
pub fn keep_secrets(config: &config::KeepCommand) -> Result<(), ServeError> {
    end_with_parent()?;
    confine::hide()?;
    let socket = adopt(config.handoff).map_err(|source| ServeError::Handoff {
        number: config.handoff,
        source,
    })?;
    let settings = control::settings(&socket)?;
    broker::keep(&socket, &settings.secrets).map_err(ServeError::Keeper)
}

/// Serves every launcher that connects to an inherited listener, below the
/// policy that comes over an inherited socket, until that says so: confines
/// the process before anybody is heard.
///
/// # Errors
/// See [`ServeError`].
pub fn serve_shared(config: &config::ShareCommand) -> Result<(), ServeError> {
    let take = |number| adopt(number).map_err(|source| ServeError::Handoff { number, source });
    end_with_parent()?;
    let control = take(config.handoff)?;
    let listeners = share::Listeners {
        runs: config.listeners.runs.map(take).transpose()?,
        proxy: config.listeners.proxy.map(take).transpose()?,
        admin: config.listeners.admin.map(take).transpose()?,
        page: config.listeners.page.map(take).transpose()?,
    };
    let process = share::OwnProcess::open();
    let settings = control::settings(&control).map_err(ServeError::from);
    let prepared = settings.and_then(|settings| Ok((shared(&settings)?, settings.limits)));
    match prepared {
        Ok(((runtime, gateway), limits)) => {
            let front = share::ShareFront {
                control,
                listeners,
                process,
                limits,
            };
            Ok(runtime.block_on(share::share(&gateway, front))?)
        }
        Err(error) => {
            control::refuse(&control, &error);
            Err(error)
        }
    }
}

/// A gateway of many runs: what is of one alone is none of its settings.
fn shared(
    settings: &config::GatewaySettings,
) -> Result<(tokio::runtime::Runtime, Gateway), ServeError> {
    if settings.are_of_one_run() {
        return Err(ServeError::Control(ControlError::Order {
            what: "settings of one run for a gateway of many",
        }));
    }
    let inventory = CredentialInventory::gather(&settings.known, &[]).map_err(ServeError::Known)?;
    let (runtime, gateway) = prepare(settings, ServedRuns::Many)?;
    Ok((runtime, gateway.knowing(inventory)))
}

/// Judges what policies say about the detectors of the scan.
///
/// # Errors
/// A sentence with its place: a policy has a fault, names a detector that does
/// not exist, or describes one that cannot be.
pub fn judge_detectors(sources: &[outgate_policy::Source]) -> Result<(), String> {
    // Where paths begin matters to no detector.
    let directory = || "/".to_owned();
    let context = outgate_policy::Context {
        home: directory(),
        working_directory: directory(),
        private_directory: directory(),
        ..outgate_policy::Context::default()
    };
    let policy = outgate_policy::compile(sources, &context);
    let policy = policy.map_err(|errors| errors.to_string())?;
    scan::judge(&rules::SessionPolicies::private(policy))
}

/// Everything that must be there before the process is confined, and the
/// confinement itself.
fn prepare(
    settings: &config::GatewaySettings,
    serves: ServedRuns,
) -> Result<(tokio::runtime::Runtime, Gateway), ServeError> {
    let (target, directory) = settings.records.open()?;
    let gateway = Gateway::new(target, &settings.tls)?;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    if serves == ServedRuns::Many {
        // What one account keeps ready must not hide what others just sent.
        builder.event_interval(limits::SHARED_EVENT_INTERVAL);
        builder.thread_keep_alive(limits::COMPILERS_IDLE);
    }
    scan::count_processors();
    let runtime = builder
        .enable_io()
        .enable_time()
        .on_thread_unpark(alarm::set)
        .on_thread_park(alarm::rest)
        .max_blocking_threads(limits::COMPILERS_MAX)
        .build()
        .map_err(ServeError::Runtime)?;
    alarm::begin().map_err(ServeError::Runtime)?;
    confine(directory.as_ref(), serves)?;
    scan::start_first().map_err(ServeError::Runtime)?;
    if serves == ServedRuns::Many {
        // One stays: to have none and to get none would end the process.
        drop(runtime.spawn_blocking(|| {}));
    }
    Ok((runtime, gateway))
}

/// An error and its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
