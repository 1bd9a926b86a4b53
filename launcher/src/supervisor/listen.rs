//! `listen(2)` on behalf: loopback, granted addresses and Unix sockets. Whatever a socket
//! was bound to and by whom, here it is told whether it may listen there. The
//! kernel's Landlock right for binding does not cover a listen that binds by
//! itself: such a socket is bound to loopback first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::sys::socket::{Backlog, SockType, SockaddrStorage, UnixAddr, bind, getsockname, listen};
use outgate_handoff::CallQuestion;
use outgate_sys::socket::{AF_INET, AF_INET6, AF_UNIX, SOCK_SEQPACKET};

use super::Supervisor;
use super::bind::loopback;
use super::connect::errno_of;
use super::lookup::{CallContinuation, Proof};
use super::wait::Want;
use crate::call_socket::{CallSocket, CallSocketError, NOBODY_WAITS, give_up};
use crate::lookups::{FoundPath, Waits};
use crate::notification::{AnswerReached, Notification};
use crate::process::describe;
use crate::redirect::local_address;
use crate::seek::Whereabouts;
use crate::unix_inode::{Occupant, Resolved, occupant, prove, unconnected};

const TCP_CLOSE: u8 = 7;
const TCP_LISTEN: u8 = 10;

/// A listen that waits for the gateway.
#[derive(Debug)]
pub(super) struct ListenCall {
    socket: CallSocket,
    address: SocketAddr,
    backlog: i32,
}

impl Supervisor<'_> {
    pub(super) fn on_listen(&mut self, notification: Notification) {
        let call_socket =
            match CallSocket::shared(&mut self.last_thread, &notification, notification.int(0)) {
                Ok(call_socket) => call_socket,
                Err(CallSocketError::Command(errno)) => return notification.fail(errno),
                Err(CallSocketError::Refused) => return notification.fail(Errno::EACCES),
            };
        let family = match outgate_sys::socket::family(call_socket.socket()) {
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
            AF_UNIX
                if outgate_sys::socket::kind(call_socket.socket()).ok() == Some(SOCK_SEQPACKET) =>
            {
                notification.fail(Errno::EACCES);
            }
            AF_UNIX => self.listen_unix(notification, call_socket, backlog),
            AF_INET | AF_INET6 => self.listen_inet(notification, call_socket, backlog),
            _ => notification.fail(Errno::EOPNOTSUPP),
        }
    }

    /// A server of the command's own. It is known as such only when a connection
    /// of ours to the inode of its name is seen to end here: by numbers alone,
    /// another's socket could be taken for it. What cannot be proved is asked
    /// about like any other socket.
    fn listen_unix(&mut self, notification: Notification, call_socket: CallSocket, backlog: i32) {
        let name = getsockname::<UnixAddr>(call_socket.socket().as_raw_fd());
        // What is known of a socket that listens already stays as it is.
        let silent = !outgate_sys::socket::listens(call_socket.socket()).unwrap_or(true);
        let path = name
            .as_ref()
            .ok()
            .filter(|_| silent)
            .and_then(UnixAddr::path);
        let Some(path) = path else {
            let name = name.as_ref().ok().and_then(UnixAddr::as_abstract);
            return self.listen_named(notification, &call_socket, backlog, name);
        };
        let then = CallContinuation::Listen(notification, call_socket, backlog);
        let path = path.as_os_str().as_bytes();
        if let Some((CallContinuation::Listen(notification, call_socket, backlog), found)) =
            self.find(path, SockType::Stream, then)
        {
            self.listen_found(notification, call_socket, backlog, found.ok());
        }
    }

    /// Listens under an abstract name, or none that anybody could look up.
    fn listen_named(
        &mut self,
        notification: Notification,
        call_socket: &CallSocket,
        backlog: i32,
        name: Option<&[u8]>,
    ) {
        let result = listen_with(&notification, call_socket, backlog);
        if let (Ok(()), Some(name)) = (result, name) {
            let at = whereabouts(&notification);
            self.own.add_abstract(name, call_socket.socket(), at);
        }
        conclude(notification, call_socket, result);
    }

    /// Listens once it is known where the path leads. Who is found to listen there
    /// after this socket began to, and nobody did before, is most likely this socket;
    /// a stranger who was there before is never reached for the proof.
    pub(super) fn listen_found(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        backlog: i32,
        found: Option<FoundPath>,
    ) {
        let silent = found.filter(|found| {
            let occupant = || occupant(found.place.target.as_fd(), SockType::Stream);
            found.place.is_socket() && found.occupant.unwrap_or_else(occupant) == Occupant::Nobody
        });
        let result = listen_with(&notification, &call_socket, backlog);
        match silent.filter(|_| result.is_ok()) {
            Some(FoundPath {
                place,
                waits: Waits::Perhaps,
                ..
            }) => {
                self.prove_elsewhere(notification, call_socket, place);
            }
            silent => {
                if let Some(FoundPath { place, waits, .. }) = silent
                    && let Some(proof) = prove(place.target.as_fd())
                {
                    self.own.take_back(call_socket.socket(), proof);
                    self.own.add_unix(place, waits);
                }
                conclude(notification, &call_socket, result);
            }
        }
    }

    /// Proves that a socket of ours answers where a file system may have the proof
    /// wait; without one it is asked about.
    fn prove_elsewhere(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        place: Resolved,
    ) {
        let Some(connection) = unconnected() else {
            return conclude(notification, &call_socket, Ok(()));
        };
        let id = self
            .lookups
            .connect(connection.as_fd(), place.target.as_fd());
        let proof = Proof { place, connection };
        if let Some(CallContinuation::Prove(notification, call_socket, _)) = self.look(
            id,
            CallContinuation::Prove(notification, call_socket, proof),
        ) {
            conclude(notification, &call_socket, Ok(()));
        }
    }

    fn listen_inet(&mut self, notification: Notification, call_socket: CallSocket, backlog: i32) {
        match outgate_sys::socket::tcp_state(call_socket.socket()) {
            Ok(TCP_CLOSE) => {}
            // Listening again would change the length of the queue alone. It is
            // not worth a race with a thread that closes and binds meanwhile.
            Ok(TCP_LISTEN) => return notification.succeed(0),
            _ => return notification.fail(Errno::EINVAL),
        }
        // An unbound socket would be bound to every address of the machine.
        if let Err(errno) = bind_nearby(&notification, call_socket.socket()) {
            return notification.fail(errno);
        }
        let Some(address) = bound(call_socket.socket()) else {
            return notification.fail(Errno::EACCES);
        };
        let call = ListenCall {
            socket: call_socket,
            address,
            backlog,
        };
        if address.ip().is_loopback() {
            let is_granted = self.listen.iter().any(|grant| grant.covers(address));
            if !is_granted && self.own.is_beside_stranger(address) {
                return notification.fail(Errno::EADDRINUSE);
            }
            return self.listen_now(notification, &call);
        }
        let process = self.with_ancestors(&describe(notification.held().thread));
        let question = CallQuestion::Listen { address };
        self.ask(notification, question, process, Want::Listen(call));
    }

    pub(super) fn listen_now(&mut self, notification: Notification, call: &ListenCall) {
        if bound(call.socket.socket()) != Some(call.address) {
            return notification.fail(Errno::EINVAL);
        }
        let result = listen_with(&notification, &call.socket, call.backlog);
        if result.is_ok() {
            let at = whereabouts(&notification);
            self.own.add_tcp(call.address, call.socket.socket(), at);
        }
        conclude(notification, &call.socket, result);
    }
}

