//! The filter as data: one row per system call that is not simply allowed,
//! with its numbers, what happens to it, and why. Whoever changes a row changes
//! what a command may do; no other file says anything about that.
//!
//! Calls without a row are allowed: reading and writing what is open, files
//! (Landlock judges them), memory, threads, time, signals (Landlock keeps them
//! inside), and Landlock and seccomp themselves, which can only narrow. What moves
//! or advises about another's memory needs the rights of a tracer, which Landlock
//! keeps inside as well. Calls that no supported kernel (6.12 or newer) has any more
//! need no row. x86_64 numbers are from its own table, those of aarch64 from
//! the generic one (asm-generic/unistd.h).

use std::ops::RangeInclusive;

use super::arguments::{
    BIND, CLONE, HOLD, PERSONALITY, PROCESS_CONTROL, REQUESTS, SEND_FLAGS_FOURTH, SEND_FLAGS_THIRD,
    SHUTDOWN, SOCKET, SOCKET_PAIR, UNSHARE,
};
use super::errno::{ENOSYS, EOPNOTSUPP, EPERM};
use super::files::{
    CHMOD_SECOND, CHMOD_THIRD, FILE_CONTROL, HELD_OPEN, HELD_OPENAT, MODE_SECOND, MODE_THIRD, OPEN,
    OPENAT,
};
use super::rule::{FilterAction, FilterRule};
use super::schedule::{IO_PRIORITY, PRIORITY, PROCESS_GROUP, THREAD};
use super::socket_options::{SOCKET_OPTIONS, SOCKET_OPTIONS_READ};
use super::{Arch, FilterOptions, Opens};

/// The newest call we know (Linux 6.18, `file_setattr`). Nobody has judged a
/// newer one, so it does not exist here.
pub(super) const NEWEST: u32 = 469;

/// Numbers with the x32 bit: the same calls once more, by other numbers. Those
/// above have the sign bit; a tracer outside sets -1 to skip a call.
pub(super) const X32: RangeInclusive<u32> = 0x4000_0000..=0x7fff_ffff;

/// Numbers below [`NEWEST`] that no call has. A kernel that gives them a
/// meaning gives them one we have not judged. The two before 337 on x86_64 are
/// how user probes, set from outside, return.
pub(super) const fn unassigned(arch: Arch) -> &'static [RangeInclusive<u32>] {
    match arch {
        Arch::X86_64 => &[337..=423],
        Arch::Aarch64 => &[244..=259, 295..=423],
    }
}

/// A call's number on each architecture that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    x86_64: Option<u32>,
    aarch64: Option<u32>,
}

impl Numbers {
    pub(super) const fn on(self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// One call and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) numbers: Numbers,
    pub(super) rule: &'static FilterRule,
    pub(super) reason: &'static str,
}

/// Rows that belong together.
#[derive(Debug)]
pub(super) struct RowGroup {
    pub(super) title: &'static str,
    pub(super) rows: &'static [Row],
}

/// Numbers on x86_64 and aarch64.
const fn both(x86_64: u32, aarch64: u32) -> Numbers {
    Numbers {
        x86_64: Some(x86_64),
        aarch64: Some(aarch64),
    }
}

/// Calls since Linux 5.1 have one number everywhere.
const fn same(number: u32) -> Numbers {
    both(number, number)
}

const fn x86_64(number: u32) -> Numbers {
    Numbers {
        x86_64: Some(number),
        aarch64: None,
    }
}

const fn row(
    name: &'static str,
    numbers: Numbers,
    rule: &'static FilterRule,
    reason: &'static str,
) -> Row {
    Row {
        name,
        numbers,
        rule,
        reason,
    }
}

/// Not for the command, as if it lacked a privilege.
const DENY: &FilterRule = &FilterRule::Do(FilterAction::Refuse(EPERM));
/// As if the kernel were built without it: callers have a second way.
const ABSENT: &FilterRule = &FilterRule::Do(FilterAction::Refuse(ENOSYS));
/// As if the filesystem could not do it.
const NOT_HERE: &FilterRule = &FilterRule::Do(FilterAction::Refuse(EOPNOTSUPP));

/// The groups of rows in force, in the order of the listing.
pub(super) const fn groups(options: FilterOptions) -> [&'static [RowGroup]; 3] {
    match options.opens {
        Opens::Trap => [&[HELD_OPENS], HELD_GROUPS, GROUPS],
        Opens::Pass => [&[OPENS], HELD_GROUPS, GROUPS],
    }
}

/// Name of the held call about attributes of a file, or a link, that has this number.
pub(super) fn attribute(arch: Arch, number: u32) -> Option<&'static str> {
    held(&LINKS, arch, number).or_else(|| held(&ATTRIBUTES, arch, number))
}

