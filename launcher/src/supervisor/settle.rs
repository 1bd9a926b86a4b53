//! Connections to the sandbox's own TCP servers that are not made yet, and the end
//! of such servers. A server whose queue is full drops a connection's first packet,
//! which is sent again a second later: until then its port must stay its own.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{Shutdown, shutdown};

use super::Supervisor;
use super::connect::{Call, errno_of};
use crate::call_socket::{CallSocket, CallSocketError, NOBODY_WAITS, give_up};
use crate::notification::Notification;
use crate::own::{KeptListener, ListenerSearch};

const TCP_SYN_SENT: u8 = 2;
/// How long a connection may be on its way, longer than the kernel tries by default
/// (tcp(7), `tcp_syn_retries`).
const SETTLING_TIME: Duration = Duration::from_mins(3);

/// A connection on its way to a server of the sandbox's own, which nobody waits for.
#[derive(Debug)]
pub(super) struct Settling {
    socket: OwnedFd,
    listener: KeptListener,
    until: Option<Instant>,
}

/// Whether a connection's first packet may still be on its way.
fn is_on_its_way(socket: BorrowedFd<'_>) -> bool {
    matches!(
        outgate_sys::socket::tcp_state(socket),
        Ok(TCP_SYN_SENT) | Err(_)
    )
}

impl Supervisor<'_> {
    /// Where a listener of the sandbox's own is looked for.
    pub(super) fn near(&self, notification: &Notification) -> ListenerSearch {
        ListenerSearch {
            caller: notification.held().thread,
            root: self.root,
        }
    }

    /// To be called before a call to one of the sandbox's own servers ends: keeps
    /// the server's socket as long as the connection is on its way. Without room for
    /// that, the connection is ended.
    pub(super) fn settle(&mut self, call: &mut Call) {
        let Some(listener) = call.listener.take() else {
            return;
        };
        let socket = call.socket.socket();
        if !is_on_its_way(socket) {
            return;
        }
        match socket.try_clone_to_owned() {
            Ok(socket) if self.has_room() => self.settling.push(Settling {
                socket,
                listener,
                until: Instant::now().checked_add(SETTLING_TIME),
            }),
            _ => give_up(socket),
        }
    }

    /// Lets go of servers whose connections are made or failed. Where a server is
    /// gone, nobody will ever make them.
    pub(super) fn tick_settling(&mut self, now: Instant) {
        self.settling.retain(|settling| {
            let socket = settling.socket.as_fd();
            let on_its_way = is_on_its_way(socket);
            let late = settling.until.is_none_or(|until| now >= until);
            let ends = late || on_its_way && !settling.listener.is_served();
            if on_its_way && ends {
                give_up(socket);
            }
            on_its_way && !ends
        });
    }

    /// `shutdown(2)` of more than sending: on behalf, since it ends a listener and
    /// lets go of its port, which must not happen while a connection to it is made.
    pub(super) fn on_shutdown(&mut self, notification: Notification) {
        let number = notification.int(0);
        let call_socket = match CallSocket::shared(&mut self.last_thread, &notification, number) {
            Ok(call_socket) => call_socket,
            Err(CallSocketError::Command(errno)) => return notification.fail(errno),
            // An unreadable program's: whose it is and who is on the way to it, nobody sees.
            Err(CallSocketError::Refused) if self.last_thread.has_worked() => {
                return notification.fail(Errno::EACCES);
            }
            // Where no socket can be copied, no server is known either.
            Err(CallSocketError::Refused) => return notification.pass(),
        };
        let socket = call_socket.socket();
        if let Err(error) = outgate_sys::socket::kind(socket) {
            return notification.fail(errno_of(&error));
        }
        let how = match notification.int(1) {
            0 => Shutdown::Read,
            2 => Shutdown::Both,
            _ => return notification.fail(Errno::EINVAL),
        };
        if !notification.holds() {
            return;
        }
        self.end_connections_to(socket);
        let result = if notification.holds() {
            shutdown(socket.as_raw_fd(), how)
        } else {
            Err(NOBODY_WAITS)
        };
        notification.conclude(result);
    }

    /// Ends what is on its way to a listener that is about to end.
    pub(super) fn end_connections_to(&self, listener: BorrowedFd<'_>) {
        if !outgate_sys::socket::listens(listener).unwrap_or(true) {
            return;
        }
        let Ok(cookie) = outgate_sys::socket::cookie(listener) else {
            return;
        };
        let waiting = self.connecting.iter().filter_map(|waiting| {
            let listener = waiting.call.listener.as_ref()?;
            Some((listener, waiting.socket()))
        });
        let settling = self.settling.iter();
        let settling = settling.map(|settling| (&settling.listener, settling.socket.as_fd()));
        for (to, socket) in waiting.chain(settling) {
            if to.cookie() == cookie {
                give_up(socket);
            }
        }
    }
}
