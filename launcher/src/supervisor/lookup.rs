//! Calls that wait for a look-up of a path: what each goes on with once it is found,
//! and what becomes of it when nobody answers in time.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::SockType;

use super::Supervisor;
use super::wait::{Knocking, WaitFate, fate};
use crate::call_socket::CallSocket;
use crate::lookups::{FoundPath, LookupReply, Waits};
use crate::notification::Notification;
use crate::sealed::Blocking;
use crate::unix_inode::{Resolved, is_from_here, resolve_cached};

/// How long a file system may take to answer. The caller is told then that nobody
/// did, however long that goes on.
const LOOKUP_TIME: Duration = Duration::from_secs(2);

/// A call that waits for a look-up.
#[derive(Debug)]
pub(super) struct Looking {
    then: CallContinuation,
    until: Option<Instant>,
}

/// What a call goes on with.
#[derive(Debug)]
pub(super) enum CallContinuation {
    /// Connecting to what is at a path.
    Connect(Notification, CallSocket),
    /// Listening at a path, whoever else does.
    Listen(Notification, CallSocket, i32),
    /// Being told that it is connected.
    Enter(Knocking),
    /// Being told that it listens: the connection shows who answers there.
    Prove(Notification, CallSocket, Proof),
}

/// A connection that is to show who listens at an inode.
#[derive(Debug)]
pub(super) struct Proof {
    pub(super) place: Resolved,
    pub(super) connection: OwnedFd,
}

impl CallContinuation {
    fn notification(&self) -> &Notification {
        match self {
            Self::Connect(notification, _)
            | Self::Listen(notification, ..)
            | Self::Prove(notification, ..) => notification,
            Self::Enter(knocking) => &knocking.notification,
        }
    }

    /// Whether a signal ends it: nothing is done yet.
    fn is_interruptible(&self) -> bool {
        matches!(self, Self::Connect(..))
    }
}

impl Supervisor<'_> {
    /// What a path leads to, where that is known without waiting; otherwise the call
    /// is found again in [`CallContinuation`], as it is returned, when it was looked up.
    pub(super) fn find(
        &mut self,
        path: &[u8],
        kind: SockType,
        then: CallContinuation,
    ) -> Option<(CallContinuation, Result<FoundPath, Errno>)> {
        let thread = then.notification().held().thread;
        match resolve_cached(thread, path) {
            Some(Err(errno)) => return Some((then, Err(errno))),
            Some(Ok(place)) if self.lookups.waits(place.inode().device()) == Waits::No => {
                let found = FoundPath {
                    place,
                    waits: Waits::No,
                    occupant: None,
                };
                return Some((then, Ok(found)));
            }
            Some(Ok(_)) | None => {}
        }
        let id = if self.has_room() {
            self.lookups.find(thread, path, kind)
        } else {
            None
        };
        self.look(id, then).map(|then| (then, Err(Errno::EAGAIN)))
    }

    /// Has a call wait for the look-up `id`; gives it back where there is none.
    pub(super) fn look(
        &mut self,
        id: Option<u64>,
        then: CallContinuation,
    ) -> Option<CallContinuation> {
        let Some(id) = id else {
            return Some(then);
        };
        let until = Instant::now().checked_add(LOOKUP_TIME);
        self.looking.insert(id, Looking { then, until });
        None
    }

    /// Goes on with calls whose look-ups were answered.
    pub(super) fn serve_lookups(&mut self) {
        while let Some(LookupReply { id, result }) = self.lookups.receive() {
            // An answer that came too late is for nobody.
            if let Some(looking) = self.looking.remove(&id) {
                self.looked_up(looking.then, result);
            }
        }
    }

    fn looked_up(&mut self, then: CallContinuation, result: Result<Option<FoundPath>, Errno>) {
        match then {
            CallContinuation::Connect(notification, call_socket) => {
                let found = result.and_then(|found| found.ok_or(Errno::ECONNREFUSED));
                self.connect_found(notification, call_socket, found);
            }
            CallContinuation::Listen(notification, call_socket, backlog) => {
                self.listen_found(notification, call_socket, backlog, result.ok().flatten());
            }
            CallContinuation::Enter(knocking) => match result {
                Ok(_) => knocking.enter(),
                Err(Errno::EAGAIN) if knocking.blocking == Blocking::Yes => {
                    self.knocking.push(knocking);
                }
                Err(errno) => knocking.notification.fail(errno),
            },
            CallContinuation::Prove(notification, call_socket, Proof { place, connection }) => {
                if result.is_ok() && is_from_here(connection.as_fd()) {
                    self.own.take_back(call_socket.socket(), connection);
                    self.own.add_unix(place, Waits::Perhaps);
                }
                super::listen::conclude(notification, &call_socket, Ok(()));
            }
        }
    }

    /// Ends what waits for nobody, and what nobody answered.
    pub(super) fn tick_looking(&mut self, now: Instant) {
        let fates: Vec<(u64, WaitFate)> = self
            .looking
            .iter()
            .map(|(id, looking)| (*id, fate(looking.then.notification(), looking.until, now)))
            .filter(|(_, fate)| *fate != WaitFate::Wait)
            .collect();
        for (id, fate) in fates {
            let interruptible = |looking: &Looking| looking.then.is_interruptible();
            if fate == WaitFate::Interrupted && !self.looking.get(&id).is_some_and(interruptible) {
                continue;
            }
            let Some(Looking { then, .. }) = self.looking.remove(&id) else {
                continue;
            };
            match (fate, then) {
                (WaitFate::Interrupted, CallContinuation::Connect(notification, _)) => {
                    notification.interrupt();
                }
                (_, then) => self.looked_up(then, Err(Errno::ETIMEDOUT)),
            }
        }
    }
}
