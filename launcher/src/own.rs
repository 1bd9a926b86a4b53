//! The sandbox's own listeners: servers the command runs for itself. Recorded
//! when `listen(2)` is performed on behalf. To connect to one, the very socket is
//! taken from the process that has it, and held until the connection is made, so
//! that its port or name can become nobody else's meanwhile; those with a path are
//! reached through their inode, which is theirs for good.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use nix::sys::socket::{SockType, UnixAddr, getsockname};

use crate::call_socket::LastThread;
use crate::diag::Diag;
use crate::lookups::Waits;
use crate::redirect::local_address;
use crate::seek::{FoundSocket, Whereabouts, seek};
use crate::unix_inode::{Inode, Occupant, Resolved, occupant, take_back};

/// Listeners remembered at most, of each kind. Dead ones make room; where most
/// still live, all are forgotten, and connections to them are asked about.
const LISTENERS_MAX: usize = 4096;
/// Names that are looked at again for each that is new.
const NAMES_LOOKED_AT: usize = 2;

/// What a listener is to the kernel, and who had it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListenerIdentity {
    inode: u32,
    cookie: u64,
    at: Whereabouts,
}

/// A TCP listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TcpListener {
    identity: ListenerIdentity,
    serves_v4: AddressFamilies,
}

/// Whether a listener is one of IPv6 that takes IPv4 connections too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressFamilies {
    Both,
    OneFamily,
}

/// A Unix listener with a path.
#[derive(Debug, Clone)]
pub struct UnixServer {
    /// The inode it is bound to.
    pub target: Rc<OwnedFd>,
    /// Whether to connect there may wait.
    pub waits: Waits,
}

/// The listeners of one sandbox.
#[derive(Debug, Default)]
pub struct OwnListeners {
    diag: Option<Diag>,
    /// Who has the listener that was connected to last.
    threads: LastThread,
    tcp: HashMap<SocketAddr, TcpListener>,
    names: HashMap<Vec<u8>, ListenerIdentity>,
    /// Names with the cookies of their sockets, in the order in which they are looked at again.
    order: VecDeque<(Vec<u8>, u64)>,
    unix: HashMap<Inode, UnixServer>,
    unix_max: usize,
}

