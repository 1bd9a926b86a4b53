//! Starts the gateway's program beside the command, with one end of a socket pair.
//! Says nothing on it, and hears one frame at a time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socketpair};
use outgate_handoff::{FRAME_BYTES_MAX, ToLauncher};

/// Starts a gateway for this run alone.
pub(crate) fn start_private(
    program: &Path,
    variables: &[(String, String)],
) -> io::Result<(OwnedFd, Option<Child>)> {
    let (socket, child) = start_program(program, &["serve"], &[], variables)?;
    Ok((socket, Some(child)))
}

/// Starts the gateway with one end of a socket pair and what else it inherits,
/// in a process group of its own, so that a terminal's Ctrl-C reaches the
/// command and not it.
pub(crate) fn start_program(
    program: &Path,
    words: &[&str],
    inherited: &[(&str, BorrowedFd<'_>)],
    variables: &[(String, String)],
) -> io::Result<(OwnedFd, Child)> {
    let (ours, theirs) = pair()?;
    let mut command = Command::new(program);
    command.args(words);
    let handoff = [("--handoff-fd", theirs.as_fd())];
    for (option, descriptor) in handoff.iter().chain(inherited) {
        fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
        command.arg(option);
        command.arg(descriptor.as_raw_fd().to_string());
    }
    let child = command
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok((ours, child))
}

/// Two ends of a connection that keeps the bounds of messages; no other program gets them.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC);
    Ok(socketpair(AddressFamily::Unix, kind, None, flags)?)
}

/// The next frame on such a connection within this time; `None` when none comes.
pub(crate) fn receive(socket: &OwnedFd, wait: PollTimeout) -> Option<ToLauncher> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    if poll(&mut polled, wait) != Ok(1) {
        return None;
    }
    let mut bytes = vec![0; FRAME_BYTES_MAX];
    let mut received = recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT);
    if received == Err(Errno::ECONNRESET) {
        // Closed with something unread: what it said before comes after.
        received = recv(socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT);
    }
    let count = received.ok()?;
    bytes.truncate(count);
    ToLauncher::decode(&bytes).ok()
}
