//! What the witness is told of files: modes, flags of new files, and requests to
//! file systems and interfaces.

use seccompiler::{SeccompCmpOp, SeccompCondition};

use super::{Conditions, TRACED, compare, flag, is, not};
use crate::filter::{FilterOptions, Opens};

/// Requests to file systems, but those that are ordinary, and three of types that
/// others have, too.
pub(super) fn file_requests() -> Vec<Conditions> {
    let ordinary: [u32; 6] = [
        0x8008_6601,
        0x8008_6603,
        0xc020_660b,
        0x4004_9409,
        0x4020_940d,
        0xc018_9436,
    ];
    let mut requests: Vec<Conditions> = Vec::new();
    for (kind, bit) in [
        (0x6600, 0x2000_u32),
        (0xf500, 0x2000),
        (0x9400, 1 << 31),
        (0x9400, 1 << 30),
    ] {
        let mut all: Conditions = ordinary.map(|op| not(1, op.cast_signed())).into();
        all.push(compare(1, SeccompCmpOp::MaskedEq(0xff00), kind));
        all.push(compare(
            1,
            SeccompCmpOp::MaskedEq(u64::from(bit)),
            bit.cast_signed(),
        ));
        requests.push(all);
    }
    requests.extend([0x401c_5820, 0x4008_7602, 0x4004_7211].map(|op| vec![is(1, op)]));
    requests
}

/// Requests to network interfaces and sockets (netdevice(7)), but those that only
/// read.
pub(super) fn interface_requests() -> Vec<Conditions> {
    let read = [
        0x8901..=0x8907,
        0x8910..=0x8910,
        0x8912..=0x8913,
        0x8915..=0x8915,
        0x8917..=0x8917,
        0x8919..=0x8919,
        0x891b..=0x891b,
        0x891d..=0x891d,
        0x8921..=0x8921,
        0x8927..=0x8927,
        0x8933..=0x8933,
        0x8942..=0x8942,
        0x8946..=0x8946,
        0x8954..=0x8954,
        0x8970..=0x8970,
    ];
    let is_read = |op: &i32| read.iter().any(|some| some.contains(op));
    let requests = (0x8900..=0x89ff).filter(|op: &i32| !is_read(op));
    requests.map(|op| vec![is(1, op)]).collect()
}

/// Argument `argument` has none of the bits.
fn lacks(argument: u8, bits: u32) -> SeccompCondition {
    compare(argument, SeccompCmpOp::MaskedEq(bits.into()), 0)
}

const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];
/// `O_TMPFILE` without `O_DIRECTORY`, which differs between architectures.
const CREATES: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// A mode at `mode`, of a file that is new anyhow.
pub(super) fn modes(mode: u8) -> Vec<(u32, Vec<Conditions>)> {
    let refused = SET_ID.map(|bit| (1, flag(mode, bit.cast_signed())));
    refused.into()
}

/// A mode at `mode`, of a file whose kind only the supervisor sees.
pub(super) fn held_modes(mode: u8) -> Vec<(u32, Vec<Conditions>)> {
    vec![
        (1, flag(mode, libc::S_ISUID.cast_signed())),
        (TRACED, vec![vec![lacks(mode, libc::S_ISUID)]]),
    ]
}

/// A mode at `mode`, of a file that is new only with some of the flags before it.
pub(super) fn opens(mode: u8, options: FilterOptions) -> Vec<(u32, Vec<Conditions>)> {
    let flags = mode - 1;
    let mut rows = Vec::new();
    for bit in SET_ID.map(u32::cast_signed) {
        for creates in CREATES {
            let both = [flag(mode, bit), flag(flags, creates)].concat().concat();
            rows.push((1, vec![both]));
        }
    }
    let no_mode = || lacks(mode, SET_ID[0] | SET_ID[1]);
    let nothing_new = || lacks(flags, (CREATES[0] | CREATES[1]).cast_unsigned());
    let neither = || compare(flags, SeccompCmpOp::MaskedEq(3), libc::O_ACCMODE);
    rows.push((
        13,
        vec![vec![no_mode(), neither()], vec![nothing_new(), neither()]],
    ));
    if options.opens == Opens::Trap {
        for bit in [1, 2] {
            let one = || lacks(flags, bit);
            rows.push((
                TRACED,
                vec![vec![no_mode(), one()], vec![nothing_new(), one()]],
            ));
        }
    }
    if options.opens == Opens::Pass {
        let own = libc::O_ACCMODE | libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY;
        let wanted = libc::O_RDWR | libc::O_NOCTTY;
        let terminal = || {
            compare(
                flags,
                SeccompCmpOp::MaskedEq(u64::from(own.cast_unsigned())),
                wanted,
            )
        };
        rows.push((
            TRACED,
            vec![vec![no_mode(), terminal()], vec![nothing_new(), terminal()]],
        ));
    }
    rows
}
