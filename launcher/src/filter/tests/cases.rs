//! What the filter means, said with the constants of the C library. Every
//! allowed call has a neighbour that is not.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, AF_VSOCK, IPPROTO_TCP, SOCK_CLOEXEC, SOCK_DGRAM,
    SOCK_NONBLOCK, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};

use super::{ARCHES, OPTIONS, call, number, run};
use crate::filter::{
    Arch, FilterAction, FilterOptions, Opens, attribute, evaluate, held, scheduling,
};

const ALLOW: u32 = 0x7fff_0000;
const HOLD: u32 = 0x7fc0_0000;
/// Deprecated by the C library, and accepted by the kernel.
const SOCK_PACKET: i32 = 10;

const fn errno(number: i32) -> u32 {
    0x0005_0000 | number.cast_unsigned()
}

/// Checks one call on both architectures, with any options.
fn check(name: &str, args: &[i64], expected: u32) {
    let mut all = [0_u64; 6];
    for (slot, argument) in all.iter_mut().zip(args) {
        *slot = argument.cast_unsigned();
    }
    for arch in ARCHES {
        for options in OPTIONS {
            let data = call(arch, number(arch, name), all);
            let returned = run(arch, options, &data).returned;
            assert_eq!(
                returned,
                expected,
                "{name}{args:?} on {}: {returned:#x} instead of {expected:#x}",
                arch.name()
            );
        }
    }
}

fn check_socket(domain: i32, kind: i32, protocol: i32, expected: u32) {
    let args = [domain.into(), kind.into(), protocol.into()];
    check("socket", &args, expected);
}

#[test]
fn only_connected_unix_sockets_are_made() {
    check_socket(AF_UNIX, SOCK_STREAM, 0, ALLOW);
    check_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ALLOW);
    check_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ALLOW);
    let refused = errno(libc::EPROTONOSUPPORT);
    check_socket(AF_UNIX, SOCK_DGRAM, 0, refused);
    check_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, refused);
    check_socket(AF_UNIX, SOCK_RAW, 0, refused);
    check_socket(AF_UNIX, 0, 0, refused);
}

#[test]
fn internet_sockets_are_tcp_or_held() {
    for domain in [AF_INET, AF_INET6] {
        check_socket(domain, SOCK_STREAM, 0, ALLOW);
        check_socket(domain, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP, ALLOW);
        for protocol in [libc::IPPROTO_MPTCP, libc::IPPROTO_SCTP, 256, 1] {
            let refused = errno(libc::EPROTONOSUPPORT);
            check_socket(domain, SOCK_STREAM, protocol, refused);
        }
        let close = SOCK_DGRAM | SOCK_CLOEXEC;
        check_socket(domain, SOCK_DGRAM, 0, HOLD);
        check_socket(domain, close, libc::IPPROTO_UDP, HOLD);
        let refused = errno(libc::EPROTONOSUPPORT);
        check_socket(domain, close, libc::IPPROTO_UDPLITE, refused);
        for protocol in [libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6] {
            check_socket(domain, close, protocol, errno(libc::EACCES));
            check_socket(domain, SOCK_RAW, protocol, errno(libc::EPERM));
        }
        check_socket(domain, SOCK_RAW, libc::IPPROTO_RAW, errno(libc::EPERM));
        check_socket(domain, SOCK_SEQPACKET, 0, refused);
        check_socket(domain, libc::SOCK_DCCP, 33, refused);
        check_socket(domain, SOCK_PACKET, 3, refused);
    }
}

#[test]
fn other_families_do_not_exist_except_netlink_route() {
    for kind in [SOCK_RAW, SOCK_DGRAM | SOCK_CLOEXEC] {
        check_socket(AF_NETLINK, kind, libc::NETLINK_ROUTE, ALLOW);
        for protocol in [
            libc::NETLINK_SOCK_DIAG,
            libc::NETLINK_USERSOCK,
            libc::NETLINK_GENERIC,
            libc::NETLINK_KOBJECT_UEVENT,
        ] {
            check_socket(AF_NETLINK, kind, protocol, errno(libc::EPROTONOSUPPORT));
        }
    }
    let families = [libc::AF_PACKET, libc::AF_ALG, AF_VSOCK, libc::AF_BLUETOOTH];
    for domain in families.into_iter().chain([-1, 0, 3, 43, 44, 46, 1 << 16]) {
        for kind in [SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET] {
            check_socket(domain, kind, 0, errno(libc::EAFNOSUPPORT));
        }
    }
}

