//! The rules that look at arguments: sockets, flags of sends, socket options,
//! terminal requests, namespaces. Data and its shorthand, no decisions at run time.
//!
//! What they enforce together: the command never owns a socket on which a
//! destination can be named, or replaced, at send time. So no send is held.

use super::errno::{EACCES, EAFNOSUPPORT, ENOPROTOOPT, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, Errno};
use super::files::FILE_REQUESTS;
use super::rule::{ALLOW, Action, Question, Rule, Test, Value, value};

pub(super) const fn is(argument: u32, name: &'static str, any_of: &'static [Value]) -> Question {
    Question {
        argument,
        name,
        test: Test::Is {
            mask: u32::MAX,
            any_of,
        },
    }
}

pub(super) const fn has(argument: u32, name: &'static str, flags: &'static [Value]) -> Question {
    Question {
        argument,
        name,
        test: Test::Has(flags),
    }
}

pub(super) const fn ask(question: Question, yes: &'static Rule, no: &'static Rule) -> Rule {
    Rule::Ask { question, yes, no }
}

const fn refuse(errno: Errno) -> Rule {
    Rule::Do(Action::Refuse(errno))
}

pub(super) const NOT_PERMITTED: &Rule = &refuse(EPERM);
const NO_SUCH_OPTION: &Rule = &refuse(ENOPROTOOPT);
const NO_SUCH_PROTOCOL: &Rule = &refuse(EPROTONOSUPPORT);
const NO_SUCH_FAMILY: &Rule = &refuse(EAFNOSUPPORT);
pub(super) const NOT_SUPPORTED: &Rule = &refuse(EOPNOTSUPP);
pub(super) const NO_ACCESS: &Rule = &refuse(EACCES);
pub(super) const HOLD: &Rule = &Rule::Do(Action::Hold);
const PRETEND: &Rule = &Rule::Do(Action::Pretend);

// socket(2), socketpair(2)

const AF_UNIX: Value = value("AF_UNIX", 1);
const AF_INET: Value = value("AF_INET", 2);
const AF_INET6: Value = value("AF_INET6", 10);
const AF_NETLINK: Value = value("AF_NETLINK", 16);

const SOCK_STREAM: Value = value("SOCK_STREAM", 1);
const SOCK_DGRAM: Value = value("SOCK_DGRAM", 2);
const SOCK_RAW: Value = value("SOCK_RAW", 3);
const SOCK_SEQPACKET: Value = value("SOCK_SEQPACKET", 5);

/// The type without `SOCK_NONBLOCK` and `SOCK_CLOEXEC` (`SOCK_TYPE_MASK`).
const fn socket_type(any_of: &'static [Value]) -> Question {
    Question {
        argument: 1,
        name: "type",
        test: Test::Is { mask: 0xf, any_of },
    }
}

const fn domain(any_of: &'static [Value]) -> Question {
    is(0, "domain", any_of)
}

const fn protocol(any_of: &'static [Value]) -> Question {
    is(2, "protocol", any_of)
}

const DEFAULT: Value = value("0", 0);
const CONNECTED: &[Value] = &[SOCK_STREAM, SOCK_SEQPACKET];

/// On a Unix datagram socket each message can name another receiver; for Unix
/// sockets `SOCK_RAW` is the same thing.
const UNIX: &Rule = &ask(socket_type(CONNECTED), ALLOW, NO_SUCH_PROTOCOL);

/// TCP and nothing else: Landlock does not see MPTCP (262), SCTP (132) or SMC.
const INET_STREAM: &Rule = &ask(
    protocol(&[DEFAULT, value("IPPROTO_TCP", 6)]),
    ALLOW,
    NO_SUCH_PROTOCOL,
);
const INET_OTHER_DATAGRAM: &Rule = &ask(
    protocol(&[value("IPPROTO_ICMP", 1), value("IPPROTO_ICMPV6", 58)]),
    NO_ACCESS,
    NO_SUCH_PROTOCOL,
);
const INET_DATAGRAM: &Rule = &ask(
    protocol(&[DEFAULT, value("IPPROTO_UDP", 17)]),
    HOLD,
    INET_OTHER_DATAGRAM,
);
const INET_RAW: &Rule = &ask(socket_type(&[SOCK_RAW]), NOT_PERMITTED, NO_SUCH_PROTOCOL);
const INET_CONNECTIONLESS: &Rule = &ask(socket_type(&[SOCK_DGRAM]), INET_DATAGRAM, INET_RAW);
const INET: &Rule = &ask(
    socket_type(&[SOCK_STREAM]),
    INET_STREAM,
    INET_CONNECTIONLESS,
);

