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
const TCP_LISTEN: u8 = 10;
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_RQLEN: u32 = 0x10;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_RQLEN: u16 = 4;
/// Bytes of the header of a netlink message (netlink(7)).
const HEADER_BYTES: usize = 16;
/// Bytes of `struct unix_diag_msg`.
const UNIX_MESSAGE_BYTES: usize = 16;
/// Bytes of one reply we read; each describes one socket.
const REPLY_BYTES_MAX: usize = 8192;
/// A netlink socket for questions about sockets.
#[derive(Debug)]
pub struct Diag(OwnedFd);

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

    /// Stands for the cookie of any socket (`INET_DIAG_NOCOOKIE`, twice).
    pub const ANY_COOKIE: u64 = u64::MAX;

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

    /// The abstract name at which the Unix socket with this inode and cookie
    /// listens, without the leading NUL, if it does.
    pub fn unix_listener(&self, inode: u32, cookie: u64) -> Option<Vec<u8>> {
        let attributes = self.ask_unix((inode, cookie), UDIAG_SHOW_NAME)?;
        match attribute(&attributes, UNIX_DIAG_NAME)?.split_first() {
            Some((0, name)) => Some(name.to_vec()),
            _ => None,
        }
    }

    /// How many connections wait to be accepted by the Unix socket with this
    /// inode and cookie.
    pub fn unix_waiting(&self, inode: u32, cookie: u64) -> Option<u32> {
        let attributes = self.ask_unix((inode, cookie), UDIAG_SHOW_RQLEN)?;
        let waiting = attribute(&attributes, UNIX_DIAG_RQLEN)?.first_chunk()?;
        Some(u32::from_ne_bytes(*waiting))
    }

    /// Attributes of a Unix socket that listens.
    fn ask_unix(&self, (inode, cookie): (u32, u64), show: u32) -> Option<Vec<u8>> {
        let mut body = Vec::with_capacity(24);
        body.extend([family_byte(AddressFamily::Unix), 0, 0, 0]);
        body.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
        body.extend(inode.to_ne_bytes());
        body.extend(show.to_ne_bytes());
        body.extend(cookie_words(cookie));
        let mut reply = self.ask(&body).ok()?;
        let listens = reply.get(2) == Some(&TCP_LISTEN) && reply.len() >= UNIX_MESSAGE_BYTES;
        listens.then(|| reply.split_off(UNIX_MESSAGE_BYTES))
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

/// The value of an attribute among those of a socket's description.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some((header, rest)) = attributes.split_first_chunk::<4>() {
        let [l0, l1, k0, k1] = *header;
        let length = usize::from(u16::from_ne_bytes([l0, l1])).saturating_sub(4);
        let value = rest.get(..length)?;
        if u16::from_ne_bytes([k0, k1]) == wanted {
            return Some(value);
        }
        let padded = length.saturating_add(3) & !3;
        attributes = rest.get(padded..).unwrap_or_default();
    }
    None
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
    fn a_unix_listener_is_known_by_its_name_and_its_queue() {
        let diag = Diag::open().unwrap();
        let name = format!("outgate-diag-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let stat = nix::sys::stat::fstat(listener.as_fd()).unwrap();
        let inode = u32::try_from(stat.st_ino).unwrap();
        let cookie = outgate_sys::socket::cookie(listener.as_fd()).unwrap();
        let place = diag.unix_listener(inode, cookie);
        assert_eq!(place, Some(name.into_bytes()));
        assert_eq!(diag.unix_listener(inode, cookie.wrapping_add(1)), None);
        assert_eq!(diag.unix_waiting(inode, cookie), Some(0));
        let client = std::os::unix::net::UnixStream::connect_addr(&address).unwrap();
        assert_eq!(diag.unix_waiting(inode, cookie), Some(1));
        drop((client, listener));
        assert_eq!(diag.unix_waiting(inode, cookie), None);
    }
}
