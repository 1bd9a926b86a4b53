//! Private listeners: where an allowed connection goes instead of its
//! destination, and from where its other end is handed to the gateway.
//!
//! Each launcher owns its listeners alone: TCP ones on a random loopback
//! address and port, a Unix one under a name the kernel chose. Whoever else
//! connects there is recognised and closed, so there is nothing to forge.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, UnixAddr, bind,
    connect, getsockname, getsockopt, listen, socket, sockopt,
};

use crate::call_socket::{Begun, CallSocket};
use crate::notification::Notification;
use crate::sealed::Blocking;
use crate::unix_inode::connect_unix;

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 4096;
/// Strangers closed in a row before other work goes on.
const STRANGERS_MAX: usize = 64;

/// A listener nobody else connects to.
#[derive(Debug)]
pub struct PrivateListener {
    socket: OwnedFd,
    address: ListenerAddress,
}

/// Where a private listener is.
#[derive(Debug, Clone, Copy)]
pub enum ListenerAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix name.
    Unix(UnixAddr),
}

/// The private listeners of a run; each is made when it is first needed.
#[derive(Debug, Default)]
pub struct Redirect {
    v4: Option<PrivateListener>,
    v6: Option<PrivateListener>,
    unix: Option<PrivateListener>,
}

/// Which private listener a socket can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// IPv4, also from IPv6 sockets that take mapped addresses.
    V4,
    /// IPv6 only.
    V6,
    /// Unix stream.
    Unix,
}

impl Redirect {
    /// The listener of a kind.
    ///
    /// # Errors
    /// Those of socket(2), bind(2), listen(2).
    pub fn listener(&mut self, kind: ListenerKind) -> io::Result<&PrivateListener> {
        let slot = match kind {
            ListenerKind::V4 => &mut self.v4,
            ListenerKind::V6 => &mut self.v6,
            ListenerKind::Unix => &mut self.unix,
        };
        match slot {
            Some(private) => Ok(private),
            None => Ok(slot.insert(PrivateListener::open(kind)?)),
        }
    }

    /// The listener of a kind, if it was made.
    pub fn existing(&self, kind: ListenerKind) -> Option<&PrivateListener> {
        match kind {
            ListenerKind::V4 => self.v4.as_ref(),
            ListenerKind::V6 => self.v6.as_ref(),
            ListenerKind::Unix => self.unix.as_ref(),
        }
    }

    /// Closes the Unix listener and whatever waits there; the next use makes a
    /// new one.
    pub fn forget_unix(&mut self) {
        self.unix = None;
    }

    /// The listeners that exist, for polling.
    pub fn each(&self) -> impl Iterator<Item = &PrivateListener> {
        [&self.v4, &self.v6, &self.unix].into_iter().flatten()
    }

    /// Whether an address is one of ours.
    pub fn owns(&self, address: SocketAddr) -> bool {
        self.each()
            .any(|private| matches!(private.address, ListenerAddress::Tcp(ours) if ours == address))
    }
}

impl PrivateListener {
    fn open(kind: ListenerKind) -> io::Result<Self> {
        match kind {
            ListenerKind::V4 => {
                let address = SocketAddr::from((random_loopback()?, 0));
                Self::tcp(AddressFamily::Inet, &SockaddrStorage::from(address))
            }
            ListenerKind::V6 => {
                let address = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
                Self::tcp(AddressFamily::Inet6, &SockaddrStorage::from(address))
            }
            ListenerKind::Unix => Self::unix(),
        }
    }