#[test]
fn pairs_are_connected_unix_sockets() {
    let pair = |domain: i32, kind: i32, expected| {
        check("socketpair", &[domain.into(), kind.into()], expected);
    };
    pair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, ALLOW);
    pair(AF_UNIX, SOCK_SEQPACKET, ALLOW);
    pair(AF_UNIX, SOCK_DGRAM, HOLD);
    pair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, HOLD);
    pair(AF_INET, SOCK_DGRAM, errno(libc::EOPNOTSUPP));
    pair(AF_UNIX, SOCK_RAW, errno(libc::EOPNOTSUPP));
    pair(AF_INET, SOCK_STREAM, errno(libc::EOPNOTSUPP));
}

#[test]
fn only_netlink_binds_by_itself() {
    let length = |bytes: usize| i64::try_from(bytes).expect("a length");
    check(
        "bind",
        &[3, 0, length(size_of::<libc::sockaddr_nl>())],
        ALLOW,
    );
    for bytes in [0, 2, 11, 13, 16, 24, 28, 110, 128, (1 << 32) + 16] {
        check("bind", &[3, 0, bytes], HOLD);
    }
    check("bind", &[3, 0, -1], HOLD);
}

#[test]
fn no_send_connects() {
    let fast = i64::from(libc::MSG_FASTOPEN);
    let plain = i64::from(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_MORE);
    for (name, at) in [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)] {
        for (flags, expected) in [
            (0, ALLOW),
            (plain, ALLOW),
            (fast, errno(libc::EOPNOTSUPP)),
            (fast | plain, errno(libc::EOPNOTSUPP)),
            (fast | 0x7fff_ffff << 32, errno(libc::EOPNOTSUPP)),
            (plain | 0x2000_0000 << 32, ALLOW),
        ] {
            let mut args = [0x2000_0000_i64; 6];
            args[at] = flags;
            check(name, &args, expected);
        }
    }
}

#[test]
fn nobody_is_made_wait_by_a_lease() {
    check(
        "fcntl",
        &[3, libc::F_SETLEASE.into(), 0],
        errno(libc::EPERM),
    );
    for request in [libc::F_GETLEASE, libc::F_GETFL, libc::F_SETLK] {
        check("fcntl", &[3, request.into(), 0], ALLOW);
    }
}

#[test]
fn what_ends_a_listener_is_held() {
    for (how, expected) in [
        (libc::SHUT_RD, HOLD),
        (libc::SHUT_WR, ALLOW),
        (libc::SHUT_RDWR, HOLD),
        (3, HOLD),
        (-1, HOLD),
    ] {
        check("shutdown", &[3, how.into()], expected);
    }
    check("shutdown", &[3, 1 | 2 << 32], ALLOW);
}

#[test]
fn options_that_move_a_connection_are_refused() {
    let option = |level: i32, name: i32, expected| {
        check("setsockopt", &[3, level.into(), name.into()], expected);
    };
    let absent = errno(libc::ENOPROTOOPT);
    option(IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, absent);
    option(IPPROTO_TCP, libc::TCP_ULP, absent);
    option(IPPROTO_TCP, libc::TCP_REPAIR, errno(libc::EPERM));
    option(IPPROTO_TCP, libc::TCP_NODELAY, ALLOW);
    option(IPPROTO_TCP, libc::TCP_FASTOPEN, ALLOW);
    option(SOL_SOCKET, libc::SO_BINDTODEVICE, errno(libc::EPERM));
    option(SOL_SOCKET, libc::SO_BINDTOIFINDEX, errno(libc::EPERM));
    option(SOL_SOCKET, libc::SO_REUSEPORT, errno(0));
    option(SOL_SOCKET, libc::SO_REUSEADDR, ALLOW);
    option(SOL_SOCKET, libc::TCP_FASTOPEN_CONNECT, ALLOW);
    option(libc::IPPROTO_IP, libc::IP_OPTIONS, absent);
    option(libc::IPPROTO_IP, libc::IP_TOS, ALLOW);
    option(libc::IPPROTO_IPV6, libc::IPV6_RTHDR, absent);
    option(libc::IPPROTO_IPV6, libc::IPV6_2292PKTOPTIONS, absent);
    option(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, ALLOW);
    option(libc::IPPROTO_IPV6, libc::IP_OPTIONS, ALLOW);
}

