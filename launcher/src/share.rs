//! `outgate gateway`: the front of a shared gateway. Makes the socket, starts
//! the gateway's program beside it, brings it its policy, again when a signal
//! says so, and removes the socket however the gateway ends. Serves nobody.

use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use outgate_handoff::{AskTimes, BeginFrame, GatewaySetting};
use outgate_policy::{Context, Policy, PolicyErrors, Source, compile};

use crate::enforced::refuse_unenforced;
use crate::listener::ListenError;
use crate::opening::{GatewayPlace, Opening};
use crate::proxied::{Look, ProxiedSandboxes, ProxyOptions};
use crate::reread::Read;
use crate::run::{gateway_program, upstream_variables};
use crate::secrets::{GuardedSecrets, SecretError};
use crate::service::ServiceManager;
use crate::source_text::PolicyTextError;
use crate::sources::check_total;
use crate::voice::Voice;

mod doors;
mod front;

pub use doors::{AdminPlace, SocketPlace};
use doors::{Doors, named};
use front::Front;

/// What to share and how.
#[derive(Debug)]
pub struct ShareOptions<'a> {
    /// Where runs find it; nowhere where it is a proxy alone.
    pub place: Option<SocketPlace>,
    /// The explicit proxy, if there is to be one.
    pub proxy: Option<ProxyOptions<'a>>,
    /// Where who runs it asks how it is.
    pub admin: AdminPlace,
    /// Where their browser sees the live page, on a loopback address.
    pub page: Option<std::net::TcpListener>,
    /// Time that what runs has once it is to end.
    pub ending_time: Duration,
    /// Who is told that it serves.
    pub service: ServiceManager,
    /// Policy texts in merge order.
    pub sources: Vec<Source>,
    /// What the gateway is told: whom it trusts beside the system's authorities, and
    /// where records go.
    pub settings: Vec<GatewaySetting>,
    /// The upstream proxy, as the command line names it.
    pub upstream_proxy: Option<String>,
    /// The operator's home directory, for `~` in documents; may be empty.
    pub home: String,
    /// The working directory.
    pub working_directory: String,
}

/// Why it did not start, or how it ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The policy is too long.
    #[error(transparent)]
    Source(#[from] PolicyTextError),
    /// The policy has faults.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The policy asks for what only the one who starts a run can say.
    #[error("the policy sets `{key}`, which only who starts a run can say")]
    NotEnforced {
        /// The key.
        key: &'static str,
    },
    /// A file with a key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// There is no socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The gateway said why it does not serve.
    #[error("the gateway does not start: {message}")]
    Refused {
        /// Its words.
        message: String,
    },
    /// The gateway ended by itself.
    #[error("the gateway ended: {how}")]
    Ended {
        /// With what.
        how: String,
    },
    /// The machine lacks something.
    #[error("{what}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// Why it did not work.
        #[source]
        source: std::io::Error,
    },
}

impl ShareError {
    /// The exit status of outgate for this error.
    pub fn status(&self) -> u8 {
        match self {
            Self::Source(_) | Self::Policy(_) | Self::NotEnforced { .. } | Self::Secret(_) => 2,
            _ => 125,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen(ListenError::Open { .. }) => Some(
                "name a directory that only you or root may write, such as $XDG_RUNTIME_DIR or \
                 one below /run",
            ),
            Self::Listen(ListenError::Live { .. }) => {
                Some("end that gateway first, or name another socket")
            }
            _ => None,
        }
    }
}

