//! `connect(2)` to a Unix socket: the sandbox's own servers directly, granted
//! ones through the gateway, which relays bytes and nothing else, so that no
//! descriptor is ever passed in.
//!
//! A path is resolved once, to an inode, and the inode is what is judged and
//! connected to.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{SockType, UnixAddr};
use outgate_handoff::{CallQuestion, FlowFrame, ProcessFacts, ToGateway};
use outgate_sys::socket::SOCK_STREAM;

use super::Supervisor;
use super::lookup::CallContinuation;
use super::wait::{Knocking, Want};
use crate::call_socket::{Begun, CallSocket, give_up, perform};
use crate::gateway_link::descriptors;
use crate::lookups::{FoundPath, Waits};
use crate::notification::{AnswerReached, Notification};
use crate::own::UnixServer;
use crate::process::describe;
use crate::redirect::{ListenerKind, Mapped, OwnConnection, RedirectPeer};
use crate::sealed::Blocking;
use crate::unix_inode::{Occupant, connect_to, connect_unix, is_from_here, occupant};

/// Name services that the C library tries before it asks DNS: absent for the
/// command, without a word.
const NAME_SERVICES: [&[u8]; 6] = [
    b"/run/nscd/socket",
    b"/var/run/nscd/socket",
    b"/run/.nscd_socket",
    b"/run/systemd/resolve/io.systemd.Resolve",
    b"/run/systemd/userdb/io.systemd.DynamicUser",
    b"/run/systemd/userdb/io.systemd.Multiplexer",
];

/// Whether Unix sockets outside the sandbox can be reached at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsideSockets {
    /// Some rule grants one.
    Granted,
    /// None does.
    Closed,
}

/// A connection to a Unix socket outside the sandbox.
#[derive(Debug)]
pub(super) struct UnixCall {
    socket: CallSocket,
    target: Option<OwnedFd>,
    path: Vec<u8>,
    process: ProcessFacts,
}

impl UnixCall {
    /// Whether its caller waits for the call.
    pub(super) fn blocking(&self) -> Blocking {
        self.socket.blocking()
    }
}

impl Knocking {
    /// Answers a call that found room.
    pub(super) fn enter(self) {
        if self.notification.conclude(Ok(())) == AnswerReached::Nobody {
            give_up(self.socket.as_fd());
        }
    }
}

