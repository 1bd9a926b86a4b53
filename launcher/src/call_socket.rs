//! The socket of a held call, to act on in place of the command: a duplicate of it, or, where the kernel
//! gives none (pidfd_getfd(2) refused), a fresh socket that replaces it.
//!
//! Facts about a socket are asked of the socket. Knows no policy.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, Shutdown, SockFlag, SockType, SockaddrStorage, connect, getpeername, shutdown,
    socket,
};
use outgate_sys::seccomp::OnExec;

use crate::address::Family;
use crate::notification::{AnswerReached, Notification};
use crate::sealed::Blocking;

/// What a call says that was not made, since nobody waits for it any more. No
/// caller ever sees it.
pub const NOBODY_WAITS: Errno = Errno::ESRCH;

/// A socket to act on in place of the command.
#[derive(Debug)]
pub enum CallSocket {
    /// The command's own socket.
    Shared(OwnedFd),
    /// A new socket that takes the number of the command's own when connected.
    Fresh {
        /// The new socket.
        socket: OwnedFd,
        /// The number it takes.
        number: u32,
        /// Whether that number closes on exec.
        on_exec: OnExec,
        /// Whether the command's own socket waits.
        blocking: Blocking,
    },
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSocketError {
    /// The command's fault: what the kernel would say.
    Command(Errno),
    /// Duplicates are refused to us on this machine.
    Refused,
}

/// The thread that asked last: one that connects often is not opened each time.
///
/// The descriptor stands for that thread and for no later one of its number: when
/// the thread is gone, the kernel says so, and the number is opened anew.
#[derive(Debug, Default)]
pub struct LastThread {
    last: Option<(u32, OwnedFd)>,
    /// How many copies were had.
    copies: u64,
}

impl LastThread {
    /// A copy of descriptor `number` of `thread`.
    ///
    /// # Errors
    /// Those of pidfd_open(2) and pidfd_getfd(2).
    pub fn duplicate(&mut self, thread: u32, number: i32) -> io::Result<OwnedFd> {
        let copy = self.copy(thread, number)?;
        self.copies = self.copies.saturating_add(1);
        Ok(copy)
    }

    fn copy(&mut self, thread: u32, number: i32) -> io::Result<OwnedFd> {
        if let Some((last, pidfd)) = &self.last
            && *last == thread
        {
            let copy = outgate_sys::pidfd::duplicate(pidfd.as_fd(), number);
            let gone = |error: &io::Error| error.raw_os_error() == Some(Errno::ESRCH as i32);
            if !copy.as_ref().is_err_and(gone) {
                return copy;
            }
        }
        let pidfd = outgate_sys::pidfd::open_thread(thread)?;
        let copy = outgate_sys::pidfd::duplicate(pidfd.as_fd(), number);
        self.last = Some((thread, pidfd));
        copy
    }

    /// Whether this machine gives copies: where it refuses one all the same, it is of a
    /// process that nobody may look into.
    pub fn has_worked(&self) -> bool {
        self.copies > 0
    }

