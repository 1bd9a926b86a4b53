//! `bind(2)` of TCP sockets on behalf: addresses of loopback as they are, every address
//! of the machine as one of loopback unless a grant covers it, others where they are
//! granted. What is no TCP socket the kernel binds, with Landlock as the judge.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, bind};
use outgate_handoff::CallQuestion;
use outgate_sys::socket::{AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM};

use super::connect::{copy_address, errno_of};
use super::wait::Want;
use super::{Once, Supervisor};
use crate::address::parse_local;
use crate::call_socket::{CallSocket, CallSocketError, NOBODY_WAITS};
use crate::notification::Notification;
use crate::process::describe;

/// First port that takes no privilege, where the kernel does not say (ip(7)).
const UNPRIVILEGED_PORT: u16 = 1024;

/// A bind that waits for the gateway.
#[derive(Debug)]
pub(super) struct BindCall {
    socket: CallSocket,
    /// As the caller wrote it, and in the form that its socket takes.
    address: SocketAddr,
}

impl Supervisor<'_> {
    pub(super) fn on_bind(&mut self, notification: Notification) {
        let call_socket =
            match CallSocket::shared(&mut self.last_thread, &notification, notification.int(0)) {
                Ok(call_socket) => call_socket,
                Err(CallSocketError::Command(errno)) => return notification.fail(errno),
                // Where no socket can be copied none listens, either.
                Err(CallSocketError::Refused) => return notification.pass(),
            };
        let family = match outgate_sys::socket::family(call_socket.socket()) {
            Ok(family) => family,
            Err(error) => return notification.fail(errno_of(&error)),
        };
        if !is_tcp(call_socket.socket(), family) {
            // RACE: another thread may put a TCP socket in its place. Landlock, which
            // sees what is really bound, leaves that one port 0, and to listen is held.
            return notification.pass();
        }
        let copied = copy_address(&notification);
        // What was copied and duplicated is the caller's own only if it still waits.
        if !notification.holds() {
            return;
        }
        let address = match copied.and_then(|bytes| parse_local(&bytes)) {
            Ok(address) if address.is_ipv6() == (family == AF_INET6) => address,
            Ok(_) => return notification.fail(Errno::EAFNOSUPPORT),
            Err(errno) => return notification.fail(errno),
        };
        self.bind_inet(notification, call_socket, address);
    }

    fn bind_inet(
        &mut self,
        notification: Notification,
        call_socket: CallSocket,
        address: SocketAddr,
    ) {
        // The command has no capability, whatever we have.
        if address.port() != 0 && address.port() < first_unprivileged_port() {
            self.say_privileged(address.port());
            return notification.fail(Errno::EACCES);
        }
        let ip = address.ip().to_canonical();
        let local = SocketAddr::new(ip, address.port());
        let is_granted = self.listen.iter().any(|grant| grant.covers(local));
        if ip.is_unspecified() && !is_granted {
            let near = loopback(call_socket.socket(), address);
            let call = BindCall {
                socket: call_socket,
                address: near,
            };
            return bind_now(notification, &call);
        }
        let call = BindCall {
            socket: call_socket,
            address,
        };
        // A client's own address, with any port: to listen there is asked about.
        if ip.is_loopback() || is_granted || address.port() == 0 {
            return bind_now(notification, &call);
        }
        let process = self.with_ancestors(&describe(notification.held().thread));
        let question = CallQuestion::Listen { address: local };
        self.ask(notification, question, process, Want::Bind(call));
    }
}

impl Supervisor<'_> {
    /// Says, once, why such a port is nobody's in a run.
    fn say_privileged(&mut self, port: u16) {
        if std::mem::replace(&mut self.said.privileged, Once::Yes) == Once::Yes {
            return;
        }
        let line = format!(
            "outgate: denied binding port {port} (ports below {} take a privilege, and no command \
             has one)",
            first_unprivileged_port()
        );
        if let Some(denials) = &mut self.denials {
            denials.note(&line);
        }
        self.voice.say(&line);
    }
}

/// Binds the caller's own socket, if it still waits. The kernel refuses a second time.
pub(super) fn bind_now(notification: Notification, call: &BindCall) {
    let result = if notification.holds() {
        bind(
            call.socket.socket().as_raw_fd(),
            &SockaddrStorage::from(call.address),
        )
    } else {
        Err(NOBODY_WAITS)
    };
    notification.conclude(result);
}

fn is_tcp(socket: BorrowedFd<'_>, family: i32) -> bool {
    matches!(family, AF_INET | AF_INET6)
        && outgate_sys::socket::kind(socket).ok() == Some(SOCK_STREAM)
        && outgate_sys::socket::protocol(socket).ok() == Some(IPPROTO_TCP)
}

/// Where of loopback a socket goes that is asked to be bound to every address. One that
/// takes both families goes to IPv4: an IPv6 client of the sandbox is brought there
/// (`own.rs`), an IPv4 one could not be brought to `::1`.
pub(super) fn loopback(socket: BorrowedFd<'_>, everywhere: SocketAddr) -> SocketAddr {
    let only_v6 = || outgate_sys::socket::only_v6(socket).unwrap_or(true);
    let ip = match everywhere.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() && only_v6() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
    };
    SocketAddr::new(ip, everywhere.port())
}

/// First port that a process without capabilities may bind (ip(7)).
fn first_unprivileged_port() -> u16 {
    let said = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    said.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(UNPRIVILEGED_PORT)
}