impl Supervisor<'_> {
    pub(super) fn connect_path(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        path: &[u8],
    ) {
        if NAME_SERVICES.contains(&path) {
            return notification.fail(Errno::ENOENT);
        }
        let kind = kind_of(&call_socket);
        let then = CallContinuation::Connect(notification, call_socket);
        if let Some((CallContinuation::Connect(notification, call_socket), found)) =
            self.find(path, kind, then)
        {
            self.connect_found(notification, call_socket, found);
        }
    }

    /// Goes on once it is known what the path leads to.
    pub(super) fn connect_found(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        found: Result<FoundPath, Errno>,
    ) {
        let found = match found {
            Ok(found) => found,
            Err(errno) => return notification.fail(errno),
        };
        if !notification.holds() {
            return;
        }
        let place = found.place;
        if NAME_SERVICES.contains(&place.path.as_slice()) {
            return notification.fail(Errno::ENOENT);
        }
        if !place.is_socket() {
            return notification.fail(Errno::ECONNREFUSED);
        }
        if let Some(server) = self.own.unix_server(place.inode()) {
            return self.connect_own(notification, call_socket, server);
        }
        // What a server left behind is nothing that could be allowed or denied.
        let occupant = || occupant(place.target.as_fd(), kind_of(&call_socket));
        if self.outside == OutsideSockets::Closed
            && found.occupant.unwrap_or_else(occupant) == Occupant::Nobody
        {
            return notification.fail(Errno::ECONNREFUSED);
        }
        let call = UnixCall {
            socket: call_socket,
            target: Some(place.target),
            path: place.path,
            process: describe(notification.held().thread),
        };
        self.ask_unix(notification, call);
    }

    pub(super) fn connect_abstract(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        name: &[u8],
    ) {
        let near = self.near(&notification);
        // Held until the connection is made: so long the name is nobody else's.
        if let Some(_listener) = self.own.abstract_listener(name, near) {
            let Ok(address) = UnixAddr::new_abstract(name) else {
                return notification.fail(Errno::EINVAL);
            };
            // A full backlog is refused rather than waited for: an abstract name
            // gives nothing to hold on to meanwhile.
            let result = call_socket.begin(&notification, |socket| connect_unix(socket, &address));
            return match result {
                // The kernel says who answered.
                Ok(_) if !is_from_here(call_socket.socket()) => {
                    give_up(call_socket.socket());
                    notification.fail(Errno::ECONNREFUSED);
                }
                Ok((begun, _)) => {
                    call_socket.conclude(notification, begun);
                }
                Err(errno) => notification.fail(errno),
            };
        }
        let mut path = b"@".to_vec();
        path.extend(name);
        let call = UnixCall {
            socket: call_socket,
            target: None,
            path,
            process: describe(notification.held().thread),
        };
        self.ask_unix(notification, call);
    }

    fn ask_unix(&mut self, notification: Notification, call: UnixCall) {
        let process = self.with_ancestors(&call.process);
        let question = CallQuestion::Unix {
            path: call.path.clone(),
        };
        self.ask(notification, question, process, Want::Unix(call));
    }

    /// One of the sandbox's own servers, by its inode.
    fn connect_own(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        server: UnixServer,
    ) {
        let blocking = call_socket.blocking();
        let CallSocket::Shared(socket) = call_socket else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        let timeout = outgate_sys::socket::send_timeout_us(socket.as_fd()).unwrap_or(0);
        let until = (timeout > 0)
            .then(|| Instant::now().checked_add(std::time::Duration::from_micros(timeout)))
            .flatten();
        let knocking = Knocking {
            notification,
            socket,
            server,
            blocking,
            until,
        };
        self.knock(knocking);
    }

    /// Tries a connection that may find the backlog full, and waits if it is.
    pub(super) fn knock(&mut self, knocking: Knocking) {
        if knocking.server.waits == Waits::Perhaps {
            return self.knock_elsewhere(knocking);
        }
        match try_knock(&knocking) {
            Ok(()) => knocking.enter(),
            Err(Errno::EAGAIN) if knocking.blocking == Blocking::Yes => {
                self.knocking.push(knocking);
            }
            Err(errno) => knocking.notification.fail(errno),
        }
    }

    /// The same where a file system may have it wait.
    fn knock_elsewhere(&mut self, knocking: Knocking) {
        if !knocking.notification.holds() {
            return;
        }
        let (socket, target) = (knocking.socket.as_fd(), knocking.server.target.as_fd());
        let id = self.lookups.connect(socket, target);
        if let Some(CallContinuation::Enter(knocking)) =
            self.look(id, CallContinuation::Enter(knocking))
        {
            knocking.notification.fail(Errno::EAGAIN);
        }
    }

    /// A granted server: connect to our own listener, hand the other end over.
    pub(super) fn connect_relayed(&mut self, notification: Notification, call: UnixCall) {
        let socket = call.socket.socket();
        if outgate_sys::socket::kind(socket).ok() != Some(SOCK_STREAM) {
            return notification.fail(Errno::EPROTOTYPE);
        }
        let attracted = match self.redirect.listener(ListenerKind::Unix) {
            Ok(private) => private.attract(&notification, &call.socket, Mapped::No),
            Err(_) => Err(Errno::ECONNREFUSED),
        };
        let begun = match attracted {
            Ok((begun, _)) => begun,
            Err(errno) => return notification.fail(errno),
        };
        // The connection waits at the listener already, and the process that
        // made it is ourselves. All such connections look alike, so none may
        // stay there: if this one is not found, the listener goes.
        let ourselves = i32::try_from(std::process::id()).unwrap_or(-1);
        let accepted = self
            .redirect
            .existing(ListenerKind::Unix)
            .and_then(|private| {
                private.accept(|caller| match caller {
                    RedirectPeer::Process(pid) if *pid == ourselves => OwnConnection::Yes,
                    RedirectPeer::Process(_) | RedirectPeer::Tcp(_) => OwnConnection::No,
                })
            });
        if let Some(accepted) = accepted {
            self.hand_over_unix(notification, call, (accepted, begun));
        } else {
            self.redirect.forget_unix();
            notification.fail(Errno::ECONNREFUSED);
        }
    }

    fn hand_over_unix(
        &mut self,
        notification: Notification,
        call: UnixCall,
        (accepted, begun): (OwnedFd, Begun),
    ) {
        let UnixCall {
            socket: call_socket,
            target,
            path,
            process,
        } = call;
        let Some(target) = target else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        let question = CallQuestion::Unix { path };
        let flow = ToGateway::Flow(FlowFrame { question, process });
        if call_socket.conclude(notification, begun) == AnswerReached::Caller {
            self.tell(&flow, descriptors([accepted, target]));
        }
    }
}

fn try_knock(knocking: &Knocking) -> Result<(), Errno> {
    let socket = knocking.socket.as_fd();
    perform(&knocking.notification, socket, || {
        connect_to(socket, knocking.server.target.as_fd())
    })
}

fn kind_of(call_socket: &CallSocket) -> SockType {
    match outgate_sys::socket::kind(call_socket.socket()) {
        Ok(SOCK_STREAM) => SockType::Stream,
        _ => SockType::SeqPacket,
    }
}
