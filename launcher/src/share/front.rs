//! The running gateway, and the socket to it: brought its policy, asked whether it serves,
//! and ended once what runs is finished. Judges nothing.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{MsgFlags, send};
use outgate_handoff::{AskTimes, BeginFrame, ToGateway, ToLauncher};

use super::doors::Doors;
use super::{Law, ShareError, SignalWish, wish};
use crate::coprocess::{receive, start_program};
use crate::opening::BUILD;
use crate::opening::{GatewayPlace, Opening, opening_frames, policy_frames};
use crate::proxied::{Look, ProxiedSandboxes};
use crate::reread::{differences, reread};
use crate::service::ServiceManager;
use crate::voice::Voice;

/// Time for all sessions to end, beyond that of what runs: longer than the gateway gives
/// them.
const END_TIME: Duration = Duration::from_secs(5);
/// Time after which who asked for the end is told what is waited for.
const TELL_TIME: Duration = Duration::from_millis(700);
/// How often the tokens are looked for where they were.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// Time for the gateway to compile its policy and answer.
const START_MS: u16 = 15_000;

/// See the head of this file.
pub(super) struct Front {
    socket: OwnedFd,
    child: Child,
    /// Time that what runs has once it is to end.
    ending_time: Duration,
}

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Not,
    Asked { tell: Instant, until: Instant },
    Told { until: Instant },
}

impl Ending {
    fn asked(self, time: Duration) -> Self {
        match self {
            Self::Not => {
                let now = Instant::now();
                Self::Asked {
                    tell: now + TELL_TIME,
                    until: now + time + END_TIME,
                }
            }
            Self::Asked { .. } | Self::Told { .. } => self,
        }
    }

    /// Until when there is something to do.
    fn left(self) -> Option<Duration> {
        let at = match self {
            Self::Not => return None,
            Self::Asked { tell, .. } => tell,
            Self::Told { until } => until,
        };
        Some(at.saturating_duration_since(Instant::now()))
    }
}

/// Who has news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// Time is over.
    Nobody,
    /// The gateway, and perhaps others.
    Gateway,
    /// Signals, tokens or their sandboxes.
    Others,
}

/// When the gateway is asked whether it serves.
#[derive(Debug)]
struct Pulse {
    every: Option<Duration>,
    next: Instant,
    /// The number of the last question, and whether it is answered.
    id: u64,
    answer: PulseAnswer,
}

/// Whether there is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PulseAnswer {
    Awaited,
    There,
}