/// The address of loopback in the other family, for those that `localhost` names.
fn twin(ip: IpAddr) -> Option<IpAddr> {
    match ip {
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Some(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

impl OwnListeners {
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

    /// Remembers a TCP socket that listens at `address` now, and who has it.
    pub fn add_tcp(&mut self, address: SocketAddr, socket: BorrowedFd<'_>, at: Whereabouts) {
        let Some(identity) = identity(socket, at) else {
            return;
        };
        self.make_room();
        let serves_v4 = match outgate_sys::socket::only_v6(socket) {
            Ok(false) => AddressFamilies::Both,
            _ => AddressFamilies::OneFamily,
        };
        let listener = TcpListener {
            identity,
            serves_v4,
        };
        self.tcp.insert(address, listener);
    }

    /// Forgets what no longer listens once there is too much to remember. Half
    /// the room is free afterwards, so that the kernel is not asked each time.
    fn make_room(&mut self) {
        if self.tcp.len() >= LISTENERS_MAX {
            let mut known = std::mem::take(&mut self.tcp);
            let diag = self.diag();
            known.retain(|address, listener| {
                diag.is_some_and(|diag| diag.listens(*address, listener.identity.cookie))
            });
            if known.len() <= LISTENERS_MAX / 2 {
                self.tcp = known;
            }
        }
    }

    /// Looks again at a few names, once there are many, and forgets those whose servers ended;
    /// where all are served, the one looked at longest ago. A question about a name takes the
    /// kernel as long as there are Unix sockets, and everybody waits meanwhile: so only for one
    /// whose socket is not where it was, and never for more than these few.
    fn make_room_for_names(&mut self) {
        for _ in 0..NAMES_LOOKED_AT {
            if self.order.len() < LISTENERS_MAX / 2 {
                return;
            }
            let Some((name, cookie)) = self.order.pop_front() else {
                return;
            };
            let known = self.names.get(&name).copied();
            let Some(listener) = known.filter(|known| known.cookie == cookie) else {
                continue;
            };
            let is_served = listener.taken(&mut self.threads).is_some()
                || self.diag().is_some_and(|diag| listener.is_at(diag, &name));
            if is_served {
                self.order.push_back((name, cookie));
            } else {
                self.names.remove(&name);
            }
        }
        while self.order.len() >= LISTENERS_MAX {
            if let Some((name, _)) = self.order.pop_front() {
                self.names.remove(&name);
            }
        }
    }

    /// The listener at which a connection to `destination` ends.
    ///
    /// INVARIANT: nobody else listens there as long as it is held. It listens, for
    /// only connect(2), shutdown(2) and its last close(2) end that, and the first
    /// two are the supervisor's to make; and no socket shares its port, which would
    /// take `SO_REUSEPORT` on both (`filter/arguments.rs`).
    pub fn tcp_listener(
        &mut self,
        destination: SocketAddr,
        near: ListenerSearch,
    ) -> Option<KeptListener> {
        if !destination.ip().is_loopback() || self.tcp.is_empty() {
            return None;
        }
        let any: IpAddr = match destination {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let v6_any: IpAddr = Ipv6Addr::UNSPECIFIED.into();
        let v4: IpAddr = Ipv4Addr::LOCALHOST.into();
        let elsewhere = (destination.ip() == Ipv6Addr::LOCALHOST).then_some(v4);
        for ip in [destination.ip(), any, v6_any].into_iter().chain(elsewhere) {
            let address = SocketAddr::new(ip, destination.port());
            let Some(listener) = self.tcp.get(&address).copied() else {
                continue;
            };
            // A server of both families stands at IPv4 loopback
            // (`supervisor/bind.rs`): who comes by IPv6 is brought there.
            let moved = destination.is_ipv6() && address.is_ipv4();
            if moved && listener.serves_v4 == AddressFamilies::OneFamily {
                continue;
            }
            let to = if moved { address } else { destination };
            // `::` takes IPv4 connections only without IPV6_V6ONLY.
            let other_family = destination.is_ipv4() && address.is_ipv6();
            if other_family && listener.serves_v4 == AddressFamilies::OneFamily {
                continue;
            }
            let mut identity = listener.identity;
            let alive = |diag: &Diag| diag.listens(to, identity.cookie);
            let sought = match identity.taken(&mut self.threads) {
                Some(socket) => Some(FoundSocket {
                    socket,
                    at: identity.at,
                }),
                None if self.diag().is_some_and(alive) => identity.sought(near),
                None => {
                    self.tcp.remove(&address);
                    continue;
                }
            };
            // Alive, and in nobody's hands that were looked into.
            let Some(FoundSocket { socket, at }) = sought else {
                continue;
            };
            if listens_alone(socket.as_fd(), address) {
                identity.at = at;
                let listener = TcpListener {
                    identity,
                    ..listener
                };
                self.tcp.insert(address, listener);
                return Some(KeptListener {
                    socket,
                    identity,
                    address: to,
                });
            }
            self.tcp.remove(&address);
        }
        None
    }

    /// Whether nobody listens at `destination`, and it is the other address of a name
    /// at which a server of the sandbox does: whoever tries one after the other is
    /// refused there, as without a sandbox, and nobody needs to be told.
    pub fn is_beside(&mut self, destination: SocketAddr) -> bool {
        let Some(beside) = twin(destination.ip()) else {
            return false;
        };
        let known = self
            .tcp
            .contains_key(&SocketAddr::new(beside, destination.port()));
        known
            && self
                .diag()
                .is_some_and(|diag| !diag.listens(destination, Diag::ANY_COOKIE))
    }

    /// Whether somebody outside of the sandbox listens at the other address of a name of which
    /// `address` is one (`localhost`): a server beside it would be taken for that one by
    /// whoever tries this address first.
    pub fn is_beside_stranger(&mut self, address: SocketAddr) -> bool {
        let Some(beside) = twin(address.ip()) else {
            return false;
        };
        let beside = SocketAddr::new(beside, address.port());
        let any = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let places = any.map(|any| SocketAddr::new(any, address.port()));
        let known = places.iter().chain([&beside]);
        let own: Vec<u64> = known
            .filter_map(|place| self.tcp.get(place))
            .map(|listener| listener.identity.cookie)
            .collect();
        self.diag().is_some_and(|diag| {
            diag.listens(beside, Diag::ANY_COOKIE)
                && !own.iter().any(|cookie| diag.listens(beside, *cookie))
        })
    }

    /// Remembers a Unix socket that listens now under an abstract name, and who
    /// has it.
    pub fn add_abstract(&mut self, name: &[u8], socket: BorrowedFd<'_>, at: Whereabouts) {
        self.make_room_for_names();
        if let Some(identity) = identity(socket, at) {
            let before = self.names.insert(name.to_vec(), identity);
            if before.is_none_or(|before| before.cookie != identity.cookie) {
                self.order.push_back((name.to_vec(), identity.cookie));
            }
        }
    }

    /// The listener that has this abstract name: as long as it is held, the name is
    /// nobody else's.
    pub fn abstract_listener(&mut self, name: &[u8], near: ListenerSearch) -> Option<OwnedFd> {
        let mut identity = self.names.get(name).copied()?;
        let sought = match identity.taken(&mut self.threads) {
            Some(socket) => Some(FoundSocket {
                socket,
                at: identity.at,
            }),
            None if self.diag().is_some_and(|diag| identity.is_at(diag, name)) => {
                identity.sought(near)
            }
            None => {
                self.names.remove(name);
                return None;
            }
        };
        let FoundSocket { socket, at } = sought?;
        let named = getsockname::<UnixAddr>(socket.as_raw_fd());
        let same = named.is_ok_and(|address| address.as_abstract() == Some(name));
        if !same || !outgate_sys::socket::listens(socket.as_fd()).unwrap_or(false) {
            self.names.remove(name);
            return None;
        }
        identity.at = at;
        self.names.insert(name.to_vec(), identity);
        Some(socket)
    }

    /// Remembers the inode that a Unix listener was proved to be bound to, and
    /// keeps it open: nobody else is ever reached through it.
    pub fn add_unix(&mut self, place: Resolved, waits: Waits) {
        if self.unix.len() >= self.unix_max {
            // Whom a file system would have to be asked about goes first.
            self.unix.retain(|_, server| {
                server.waits == Waits::No
                    && occupant(server.target.as_fd(), SockType::Stream) != Occupant::Nobody
            });
            if self.unix.len() > self.unix_max / 2 {
                self.unix.clear();
            }
        }
        if self.unix_max > 0 {
            let inode = place.inode();
            let target = Rc::new(place.target);
            self.unix.insert(inode, UnixServer { target, waits });
        }
    }

    /// The kept inode with these numbers: what is to be connected to, whoever
    /// has the same numbers.
    pub fn unix_server(&self, inode: Inode) -> Option<UnixServer> {
        self.unix.get(&inode).cloned()
    }

    /// Takes the connection of a proof out of a listener's queue. Where others
    /// wait there already, it stays: theirs must not be taken, and nobody can say
    /// which is which.
    pub fn take_back(&mut self, listener: BorrowedFd<'_>, proof: OwnedFd) {
        let waiting = numbers(listener)
            .zip(self.diag())
            .and_then(|((inode, cookie), diag)| diag.unix_waiting(inode, cookie));
        if waiting.is_none_or(|waiting| waiting == 1) {
            take_back(listener, proof);
        }
    }
}

impl ListenerIdentity {
    fn is_at(self, diag: &Diag, name: &[u8]) -> bool {
        diag.unix_listener(self.inode, self.cookie).as_deref() == Some(name)
    }

    /// The socket, from who had it last.
    fn taken(self, threads: &mut LastThread) -> Option<OwnedFd> {
        self.at.take(threads, self.cookie)
    }

    /// The socket, from whoever of the sandbox has it.
    fn sought(self, near: ListenerSearch) -> Option<FoundSocket> {
        seek(self.inode, self.cookie, (near.caller, near.root))
    }
}

/// A listener that is held.
#[derive(Debug)]
pub struct KeptListener {
    socket: OwnedFd,
    identity: ListenerIdentity,
    address: SocketAddr,
}

impl KeptListener {
    /// Where a connection to it is made.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether whoever had the listener has it still.
    pub fn is_served(&self) -> bool {
        self.identity.taken(&mut LastThread::default()).is_some()
    }

    /// The number that no other socket has.
    pub fn cookie(&self) -> u64 {
        self.identity.cookie
    }
}

impl AsFd for KeptListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Where a listener is looked for that is not where it was.
#[derive(Debug, Clone, Copy)]
pub struct ListenerSearch {
    /// Who wants to connect to it.
    pub caller: u32,
    /// The process above the sandbox.
    pub root: u32,
}

/// Whether a socket listens at `address`, and shares that with none.
fn listens_alone(socket: BorrowedFd<'_>, address: SocketAddr) -> bool {
    outgate_sys::socket::listens(socket).unwrap_or(false)
        && local_address(socket) == Some(address)
        && !outgate_sys::socket::shares_port(socket).unwrap_or(true)
}

fn identity(socket: BorrowedFd<'_>, at: Whereabouts) -> Option<ListenerIdentity> {
    let (inode, cookie) = numbers(socket)?;
    Some(ListenerIdentity { inode, cookie, at })
}

/// Inode number and cookie of a socket.
fn numbers(socket: BorrowedFd<'_>) -> Option<(u32, u64)> {
    let stat = nix::sys::stat::fstat(socket.as_fd()).ok()?;
    let inode = u32::try_from(stat.st_ino).ok()?;
    Some((inode, outgate_sys::socket::cookie(socket).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here, under its own number.
    fn here(socket: &impl AsRawFd) -> Whereabouts {
        Whereabouts {
            thread: std::process::id(),
            number: socket.as_raw_fd(),
        }
    }

    fn near() -> ListenerSearch {
        ListenerSearch {
            caller: std::process::id(),
            root: std::os::unix::process::parent_id(),
        }
    }

    #[test]
    fn a_server_is_known_after_any_number_that_ended() {
        let mut own = OwnListeners::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        own.add_tcp(address, server.as_fd(), here(&server));
        let ended = TcpListener {
            identity: ListenerIdentity {
                inode: 0,
                cookie: u64::MAX >> 1,
                at: here(&server),
            },
            serves_v4: AddressFamilies::Both,
        };
        for port in (1..=u16::MAX).take(LISTENERS_MAX) {
            let place = SocketAddr::new(address.ip(), port);
            own.tcp.entry(place).or_insert(ended);
        }
        let next = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        own.add_tcp(next.local_addr().unwrap(), next.as_fd(), here(&next));
        assert_eq!(own.tcp.len(), 2);
        assert!(own.tcp_listener(address, near()).is_some());
        let next = next.local_addr().unwrap();
        assert!(own.tcp_listener(next, near()).is_some());
    }

    #[test]
    fn names_of_servers_are_bounded_and_those_that_ended_go_first() {
        let mut own = OwnListeners::default();
        let listener = |name: &str| {
            use std::os::linux::net::SocketAddrExt as _;
            let name = format!("outgate-own-{name}-{}", std::process::id());
            let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
            let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
            (name.into_bytes(), listener)
        };
        let (name, server) = listener("served");
        own.add_abstract(&name, server.as_fd(), here(&server));
        // Ended: nobody has them.
        let nowhere = Whereabouts {
            thread: std::process::id(),
            number: i32::MAX,
        };
        let (_, other) = listener("other");
        for number in 0..3 * LISTENERS_MAX {
            own.add_abstract(&number.to_ne_bytes(), other.as_fd(), nowhere);
        }
        assert!(
            own.names.len() <= LISTENERS_MAX / 2 + 1,
            "{}",
            own.names.len()
        );
        assert!(own.abstract_listener(&name, near()).is_some());
        // Served, all of them.
        for number in 0..3 * LISTENERS_MAX {
            own.add_abstract(&number.to_be_bytes(), other.as_fd(), here(&other));
            assert!(own.names.len() <= LISTENERS_MAX && own.order.len() <= LISTENERS_MAX);
        }
        assert!(own.names.len() > LISTENERS_MAX / 2, "{}", own.names.len());
    }

    #[test]
    fn a_listener_that_is_held_keeps_its_port() {
        let mut own = OwnListeners::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        own.add_tcp(address, server.as_fd(), here(&server));
        let held = own.tcp_listener(address, near()).unwrap();
        assert!(held.is_served());
        drop(server);
        assert!(!held.is_served());
        assert!(std::net::TcpListener::bind(address).is_err());
        drop(held);
        let stranger = std::net::TcpListener::bind(address).unwrap();
        assert!(own.tcp_listener(address, near()).is_none());
        drop(stranger);
    }

    #[test]
    fn a_listener_is_found_under_another_number() {
        let mut own = OwnListeners::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        own.add_tcp(address, server.as_fd(), here(&server));
        let moved = server.try_clone().unwrap();
        drop(server);
        assert!(own.tcp_listener(address, near()).is_some());
        drop(moved);
    }

    #[test]
    fn a_listener_that_shares_its_port_vouches_for_nothing() {
        use nix::sys::socket::{setsockopt, sockopt};
        let mut own = OwnListeners::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        own.add_tcp(address, server.as_fd(), here(&server));
        setsockopt(&server, sockopt::ReusePort, &true).unwrap();
        assert!(own.tcp_listener(address, near()).is_none());
    }
}
