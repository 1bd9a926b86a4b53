//! Calls that cannot be answered at once, and what each waits for. A call whose
//! caller dies, is interrupted or runs out of time leaves here.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Supervisor;
use super::bind::BindCall;
use super::connect::Call;
use super::listen::ListenCall;
use super::unix::UnixCall;
use crate::call_socket::{Begun, give_up};
use crate::notification::Notification;
use crate::own::UnixServer;
use crate::redirect::{ListenerKind, RedirectPeer};
use crate::sealed::Blocking;

/// Calls in flight at most; further ones are refused.
const IN_FLIGHT_MAX: usize = 4096;
/// Descriptors that one call in flight holds at most: the socket, and what it
/// is to be connected to, or the listener at the other end.
const DESCRIPTORS_PER_CALL: usize = 2;
/// Unix servers of the command that are known at most, one descriptor each.
const UNIX_SERVERS_MAX: usize = 1024;
/// Descriptors for everything else: listeners, helpers, a question of the moment.
const DESCRIPTORS_BESIDE: usize = 64;

/// How much may be held at once, by the descriptors we may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldRoom {
    /// Calls in flight.
    pub(super) calls: usize,
    /// Unix servers of the command, of each of which one descriptor is kept.
    pub(super) servers: usize,
}

/// Raises our own limit of open files as far as that is allowed, and says what there
/// is room for then. The command runs already, with its own, which is lower: so many
/// descriptors as it can have on their way through Unix sockets, we can still send
/// ours (unix(7), `ETOOMANYREFS`).
pub(super) fn make_room() -> HeldRoom {
    let wanted = IN_FLIGHT_MAX
        .saturating_mul(DESCRIPTORS_PER_CALL)
        .saturating_add(UNIX_SERVERS_MAX)
        .saturating_add(DESCRIPTORS_BESIDE);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return room(0);
    };
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    room(usize::try_from(limit).unwrap_or(usize::MAX).min(wanted))
}

/// What so many descriptors are room for: at most a quarter is for servers.
fn room(descriptors: usize) -> HeldRoom {
    let free = descriptors.saturating_sub(DESCRIPTORS_BESIDE);
    let servers = (free / 4).min(UNIX_SERVERS_MAX);
    let calls = free.saturating_sub(servers) / DESCRIPTORS_PER_CALL;
    HeldRoom {
        calls: calls.clamp(1, IN_FLIGHT_MAX),
        servers,
    }
}

/// How long full Unix listeners are tried again in one go.
const KNOCKING_MAX: Duration = Duration::from_millis(10);

/// What a question was about.
#[derive(Debug)]
pub(super) enum Want {
    Connect(Call),
    Unix(UnixCall),
    Bind(BindCall),
    Listen(ListenCall),
}

/// Waits for the gateway's answer.
#[derive(Debug)]
pub(super) struct GatewayAnswer {
    pub(super) notification: Notification,
    pub(super) want: Want,
    pub(super) until: Option<Instant>,
}

/// Waits for its connection to show up at a private listener.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) notification: Notification,
    pub(super) call: Call,
    pub(super) kind: ListenerKind,
    pub(super) caller: RedirectPeer,
    pub(super) begun: (Begun, Blocking),
    pub(super) until: Option<Instant>,
}

/// Waits for a direct connection to be established.
#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) notification: Notification,
    pub(super) call: Call,
    pub(super) rest: Vec<SocketAddr>,
    pub(super) until: Option<Instant>,
}

impl Connecting {
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.call.socket.socket()
    }
}

/// Waits for room in a Unix listener's backlog.
#[derive(Debug)]
pub(super) struct Knocking {
    pub(super) notification: Notification,
    pub(super) socket: OwnedFd,
    pub(super) server: UnixServer,
    pub(super) blocking: Blocking,
    pub(super) until: Option<Instant>,
}

/// Whether a waiting call goes on waiting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitFate {
    Wait,
    Gone,
    Interrupted,
    Late,
}

pub(super) fn fate(notification: &Notification, until: Option<Instant>, now: Instant) -> WaitFate {
    if !notification.holds() {
        WaitFate::Gone
    } else if until.is_some_and(|until| now >= until) {
        WaitFate::Late
    } else if crate::process::interrupted(notification.held().thread) {
        WaitFate::Interrupted
    } else {
        WaitFate::Wait
    }
}

