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

use crate::grip::{Begun, Grip};
use crate::notification::Notification;
use crate::sealed::Blocking;
use crate::unix_inode::connect_unix;

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 4096;
/// Strangers closed in a row before other work goes on.
const STRANGERS_MAX: usize = 64;

/// A listener nobody else connects to.
#[derive(Debug)]
pub struct Private {
    socket: OwnedFd,
    address: Place,
}

/// Where a private listener is.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix name.
    Unix(UnixAddr),
}

/// The private listeners of a run; each is made when it is first needed.
#[derive(Debug, Default)]
pub struct Redirect {
    v4: Option<Private>,
    v6: Option<Private>,
    unix: Option<Private>,
}

/// Which private listener a socket can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    pub fn listener(&mut self, kind: Kind) -> io::Result<&Private> {
        let slot = match kind {
            Kind::V4 => &mut self.v4,
            Kind::V6 => &mut self.v6,
            Kind::Unix => &mut self.unix,
        };
        match slot {
            Some(private) => Ok(private),
            None => Ok(slot.insert(Private::open(kind)?)),
        }
    }

    /// The listener of a kind, if it was made.
    pub fn existing(&self, kind: Kind) -> Option<&Private> {
        match kind {
            Kind::V4 => self.v4.as_ref(),
            Kind::V6 => self.v6.as_ref(),
            Kind::Unix => self.unix.as_ref(),
        }
    }

    /// Closes the Unix listener and whatever waits there; the next use makes a
    /// new one.
    pub fn forget_unix(&mut self) {
        self.unix = None;
    }

    /// The listeners that exist, for polling.
    pub fn each(&self) -> impl Iterator<Item = &Private> {
        [&self.v4, &self.v6, &self.unix].into_iter().flatten()
    }

    /// Whether an address is one of ours.
    pub fn owns(&self, address: SocketAddr) -> bool {
        self.each()
            .any(|private| matches!(private.address, Place::Tcp(ours) if ours == address))
    }
}

impl Private {
    fn open(kind: Kind) -> io::Result<Self> {
        match kind {
            Kind::V4 => {
                let address = SocketAddr::from((random_loopback()?, 0));
                Self::tcp(AddressFamily::Inet, &SockaddrStorage::from(address))
            }
            Kind::V6 => {
                let address = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
                Self::tcp(AddressFamily::Inet6, &SockaddrStorage::from(address))
            }
            Kind::Unix => Self::unix(),
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
            address: Place::Tcp(address),
        })
    }

    fn unix() -> io::Result<Self> {
        let socket = stream(AddressFamily::Unix)?;
        // An address of the family alone: the kernel picks an abstract name
        // (unix(7), autobind).
        bind(socket.as_raw_fd(), &UnixAddr::new_unnamed())?;
        listen(&socket, Backlog::new(BACKLOG)?)?;
        let address: UnixAddr = getsockname(socket.as_raw_fd())?;
        Ok(Self {
            socket,
            address: Place::Unix(address),
        })
    }

    /// Begins a connection of `grip` to this listener; never waits.
    ///
    /// # Errors
    /// The errno of connect(2).
    pub fn attract(
        &self,
        caller: &Notification,
        grip: &Grip,
        mapped: Mapped,
    ) -> Result<(Begun, Blocking), Errno> {
        match &self.address {
            Place::Tcp(address) => {
                let address = SockaddrStorage::from(mapped.apply(*address));
                grip.begin(caller, |socket| connect(socket.as_raw_fd(), &address))
            }
            Place::Unix(address) => grip.begin(caller, |socket| connect_unix(socket, address)),
        }
    }

    /// Accepts the next connection that `wanted` recognises; closes strangers.
    pub fn accept(&self, mut wanted: impl FnMut(&Caller) -> Recognised) -> Option<OwnedFd> {
        for _ in 0..STRANGERS_MAX {
            let (accepted, address) = outgate_sys::socket::accept(self.socket.as_fd()).ok()?;
            let Some(caller) = self.caller(&accepted, address) else {
                continue;
            };
            if wanted(&caller) == Recognised::Yes {
                return Some(accepted);
            }
        }
        None
    }

    fn caller(&self, accepted: &OwnedFd, address: Option<SocketAddr>) -> Option<Caller> {
        match self.address {
            Place::Tcp(_) => address.map(Caller::Tcp),
            Place::Unix(_) => {
                let credentials = getsockopt(accepted, sockopt::PeerCredentials).ok()?;
                Some(Caller::Process(credentials.pid()))
            }
        }
    }
}

impl AsFd for Private {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Who is at the other end of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The address it connected from.
    Tcp(SocketAddr),
    /// The process that called connect(2): ourselves, when we did it on behalf.
    Process(i32),
}

/// Whether an accepted connection is one we made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
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