#[test]
fn no_option_has_the_kernel_tell_a_network_what_the_command_chose() {
    let option = |level: i32, name: i32, expected| {
        check("setsockopt", &[3, level.into(), name.into()], expected);
    };
    // Memberships by which a stream's kernel tells the network of a group; the two oldest are
    // refused to streams by the kernel itself.
    for membership in 37..=48 {
        option(libc::IPPROTO_IP, membership, errno(0));
    }
    for membership in 42..=48 {
        option(libc::IPPROTO_IPV6, membership, errno(0));
    }
    for basic in [32, 33, 34, 35, 36, 49] {
        option(libc::IPPROTO_IP, basic, ALLOW);
    }
    for basic in [17, 18, 19, 20, 21, 29, 49] {
        option(libc::IPPROTO_IPV6, basic, ALLOW);
    }
    option(libc::IPPROTO_IP, 50, errno(0));
    option(libc::IPPROTO_IPV6, 76, errno(0));
    // Signatures, and protocols of no socket that the command has.
    for signature in [14, 32, 38, 39, 40, 43, 64, -1] {
        option(IPPROTO_TCP, signature, errno(libc::ENOPROTOOPT));
    }
    for level in [132, 255, 282, 284, -1] {
        option(level, 1, errno(libc::ENOPROTOOPT));
    }
}

#[test]
fn tables_of_packet_filters_are_not_read() {
    let absent = errno(libc::ENOPROTOOPT);
    for (level, name, expected) in [
        (libc::IPPROTO_IP, 64, absent),
        (libc::IPPROTO_IP, 66, absent),
        (libc::IPPROTO_IP, 67, absent),
        (libc::IPPROTO_IP, 83, absent),
        (libc::IPPROTO_IP, 96, absent),
        (libc::IPPROTO_IP, 99, absent),
        (libc::IPPROTO_IP, 129, absent),
        (libc::IPPROTO_IPV6, 68, absent),
        (libc::IPPROTO_IPV6, 69, absent),
        (libc::IPPROTO_IPV6, 72, ALLOW),
        (libc::IPPROTO_IP, 80, ALLOW),
        (libc::IPPROTO_IP, 63, ALLOW),
        (libc::IPPROTO_IPV6, 64, absent),
        (libc::IPPROTO_IPV6, 65, absent),
        (libc::IPPROTO_IPV6, 128, absent),
        (libc::IPPROTO_IPV6, 67, ALLOW),
        (libc::IPPROTO_IPV6, 80, ALLOW),
        (SOL_SOCKET, 64, ALLOW),
    ] {
        check("getsockopt", &[3, level.into(), name], expected);
    }
}

#[test]
fn the_sealed_network_is_not_the_commands_to_change() {
    let option = |level: i32, name: i32, expected| {
        check("setsockopt", &[3, level.into(), name.into()], expected);
    };
    let absent = errno(libc::ENOPROTOOPT);
    for replaced in [16, 17, 19, 52, 63, 64, 65, 96, 128, 1152, i32::MAX, -1] {
        option(libc::IPPROTO_IP, replaced, absent);
    }
    for replaced in [
        27, 32, 34, 35, 54, 55, 59, 64, 65, 75, 80, 96, 128, 1152, -1,
    ] {
        option(libc::IPPROTO_IPV6, replaced, absent);
    }
    option(libc::IPPROTO_UDP, 100, absent);
    option(libc::IPPROTO_UDP, 103, ALLOW);
    option(136, 100, absent);
    option(136, 103, ALLOW);
    option(SOL_SOCKET, libc::SO_PRIORITY, errno(0));
    for forced in [32, 33, 36, 73] {
        option(SOL_SOCKET, forced, errno(libc::EPERM));
    }
    option(SOL_SOCKET, libc::SO_SNDBUF, ALLOW);
    option(SOL_SOCKET, 64, ALLOW);
    option(libc::IPPROTO_IP, 51, ALLOW);
    option(270, 1, ALLOW);
    option(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, ALLOW);
    option(libc::IPPROTO_IP, libc::IP_PKTINFO, ALLOW);
    option(libc::IPPROTO_IP, libc::IP_RECVERR, ALLOW);
    option(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, ALLOW);
    for (request, expected) in [
        (0x8980, errno(libc::EPERM)),
        (0x8983, errno(libc::EPERM)), // SIOCSIFVLAN
        (0x8990, errno(libc::EPERM)), // SIOCBONDENSLAVE
        (0x89a0, errno(libc::EPERM)), // SIOCBRADDBR
        (0x89f1, errno(libc::EPERM)), // SIOCADDTUNNEL
        (0x89ff, errno(libc::EPERM)),
        (0x897f, errno(libc::EPERM)),
        (0x890b, errno(libc::EPERM)),      // SIOCADDRT
        (0x8914, errno(libc::EPERM)),      // SIOCSIFFLAGS
        (0x8916, errno(libc::EPERM)),      // SIOCSIFADDR
        (0x8922, errno(libc::EPERM)),      // SIOCSIFMTU
        (0x8923, errno(libc::EPERM)),      // SIOCSIFNAME
        (0x8946, errno(libc::EOPNOTSUPP)), // SIOCETHTOOL
        (0x88ff, ALLOW),
        (0x8901, ALLOW), // FIOSETOWN
        (0x8905, ALLOW), // SIOCATMARK
        (0x8a00, ALLOW),
        (0x8912, ALLOW), // SIOCGIFCONF
        (0x8927, ALLOW), // SIOCGIFHWADDR
    ] {
        check("ioctl", &[3, request], expected);
    }
}

