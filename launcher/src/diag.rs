//! Which socket listens, asked of the kernel (sock_diag(7)): whether a listener
//! that this sandbox made is still the one that answers at an address. Reads
//! only; knows no policy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
/// `NLM_F_ROOT | NLM_F_MATCH` (netlink(7)).
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
const TCP_LISTEN: u8 = 10;
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_VFS: u32 = 2;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
/// Bytes of the header of a netlink message (netlink(7)).
const HEADER_BYTES: usize = 16;
/// Bytes of `struct unix_diag_msg`.
const UNIX_MESSAGE_BYTES: usize = 16;
/// Bytes of one reply we read; each describes one socket.
const REPLY_BYTES_MAX: usize = 8192;
/// Bytes of one part of a list, as large as the kernel makes them.
const LIST_BYTES: usize = 32 << 10;
/// Parts of a list we read: some ten thousand sockets.
const LIST_REPLIES_MAX: usize = 32;

/// A netlink socket for questions about sockets.
#[derive(Debug)]
pub struct Diag(OwnedFd);

/// Where a Unix listener is bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UnixPlace {
    /// An inode: device and number, in the kernel's own encoding.
    Inode {
        /// `major << 20 | minor`.
        device: u32,
        /// Low 32 bits of the inode number.
        inode: u32,
    },
    /// An abstract name, without the leading NUL.
    Abstract(Vec<u8>),
}

impl Diag {
    /// Opens the socket.
    ///
    /// # Errors
    /// Those of socket(2).
    pub fn open() -> io::Result<Self> {
        let descriptor = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkSockDiag,
        )?;
        Ok(Self(descriptor))
    }

    /// Whether the TCP socket with `cookie` listens at `address`.
    pub fn listens(&self, address: SocketAddr, cookie: u64) -> bool {
        let mut body = Vec::with_capacity(56);
        let family = match address.ip() {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        body.extend([family_byte(family), 6, 0, 0]);
        body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
        body.extend(address.port().to_be_bytes());
        body.extend([0, 0]);
        let mut source = [0_u8; 16];
        match address.ip() {
            IpAddr::V4(ip) => {
                for (slot, byte) in source.iter_mut().zip(ip.octets()) {
                    *slot = byte;
                }
            }
            IpAddr::V6(ip) => source = ip.octets(),
        }
        body.extend(source);
        body.extend([0; 16]);
        body.extend([0; 4]);
        body.extend(cookie_words(cookie));
        matches!(self.ask(&body), Ok(reply) if reply.get(1) == Some(&TCP_LISTEN))
    }

    /// Where the Unix socket with this inode and cookie listens, if it does.
    pub fn unix_listener(&self, inode: u32, cookie: u64) -> Option<UnixPlace> {
        let mut body = Vec::with_capacity(24);
        body.extend([family_byte(AddressFamily::Unix), 0, 0, 0]);
        body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
        body.extend(inode.to_ne_bytes());
        body.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_VFS).to_ne_bytes());
        body.extend(cookie_words(cookie));
        let reply = self.ask(&body).ok()?;
        if reply.get(2) != Some(&TCP_LISTEN) {
            return None;
        }
        unix_place(reply.get(UNIX_MESSAGE_BYTES..)?)
    }

    /// Whether a Unix socket of this network namespace listens at `place`.
    /// Uses the socket up: what is left of the list is never read.
    ///
    /// # Errors
    /// The list cannot be had, or is too long to be read to its end.
    pub fn unix_listens(self, place: &UnixPlace) -> io::Result<bool> {
        let mut body = Vec::with_capacity(24);
        body.extend([family_byte(AddressFamily::Unix), 0, 0, 0]);
        body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
        body.extend(0_u32.to_ne_bytes());
        body.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_VFS).to_ne_bytes());
        body.extend(cookie_words(u64::MAX));
        self.send(&body, NLM_F_REQUEST | NLM_F_DUMP)?;
        for _ in 0..LIST_REPLIES_MAX {
            let mut reply = vec![0; LIST_BYTES];
            let count = recv(self.0.as_raw_fd(), &mut reply, MsgFlags::MSG_DONTWAIT)?;
            reply.truncate(count);
            let mut rest = reply.as_slice();
            while let Some((kind, body, next)) = message(rest) {
                match kind {
                    NLMSG_DONE => return Ok(false),
                    SOCK_DIAG_BY_FAMILY => {}
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                }
                let attributes = body.get(UNIX_MESSAGE_BYTES..).unwrap_or_default();
                if unix_place(attributes).as_ref() == Some(place) {
                    return Ok(true);
                }
                rest = next;
            }
        }
        Err(io::ErrorKind::FileTooLarge.into())
    }

    fn send(&self, body: &[u8], flags: u16) -> io::Result<()> {
        let total = HEADER_BYTES.saturating_add(body.len());
        let mut message = Vec::with_capacity(total);
        message.extend(u32::try_from(total).unwrap_or(0).to_ne_bytes());
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        send(self.0.as_raw_fd(), &message, MsgFlags::empty())?;
        Ok(())
    }

    /// Sends one request and returns the body of the reply.
    fn ask(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        self.send(body, NLM_F_REQUEST)?;
        let mut reply = vec![0; REPLY_BYTES_MAX];
        // The kernel answers such a request before send returns.
        let count = recv(self.0.as_raw_fd(), &mut reply, MsgFlags::MSG_DONTWAIT)?;
        reply.truncate(count);
        let kind = reply
            .get(4..6)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u16::from_ne_bytes);
        if kind != Some(SOCK_DIAG_BY_FAMILY) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(reply.split_off(HEADER_BYTES.min(reply.len())))
    }
}

