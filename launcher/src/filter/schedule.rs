//! The rules about priorities, processors, scheduling classes and limits: everybody's own
//! are free, those of others are the supervisor's to judge.

use super::arguments::{HOLD, NOT_PERMITTED, ask, is};
use super::rule::{ALLOW, FilterRule, KernelConstant, value};

const SELF: &[KernelConstant] = &[value("0", 0)];

/// Of a thread, by its number in the first argument.
pub(super) const THREAD: &FilterRule = &ask(is(0, "pid", SELF), ALLOW, HOLD);

/// Of a process, which its own group is free to be named by 0.
pub(super) const PROCESS_GROUP: &FilterRule = &ask(is(1, "pgid", SELF), ALLOW, HOLD);

const PROCESS: &FilterRule = &ask(is(1, "who", SELF), ALLOW, HOLD);
/// The caller's own group is not named: by the time that the kernel looks, it could
/// be the launcher's.
const GROUP: &FilterRule = &ask(is(1, "who", SELF), NOT_PERMITTED, HOLD);

/// Of a process or of a group. Those of a user are everybody's.
const fn of(process: &'static [KernelConstant], group: &'static FilterRule) -> FilterRule {
    ask(is(0, "which", process), PROCESS, group)
}

const PRIORITY_OF_GROUP: &FilterRule = &ask(
    is(0, "which", &[value("PRIO_PGRP", 1)]),
    GROUP,
    NOT_PERMITTED,
);
pub(super) const PRIORITY: &FilterRule = &of(&[value("PRIO_PROCESS", 0)], PRIORITY_OF_GROUP);

const IO_PRIORITY_OF_GROUP: &FilterRule = &ask(
    is(0, "which", &[value("IOPRIO_WHO_PGRP", 2)]),
    GROUP,
    NOT_PERMITTED,
);
pub(super) const IO_PRIORITY: &FilterRule =
    &of(&[value("IOPRIO_WHO_PROCESS", 1)], IO_PRIORITY_OF_GROUP);