    fn tcp(family: AddressFamily, address: &SockaddrStorage) -> io::Result<Self> {
        let socket = stream(family)?;
        bind(socket.as_raw_fd(), address)?;
        listen(&socket, Backlog::new(BACKLOG)?)?;
        let bound: SockaddrStorage = getsockname(socket.as_raw_fd())?;
        let address = inet(&bound).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            socket,
            address: ListenerAddress::Tcp(address),
        })
    }

    fn unix() -> io::Result<Self> {
        let socket = stream(AddressFamily::Unix)?;
        // None crosses, and to close what a command sent may take long. Where the kernel
        // cannot refuse them, the gateway's alarm ends what waits.
        drop(outgate_sys::socket::refuse_descriptors(socket.as_fd()));
        // An address of the family alone: the kernel picks an abstract name
        // (unix(7), autobind).
        bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
        listen(&socket, Backlog::new(BACKLOG)?)?;
        let address: UnixAddr = getsockname(socket.as_raw_fd())?;
        Ok(Self {
            socket,
            address: ListenerAddress::Unix(address),
        })
    }

    /// Begins a connection of `call_socket` to this listener; never waits.
    ///
    /// # Errors
    /// The errno of connect(2).
    pub fn attract(
        &self,
        caller: &Notification,
        call_socket: &CallSocket,
        mapped: Mapped,
    ) -> Result<(Begun, Blocking), Errno> {
        match &self.address {
            ListenerAddress::Tcp(address) => {
                let address = SockaddrStorage::from(mapped.apply(*address));
                call_socket.begin(caller, |socket| connect(socket.as_raw_fd(), &address))
            }
            ListenerAddress::Unix(address) => {
                call_socket.begin(caller, |socket| connect_unix(socket, address))
            }
        }
    }

    /// Accepts the next connection that `wanted` recognises; closes strangers.
    pub fn accept(
        &self,
        mut wanted: impl FnMut(&RedirectPeer) -> OwnConnection,
    ) -> Option<OwnedFd> {
        for _ in 0..STRANGERS_MAX {
            let (accepted, address) = outgate_sys::socket::accept(self.socket.as_fd()).ok()?;
            let Some(caller) = self.caller(&accepted, address) else {
                continue;
            };
            if wanted(&caller) == OwnConnection::Yes {
                return Some(accepted);
            }
        }
        None
    }

    fn caller(&self, accepted: &OwnedFd, address: Option<SocketAddr>) -> Option<RedirectPeer> {
        match self.address {
            ListenerAddress::Tcp(_) => address.map(RedirectPeer::Tcp),
            ListenerAddress::Unix(_) => {
                let credentials = getsockopt(accepted, sockopt::PeerCredentials).ok()?;
                Some(RedirectPeer::Process(credentials.pid()))
            }
        }
    }
}

impl AsFd for PrivateListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Who is at the other end of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPeer {
    /// The address it connected from.
    Tcp(SocketAddr),
    /// The process that called connect(2): ourselves, when we did it on behalf.
    Process(i32),
}

/// Whether an accepted connection is one we made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnConnection {
    /// It is.
    Yes,
    /// A stranger's.
    No,
}

/// How an IPv4 address is written for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// As it is.
    No,
    /// As `::ffff:a.b.c.d`, for an IPv6 socket.
    Yes,
}

impl Mapped {
    /// The address in the form the socket takes.
    pub fn apply(self, address: SocketAddr) -> SocketAddr {
        match (self, address) {
            (Self::Yes, SocketAddr::V4(v4)) => {
                SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port()))
            }
            (_, address) => address,
        }
    }
}

fn stream(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(family, SockType::Stream, flags, None)?)
}

/// A random address of 127/8 outside 127.0/16, where people and distributions
/// put servers: nobody can take our port beforehand.
fn random_loopback() -> io::Result<Ipv4Addr> {
    let [b, c, d, ..] = outgate_sys::process::random()?;
    Ok(Ipv4Addr::new(127, b.max(1), c, d.clamp(1, 254)))
}

/// The Internet address in a socket address, canonical.
pub fn inet(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let address = match storage.family() {
        Some(AddressFamily::Inet) => SocketAddr::V4(SocketAddrV4::from(*storage.as_sockaddr_in()?)),
        Some(AddressFamily::Inet6) => {
            SocketAddr::V6(SocketAddrV6::from(*storage.as_sockaddr_in6()?))
        }
        _ => return None,
    };
    let ip: IpAddr = address.ip().to_canonical();
    Some(SocketAddr::new(ip, address.port()))
}

/// The local address of a socket, canonical.
pub fn local_address(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    let storage: SockaddrStorage = getsockname(socket.as_raw_fd()).ok()?;
    inet(&storage)
}