#[test]
fn new_namespaces_are_refused() {
    let signal = i64::from(libc::SIGCHLD);
    let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_THREAD;
    check("clone", &[signal], ALLOW);
    check("clone", &[thread.into()], ALLOW);
    check(
        "clone",
        &[signal | i64::from(libc::CLONE_VM | libc::CLONE_VFORK)],
        ALLOW,
    );
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        // The supervisor refuses them, and tells the first.
        check("clone", &[signal | i64::from(flag)], HOLD);
        check("unshare", &[flag.into()], HOLD);
        check("unshare", &[i64::from(flag | libc::CLONE_FS)], HOLD);
    }
    check("clone", &[signal | 0x80], ALLOW);
    check("unshare", &[0x80], HOLD);
    check("unshare", &[libc::CLONE_FILES.into()], errno(libc::EPERM));
    check("unshare", &[0], errno(libc::EPERM));
    check("clone3", &[0, 88], errno(libc::ENOSYS));
    check("setns", &[3, 0], errno(libc::EPERM));
}

#[test]
fn process_controls_that_blind_the_supervisor_are_refused() {
    let prctl = |option: i32, expected| check("prctl", &[option.into(), 0], expected);
    prctl(libc::PR_SET_DUMPABLE, errno(0));
    prctl(libc::PR_GET_DUMPABLE, ALLOW);
    prctl(libc::PR_SET_MM, errno(libc::EPERM));
    prctl(libc::PR_SET_PTRACER, errno(libc::EPERM));
    prctl(libc::PR_SET_SECUREBITS, errno(libc::EPERM));
    prctl(libc::PR_SET_NAME, ALLOW);
    prctl(libc::PR_SET_NO_NEW_PRIVS, ALLOW);
    prctl(libc::PR_SET_SECCOMP, ALLOW);
}

#[test]
fn turns_of_others_are_held_and_those_of_users_refused() {
    let refused = errno(libc::EPERM);
    let process = i64::from(libc::PRIO_PROCESS);
    let (group, user) = (i64::from(libc::PRIO_PGRP), i64::from(libc::PRIO_USER));
    for (name, process, group, user) in [
        ("setpriority", process, group, user),
        // IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP, IOPRIO_WHO_USER
        ("ioprio_set", 1, 2, 3),
    ] {
        check(name, &[process, 0, 5], ALLOW);
        check(name, &[process, 7, 5], HOLD);
        check(name, &[process, -1, 5], HOLD);
        check(name, &[process, 1 << 32, 5], ALLOW);
        check(name, &[process | 1 << 32, 7, 5], HOLD);
        check(name, &[group, 0, 5], refused);
        check(name, &[group, 7, 5], HOLD);
        check(name, &[user, 0, 5], refused);
        check(name, &[user, 7, 5], refused);
        check(name, &[user + 1, 0, 5], refused);
        check(name, &[-1, 0, 5], refused);
    }
    for name in [
        "sched_setaffinity",
        "sched_setscheduler",
        "sched_setparam",
        "prlimit64",
    ] {
        check(name, &[0, 8, 0], ALLOW);
        check(name, &[7, 8, 0], HOLD);
        check(name, &[-1, 8, 0], HOLD);
        check(name, &[7 | 1 << 32, 8, 0], HOLD);
    }
    check("sched_setattr", &[0, 0, 0], errno(libc::ENOSYS));
    // Everybody may have a group of its own.
    check("setpgid", &[0, 0], ALLOW);
    check("setpgid", &[7, 0], ALLOW);
    check("setpgid", &[0, 7], HOLD);
    check("setpgid", &[7, 7], HOLD);
    check("setpgid", &[0, 7 | 1 << 32], HOLD);
}

