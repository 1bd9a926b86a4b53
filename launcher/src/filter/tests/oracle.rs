//! `seccompiler` as a witness: the same rules said to it, in its own words and
//! with the C library's constants, must lead to the same actions. It has one
//! action per filter, so there is one filter per action, and it knows nothing of
//! x32 and of numbers that no call has.

mod files;
mod socket_options;

use std::collections::BTreeMap;

use libc::{AF_INET, AF_INET6, AF_NETLINK, AF_UNIX};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{ARCHES, OPTIONS, call, run};
use crate::filter::interpreter::{self, Data};
use crate::filter::rule::FilterRule;
use crate::filter::table::Row;
use crate::filter::{Arch, FilterAction, FilterOptions, Instruction, table};
use files::{file_requests, held_modes, interface_requests, modes, opens};
use socket_options::{socket_option_reads, socket_options};

/// What the witness returns for a held call: it has no word for that.
const TRACED: u32 = 0x7ff0_0001;
const ALLOWED: u32 = 0x7fff_0000;

type Conditions = Vec<SeccompCondition>;

fn target(arch: Arch) -> TargetArch {
    match arch {
        Arch::X86_64 => TargetArch::x86_64,
        Arch::Aarch64 => TargetArch::aarch64,
    }
}

fn compare(argument: u8, operator: SeccompCmpOp, value: i32) -> SeccompCondition {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).expect("condition")
}

fn is(argument: u8, value: i32) -> SeccompCondition {
    compare(argument, SeccompCmpOp::Eq, value)
}

fn not(argument: u8, value: i32) -> SeccompCondition {
    compare(argument, SeccompCmpOp::Ne, value)
}

/// The type of a socket is its lowest four bits; the witness can only say
/// "equal under a mask", so "none of" is all the others.
fn types(wanted: impl Fn(i32) -> bool) -> Vec<SeccompCondition> {
    (0..16)
        .filter(|kind| wanted(*kind))
        .map(|kind| compare(1, SeccompCmpOp::MaskedEq(0xf), kind))
        .collect()
}

/// One alternative per type, each with the other conditions.
fn of_types(wanted: impl Fn(i32) -> bool, others: &[SeccompCondition]) -> Vec<Conditions> {
    types(wanted)
        .into_iter()
        .map(|kind| others.iter().cloned().chain([kind]).collect())
        .collect()
}

fn sockets() -> Vec<(u32, Vec<Conditions>)> {
    let (eperm, eacces) = (1, 13);
    let (eprotonosupport, eafnosupport) = (93, 97);
    let mut rows = vec![
        (
            eprotonosupport,
            of_types(|kind| !matches!(kind, 1 | 5), &[is(0, AF_UNIX)]),
        ),
        (
            eprotonosupport,
            of_types(|kind| !matches!(kind, 2 | 3), &[is(0, AF_NETLINK)]),
        ),
        (
            eprotonosupport,
            of_types(
                |kind| matches!(kind, 2 | 3),
                &[is(0, AF_NETLINK), not(2, libc::NETLINK_ROUTE)],
            ),
        ),
        (
            eafnosupport,
            vec![vec![
                not(0, AF_UNIX),
                not(0, AF_INET),
                not(0, AF_INET6),
                not(0, AF_NETLINK),
            ]],
        ),
    ];
    for domain in [AF_INET, AF_INET6].map(|family| is(0, family)) {
        let with = |others: &[SeccompCondition]| [std::slice::from_ref(&domain), others].concat();
        let stream = |kind| kind == libc::SOCK_STREAM;
        let datagram = |kind| kind == libc::SOCK_DGRAM;
        rows.extend([
            (
                eprotonosupport,
                of_types(stream, &with(&[not(2, 0), not(2, libc::IPPROTO_TCP)])),
            ),
            (TRACED, of_types(datagram, &with(&[is(2, 0)]))),
            (TRACED, of_types(datagram, &with(&[is(2, 17)]))),
            (eacces, of_types(datagram, &with(&[is(2, 1)]))),
            (eacces, of_types(datagram, &with(&[is(2, 58)]))),
            (
                eprotonosupport,
                of_types(
                    datagram,
                    &with(&[not(2, 0), not(2, 17), not(2, 1), not(2, 58)]),
                ),
            ),
            (eperm, of_types(|kind| kind == libc::SOCK_RAW, &with(&[]))),
            (
                eprotonosupport,
                of_types(|kind| !matches!(kind, 1..=3), &with(&[])),
            ),
        ]);
    }
    rows
}

