//! `outgate gateway`: the front of a shared gateway. Makes the socket, starts
//! the gateway's program beside it, brings it its policy, waits for signals,
//! and removes the socket however the gateway ends. Serves nobody itself.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Child;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, recv, send};
use outgate_handoff::{Begin, FRAME_BYTES_MAX, ToGateway, ToLauncher};
use outgate_policy::{Context, PolicyErrors, Source, compile};

use crate::gateway_link::{BUILD, Opening, Whose, opening_frames, start_program};
use crate::listener::{Audience, ListenError, Listener};
use crate::run::{frame_source, gateway_program, refuse_unenforced};
use crate::secrets::{SecretError, Secrets};
use crate::sources::{SourceError, check_total};
use crate::supervisor::Voice;

/// Time for all sessions to end, in milliseconds: longer than the gateway
/// gives them.
const END_MS: u16 = 5000;
/// Time for the gateway to compile its policy and answer.
const START_MS: u16 = 15_000;

/// Where the socket comes from.
#[derive(Debug)]
pub enum Place {
    /// Made at this absolute path.
    Path(PathBuf, Audience),
    /// Inherited from whoever started us.
    Inherited(OwnedFd),
}

/// What to share and how.
#[derive(Debug)]
pub struct Options {
    /// Where runs find it.
    pub place: Place,
    /// Policy texts in merge order.
    pub sources: Vec<Source>,
    /// Arguments of the gateway: whom it trusts beside the system's authorities,
    /// and where records go.
    pub arguments: Vec<String>,
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
    Source(#[from] SourceError),
    /// The policy has faults.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The policy asks for what this version does not enforce.
    #[error("the policy sets `{key}`, which this version does not enforce")]
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

/// Shares a gateway until a signal says to end.
///
/// # Errors
/// [`ShareError`]; nothing is left behind then.
pub fn share(options: Options, voice: &mut dyn Voice) -> Result<(), ShareError> {
    let context = Context {
        home: options.home.clone(),
        working_directory: options.working_directory.clone(),
        private_directory: String::new(),
    };
    check_total(&options.sources)?;
    let policy = compile(&options.sources, &context)?;
    if let Err(key) = refuse_unenforced(&policy) {
        return Err(ShareError::NotEnforced { key });
    }
    for warning in policy.warnings() {
        voice.say(&format!("outgate: warning: {warning}"));
    }
    let secrets = Secrets::of(&policy)?;
    if !policy.has_network_rules() {
        voice.say("outgate: warning: the gateway's policy allows nothing; give it -a, -P or -p");
    }
    let rules = policy.rules().count();
    let signals = signals().map_err(|source| ShareError::Machine {
        what: "signals",
        source,
    })?;
    drop(outgate_sys::process::hide());
    let (listener, shown) = match options.place {
        Place::Path(path, audience) => {
            (Listener::make(&path, audience)?, path.display().to_string())
        }
        Place::Inherited(socket) => (
            Listener::inherited(socket),
            "the inherited socket".to_owned(),
        ),
    };
    let opening = Opening {
        whose: Whose::Private {
            program: gateway_program(),
            arguments: [options.arguments, secrets.arguments().to_vec()].concat(),
        },
        sandbox: "gateway".to_owned(),
        sources: options.sources.iter().map(frame_source).collect(),
        begin: Begin {
            home: options.home,
            working_directory: options.working_directory,
            private_directory: String::new(),
            command: "gateway".to_owned(),
        },
    };
    let mut front = Front::start(&opening, &listener)?;
    let record = front.ready()?;
    voice.say(&format!(
        "outgate: the gateway listens at {shown} ({rules} rules; record: {record})"
    ));
    let ended = front.attend(&signals, voice);
    drop(listener);
    ended
}

fn signals() -> std::io::Result<SignalFd> {
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

/// The running gateway, and the socket to it.
struct Front {
    socket: OwnedFd,
    child: Child,
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Front {
    fn start(opening: &Opening, listener: &Listener) -> Result<Self, ShareError> {
        let failed = |what| move |source| ShareError::Machine { what, source };
        let Whose::Private { program, arguments } = &opening.whose else {
            return Err(ShareError::Ended {
                how: "it has no program".to_owned(),
            });
        };
        let inherited = [("--listen-fd", listener.as_fd())];
        let (socket, child) = start_program(program, "share", &inherited, arguments)
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
    fn attend(&mut self, signals: &SignalFd, voice: &mut dyn Voice) -> Result<(), ShareError> {
        loop {
            let mut sources = [
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            ];
            if poll(&mut sources, PollTimeout::NONE).is_err() {
                continue;
            }
            if let Ok(Some(_)) = signals.read_signal() {
                return self.end();
            }
            match self.receive(PollTimeout::ZERO) {
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
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, wait) != Ok(1) {
            return None;
        }
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let count = recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT).ok()?;
        bytes.truncate(count);
        ToLauncher::decode(&bytes).ok()
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