fn end(notification: Notification, fate: &WaitFate, late: Errno) {
    match fate {
        WaitFate::Interrupted => notification.interrupt(),
        WaitFate::Late => notification.fail(late),
        WaitFate::Wait | WaitFate::Gone => drop(notification),
    }
}

impl Supervisor<'_> {
    /// Whether one more call may wait.
    pub(super) fn has_room(&self) -> bool {
        self.asked
            .len()
            .saturating_add(self.arriving.len())
            .saturating_add(self.connecting.len())
            .saturating_add(self.knocking.len())
            .saturating_add(self.settling.len())
            .saturating_add(self.looking.len())
            < self.room.calls
    }

    /// Ends waiting calls that should wait no longer, and retries those that
    /// have no event to wait for.
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        if now < self.next_tick {
            return;
        }
        self.next_tick = now.checked_add(super::TICK).unwrap_or(now);
        self.certificates_due(now);
        if self.is_waiting() {
            self.alarm.set();
        }
        let ended: Vec<(u64, WaitFate)> = self
            .asked
            .iter()
            .map(|(id, asked)| (*id, fate(&asked.notification, asked.until, now)))
            .filter(|(_, fate)| *fate != WaitFate::Wait)
            .collect();
        for (id, fate) in ended {
            if let Some(asked) = self.asked.remove(&id) {
                end(asked.notification, &fate, Errno::ECONNREFUSED);
            }
        }
        for waiting in std::mem::take(&mut self.arriving) {
            match fate(&waiting.notification, waiting.until, now) {
                // Its connection is complete in the kernel: soon accepted.
                WaitFate::Wait | WaitFate::Interrupted => self.arriving.push(waiting),
                WaitFate::Gone => give_up(waiting.call.socket.socket()),
                fate @ WaitFate::Late => end(waiting.notification, &fate, Errno::ECONNREFUSED),
            }
        }
        for mut waiting in std::mem::take(&mut self.connecting) {
            let listener = waiting.call.listener.as_ref();
            if listener.is_some_and(|listener| !listener.is_served()) {
                give_up(waiting.socket());
                waiting.notification.fail(Errno::ECONNREFUSED);
                continue;
            }
            match fate(&waiting.notification, waiting.until, now) {
                WaitFate::Wait => self.connecting.push(waiting),
                WaitFate::Gone => give_up(waiting.socket()),
                // SO_SNDTIMEO ends a blocking connect with EINPROGRESS.
                fate => {
                    self.settle(&mut waiting.call);
                    end(waiting.notification, &fate, Errno::EINPROGRESS);
                }
            }
        }
        self.tick_settling(now);
        self.tick_looking(now);
        self.knock_again(now);
        self.tick_opening(now);
        self.attributes.tick(now);
    }

    /// Tries again where a Unix listener had no room. Those that time is not left
    /// for come first the next time.
    fn knock_again(&mut self, now: Instant) {
        let mut rest = std::mem::take(&mut self.knocking).into_iter();
        for waiting in rest.by_ref() {
            match fate(&waiting.notification, waiting.until, now) {
                WaitFate::Wait => self.knock(waiting),
                fate => end(waiting.notification, &fate, Errno::EAGAIN),
            }
            if now.elapsed() > KNOCKING_MAX {
                break;
            }
        }
        self.knocking.splice(..0, rest);
    }

    /// Goes on with direct connections that poll reported.
    pub(super) fn serve_connecting(&mut self, flags: &[PollFlags]) {
        if flags.iter().all(PollFlags::is_empty) {
            return;
        }
        let waiting = std::mem::take(&mut self.connecting);
        for (index, waiting) in waiting.into_iter().enumerate() {
            if flags.get(index).is_some_and(|flags| !flags.is_empty()) {
                self.connected(waiting);
            } else {
                self.connecting.push(waiting);
            }
        }
    }

    /// Denies every call that waits for the gateway: it is gone.
    pub(super) fn refuse_everything(&mut self) {
        for (_, asked) in self.asked.drain() {
            asked.notification.fail(Errno::ECONNREFUSED);
        }
        for waiting in self.arriving.drain(..) {
            waiting.notification.fail(Errno::ECONNREFUSED);
        }
        self.verdicts.clear();
        self.pass_opening();
    }
}
