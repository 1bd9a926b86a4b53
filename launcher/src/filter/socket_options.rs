//! The rules for socket options: which change where, or how, a socket connects, what the
//! network is told of it, or what belongs to a network's owner (setsockopt(2), getsockopt(2)).

use super::arguments::{NOT_PERMITTED, PRETEND, ask, is};
use super::errno::ENOPROTOOPT;
use super::rule::{ALLOW, ArgumentQuestion, FilterAction, FilterRule, KernelConstant, Test, value};

const NO_SUCH_OPTION: &FilterRule = &FilterRule::Do(FilterAction::Refuse(ENOPROTOOPT));

const fn level(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    is(1, "level", any_of)
}

const fn option(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    is(2, "optname", any_of)
}

/// The bits of an option's name under `mask`: whole ranges of options at once.
const fn option_under(mask: u32, any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    ArgumentQuestion {
        argument: 2,
        name: "optname",
        test: Test::Is { mask, any_of },
    }
}

/// Fast open at connect; other protocols put on top of, or in place of, TCP; signatures
/// (MD5 and from 32 on TCP-AO), which a connection to outgate would lack.
const TCP_NAMED: &FilterRule = &ask(
    option(&[
        value("TCP_MD5SIG", 14),
        value("TCP_FASTOPEN_CONNECT", 30),
        value("TCP_ULP", 31),
        value("TCP_MD5SIG_EXT", 32),
        value("TCP_AO_ADD_KEY", 38),
        value("TCP_AO_DEL_KEY", 39),
    ]),
    NO_SUCH_OPTION,
    &ask(option(&[value("TCP_REPAIR", 19)]), NOT_PERMITTED, ALLOW),
);
const TCP_UNUSUAL: &FilterRule = &ask(
    option_under(0xffff_ffc0, &[value("0..63", 0)]),
    &ask(
        option_under(0xffff_fffc, &[value("40..43: the rest of TCP-AO", 40)]),
        NO_SUCH_OPTION,
        TCP_NAMED,
    ),
    NO_SUCH_OPTION,
);

/// What nearly everybody asks for goes first.
const TCP_OPTION: &FilterRule = &ask(option(&[value("TCP_NODELAY", 1)]), ALLOW, TCP_UNUSUAL);

/// Has programs outside share a server's port: a connection to it could end there.
/// Those that ask for it by habit (`dig` for its queries) end where it is refused. Of priorities,
/// whose value no filter sees, the highest take `CAP_NET_ADMIN`; in a sealed network none means anything.
const SHARED_PORT: &FilterRule = &ask(
    option(&[value("SO_REUSEPORT", 15), value("SO_PRIORITY", 12)]),
    PRETEND,
    ALLOW,
);

/// Ties the socket to an interface, past our choice of route. And what takes
/// `CAP_NET_ADMIN`: the maker of a user namespace has its privileges also from
/// outside, so those over the sealed network would be the command's.
const SOCKET_OPTION: &FilterRule = &ask(
    option(&[
        value("SO_BINDTODEVICE", 25),
        value("SO_SNDBUFFORCE", 32),
        value("SO_RCVBUFFORCE", 33),
        value("SO_MARK", 36),
        value("SO_BINDTOIFINDEX", 62),
        value("SO_RESERVE_MEM", 73),
    ]),
    NOT_PERMITTED,
    SHARED_PORT,
);

/// A source route: packets for an allowed address would go to the first hop
/// it names instead, also when the supervisor connects the socket. Packet
/// transforms and foreign addresses, which are the sealed network's owner's.
const IP_BASIC: &FilterRule = &ask(
    option(&[
        value("IP_OPTIONS", 4),
        value("IP_IPSEC_POLICY", 16),
        value("IP_XFRM_POLICY", 17),
        value("IP_TRANSPARENT", 19),
    ]),
    NO_SUCH_OPTION,
    ALLOW,
);

/// Memberships in multicast groups. The kernel tells the network of each (IGMP), in bytes that
/// the caller chose, and takes these of TCP sockets too, which are in the machine's own network:
/// only the two oldest options (35 and 36) ask what socket it is. On datagrams, in a sealed
/// network where nobody sends, to have joined means nothing, so programs may think they have.
/// The same for the interface that is sent by (`IP_UNICAST_IF`).
const IP_MEMBERSHIP: &FilterRule = &ask(
    option_under(
        0xffff_fff8,
        &[value("40..47: IP_MSFILTER to MCAST_LEAVE_SOURCE_GROUP", 40)],
    ),
    PRETEND,
    &ask(
        option(&[
            value("IP_UNBLOCK_SOURCE", 37),
            value("IP_BLOCK_SOURCE", 38),
            value("IP_ADD_SOURCE_MEMBERSHIP", 39),
            value("MCAST_MSFILTER", 48),
            value("IP_UNICAST_IF", 50),
        ]),
        PRETEND,
        IP_BASIC,
    ),
);

/// From 64 on stand the packet filters and virtual servers, parts of the kernel
/// that were often at fault; from 52 on what nobody knows yet.
const IP_OPTION: &FilterRule = &ask(
    option_under(0xffff_ffc0, &[value("0..63", 0)]),
    &ask(
        option_under(
            0xffff_fffc,
            &[
                value("52..55", 52),
                value("56..59", 56),
                value("60..63", 60),
            ],
        ),
        NO_SUCH_OPTION,
        IP_MEMBERSHIP,
    ),
    NO_SUCH_OPTION,
);