/// Interfaces and addresses can be read; other families of netlink reach
/// programs and parts of the kernel that have no business here.
const NETLINK_ROUTE_ONLY: &Rule = &ask(
    protocol(&[value("NETLINK_ROUTE", 0)]),
    ALLOW,
    NO_SUCH_PROTOCOL,
);
const NETLINK: &Rule = &ask(
    socket_type(&[SOCK_DGRAM, SOCK_RAW]),
    NETLINK_ROUTE_ONLY,
    NO_SUCH_PROTOCOL,
);
const NOT_INET: &Rule = &ask(domain(&[AF_NETLINK]), NETLINK, NO_SUCH_FAMILY);
const NOT_UNIX: &Rule = &ask(domain(&[AF_INET, AF_INET6]), INET, NOT_INET);
pub(super) const SOCKET: &Rule = &ask(domain(&[AF_UNIX]), UNIX, NOT_UNIX);

/// A datagram pair is given as one of packets, whose messages have no receiver but the
/// other end.
const UNIX_DATAGRAM_PAIR: &Rule = &ask(socket_type(&[SOCK_DGRAM]), HOLD, NOT_SUPPORTED);
const UNIX_PAIR: &Rule = &ask(socket_type(CONNECTED), ALLOW, UNIX_DATAGRAM_PAIR);
pub(super) const SOCKET_PAIR: &Rule = &ask(domain(&[AF_UNIX]), UNIX_PAIR, NOT_SUPPORTED);

// bind(2)

/// No Internet address is as short as one of netlink, by which the C library binds
/// whenever it looks up a name.
pub(super) const BIND: &Rule = &ask(
    is(2, "addrlen", &[value("sizeof(sockaddr_nl)", 12)]),
    ALLOW,
    HOLD,
);

// sendto(2), sendmsg(2), sendmmsg(2)

/// Connects and sends in one call, past the trapped `connect` and past
/// Landlock. Flags inside the messages are ignored by the kernel.
const MSG_FASTOPEN: &[Value] = &[value("MSG_FASTOPEN", 0x2000_0000)];
pub(super) const SEND_FLAGS_THIRD: &Rule =
    &ask(has(2, "flags", MSG_FASTOPEN), NOT_SUPPORTED, ALLOW);
pub(super) const SEND_FLAGS_FOURTH: &Rule =
    &ask(has(3, "flags", MSG_FASTOPEN), NOT_SUPPORTED, ALLOW);

// shutdown(2)

/// To send no more, as most callers want, leaves a listener as it is.
pub(super) const SHUTDOWN: &Rule = &ask(is(1, "how", &[value("SHUT_WR", 1)]), ALLOW, HOLD);

// setsockopt(2)

const fn level(any_of: &'static [Value]) -> Question {
    is(1, "level", any_of)
}

const fn option(any_of: &'static [Value]) -> Question {
    is(2, "optname", any_of)
}

/// Fast open at connect; other protocols put on top of, or in place of, TCP.
const TCP_ABSENT: &[Value] = &[value("TCP_FASTOPEN_CONNECT", 30), value("TCP_ULP", 31)];
const TCP_OTHER: &Rule = &ask(option(&[value("TCP_REPAIR", 19)]), NOT_PERMITTED, ALLOW);
const TCP_OPTION: &Rule = &ask(option(TCP_ABSENT), NO_SUCH_OPTION, TCP_OTHER);

/// Has programs outside share a server's port: a connection to it could end there.
/// Those that ask for it by habit (`dig` for its queries) end where it is refused.
const SHARED_PORT: &Rule = &ask(option(&[value("SO_REUSEPORT", 15)]), PRETEND, ALLOW);

