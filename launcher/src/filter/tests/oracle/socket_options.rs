//! What the witness is told of socket options.

use seccompiler::SeccompCmpOp;

use super::{Conditions, compare, is, not};

pub(super) fn socket_options() -> Vec<(u32, Vec<Conditions>)> {
    let (sockets, tcp) = (libc::SOL_SOCKET, libc::IPPROTO_TCP);
    let (four, six) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
    #[rustfmt::skip]
    let named = [
        (1, sockets, libc::SO_BINDTODEVICE),
        (1, sockets, libc::SO_BINDTOIFINDEX),
        (1, sockets, libc::SO_SNDBUFFORCE),
        (1, sockets, libc::SO_RCVBUFFORCE),
        (1, sockets, libc::SO_MARK),
        (1, sockets, 73), // SO_RESERVE_MEM
        (0, sockets, libc::SO_REUSEPORT), // not performed
        (0, sockets, libc::SO_PRIORITY),  // the same
        (1, tcp, libc::TCP_REPAIR),
        (92, tcp, 14), // TCP_MD5SIG
        (92, tcp, 32), // TCP_MD5SIG_EXT
        (0, four, 50), // IP_UNICAST_IF, not performed
        (0, six, 76),  // IPV6_UNICAST_IF, the same
        (92, tcp, libc::TCP_FASTOPEN_CONNECT),
        (92, tcp, libc::TCP_ULP),
        (92, four, libc::IP_OPTIONS),
        (92, four, libc::IP_IPSEC_POLICY),
        (92, four, libc::IP_XFRM_POLICY),
        (92, four, libc::IP_TRANSPARENT),
        (92, six, libc::IPV6_RTHDR),
        (92, six, libc::IPV6_2292PKTOPTIONS),
        (92, six, libc::IPV6_JOIN_ANYCAST),
        (92, six, 32),       // IPV6_FLOWLABEL_MGR
        (92, 17, 100),       // UDP_ENCAP
        (92, 136, 100),      // the same, by UDP-Lite
        (92, six, libc::IPV6_IPSEC_POLICY),
        (92, six, libc::IPV6_XFRM_POLICY),
        (92, six, libc::IPV6_HOPOPTS),
        (92, six, libc::IPV6_RTHDRDSTOPTS),
        (92, six, libc::IPV6_DSTOPTS),
        (92, six, libc::IPV6_TRANSPARENT),
        (92, six, 64), // IP6T_SO_SET_REPLACE
        (92, six, 65), // IP6T_SO_SET_ADD_COUNTERS
    ];
    let option = |(errno, level, name)| (errno, vec![vec![is(1, level), is(2, name)]]);
    let above = |level, below| {
        let number = compare(2, SeccompCmpOp::Ge, below);
        (92, vec![vec![is(1, level), number]])
    };
    let between = |errno, level, first, last| {
        let from = compare(2, SeccompCmpOp::Ge, first);
        (
            errno,
            vec![vec![is(1, level), from, compare(2, SeccompCmpOp::Le, last)]],
        )
    };
    let levels = [1, 6, 0, 41, 17, 136, 270].map(|level| not(1, level));
    let named = named.into_iter().map(option);
    let ranges = [
        above(four, 52),
        above(six, 80),
        above(tcp, 64),
        between(92, tcp, 38, 43),
        between(0, four, 37, 48),
        between(0, six, 42, 48),
        (92, vec![levels.to_vec()]),
    ];
    named.chain(ranges).collect()
}

pub(super) fn socket_option_reads() -> Vec<(u32, Vec<Conditions>)> {
    let (four, six) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
    let from = |level, first| vec![is(1, level), compare(2, SeccompCmpOp::Ge, first)];
    let between = |first, last| {
        let below = compare(2, SeccompCmpOp::Le, last);
        vec![is(1, four), compare(2, SeccompCmpOp::Ge, first), below]
    };
    let tables = [64, 65, 68, 69].map(|name| vec![is(1, six), is(2, name)]);
    let mut all = vec![between(64, 79), from(four, 81), from(six, 128)];
    all.extend(tables);
    vec![(92, all)]
}
