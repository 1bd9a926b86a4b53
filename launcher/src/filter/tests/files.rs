//! What the filter says about files: nobody gives a mode of set-ID programs, by
//! any call, on any architecture, and what changes attributes is held.

use super::{ARCHES, OPTIONS, call, run};
use crate::filter::{Arch, FilterAction, FilterOptions, Opens, table};

/// `EPERM` and `ENOSYS`, as a filter returns them.
const REFUSED: u32 = 0x0005_0001;
const ABSENT: u32 = 0x0005_0026;

/// Calls that take a mode: where it stands, and where the flags are that must
/// ask for a new file first.
const WITH_MODE: &[(&str, usize, Option<usize>)] = &[
    ("creat", 1, None),
    ("mknod", 1, None),
    ("mknodat", 2, None),
    ("open", 2, Some(1)),
    ("openat", 3, Some(2)),
];

/// Modes that make a program a set-ID one, whatever else is in them.
const SET_ID: [u64; 6] = [
    0o4000,
    0o2000,
    0o6755,
    0o10_4755,
    0xffff,
    0xdead_beef_0000_0800,
];
/// Their neighbours.
const OTHERS: [u64; 6] = [0, 0o755, 0o1777, 0o10_0644, 0o1_0000, 0x0000_0c00_0000_01ff];
/// Flags of a new file, and of one that is there.
const NEW: [u64; 3] = [0o101, 0o2_0000_0102, 0xffff_ffff_0000_0040];
const THERE: [u64; 3] = [0, 0o2_0000, 0x0000_0040_0008_0002];

/// What becomes of a call where `arch` has it.
fn returned(arch: Arch, options: FilterOptions, name: &str, args: [u64; 6]) -> Option<u32> {
    let row = table::rows(options).find(|row| row.name == name)?;
    let data = call(arch, row.numbers.on(arch)?, args);
    Some(run(arch, options, &data).returned)
}

/// What it becomes without a mode that it may not have.
fn otherwise(options: FilterOptions, flags: Option<usize>) -> u32 {
    match (flags, options.opens) {
        (Some(_), Opens::Trap) => FilterAction::Hold.returned(),
        (Some(_), Opens::Pass) | (None, _) => FilterAction::Allow.returned(),
    }
}

#[test]
fn what_may_be_a_terminal_made_inside_is_opened_on_behalf() {
    let hold = FilterAction::Hold.returned();
    for (flags, is_talk) in [
        (0o402, true),
        (0o200_4402, true),
        (0xffff_ffff_0000_0102, true),
        (0o2, false),
        (0o400, false),
        (0o401, false),
        (0o502, false),
        (0o602, false),
    ] {
        for arch in ARCHES {
            for options in OPTIONS {
                let expected = if is_talk {
                    hold
                } else {
                    otherwise(options, Some(1))
                };
                for (name, args) in [
                    ("open", [0, flags, 0, 0, 0, 0]),
                    ("openat", [0, 0, flags, 0, 0, 0]),
                ] {
                    if let Some(returned) = returned(arch, options, name, args) {
                        assert_eq!(returned, expected, "{name} {flags:o} on {}", arch.name());
                    }
                }
            }
        }
    }
}

#[test]
fn modes_of_set_id_programs_are_refused_in_every_call() {
    let mut tried = 0;
    for arch in ARCHES {
        for options in OPTIONS {
            for (name, mode, flags) in WITH_MODE {
                let mut check = |wanted: u64, open: u64, expected| {
                    let mut args = [0_u64; 6];
                    args[*mode] = wanted;
                    if let Some(flags) = flags {
                        args[*flags] = open;
                    }
                    let Some(returned) = returned(arch, options, name, args) else {
                        return;
                    };
                    assert_eq!(returned, expected, "{name}({args:x?}) on {}", arch.name());
                    tried += 1;
                };
                let otherwise = otherwise(options, *flags);
                for new in NEW {
                    for wanted in SET_ID {
                        check(wanted, new, REFUSED);
                    }
                    for wanted in OTHERS {
                        check(wanted, new, otherwise);
                    }
                }
                if flags.is_some() {
                    for there in THERE {
                        for wanted in SET_ID {
                            check(wanted, there, otherwise);
                        }
                    }
                }
            }
        }
    }
    assert!(tried > 600, "{tried}");
}