/// Ties the socket to an interface, past our choice of route. And what takes
/// `CAP_NET_ADMIN`: the maker of a user namespace has its privileges also from
/// outside, so those over the sealed network would be the command's.
const SOCKET_OPTION: &Rule = &ask(
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

/// Options that have no bit of `mask`.
const fn option_without(mask: u32, any_of: &'static [Value]) -> Question {
    Question {
        argument: 2,
        name: "optname",
        test: Test::Is { mask, any_of },
    }
}

/// A source route: packets for an allowed address would go to the first hop
/// it names instead, also when the supervisor connects the socket. Packet
/// transforms and foreign addresses, which are the sealed network's owner's.
const IP_BASIC: &Rule = &ask(
    option(&[
        value("IP_OPTIONS", 4),
        value("IP_IPSEC_POLICY", 16),
        value("IP_XFRM_POLICY", 17),
        value("IP_TRANSPARENT", 19),
    ]),
    NO_SUCH_OPTION,
    ALLOW,
);

/// From 64 on stand the packet filters and virtual servers, parts of the kernel
/// that were often at fault.
const IP_OPTION: &Rule = &ask(
    option_without(0xffff_ffc0, &[value("0..63", 0)]),
    IP_BASIC,
    NO_SUCH_OPTION,
);

/// The same for IPv6, where routes take no privilege: with a segment routing
/// header the first packet of a connection goes to the header's first hop. The
/// second option carries such a header among other things. Other headers take
/// one, and are the sealed network's owner's.
const IPV6_BASIC: &Rule = &ask(
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
const IPV6_OPTION: &Rule = &ask(
    option_without(0xffff_ff80, &[value("0..127", 0)]),
    IPV6_BASIC,
    NO_SUCH_OPTION,
);
/// Has the kernel take IPsec out of datagrams.
const UDP_OPTION: &Rule = &ask(option(&[value("UDP_ENCAP", 100)]), NO_SUCH_OPTION, ALLOW);
const OTHER_LEVEL: &Rule = &ask(level(&[value("IPPROTO_UDP", 17)]), UDP_OPTION, ALLOW);
const NOT_IP_LEVEL: &Rule = &ask(
    level(&[value("IPPROTO_IPV6", 41)]),
    IPV6_OPTION,
    OTHER_LEVEL,
);
const NOT_TCP_LEVEL: &Rule = &ask(level(&[value("IPPROTO_IP", 0)]), IP_OPTION, NOT_IP_LEVEL);
const NOT_SOCKET_LEVEL: &Rule = &ask(level(&[value("IPPROTO_TCP", 6)]), TCP_OPTION, NOT_TCP_LEVEL);
pub(super) const SOCKET_OPTIONS: &Rule = &ask(
    level(&[value("SOL_SOCKET", 1)]),
    SOCKET_OPTION,
    NOT_SOCKET_LEVEL,
);

// getsockopt(2)

/// Tables of the packet filters, parts of the kernel that were often at fault: read by
/// the sealed network's owner, too.
const FILTER_READ: &Rule = &ask(
    option(&[
        value("IPT_SO_GET_INFO", 64),
        value("IPT_SO_GET_ENTRIES", 65),
        value("ARPT_SO_GET_INFO", 96),
        value("ARPT_SO_GET_ENTRIES", 97),
        value("EBT_SO_GET_INFO", 128),
        value("EBT_SO_GET_ENTRIES", 129),
    ]),
    NO_SUCH_OPTION,
    ALLOW,
);
pub(super) const SOCKET_OPTIONS_READ: &Rule = &ask(
    level(&[value("IPPROTO_IP", 0), value("IPPROTO_IPV6", 41)]),
    FILTER_READ,
    ALLOW,
);

// Processes

/// `CLONE_NEWTIME` is missing on purpose: clone(2) reads that bit as part of
/// the exit signal, and only clone3(2) and unshare(2) know it as a flag.
pub(super) const CLONE: &Rule = &ask(
    has(
        0,
        "flags",
        &[
            value("CLONE_NEWNS", 0x0002_0000),
            value("CLONE_NEWCGROUP", 0x0200_0000),
            value("CLONE_NEWUTS", 0x0400_0000),
            value("CLONE_NEWIPC", 0x0800_0000),
            value("CLONE_NEWUSER", 0x1000_0000),
            value("CLONE_NEWPID", 0x2000_0000),
            value("CLONE_NEWNET", 0x4000_0000),
        ],
    ),
    NOT_PERMITTED,
    ALLOW,
);

pub(super) const OWN_LIMITS: &Rule = &ask(is(0, "pid", &[value("0", 0)]), ALLOW, NOT_PERMITTED);

const PROCESS_STATE: &Rule = &ask(
    is(
        0,
        "op",
        &[
            value("PR_SET_SECUREBITS", 28),
            value("PR_SET_MM", 35),
            value("PR_SET_PTRACER", 0x5961_6d61),
        ],
    ),
    NOT_PERMITTED,
    ALLOW,
);
pub(super) const PROCESS_CONTROL: &Rule = &ask(
    is(0, "op", &[value("PR_SET_DUMPABLE", 4)]),
    PRETEND,
    PROCESS_STATE,
);

pub(super) const PERSONALITY: &Rule = &ask(
    is(
        0,
        "persona",
        &[
            value("PER_LINUX", 0),
            value("ADDR_NO_RANDOMIZE", 0x0004_0000),
            value("0xffffffff", 0xffff_ffff),
        ],
    ),
    ALLOW,
    NOT_PERMITTED,
);

// ioctl(2)

/// What a socket says of interfaces (netdevice(7)), of itself and of its signals.
const INTERFACE_READS: &[Value] = &[
    value("FIOSETOWN", 0x8901),
    value("SIOCSPGRP", 0x8902),
    value("FIOGETOWN", 0x8903),
    value("SIOCGPGRP", 0x8904),
    value("SIOCATMARK", 0x8905),
    value("SIOCGSTAMP", 0x8906),
    value("SIOCGSTAMPNS", 0x8907),
    value("SIOCGIFNAME", 0x8910),
    value("SIOCGIFCONF", 0x8912),
    value("SIOCGIFFLAGS", 0x8913),
    value("SIOCGIFADDR", 0x8915),
    value("SIOCGIFDSTADDR", 0x8917),
    value("SIOCGIFBRDADDR", 0x8919),
    value("SIOCGIFNETMASK", 0x891b),
    value("SIOCGIFMETRIC", 0x891d),
    value("SIOCGIFMTU", 0x8921),
    value("SIOCGIFHWADDR", 0x8927),
    value("SIOCGIFINDEX", 0x8933),
    value("SIOCGIFTXQLEN", 0x8942),
    value("SIOCGARP", 0x8954),
    value("SIOCGIFMAP", 0x8970),
];

/// Whatever else a socket is asked about a network (0x8900 to 0x89ff): addresses,
/// routes, names and states of interfaces, bonds, bridges, tunnels and what drivers
/// have for themselves, all of it the sealed network's owner's. One call reads
/// and writes the settings of a driver; loopback has none.
const NETWORK_REQUEST: &Rule = &ask(
    is(1, "op", &[value("SIOCETHTOOL", 0x8946)]),
    NOT_SUPPORTED,
    &ask(is(1, "op", INTERFACE_READS), ALLOW, NOT_PERMITTED),
);
const NETWORK_REQUESTS: &Rule = &ask(
    Question {
        argument: 1,
        name: "op",
        test: Test::Is {
            mask: 0xffff_ff00,
            any_of: &[value("0x8900..0x89ff", 0x8900)],
        },
    },
    NETWORK_REQUEST,
    ALLOW,
);

/// Opens the other end of a terminal that the caller made, which has a name that
/// Landlock judges, beside those of other programs' terminals.
const OWN_TERMINAL: &Rule = &ask(
    is(1, "op", &[value("TIOCGPTPEER", 0x5441)]),
    HOLD,
    NETWORK_REQUESTS,
);

const OTHER_REQUESTS: &Rule = &ask(
    is(
        1,
        "op",
        &[
            value("TIOCSTI", 0x5412),
            value("TIOCLINUX", 0x541c),
            value("TIOCCONS", 0x541d),
            value("TIOCSETD", 0x5423),
        ],
    ),
    NOT_PERMITTED,
    OWN_TERMINAL,
);

/// Numbers of terminals and sockets have none of these bits: what is asked of them
/// most is decided without looking for what is asked of files. Of file systems,
/// btrfs alone has numbers without any, which change nothing (`BTRFS_IOC_SYNC`).
pub(super) const REQUESTS: &Rule = &ask(
    has(
        1,
        "op",
        &[
            value("_IOC_READ", 0x8000_0000),
            value("_IOC_WRITE", 0x4000_0000),
            value("0x2000", 0x2000),
        ],
    ),
    FILE_REQUESTS,
    OTHER_REQUESTS,
);
