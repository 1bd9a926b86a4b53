//! How others find a run: a socket without a file, named after its user, on
//! which the launcher itself answers. It ends with the launcher however that
//! ends, so nothing stale is left and no process id is believed. Who wants the
//! policy changed is heard here and answered by whoever changes it.
//!
//! A command can neither enter it (a scope of Landlock) nor make one like it:
//! no command may listen on a socket of this type (`supervisor/listen.rs`).

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials, accept4, bind, getsockopt, listen, recv, send, sendmsg, socket, sockopt,
};
use outgate_handoff::status::TO_RUN_BYTES_MAX;
use outgate_handoff::{FromRun, Status, ToRun};

/// How the names of all these sockets begin; user, process, time and
/// [`mark`] follow.
pub(crate) const PREFIX: &str = "outgate-run-";
/// Askers heard at once; further ones wait in the socket.
const ASKERS_MAX: usize = 8;

/// Who is let in or turned away between two looks at everything else, at most: it takes some
/// hundred microseconds.
const STRANGERS_MAX: usize = 64;
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
    askers: Vec<Asker>,
    wanted: Vec<WantedChange>,
    status: Status,
}

/// Somebody who may ask.
#[derive(Debug)]
struct Asker {
    socket: OwnedFd,
    peer: UnixCredentials,
}

/// A change of the policy, or a look at it, that somebody wants.
#[derive(Debug)]
pub(crate) struct WantedChange {
    /// Who waits for the answer.
    pub(crate) asker: OwnedFd,
    /// What is wanted.
    pub(crate) word: ToRun,
    /// The account that asks, as the kernel says.
    pub(crate) uid: u32,
    /// The process that asks, as the kernel says.
    pub(crate) pid: u32,
}

/// What somebody wants of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunRequest {
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
            wanted: Vec::new(),
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
            .chain(self.askers.iter().map(|asker| asker.socket.as_fd()))
    }

    /// Hears everybody who says something.
    pub(crate) fn serve(&mut self) -> RunRequest {
        // Strangers may come without end: what else the thread serves waits for some of them only.
        for _ in 0..STRANGERS_MAX {
            if self.askers.len() >= ASKERS_MAX {
                break;
            }
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let Ok(number) = accept4(self.listener.as_raw_fd(), flags) else {
                break;
            };
            let Some(asker) = outgate_sys::descriptor::inherited(number) else {
                break;
            };
            self.askers.extend(may_ask(asker));
        }
        let mut wish = RunRequest::None;
        let status = self.status.encode();
        for asker in std::mem::take(&mut self.askers) {
            let mut bytes = [0_u8; TO_RUN_BYTES_MAX + 1];
            let received = recv(asker.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT);
            let count = match received {
                Err(Errno::EAGAIN | Errno::EINTR) => {
                    self.askers.push(asker);
                    continue;
                }
                Ok(count @ 1..) => count,
                Ok(0) | Err(_) => continue,
            };
            match (
                ToRun::decode(bytes.get(..count).unwrap_or_default()),
                &status,
            ) {
                (Ok(ToRun::Tell), Ok(status)) => {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    if send(asker.socket.as_raw_fd(), status, flags).is_ok() {
                        self.askers.push(asker);
                    }
                }
                // Kept: it learns of the end by the closing.
                (Ok(ToRun::End), _) => {
                    wish = RunRequest::End;
                    self.askers.push(asker);
                }
                (
                    Ok(
                        word @ (ToRun::Grant(_)
                        | ToRun::Revoke { .. }
                        | ToRun::Reload
                        | ToRun::Show
                        | ToRun::Watch),
                    ),
                    _,
                ) => self.wanted.push(WantedChange {
                    uid: asker.peer.uid(),
                    pid: u32::try_from(asker.peer.pid()).unwrap_or(0),
                    asker: asker.socket,
                    word,
                }),
                // Answers are for who watches to give.
                (Ok(ToRun::Answer(..)) | Err(_), _) | (Ok(ToRun::Tell), Err(_)) => {}
            }
        }
        wish
    }

    /// The changes that were asked for since.
    pub(crate) fn wanted(&mut self) -> Vec<WantedChange> {
        std::mem::take(&mut self.wanted)
    }
}

/// The kernel names who connected: the run's own user, or root.
fn may_ask(socket: OwnedFd) -> Option<Asker> {
    let own = nix::unistd::geteuid().as_raw();
    let peer = getsockopt(&socket, sockopt::PeerCredentials).ok()?;
    (peer.uid() == own || peer.uid() == 0).then_some(Asker { socket, peer })
}

/// Whether a word reached somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Done,
    /// There is no room now.
    Later,
    /// There is nobody.
    Gone,
}

/// Answers somebody, who is gone if there is no room for that.
pub(crate) fn answer(asker: &OwnedFd, word: &FromRun) {
    deliver(asker, word);
}

/// The same, and whether there was room.
pub(crate) fn deliver(asker: &OwnedFd, word: &FromRun) -> Delivery {
    answer_by(asker, word, &[])
}

/// The same with a descriptor.
pub(crate) fn answer_with(asker: &OwnedFd, word: &FromRun, file: &OwnedFd) {
    let numbers = [file.as_raw_fd()];
    let _ = answer_by(asker, word, &[ControlMessage::ScmRights(&numbers)]);
}

fn answer_by(asker: &OwnedFd, word: &FromRun, control: &[ControlMessage<'_>]) -> Delivery {
    let Ok(bytes) = word.encode() else {
        return Delivery::Gone;
    };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let slices = [IoSlice::new(&bytes)];
    match sendmsg::<()>(asker.as_raw_fd(), &slices, control, flags, None) {
        Ok(_) => Delivery::Done,
        Err(Errno::EAGAIN | Errno::EINTR) => Delivery::Later,
        Err(_) => Delivery::Gone,
    }
}
