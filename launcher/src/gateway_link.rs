//! The launcher's end of the control connection: starts the gateway, sends the
//! policy, questions and descriptors, reads answers, notices its death.
//!
//! Nothing here waits: frames that do not fit the socket are queued with a
//! bound, and a gateway that is gone answers every question with a denial.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, recv, sendmsg};
use outgate_handoff::{DESCRIPTORS_MAX, FRAME_BYTES_MAX, FrameError, ToGateway, ToLauncher};

use outgate_policy::Source;

use crate::coprocess::start_private;
use crate::door::Door;
use crate::opening::{BUILD, opening_frames};
pub use crate::opening::{GatewayPlace, Opening};

/// Frames queued for a gateway that does not read, at most. Beyond, the
/// gateway counts as gone.
const QUEUE_FRAMES_MAX: usize = 8192;

/// Between two attempts to begin anew with a shared gateway: a command that
/// tries without pause must not keep everybody busy.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);

/// Longest wait for a gateway that reads secrets first: commands that print one
/// may ask a person.
const SECRETS_TIME: Duration = Duration::from_mins(2);
/// Longest wait for a gateway to begin, where a command needs to know.
const START_TIME: Duration = Duration::from_secs(10);

/// The control connection.
#[derive(Debug)]
pub enum GatewayLink {
    /// Nothing asked yet.
    Idle(Box<Opening>),
    /// Running.
    Open(Box<RunningGateway>),
    /// Gone, with the reason: everything is denied.
    Gone(Gone),
}

/// A gateway that is gone.
#[derive(Debug)]
pub struct Gone {
    reason: String,
    /// How to begin anew, where somebody may start the gateway again.
    again: Option<(Box<Opening>, Instant)>,
}

/// A running gateway.
#[derive(Debug)]
pub struct RunningGateway {
    socket: OwnedFd,
    /// The gateway, if it is ours.
    child: Option<Child>,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// How to begin anew with a shared one.
    opening: Option<Box<Opening>>,
    buffer: Vec<u8>,
    /// What it said before its first word that matters.
    early: VecDeque<ToLauncher>,
}

impl GatewayLink {
    /// Starts the gateway unless it runs or is gone.
    pub fn start(&mut self) {
        let Self::Idle(_) = self else {
            return;
        };
        let idle = std::mem::replace(self, Self::Gone(Gone::for_good("it did not start")));
        if let Self::Idle(opening) = idle {
            *self = Self::begin(opening, Door::enter_soon);
        }
    }

    fn begin(opening: Box<Opening>, enter: fn(&Door) -> io::Result<OwnedFd>) -> Self {
        let (opened, name) = match &opening.whose {
            GatewayPlace::Private {
                program, variables, ..
            } => (
                start_private(program, variables),
                program.display().to_string(),
            ),
            GatewayPlace::Shared(door) => (
                enter(door).map(|socket| (socket, None)),
                door.path().display().to_string(),
            ),
        };
        let named = |error: io::Error| format!("{name}: {error}");
        let opened = opened.map_err(named).and_then(|(socket, child)| {
            let mut open = RunningGateway {
                socket,
                child,
                queue: VecDeque::new(),
                opening: None,
                buffer: Vec::new(),
                early: VecDeque::new(),
            };
            for frame in opening_frames(&opening).map_err(named)? {
                open.queue.push_back((frame, Vec::new()));
            }
            match open.flush() {
                Ok(()) => Ok(open),
                // Who refused at once said why before closing.
                Err(error) => Err(match open.receive(MsgFlags::empty()) {
                    Ok(Some(ToLauncher::Refused { message })) => message,
                    _ => named(error),
                }),
            }
        });
        let shared = matches!(opening.whose, GatewayPlace::Shared(_)).then_some(opening);
        match opened {
            Ok(mut open) => {
                open.opening = shared;
                Self::Open(Box::new(open))
            }
            Err(reason) => Self::Gone(Gone {
                reason,
                again: shared.map(|opening| (opening, Instant::now())),
            }),
        }
    }