#[test]
fn terminal_requests_that_type_are_refused() {
    let ioctl = |request: u64, expected| {
        check("ioctl", &[0, request.cast_signed()], expected);
    };
    let refused = errno(libc::EPERM);
    ioctl(libc::TIOCSTI, refused);
    ioctl(libc::TIOCLINUX, refused);
    // KDSETMODE, KDSKBMODE, PIO_CMAP, VT_ACTIVATE, VT_LOCKSWITCH.
    for request in [0x4b3a, 0x4b45, 0x4b71, 0x5606, 0x560b] {
        ioctl(request, refused);
    }
    ioctl(libc::TIOCCONS, refused);
    ioctl(0x5423, refused); // TIOCSETD
    ioctl(0x894c, refused); // SIOCGSKNS
    ioctl(libc::TIOCSTI | 0x7fff_ffff << 32, refused);
    ioctl(libc::FIONREAD, ALLOW);
    ioctl(libc::TIOCGWINSZ, ALLOW);
    ioctl(libc::TCGETS, ALLOW);
    ioctl(libc::TIOCGPTN, ALLOW);
    ioctl(0x5441, HOLD); // TIOCGPTPEER
    ioctl(0x5441 | 0x7fff_ffff << 32, HOLD);
}

#[test]
fn personality_can_be_asked_and_kept() {
    check("personality", &[0xffff_ffff], ALLOW);
    check("personality", &[-1], ALLOW);
    check("personality", &[0], ALLOW);
    let fixed = i64::from(libc::ADDR_NO_RANDOMIZE);
    check("personality", &[fixed], ALLOW);
    let executable = i64::from(libc::READ_IMPLIES_EXEC);
    check("personality", &[executable], errno(libc::EPERM));
    check("personality", &[fixed | executable], errno(libc::EPERM));
    check("personality", &[8], errno(libc::EPERM));
}

#[test]
fn held_numbers_are_the_ones_the_program_holds() {
    for arch in ARCHES {
        let numbers = held(arch);
        let always = [
            numbers.connect,
            numbers.listen,
            numbers.shutdown,
            numbers.socket,
            numbers.socketpair,
            numbers.bind,
        ];
        let opens = [numbers.openat];
        for options in OPTIONS {
            // A datagram socket, and the priority of a group.
            let holds = |nr| {
                [[2, 2, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0]]
                    .map(|args| run(arch, options, &call(arch, nr, args)).returned)
                    .contains(&HOLD)
            };
            let found: Vec<u32> = (0..1024).filter(|nr| holds(*nr)).collect();
            let mut expected: Vec<u32> = always.iter().map(|nr| nr.cast_unsigned()).collect();
            if options.opens == Opens::Trap {
                expected.extend(
                    opens
                        .iter()
                        .chain(&numbers.open)
                        .map(|nr| nr.cast_unsigned()),
                );
            }
            let changes = |nr: &u32| {
                let nr = nr.cast_signed();
                attribute(arch, nr).is_some() || scheduling(arch, nr).is_some()
            };
            expected.extend((0..1024).filter(changes));
            expected.sort_unstable();
            assert_eq!(found, expected, "{}", arch.name());
        }
    }
}

#[test]
fn what_ordinary_programs_need_is_allowed() {
    let options = FilterOptions { opens: Opens::Pass };
    // read, mmap, clone as a thread, fork, execve, futex, accept4, getsockname,
    // seccomp, landlock_restrict_self, memfd_create, execveat, pidfd_open, mseal.
    let x86_64 = [0, 9, 57, 59, 202, 288, 51, 317, 446, 319, 322, 434, 462];
    let aarch64 = [63, 222, 221, 98, 242, 204, 277, 446, 279, 281, 434, 462];
    for (arch, numbers) in [(Arch::X86_64, &x86_64[..]), (Arch::Aarch64, &aarch64[..])] {
        for nr in numbers {
            let data = call(arch, *nr, [0; 6]);
            assert_eq!(evaluate(arch, &options, &data), FilterAction::Allow, "{nr}");
        }
    }
}