/// Shares a gateway until a signal says to end. `read` reads the policy texts
/// again, for a hangup that somebody sent.
///
/// # Errors
/// [`ShareError`]; nothing is left behind then.
pub fn share(
    options: ShareOptions<'_>,
    read: Read<'_>,
    voice: &mut dyn Voice,
) -> Result<(), ShareError> {
    let context = Context {
        home: options.home.clone(),
        working_directory: options.working_directory.clone(),
        private_directory: String::new(),
        ..Context::default()
    };
    check_total(&options.sources)?;
    let policy = compile(&options.sources, &context)?;
    if let Err(key) = refuse_unenforced(&policy) {
        return Err(ShareError::NotEnforced { key });
    }
    for warning in policy.warnings() {
        voice.say(&format!("outgate: warning: {warning}"));
    }
    let secrets = GuardedSecrets::of(&policy)?;
    if !policy.has_network_rules() {
        voice.say("outgate: warning: the gateway's policy allows nothing; give it -a, -P or -p");
    }
    let rules = policy.rules().count();
    let signals = signals().map_err(|source| ShareError::Machine {
        what: "signals",
        source,
    })?;
    drop(outgate_sys::process::hide());
    let begin = BeginFrame {
        home: options.home,
        working_directory: options.working_directory,
        private_directory: String::new(),
        command: "gateway".to_owned(),
        ask: AskTimes::default(),
    };
    let mut doors = Doors {
        runs: options.place.map(named).transpose()?,
        admin: options.admin.listener()?,
        page: options.page,
        proxied: proxied(options.proxy, &begin)?,
    };
    let mut law = Law {
        policy,
        context,
        read,
        terminal: Terminal::look(),
        keys: secrets.settings().to_vec(),
    };
    let opening = Opening {
        whose: GatewayPlace::Private {
            program: gateway_program(),
            settings: [options.settings, secrets.settings().to_vec()].concat(),
            variables: upstream_variables(options.upstream_proxy),
        },
        sandbox: "gateway".to_owned(),
        sources: options.sources,
        ends: Vec::new(),
        begin,
    };
    let mut front = Front::start(&opening, &doors, options.ending_time)?;
    let record = front.ready()?;
    if let Some(proxied) = &mut doors.proxied {
        proxied.look(Look::Tokens, front.socket(), voice);
    }
    doors.announce(voice, &format!("{rules} rules; record: {record}"));
    options.service.ready(&law.words());
    let told = (&signals, &options.service);
    let ended = front.attend(told, &mut law, (&mut doors.proxied, voice));
    drop(doors);
    ended
}

/// The sandboxes of the explicit proxy, if there is to be one.
fn proxied<'a>(
    options: Option<ProxyOptions<'a>>,
    begin: &BeginFrame,
) -> Result<Option<ProxiedSandboxes<'a>>, ShareError> {
    let Some(options) = options else {
        return Ok(None);
    };
    let begin = BeginFrame {
        command: "proxy".to_owned(),
        ..begin.clone()
    };
    let sandboxes = ProxiedSandboxes::new(options, begin);
    let sandboxes = sandboxes.map_err(|source| ShareError::Machine {
        what: "the tokens of the proxy",
        source,
    })?;
    Ok(Some(sandboxes))
}

fn signals() -> std::io::Result<SignalFd> {
    outgate_sys::process::hear_of_children()?;
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set.thread_block()?;
    Ok(SignalFd::with_flags(
        &set,
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?)
}

/// The policy in force, and how to read it again.
struct Law<'a> {
    policy: Policy,
    context: Context,
    read: Read<'a>,
    terminal: Terminal,
    /// Files with keys, which are read when the gateway starts.
    keys: Vec<GatewaySetting>,
}

impl Law<'_> {
    /// What is in force, for people.
    fn words(&self) -> String {
        format!("serving under {} rules", self.policy.rules().count())
    }

    /// Whether a policy can be enforced with the keys that were read: the
    /// gateway is confined since, and reads no more files.
    fn names_the_same_keys(&self, policy: &Policy) -> Result<(), String> {
        let secrets = GuardedSecrets::of(policy).map_err(|error| error.to_string())?;
        if secrets.settings() == self.keys {
            return Ok(());
        }
        Err(
            "it names other keys, which are read when the gateway starts; start it again"
                .to_owned(),
        )
    }
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignalWish {
    End,
    /// The policy files are to be read again.
    Reread,
}

/// A hangup by the kernel is the end of the terminal, and so is one that a shell
/// passes on whose terminal is gone; any other asks for the files to be read
/// again.
fn wish(signal: &siginfo, had: Terminal) -> SignalWish {
    let is_hangup = signal.ssi_signo == Signal::SIGHUP as u32;
    let is_sent = signal.ssi_code != SI_KERNEL;
    let is_left = had == Terminal::There && Terminal::look() == Terminal::Gone;
    if is_hangup && is_sent && !is_left {
        SignalWish::Reread
    } else {
        SignalWish::End
    }
}

/// Whether there is a terminal that controls this process (tty(4)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terminal {
    There,
    Gone,
}

impl Terminal {
    fn look() -> Self {
        match std::fs::File::open("/dev/tty") {
            Ok(_) => Self::There,
            Err(_) => Self::Gone,
        }
    }
}

/// `si_code` of what the kernel sends (sigaction(2)).
const SI_KERNEL: i32 = 0x80;
