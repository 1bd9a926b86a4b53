//! Datagram sockets: made inside the sealed namespace, never outside.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, connect};
use outgate_handoff::ToGateway;
use outgate_sys::seccomp::OnExec;
use outgate_sys::socket::{AF_INET6, SOCK_CLOEXEC, SOCK_NONBLOCK};

use super::{Once, Supervisor};
use crate::address::Family;
use crate::call_socket::perform;
use crate::notification::Notification;
use crate::options::Summary;
use crate::redirect::Mapped;
use crate::sealed::{Blocking, HelperReply, HelperRequest, SealedNetwork};

/// A call that waits for its socket.
#[derive(Debug)]
pub(super) struct Asker {
    notification: Notification,
    on_exec: OnExec,
}

impl Supervisor<'_> {
    /// `socket(AF_INET or AF_INET6, SOCK_DGRAM)`; the filter holds no other.
    pub(super) fn on_socket(&mut self, notification: Notification) {
        let family = if notification.int(0) == AF_INET6 {
            Family::V6
        } else {
            Family::V4
        };
        let flags = notification.int(1);
        let request = HelperRequest {
            family,
            blocking: if flags & SOCK_NONBLOCK == 0 {
                Blocking::Yes
            } else {
                Blocking::No
            },
        };
        let asker = Asker {
            notification,
            on_exec: if flags & SOCK_CLOEXEC == 0 {
                OnExec::Keep
            } else {
                OnExec::Close
            },
        };
        if let Err(asker) = self.sealed.request(request, asker) {
            self.refuse_datagrams(vec![asker]);
        }
    }

    pub(super) fn serve_sealed(&mut self) {
        loop {
            match self.sealed.receive() {
                HelperReply::None => return,
                HelperReply::Stubs(stubs) => {
                    if self.link.is_shared() {
                        self.stubs = stubs.iter().filter_map(|s| s.try_clone().ok()).collect();
                    }
                    for stub in stubs {
                        self.tell(&ToGateway::Stub, vec![stub]);
                    }
                }
                HelperReply::Socket(asker, socket) => {
                    asker.notification.give(socket.as_fd(), asker.on_exec);
                }
                HelperReply::Failed(asker, errno) => asker.notification.fail(errno),
                HelperReply::Gone(askers) => return self.refuse_datagrams(askers),
            }
        }
    }

    fn refuse_datagrams(&mut self, askers: Vec<Asker>) {
        if let (SealedNetwork::Absent(reason), Once::No) = (&self.sealed, &self.said.sealed) {
            let line = format!(
                "outgate: datagram sockets are refused ({reason}); names resolve over TCP for programs that can"
            );
            self.said.sealed = Once::Yes;
            self.voice.say(&line);
        }
        for asker in askers {
            asker.notification.fail(Errno::EACCES);
        }
    }

    /// `connect(2)` on a datagram socket: harmless inside the namespace.
    pub(super) fn connect_datagram(
        &mut self,
        notification: Notification,
        socket: BorrowedFd<'_>,
        family: i32,
        destination: SocketAddr,
    ) {
        if !self.sealed.owns(socket) {
            return notification.fail(Errno::EACCES);
        }
        let mapped = if family == AF_INET6 {
            Mapped::Yes
        } else {
            Mapped::No
        };
        let address = SockaddrStorage::from(mapped.apply(destination));
        let to = |address: &SockaddrStorage| {
            perform(&notification, socket, || {
                connect(socket.as_raw_fd(), address)
            })
        };
        let connected = match to(&address) {
            Err(Errno::ENETUNREACH) => {
                self.unrouted = self.unrouted.saturating_add(1);
                to(&SockaddrStorage::from(nobody(destination, mapped)))
            }
            connected => connected,
        };
        match connected {
            Ok(()) => notification.succeed(0),
            Err(errno) => notification.fail(errno),
        }
    }
}

impl Supervisor<'_> {
    /// Tells at the end that datagrams were sent to where nothing goes. Who only connected a
    /// socket, as resolvers do to sort addresses, sent none.
    pub(super) fn tell_datagrams(&mut self) {
        let Some(refused) = self.sealed.refused() else {
            return;
        };
        let sent = refused.no_way.saturating_sub(self.unrouted);
        let to_nobody = if self.unrouted > 0 {
            refused.no_port
        } else {
            0
        };
        let count = sent.saturating_add(to_nobody);
        if count == 0 || self.say_summary == Summary::Omit {
            return;
        }
        let what = if count == 1 { "datagram" } else { "datagrams" };
        let line = format!(
            "outgate: denied {count} {what} (UDP: QUIC, NTP and the like have no way out; names \
             alone are asked for by it)"
        );
        self.voice.say(&line);
    }
}

/// Where nobody is, in place of a destination to which there is no way: whoever connects
/// a datagram socket often only asks for its own address, or whether there is one; what
/// is sent there is refused at once (`ECONNREFUSED`).
fn nobody(destination: SocketAddr, mapped: Mapped) -> SocketAddr {
    // Beside 127.0.0.1, where a server of the command's own may be.
    const NOBODY: Ipv4Addr = Ipv4Addr::new(127, 85, 68, 80);
    match destination {
        SocketAddr::V4(_) => mapped.apply(SocketAddr::from((NOBODY, destination.port()))),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::LOCALHOST, destination.port())),
    }
}
