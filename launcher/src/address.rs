//! Socket addresses as a held thread passed them: bytes in, values out, with
//! the kernel's own errors (connect(2), ip(7), ipv6(7), unix(7)). Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::errno::Errno;

use crate::limits::SOCKADDR_BYTES_MAX;

const AF_UNSPEC: u16 = 0;
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Where a socket is asked to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Dissolve the association.
    Unspecified,
    /// An Internet address, IPv4-mapped forms unwrapped.
    Inet {
        /// Family the caller wrote, before unwrapping.
        family: Family,
        /// The destination; `0.0.0.0` and `::` mean this host and are unwrapped
        /// to its loopback address, as the kernel does.
        destination: SocketAddr,
    },
    /// A Unix socket in the file system: the path as written.
    Path(Vec<u8>),
    /// A Unix socket with an abstract name.
    Abstract(Vec<u8>),
}

/// Family of an Internet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`.
    V6,
}

/// The claimed length of an address, or the error the kernel gives for it.
///
/// # Errors
/// `EINVAL` for negative lengths and lengths above the kernel's limit.
pub fn claimed_length(claimed: i32) -> Result<usize, Errno> {
    usize::try_from(claimed)
        .ok()
        .filter(|length| *length <= SOCKADDR_BYTES_MAX)
        .ok_or(Errno::EINVAL)
}

