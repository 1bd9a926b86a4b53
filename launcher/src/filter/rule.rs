//! What a row of the table says: an action, or questions about the arguments
//! that lead to one. `evaluate` is the plain statement of the whole filter; the
//! compiled program has to agree with it. Pure.

use super::errno::{ENOSYS, Errno};
use super::interpreter::Data;
use super::{Arch, FilterOptions, table};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    /// The kernel performs it.
    Allow,
    /// It is not performed and returns 0.
    Pretend,
    /// It is not performed and fails.
    Refuse(Errno),
    /// The thread waits for the supervisor's answer.
    Hold,
    /// The whole process dies with `SIGSYS`.
    Kill,
}

impl FilterAction {
    /// The filter's return value (`SECCOMP_RET_*`, seccomp(2)).
    pub const fn returned(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Pretend => 0x0005_0000,
            Self::Refuse(errno) => 0x0005_0000 | errno.number,
            Self::Hold => 0x7fc0_0000,
            Self::Kill => 0x8000_0000,
        }
    }
}

/// A constant of the kernel's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelConstant {
    pub(super) name: &'static str,
    pub(super) bits: u32,
}

/// Shorthand for the tables.
pub(super) const fn value(name: &'static str, bits: u32) -> KernelConstant {
    KernelConstant { name, bits }
}

/// A yes-or-no question about the low 32 bits of one argument.
///
/// Every call asked about takes an `int`, or an `unsigned long` of which the
/// kernel uses the low half. A caller may leave anything in the upper half, so
/// looking at it would refuse honest calls and be evaded by hostile ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArgumentQuestion {
    /// Which argument, 0 to 5.
    pub(super) argument: u32,
    /// Its name in the manual page.
    pub(super) name: &'static str,
    pub(super) test: Test,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// The bits under `mask` are one of these.
    Is {
        mask: u32,
        any_of: &'static [KernelConstant],
    },
    /// At least one of these bits is set.
    Has(&'static [KernelConstant]),
}

/// What a row decides.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilterRule {
    Do(FilterAction),
    Ask {
        question: ArgumentQuestion,
        yes: &'static FilterRule,
        no: &'static FilterRule,
    },
}

pub(super) const ALLOW: &FilterRule = &FilterRule::Do(FilterAction::Allow);

/// All bits of some flags.
pub(super) const fn union(flags: &[KernelConstant]) -> u32 {
    match flags {
        [] => 0,
        [flag, others @ ..] => flag.bits | union(others),
    }
}

impl ArgumentQuestion {
    fn answer(&self, data: &Data) -> bool {
        let bits = data.argument(self.argument);
        match &self.test {
            Test::Is { mask, any_of } => any_of.iter().any(|value| bits & mask == value.bits),
            Test::Has(flags) => bits & union(flags) != 0,
        }
    }
}

impl FilterRule {
    pub(super) fn decide(&self, data: &Data) -> FilterAction {
        match self {
            Self::Do(action) => *action,
            Self::Ask { question, yes, no } => {
                if question.answer(data) {
                    yes.decide(data)
                } else {
                    no.decide(data)
                }
            }
        }
    }
}

/// What the filter for `arch` does to a call, worked out row by row.
pub fn evaluate(arch: Arch, options: &FilterOptions, data: &Data) -> FilterAction {
    if data.arch != arch.audit() {
        return FilterAction::Kill;
    }
    if arch == Arch::X86_64 && table::X32.contains(&data.nr) {
        return FilterAction::Kill;
    }
    if data.nr > table::NEWEST {
        return FilterAction::Refuse(ENOSYS);
    }
    let mut unassigned = table::unassigned(arch).iter();
    if unassigned.any(|range| range.contains(&data.nr)) {
        return FilterAction::Refuse(ENOSYS);
    }
    table::rows(*options)
        .find(|row| row.numbers.on(arch) == Some(data.nr))
        .map_or(FilterAction::Allow, |row| row.rule.decide(data))
}
