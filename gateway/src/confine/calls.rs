//! The system calls of a gateway that serves: an allow list (seccomp(2)). What
//! is not in it is refused with EPERM, calls that no kernel has yet included;
//! where a call does many things, its arguments say which of them. Refused and
//! not killed: a library that tries a call and goes on without it must not end
//! the runs of everybody who shares the gateway, and an intruder gains nothing.
//!
//! Numbers are those of the architecture it is built for; the filter kills a
//! process that makes calls of another one, and refuses those of x32.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::ConfineError;

/// Calls whose arguments need no judging: they act on what is open, on this
/// process's own memory and threads, or on paths, which Landlock judges.
#[rustfmt::skip]
const PLAIN: &[libc::c_long] = &[
    // What is open.
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64,
    libc::SYS_close, libc::SYS_lseek, libc::SYS_fstat, libc::SYS_flock, libc::SYS_dup,
    libc::SYS_pipe2, libc::SYS_splice,
    // Records: begun, kept apart from those of other gateways, and removed.
    libc::SYS_openat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_getdents64,
    libc::SYS_unlinkat, libc::SYS_fsync,
    // Sockets. There is no listen(2), without which Landlock's rule about bind(2)
    // would not hold: a socket that is not bound listens at a port of its own.
    libc::SYS_connect, libc::SYS_bind, libc::SYS_accept4, libc::SYS_shutdown,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_sendto, libc::SYS_recvfrom,
    libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg,
    // Waiting.
    libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_ppoll, libc::SYS_futex,
    libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_clock_gettime,
    libc::SYS_gettimeofday, libc::SYS_restart_syscall, libc::SYS_timer_settime,
    // Memory. New executable memory there is not: see `JUDGED`.
    libc::SYS_brk, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_getrandom,
    // Threads, signals to oneself, and the end.
    libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_sched_yield, libc::SYS_sched_getaffinity,
    libc::SYS_getpid, libc::SYS_gettid, libc::SYS_geteuid, libc::SYS_sigaltstack, libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_exit, libc::SYS_exit_group,
];

/// Older forms of the same, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_unlink,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// One thing that an argument must be: `value` where `mask` looks.
#[derive(Debug, Clone, Copy)]
struct Argument {
    index: u8,
    mask: u64,
    value: u64,
}

/// An `int`, of which the kernel reads the lower half alone.
const fn int(index: u8, value: libc::c_int) -> Argument {
    int_within(index, libc::c_int::from_ne_bytes([0xff; 4]), value)
}

/// The bits of an `int` in `mask`.
const fn int_within(index: u8, mask: libc::c_int, value: libc::c_int) -> Argument {
    Argument {
        index,
        mask: mask.cast_unsigned() as u64,
        value: value.cast_unsigned() as u64,
    }
}

/// A pointer that is none.
const fn null(index: u8) -> Argument {
    Argument {
        index,
        mask: u64::MAX,
        value: 0,
    }
}

/// The type of a socket, without the flags that stand in the same argument.
const KIND: libc::c_int = 0xf;

/// How the C libraries make a thread: all shared, nothing new. Musl adds a flag
/// that no kernel reads any more (CLONE_DETACHED).
const THREAD: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// `ioctl` takes its numbers from a type that differs between C libraries.
const NON_BLOCKING: libc::c_int = 0x5421;
const CLOSE_ON_EXEC: libc::c_int = 0x5451;

/// A call, and the ways in which it may be made: one of them, as a whole.
type Judged = (libc::c_long, &'static [&'static [Argument]]);