/// The same for IPv6, where routes take no privilege: with a segment routing
/// header the first packet of a connection goes to the header's first hop. The
/// second option carries such a header among other things. Other headers take
/// one, and are the sealed network's owner's.
const IPV6_BASIC: &FilterRule = &ask(
    option(&[
        value("IPV6_RTHDR", 57),
        value("IPV6_2292PKTOPTIONS", 6),
        value("IPV6_JOIN_ANYCAST", 27),
        value("IPV6_FLOWLABEL_MGR", 32),
        value("IPV6_IPSEC_POLICY", 34),
        value("IPV6_XFRM_POLICY", 35),
        value("IPV6_HOPOPTS", 54),
        value("IPV6_RTHDRDSTOPTS", 55),
        value("IPV6_DSTOPTS", 59),
        value("IP6T_SO_SET_REPLACE", 64),
        value("IP6T_SO_SET_ADD_COUNTERS", 65),
        value("IPV6_TRANSPARENT", 75),
    ]),
    NO_SUCH_OPTION,
    ALLOW,
);
/// As [`IP_MEMBERSHIP`], by MLD.
const IPV6_MEMBERSHIP: &FilterRule = &ask(
    option(&[
        value("MCAST_JOIN_GROUP", 42),
        value("MCAST_BLOCK_SOURCE", 43),
        value("MCAST_UNBLOCK_SOURCE", 44),
        value("MCAST_LEAVE_GROUP", 45),
        value("MCAST_JOIN_SOURCE_GROUP", 46),
        value("MCAST_LEAVE_SOURCE_GROUP", 47),
        value("MCAST_MSFILTER", 48),
        value("IPV6_UNICAST_IF", 76),
    ]),
    PRETEND,
    IPV6_BASIC,
);
/// From 80 on stand the packet filters, and what nobody knows yet.
const IPV6_OPTION: &FilterRule = &ask(
    option_under(0xffff_ffc0, &[value("0..63", 0)]),
    IPV6_MEMBERSHIP,
    &ask(
        option_under(0xffff_fff0, &[value("64..79", 64)]),
        IPV6_MEMBERSHIP,
        NO_SUCH_OPTION,
    ),
);
/// Has the kernel take IPsec out of datagrams.
const UDP_OPTION: &FilterRule = &ask(option(&[value("UDP_ENCAP", 100)]), NO_SUCH_OPTION, ALLOW);
/// The kernel takes options of UDP at both levels, whatever the socket is.
const OTHER_LEVEL: &FilterRule = &ask(
    level(&[value("IPPROTO_UDP", 17), value("IPPROTO_UDPLITE", 136)]),
    UDP_OPTION,
    &ask(level(&[value("SOL_NETLINK", 270)]), ALLOW, NO_SUCH_OPTION),
);
const NOT_IP_LEVEL: &FilterRule = &ask(
    level(&[value("IPPROTO_IPV6", 41)]),
    IPV6_OPTION,
    OTHER_LEVEL,
);
const NOT_TCP_LEVEL: &FilterRule = &ask(level(&[value("IPPROTO_IP", 0)]), IP_OPTION, NOT_IP_LEVEL);
const NOT_SOCKET_LEVEL: &FilterRule =
    &ask(level(&[value("IPPROTO_TCP", 6)]), TCP_OPTION, NOT_TCP_LEVEL);
pub(super) const SOCKET_OPTIONS: &FilterRule = &ask(
    level(&[value("SOL_SOCKET", 1)]),
    SOCKET_OPTION,
    NOT_SOCKET_LEVEL,
);

// getsockopt(2)

/// From 64 on stand tables and extensions of the packet filters and virtual servers, parts of
/// the kernel that were often at fault: read by the sealed network's owner, too. Where a
/// connection was before they changed it, which takes no privilege, proxies ask.
const IP_FILTER_READ: &FilterRule = &ask(
    option(&[value("SO_ORIGINAL_DST", 80)]),
    ALLOW,
    NO_SUCH_OPTION,
);
const IP_READ: &FilterRule = &ask(
    option_under(0xffff_ffc0, &[value("0..63", 0)]),
    ALLOW,
    IP_FILTER_READ,
);
/// The same for IPv6, whose own options stand among them: `IP6T_SO_GET_INFO`, `_ENTRIES`,
/// `_REVISION_MATCH` and `_REVISION_TARGET`.
const IPV6_FILTER_READ: &FilterRule = &ask(
    option_under(0xffff_fffa, &[value("64, 65, 68, 69", 64)]),
    NO_SUCH_OPTION,
    ALLOW,
);
const IPV6_READ: &FilterRule = &ask(
    option_under(0xffff_ff80, &[value("0..127", 0)]),
    IPV6_FILTER_READ,
    NO_SUCH_OPTION,
);
const NOT_IPV6_READ: &FilterRule = &ask(level(&[value("IPPROTO_IP", 0)]), IP_READ, ALLOW);
pub(super) const SOCKET_OPTIONS_READ: &FilterRule = &ask(
    level(&[value("IPPROTO_IPV6", 41)]),
    IPV6_READ,
    NOT_IPV6_READ,
);
