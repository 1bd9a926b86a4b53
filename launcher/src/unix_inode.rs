//! Unix sockets that are bound to a path, by their inode (unix(7)): what a path
//! leads to, whether anybody listens there, asked without reaching them, and
//! whether a listener of ours is the one that answers. Knows no policy.
//!
//! One inode belongs to one socket for good: bind(2) makes a new one or fails.
//! A descriptor of it therefore leads to that socket or to nobody, and as long
//! as it is open, its number is nobody else's.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, socketpair, sockopt,
};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

/// How often a path with `..` is resolved that cannot be while files are renamed, in
/// count: beside one process that renames without end a twentieth of the tries fail.
const RESOLVE_TRIES: u32 = 64;

/// The inode a path leads to.
#[derive(Debug)]
pub struct Resolved {
    /// It, open as a place only (`O_PATH`).
    pub target: OwnedFd,
    /// Its path, as we would write it.
    pub path: Vec<u8>,
    stat: FileStat,
}

/// The numbers of an inode, whole. Equal ones are not proof of the same inode
/// (tmpfs(5), `inode32`), so nothing is reached by them: they find what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl Resolved {
    /// Whether it is a socket's.
    pub fn is_socket(&self) -> bool {
        SFlag::S_IFMT.bits() & self.stat.st_mode == SFlag::S_IFSOCK.bits()
    }

    /// Its numbers.
    pub fn inode(&self) -> Inode {
        Inode {
            device: self.stat.st_dev,
            number: self.stat.st_ino,
        }
    }
}

/// Resolves a path as `thread` would, to an inode.
///
/// # Errors
/// Those of openat2(2); `ECONNREFUSED` when files are renamed faster than that.
pub fn resolve(thread: u32, path: &[u8]) -> Result<Resolved, Errno> {
    let (base, resolve) = if path.first() == Some(&b'/') {
        let flags = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        ("root", flags)
    } else {
        ("cwd", ResolveFlag::RESOLVE_NO_MAGICLINKS)
    };
    let base = format!("/proc/{thread}/{base}");
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let base = open(base.as_str(), flags | OFlag::O_DIRECTORY, Mode::empty())?;
    let how = OpenHow::new().flags(flags).resolve(resolve);
    // EAGAIN (openat2(2)): something on the machine was renamed meanwhile. EINTR:
    // a file system that asks another process was interrupted by the alarm.
    let target = (0..RESOLVE_TRIES)
        .map(|_| openat2(base.as_fd(), OsStr::from_bytes(path), how))
        .find(|target| !matches!(target, Err(Errno::EAGAIN | Errno::EINTR)))
        .unwrap_or(Err(Errno::ECONNREFUSED))?;
    let stat = fstat(&target)?;
    let link = format!("/proc/self/fd/{}", target.as_raw_fd());
    let path = nix::fcntl::readlinkat(AT_FDCWD, link.as_str())?.into_vec();
    Ok(Resolved { target, path, stat })
}

/// Connects a socket to an inode, whatever its names are by now.
///
/// # Errors
/// Those of connect(2).
pub fn connect_to(socket: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", target.as_raw_fd());
    connect_unix(socket, &UnixAddr::new(path.as_str())?)
}

/// Connects a socket to a name.
///
/// # Errors
/// Those of connect(2); `EAGAIN` also where the command has made a full queue
/// wait, which the supervisor's alarm ended.
pub fn connect_unix(socket: BorrowedFd<'_>, address: &UnixAddr) -> Result<(), Errno> {
    match connect(socket.as_raw_fd(), address) {
        Err(Errno::EINTR) => Err(Errno::EAGAIN),
        result => result,
    }
}

/// Who is at an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// A socket of that type listens.
    Listening,
    /// None does, and none of that type will be reached.
    Nobody,
    /// It cannot be said.
    Unknown,
}

/// Whether a socket of type `kind` listens at an inode, in any network
/// namespace. Nobody there learns of it: the socket that asks is connected
/// already, which the kernel finds wrong only after it found a listener.
pub fn occupant(target: BorrowedFd<'_>, kind: SockType) -> Occupant {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let Ok((asker, _peer)) = socketpair(AddressFamily::Unix, kind, None, flags) else {
        return Occupant::Unknown;
    };
    match connect_to(asker.as_fd(), target) {
        Err(Errno::EISCONN | Errno::EAGAIN) => Occupant::Listening,
        Err(Errno::ECONNREFUSED | Errno::EPROTOTYPE) => Occupant::Nobody,
        _ => Occupant::Unknown,
    }
}

/// Whether a connection to an inode, made now, is answered by a socket that this
/// process made listen: the kernel names who called listen(2) (`SO_PEERCRED`).
/// The connection is the proof's own and carries nothing; it is to be taken out
/// of the listener's queue again ([`take_back`]).
pub fn prove(target: BorrowedFd<'_>) -> Option<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect_to(ours.as_fd(), target).ok()?;
    is_from_here(ours.as_fd()).then_some(ours)
}

/// Takes the connection of a proof out of the listener's queue, so that who
/// accepts there never sees it.
///
/// RACE: whoever shares the listener may have accepted it: then they see a
/// connection that ends at once, as from any client that gives up.
pub fn take_back(listener: BorrowedFd<'_>, ours: OwnedFd) {
    let mut polled = [PollFd::new(listener, PollFlags::POLLIN)];
    if poll(&mut polled, PollTimeout::ZERO) == Ok(1) {
        drop(outgate_sys::socket::accept(listener));
    }
    drop(ours);
}

/// Whether the other end of a connection is a socket that this process made
/// listen, or a connection that it made.
pub fn is_from_here(socket: BorrowedFd<'_>) -> bool {
    let ourselves = i32::try_from(std::process::id()).ok();
    let peer = getsockopt(&socket, sockopt::PeerCredentials).map(|peer| peer.pid());
    peer.is_ok() && peer.ok() == ourselves
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};
    use std::path::{Path, PathBuf};

    fn place(name: &str) -> PathBuf {
        let name = format!("outgate-inode-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::remove_file(&path).ok();
        path
    }

    fn at(path: &Path) -> Resolved {
        resolve(std::process::id(), path.as_os_str().as_bytes()).unwrap()
    }

    #[test]
    fn who_listens_is_found_without_reaching_them() {
        let path = place("listens");
        let unbound = socket(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        let listener = unbound.unwrap();
        nix::sys::socket::bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        let target = at(&path).target;
        let occupant = |kind| occupant(target.as_fd(), kind);
        assert_eq!(occupant(SockType::Stream), Occupant::Nobody);
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        assert_eq!(occupant(SockType::Stream), Occupant::Listening);
        assert_eq!(occupant(SockType::SeqPacket), Occupant::Nobody);
        let listener = UnixListener::from(listener);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody came");
        drop(listener);
        assert_eq!(occupant(SockType::Stream), Occupant::Nobody);
        std::fs::remove_file(&path).unwrap();
        let datagrams = UnixDatagram::bind(&path).unwrap();
        let target = at(&path).target;
        assert_eq!(
            super::occupant(target.as_fd(), SockType::Stream),
            Occupant::Nobody
        );
        drop(datagrams);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_proof_leaves_nothing_behind() {
        let path = place("proof");
        let listener = UnixListener::bind(&path).unwrap();
        let ours = prove(at(&path).target.as_fd()).unwrap();
        take_back(listener.as_fd(), ours);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the proof is still there");
        drop(listener);
        assert!(prove(at(&path).target.as_fd()).is_none());
        std::fs::remove_file(&path).unwrap();
    }
}