/// Reads an address of exactly the bytes the caller claimed.
///
/// # Errors
/// The errno connect(2) gives for such bytes; the caller's fault.
pub fn parse(bytes: &[u8]) -> Result<Address, Errno> {
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
    match u16::from_ne_bytes(*family) {
        AF_UNSPEC => Ok(Address::Unspecified),
        AF_INET => v4(bytes, rest),
        AF_INET6 => v6(bytes, rest),
        AF_UNIX => unix(bytes, rest),
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

/// Reads the address that a socket of the Internet is to be bound to, with the scope of
/// an IPv6 address: as it is written, so that every address of the machine stays that.
///
/// # Errors
/// The errno bind(2) gives for such bytes; the caller's fault.
pub fn parse_local(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
    match u16::from_ne_bytes(*family) {
        AF_INET => written_v4(bytes, rest).map(SocketAddr::V4),
        // For old programs (ip(7)).
        AF_UNSPEC => match written_v4(bytes, rest)? {
            address if address.ip().is_unspecified() => Ok(SocketAddr::V4(address)),
            _ => Err(Errno::EAFNOSUPPORT),
        },
        AF_INET6 => written_v6(bytes, rest).map(SocketAddr::V6),
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

fn v4(bytes: &[u8], rest: &[u8]) -> Result<Address, Errno> {
    let written = written_v4(bytes, rest)?;
    Ok(Address::Inet {
        family: Family::V4,
        destination: SocketAddr::new(this_host(IpAddr::V4(*written.ip())), written.port()),
    })
}

fn v6(bytes: &[u8], rest: &[u8]) -> Result<Address, Errno> {
    let written = written_v6(bytes, rest)?;
    let ip = IpAddr::V6(*written.ip()).to_canonical();
    Ok(Address::Inet {
        family: Family::V6,
        destination: SocketAddr::new(this_host(ip), written.port()),
    })
}

fn written_v4(bytes: &[u8], rest: &[u8]) -> Result<SocketAddrV4, Errno> {
    if bytes.len() < 16 {
        return Err(Errno::EINVAL);
    }
    let (port, rest) = rest.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
    let (octets, _) = rest.split_first_chunk::<4>().ok_or(Errno::EINVAL)?;
    let ip = Ipv4Addr::from(*octets);
    Ok(SocketAddrV4::new(ip, u16::from_be_bytes(*port)))
}

fn written_v6(bytes: &[u8], rest: &[u8]) -> Result<SocketAddrV6, Errno> {
    // SIN6_LEN_RFC2133: the scope id may be absent.
    if bytes.len() < 24 {
        return Err(Errno::EINVAL);
    }
    let (port, rest) = rest.split_first_chunk::<2>().ok_or(Errno::EINVAL)?;
    let (_flow, rest) = rest.split_first_chunk::<4>().ok_or(Errno::EINVAL)?;
    let (octets, rest) = rest.split_first_chunk::<16>().ok_or(Errno::EINVAL)?;
    let scope = rest.split_first_chunk::<4>();
    let scope = scope.map_or(0, |(scope, _)| u32::from_ne_bytes(*scope));
    let (ip, port) = (Ipv6Addr::from(*octets), u16::from_be_bytes(*port));
    Ok(SocketAddrV6::new(ip, port, 0, scope))
}

fn this_host(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    }
}

fn unix(bytes: &[u8], rest: &[u8]) -> Result<Address, Errno> {
    if bytes.len() > 110 || rest.is_empty() {
        return Err(Errno::EINVAL);
    }
    if let Some((0, name)) = rest.split_first() {
        return Ok(Address::Abstract(name.to_vec()));
    }
    Ok(Address::Path(path_bytes(rest)))
}

/// A path ends at its first NUL, or with the address.
fn path_bytes(rest: &[u8]) -> Vec<u8> {
    let end = rest.iter().position(|byte| *byte == 0);
    rest.iter()
        .take(end.unwrap_or(rest.len()))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inet(ip: [u8; 4], port: u16, length: usize) -> Vec<u8> {
        let mut bytes = AF_INET.to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(ip);
        bytes.resize(length, 0);
        bytes
    }

    fn inet6(ip: &str, port: u16, length: usize) -> Vec<u8> {
        let mut bytes = AF_INET6.to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(ip.parse::<Ipv6Addr>().unwrap().octets());
        bytes.resize(length, 0);
        bytes
    }

    fn destination(bytes: &[u8]) -> String {
        match parse(bytes).unwrap() {
            Address::Inet { destination, .. } => destination.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_address_is_read_in_its_canonical_form() {
        assert_eq!(destination(&inet([192, 0, 2, 1], 80, 16)), "192.0.2.1:80");
        assert_eq!(destination(&inet([0, 0, 0, 0], 80, 16)), "127.0.0.1:80");
        assert_eq!(destination(&inet6("::", 80, 28)), "[::1]:80");
        assert_eq!(
            destination(&inet6("::ffff:192.0.2.1", 443, 28)),
            "192.0.2.1:443"
        );
        assert_eq!(
            destination(&inet6("::ffff:0.0.0.0", 443, 28)),
            "127.0.0.1:443"
        );
        assert_eq!(
            destination(&inet6("2001:db8::1", 443, 24)),
            "[2001:db8::1]:443"
        );
    }

    #[test]
    fn a_short_or_strange_address_has_the_kernels_error() {
        assert_eq!(parse(&[]), Err(Errno::EINVAL));
        assert_eq!(parse(&[2]), Err(Errno::EINVAL));
        assert_eq!(parse(&inet([192, 0, 2, 1], 80, 15)), Err(Errno::EINVAL));
        assert_eq!(parse(&inet6("2001:db8::1", 80, 23)), Err(Errno::EINVAL));
        assert_eq!(parse(&[17, 0, 0, 0]), Err(Errno::EAFNOSUPPORT));
        assert_eq!(parse(&[1, 0]), Err(Errno::EINVAL));
        assert_eq!(claimed_length(-1), Err(Errno::EINVAL));
        assert_eq!(claimed_length(129), Err(Errno::EINVAL));
        assert_eq!(claimed_length(128), Ok(128));
        assert_eq!(parse(&[0, 0]), Ok(Address::Unspecified));
    }

    #[test]
    fn unix_names_end_where_the_kernel_ends_them() {
        assert_eq!(
            parse(b"\x01\0/run/x\0junk"),
            Ok(Address::Path(b"/run/x".to_vec()))
        );
        assert_eq!(
            parse(b"\x01\0\0name"),
            Ok(Address::Abstract(b"name".to_vec()))
        );
    }
}
