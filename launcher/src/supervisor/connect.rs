//! One held `connect(2)`: copy the address once, take hold of the socket, ask
//! what may happen, do it on behalf, answer with the kernel's own result.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, connect, getpeername};
use outgate_handoff::{Ask, CallQuestion, Decision, FlowFrame, ProcessFacts, ToGateway};
use outgate_sys::socket::{AF_INET, AF_INET6, AF_UNIX, IPPROTO_TCP, SOCK_DGRAM, SOCK_STREAM};

use super::wait::{Arriving, Connecting, GatewayAnswer, Want};
use super::{ANSWER_TIMEOUT, Once, Supervisor};
use crate::address::{self, Address, Family};
use crate::call_socket::{Begun, CallSocket, CallSocketError, perform};
use crate::gateway_link::descriptors;
use crate::limits::SOCKADDR_BYTES_MAX;
use crate::notification::{AnswerReached, Notification};
use crate::own::KeptListener;
use crate::process::{ancestors, describe};
use crate::redirect::{ListenerKind, Mapped, OwnConnection, RedirectPeer, local_address};
use crate::sealed::Blocking;

/// How long a completed loopback connection may take to be accepted.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A TCP connection the command asks for.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) socket: CallSocket,
    pub(super) mapped: Mapped,
    pub(super) only_v6: Only,
    pub(super) destination: SocketAddr,
    pub(super) process: ProcessFacts,
    /// The listener of the sandbox's own that this goes to: held until no packet of
    /// the connection could reach anybody who had its port after it.
    pub(super) listener: Option<KeptListener>,
}

/// Whether an IPv6 socket takes IPv4 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// IPv6 alone.
    V6,
    /// Both, or an IPv4 socket.
    Both,
}

/// Copies the address argument, once.
///
/// # Errors
/// `EINVAL` for lengths the kernel refuses, `EFAULT` for memory that is not
/// there.
pub(super) fn copy_address(notification: &Notification) -> Result<Vec<u8>, Errno> {
    let length = address::claimed_length(notification.int(2))?;
    let mut bytes = [0_u8; SOCKADDR_BYTES_MAX];
    let buffer = bytes.get_mut(..length).ok_or(Errno::EINVAL)?;
    let thread = notification.held().thread;
    let copied = outgate_sys::memory::copy(thread, notification.word(1), buffer).map_err(
        |error| match error.raw_os_error() {
            // A process whose memory we may not read: an unreadable program.
            Some(errno) if errno == Errno::EPERM as i32 => Errno::EACCES,
            _ => Errno::EFAULT,
        },
    )?;
    if copied != length {
        return Err(Errno::EFAULT);
    }
    Ok(buffer.to_vec())
}

