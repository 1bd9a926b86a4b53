//! Special-use addresses: everything that is not a public unicast address.
//!
//! The union of the registries of RFC 6890 and its successors, the forms that
//! carry an IPv4 address inside an IPv6 one, and the metadata services of
//! clouds that live on otherwise public addresses. `std::net` only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The name that the gateway itself answers in every run (RFC 6761 6.4). Nobody has it, and
/// nothing is ever sent there.
pub const OWN_HOST: &str = "outgate.invalid";

/// What stands for that name where others have a class.
pub(crate) const OWN_CLASS: &str = "own";

/// IPv4 blocks: first address, prefix length, class. The first match counts.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::UNSPECIFIED, 32, "unspecified"),
    (Ipv4Addr::UNSPECIFIED, 8, "this-network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private-use"),
    (Ipv4Addr::new(100, 100, 100, 200), 32, "metadata"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared-address"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "metadata"),
    (Ipv4Addr::new(169, 254, 169, 254), 32, "metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private-use"),
    (Ipv4Addr::new(192, 0, 0, 192), 32, "metadata"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol-assignment"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4-relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private-use"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::BROADCAST, 32, "broadcast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// IPv6 blocks, in the same form.
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::UNSPECIFIED, 96, "ipv4-compatible"),
    (
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        "local-translation",
    ),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 16, "discard"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "teredo"),
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "protocol-assignment",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "documentation",
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "documentation",
    ),
    (
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0),
        32,
        "metadata",
    ),
    (
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
        128,
        "metadata",
    ),
    (
        Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
        128,
        "metadata",
    ),
    (
        Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0),
        7,
        "unique-local",
    ),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// First segments between these two are global unicast (2000::/3).
const GLOBAL_UNICAST: std::ops::RangeInclusive<u16> = 0x2000..=0x3fff;

/// The class of an address that is not a public unicast one, such as
/// `private-use`; `None` for a public address.
///
/// IPv6 forms that carry an IPv4 address are judged as that address. What is
/// not known to be public is special.
pub(crate) fn special_use(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(address) => special_use_v4(address),
        IpAddr::V6(address) => special_use_v6(address),
    }
}

/// The IPv4 address that an IPv6 address carries: mapped, translated, NAT64, 6to4.
pub(crate) fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let high_low = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(high_low(high, low)),
        _ => None,
    }
}

/// Whether no rule and no pin can make this a destination.
pub(crate) fn never_a_destination(ip: IpAddr) -> bool {
    special_use(ip).is_some_and(is_never_class)
}

/// Whether addresses of this class are never a destination.
pub(crate) fn is_never_class(class: &str) -> bool {
    matches!(
        class,
        "unspecified"
            | "this-network"
            | "multicast"
            | "broadcast"
            | "reserved"
            | "discard"
            | OWN_CLASS
    )
}

fn special_use_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = u32::from(address);
    V4.iter()
        .find(|(first, prefix, _)| (bits ^ u32::from(*first)) >> (32 - prefix) == 0)
        .map(|(_, _, class)| *class)
}

