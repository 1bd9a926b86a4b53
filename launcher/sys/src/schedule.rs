//! Our own turn on the processors (sched(7)): what ends a crowd of processes must
//! not have to wait until each of them had its turn.

use crate::raw::{call, int};

/// `struct sched_attr` of the first version: 48 bytes (sched_setattr(2)).
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of an ordinary policy: the slice, in nanoseconds. KERNEL: 6.12.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that there is. Whoever asks for less at once gets it sooner:
/// the virtual deadline is earlier than that of all who ask for the usual one.
const SLICE_NS: u64 = 100_000;
/// `SCHED_FLAG_RESET_ON_FORK`: nobody inherits any of it.
const RESET_ON_FORK: u64 = 1;
/// The bit by which sched_getscheduler(2) says the same.
const IS_RESET_ON_FORK: i32 = 0x4000_0000;
/// The first of all nice values, for who may have it.
const FIRST: i32 = -20;
/// What getpriority(2) itself returns is 20 less the nice value.
const NICE_OFFSET: i32 = 20;

/// Puts the calling thread before others as far as it may: by its nice value where
/// it has the privilege, by a short slice in any case. For who starts nobody.
///
/// Nothing that fails here is a fault. Also for code without memory of its own: raw
/// calls, no `errno`.
pub fn go_first() {
    if is_ordinary() && set(FIRST) != 0 {
        take_short_turns();
    }
}

/// Has the calling thread wait for its turn as shortly as may be, and leaves its nice
/// value. What it starts has ordinary slices.
pub fn take_short_turns() {
    if is_ordinary() {
        let nice = NICE_OFFSET.saturating_sub(number(libc::SYS_getpriority, [0; 6]));
        set(nice);
    }
}

/// Whether the calling thread is scheduled as most are; a real-time one is left as
/// it is.
fn is_ordinary() -> bool {
    let policy = number(libc::SYS_sched_getscheduler, [0; 6]) & !IS_RESET_ON_FORK;
    [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy)
}

fn set(nice: i32) -> i32 {
    let attributes = SchedAttr {
        size: u32::try_from(size_of::<SchedAttr>()).unwrap_or(0),
        policy: 0,
        flags: RESET_ON_FORK,
        nice,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    let address = (&raw const attributes).expose_provenance();
    number(libc::SYS_sched_setattr, [0, address, int(0), 0, 0, 0])
}

fn number(call_number: libc::c_long, arguments: [usize; 6]) -> i32 {
    // SAFETY: the callers above pass integers, or a pointer to a live struct of
    // the size that stands in it.
    let result = unsafe { call(call_number, arguments) };
    i32::try_from(result).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> i32 {
        NICE_OFFSET.wrapping_sub(number(libc::SYS_getpriority, [0; 6]))
    }

    #[test]
    fn short_turns_leave_the_nice_value_to_all() {
        let before = nice();
        // Once more, by then with the bit that says it resets.
        for _ in 0..2 {
            take_short_turns();
            assert_eq!(nice(), before);
            let started = std::thread::spawn(nice).join().unwrap();
            assert_eq!(started, before);
        }
    }

    #[test]
    fn who_goes_first_starts_others_that_do_not() {
        let before = nice();
        let (first, started) = std::thread::spawn(|| {
            go_first();
            (nice(), std::thread::spawn(nice).join().unwrap())
        })
        .join()
        .unwrap();
        assert!(first == FIRST || first == before, "{first}");
        assert_eq!(started, first.max(0));
        assert_eq!(nice(), before, "other threads stay as they are");
    }
}