/// Name of the held call that changes how threads are scheduled and has this number.
pub(super) fn scheduling(arch: Arch, number: u32) -> Option<&'static str> {
    held(&SCHEDULING, arch, number)
}

/// Whether the held call with this number would make namespaces.
pub(super) fn is_namespace(arch: Arch, number: u32) -> bool {
    held(&NAMESPACES, arch, number).is_some()
}

fn held(group: &RowGroup, arch: Arch, number: u32) -> Option<&'static str> {
    let held = |row: &&Row| row.rule != ABSENT && row.numbers.on(arch) == Some(number);
    group.rows.iter().find(held).map(|row| row.name)
}

/// The rows in force.
pub(super) fn rows(options: FilterOptions) -> impl Iterator<Item = &'static Row> {
    let groups = groups(options).into_iter().flatten();
    groups.flat_map(|group| group.rows)
}

#[rustfmt::skip]
const HELD_OPENS: RowGroup = RowGroup { title: "files, held so that resolver settings can be substituted", rows: &[
    row("open",              x86_64(2),      HELD_OPEN, "musl opens resolv.conf and hosts with it; a new file may have a mode of set-ID programs, and Landlock judges no open without access"),
    row("openat",            both(257, 56),  HELD_OPENAT, "glibc opens resolv.conf and hosts with it; a new file may have a mode of set-ID programs, and Landlock judges no open without access"),
] };

#[rustfmt::skip]
const OPENS: RowGroup = RowGroup { title: "files", rows: &[
    row("open",              x86_64(2),      OPEN,   "a new file may have a mode of set-ID programs, Landlock judges no open without access, and a terminal of the caller's own lies beside others"),
    row("openat",            both(257, 56),  OPENAT, "a new file may have a mode of set-ID programs, Landlock judges no open without access, and a terminal of the caller's own lies beside others"),
] };

/// Groups with calls that a part of the supervisor finds by [`held`].
const HELD_GROUPS: &[RowGroup] = &[ATTRIBUTES, LINKS, SCHEDULING, NAMESPACES];

/// Landlock leaves these to every owner of a file; the supervisor performs them on
/// behalf. Modes of set-ID programs are refused first.
#[rustfmt::skip]
const ATTRIBUTES: RowGroup = RowGroup { title: "attributes of files, changed on behalf where the command may write", rows: &[
    row("chmod",             x86_64(90),     CHMOD_SECOND, "changes who may read a file, wherever it lies"),
    row("fchmod",            both(91, 52),   CHMOD_SECOND, "a descriptor to read from is enough"),
    row("fchmodat",          both(268, 53),  CHMOD_THIRD, "changes who may read a file, wherever it lies"),
    row("fchmodat2",         same(452),      CHMOD_THIRD, "changes who may read a file, wherever it lies"),
    row("chown",             x86_64(92),     HOLD,   "gives a file to another group"),
    row("fchown",            both(93, 55),   HOLD,   "a descriptor to read from is enough"),
    row("lchown",            x86_64(94),     HOLD,   "gives a link to another group"),
    row("fchownat",          both(260, 54),  HOLD,   "gives a file to another group"),
    row("utime",             x86_64(132),    HOLD,   "hides from build tools and backups that a file changed"),
    row("utimes",            x86_64(235),    HOLD,   "hides from build tools and backups that a file changed"),
    row("futimesat",         x86_64(261),    HOLD,   "hides from build tools and backups that a file changed"),
    row("utimensat",         both(280, 88),  HOLD,   "hides from build tools and backups that a file changed"),
    row("setxattr",          both(188, 5),   HOLD,   "access lists are extended attributes too"),
    row("lsetxattr",         both(189, 6),   HOLD,   "access lists are extended attributes too"),
    row("fsetxattr",         both(190, 7),   HOLD,   "a descriptor to read from is enough"),
    row("removexattr",       both(197, 14),  HOLD,   "access lists are extended attributes too"),
    row("lremovexattr",      both(198, 15),  HOLD,   "access lists are extended attributes too"),
    row("fremovexattr",      both(199, 16),  HOLD,   "a descriptor to read from is enough"),
    row("setxattrat",        same(463),      ABSENT, "callers fall back to the calls above"),
    row("removexattrat",     same(466),      ABSENT, "callers fall back to the calls above"),
    row("file_setattr",      same(469),      ABSENT, "sets a file's flags wherever it lies"),
] };