fn special_use_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = embedded_v4(address) {
        return special_use_v4(inner);
    }
    let bits = u128::from(address);
    if let Some((_, _, class)) = V6
        .iter()
        .find(|(first, prefix, _)| (bits ^ u128::from(*first)) >> (128 - prefix) == 0)
    {
        return Some(class);
    }
    let [first, .., kind, mark, high, low] = address.segments();
    // Of a tunnel that a router of the network opens (ISATAP, RFC 5214 6.1).
    if mark == 0x5efe
        && matches!(kind, 0 | 0x0200)
        && let Some(class) = special_use_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
    {
        return Some(class);
    }
    (!GLOBAL_UNICAST.contains(&first)).then_some("reserved")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&str, Option<&str>)]) {
        for (text, class) in rows {
            let ip: IpAddr = text.parse().expect(text);
            assert_eq!(special_use(ip), *class, "{text}");
        }
    }

    #[test]
    fn every_block_ends_where_the_registry_says() {
        check(&[
            ("0.0.0.0", Some("unspecified")),
            ("0.255.255.255", Some("this-network")),
            ("1.0.0.0", None),
            ("9.255.255.255", None),
            ("10.0.0.0", Some("private-use")),
            ("10.255.255.255", Some("private-use")),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.64.0.0", Some("shared-address")),
            ("100.100.100.200", Some("metadata")),
            ("100.127.255.255", Some("shared-address")),
            ("100.128.0.0", None),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("128.0.0.1", None),
            ("168.63.129.16", Some("metadata")),
            ("168.63.129.17", None),
            ("169.253.255.255", None),
            ("169.254.0.1", Some("link-local")),
            ("169.254.169.254", Some("metadata")),
            ("169.255.0.0", None),
            ("172.15.255.255", None),
            ("172.16.0.0", Some("private-use")),
            ("172.31.255.255", Some("private-use")),
            ("172.32.0.0", None),
            ("192.0.0.1", Some("protocol-assignment")),
            ("192.0.0.192", Some("metadata")),
            ("192.0.1.0", None),
            ("192.0.2.1", Some("documentation")),
            ("192.0.3.0", None),
            ("192.88.99.1", Some("6to4-relay")),
            ("192.167.255.255", None),
            ("192.168.0.1", Some("private-use")),
            ("192.169.0.0", None),
            ("198.17.255.255", None),
            ("198.18.0.0", Some("benchmarking")),
            ("198.19.255.255", Some("benchmarking")),
            ("198.20.0.0", None),
            ("198.51.100.7", Some("documentation")),
            ("203.0.113.7", Some("documentation")),
            ("203.0.114.0", None),
            ("223.255.255.255", None),
            ("224.0.0.1", Some("multicast")),
            ("239.255.255.255", Some("multicast")),
            ("240.0.0.0", Some("reserved")),
            ("255.255.255.255", Some("broadcast")),
        ]);
    }

    #[test]
    fn ipv6_blocks_and_carried_addresses_are_classed() {
        check(&[
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("::2", Some("ipv4-compatible")),
            ("::7f00:1", Some("ipv4-compatible")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:10.0.0.1", Some("private-use")),
            ("::ffff:8.8.8.8", None),
            ("::ffff:0:10.0.0.1", Some("private-use")),
            ("64:ff9b::7f00:1", Some("loopback")),
            ("64:ff9b::808:808", None),
            ("64:ff9b:1::808:808", Some("local-translation")),
            ("64:ff9b:2::808:808", Some("reserved")),
            ("100::1", Some("discard")),
            ("2001::1", Some("teredo")),
            ("2001:2::1", Some("protocol-assignment")),
            ("2001:1ff::1", Some("protocol-assignment")),
            ("2001:200::1", None),
            ("2001:db7:ffff::1", None),
            ("2001:db8::1", Some("documentation")),
            ("2001:db9::1", None),
            ("2002:a00:1::1", Some("private-use")),
            ("2002:808:808::1", None),
            ("2606:4700::1", None),
            ("2606:4700::5efe:a00:1", Some("private-use")),
            ("2606:4700::200:5efe:7f00:1", Some("loopback")),
            ("2606:4700::5efe:808:808", None),
            ("fd00::5efe:808:808", Some("unique-local")),
            ("3ffe::1", None),
            ("3fff::1", Some("documentation")),
            ("3fff:1000::1", None),
            ("4000::1", Some("reserved")),
            ("5f00::1", Some("reserved")),
            ("fbff::1", Some("reserved")),
            ("fc00::1", Some("unique-local")),
            ("fd00:ec2::254", Some("metadata")),
            ("fd00:ec2::23", Some("metadata")),
            ("fd00:ec3::254", Some("unique-local")),
            ("fdff:ffff::1", Some("unique-local")),
            ("fe80::1", Some("link-local")),
            ("febf::1", Some("link-local")),
            ("fec0::1", Some("site-local")),
            ("ff02::1", Some("multicast")),
        ]);
    }
}