    /// Begins anew with a shared gateway that is gone, if somebody listens at
    /// its socket again: at most so often, and without waiting. Whether it did.
    pub fn attach_again(&mut self) -> Attached {
        let Self::Gone(gone) = self else {
            return Attached::No;
        };
        let due = |since: &Instant| since.elapsed() >= AGAIN_PAUSE;
        let Some((opening, _)) = gone.again.take_if(|(_, since)| due(since)) else {
            return Attached::No;
        };
        *self = Self::begin(opening, Door::enter);
        match self {
            Self::Open(_) => Attached::Anew,
            Self::Idle(_) | Self::Gone(_) => Attached::No,
        }
    }

    /// Has a session that begins later begin with these texts.
    pub fn set_sources(&mut self, sources: &[Source], ends: Vec<(String, Instant)>) {
        let opening = match self {
            Self::Idle(opening) => Some(opening),
            Self::Open(open) => open.opening.as_mut(),
            Self::Gone(gone) => gone.again.as_mut().map(|(opening, _)| opening),
        };
        if let Some(opening) = opening {
            opening.sources = sources.to_vec();
            opening.ends = ends;
        }
    }

    /// Waits until the gateway agrees to serve, at most so long. Its word is
    /// left for who reads the frames.
    ///
    /// # Errors
    /// It does not, with its reason.
    pub fn agreed(&mut self, wait_ms: u16) -> Result<(), String> {
        let Self::Open(open) = self else {
            return Err(self.gone().unwrap_or("nothing was asked").to_owned());
        };
        let time = Duration::from_millis(wait_ms.into());
        match open.first(time)? {
            ToLauncher::Refused { message } => Err(message),
            ToLauncher::Ready { build, .. } if build != BUILD => Err(other_build(&build)),
            _ => Ok(()),
        }
    }

    /// Sends a frame, now or when the socket has room; starts the gateway first
    /// when nothing was sent yet. Descriptors close once they are sent.
    pub fn send(&mut self, frame: &ToGateway, descriptors: Vec<OwnedFd>) {
        self.start();
        let Self::Open(open) = self else {
            return;
        };
        match frame.encode() {
            Ok(bytes) => open.queue.push_back((bytes, descriptors)),
            Err(error) => {
                self.fail(&error.to_string());
                return;
            }
        }
        if open.queue.len() > QUEUE_FRAMES_MAX {
            self.fail("it does not read");
            return;
        }
        self.flush();
    }

    /// Sends what is queued, as far as the socket has room.
    pub fn flush(&mut self) {
        if let Self::Open(open) = self
            && let Err(error) = open.flush_unless_closed()
        {
            self.fail(&error.to_string());
        }
    }

    /// The next frame, if one is there.
    pub fn receive(&mut self) -> Option<ToLauncher> {
        let Self::Open(open) = self else {
            return None;
        };
        if let Some(early) = open.early.pop_front() {
            return Some(early);
        }
        match open.receive(MsgFlags::empty()) {
            Ok(Some(ToLauncher::Ready { build, .. })) if build != BUILD => {
                self.fail(&other_build(&build));
                None
            }
            Ok(frame) => frame,
            Err(reason) => {
                self.fail(&reason);
                None
            }
        }
    }

    /// Starts the gateway and waits until it said what the command's environment
    /// holds in the place of secrets: lines `NAME=VALUE` to set and `NAME` to take out.
    ///
    /// # Errors
    /// It does not serve, with its reason.
    pub fn variables(&mut self) -> Result<String, String> {
        self.start();
        let Self::Open(open) = self else {
            return Err(self.gone().unwrap_or("it does not run").to_owned());
        };
        open.first(SECRETS_TIME)?;
        match open.wait(Duration::ZERO, MsgFlags::empty())? {
            ToLauncher::Variables { lines } => Ok(lines),
            ToLauncher::Refused { message } => Err(message),
            _ => Err("the gateway does not know of the secrets".to_owned()),
        }
    }