/// A flag is set: equal to itself under itself.
fn flag(argument: u8, flag: i32) -> Vec<Conditions> {
    let mask = u64::from(flag.cast_unsigned());
    vec![vec![compare(argument, SeccompCmpOp::MaskedEq(mask), flag)]]
}

/// The namespaces that a call makes.
fn namespaces(name: &str) -> Vec<i32> {
    let mut all = vec![
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    if name == "unshare" {
        all.push(libc::CLONE_NEWTIME);
    }
    all
}

fn processes(name: &str) -> Vec<(u32, Vec<Conditions>)> {
    let each = |argument, values: &[i32]| values.iter().map(|v| vec![is(argument, *v)]).collect();
    match name {
        "clone" | "unshare" => {
            let made = namespaces(name);
            let all = made.iter().fold(0, |all, one| all | one);
            let mut rows: Vec<_> = made.into_iter().map(|one| (TRACED, flag(0, one))).collect();
            if name == "unshare" {
                let none = SeccompCmpOp::MaskedEq(u64::from(all.cast_unsigned()));
                rows.push((1, vec![vec![compare(0, none, 0)]]));
            }
            rows
        }
        "sched_setaffinity" | "sched_setscheduler" | "sched_setparam" | "prlimit64" => {
            vec![(TRACED, vec![vec![not(0, 0)]])]
        }
        "setpgid" => vec![(TRACED, vec![vec![not(1, 0)]])],
        "setpriority" => turns(0, 1),
        "ioprio_set" => turns(1, 2),
        "prctl" => vec![
            (0, each(0, &[libc::PR_SET_DUMPABLE])),
            (
                1,
                each(
                    0,
                    &[
                        libc::PR_SET_MM,
                        libc::PR_SET_PTRACER,
                        libc::PR_SET_SECUREBITS,
                    ],
                ),
            ),
        ],
        "personality" => vec![(
            1,
            vec![vec![not(0, 0), not(0, -1), not(0, libc::ADDR_NO_RANDOMIZE)]],
        )],
        "ioctl" => {
            let mut refused = each(1, &[0x5412, 0x541c, 0x541d, 0x5423, 0xaa00]);
            refused.extend(interface_requests());
            let mut unsupported = file_requests();
            unsupported.extend(each(1, &[0x8946]));
            vec![
                (1, refused),
                (95, unsupported),
                (TRACED, each(1, &[0x5441])),
                (0, each(1, &[0x540c])), // TIOCEXCL, not performed
            ]
        }
        other => panic!("{other} looks at its arguments and has no witness"),
    }
}

/// Turns of processes and of groups, by the numbers that stand for the two.
fn turns(process: i32, group: i32) -> Vec<(u32, Vec<Conditions>)> {
    let held = [process, group].map(|which| vec![is(0, which), not(1, 0)]);
    let refused = vec![
        vec![is(0, group), is(1, 0)],
        vec![not(0, process), not(0, group)],
    ];
    vec![(TRACED, held.into()), (1, refused)]
}

/// What the witness is told of a call that looks at its arguments.
fn testimony(name: &str, options: FilterOptions) -> Vec<(u32, Vec<Conditions>)> {
    match name {
        "creat" | "mknod" => modes(1),
        "mknodat" => modes(2),
        "chmod" | "fchmod" => held_modes(1),
        "fchmodat" | "fchmodat2" => held_modes(2),
        "open" => opens(2, options),
        "openat" => opens(3, options),
        "socket" => sockets(),
        "socketpair" => vec![
            (95, of_types(|kind| !matches!(kind, 1 | 2 | 5), &[])),
            (
                95,
                of_types(|kind| matches!(kind, 1 | 2 | 5), &[not(0, AF_UNIX)]),
            ),
            (TRACED, of_types(|kind| kind == 2, &[is(0, AF_UNIX)])),
        ],
        "bind" => vec![(TRACED, vec![vec![not(2, 12)]])],
        "sendto" | "sendmmsg" => vec![(95, flag(3, libc::MSG_FASTOPEN))],
        "sendmsg" => vec![(95, flag(2, libc::MSG_FASTOPEN))],
        "shutdown" => vec![(TRACED, vec![vec![not(1, libc::SHUT_WR)]])],
        "setsockopt" => socket_options(),
        "getsockopt" => socket_option_reads(),
        "fcntl" => vec![(1, vec![vec![is(1, libc::F_SETLEASE)]])],
        other => processes(other),
    }
}

/// The witness's filters: for each thing that can happen, one that says when.
fn witness(arch: Arch, options: FilterOptions) -> Vec<Vec<Instruction>> {
    let mut actions: BTreeMap<u32, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
    for row in table::rows(options) {
        let Some(number) = row.numbers.on(arch).map(i64::from) else {
            continue;
        };
        let cases = match row.rule {
            FilterRule::Do(FilterAction::Hold) => vec![(TRACED, vec![])],
            FilterRule::Do(FilterAction::Refuse(errno)) => vec![(errno.number, vec![])],
            FilterRule::Do(_) => panic!("{} needs no row", row.name),
            FilterRule::Ask { .. } => testimony(row.name, options),
        };
        for (action, conditions) in cases {
            let rules = conditions
                .into_iter()
                .map(|all| SeccompRule::new(all).expect("rule"));
            let calls = actions.entry(action).or_default();
            calls.entry(number).or_default().extend(rules);
        }
    }
    actions
        .into_iter()
        .map(|(action, rules)| {
            let action = match action {
                TRACED => SeccompAction::Trace(1),
                errno => SeccompAction::Errno(errno),
            };
            compile(arch, rules, action)
        })
        .collect()
}

fn compile(
    arch: Arch,
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    action: SeccompAction,
) -> Vec<Instruction> {
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, action, target(arch)).expect("filter");
    let program: BpfProgram = filter.try_into().expect("program");
    program
        .into_iter()
        .map(|step| Instruction {
            code: step.code,
            jt: step.jt,
            jf: step.jf,
            k: step.k,
        })
        .collect()
}

