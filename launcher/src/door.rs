//! The socket of a shared gateway, from outside: connected to without waiting,
//! and only if whoever listens there is somebody the caller may trust with its
//! policy. Says nothing over it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt,
};

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

    /// Connects.
    ///
    /// # Errors
    /// Nobody listens, or somebody who may not: the kernel names the account
    /// that called listen(2), whoever owns the file (`SO_PEERCRED`, unix(7)).
    pub fn enter(&self) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
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
