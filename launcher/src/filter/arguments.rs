//! The rules that look at arguments: sockets, flags of sends,
//! terminal requests, namespaces. Data and its shorthand, no decisions at run time.
//!
//! What they enforce together: the command never owns a socket on which a
//! destination can be named, or replaced, at send time. So no send is held.

use super::errno::{EACCES, EAFNOSUPPORT, EOPNOTSUPP, EPERM, EPROTONOSUPPORT, Errno};
use super::files::FILE_REQUESTS;
use super::rule::{ALLOW, ArgumentQuestion, FilterAction, FilterRule, KernelConstant, Test, value};

pub(super) const fn is(
    argument: u32,
    name: &'static str,
    any_of: &'static [KernelConstant],
) -> ArgumentQuestion {
    ArgumentQuestion {
        argument,
        name,
        test: Test::Is {
            mask: u32::MAX,
            any_of,
        },
    }
}

pub(super) const fn has(
    argument: u32,
    name: &'static str,
    flags: &'static [KernelConstant],
) -> ArgumentQuestion {
    ArgumentQuestion {
        argument,
        name,
        test: Test::Has(flags),
    }
}

pub(super) const fn ask(
    question: ArgumentQuestion,
    yes: &'static FilterRule,
    no: &'static FilterRule,
) -> FilterRule {
    FilterRule::Ask { question, yes, no }
}

const fn refuse(errno: Errno) -> FilterRule {
    FilterRule::Do(FilterAction::Refuse(errno))
}

pub(super) const NOT_PERMITTED: &FilterRule = &refuse(EPERM);
const NO_SUCH_PROTOCOL: &FilterRule = &refuse(EPROTONOSUPPORT);
const NO_SUCH_FAMILY: &FilterRule = &refuse(EAFNOSUPPORT);
pub(super) const NOT_SUPPORTED: &FilterRule = &refuse(EOPNOTSUPP);
pub(super) const NO_ACCESS: &FilterRule = &refuse(EACCES);
pub(super) const HOLD: &FilterRule = &FilterRule::Do(FilterAction::Hold);
pub(super) const PRETEND: &FilterRule = &FilterRule::Do(FilterAction::Pretend);

// socket(2), socketpair(2)

const AF_UNIX: KernelConstant = value("AF_UNIX", 1);
const AF_INET: KernelConstant = value("AF_INET", 2);
const AF_INET6: KernelConstant = value("AF_INET6", 10);
const AF_NETLINK: KernelConstant = value("AF_NETLINK", 16);

const SOCK_STREAM: KernelConstant = value("SOCK_STREAM", 1);
const SOCK_DGRAM: KernelConstant = value("SOCK_DGRAM", 2);
const SOCK_RAW: KernelConstant = value("SOCK_RAW", 3);
const SOCK_SEQPACKET: KernelConstant = value("SOCK_SEQPACKET", 5);

/// The type without `SOCK_NONBLOCK` and `SOCK_CLOEXEC` (`SOCK_TYPE_MASK`).
const fn socket_type(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    ArgumentQuestion {
        argument: 1,
        name: "type",
        test: Test::Is { mask: 0xf, any_of },
    }
}

const fn domain(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    is(0, "domain", any_of)
}

const fn protocol(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    is(2, "protocol", any_of)
}

const DEFAULT: KernelConstant = value("0", 0);
const CONNECTED: &[KernelConstant] = &[SOCK_STREAM, SOCK_SEQPACKET];

/// On a Unix datagram socket each message can name another receiver; for Unix
/// sockets `SOCK_RAW` is the same thing.
const UNIX: &FilterRule = &ask(socket_type(CONNECTED), ALLOW, NO_SUCH_PROTOCOL);