#[test]
fn an_open_without_access_is_refused() {
    let refused = 0x0005_000d;
    let access = |flags: u64| flags & 3;
    for arch in ARCHES {
        for options in OPTIONS {
            for (name, mode, flags) in WITH_MODE {
                let Some(at) = *flags else { continue };
                for set in [0, 0o101, 0o1000_0000, 0o4000, 0xffff_ffff_0000_0000] {
                    for wanted in (0..4).map(|access| set & !3 | access) {
                        let mut args = [0_u64; 6];
                        (args[at], args[*mode]) = (wanted, 0o644);
                        let Some(returned) = returned(arch, options, name, args) else {
                            continue;
                        };
                        let expected = if access(wanted) == 3 {
                            refused
                        } else {
                            otherwise(options, *flags)
                        };
                        assert_eq!(returned, expected, "{name} {wanted:#o} on {}", arch.name());
                    }
                }
            }
        }
    }
}

#[test]
fn a_mode_that_is_changed_is_held_or_refused() {
    for arch in ARCHES {
        for options in OPTIONS {
            for (name, mode) in [
                ("chmod", 1),
                ("fchmod", 1),
                ("fchmodat", 2),
                ("fchmodat2", 2),
            ] {
                for wanted in SET_ID.into_iter().chain(OTHERS) {
                    let mut args = [0_u64; 6];
                    args[mode] = wanted;
                    let Some(returned) = returned(arch, options, name, args) else {
                        continue;
                    };
                    let expected = if wanted & 0o4000 == 0 {
                        FilterAction::Hold.returned()
                    } else {
                        REFUSED
                    };
                    assert_eq!(returned, expected, "{name} {wanted:o} on {}", arch.name());
                }
            }
        }
    }
}

#[test]
fn requests_that_change_files_are_refused_and_others_are_not() {
    let unsupported = 0x0005_005f;
    let allowed = FilterAction::Allow.returned();
    for (request, expected) in [
        (0x4008_6602, unsupported), // FS_IOC_SETFLAGS
        (0x401c_5820, unsupported), // FS_IOC_FSSETXATTR
        (0x4008_7602, unsupported), // FS_IOC_SETVERSION
        (0x800c_6613, unsupported), // FS_IOC_SET_ENCRYPTION_POLICY
        (0xc040_6618, unsupported), // FS_IOC_REMOVE_ENCRYPTION_KEY
        (0x4080_6685, unsupported), // FS_IOC_ENABLE_VERITY
        (0x4004_7211, unsupported), // FAT_IOCTL_SET_ATTRIBUTES
        (0x4008_941a, unsupported), // BTRFS_IOC_SUBVOL_SETFLAGS
        (0x5000_940f, unsupported), // BTRFS_IOC_SNAP_DESTROY
        (0xdead_beef_4008_6602, unsupported),
        (0x8008_6601, allowed), // FS_IOC_GETFLAGS
        (0xc020_660b, allowed), // FS_IOC_FIEMAP
        (0x801c_581f, allowed), // FS_IOC_FSGETXATTR
        (0x8008_7601, allowed), // FS_IOC_GETVERSION
        (0x4004_9409, allowed), // FICLONE
        (0x4020_940d, allowed), // FICLONERANGE
        (0xc018_9436, allowed), // FIDEDUPERANGE
        (0x5401, allowed),      // TCGETS
        (0x541b, allowed),      // FIONREAD
    ] {
        for arch in ARCHES {
            for options in OPTIONS {
                let said = returned(arch, options, "ioctl", [3, request, 0, 0, 0, 0]);
                assert_eq!(said, Some(expected), "{request:#x} on {}", arch.name());
            }
        }
    }
}

#[test]
fn an_open_with_its_mode_in_memory_does_not_exist() {
    for arch in ARCHES {
        for options in OPTIONS {
            let said = returned(arch, options, "openat2", [0; 6]);
            assert_eq!(said, Some(ABSENT), "{}", arch.name());
        }
    }
}
