//! `outgate gateway`: the front of a shared gateway. Makes the socket, starts
//! the gateway's program beside it, brings it its policy, again when a signal
//! says so, and removes the socket however the gateway ends. Serves nobody.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Child;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use nix::sys::socket::{MsgFlags, send};
use outgate_handoff::{BeginFrame, GatewaySetting, ToGateway, ToLauncher};
use outgate_policy::{Context, Policy, PolicyErrors, Source, compile};

use crate::coprocess::{receive, start_program};
use crate::enforced::refuse_unenforced;
use crate::listener::ListenError;
use crate::opening::BUILD;
use crate::opening::{GatewayPlace, Opening, opening_frames, policy_frames};
use crate::proxied::{Look, ProxiedSandboxes, ProxyOptions};
use crate::reread::{Read, differences, reread};
use crate::run::{gateway_program, upstream_variables};
use crate::secrets::{GuardedSecrets, SecretError};
use crate::source_text::PolicyTextError;
use crate::sources::check_total;
use crate::voice::Voice;

mod doors;

pub use doors::SocketPlace;
use doors::{Doors, named};

/// Time for all sessions to end, in milliseconds: longer than the gateway
/// gives them.
const END_MS: u16 = 5000;
/// Time for the gateway to compile its policy and answer.
const START_MS: u16 = 15_000;