/// TCP and nothing else: Landlock does not see MPTCP (262), SCTP (132) or SMC.
const INET_STREAM: &FilterRule = &ask(
    protocol(&[DEFAULT, value("IPPROTO_TCP", 6)]),
    ALLOW,
    NO_SUCH_PROTOCOL,
);
const INET_OTHER_DATAGRAM: &FilterRule = &ask(
    protocol(&[value("IPPROTO_ICMP", 1), value("IPPROTO_ICMPV6", 58)]),
    NO_ACCESS,
    NO_SUCH_PROTOCOL,
);
const INET_DATAGRAM: &FilterRule = &ask(
    protocol(&[DEFAULT, value("IPPROTO_UDP", 17)]),
    HOLD,
    INET_OTHER_DATAGRAM,
);
const INET_RAW: &FilterRule = &ask(socket_type(&[SOCK_RAW]), NOT_PERMITTED, NO_SUCH_PROTOCOL);
const INET_CONNECTIONLESS: &FilterRule = &ask(socket_type(&[SOCK_DGRAM]), INET_DATAGRAM, INET_RAW);
const INET: &FilterRule = &ask(
    socket_type(&[SOCK_STREAM]),
    INET_STREAM,
    INET_CONNECTIONLESS,
);

/// Interfaces and addresses can be read; other families of netlink reach
/// programs and parts of the kernel that have no business here.
const NETLINK_ROUTE_ONLY: &FilterRule = &ask(
    protocol(&[value("NETLINK_ROUTE", 0)]),
    ALLOW,
    NO_SUCH_PROTOCOL,
);
const NETLINK: &FilterRule = &ask(
    socket_type(&[SOCK_DGRAM, SOCK_RAW]),
    NETLINK_ROUTE_ONLY,
    NO_SUCH_PROTOCOL,
);
const NOT_INET: &FilterRule = &ask(domain(&[AF_NETLINK]), NETLINK, NO_SUCH_FAMILY);
const NOT_UNIX: &FilterRule = &ask(domain(&[AF_INET, AF_INET6]), INET, NOT_INET);
pub(super) const SOCKET: &FilterRule = &ask(domain(&[AF_UNIX]), UNIX, NOT_UNIX);

/// A datagram pair is given as one of packets, whose messages have no receiver but the
/// other end.
const UNIX_DATAGRAM_PAIR: &FilterRule = &ask(socket_type(&[SOCK_DGRAM]), HOLD, NOT_SUPPORTED);
const UNIX_PAIR: &FilterRule = &ask(socket_type(CONNECTED), ALLOW, UNIX_DATAGRAM_PAIR);
pub(super) const SOCKET_PAIR: &FilterRule = &ask(domain(&[AF_UNIX]), UNIX_PAIR, NOT_SUPPORTED);

// bind(2)

/// No Internet address is as short as one of netlink, by which the C library binds
/// whenever it looks up a name.
pub(super) const BIND: &FilterRule = &ask(
    is(2, "addrlen", &[value("sizeof(sockaddr_nl)", 12)]),
    ALLOW,
    HOLD,
);

// sendto(2), sendmsg(2), sendmmsg(2)

/// Connects and sends in one call, past the trapped `connect` and past
/// Landlock. Flags inside the messages are ignored by the kernel.
const MSG_FASTOPEN: &[KernelConstant] = &[value("MSG_FASTOPEN", 0x2000_0000)];
pub(super) const SEND_FLAGS_THIRD: &FilterRule =
    &ask(has(2, "flags", MSG_FASTOPEN), NOT_SUPPORTED, ALLOW);
pub(super) const SEND_FLAGS_FOURTH: &FilterRule =
    &ask(has(3, "flags", MSG_FASTOPEN), NOT_SUPPORTED, ALLOW);

// shutdown(2)

/// To send no more, as most callers want, leaves a listener as it is.
pub(super) const SHUTDOWN: &FilterRule = &ask(is(1, "how", &[value("SHUT_WR", 1)]), ALLOW, HOLD);

// Processes

