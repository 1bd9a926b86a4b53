//! The socket of a shared gateway, from outside: connected to only if whoever
//! listens there is somebody the caller may trust with its policy. Says nothing
//! over it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

/// How long a full queue is waited for, in seconds.
const ROOM_SECONDS_MAX: i64 = 5;

/// A socket, and whose gateway may listen there.
#[derive(Debug, Clone)]
pub struct Door {
    path: PathBuf,
    owner: Option<u32>,
}

impl Door {
    /// A gateway of root or of the caller, or of `owner` and nobody else.
    pub fn new(path: PathBuf, owner: Option<u32>) -> Self {
        Self { path, owner }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects as soon as there is room: others may have filled the queue of those
    /// who wait to be let in, and nobody stays there for long.
    ///
    /// # Errors
    /// As [`Door::enter`]; there was no room for five seconds.
    pub fn enter_soon(&self) -> io::Result<OwnedFd> {
        let socket = seqpacket(SockFlag::SOCK_CLOEXEC)?;
        // As long as that also connect(2) waits (unix(7), socket(7)).
        setsockopt(
            &socket,
            sockopt::SendTimeout,
            &TimeVal::new(ROOM_SECONDS_MAX, 0),
        )?;
        let socket = self.connect(socket)?;
        fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(socket)
    }

    /// Connects, without waiting.
    ///
    /// # Errors
    /// Nobody listens, or somebody who may not: the kernel names the account
    /// that called listen(2), whoever owns the file (`SO_PEERCRED`, unix(7)).
    pub fn enter(&self) -> io::Result<OwnedFd> {
        self.connect(seqpacket(SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK)?)
    }

    fn connect(&self, socket: OwnedFd) -> io::Result<OwnedFd> {
        connect(socket.as_raw_fd(), &UnixAddr::new(&self.path)?)?;
        let listener = getsockopt(&socket, sockopt::PeerCredentials)?.uid();
        let own = nix::unistd::geteuid().as_raw();
        let trusted = match self.owner {
            Some(owner) => listener == owner,
            None => listener == own || listener == 0,
        };
        if trusted {
            return Ok(socket);
        }
        let what = match self.owner {
            Some(owner) => format!("user {listener} listens there, not {owner}"),
            None => format!(
                "user {listener} listens there, neither root nor you; if that is right: \
                 --gateway-user {listener}"
            ),
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    }
}

fn seqpacket(flags: SockFlag) -> nix::Result<OwnedFd> {
    socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
}
