//! A run whose questions somebody watches, to answer them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv, send};
use outgate_handoff::{FRAME_BYTES_MAX, FromRun, OpenQuestion, PersonAnswer, ToRun};

/// A run whose questions are watched.
#[derive(Debug)]
pub struct Watched {
    pub(super) socket: OwnedFd,
    /// Process id of its launcher.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// Ends every process of this one's group, itself too, where the group is its own.
pub fn end_own_group() {
    let (own, group) = (nix::unistd::getpid(), nix::unistd::getpgrp());
    if own == group {
        let _ = nix::sys::signal::killpg(group, Signal::SIGKILL);
    }
}

/// What a watched run says.
#[derive(Debug)]
pub enum WatchedWord {
    /// From now on it asks here.
    Begun,
    /// A question, with its id.
    Question(u64, OpenQuestion),
    /// The question of this id is no more, and how that came.
    Gone(u64, String),
    /// An answer was not taken, or nobody may watch, and why.
    Refused(String),
    /// Nothing now.
    Nothing,
    /// The run is over, or nobody may watch.
    Over,
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Watched {
    /// The run that started this process and handed it this descriptor. From here on nobody
    /// of the same account looks into this process.
    ///
    /// # Errors
    /// No such descriptor was handed down.
    pub fn inherited(number: i32, name: String) -> Result<Self, String> {
        drop(outgate_sys::process::hide());
        let socket = outgate_sys::descriptor::inherited(number);
        let socket = socket.ok_or_else(|| format!("no descriptor {number} was handed down"))?;
        let flags = FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC);
        fcntl(&socket, flags).map_err(|errno| errno.to_string())?;
        Ok(Self {
            socket,
            pid: 0,
            name,
        })
    }

    pub(super) fn say(&self, word: &ToRun) -> Result<(), String> {
        let frame = word.encode().map_err(|error| error.to_string())?;
        let sent = send(self.socket.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL);
        sent.map(drop)
            .map_err(|error| format!("the run cannot be told: {error}"))
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The run is gone, or the rule is too long.
    pub fn answer(&self, id: u64, word: PersonAnswer) -> Result<(), String> {
        self.say(&ToRun::Answer(id, word))
    }

    /// The next word, if one is there.
    pub fn receive(&self) -> WatchedWord {
        let mut bytes = vec![0; FRAME_BYTES_MAX];
        let count = match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Err(Errno::EAGAIN | Errno::EINTR) => return WatchedWord::Nothing,
            Ok(count @ 1..) => count,
            Ok(0) | Err(_) => return WatchedWord::Over,
        };
        bytes.truncate(count);
        match FromRun::decode(&bytes) {
            Ok(FromRun::Done { .. }) => WatchedWord::Begun,
            Ok(FromRun::Question(id, question)) => WatchedWord::Question(id, question),
            Ok(FromRun::Gone(id, how)) => WatchedWord::Gone(id, how),
            Ok(FromRun::Refused { message }) => WatchedWord::Refused(message),
            Ok(_) | Err(_) => WatchedWord::Over,
        }
    }
}
