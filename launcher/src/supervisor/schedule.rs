//! Turns on processors and disks, and limits: the command sets them for its own threads and
//! for nobody else's, although the kernel would, for every process of the same user.
//!
//! The kernel makes the call itself: its numbers lie in registers, and what it reads
//! of memory says how, not whom.

use nix::errno::Errno;

use super::Supervisor;
use crate::notification::Notification;
use crate::process::{is_below, parent};

impl Supervisor<'_> {
    /// Has the kernel make a call about a thread, a process or a group of the run.
    ///
    /// A group is the run's when the process of its number is: that process made it,
    /// and nobody is put into a group but by itself or its parent. RACE: a number
    /// that is judged may be given to a stranger before the kernel looks, once every
    /// other number was given in between.
    pub(super) fn on_scheduling(&self, call: Notification, name: &str) {
        let number = call.int(whom(name));
        let Ok(number @ 1..) = u32::try_from(number) else {
            return call.fail(Errno::ESRCH);
        };
        if number == call.held().thread || is_below(number, self.root) {
            call.pass();
        } else if parent(number).is_none() {
            call.fail(Errno::ESRCH);
        } else {
            call.fail(Errno::EPERM);
        }
    }
}

/// Which argument says whom a call is about.
fn whom(name: &str) -> usize {
    match name {
        "setpriority" | "ioprio_set" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Arch, scheduling};

    #[test]
    fn every_held_call_has_a_place_for_whom_it_is_about() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let names: Vec<_> = (0..1024).filter_map(|nr| scheduling(arch, nr)).collect();
            assert_eq!(names.len(), 6, "{names:?}");
            let second = names.iter().filter(|name| whom(name) == 1).count();
            assert_eq!(second, 2, "{names:?}");
        }
    }
}