impl Supervisor<'_> {
    pub(super) fn on_connect(&mut self, notification: Notification) {
        let number = notification.int(0);
        let call_socket = match CallSocket::shared(&mut self.last_thread, &notification, number) {
            Ok(call_socket) => Some(call_socket),
            Err(CallSocketError::Command(errno)) => return notification.fail(errno),
            Err(CallSocketError::Refused) => None,
        };
        let family = match call_socket
            .as_ref()
            .map(|call_socket| outgate_sys::socket::family(call_socket.socket()))
        {
            Some(Ok(family)) => family,
            Some(Err(error)) => return notification.fail(errno_of(&error)),
            None => -1,
        };
        let copied = copy_address(&notification);
        // What was copied and duplicated is the caller's own only if it still
        // waits; otherwise there is nobody to answer.
        if !notification.holds() {
            return;
        }
        let parsed = copied.and_then(|bytes| address::parse(&bytes));
        let address = match parsed {
            Ok(address) => address,
            Err(errno) => return notification.fail(errno),
        };
        match call_socket {
            Some(call_socket) => self.connect_shared(notification, (call_socket, family), address),
            None => self.connect_fresh(notification, number, &address),
        }
    }

    /// Dispatches on what the socket itself says it is.
    fn connect_shared(
        &mut self,
        notification: Notification,
        (call_socket, family): (CallSocket, i32),
        address: Address,
    ) {
        let socket = call_socket.socket();
        let kind = outgate_sys::socket::kind(socket).unwrap_or(-1);
        match (family, kind, address) {
            (AF_INET | AF_INET6, SOCK_STREAM | SOCK_DGRAM, Address::Unspecified) => {
                // A listener that is disconnected lets go of its port.
                self.end_connections_to(socket);
                let disconnect = || outgate_sys::socket::disconnect(socket);
                match perform(&notification, socket, || {
                    disconnect().map_err(|e| errno_of(&e))
                }) {
                    Ok(()) => notification.succeed(0),
                    Err(errno) => notification.fail(errno),
                }
            }
            (
                AF_INET | AF_INET6,
                SOCK_STREAM,
                Address::Inet {
                    family: written,
                    destination,
                },
            ) => {
                if (family == AF_INET6) != (written == Family::V6) {
                    return notification.fail(Errno::EAFNOSUPPORT);
                }
                if outgate_sys::socket::protocol(socket).ok() != Some(IPPROTO_TCP) {
                    return notification.fail(Errno::EPROTONOSUPPORT);
                }
                self.connect_inet(notification, call_socket, family, destination);
            }
            (AF_INET | AF_INET6, SOCK_DGRAM, Address::Inet { destination, .. }) => {
                self.connect_datagram(notification, socket, family, destination);
            }
            (AF_UNIX, _, Address::Path(path)) => {
                self.connect_path(notification, call_socket, &path);
            }
            (AF_UNIX, _, Address::Abstract(name)) => {
                self.connect_abstract(notification, call_socket, &name);
            }
            (AF_UNIX, _, _) => notification.fail(Errno::EINVAL),
            (AF_INET | AF_INET6, _, _) => notification.fail(Errno::EAFNOSUPPORT),
            _ => notification.fail(Errno::EACCES),
        }
    }

    /// The way without duplicates: only TCP connections can be made on behalf.
    fn connect_fresh(&mut self, notification: Notification, number: i32, address: &Address) {
        if self.said.replaced == Once::No {
            self.said.replaced = Once::Yes;
            self.voice.say(
                "outgate: this machine refuses pidfd_open or pidfd_getfd (a container's profile): sockets are replaced at connect; \
                 programs that poll before they connect, servers and Unix sockets will not work",
            );
        }
        let Address::Inet {
            family,
            destination,
        } = *address
        else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        match CallSocket::fresh(&notification, number, family) {
            Ok(call_socket) => {
                let family = match family {
                    Family::V4 => AF_INET,
                    Family::V6 => AF_INET6,
                };
                self.connect_inet(notification, call_socket, family, destination);
            }
            Err(CallSocketError::Command(errno)) => notification.fail(errno),
            Err(CallSocketError::Refused) => notification.fail(Errno::EACCES),
        }
    }

    fn connect_inet(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        family: i32,
        destination: SocketAddr,
    ) {
        let socket = call_socket.socket();
        if let Ok(peer) = getpeername::<SockaddrStorage>(socket.as_raw_fd()) {
            return again(notification, socket, &peer);
        }
        if destination.port() == 0 || self.redirect.owns(destination) || !self.has_room() {
            return notification.fail(Errno::ECONNREFUSED);
        }
        let only_v6 = family == AF_INET6 && outgate_sys::socket::only_v6(socket).unwrap_or(false);
        let call = Call {
            mapped: if family == AF_INET6 {
                Mapped::Yes
            } else {
                Mapped::No
            },
            only_v6: if only_v6 { Only::V6 } else { Only::Both },
            destination,
            process: describe(notification.held().thread),
            listener: self.own.tcp_listener(destination, self.near(&notification)),
            socket: call_socket,
        };
        if let Some(listener) = &call.listener {
            let address = listener.address();
            return self.connect_direct(notification, call, vec![address]);
        }
        if self.own.is_beside(destination) {
            return notification.fail(Errno::ECONNREFUSED);
        }
        match self.remembered(&call) {
            Some(decision) => self.enact(notification, call, decision),
            None => self.ask_connect(notification, call),
        }
    }

    pub(super) fn ask_connect(&mut self, notification: Notification, call: Call) {
        let question = CallQuestion::Connect {
            destination: call.destination,
        };
        let process = self.with_ancestors(&call.process);
        self.ask(notification, question, process, Want::Connect(call));
    }

    /// Who asks, with the ancestors inside the sandbox.
    pub(super) fn with_ancestors(&self, process: &ProcessFacts) -> ProcessFacts {
        let parent = self.last_thread.parent(process.pid);
        ProcessFacts {
            parents: ancestors(parent, self.root),
            ..process.clone()
        }
    }

    /// Sends a question and lets the call wait for the answer. Who asks was read
    /// before: it is the caller if that waits still, and otherwise nobody asks.
    pub(super) fn ask(
        &mut self,
        notification: Notification,
        question: CallQuestion,
        process: ProcessFacts,
        want: Want,
    ) {
        if !notification.holds() {
            return;
        }
        self.attach_again();
        if self.link.gone().is_some() || !self.has_room() {
            self.notice_gateway();
            return notification.fail(Errno::ECONNREFUSED);
        }
        let hold = self.hold_form(&want);
        let id = self.next_question;
        self.next_question = self.next_question.wrapping_add(1);
        let until = Instant::now().checked_add(ANSWER_TIMEOUT);
        self.asked.insert(
            id,
            GatewayAnswer {
                notification,
                want,
                until,
            },
        );
        let ask = Ask {
            question,
            process,
            hold,
        };
        self.tell(&ToGateway::Ask(id, ask), Vec::new());
    }

    /// Does what was decided.
    pub(super) fn enact(&mut self, notification: Notification, call: Call, decision: Decision) {
        match decision {
            Decision::Deny => notification.fail(Errno::ECONNREFUSED),
            Decision::Redirect => self.connect_redirected(notification, call),
            Decision::Direct(addresses) => self.connect_direct(notification, call, addresses),
        }
    }

    /// Connects the socket to a private listener.
    fn connect_redirected(&mut self, notification: Notification, call: Call) {
        let kinds: &[ListenerKind] = match (call.only_v6, call.mapped) {
            (Only::V6, _) => &[ListenerKind::V6],
            (Only::Both, Mapped::Yes) => &[ListenerKind::V4, ListenerKind::V6],
            (Only::Both, Mapped::No) => &[ListenerKind::V4],
        };
        let mut failure = Errno::ECONNREFUSED;
        for kind in kinds {
            let Ok(private) = self.redirect.listener(*kind) else {
                continue;
            };
            match private.attract(&notification, &call.socket, call.mapped) {
                Ok(begun) => return self.await_arrival(notification, call, (*kind, begun)),
                Err(errno) => failure = errno,
            }
        }
        notification.fail(failure);
    }

    fn await_arrival(
        &mut self,
        notification: Notification,
        call: Call,
        (kind, begun): (ListenerKind, (Begun, Blocking)),
    ) {
        let Some(local) = local_address(call.socket.socket()) else {
            return notification.fail(Errno::ECONNREFUSED);
        };
        self.arriving.push(Arriving {
            notification,
            call,
            kind,
            caller: RedirectPeer::Tcp(local),
            begun,
            until: Instant::now().checked_add(ARRIVAL_TIMEOUT),
        });
        self.accept_arrivals();
    }

    /// Accepts what waits at the private listeners and hands it over.
    pub(super) fn accept_arrivals(&mut self) {
        for kind in [ListenerKind::V4, ListenerKind::V6] {
            loop {
                let mut matched = None;
                let arriving = &self.arriving;
                let Some(private) = self.redirect.existing(kind) else {
                    break;
                };
                let accepted = private.accept(|caller| {
                    matched = arriving
                        .iter()
                        .position(|waiting| waiting.kind == kind && waiting.caller == *caller);
                    if matched.is_some() {
                        OwnConnection::Yes
                    } else {
                        OwnConnection::No
                    }
                });
                let (Some(accepted), Some(index)) = (accepted, matched) else {
                    break;
                };
                let arrived = self.arriving.swap_remove(index);
                self.hand_over(arrived, accepted);
                // Whoever else waits there shows up in the next poll.
                if self.arriving.is_empty() {
                    return;
                }
            }
        }
    }

    fn hand_over(&mut self, arrived: Arriving, accepted: OwnedFd) {
        let Call {
            socket: call_socket,
            destination,
            process,
            ..
        } = arrived.call;
        let question = CallQuestion::Connect { destination };
        let flow = ToGateway::Flow(FlowFrame { question, process });
        // The command goes on first: what it writes waits in its socket. If the
        // gateway is gone or we die, the other end closes, and it reads the end.
        let reached = match (&call_socket, arrived.begun) {
            (CallSocket::Shared(_), (_, Blocking::No)) => {
                call_socket.under_way(arrived.notification)
            }
            (_, (begun, _)) => call_socket.conclude(arrived.notification, begun),
        };
        if reached == AnswerReached::Caller {
            self.tell(&flow, descriptors([accepted]));
        }
    }

    /// Connects the socket to the first address that answers.
    pub(super) fn connect_direct(
        &mut self,
        notification: Notification,
        mut call: Call,
        addresses: Vec<SocketAddr>,
    ) {
        let mut failure = Errno::ENETUNREACH;
        let mut rest = addresses.into_iter();
        while let Some(address) = rest.next() {
            let Some(address) = call.reachable(address) else {
                continue;
            };
            match attempt(&notification, &call.socket, address) {
                Ok((Begun::Made, _)) => {
                    self.settle(&mut call);
                    call.socket.conclude(notification, Begun::Made);
                    return;
                }
                Ok((Begun::Underway, blocking)) => {
                    let waiting = (call, rest.collect());
                    return self.await_connection(notification, waiting, blocking);
                }
                Err(Errno::EALREADY) => {
                    let blocking = call.socket.blocking();
                    let waiting = (call, rest.collect());
                    return self.await_connection(notification, waiting, blocking);
                }
                Err(errno) => failure = errno,
            }
        }
        notification.fail(failure);
    }

    fn await_connection(
        &mut self,
        notification: Notification,
        (mut call, rest): (Call, Vec<SocketAddr>),
        blocking: Blocking,
    ) {
        if let (CallSocket::Shared(_), Blocking::No) = (&call.socket, blocking) {
            self.settle(&mut call);
            call.socket.under_way(notification);
            return;
        }
        let timeout = outgate_sys::socket::send_timeout_us(call.socket.socket()).unwrap_or(0);
        let until = (timeout > 0)
            .then(|| Instant::now().checked_add(Duration::from_micros(timeout)))
            .flatten();
        self.connecting.push(Connecting {
            notification,
            call,
            rest,
            until,
        });
    }

    /// A direct connection that poll reported: made, failed, or to be tried
    /// with the next address.
    pub(super) fn connected(&mut self, mut waiting: Connecting) {
        let error = outgate_sys::socket::take_error(waiting.socket()).unwrap_or(-1);
        if error == 0 {
            self.settle(&mut waiting.call);
            let call_socket = waiting.call.socket;
            call_socket.conclude(waiting.notification, Begun::Underway);
            return;
        }
        if waiting.rest.is_empty() {
            return waiting.notification.fail(Errno::from_raw(error));
        }
        self.connect_direct(waiting.notification, waiting.call, waiting.rest);
    }
}