/// What to share and how.
#[derive(Debug)]
pub struct ShareOptions<'a> {
    /// Where runs find it; nowhere where it is a proxy alone.
    pub place: Option<SocketPlace>,
    /// The explicit proxy, if there is to be one.
    pub proxy: Option<ProxyOptions<'a>>,
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
        ask_seconds: 0,
    };
    let proxied = options.proxy.map(|proxy| {
        let begin = BeginFrame {
            command: "proxy".to_owned(),
            ..begin.clone()
        };
        ProxiedSandboxes::new(proxy, begin)
    });
    let mut doors = Doors {
        runs: options.place.map(named).transpose()?,
        proxied: proxied.transpose().map_err(|source| ShareError::Machine {
            what: "the tokens of the proxy",
            source,
        })?,
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
    let mut front = Front::start(&opening, &doors)?;
    let record = front.ready()?;
    if let Some(proxied) = &mut doors.proxied {
        proxied.look(Look::Tokens, front.socket.as_fd(), voice);
    }
    voice.say(&format!(
        "outgate: the gateway listens at {} ({rules} rules; record: {record})",
        doors.shown()
    ));
    let ended = front.attend(&signals, &mut law, (&mut doors.proxied, voice));
    drop(doors);
    ended
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

/// The running gateway, and the socket to it.
struct Front {
    socket: OwnedFd,
    child: Child,
}

/// Says that nothing changes, and why.
fn kept(faults: &str, voice: &mut dyn Voice) {
    voice.say(
        "outgate: the policy stays as it is, since the files that were read again have faults:",
    );
    for line in faults.lines() {
        voice.say(&format!("outgate:   {line}"));
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Front {
    fn start(opening: &Opening, doors: &Doors<'_>) -> Result<Self, ShareError> {
        let failed = |what| move |source| ShareError::Machine { what, source };
        let GatewayPlace::Private {
            program, variables, ..
        } = &opening.whose
        else {
            return Err(ShareError::Ended {
                how: "it has no program".to_owned(),
            });
        };
        let runs = doors.runs.as_ref();
        let runs = runs.map(|(listener, _)| ("--listen-fd", listener.as_fd()));
        let proxy = doors.proxied.as_ref();
        let proxy = proxy.map(|proxied| ("--proxy-fd", proxied.listener()));
        let inherited: Vec<_> = runs.into_iter().chain(proxy).collect();
        let (socket, child) = start_program(program, &["share"], &inherited, variables)
            .map_err(failed("starting outgate-gateway"))?;
        let mut front = Self { socket, child };
        for frame in opening_frames(opening).map_err(failed("the policy's text"))? {
            // The gateway reads while we send: this waits for room.
            if send(front.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL).is_err() {
                return Err(front.ended());
            }
        }
        Ok(front)
    }

    /// Waits until it serves; where its records go.
    fn ready(&mut self) -> Result<String, ShareError> {
        match self.receive(PollTimeout::from(START_MS)) {
            Some(ToLauncher::Ready { audit, build, .. }) if build == BUILD => {
                Ok(if audit.is_empty() {
                    "none".to_owned()
                } else {
                    audit
                })
            }
            Some(ToLauncher::Refused { message }) => Err(ShareError::Refused { message }),
            Some(_) => Err(ShareError::Refused {
                message: "outgate-gateway is of another build".to_owned(),
            }),
            None => Err(self.ended()),
        }
    }

    /// Waits for a signal or for the gateway's end.
    fn attend(
        &mut self,
        signals: &SignalFd,
        law: &mut Law<'_>,
        (proxied, voice): (&mut Option<ProxiedSandboxes<'_>>, &mut dyn Voice),
    ) -> Result<(), ShareError> {
        loop {
            let others = proxied.as_ref().map(ProxiedSandboxes::sources);
            let sources = [self.socket.as_fd(), signals.as_fd()];
            let sources = sources.into_iter().chain(others.unwrap_or_default());
            let mut sources: Vec<PollFd<'_>> = sources
                .map(|source| PollFd::new(source, PollFlags::POLLIN))
                .collect();
            if poll(&mut sources, PollTimeout::NONE).is_err() {
                continue;
            }
            if let Some(proxied) = proxied {
                proxied.hear(self.socket.as_fd(), voice);
            }
            if let Ok(Some(signal)) = signals.read_signal() {
                match wish(&signal, law.terminal) {
                    SignalWish::End => return self.end(),
                    SignalWish::Reread => {
                        self.revise(law, voice)?;
                        if let Some(proxied) = proxied {
                            proxied.look(Look::Policies, self.socket.as_fd(), voice);
                        }
                    }
                }
                continue;
            }
            let mut own = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            if poll(&mut own, PollTimeout::ZERO) != Ok(1) {
                continue;
            }
            match self.receive(PollTimeout::ZERO) {
                Some(ToLauncher::Notice { line }) => voice.say(&line),
                Some(_) => {}
                None => return Err(self.ended()),
            }
        }
    }

    /// Reads the policy files again and brings the gateway what they say; with
    /// a fault, everything stays as it is.
    fn revise(&mut self, law: &mut Law<'_>, voice: &mut dyn Voice) -> Result<(), ShareError> {
        let sound = match reread(law.read, &law.context) {
            Ok(sound) => sound,
            Err(faults) => {
                kept(&faults, voice);
                return Ok(());
            }
        };
        if let Err(fault) = law.names_the_same_keys(&sound.policy) {
            kept(&fault, voice);
            return Ok(());
        }
        let begin = BeginFrame {
            home: law.context.home.clone(),
            working_directory: law.context.working_directory.clone(),
            private_directory: String::new(),
            command: "gateway".to_owned(),
            ask_seconds: 0,
        };
        let frames =
            policy_frames(&sound.sources, &begin).map_err(|source| ShareError::Machine {
                what: "the policy's text",
                source,
            })?;
        for frame in frames {
            if send(self.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL).is_err() {
                return Err(self.ended());
            }
        }
        loop {
            match self.receive(PollTimeout::from(START_MS)) {
                Some(ToLauncher::Generation { generation }) => {
                    let lines = differences(&law.policy, &sound.policy);
                    for line in lines {
                        voice.say(&format!("outgate: policy {generation}: {line}"));
                    }
                    for warning in sound.policy.warnings() {
                        voice.say(&format!("outgate: warning: {warning}"));
                    }
                    law.policy = sound.policy;
                    return Ok(());
                }
                Some(ToLauncher::Kept { message }) => {
                    kept(&message, voice);
                    return Ok(());
                }
                Some(ToLauncher::Notice { line }) => voice.say(&line),
                Some(_) => {}
                None => return Err(self.ended()),
            }
        }
    }

    /// Asks it to end, and waits.
    fn end(&mut self) -> Result<(), ShareError> {
        let frame = ToGateway::Finish { status: 0 }.encode();
        if let Ok(frame) = frame {
            let _ = send(self.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL);
        }
        match self.receive(PollTimeout::from(END_MS)) {
            Some(ToLauncher::Summary { .. }) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// The next frame within this time; `None` when none comes.
    fn receive(&mut self, wait: PollTimeout) -> Option<ToLauncher> {
        receive(&self.socket, wait)
    }

    fn ended(&mut self) -> ShareError {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        // Its socket closes a moment before its status is there.
        let _ = poll(&mut polled, 1000_u16);
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "it closed its connection".to_owned(),
        };
        ShareError::Ended { how }
    }
}