/// Landlock leaves these to everybody who can walk there; the supervisor answers where
/// the command may read. Who asks by a descriptor got it from Landlock: for none that is
/// a place only (`O_PATH`) does the kernel answer.
#[rustfmt::skip]
const LINKS: RowGroup = RowGroup { title: "links and attributes of files, read on behalf where the command may read", rows: &[
    row("readlink",          x86_64(89),     HOLD,   "what a hidden link says may be a secret itself"),
    row("readlinkat",        both(267, 78),  HOLD,   "what a hidden link says may be a secret itself"),
    row("getxattr",          both(191, 8),   HOLD,   "reads attributes wherever the file lies"),
    row("lgetxattr",         both(192, 9),   HOLD,   "reads attributes wherever the file lies"),
    row("listxattr",         both(194, 11),  HOLD,   "reads attributes wherever the file lies"),
    row("llistxattr",        both(195, 12),  HOLD,   "reads attributes wherever the file lies"),
    row("getxattrat",        same(464),      ABSENT, "callers fall back to the calls above"),
    row("listxattrat",       same(465),      ABSENT, "callers fall back to the calls above"),
    row("file_getattr",      same(468),      ABSENT, "callers open the file and ask for its flags"),
] };

/// The kernel asks for the same user alone; the supervisor, for the same run.
#[rustfmt::skip]
const SCHEDULING: RowGroup = RowGroup { title: "turns on processors and disks, limits and process groups, for threads of the run alone", rows: &[
    row("setpriority",        both(141, 140), PRIORITY,    "holds up every process of the user, the launcher among them"),
    row("ioprio_set",         both(251, 30),  IO_PRIORITY, "holds up what others read and write, the record among it"),
    row("sched_setaffinity",  both(203, 122), THREAD,      "crowds others onto one processor"),
    row("sched_setscheduler", both(144, 119), THREAD,      "has others run only when nobody else would"),
    row("sched_setparam",     both(142, 118), THREAD,      "changes the priority of others"),
    row("prlimit64",          both(302, 261), THREAD,      "limits of others: a file size of 0 would silence the audit record"),
    row("setpgid",            both(109, 154), PROCESS_GROUP, "joins a job outside: the terminal stops it, and takes what is typed for it"),
    row("sched_setattr",      both(314, 274), ABSENT,      "a slice as short as the guardian's; callers fall back to the calls above"),
] };

/// Refused by the supervisor, which tells the first.
#[rustfmt::skip]
const NAMESPACES: RowGroup = RowGroup { title: "namespaces, held so that somebody is told why there is none", rows: &[
    row("clone",             both(56, 220),  CLONE,  "a new namespace has its own network and privileges"),
    row("unshare",           both(272, 97),  UNSHARE, "a new namespace has its own network and privileges"),
] };

