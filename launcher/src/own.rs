//! The sandbox's own listeners: servers the command runs for itself. Recorded
//! when `listen(2)` is performed on behalf, and believed only as long as the
//! kernel confirms that the very same socket still listens; those with a path
//! are reached through their inode, which is theirs for good.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use nix::sys::socket::SockType;

use crate::diag::Diag;
use crate::unix_inode::{Inode, Occupant, Resolved, occupant, take_back};

/// Listeners remembered at most, of each kind. Dead ones make room; where most
/// still live, all are forgotten, and connections to them are asked about.
const LISTENERS_MAX: usize = 4096;

/// What a listener is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: u32,
    cookie: u64,
}

/// A TCP listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TcpListener {
    cookie: u64,
    serves_v4: Serves,
}

/// Whether an IPv6 listener takes IPv4 connections too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serves {
    Both,
    OneFamily,
}

/// The listeners of one sandbox.
#[derive(Debug, Default)]
pub struct Own {
    diag: Option<Diag>,
    tcp: HashMap<SocketAddr, TcpListener>,
    names: HashMap<Vec<u8>, Identity>,
    unix: HashMap<Inode, Rc<OwnedFd>>,
    unix_max: usize,
}

impl Own {
    /// Room for so many Unix listeners with a path.
    pub fn new(unix_max: usize) -> Self {
        Self {
            unix_max,
            ..Self::default()
        }
    }

    fn diag(&mut self) -> Option<&Diag> {
        if self.diag.is_none() {
            self.diag = Diag::open().ok();
        }
        self.diag.as_ref()
    }

    /// Remembers a TCP socket that listens at `address` now.
    pub fn add_tcp(&mut self, address: SocketAddr, socket: BorrowedFd<'_>) {
        let Ok(cookie) = outgate_sys::socket::cookie(socket) else {
            return;
        };
        self.make_room();
        let serves_v4 = match outgate_sys::socket::only_v6(socket) {
            Ok(false) => Serves::Both,
            _ => Serves::OneFamily,
        };
        self.tcp.insert(address, TcpListener { cookie, serves_v4 });
    }

    /// Forgets what no longer listens once there is too much to remember. Half
    /// the room is free afterwards, so that the kernel is not asked each time.
    fn make_room(&mut self) {
        if self.tcp.len() >= LISTENERS_MAX {
            let mut known = std::mem::take(&mut self.tcp);
            let diag = self.diag();
            known.retain(|address, listener| {
                diag.is_some_and(|diag| diag.listens(*address, listener.cookie))
            });
            if known.len() <= LISTENERS_MAX / 2 {
                self.tcp = known;
            }
        }
        if self.names.len() >= LISTENERS_MAX {
            let mut known = std::mem::take(&mut self.names);
            let diag = self.diag();
            known.retain(|name, listener| diag.is_some_and(|diag| listener.is_at(diag, name)));
            if known.len() <= LISTENERS_MAX / 2 {
                self.names = known;
            }
        }
    }

    /// Whether a connection to `destination` ends at one of the listeners.
    ///
    /// RACE: a listener may close and a stranger take its port between this
    /// answer and the connection. The port was chosen by the kernel or granted
    /// by the operator, so the command cannot choose the stranger.
    pub fn serves(&mut self, destination: SocketAddr) -> bool {
        if !destination.ip().is_loopback() || self.tcp.is_empty() {
            return false;
        }
        let any: IpAddr = match destination {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let v6_any: IpAddr = std::net::Ipv6Addr::UNSPECIFIED.into();
        for ip in [destination.ip(), any, v6_any] {
            let address = SocketAddr::new(ip, destination.port());
            let Some(listener) = self.tcp.get(&address).copied() else {
                continue;
            };
            // `::` takes IPv4 connections only without IPV6_V6ONLY.
            let other_family = destination.is_ipv4() && address.is_ipv6();
            if other_family && listener.serves_v4 == Serves::OneFamily {
                continue;
            }
            // Asked for the destination, not for the listener's own address: a
            // stranger bound more closely would get the connection.
            let alive = self
                .diag()
                .is_some_and(|diag| diag.listens(destination, listener.cookie));
            if alive {
                return true;
            }
            self.tcp.remove(&address);
        }
        false
    }

    /// Remembers a Unix socket that listens now under an abstract name.
    pub fn add_abstract(&mut self, name: &[u8], socket: BorrowedFd<'_>) {
        self.make_room();
        if let Some(identity) = identity(socket) {
            self.names.insert(name.to_vec(), identity);
        }
    }

    /// Whether one of the listeners has this abstract name still.
    pub fn serves_abstract(&mut self, name: &[u8]) -> bool {
        let Some(identity) = self.names.get(name).copied() else {
            return false;
        };
        let alive = self.diag().is_some_and(|diag| identity.is_at(diag, name));
        if !alive {
            self.names.remove(name);
        }
        alive
    }

    /// Remembers the inode that a Unix listener was proved to be bound to, and
    /// keeps it open: nobody else is ever reached through it.
    pub fn add_unix(&mut self, place: Resolved) {
        if self.unix.len() >= self.unix_max {
            self.unix
                .retain(|_, target| occupant(target.as_fd(), SockType::Stream) != Occupant::Nobody);
            if self.unix.len() > self.unix_max / 2 {
                self.unix.clear();
            }
        }
        if self.unix_max > 0 {
            self.unix.insert(place.inode(), Rc::new(place.target));
        }
    }

    /// The kept inode with these numbers: what is to be connected to, whoever
    /// has the same numbers.
    pub fn unix_server(&self, inode: Inode) -> Option<Rc<OwnedFd>> {
        self.unix.get(&inode).cloned()
    }

    /// Takes the connection of a proof out of a listener's queue. Where others
    /// wait there already, it stays: theirs must not be taken, and nobody can say
    /// which is which.
    pub fn take_back(&mut self, listener: BorrowedFd<'_>, proof: OwnedFd) {
        let waiting = identity(listener)
            .zip(self.diag())
            .and_then(|(identity, diag)| diag.unix_waiting(identity.inode, identity.cookie));
        if waiting.is_none_or(|waiting| waiting == 1) {
            take_back(listener, proof);
        }
    }
}

impl Identity {
    fn is_at(self, diag: &Diag, name: &[u8]) -> bool {
        diag.unix_listener(self.inode, self.cookie).as_deref() == Some(name)
    }
}

fn identity(socket: BorrowedFd<'_>) -> Option<Identity> {
    let stat = nix::sys::stat::fstat(socket.as_fd()).ok()?;
    Some(Identity {
        inode: u32::try_from(stat.st_ino).ok()?,
        cookie: outgate_sys::socket::cookie(socket).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_after_any_number_that_ended() {
        let mut own = Own::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        own.add_tcp(address, server.as_fd());
        let ended = TcpListener {
            cookie: 1,
            serves_v4: Serves::Both,
        };
        for port in (1..=u16::MAX).take(LISTENERS_MAX) {
            let place = SocketAddr::new(address.ip(), port);
            own.tcp.entry(place).or_insert(ended);
        }
        let next = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        own.add_tcp(next.local_addr().unwrap(), next.as_fd());
        assert_eq!(own.tcp.len(), 2);
        assert!(own.serves(address));
        assert!(own.serves(next.local_addr().unwrap()));
    }
}
