//! `listen(2)` on behalf: loopback, granted addresses and Unix sockets. The
//! kernel's Landlock right for binding does not cover a listen that binds by
//! itself, so this call is held.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{Backlog, SockaddrStorage, bind, listen};
use outgate_handoff::Question;
use outgate_sys::socket::{AF_INET, AF_INET6, AF_UNIX, SOCK_SEQPACKET};

use super::Supervisor;
use super::connect::errno_of;
use super::wait::Want;
use crate::grip::{Grip, GripError};
use crate::notification::Notification;
use crate::process::describe;
use crate::redirect::local_address;

const TCP_CLOSE: u8 = 7;
const TCP_LISTEN: u8 = 10;

/// A listen that waits for the gateway.
#[derive(Debug)]
pub(super) struct ListenCall {
    grip: Grip,
    address: SocketAddr,
    backlog: i32,
}

impl Supervisor<'_> {
    pub(super) fn on_listen(&mut self, notification: Notification) {
        let grip = match Grip::shared(&mut self.last_thread, &notification, notification.int(0)) {
            Ok(grip) => grip,
            Err(GripError::Command(errno)) => return notification.fail(errno),
            Err(GripError::Refused) => return notification.fail(Errno::EACCES),
        };
        let family = match outgate_sys::socket::family(grip.socket()) {
            Ok(family) => family,
            Err(error) => return notification.fail(errno_of(&error)),
        };
        if !notification.holds() {
            return;
        }
        let backlog = notification.int(1);
        match family {
            // By this type outgate's own programs know one another: the kernel
            // would name us as who listens, and what answers would be believed.
            AF_UNIX if outgate_sys::socket::kind(grip.socket()).ok() == Some(SOCK_SEQPACKET) => {
                notification.fail(Errno::EACCES);
            }
            AF_UNIX => {
                let result = listen_with(&grip, backlog);
                if result.is_ok() {
                    self.own.add_unix(grip.socket());
                }
                conclude(notification, result);
            }
            AF_INET | AF_INET6 => self.listen_inet(notification, grip, backlog),
            _ => notification.fail(Errno::EOPNOTSUPP),
        }
    }

    fn listen_inet(&mut self, notification: Notification, grip: Grip, backlog: i32) {
        match outgate_sys::socket::tcp_state(grip.socket()) {
            Ok(TCP_CLOSE) => {}
            // Listening again would change the length of the queue alone. It is
            // not worth a race with a thread that closes and binds meanwhile.
            Ok(TCP_LISTEN) => return notification.succeed(0),
            _ => return notification.fail(Errno::EINVAL),
        }
        // An unbound socket would be bound to every address of the machine.
        let Some(address) = bound(grip.socket()) else {
            return notification.fail(Errno::EACCES);
        };
        let call = ListenCall {
            grip,
            address,
            backlog,
        };
        if address.ip().is_loopback() {
            return self.listen_now(notification, &call);
        }
        let process = self.with_ancestors(&describe(notification.held().thread));
        let question = Question::Listen { address };
        self.ask(notification, question, process, Want::Listen(call));
    }

    pub(super) fn listen_now(&mut self, notification: Notification, call: &ListenCall) {
        if bound(call.grip.socket()) != Some(call.address) {
            return notification.fail(Errno::EINVAL);
        }
        let result = listen_with(&call.grip, call.backlog);
        if result.is_ok() {
            self.own.add_tcp(call.address, call.grip.socket());
        }
        conclude(notification, result);
    }
}

/// The address of a closed socket that is bound, and stays so until it listens.
///
/// RACE: other threads may shut the socket down or bind it all the while.
/// getsockname(2) still tells the address of a bind that was dissolved, so only
/// the kernel's refusal to bind again proves one. It refuses for another state
/// too; but from the closed state only connect(2) and listen(2) lead away, which
/// we alone perform. What is closed and bound after that refusal remains so.
fn bound(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    let named = || local_address(socket).filter(|address| address.port() != 0);
    if outgate_sys::socket::tcp_state(socket).ok()? != TCP_CLOSE || named().is_none() {
        return None;
    }
    let anywhere_near = match outgate_sys::socket::family(socket).ok()? {
        AF_INET6 => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
        _ => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    match bind(socket.as_raw_fd(), &SockaddrStorage::from(anywhere_near)) {
        Err(Errno::EINVAL) => named(),
        _ => None,
    }
}

fn listen_with(grip: &Grip, backlog: i32) -> Result<(), Errno> {
    // The kernel clamps any backlog to net.core.somaxconn.
    let backlog = Backlog::new(backlog).unwrap_or(Backlog::MAXALLOWABLE);
    listen(&grip.socket(), backlog)
}

fn conclude(notification: Notification, result: Result<(), Errno>) {
    match result {
        Ok(()) => notification.succeed(0),
        Err(errno) => notification.fail(errno),
    }
}