const CLONE_NEWNS: KernelConstant = value("CLONE_NEWNS", 0x0002_0000);
const CLONE_NEWCGROUP: KernelConstant = value("CLONE_NEWCGROUP", 0x0200_0000);
const CLONE_NEWUTS: KernelConstant = value("CLONE_NEWUTS", 0x0400_0000);
const CLONE_NEWIPC: KernelConstant = value("CLONE_NEWIPC", 0x0800_0000);
const CLONE_NEWUSER: KernelConstant = value("CLONE_NEWUSER", 0x1000_0000);
const CLONE_NEWPID: KernelConstant = value("CLONE_NEWPID", 0x2000_0000);
const CLONE_NEWNET: KernelConstant = value("CLONE_NEWNET", 0x4000_0000);

/// `CLONE_NEWTIME` is missing on purpose: clone(2) reads that bit as part of
/// the exit signal, and only clone3(2) and unshare(2) know it as a flag.
const CLONED: &[KernelConstant] = &[
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
];
const UNSHARED: &[KernelConstant] = &[
    value("CLONE_NEWTIME", 0x80),
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
];

/// Held to be told; the supervisor lets none go on.
pub(super) const CLONE: &FilterRule = &ask(has(0, "flags", CLONED), HOLD, ALLOW);
pub(super) const UNSHARE: &FilterRule = &ask(has(0, "flags", UNSHARED), HOLD, NOT_PERMITTED);

const PROCESS_STATE: &FilterRule = &ask(
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
pub(super) const PROCESS_CONTROL: &FilterRule = &ask(
    is(0, "op", &[value("PR_SET_DUMPABLE", 4)]),
    PRETEND,
    PROCESS_STATE,
);

pub(super) const PERSONALITY: &FilterRule = &ask(
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
const INTERFACE_READS: &[KernelConstant] = &[
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
const NETWORK_REQUEST: &FilterRule = &ask(
    is(1, "op", &[value("SIOCETHTOOL", 0x8946)]),
    NOT_SUPPORTED,
    &ask(is(1, "op", INTERFACE_READS), ALLOW, NOT_PERMITTED),
);
/// What the machine's console and its keyboard are set to (console_ioctl(4)), which outlasts
/// the run.
const CONSOLE: &[KernelConstant] = &[
    value("0x4b00..0x4bff", 0x4b00),
    value("0x5600..0x56ff", 0x5600),
];

/// Whether a number is of one of these blocks of 256.
const fn is_within(any_of: &'static [KernelConstant]) -> ArgumentQuestion {
    ArgumentQuestion {
        argument: 1,
        name: "op",
        test: Test::Is {
            mask: 0xffff_ff00,
            any_of,
        },
    }
}

const BLOCK_REQUESTS: &FilterRule = &ask(
    is_within(&[
        value("0x4b00..0x4bff", 0x4b00),
        value("0x5600..0x56ff", 0x5600),
        value("0x8900..0x89ff", 0x8900),
    ]),
    &ask(is_within(CONSOLE), NOT_PERMITTED, NETWORK_REQUEST),
    ALLOW,
);

/// Opens the other end of a terminal that the caller made, which has a name that
/// Landlock judges, beside those of other programs' terminals.
const OWN_TERMINAL: &FilterRule = &ask(
    is(1, "op", &[value("TIOCGPTPEER", 0x5441)]),
    HOLD,
    BLOCK_REQUESTS,
);

const OTHER_REQUESTS: &FilterRule = &ask(
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
    // Nobody else opens the terminal then, also when the run has ended. Programs ask it of
    // serial lines, and stop where it is refused.
    &ask(
        is(1, "op", &[value("TIOCEXCL", 0x540c)]),
        PRETEND,
        OWN_TERMINAL,
    ),
);

/// Numbers of terminals and sockets have none of these bits: what is asked of them
/// most is decided without looking for what is asked of files. Of file systems,
/// btrfs alone has numbers without any, which change nothing (`BTRFS_IOC_SYNC`).
pub(super) const REQUESTS: &FilterRule = &ask(
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