/// The kind and body of the first message in a part of a list, and the rest.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [l0, l1, l2, l3, k0, k1, ..] = *header;
    let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
    let body = bytes.get(HEADER_BYTES..length)?;
    let padded = length.saturating_add(3) & !3;
    let rest = bytes.get(padded..).unwrap_or_default();
    Some((u16::from_ne_bytes([k0, k1]), body, rest))
}

fn family_byte(family: AddressFamily) -> u8 {
    u8::try_from(family as i32).unwrap_or(0)
}

/// A cookie travels as two words, low first (`struct inet_diag_sockid`).
fn cookie_words(cookie: u64) -> [u8; 8] {
    let low = cookie & u64::from(u32::MAX);
    let high = cookie >> 32;
    let mut words = [0_u8; 8];
    let (first, second) = words.split_at_mut(4);
    for (slot, byte) in first.iter_mut().zip(word(low)) {
        *slot = byte;
    }
    for (slot, byte) in second.iter_mut().zip(word(high)) {
        *slot = byte;
    }
    words
}

fn word(value: u64) -> [u8; 4] {
    u32::try_from(value).unwrap_or(0).to_ne_bytes()
}

/// Reads the attributes of a Unix socket's description.
fn unix_place(mut attributes: &[u8]) -> Option<UnixPlace> {
    let mut name = None;
    while let Some((header, rest)) = attributes.split_first_chunk::<4>() {
        let [l0, l1, k0, k1] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1])).saturating_sub(4);
        let value = rest.get(..length)?;
        match u16::from_ne_bytes([k0, k1]) {
            UNIX_DIAG_VFS => {
                let (inode, device) = value.split_first_chunk::<4>()?;
                let device = device.first_chunk::<4>()?;
                return Some(UnixPlace::Inode {
                    device: u32::from_ne_bytes(*device),
                    inode: u32::from_ne_bytes(*inode),
                });
            }
            UNIX_DIAG_NAME => {
                if let Some((0, rest)) = value.split_first() {
                    name = Some(UnixPlace::Abstract(rest.to_vec()));
                }
            }
            _ => {}
        }
        let padded = length.saturating_add(3) & !3;
        attributes = rest.get(padded..).unwrap_or_default();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_tcp_listener_is_known_by_its_cookie() {
        let diag = Diag::open().unwrap();
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(bind).unwrap();
            let address = listener.local_addr().unwrap();
            let cookie = outgate_sys::socket::cookie(listener.as_fd()).unwrap();
            assert!(diag.listens(address, cookie));
            assert!(!diag.listens(address, cookie.wrapping_add(1)));
            drop(listener);
            let other = TcpListener::bind(address).unwrap();
            assert!(!diag.listens(address, cookie));
            drop(other);
        }
    }

    #[test]
    fn a_unix_listener_is_known_by_inode_and_name() {
        let diag = Diag::open().unwrap();
        let name = format!("outgate-diag-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let stat = nix::sys::stat::fstat(listener.as_fd()).unwrap();
        let inode = u32::try_from(stat.st_ino).unwrap();
        let cookie = outgate_sys::socket::cookie(listener.as_fd()).unwrap();
        let place = diag.unix_listener(inode, cookie);
        assert_eq!(place, Some(UnixPlace::Abstract(name.into_bytes())));
        assert_eq!(diag.unix_listener(inode, cookie.wrapping_add(1)), None);
    }

    #[test]
    fn a_path_nobody_listens_at_is_told_from_one_that_is_served() {
        let path = format!("/tmp/outgate-diag-{}", std::process::id());
        let place = || {
            let stat = nix::sys::stat::stat(path.as_str()).unwrap();
            let (major, minor) = (
                nix::sys::stat::major(stat.st_dev),
                nix::sys::stat::minor(stat.st_dev),
            );
            UnixPlace::Inode {
                device: u32::try_from(major << 20 | minor).unwrap(),
                inode: u32::try_from(stat.st_ino & u64::from(u32::MAX)).unwrap(),
            }
        };
        let listens = || Diag::open().unwrap().unix_listens(&place()).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        // Many others, so that the list has several parts.
        let crowd: Vec<_> = (0..600)
            .map(|index| {
                let name = format!("{path}-{index}");
                let name = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
                UnixListener::bind_addr(&name).unwrap()
            })
            .collect();
        assert!(listens());
        drop(listener);
        assert!(!listens());
        drop(crowd);
        std::fs::remove_file(&path).unwrap();
    }
}
