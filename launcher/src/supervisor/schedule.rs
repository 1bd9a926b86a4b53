//! Turns on processors and disks, limits and process groups: the command sets them for its own
//! threads and for nobody else's, although the kernel would, for every process of the user.
//!
//! The kernel makes the call itself: its numbers lie in registers, and what it reads
//! of memory says how, not whom.

use nix::errno::Errno;
use nix::unistd::{Pid, getpgid};

use super::Supervisor;
use crate::limits::MEMBERS_MAX;
use crate::notification::Notification;
use crate::process::{is_below, nearest_descendants, parent};

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
        if name == "setpgid" {
            return self.on_joining(call, number);
        }
        if number == call.held().thread || is_below(number, self.root) {
            call.pass();
        } else if parent(number).is_none() {
            call.fail(Errno::ESRCH);
        } else {
            call.fail(Errno::EPERM);
        }
    }

    /// Has the kernel put a process into a group of the run, or into the launcher's own: a shell
    /// that ends goes back to where it began.
    fn on_joining(&self, call: Notification, group: u32) {
        let is_group = |process: &u32| group_of(*process) == Some(group);
        let is_known = u32::try_from(call.int(0)) == Ok(group)
            || group_of(std::process::id()) == Some(group)
            || is_below(group, self.root)
            || nearest_descendants(self.root, MEMBERS_MAX)
                .iter()
                .any(is_group);
        if is_known {
            call.pass();
        } else {
            call.fail(Errno::EPERM);
        }
    }
}

/// The process group of a process, while it is there.
fn group_of(process: u32) -> Option<u32> {
    let process = Pid::from_raw(i32::try_from(process).ok()?);
    u32::try_from(getpgid(Some(process)).ok()?.as_raw()).ok()
}

/// Which argument says whom a call is about.
fn whom(name: &str) -> usize {
    match name {
        "setpriority" | "ioprio_set" | "setpgid" => 1,
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
            assert_eq!(names.len(), 7, "{names:?}");
            let second = names.iter().filter(|name| whom(name) == 1).count();
            assert_eq!(second, 3, "{names:?}");
        }
    }
}