/// Calls that do more than a gateway needs.
#[rustfmt::skip]
const JUDGED: &[Judged] = &[
    // TCP, UDP for names, and streams to granted Unix sockets: no raw, packet or
    // netlink socket, no other transport behind the same two types.
    (libc::SYS_socket, &[
        &[int(0, libc::AF_INET), int_within(1, KIND, libc::SOCK_STREAM), int(2, 0)],
        &[int(0, libc::AF_INET), int_within(1, KIND, libc::SOCK_STREAM), int(2, libc::IPPROTO_TCP)],
        &[int(0, libc::AF_INET), int_within(1, KIND, libc::SOCK_DGRAM), int(2, 0)],
        &[int(0, libc::AF_INET), int_within(1, KIND, libc::SOCK_DGRAM), int(2, libc::IPPROTO_UDP)],
        &[int(0, libc::AF_INET6), int_within(1, KIND, libc::SOCK_STREAM), int(2, 0)],
        &[int(0, libc::AF_INET6), int_within(1, KIND, libc::SOCK_STREAM), int(2, libc::IPPROTO_TCP)],
        &[int(0, libc::AF_INET6), int_within(1, KIND, libc::SOCK_DGRAM), int(2, 0)],
        &[int(0, libc::AF_INET6), int_within(1, KIND, libc::SOCK_DGRAM), int(2, libc::IPPROTO_UDP)],
        &[int(0, libc::AF_UNIX), int_within(1, KIND, libc::SOCK_STREAM), int(2, 0)],
    ]),
    (libc::SYS_setsockopt, &[
        &[int(1, libc::IPPROTO_TCP), int(2, libc::TCP_NODELAY)],
        &[int(1, libc::IPPROTO_IP), int(2, libc::IP_PKTINFO)],
        &[int(1, libc::IPPROTO_IPV6), int(2, libc::IPV6_RECVPKTINFO)],
    ]),
    (libc::SYS_getsockopt, &[
        &[int(1, libc::SOL_SOCKET), int(2, libc::SO_ERROR)],
        &[int(1, libc::SOL_SOCKET), int(2, libc::SO_TYPE)],
        &[int(1, libc::SOL_SOCKET), int(2, libc::SO_PEERCRED)],
    ]),
    (libc::SYS_fcntl, &[
        &[int(1, libc::F_GETFD)],
        &[int(1, libc::F_SETFD)],
        &[int(1, libc::F_GETFL)],
        &[int(1, libc::F_SETFL)],
        &[int(1, libc::F_DUPFD_CLOEXEC)],
        &[int(1, libc::F_SETPIPE_SZ)],
    ]),
    (libc::SYS_ioctl, &[&[int(1, NON_BLOCKING)], &[int(1, CLOSE_ON_EXEC)]]),
    (libc::SYS_prctl, &[&[int(0, libc::PR_SET_NAME)]]),
    // Code that came in as data never runs as code.
    (libc::SYS_mmap, &[&[int_within(2, libc::PROT_EXEC, 0)]]),
    (libc::SYS_mprotect, &[&[int_within(2, libc::PROT_EXEC, 0)]]),
    (libc::SYS_clone, &[&[int_within(0, !CLONE_DETACHED, THREAD)]]),
    // The second filter answers it: its flags lie in memory.
    (libc::SYS_clone3, &[]),
    // The limits of this process, to be read.
    (libc::SYS_prlimit64, &[&[int(0, 0), null(2)]]),
];

const CLONE_DETACHED: libc::c_int = 0x0040_0000;

/// Calls by which a process may signal itself and nobody else.
const OWN_SIGNALS: [libc::c_long; 2] = [libc::SYS_kill, libc::SYS_tgkill];

/// Puts the filters on this process and all threads it will have.
pub(super) fn restrict() -> Result<(), ConfineError> {
    let failed = |error: &dyn std::fmt::Display| ConfineError::Seccomp(error.to_string());
    let programs = programs().map_err(|error| failed(&error))?;
    // The list comes last: it has no call to put on another.
    for program in programs {
        seccompiler::apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// What is asked first is put on last.
fn programs() -> Result<[BpfProgram; 2], BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let errno = |number: i32| SeccompAction::Errno(number.cast_unsigned());
    // C libraries take clone(2) where clone3(2) does not exist, and only then.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = SeccompFilter::new(absent, SeccompAction::Allow, errno(libc::ENOSYS), arch)?;
    let allowed = SeccompFilter::new(rules()?, errno(libc::EPERM), SeccompAction::Allow, arch)?;
    Ok([absent.try_into()?, allowed.try_into()?])
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::new();
    for call in PLAIN.iter().chain(OLDER) {
        rules.insert(*call, Vec::new());
    }
    for (call, ways) in JUDGED {
        let ways: Result<Vec<SeccompRule>, _> = ways.iter().map(|way| rule(way)).collect();
        rules.insert(*call, ways?);
    }
    let own = int(0, nix::unistd::Pid::this().as_raw());
    for call in OWN_SIGNALS {
        rules.insert(call, vec![rule(&[own])?]);
    }
    Ok(rules)
}

/// All of these at once.
fn rule(way: &[Argument]) -> Result<SeccompRule, BackendError> {
    let condition = |argument: &Argument| {
        let compare = SeccompCmpOp::MaskedEq(argument.mask);
        let length = if argument.mask > u64::from(u32::MAX) {
            SeccompCmpArgLen::Qword
        } else {
            SeccompCmpArgLen::Dword
        };
        SeccompCondition::new(argument.index, length, compare, argument.value)
    };
    let conditions: Result<Vec<SeccompCondition>, _> = way.iter().map(condition).collect();
    SeccompRule::new(conditions?)
}