    /// Parent of the process of `thread`.
    pub fn parent(&self, thread: u32) -> Option<u32> {
        let known = self.last.as_ref().filter(|(last, _)| *last == thread);
        known
            .and_then(|(_, pidfd)| outgate_sys::pidfd::parent(pidfd.as_fd()).ok())
            .or_else(|| crate::process::parent(thread))
    }
}

impl CallSocket {
    /// Duplicates descriptor `number` of the caller.
    ///
    /// # Errors
    /// [`CallSocketError::Command`] with `EBADF` when there is none;
    /// [`CallSocketError::Refused`] when the kernel gives us no duplicate.
    pub fn shared(
        threads: &mut LastThread,
        notification: &Notification,
        number: i32,
    ) -> Result<Self, CallSocketError> {
        match threads.duplicate(notification.held().thread, number) {
            Ok(socket) => Ok(Self::Shared(socket)),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EPERM | Errno::ENOSYS) => Err(CallSocketError::Refused),
                Some(errno) => Err(CallSocketError::Command(errno)),
                None => Err(CallSocketError::Command(Errno::EBADF)),
            },
        }
    }

    /// Makes a fresh stream socket that can replace descriptor `number`.
    ///
    /// # Errors
    /// `EBADF` or `ENOTSOCK` as the kernel would say; `ENOBUFS` and the like
    /// when no socket can be made.
    pub fn fresh(
        notification: &Notification,
        number: i32,
        family: Family,
    ) -> Result<Self, CallSocketError> {
        let thread = notification.held().thread;
        let number = u32::try_from(number).map_err(|_| CallSocketError::Command(Errno::EBADF))?;
        let link = std::fs::read_link(format!("/proc/{thread}/fd/{number}"))
            .map_err(|_| CallSocketError::Command(Errno::EBADF))?;
        if !link.to_string_lossy().starts_with("socket:") {
            return Err(CallSocketError::Command(Errno::ENOTSOCK));
        }
        let flags =
            descriptor_flags(thread, number).ok_or(CallSocketError::Command(Errno::EBADF))?;
        let family = match family {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        };
        let socket = socket(
            family,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )
        .map_err(CallSocketError::Command)?;
        Ok(Self::Fresh {
            socket,
            number,
            on_exec: if flags.contains(OFlag::O_CLOEXEC) {
                OnExec::Close
            } else {
                OnExec::Keep
            },
            blocking: if flags.contains(OFlag::O_NONBLOCK) {
                Blocking::No
            } else {
                Blocking::Yes
            },
        })
    }

    /// The socket itself.
    pub fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared(socket) | Self::Fresh { socket, .. } => socket.as_fd(),
        }
    }

    /// Whether the command's calls on the socket wait.
    pub fn blocking(&self) -> Blocking {
        match self {
            Self::Shared(socket) => match flags(socket.as_fd()) {
                Ok(flags) if flags.contains(OFlag::O_NONBLOCK) => Blocking::No,
                _ => Blocking::Yes,
            },
            Self::Fresh { blocking, .. } => *blocking,
        }
    }

    /// Begins a connection and never waits; also says whether the command's own
    /// call would have waited. For one that would, `connect` is called again at
    /// once: a connection inside the machine is made by then, and one that was
    /// refused is known to be.
    ///
    /// # Errors
    /// Those of `connect`, but never `EINPROGRESS`; [`NOBODY_WAITS`] where the
    /// caller is gone, and nothing was done.
    pub fn begin(
        &self,
        caller: &Notification,
        connect: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<(Begun, Blocking), Errno> {
        let begun = |result| match result {
            Ok(()) => Ok(Begun::Made),
            // Interrupted (connect(2), EINTR), it goes on by itself: the command
            // has made it wait.
            Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(Begun::Underway),
            Err(errno) => Err(errno),
        };
        if !caller.holds() {
            return Err(NOBODY_WAITS);
        }
        let socket = match self {
            Self::Shared(socket) => socket.as_fd(),
            Self::Fresh {
                socket, blocking, ..
            } => return Ok((begun(connect(socket.as_fd()))?, *blocking)),
        };
        let before = flags(socket)?;
        if before.contains(OFlag::O_NONBLOCK) {
            return Ok((begun(connect(socket))?, Blocking::No));
        }
        // RACE: as in `without_waiting`.
        set_flags(socket, before | OFlag::O_NONBLOCK)?;
        let result = match connect(socket) {
            Err(Errno::EINPROGRESS) => match connect(socket) {
                Err(Errno::EALREADY) => Err(Errno::EINPROGRESS),
                result => result,
            },
            result => result,
        };
        set_flags(socket, before)?;
        Ok((begun(result)?, Blocking::Yes))
    }

    /// Answers a call that does not wait for its connection.
    pub fn under_way(self, notification: Notification) -> AnswerReached {
        let reached = notification.conclude(Err(Errno::EINPROGRESS));
        if reached == AnswerReached::Nobody {
            give_up(self.socket());
        }
        reached
    }

    /// Answers a call whose connection has begun.
    pub fn conclude(self, notification: Notification, begun: Begun) -> AnswerReached {
        match self {
            Self::Shared(socket) => {
                if begun == Begun::Underway {
                    settle(socket.as_fd());
                }
                let reached = notification.conclude(Ok(()));
                if reached == AnswerReached::Nobody {
                    give_up(socket.as_fd());
                }
                reached
            }
            Self::Fresh {
                socket,
                number,
                on_exec,
                blocking,
            } => {
                if blocking == Blocking::Yes {
                    let _ = set_flags(socket.as_fd(), OFlag::empty());
                }
                if notification
                    .replace(number, socket.as_fd(), on_exec)
                    .is_ok()
                {
                    notification.conclude(Ok(()))
                } else {
                    notification.fail(Errno::ECONNREFUSED);
                    AnswerReached::Nobody
                }
            }
        }
    }
}

/// A connection made without waiting counts as under way until connect(2) is
/// called once more: done here, so that the command's next call is told
/// `EISCONN` as after any blocking connect. Asked with the address it has.
fn settle(socket: BorrowedFd<'_>) {
    if let Ok(peer) = getpeername::<SockaddrStorage>(socket.as_raw_fd()) {
        let _ = without_waiting(socket, || connect(socket.as_raw_fd(), &peer));
    }
}

/// Ends what was made on a socket for a caller that is gone: nobody else who has
/// the socket is to find it connected, or listening.
pub fn give_up(socket: BorrowedFd<'_>) {
    // What is neither connected nor listens has nothing to end.
    let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
}

/// How far a connection is that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// It is made, and the socket knows.
    Made,
    /// It is on its way, or made and connect(2) has to be called once more.
    Underway,
}

/// Runs `call` on a socket of a caller that still waits, without waiting itself.
///
/// # Errors
/// Those of `call`, and [`NOBODY_WAITS`].
pub fn perform<T>(
    caller: &Notification,
    socket: BorrowedFd<'_>,
    call: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if caller.holds() {
        without_waiting(socket, call)
    } else {
        Err(NOBODY_WAITS)
    }
}

/// Runs `call` with `O_NONBLOCK` set on the socket and restores the flag.
///
/// # Errors
/// Those of `call`, and `EBADF` when the flag cannot be set.
///
/// RACE: the flag belongs to the open socket, so another thread of the command
/// sees it for the length of one call, which may then answer `EAGAIN` to it; and
/// another thread may take the flag away at once, so that ours waits after all,
/// until the supervisor's alarm rings.
pub fn without_waiting<T>(
    socket: BorrowedFd<'_>,
    call: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let before = flags(socket)?;
    if before.contains(OFlag::O_NONBLOCK) {
        return call();
    }
    set_flags(socket, before | OFlag::O_NONBLOCK)?;
    let result = call();
    set_flags(socket, before)?;
    result
}

fn flags(socket: BorrowedFd<'_>) -> Result<OFlag, Errno> {
    fcntl(socket, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate)
}

fn set_flags(socket: BorrowedFd<'_>, flags: OFlag) -> Result<(), Errno> {
    fcntl(socket, FcntlArg::F_SETFL(flags)).map(drop)
}

/// Flags of a descriptor in another process (proc_pid_fdinfo(5)).
fn descriptor_flags(thread: u32, number: u32) -> Option<OFlag> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/fdinfo/{number}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let bits = i32::from_str_radix(line.trim(), 8).ok()?;
    Some(OFlag::from_bits_retain(bits))
}