    /// Waits until the gateway said what it begins with, and gives the
    /// certificate of the run's authority, in PEM; empty without one.
    pub fn authority(&mut self) -> String {
        let Self::Open(open) = self else {
            return String::new();
        };
        match open.first(START_TIME) {
            Ok(ToLauncher::Ready { authority, .. }) => authority,
            Ok(_) => String::new(),
            Err(reason) => {
                self.fail(&reason);
                String::new()
            }
        }
    }

    /// The descriptor to poll, and whether to poll it for room.
    pub fn poll(&self) -> Option<(BorrowedFd<'_>, bool)> {
        match self {
            Self::Open(open) => Some((open.socket.as_fd(), !open.queue.is_empty())),
            Self::Idle(_) | Self::Gone(_) => None,
        }
    }

    /// Process id of the gateway.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Self::Open(open) => open.child.as_ref().map(Child::id),
            Self::Idle(_) | Self::Gone(_) => None,
        }
    }

    /// Whether others use the gateway too.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Idle(opening) => matches!(opening.whose, GatewayPlace::Shared(_)),
            Self::Open(open) => open.opening.is_some(),
            Self::Gone(gone) => gone.again.is_some(),
        }
    }

    /// Whether the gateway is gone and somebody may start it again.
    pub fn may_come_back(&self) -> bool {
        matches!(self, Self::Gone(gone) if gone.again.is_some())
    }

    /// Why the gateway is gone, if it is.
    pub fn gone(&self) -> Option<&str> {
        match self {
            Self::Gone(gone) => Some(&gone.reason),
            Self::Idle(_) | Self::Open(_) => None,
        }
    }

    /// Ends the connection: the gateway sees it and goes.
    pub fn fail(&mut self, reason: &str) {
        if let Self::Open(mut open) = std::mem::replace(self, Self::Gone(Gone::for_good(reason))) {
            let again = open.opening.take();
            *self = Self::Gone(Gone {
                reason: reason.to_owned(),
                again: again.map(|opening| (opening, Instant::now())),
            });
            open.end();
        }
    }
}

impl Gone {
    fn for_good(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            again: None,
        }
    }
}

/// Whether a session with a shared gateway was begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    /// It was.
    Anew,
    /// It was not.
    No,
}

