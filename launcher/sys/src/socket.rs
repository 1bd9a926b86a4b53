//! Facts the kernel holds about a socket (socket(7)): asked of the socket
//! itself, never of whoever made it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use libc::{
    AF_INET, AF_INET6, AF_UNIX, IPPROTO_TCP, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK,
    SOCK_SEQPACKET, SOCK_STREAM,
};

use crate::{SysError, check};

/// `SO_PASSRIGHTS` of include/uapi/asm-generic/socket.h, which this libc does not name yet.
const SO_PASSRIGHTS: libc::c_int = 83;

fn option<const N: usize>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
) -> Result<[u8; N], SysError> {
    let mut value = [0_u8; N];
    let mut length = libc::socklen_t::try_from(N).unwrap_or(0);
    // SAFETY: `value` is live and writable for `length` bytes, which is its size.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result.into())?;
    Ok(value)
}

fn integer(socket: BorrowedFd<'_>, level: i32, name: i32) -> Result<i32, SysError> {
    option::<4>(socket, level, name).map(i32::from_ne_bytes)
}

/// Address family (`SO_DOMAIN`).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn family(socket: BorrowedFd<'_>) -> Result<i32, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_DOMAIN)
}

/// Type without flags (`SO_TYPE`).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn kind(socket: BorrowedFd<'_>) -> Result<i32, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_TYPE)
}

/// Protocol number (`SO_PROTOCOL`).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn protocol(socket: BorrowedFd<'_>) -> Result<i32, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL)
}

/// Whether the socket listens (`SO_ACCEPTCONN`).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn listens(socket: BorrowedFd<'_>) -> Result<bool, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_ACCEPTCONN).map(|value| value != 0)
}

/// Whether other sockets of its user may have the socket's port too
/// (`SO_REUSEPORT`).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn shares_port(socket: BorrowedFd<'_>) -> Result<bool, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT).map(|value| value != 0)
}

/// Whether an IPv6 socket takes no IPv4-mapped addresses (`IPV6_V6ONLY`).
///
/// # Errors
/// `ENOPROTOOPT` for other families.
pub fn only_v6(socket: BorrowedFd<'_>) -> Result<bool, SysError> {
    integer(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY).map(|value| value != 0)
}

/// Takes the pending error (`SO_ERROR`); 0 when there is none.
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn take_error(socket: BorrowedFd<'_>) -> Result<i32, SysError> {
    integer(socket, libc::SOL_SOCKET, libc::SO_ERROR)
}

/// Has senders of this Unix socket, and of those that it accepts, be refused with `EPERM` where
/// they send descriptors along (`SO_PASSRIGHTS`). KERNEL: 6.16.
///
/// # Errors
/// `ENOPROTOOPT` before: they are sent, and closed by whoever reads.
pub fn refuse_descriptors(socket: BorrowedFd<'_>) -> Result<(), SysError> {
    let off: libc::c_int = 0;
    let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    // SAFETY: `off` is live and readable for `length` bytes, which is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            length,
        )
    };
    check(result.into())?;
    Ok(())
}

/// A number no other socket of this boot has (`SO_COOKIE`). KERNEL: 4.12.
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn cookie(socket: BorrowedFd<'_>) -> Result<u64, SysError> {
    option::<8>(socket, libc::SOL_SOCKET, libc::SO_COOKIE).map(u64::from_ne_bytes)
}

/// The cookie of the network namespace the socket lives in
/// (`SO_NETNS_COOKIE`). KERNEL: 5.14.
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn namespace_cookie(socket: BorrowedFd<'_>) -> Result<u64, SysError> {
    option::<8>(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).map(u64::from_ne_bytes)
}

/// KERNEL: 5.14, asm-generic/socket.h.
const SO_NETNS_COOKIE: i32 = 71;

/// KERNEL: 6.5, asm-generic/socket.h.
const SO_PEERPIDFD: i32 = 77;

/// A descriptor for the process that the kernel names as the peer of a local socket: who
/// connected, or who had the peer listen. It is that process and no other with its id
/// (`SO_PEERPIDFD`).
///
/// # Errors
/// `ENOPROTOOPT` before Linux 6.5; others: it is gone.
pub fn peer_process(socket: BorrowedFd<'_>) -> Result<OwnedFd, SysError> {
    let number = integer(socket, libc::SOL_SOCKET, SO_PEERPIDFD)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// How long a blocking connect may take, in microseconds; 0 = for ever
/// (`SO_SNDTIMEO`, as connect(2) uses it).
///
/// # Errors
/// `ENOTSOCK` when the descriptor is no socket.
pub fn send_timeout_us(socket: BorrowedFd<'_>) -> Result<u64, SysError> {
    let value = option::<16>(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO)?;
    let (seconds, micros) = value.split_at(8);
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    Ok(number(seconds)
        .saturating_mul(1_000_000)
        .saturating_add(number(micros)))
}

/// Dissolves a socket's association: connect(2) with `AF_UNSPEC`.
///
/// # Errors
/// Those of connect(2).
pub fn disconnect(socket: BorrowedFd<'_>) -> Result<(), SysError> {
    let address = libc::sockaddr {
        sa_family: 0,
        sa_data: [0; 14],
    };
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr>()).unwrap_or(0);
    // SAFETY: the address is live and as long as said.
    let result = unsafe { libc::connect(socket.as_raw_fd(), &raw const address, length) };
    check(result.into()).map(drop)
}

/// State of a TCP socket (`TCP_INFO`, first byte; `enum` in net/tcp_states.h).
///
/// # Errors
/// `EOPNOTSUPP` or `ENOPROTOOPT` for other protocols.
pub fn tcp_state(socket: BorrowedFd<'_>) -> Result<u8, SysError> {
    let [state, ..] = option::<8>(socket, IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(state)
}

/// Takes the next connection of a listener, close-on-exec, and the Internet
/// address it came from; `None` for other families. IPv4-mapped addresses are
/// unwrapped.
///
/// # Errors
/// `EAGAIN` when none waits; others of accept(2).
pub fn accept(listener: BorrowedFd<'_>) -> Result<(OwnedFd, Option<SocketAddr>), SysError> {
    // SAFETY: all-zero bytes are a valid value of this plain struct.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::sockaddr_storage>()).unwrap_or(0);
    // SAFETY: `storage` is live and writable for `length` bytes, which is its size.
    let number = unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            (&raw mut storage).cast(),
            &raw mut length,
            SOCK_CLOEXEC,
        )
    };
    check(number.into())?;
    // SAFETY: the kernel just gave us this descriptor.
    let accepted = unsafe { OwnedFd::from_raw_fd(number) };
    Ok((accepted, internet(&storage)))
}

/// The Internet address in a socket address, canonical.
fn internet(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let (ip, port): (IpAddr, u16) = match i32::from(storage.ss_family) {
        AF_INET => {
            let address = std::ptr::from_ref(storage).cast::<libc::sockaddr_in>();
            // SAFETY: the storage is larger than, aligned for, and by its
            // family filled as this struct.
            let address = unsafe { &*address };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            (ip.into(), u16::from_be(address.sin_port))
        }
        AF_INET6 => {
            let address = std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>();
            // SAFETY: the storage is larger than, aligned for, and by its
            // family filled as this struct.
            let address = unsafe { &*address };
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            (ip.to_canonical(), u16::from_be(address.sin6_port))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}
