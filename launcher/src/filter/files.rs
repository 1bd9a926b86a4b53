//! The rules about files: modes that nobody may give, and what file systems can
//! be asked to do with a file. Data, no decisions at run time.
//!
//! Setting the set-user-ID bit of one's own file takes no privilege, and
//! `no_new_privs` binds the command alone: whoever else executes such a file
//! has the rights of its owner, outside of every sandbox (inode(7)).

use super::arguments::{HOLD, NO_ACCESS, NOT_PERMITTED, NOT_SUPPORTED, ask, has, is};
use super::rule::{ALLOW, ArgumentQuestion, FilterRule, KernelConstant, Test, value};

const SET_ID: &[KernelConstant] = &[value("S_ISUID", 0o4000), value("S_ISGID", 0o2000)];

/// Without either, the mode is not looked at, and may be anything. The second is
/// the bit of `O_TMPFILE` that is its own.
const CREATES: &[KernelConstant] = &[value("O_CREAT", 0x40), value("O_TMPFILE", 0x40_0000)];

pub(super) const MODE_SECOND: &FilterRule = &ask(has(1, "mode", SET_ID), NOT_PERMITTED, ALLOW);
pub(super) const MODE_THIRD: &FilterRule = &ask(has(2, "mode", SET_ID), NOT_PERMITTED, ALLOW);

const NEITHER: &[KernelConstant] = &[value("O_WRONLY and O_RDWR", 0x3)];

/// Whether a file is opened neither to be read nor to be written (open(2)), which is for
/// requests to drivers: Landlock finds nothing to judge in that, and what it gives has a
/// file's attributes.
const fn for_requests(argument: u32) -> ArgumentQuestion {
    ArgumentQuestion {
        argument,
        name: "flags",
        test: Test::Is {
            mask: 0x3,
            any_of: NEITHER,
        },
    }
}

const TALK: &[KernelConstant] = &[value("O_RDWR and O_NOCTTY, without O_CREAT", 0x102)];

/// Whether a file that is there is opened as a terminal is by who made it (pts(4)): to
/// read and write, and without making it the caller's controlling one.
const fn for_talk(argument: u32) -> ArgumentQuestion {
    ArgumentQuestion {
        argument,
        name: "flags",
        test: Test::Is {
            mask: 0x1c3,
            any_of: TALK,
        },
    }
}

const TALK_SECOND: &FilterRule = &ask(for_talk(1), HOLD, ALLOW);
const TALK_THIRD: &FilterRule = &ask(for_talk(2), HOLD, ALLOW);
const ACCESS_SECOND: &FilterRule = &ask(for_requests(1), NO_ACCESS, TALK_SECOND);
const FLAGS_SECOND: &FilterRule = &ask(has(1, "flags", CREATES), NOT_PERMITTED, ACCESS_SECOND);
pub(super) const OPEN: &FilterRule = &ask(has(2, "mode", SET_ID), FLAGS_SECOND, ACCESS_SECOND);
const ACCESS_THIRD: &FilterRule = &ask(for_requests(2), NO_ACCESS, TALK_THIRD);
const FLAGS_THIRD: &FilterRule = &ask(has(2, "flags", CREATES), NOT_PERMITTED, ACCESS_THIRD);
pub(super) const OPENAT: &FilterRule = &ask(has(3, "mode", SET_ID), FLAGS_THIRD, ACCESS_THIRD);

const HELD_SECOND: &FilterRule = &ask(for_requests(1), NO_ACCESS, HOLD);
const HELD_FLAGS_SECOND: &FilterRule = &ask(has(1, "flags", CREATES), NOT_PERMITTED, HELD_SECOND);
pub(super) const HELD_OPEN: &FilterRule =
    &ask(has(2, "mode", SET_ID), HELD_FLAGS_SECOND, HELD_SECOND);
const HELD_THIRD: &FilterRule = &ask(for_requests(2), NO_ACCESS, HOLD);
const HELD_FLAGS_THIRD: &FilterRule = &ask(has(2, "flags", CREATES), NOT_PERMITTED, HELD_THIRD);
pub(super) const HELD_OPENAT: &FilterRule =
    &ask(has(3, "mode", SET_ID), HELD_FLAGS_THIRD, HELD_THIRD);

// The second bit makes a directory hand its group on, and only the supervisor
// sees whether it is one.
const SET_USER_ID: &[KernelConstant] = &[value("S_ISUID", 0o4000)];
pub(super) const CHMOD_SECOND: &FilterRule = &ask(has(1, "mode", SET_USER_ID), NOT_PERMITTED, HOLD);
pub(super) const CHMOD_THIRD: &FilterRule = &ask(has(2, "mode", SET_USER_ID), NOT_PERMITTED, HOLD);

// fcntl(2)

/// Has everybody else who opens the file wait for whoever holds the lease, for
/// `fs.lease-break-time`; to read a file of one's own user is enough for one.
pub(super) const FILE_CONTROL: &FilterRule = &ask(
    is(1, "op", &[value("F_SETLEASE", 1024)]),
    NOT_PERMITTED,
    ALLOW,
);

// ioctl(2)

/// Numbers that belong to file systems, by the type in their second byte.
const FILE_SYSTEMS: ArgumentQuestion = ArgumentQuestion {
    argument: 1,
    name: "op",
    test: Test::Is {
        mask: 0xff00,
        any_of: &[
            value("0x66.. (ext4, fscrypt, fs-verity)", 0x6600),
            value("0x94.. (btrfs)", 0x9400),
            value("0xf5.. (f2fs)", 0xf500),
        ],
    },
};

/// What of it is ordinary: to read what they say, and to share blocks (`cp`).
/// All else changes flags, versions, keys and whole trees, for which a
/// descriptor to read from is enough.
const ORDINARY: &FilterRule = &ask(
    is(
        1,
        "op",
        &[
            value("FS_IOC_GETFLAGS", 0x8008_6601),
            value("EXT4_IOC_GETVERSION", 0x8008_6603),
            value("FS_IOC_FIEMAP", 0xc020_660b),
            value("FICLONE", 0x4004_9409),
            value("FICLONERANGE", 0x4020_940d),
            value("FIDEDUPERANGE", 0xc018_9436),
        ],
    ),
    ALLOW,
    NOT_SUPPORTED,
);

const USERFAULTFD: &FilterRule = &ask(
    is(1, "op", &[value("USERFAULTFD_IOC_NEW", 0xaa00)]),
    NOT_PERMITTED,
    ALLOW,
);

/// The same under types that others use, too.
const FILE_FLAGS: &FilterRule = &ask(
    is(
        1,
        "op",
        &[
            value("FS_IOC_FSSETXATTR", 0x401c_5820),
            value("FS_IOC_SETVERSION", 0x4008_7602),
            value("FAT_IOCTL_SET_ATTRIBUTES", 0x4004_7211),
        ],
    ),
    NOT_SUPPORTED,
    USERFAULTFD,
);
pub(super) const FILE_REQUESTS: &FilterRule = &ask(FILE_SYSTEMS, ORDINARY, FILE_FLAGS);