#[rustfmt::skip]
const GROUPS: &[RowGroup] = &[
    RowGroup { title: "modes of set-ID programs, which give others the rights of the user", rows: &[
        row("openat2",           same(437),      ABSENT, "its mode lies in memory where no filter sees it; callers fall back to openat"),
        row("creat",             x86_64(85),     MODE_SECOND, "makes a file with a mode"),
        row("mknod",             x86_64(133),    MODE_SECOND, "makes a file with a mode; mkdir leaves such bits out"),
        row("mknodat",           both(259, 33),  MODE_THIRD, "makes a file with a mode; mkdirat leaves such bits out"),
    ] },
    RowGroup { title: "network", rows: &[
        row("connect",           both(42, 203),  HOLD,   "each destination is judged, and connected to on behalf"),
        row("bind",              both(49, 200),  BIND,   "ports of loopback are free, and the others granted; Landlock leaves only port 0"),
        row("listen",            both(50, 201),  HOLD,   "Landlock does not see it, and an unbound socket would listen on every address"),
        row("shutdown",          both(48, 210),  SHUTDOWN, "ends a listener while a connection to it is made, and its port is another's"),
        row("socket",            both(41, 198),  SOCKET, "only sockets whose destination is fixed by connect; datagrams are made in a sealed network"),
        row("socketpair",        both(53, 199),  SOCKET_PAIR, "a datagram pair could send to any name: one of packets is given"),
        row("sendto",            both(44, 206),  SEND_FLAGS_FOURTH, "fast open would connect without connect"),
        row("sendmsg",           both(46, 211),  SEND_FLAGS_THIRD, "fast open would connect without connect"),
        row("sendmmsg",          both(307, 269), SEND_FLAGS_FOURTH, "fast open would connect without connect"),
        row("setsockopt",        both(54, 208),  SOCKET_OPTIONS, "options that change where, or how, a socket connects"),
        row("getsockopt",        both(55, 209),  SOCKET_OPTIONS_READ, "tables of the packet filters in the sealed network"),
        row("io_uring_setup",    same(425),      ABSENT, "its operations are not seen by any filter"),
        row("io_uring_enter",    same(426),      ABSENT, "its operations are not seen by any filter"),
        row("io_uring_register", same(427),      ABSENT, "its operations are not seen by any filter"),
    ] },
    RowGroup { title: "other processes", rows: &[
        row("ptrace",            both(101, 117), DENY,   "controls other processes"),
        row("process_vm_readv",  both(310, 270), DENY,   "reads the memory of other processes"),
        row("process_vm_writev", both(311, 271), DENY,   "writes the memory of other processes"),
        row("pidfd_getfd",       same(438),      DENY,   "takes descriptors from other processes, sockets included"),
        row("kcmp",              both(312, 272), DENY,   "compares kernel addresses of other processes"),
        row("prctl",             both(157, 167), PROCESS_CONTROL, "the supervisor must be able to read the arguments of held calls"),
        row("perf_event_open",   both(298, 241), DENY,   "observes other processes and the kernel"),
        row("bpf",               both(321, 280), DENY,   "puts programs into the kernel"),
        row("userfaultfd",       both(323, 282), ABSENT, "stops the kernel in the middle of reading memory"),
    ] },
    RowGroup { title: "memory and messages shared by number, with any process of the same user", rows: &[
        row("shmget",            both(29, 194),  ABSENT, "finds another program's memory by its key"),
        row("shmat",             both(30, 196),  ABSENT, "maps another program's memory"),
        row("shmctl",            both(31, 195),  ABSENT, "lists and removes shared memory"),
        row("shmdt",             both(67, 197),  ABSENT, "goes with shmat"),
        row("semget",            both(64, 190),  ABSENT, "a channel to programs outside"),
        row("semop",             both(65, 193),  ABSENT, "a channel to programs outside"),
        row("semctl",            both(66, 191),  ABSENT, "a channel to programs outside"),
        row("semtimedop",        both(220, 192), ABSENT, "a channel to programs outside"),
        row("msgget",            both(68, 186),  ABSENT, "a channel to programs outside"),
        row("msgsnd",            both(69, 189),  ABSENT, "a channel to programs outside"),
        row("msgrcv",            both(70, 188),  ABSENT, "a channel to programs outside"),
        row("msgctl",            both(71, 187),  ABSENT, "lists and removes message queues"),
        row("mq_open",           both(240, 180), ABSENT, "a channel to programs outside, not seen by Landlock"),
        row("mq_unlink",         both(241, 181), ABSENT, "removes queues of programs outside"),
    ] },
    RowGroup { title: "namespaces and privilege", rows: &[
        row("clone3",            same(435),      ABSENT, "its flags lie in memory where no filter sees them; callers fall back to clone"),
        row("setns",             both(308, 268), DENY,   "enters another network or mount namespace"),
        row("add_key",           both(248, 217), DENY,   "key rings are shared with programs outside"),
        row("request_key",       both(249, 218), DENY,   "key rings are shared with programs outside"),
        row("keyctl",            both(250, 219), DENY,   "key rings are shared with programs outside"),
        row("personality",       both(135, 92),  PERSONALITY, "makes all memory executable, or imitates other systems"),
    ] },
    RowGroup { title: "mounts and file handles", rows: &[
        row("mount",             both(165, 40),  DENY,   "changes which files paths lead to"),
        row("umount2",           both(166, 39),  DENY,   "uncovers what a mount hides"),
        row("pivot_root",        both(155, 41),  DENY,   "changes the root directory"),
        row("chroot",            both(161, 51),  DENY,   "changes the root directory"),
        row("open_tree",         same(428),      DENY,   "copies a mount"),
        row("move_mount",        same(429),      DENY,   "changes which files paths lead to"),
        row("fsopen",            same(430),      DENY,   "makes a filesystem"),
        row("fsconfig",          same(431),      DENY,   "makes a filesystem"),
        row("fsmount",           same(432),      DENY,   "makes a filesystem"),
        row("fspick",            same(433),      DENY,   "changes a filesystem"),
        row("mount_setattr",     same(442),      DENY,   "lifts read-only and similar limits"),
        row("open_tree_attr",    same(467),      DENY,   "copies a mount without its limits"),
        row("fcntl",             both(72, 25),   FILE_CONTROL, "a lease has others wait who open the file"),
        row("name_to_handle_at", both(303, 264), NOT_HERE, "handles name files without a path"),
        row("open_by_handle_at", both(304, 265), DENY,   "opens a file without a path to judge"),
        row("fanotify_init",     both(300, 262), DENY,   "watches what other programs do with files"),
        row("quotactl",          both(179, 60),  DENY,   "administers filesystems"),
        row("quotactl_fd",       same(443),      DENY,   "administers filesystems"),
    ] },
    RowGroup { title: "the machine", rows: &[
        row("init_module",       both(175, 105), DENY,   "puts code into the kernel"),
        row("finit_module",      both(313, 273), DENY,   "puts code into the kernel"),
        row("delete_module",     both(176, 106), DENY,   "takes code out of the kernel"),
        row("kexec_load",        both(246, 104), DENY,   "replaces the kernel"),
        row("kexec_file_load",   both(320, 294), DENY,   "replaces the kernel"),
        row("reboot",            both(169, 142), DENY,   "stops the machine"),
        row("swapon",            both(167, 224), DENY,   "writes memory to a file"),
        row("swapoff",           both(168, 225), DENY,   "exhausts memory"),
        row("sethostname",       both(170, 161), DENY,   "renames the machine"),
        row("setdomainname",     both(171, 162), DENY,   "renames the machine"),
        row("settimeofday",      both(164, 170), DENY,   "sets the clock that certificates are checked against"),
        row("clock_settime",     both(227, 112), DENY,   "sets the clock that certificates are checked against"),
        row("adjtimex",          both(159, 171), DENY,   "sets the clock that certificates are checked against"),
        row("clock_adjtime",     both(305, 266), DENY,   "sets the clock that certificates are checked against"),
        row("acct",              both(163, 89),  DENY,   "records every process to a file"),
        row("syslog",            both(103, 116), DENY,   "reads and clears the kernel's messages"),
        row("vhangup",           both(153, 58),  DENY,   "takes the terminal from others"),
        row("iopl",              x86_64(172),    DENY,   "reaches devices past the kernel"),
        row("ioperm",            x86_64(173),    DENY,   "reaches devices past the kernel"),
        row("ioctl",             both(16, 29),   REQUESTS, "types into the terminal, changes its driver or the console, opens the other end of one made inside, finds a socket's namespace, changes the network in it, or flags of files"),
        row("modify_ldt",        x86_64(154),    ABSENT, "serves 16- and 32-bit code, which is killed, and was often at fault"),
        row("uselib",            x86_64(134),    ABSENT, "loads libraries of a format gone for decades"),
    ] },
];
