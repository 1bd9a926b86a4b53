//! How others find a run: a socket without a file, named after its user, on
//! which the launcher itself answers. It ends with the launcher however that
//! ends, so nothing stale is left and no process id is believed.
//!
//! A command can neither enter it (a scope of Landlock) nor make one like it:
//! no command may listen on a socket of this type (`supervisor/listen.rs`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt,
    listen, recv, send, socket, sockopt,
};
use outgate_handoff::{HEADER_BYTES, Status, ToRun};

/// How the names of all these sockets begin; user, process, time and
/// [`mark`] follow.
pub(crate) const PREFIX: &str = "outgate-run-";
/// Askers heard at once; further ones wait in the socket.
const ASKERS_MAX: usize = 8;
/// Askers that may wait, as many as the kernel has room for: who asks a stopped launcher and
/// goes away takes a place until that goes on, and whoever finds none cannot end the run.
const BACKLOG: Backlog = Backlog::MAXCONN;

/// What stands for the name of a run in that of its socket, so that a run whose launcher
/// cannot answer is found by its name: FNV-1a of 64 bits, in hexadecimal.
pub(crate) fn mark(name: &str) -> String {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The socket of a run.
#[derive(Debug)]
pub struct Presence {
    listener: OwnedFd,
    askers: Vec<OwnedFd>,
    status: Status,
}

/// What somebody wants of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing that concerns it.
    None,
    /// Its end.
    End,
}

impl Presence {
    /// Makes it known. `status` is what is said about the run.
    ///
    /// # Errors
    /// There is no such socket to be had: the run is not listed then.
    pub fn announce(mut status: Status) -> io::Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let user = nix::unistd::geteuid();
        let pid = std::process::id();
        let mark = mark(&status.name);
        let name = format!("{PREFIX}{user}-{pid}-{:x}-{mark}", now.as_nanos());
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        bind(
            listener.as_raw_fd(),
            &UnixAddr::new_abstract(name.as_bytes())?,
        )?;
        listen(&listener, BACKLOG)?;
        status.pid = pid;
        status.started = now.as_secs();
        Ok(Self {
            listener,
            askers: Vec::new(),
            status,
        })
    }

    /// What is said about the run, to be kept current.
    pub(crate) fn status(&mut self) -> &mut Status {
        &mut self.status
    }

    /// What to poll for reading.
    pub(crate) fn each(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = (self.askers.len() < ASKERS_MAX).then(|| self.listener.as_fd());
        listener
            .into_iter()
            .chain(self.askers.iter().map(AsFd::as_fd))
    }

    /// Hears everybody who says something.
    pub(crate) fn serve(&mut self) -> Wish {
        while self.askers.len() < ASKERS_MAX {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let Ok(number) = accept4(self.listener.as_raw_fd(), flags) else {
                break;
            };
            let Some(asker) = outgate_sys::descriptor::inherited(number) else {
                break;
            };
            if may_ask(&asker) {
                self.askers.push(asker);
            }
        }
        let mut wish = Wish::None;
        let status = self.status.encode();
        self.askers.retain(|asker| {
            let mut bytes = [0_u8; HEADER_BYTES + 1];
            match recv(asker.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN | Errno::EINTR) => true,
                Ok(count @ 1..) => {
                    let frame = bytes.get(..count).unwrap_or_default();
                    match (ToRun::decode(frame), &status) {
                        (Ok(ToRun::Tell), Ok(status)) => {
                            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                            send(asker.as_raw_fd(), status, flags).is_ok()
                        }
                        // Kept: it learns of the end by the closing.
                        (Ok(ToRun::End), _) => {
                            wish = Wish::End;
                            true
                        }
                        (Ok(ToRun::Tell), Err(_)) | (Err(_), _) => false,
                    }
                }
                Ok(0) | Err(_) => false,
            }
        });
        wish
    }
}

/// The kernel names who connected: the run's own user, or root.
fn may_ask(asker: &OwnedFd) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    getsockopt(asker, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}
