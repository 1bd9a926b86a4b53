//! Ranges of addresses and sets of ports, as rules name them.
//!
//! `std::net` only; nothing here knows what a rule allows.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::special::special_use;

/// An address or a range of addresses: first address and prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Net {
    first: IpAddr,
    prefix: u8,
}

impl Net {
    /// The range of one address.
    pub(crate) fn host(address: IpAddr) -> Self {
        let prefix = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        Self {
            first: address,
            prefix,
        }
    }

    /// The range of `prefix` fixed bits, and whether `address` is its first one.
    /// `None` when the family has no such prefix.
    pub(crate) fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let width = Self::host(address).prefix;
        (prefix <= width).then(|| Self {
            first: mask(address, prefix),
            prefix,
        })
    }

    /// The first address.
    pub(crate) fn first(&self) -> IpAddr {
        self.first
    }

    /// Whether it is one address.
    pub(crate) fn is_host(&self) -> bool {
        self.prefix == Self::host(self.first).prefix
    }

    /// Number of fixed bits.
    pub(crate) fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether the range holds the address. An IPv4 address is not in an IPv6 range.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.first.is_ipv4() == ip.is_ipv4() && mask(ip, self.prefix) == self.first
    }

    /// Whether every address of the range is a special-use one.
    pub(crate) fn is_special(&self) -> bool {
        let class = special_use(self.first);
        class.is_some() && (class == special_use(self.last()) || is_within_one_block(self))
    }

    fn last(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let free = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(first) | free))
            }
            IpAddr::V6(first) => {
                let free = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(first) | free))
            }
        }
    }
}

/// Whether the range lies in an IPv4 block whose ends have classes of their
/// own, as 169.254.0.0/16 and 192.0.0.0/24 have. IPv6 has no such block: what
/// carries IPv4 addresses also carries public ones.
fn is_within_one_block(net: &Net) -> bool {
    net.first.is_ipv4() && net.prefix >= 8 && special_use(net.last()).is_some()
}

impl fmt::Display for Net {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            IpAddr::V4(first) => first.fmt(out)?,
            IpAddr::V6(first) => write!(out, "[{first}]")?,
        }
        if self.is_host() {
            return Ok(());
        }
        write!(out, "/{}", self.prefix)
    }
}

fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let free = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & !free))
        }
        IpAddr::V6(address) => {
            let free = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & !free))
        }
    }
}

/// The ports of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ports {
    /// None were written: the default of the scheme where a rule grants, every
    /// port where it denies.
    Default,
    /// `*`.
    Any,
    /// Closed ranges.
    List(Vec<(u16, u16)>),
}

impl Ports {
    /// Whether the port is in the set, given what `Default` stands for.
    pub(crate) fn contains(&self, port: u16, default: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Default => default(),
            Self::Any => true,
            Self::List(ranges) => ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&port)),
        }
    }

    /// The one port of the set, given what `Default` stands for.
    pub(crate) fn only(&self, default: u16) -> Option<u16> {
        match self {
            Self::Default => Some(default),
            Self::Any => None,
            Self::List(ranges) => match ranges.as_slice() {
                [(first, last)] if first == last => Some(*first),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(address: &str, prefix: u8) -> Net {
        Net::new(address.parse().expect("an address"), prefix).expect("a range")
    }

    #[test]
    fn ranges_hold_what_their_prefix_says() {
        let rows = [
            (net("10.2.0.0", 16), "10.2.255.255", true),
            (net("10.2.0.0", 16), "10.3.0.0", false),
            (net("0.0.0.0", 0), "255.255.255.255", true),
            (net("0.0.0.0", 0), "::1", false),
            (net("192.0.2.1", 32), "192.0.2.1", true),
            (net("192.0.2.1", 32), "192.0.2.0", false),
            (net("2001:db8::", 32), "2001:db8:ffff::1", true),
            (net("2001:db8::", 32), "2001:db9::", false),
        ];
        for (net, ip, holds) in rows {
            assert_eq!(
                net.contains(ip.parse().expect("an address")),
                holds,
                "{net} {ip}"
            );
        }
    }

    #[test]
    fn only_ranges_within_special_use_are_special() {
        for (net, special) in [
            (net("10.0.0.0", 8), true),
            (net("127.0.0.1", 32), true),
            (net("169.254.0.0", 16), true),
            (net("172.16.0.0", 12), true),
            (net("100.64.0.0", 10), true),
            (net("0.0.0.0", 0), false),
            (net("10.0.0.0", 7), false),
            (net("192.0.0.0", 24), true),
            (net("192.0.0.0", 22), false),
            (net("64:ff9b::", 96), false),
            (net("64:ff9b::a00:0", 104), true),
            (net("2002::", 16), false),
            (net("2001::", 23), false),
            (net("fc00::", 7), true),
            (net("8.8.8.0", 24), false),
            (net("::", 0), false),
        ] {
            assert_eq!(net.is_special(), special, "{net}");
        }
    }
}