/// All filters say "allow", or exactly one says something else.
fn testify(filters: &[Vec<Instruction>], data: &Data) -> u32 {
    let said: Vec<u32> = filters
        .iter()
        .map(|filter| interpreter::run(filter, data).expect("run").returned)
        .filter(|returned| *returned != ALLOWED)
        .collect();
    match said[..] {
        [] => ALLOWED,
        [TRACED] => FilterAction::Hold.returned(),
        [one] => one,
        _ => panic!("the witness contradicts itself: {said:x?} for {data:x?}"),
    }
}

/// Names of socket options, protocols and flags.
#[rustfmt::skip]
const THIRD: [u64; 49] = [
    0, 1, 4, 6, 14, 15, 17, 19, 25, 27, 30, 31, 32, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 51, 52,
    54, 57, 58, 59, 60, 62, 63, 64, 65, 66, 73, 75, 76, 79, 80, 96, 100, 128, 0x2000_0000,
];

/// Arguments worth trying: all that any rule asks about, and their like.
fn interesting() -> Vec<[u64; 6]> {
    const FIRST: [u64; 16] = [
        0,
        1,
        2,
        4,
        10,
        16,
        17,
        28,
        35,
        0x11,
        0x0004_0000,
        0x0200_0011,
        0x5961_6d61,
        0x7e02_0000,
        0xffff_ffff,
        0x0800_0000,
    ];
    #[rustfmt::skip]
    const SECOND: [u64; 36] = [
        17, 136, 270, 1024, 0, 1, 2, 3, 5, 6, 10, 41, 0x0008_0001, 0x0008_0802, 0x0000_0803, 0x540c, 0x5412, 0x5423,
        0x541b, 0x88ff, 0x8900, 0x8905, 0x8914, 0x8946, 0x894c, 0x897f, 0x8980, 0x89f1, 0x8a00,
        0xaa00, 0x8008_6601, 0x4008_6602, 0x4004_9409, 0x4008_941a, 0x401c_5820, 0x801c_581f,
    ];
    const FOURTH: [u64; 3] = [0, 0x4000, 0x2000_4000];
    let mut rows = Vec::new();
    for a in FIRST {
        for b in SECOND {
            for c in THIRD {
                for d in FOURTH {
                    rows.push([a, b, c, d, 0, 0]);
                }
            }
        }
    }
    rows
}