impl Pulse {
    fn new(every: Option<Duration>) -> Self {
        Self {
            every,
            next: Instant::now(),
            id: 0,
            answer: PulseAnswer::There,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.every?;
        Some(self.next.saturating_duration_since(Instant::now()))
    }

    /// The next question, where it is time.
    fn due(&mut self) -> Option<u64> {
        let every = self.every?;
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + every;
        // One at a time: who does not answer is not sent more.
        if self.answer == PulseAnswer::Awaited {
            return None;
        }
        self.answer = PulseAnswer::Awaited;
        self.id = self.id.wrapping_add(1);
        Some(self.id)
    }

    /// Whether this answers the last question.
    fn is_answered_by(&mut self, id: u64) -> bool {
        let is_it = self.answer == PulseAnswer::Awaited && id == self.id;
        if is_it {
            self.answer = PulseAnswer::There;
        }
        is_it
    }
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
    pub(super) fn start(
        opening: &Opening,
        doors: &Doors<'_>,
        ending_time: Duration,
    ) -> Result<Self, ShareError> {
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
        let admin = doors.admin.as_ref();
        let admin = admin.map(|listener| ("--admin-fd", listener.as_fd()));
        let page = doors.page.as_ref();
        let page = page.map(|listener| ("--page-fd", listener.as_fd()));
        let inherited = runs.into_iter().chain(proxy).chain(admin).chain(page);
        let inherited: Vec<_> = inherited.collect();
        let (socket, child) = start_program(program, &["share"], &inherited, variables)
            .map_err(failed("starting outgate-gateway"))?;
        let mut front = Self {
            socket,
            child,
            ending_time,
        };
        for frame in opening_frames(opening).map_err(failed("the policy's text"))? {
            // The gateway reads while we send: this waits for room.
            if send(front.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL).is_err() {
                return Err(front.ended());
            }
        }
        Ok(front)
    }

    /// The socket to it.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits until it serves; where its records go.
    pub(super) fn ready(&mut self) -> Result<String, ShareError> {
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

    /// Waits for signals, for news of tokens or for the gateway's end.
    pub(super) fn attend(
        &mut self,
        (signals, service): (&SignalFd, &ServiceManager),
        law: &mut Law<'_>,
        (proxied, voice): (&mut Option<ProxiedSandboxes<'_>>, &mut dyn Voice),
    ) -> Result<(), ShareError> {
        let mut ending = Ending::Not;
        let mut pulse = Pulse::new(service.pulse());
        loop {
            // A directory of tokens that goes with one above it says nothing.
            let look = proxied.is_some().then_some(LOOK_TIME);
            let left = [ending.left(), pulse.left(), look]
                .into_iter()
                .flatten()
                .min();
            let Some(ready) = self.wait(left, signals, proxied.as_ref()) else {
                continue;
            };
            if let Some(id) = pulse.due() {
                self.say(&ToGateway::Ping(id));
            }
            if let Some(over) = self.check_end(&mut ending, voice) {
                return over;
            }
            if let Some(proxied) = proxied {
                proxied.hear(self.socket.as_fd(), voice);
            }
            if ready == Ready::Nobody {
                continue;
            }
            if let Ok(Some(signal)) = signals.read_signal() {
                match (wish(&signal, law.terminal), ending) {
                    (SignalWish::End, _) => {
                        service.stopping();
                        self.say(&ToGateway::Finish { status: 0 });
                        ending = ending.asked(self.ending_time);
                    }
                    (SignalWish::Reread, Ending::Not) => {
                        service.reloading();
                        self.revise(law, voice)?;
                        if let Some(proxied) = proxied {
                            proxied.look(Look::Policies, self.socket.as_fd(), voice);
                        }
                        service.ready(&law.words());
                    }
                    (SignalWish::Reread, _) => {}
                }
                continue;
            }
            if ready == Ready::Others {
                continue;
            }
            match self.receive(PollTimeout::ZERO) {
                Some(ToLauncher::Notice { line }) => voice.say(&line),
                Some(ToLauncher::Pong(id)) if pulse.is_answered_by(id) => service.alive(),
                Some(ToLauncher::Summary { .. }) if ending != Ending::Not => return Ok(()),
                Some(_) => {}
                None => return Err(self.ended()),
            }
        }
    }

    /// Waits until somebody has news, within this time; `None` where that was interrupted.
    fn wait(
        &self,
        left: Option<Duration>,
        signals: &SignalFd,
        proxied: Option<&ProxiedSandboxes<'_>>,
    ) -> Option<Ready> {
        let time = left.map_or(PollTimeout::NONE, |left| {
            // Rounded up, so that what is waited for is there.
            let left = left.as_millis().saturating_add(1);
            PollTimeout::from(u16::try_from(left).unwrap_or(u16::MAX))
        });
        let others = proxied.map(ProxiedSandboxes::sources).unwrap_or_default();
        let sources = [self.socket.as_fd(), signals.as_fd()];
        let mut sources: Vec<PollFd<'_>> = sources
            .into_iter()
            .chain(others)
            .map(|source| PollFd::new(source, PollFlags::POLLIN))
            .collect();
        let count = poll(&mut sources, time).ok()?;
        let gateway = sources.first().and_then(PollFd::any);
        Some(match (count, gateway) {
            (0, _) => Ready::Nobody,
            (_, Some(true)) => Ready::Gateway,
            _ => Ready::Others,
        })
    }

    /// Tells who waits that what runs is finished first; the end, if it does not come.
    fn check_end(
        &mut self,
        ending: &mut Ending,
        voice: &mut dyn Voice,
    ) -> Option<Result<(), ShareError>> {
        match *ending {
            Ending::Asked { tell, until } if tell <= Instant::now() => {
                let left = until.saturating_duration_since(Instant::now() + END_TIME);
                let left = left.as_secs().saturating_add(1);
                voice.say(&format!(
                    "outgate: the gateway takes nothing new; what runs has {left} s to finish (a \
                     second signal ends it now)"
                ));
                *ending = Ending::Told { until };
                None
            }
            Ending::Told { until } if until <= Instant::now() => Some(Err(self.ended())),
            Ending::Not | Ending::Asked { .. } | Ending::Told { .. } => None,
        }
    }

    /// Sends a frame; where that fails, receiving says so.
    fn say(&self, frame: &ToGateway) {
        if let Ok(frame) = frame.encode() {
            // A gateway that stands still must not stop its front.
            let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
            let _ = send(self.socket.as_raw_fd(), &frame, flags);
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
            ask: AskTimes::default(),
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
