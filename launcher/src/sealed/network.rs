//! What a sealed network knows of ways: loopback, and port 53 of every address. Whoever
//! sends elsewhere is told at once that there is no way (`ENETUNREACH`), as on a machine
//! without a network. rtnetlink(7).

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Index of `lo`, the first interface of every network namespace.
const LOOPBACK_INDEX: u32 = 1;
/// `RT_TABLE_LOCAL`.
const TABLE: u8 = 255;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

/// Attributes of a rule. KERNEL: 4.17 (ports).
const FRA_DST: u16 = 1;
const FRA_PRIORITY: u16 = 6;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_DPORT_RANGE: u16 = 24;

/// Port 53, from and to it, in the byte order of this machine.
const DNS_PORTS: [u16; 2] = [53, 53];

/// Brings `lo` up, makes every address local to it (AnyIP), and has that looked up for
/// loopback and for DNS alone.
pub(super) fn make() -> nix::Result<()> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    request(&netlink, &link_up())?;
    request(&netlink, &local_route(AddressFamily::Inet))?;
    // A kernel without IPv6 has no such route and no such sockets.
    let _ = request(&netlink, &local_route(AddressFamily::Inet6));
    // Where the kernel has no rules for routes, every address stays local, and what is
    // sent there gets lost.
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let _ = narrow(&netlink, family);
    }
    Ok(())
}

/// Has the table looked up for loopback and port 53, and for nothing else.
fn narrow(netlink: &OwnedFd, family: AddressFamily) -> nix::Result<()> {
    let loopback: (u8, Vec<u8>) = match family {
        AddressFamily::Inet6 => (128, std::net::Ipv6Addr::LOCALHOST.octets().to_vec()),
        _ => (8, vec![127, 0, 0, 0]),
    };
    let ports: Vec<u8> = DNS_PORTS.into_iter().flat_map(u16::to_ne_bytes).collect();
    for (priority, length, kind, value) in [
        (1, loopback.0, FRA_DST, &loopback.1),
        (2, 0, FRA_DPORT_RANGE, &ports),
        (3, 0, FRA_SPORT_RANGE, &ports),
    ] {
        let attributes = [attribute(kind, value), priority_of(priority)].concat();
        let rule = rule((RTM_NEWRULE, NLM_F_CREATE), (family, length), &attributes);
        request(netlink, &rule)?;
    }
    // The first one, which has the table looked up for everything.
    let everything = rule((RTM_DELRULE, 0), (family, 0), &priority_of(0));
    request(netlink, &everything)
}

/// A rule to look into the table: `FR_ACT_TO_TBL`, behind family, length of the
/// destination and source, tos; flags last.
fn rule(
    (kind, flags): (u16, u16),
    (family, length): (AddressFamily, u8),
    attributes: &[u8],
) -> Vec<u8> {
    let mut body = vec![number(family), length, 0, 0, TABLE, 0, 0, 1];
    body.extend(0_u32.to_ne_bytes());
    body.extend(attributes);
    message(kind, flags, &body)
}

fn priority_of(priority: u32) -> Vec<u8> {
    attribute(FRA_PRIORITY, &priority.to_ne_bytes())
}

/// RTM_NEWLINK with IFF_UP for `lo`.
fn link_up() -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0];
    body.extend(LOOPBACK_INDEX.to_ne_bytes());
    body.extend(1_u32.to_ne_bytes());
    body.extend(1_u32.to_ne_bytes());
    message(RTM_NEWLINK, 0, &body)
}

/// RTM_NEWROUTE: local, prefix length 0, device `lo`, table local.
fn local_route(family: AddressFamily) -> Vec<u8> {
    // family, destination and source length, tos, table, protocol boot, scope
    // host, type local, flags.
    let mut body = vec![number(family), 0, 0, 0, TABLE, 3, 254, 2];
    body.extend(0_u32.to_ne_bytes());
    // RTA_OIF.
    body.extend(attribute(4, &LOOPBACK_INDEX.to_ne_bytes()));
    message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body)
}

fn number(family: AddressFamily) -> u8 {
    u8::try_from(family as i32).unwrap_or(0)
}

/// An attribute whose value is a multiple of four bytes long.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap_or(0).saturating_add(4);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes
}

fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let total = u32::try_from(body.len()).unwrap_or(0).saturating_add(16);
    let mut bytes = total.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    // NLM_F_REQUEST | NLM_F_ACK.
    bytes.extend((flags | 5).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Sends one request and reads its acknowledgement.
fn request(netlink: &OwnedFd, message: &[u8]) -> nix::Result<()> {
    send(netlink.as_raw_fd(), message, MsgFlags::empty())?;
    let mut reply = [0_u8; 1024];
    let count = recv(netlink.as_raw_fd(), &mut reply, MsgFlags::empty())?;
    let errno = reply
        .get(16..20.min(count))
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(-1, i32::from_ne_bytes);
    if errno == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw(errno.saturating_neg()))
    }
}
