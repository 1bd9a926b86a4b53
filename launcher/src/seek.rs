//! A socket of the sandbox, taken out of the process that has it: from where it was
//! last, or from whoever of the tree has it now. Decides nothing about it.

use std::os::fd::{AsFd, OwnedFd};

use crate::call_socket::LastThread;
use crate::process::nearest_descendants;

/// Processes of the tree that are looked into, at most: the supervisor waits
/// meanwhile, about 10 microseconds for each.
const PROCESSES_MAX: usize = 128;
/// Descriptors that are looked at, at most, in all of them: about a microsecond
/// for each.
const DESCRIPTORS_MAX: usize = 2048;

/// Who has a socket, and under which number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// A thread that has it.
    pub thread: u32,
    /// The descriptor's number there.
    pub number: i32,
}

/// A socket that was found.
#[derive(Debug)]
pub struct FoundSocket {
    /// A copy of it.
    pub socket: OwnedFd,
    /// Where it was.
    pub at: Whereabouts,
}

impl Whereabouts {
    /// A copy of the socket there, if it is the one with this cookie.
    pub fn take(self, threads: &mut LastThread, cookie: u64) -> Option<OwnedFd> {
        let socket = threads.duplicate(self.thread, self.number).ok()?;
        let same = outgate_sys::socket::cookie(socket.as_fd()).ok()? == cookie;
        same.then_some(socket)
    }
}

/// Looks for the socket with this inode number and cookie: at `caller` first, then
/// below `root`, those nearest to it first. `None` as well where it is beyond what
/// is looked at.
pub fn seek(inode: u32, cookie: u64, (caller, root): (u32, u32)) -> Option<FoundSocket> {
    let link = format!("socket:[{inode}]");
    let mut left = DESCRIPTORS_MAX;
    let mut threads = LastThread::default();
    let others = nearest_descendants(root, PROCESSES_MAX);
    for process in std::iter::once(caller).chain(others) {
        for entry in std::fs::read_dir(format!("/proc/{process}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            left = left.checked_sub(1)?;
            let leads = std::fs::read_link(entry.path());
            if !leads.is_ok_and(|path| path.as_os_str() == link.as_str()) {
                continue;
            }
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(number) = number else { continue };
            let at = Whereabouts {
                thread: process,
                number,
            };
            if let Some(socket) = at.take(&mut threads, cookie) {
                return Some(FoundSocket { socket, at });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_socket_is_found_by_what_it_is_and_by_nothing_else() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = nix::sys::stat::fstat(&server).unwrap().st_ino;
        let inode = u32::try_from(inode).unwrap();
        let cookie = outgate_sys::socket::cookie(server.as_fd()).unwrap();
        let (own, above) = (std::process::id(), std::os::unix::process::parent_id());
        for from in [(own, above), (above, above)] {
            let found = seek(inode, cookie, from).unwrap();
            assert_eq!(found.at.number, server.as_raw_fd(), "{from:?}");
        }
        assert!(seek(inode, cookie.wrapping_add(1), (own, above)).is_none());
        assert!(seek(inode, cookie, (above, own)).is_none());
    }
}