impl RunningGateway {
    fn flush(&mut self) -> io::Result<()> {
        while let Some((bytes, descriptors)) = self.queue.front() {
            let numbers: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
            let rights = [ControlMessage::ScmRights(&numbers)];
            let control = if numbers.is_empty() { &[][..] } else { &rights };
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let slices = [IoSlice::new(bytes)];
            match sendmsg::<()>(self.socket.as_raw_fd(), &slices, control, flags, None) {
                // ETOOMANYREFS (unix(7)): the user's programs have too many descriptors
                // on their way, no fault of the gateway's. What cannot be handed over
                // ends here, and who waits for it sees that.
                Ok(_) | Err(Errno::ETOOMANYREFS) => drop(self.queue.pop_front()),
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Flushes; that it closed its end meanwhile is left for who receives: what it
    /// said before, why it goes for instance, is read still, and its end behind that.
    fn flush_unless_closed(&mut self) -> io::Result<()> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self.flush() {
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => {
                self.queue.clear();
                Ok(())
            }
            flushed => flushed,
        }
    }

    /// Waits for the first word that matters, which is left for who receives later.
    /// Lines for the user may come before it, and are kept for who hears them.
    fn first(&mut self, time: Duration) -> Result<ToLauncher, String> {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let frame = self.wait(left, MsgFlags::MSG_PEEK)?;
            if !matches!(frame, ToLauncher::Notice { .. }) {
                return Ok(frame);
            }
            if self.early.len() >= QUEUE_FRAMES_MAX {
                return Err("it speaks without end".to_owned());
            }
            let notice = self.receive(MsgFlags::empty())?;
            self.early.extend(notice);
        }
    }

    /// Waits for the next frame.
    fn wait(&mut self, time: Duration, how: MsgFlags) -> Result<ToLauncher, String> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(frame) = self.receive(how)? {
                return Ok(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waited = time.as_secs();
                return Err(format!("it did not answer within {waited} s"));
            }
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, !self.queue.is_empty());
            let mut polled = [PollFd::new(self.socket.as_fd(), flags)];
            let wait_ms = u16::try_from(left.as_millis())
                .unwrap_or(1000)
                .clamp(1, 1000);
            let _ = poll(&mut polled, wait_ms);
            self.flush_unless_closed()
                .map_err(|error| error.to_string())?;
        }
    }

    fn receive(&mut self, how: MsgFlags) -> Result<Option<ToLauncher>, String> {
        self.buffer.resize(FRAME_BYTES_MAX, 0);
        let flags = MsgFlags::MSG_DONTWAIT | how;
        let mut received = recv(self.socket.as_raw_fd(), &mut self.buffer, flags);
        if received == Err(Errno::ECONNRESET) {
            // Closed with something unread: what it said before comes after.
            received = recv(self.socket.as_raw_fd(), &mut self.buffer, flags);
        }
        let count = match received {
            Ok(0) => return Err(self.how_it_ended()),
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.to_string()),
        };
        ToLauncher::decode(self.buffer.get(..count).unwrap_or_default())
            .map(Some)
            .map_err(|error: FrameError| error.to_string())
    }

    /// How a gateway that closed its end fared.
    fn how_it_ended(&mut self) -> String {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => format!("it ended with {status}"),
            _ => "it closed the connection".to_owned(),
        }
    }

    fn end(self) {
        let Self { socket, child, .. } = self;
        drop(socket);
        let Some(mut child) = child else {
            return;
        };
        // Whatever state it is in: it must not outlive its sandbox, and nothing
        // it could still do is wanted.
        if matches!(child.try_wait(), Ok(None)) {
            drop(child.kill());
        }
        drop(child.wait());
    }

    /// Waits at most `wait_ms` for the gateway to end by itself, then ends it.
    pub fn finish(mut self, wait_ms: u16) {
        self.queue.clear();
        let Self { socket, child, .. } = self;
        let Some(mut child) = child else {
            return;
        };
        let pidfd = outgate_sys::pidfd::open(child.id());
        drop(socket);
        if let Ok(pidfd) = pidfd {
            let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, wait_ms);
        }
        if matches!(child.try_wait(), Ok(None)) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn other_build(theirs: &str) -> String {
    format!(
        "launcher {BUILD} and gateway {theirs} are different builds; install both from one release"
    )
}

/// Descriptors a frame carries, checked against the limit of the frames.
pub fn descriptors<const N: usize>(list: [OwnedFd; N]) -> Vec<OwnedFd> {
    const { assert!(N <= DESCRIPTORS_MAX) };
    Vec::from(list)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, send, socketpair};

    use super::*;

    #[test]
    fn what_a_gateway_said_before_it_closed_is_read_whoever_sends_meanwhile() {
        let (ours, its) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::empty(),
        )
        .expect("a pair");
        let mut link = GatewayLink::Open(Box::new(RunningGateway {
            socket: ours,
            child: None,
            queue: VecDeque::new(),
            opening: None,
            buffer: Vec::new(),
            early: VecDeque::new(),
        }));
        let frame = ToGateway::Finish { status: 0 };
        // Left unread: the socket is reset, and the next call, a send, is told of that.
        link.send(&frame, Vec::new());
        let message = "the policy has a fault".to_owned();
        let refused = ToLauncher::Refused { message };
        let said = refused.encode().expect("it is short");
        send(its.as_raw_fd(), &said, MsgFlags::empty()).expect("there is room");
        drop(its);
        link.send(&frame, Vec::new());
        link.send(&frame, Vec::new());
        assert_eq!(link.receive(), Some(refused));
        assert_eq!(link.receive(), None);
        assert_eq!(link.gone(), Some("it closed the connection"));
    }
}