impl Call {
    /// The address in the form this socket takes, if it takes it at all.
    fn reachable(&self, address: SocketAddr) -> Option<SocketAddr> {
        match (address, self.mapped, self.only_v6) {
            (SocketAddr::V4(_), _, Only::V6) | (SocketAddr::V6(_), Mapped::No, _) => None,
            (address, mapped, Only::Both | Only::V6) => Some(mapped.apply(address)),
        }
    }
}

/// A connect on a socket that is connected: the kernel says 0 to the first one
/// after `EINPROGRESS` and `EISCONN` to others. It is asked with the address the
/// socket has already, which was judged, so nothing can come of a race.
fn again(notification: Notification, socket: BorrowedFd<'_>, peer: &SockaddrStorage) {
    match perform(&notification, socket, || connect(socket.as_raw_fd(), peer)) {
        Ok(()) => notification.succeed(0),
        // The command has made it wait.
        Err(Errno::EINTR) => notification.fail(Errno::EALREADY),
        Err(errno) => notification.fail(errno),
    }
}

/// One connect that never waits.
fn attempt(
    caller: &Notification,
    call_socket: &CallSocket,
    address: SocketAddr,
) -> Result<(Begun, Blocking), Errno> {
    let address = SockaddrStorage::from(address);
    call_socket.begin(caller, |socket| connect(socket.as_raw_fd(), &address))
}

/// The errno of an error from a system call.
pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)
}