/// Modes and flags worth trying, wherever they stand.
fn interesting_modes() -> Vec<[u64; 6]> {
    const WORDS: [u64; 9] = [
        0, 0o755, 0o1777, 0o2755, 0o4755, 0o6000, 0x41, 0x40_0002, 0x41_4802,
    ];
    let rows = WORDS.iter().flat_map(|a| WORDS.map(|b| (*a, b)));
    rows.flat_map(|(a, b)| WORDS.map(|c| [0, a, b, c, 0, 0]))
        .collect()
}

#[test]
fn an_independent_compiler_agrees() {
    let plain = interesting();
    let modes = interesting_modes();
    for arch in ARCHES {
        for options in OPTIONS {
            let filters = witness(arch, options);
            let program = crate::filter::program(arch, &options).expect("program");
            let mut numbers: Vec<(u32, &[[u64; 6]])> =
                (0..=table::NEWEST).map(|nr| (nr, &plain[..1])).collect();
            let asks = |row: &&Row| matches!(row.rule, FilterRule::Ask { .. });
            for row in table::rows(options).filter(asks) {
                let number = row.numbers.on(arch);
                let tried = [&plain[..], &modes[..]];
                numbers.extend(number.into_iter().flat_map(|nr| tried.map(|all| (nr, all))));
            }
            for (nr, arguments) in numbers {
                if table::unassigned(arch)
                    .iter()
                    .any(|range| range.contains(&nr))
                {
                    continue;
                }
                for (index, args) in arguments.iter().enumerate() {
                    let garbage = if index % 2 == 0 { 0 } else { 0xdead_beef << 32 };
                    let data = call(arch, nr, args.map(|argument| argument | garbage));
                    let returned = interpreter::run(&program, &data).expect("run").returned;
                    assert_eq!(
                        returned,
                        testify(&filters, &data),
                        "{} {data:x?}",
                        arch.name()
                    );
                }
            }
        }
    }
}

#[test]
fn the_witness_kills_foreign_calls_too() {
    let mut data = call(Arch::X86_64, 0, [0; 6]);
    data.arch = Arch::Aarch64.audit();
    let options = OPTIONS[0];
    for filter in witness(Arch::X86_64, options) {
        let said = interpreter::run(&filter, &data).expect("run").returned;
        assert_eq!(said, run(Arch::X86_64, options, &data).returned);
    }
}

/// Newer than the witness's table.
const NEWER: &str = "open_tree_attr setxattrat getxattrat listxattrat removexattrat file_getattr \
                     file_setattr";

/// The witness's own table of names, for both architectures.
#[test]
fn an_independent_table_has_the_same_numbers() {
    for arch in ARCHES {
        for row in table::rows(OPTIONS[1]) {
            let Some(expected) = row.numbers.on(arch) else {
                continue;
            };
            if NEWER.split(' ').any(|newer| newer == row.name) {
                continue;
            }
            let json = format!(
                r#"{{"it": {{"mismatch_action": "allow", "match_action": "trap",
                "filter": [{{"syscall": "{}"}}]}}}}"#,
                row.name
            );
            let filters = seccompiler::compile_from_json(json.as_bytes(), target(arch))
                .unwrap_or_else(|error| panic!("{}: {error}", row.name));
            let steps: Vec<Instruction> = filters["it"]
                .iter()
                .map(|step| Instruction {
                    code: step.code,
                    jt: step.jt,
                    jf: step.jf,
                    k: step.k,
                })
                .collect();
            let trapped: Vec<u32> = (0..=table::NEWEST)
                .filter(|nr| {
                    let data = call(arch, *nr, [0; 6]);
                    interpreter::run(&steps, &data).expect("run").returned != ALLOWED
                })
                .collect();
            assert_eq!(trapped, [expected], "{} on {}", row.name, arch.name());
        }
    }
}