/// Binds a socket to loopback that has no address yet.
fn bind_nearby(caller: &Notification, socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let everywhere: IpAddr = match outgate_sys::socket::family(socket) {
        Ok(AF_INET6) => Ipv6Addr::UNSPECIFIED.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    };
    if local_address(socket).is_none_or(|address| address.port() != 0) {
        return Ok(());
    }
    if !caller.holds() {
        return Err(NOBODY_WAITS);
    }
    let near = loopback(socket, SocketAddr::new(everywhere, 0));
    match bind(socket.as_raw_fd(), &SockaddrStorage::from(near)) {
        // Another thread was faster: what it is bound to is looked at next.
        Ok(()) | Err(Errno::EINVAL) => Ok(()),
        Err(errno) => Err(errno),
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

fn listen_with(caller: &Notification, call_socket: &CallSocket, backlog: i32) -> Result<(), Errno> {
    // The kernel clamps any backlog to net.core.somaxconn.
    let backlog = Backlog::new(backlog).unwrap_or(Backlog::MAXALLOWABLE);
    if caller.holds() {
        listen(&call_socket.socket(), backlog)
    } else {
        Err(NOBODY_WAITS)
    }
}

/// Where the socket is that a call names by its first argument.
fn whereabouts(notification: &Notification) -> Whereabouts {
    Whereabouts {
        thread: notification.held().thread,
        number: notification.int(0),
    }
}

pub(super) fn conclude(
    notification: Notification,
    call_socket: &CallSocket,
    result: Result<(), Errno>,
) {
    let reached = notification.conclude(result);
    if reached == AnswerReached::Nobody && result.is_ok() {
        give_up(call_socket.socket());
    }
}
