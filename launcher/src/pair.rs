//! `socketpair(2)` of Unix datagrams, made on behalf as one of packets: message borders
//! are kept, and a receiver that is named at send time is ignored (unix(7)), so that
//! whoever has an end of it reaches the other end alone.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use outgate_sys::memory::Memory;
use outgate_sys::seccomp::OnExec;
use outgate_sys::socket::{AF_UNIX, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK};

use crate::notification::Notification;

/// `PF_UNIX`, which says the same as 0.
const PROTOCOL: i32 = 1;

/// Makes the pair and puts it into the caller.
///
/// # Errors
/// Those of socketpair(2): the caller's fault. A caller without room for the second end
/// keeps the first, as does one that takes its memory away meanwhile: nobody can close a
/// descriptor of another. Nobody but the caller ever has one.
pub(crate) fn give(call: &Notification) -> Result<(), Errno> {
    let flags = call.int(1) & !SOCK_DGRAM;
    if call.int(0) != AF_UNIX || call.int(1) & SOCK_DGRAM == 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    if flags & !(SOCK_CLOEXEC | SOCK_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    if !matches!(call.int(2), 0 | PROTOCOL) {
        return Err(Errno::EPROTONOSUPPORT);
    }
    let memory = Memory::of(call.held().thread).map_err(|_| Errno::EACCES)?;
    // The memory was taken in hand before, and stays the same.
    if !call.holds() {
        return Err(Errno::EINTR);
    }
    let write = |numbers: [i32; 2]| {
        let bytes: Vec<u8> = numbers.into_iter().flat_map(i32::to_ne_bytes).collect();
        let written = memory.write(call.word(3), &bytes);
        written.map_err(|_| Errno::EFAULT)
    };
    // Before there is anything to leave behind.
    write([-1, -1])?;
    let mut ours = SockFlag::SOCK_CLOEXEC;
    ours.set(SockFlag::SOCK_NONBLOCK, flags & SOCK_NONBLOCK != 0);
    let (first, second) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, ours)?;
    let on_exec = if flags & SOCK_CLOEXEC == 0 {
        OnExec::Keep
    } else {
        OnExec::Close
    };
    let first = call.add(first.as_fd(), on_exec)?;
    let second = call.add(second.as_fd(), on_exec)?;
    write([first, second])
}
