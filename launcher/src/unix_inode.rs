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
use nix::sys::stat::{Mode, SFlag};
use outgate_sys::attributes::inode;

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
    stat: outgate_sys::attributes::StatInode,
}

/// The numbers of an inode, whole. Equal ones are not proof of the same inode
/// (tmpfs(5), `inode32`), so nothing is reached by them: they find what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl Resolved {
    /// What an open place is.
    ///
    /// # Errors
    /// Those of statx(2) and readlink(2).
    pub fn of(target: OwnedFd) -> Result<Self, Errno> {
        let stat = inode(target.as_fd()).map_err(|error| errno_of(&error))?;
        let link = format!("/proc/self/fd/{}", target.as_raw_fd());
        let path = nix::fcntl::readlinkat(AT_FDCWD, link.as_str())?.into_vec();
        Ok(Self { target, path, stat })
    }

    /// Whether it is a socket's.
    pub fn is_socket(&self) -> bool {
        SFlag::S_IFMT.bits() & self.stat.mode == SFlag::S_IFSOCK.bits()
    }

    /// Its numbers.
    pub fn inode(&self) -> Inode {
        Inode {
            device: self.stat.device,
            number: self.stat.number,
        }
    }
}

impl Inode {
    /// Number of the device it is on.
    pub fn device(self) -> u64 {
        self.device
    }
}

/// `RESOLVE_CACHED` (openat2(2)). KERNEL: 5.12.
const RESOLVE_CACHED: ResolveFlag = ResolveFlag::from_bits_retain(0x20);

/// Resolves a path as `thread` would, to an inode. A file system may have that wait.
///
/// # Errors
/// Those of openat2(2); `ECONNREFUSED` when files are renamed faster than that.
pub fn resolve(thread: u32, path: &[u8]) -> Result<Resolved, Errno> {
    let (base, resolve) = if is_absolute(path) {
        let flags = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        ("root", flags)
    } else {
        ("cwd", ResolveFlag::RESOLVE_NO_MAGICLINKS)
    };
    let base = base_of(thread, base)?;
    let how = OpenHow::new().flags(PLACE).resolve(resolve);
    // EAGAIN (openat2(2)): something on the machine was renamed meanwhile.
    let target = (0..RESOLVE_TRIES)
        .map(|_| openat2(base.as_fd(), OsStr::from_bytes(path), how))
        .find(|target| !matches!(target, Err(Errno::EAGAIN | Errno::EINTR)))
        .unwrap_or(Err(Errno::ECONNREFUSED))?;
    Resolved::of(target)
}

/// The same for an absolute path, as far as the kernel knows it by heart: never
/// waits. `None` where it does not, and somebody else has to ask the file system.
///
/// A relative path is always somebody else's: to open the directory it begins at, a
/// network file system may be asked.
pub fn resolve_cached(thread: u32, path: &[u8]) -> Option<Result<Resolved, Errno>> {
    if !is_absolute(path) {
        return None;
    }
    let base = match base_of(thread, "root") {
        Ok(base) => base,
        Err(errno) => return Some(Err(errno)),
    };
    let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new()
        .flags(PLACE)
        .resolve(resolve | RESOLVE_CACHED);
    match openat2(base.as_fd(), OsStr::from_bytes(path), how) {
        Err(Errno::EAGAIN | Errno::EINTR) => None,
        Err(errno) => Some(Err(errno)),
        Ok(target) => Some(Resolved::of(target)),
    }
}

/// How places are opened: to be named, and for nothing else.
const PLACE: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);

fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

fn base_of(thread: u32, name: &str) -> Result<OwnedFd, Errno> {
    let base = format!("/proc/{thread}/{name}");
    open(base.as_str(), PLACE | OFlag::O_DIRECTORY, Mode::empty())
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw)
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
    let ours = unconnected()?;
    connect_to(ours.as_fd(), target).ok()?;
    is_from_here(ours.as_fd()).then_some(ours)
}

/// A socket for the connection of a proof.
pub fn unconnected() -> Option<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()
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
