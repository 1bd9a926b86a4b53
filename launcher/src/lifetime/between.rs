//! What the thread that serves the end of a run and the supervisor tell each other.
//! Neither ever waits for the other: what one says lies there until the other looks.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};

use crate::presence::WantedChange;

/// Processes that serve the supervisor: the gateway, the holder of the sealed namespace, the
/// one that looks paths up, and the one that answers in a person's place.
const HELPERS: usize = 4;
/// Changes of the policy that wait for those before them.
const CHANGES_MAX: usize = 16;
/// The word for a bundle of certificates that somebody waits for.
const CERTIFICATES: u8 = 0;
/// The word for a change of the policy that somebody wants.
const CHANGE: u8 = 1;
/// The word for a command that has ended and left something that goes on.
const LEFT: u8 = 2;

/// What is said by being there to read.
#[derive(Debug, Default)]
struct Board {
    /// How the run ended, once that was said.
    status: AtomicU8,
    held: AtomicU64,
    /// How many rules are granted.
    granted: AtomicU64,
    helpers: [AtomicU32; HELPERS],
    /// Whether the command left something that goes on; taken by who says it.
    left: AtomicBool,
    record: Mutex<String>,
}

/// The end of the thread that serves the end of a run.
#[derive(Debug)]
pub(crate) struct LifetimeEnd {
    /// Hangs up when the supervisor is gone. None once that is known.
    socket: Option<UnixStream>,
    changes: SyncSender<WantedChange>,
    board: Arc<Board>,
}

/// The end of the supervisor.
#[derive(Debug)]
pub(crate) struct SupervisorEnd {
    socket: UnixStream,
    changes: Receiver<WantedChange>,
    board: Arc<Board>,
}

/// What the supervisor is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupervisorMessage {
    /// Nothing new.
    Nothing,
    /// Somebody opened a bundle of certificates and waits for it.
    CertificatesWanted,
    /// No process of the run is left, and this is the status to give.
    Over(u8),
}

/// Both ends.
///
/// # Errors
/// There are no more descriptors.
pub(crate) fn pair() -> io::Result<(LifetimeEnd, SupervisorEnd)> {
    let (ours, theirs) = UnixStream::pair()?;
    let board = Arc::new(Board {
        // For one whose run was lost before it could be said.
        status: AtomicU8::new(125),
        ..Board::default()
    });
    let (wanted, changes) = sync_channel(CHANGES_MAX);
    let lifetime = LifetimeEnd {
        socket: Some(ours),
        changes: wanted,
        board: Arc::clone(&board),
    };
    let supervisor = SupervisorEnd {
        socket: theirs,
        changes,
        board,
    };
    Ok((lifetime, supervisor))
}

impl LifetimeEnd {
    /// What hangs up when the supervisor is gone.
    pub(crate) fn poll(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// The supervisor is known to be gone.
    pub(crate) fn is_lost(&mut self) {
        self.socket = None;
    }

    /// Somebody waits for a bundle.
    pub(crate) fn certificates_wanted(&self) {
        self.say(CERTIFICATES);
    }

    /// Somebody wants the policy changed, or to see it.
    ///
    /// # Errors
    /// It is given back: too many wait already.
    pub(crate) fn wants(&self, change: WantedChange) -> Result<(), WantedChange> {
        self.changes.try_send(change).map_err(|error| match error {
            TrySendError::Full(change) | TrySendError::Disconnected(change) => change,
        })?;
        self.say(CHANGE);
        Ok(())
    }

    /// The command has ended, and what it left goes on.
    pub(crate) fn left(&self) {
        self.board.left.store(true, Ordering::Release);
        self.say(LEFT);
    }

    fn say(&self, word: u8) {
        if let Some(socket) = &self.socket {
            // Where there is no room, so many words wait that the other looks anyway.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let _ = send(socket.as_raw_fd(), &[word], flags);
        }
    }

    /// How many rules are granted.
    pub(crate) fn granted(&self) -> u64 {
        self.board.granted.load(Ordering::Relaxed)
    }

    /// No process of the run is left. To say so is to say no more.
    pub(crate) fn over(&self, status: u8) {
        self.board.status.store(status, Ordering::Release);
        if let Some(socket) = &self.socket {
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Write);
        }
    }

    /// How many calls were held.
    pub(crate) fn held(&self) -> u64 {
        self.board.held.load(Ordering::Relaxed)
    }

    /// Where requests are recorded; `None` while that is being written.
    pub(crate) fn record(&self) -> Option<String> {
        self.board
            .record
            .try_lock()
            .ok()
            .map(|record| record.clone())
    }

    /// The helpers' process ids; 0 for those that do not run.
    pub(crate) fn helpers(&self) -> [u32; HELPERS] {
        let helper = |pid: &AtomicU32| pid.load(Ordering::Acquire);
        self.board.helpers.each_ref().map(helper)
    }
}

impl SupervisorEnd {
    /// What to poll for reading.
    pub(crate) fn poll(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next word.
    pub(crate) fn receive(&self) -> SupervisorMessage {
        let mut words = [0_u8; 64];
        match recv(self.socket.as_raw_fd(), &mut words, MsgFlags::MSG_DONTWAIT) {
            Ok(count @ 1..) => {
                let mut said = words.iter().take(count);
                if said.any(|word| *word == CERTIFICATES) {
                    SupervisorMessage::CertificatesWanted
                } else {
                    SupervisorMessage::Nothing
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => SupervisorMessage::Nothing,
            Ok(_) | Err(_) => SupervisorMessage::Over(self.board.status.load(Ordering::Acquire)),
        }
    }

    /// The next change that somebody wants.
    pub(crate) fn wanted(&self) -> Option<WantedChange> {
        self.changes.try_recv().ok()
    }

    /// Whether the command has ended and left what goes on, if that is news.
    pub(crate) fn has_left(&self) -> bool {
        self.board.left.swap(false, Ordering::AcqRel)
    }

    /// How many rules are granted.
    pub(crate) fn granted(&self, rules: usize) {
        let rules = u64::try_from(rules).unwrap_or(u64::MAX);
        self.board.granted.store(rules, Ordering::Relaxed);
    }

    /// How many calls were held.
    pub(crate) fn held(&self, calls: u64) {
        self.board.held.store(calls, Ordering::Relaxed);
    }

    /// Where requests are recorded.
    pub(crate) fn record(&self, record: String) {
        *self
            .board
            .record
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = record;
    }

    /// The helpers' process ids; 0 for those that do not run.
    pub(crate) fn helpers(&self, pids: [u32; HELPERS]) {
        for (helper, pid) in self.board.helpers.iter().zip(pids) {
            helper.store(pid, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn the_end_of_a_run_comes_after_every_word_before_it() {
        let (lifetime, supervisor) = pair().unwrap();
        assert_eq!(supervisor.receive(), SupervisorMessage::Nothing);
        lifetime.certificates_wanted();
        lifetime.over(7);
        assert_eq!(supervisor.receive(), SupervisorMessage::CertificatesWanted);
        assert_eq!(supervisor.receive(), SupervisorMessage::Over(7));
        assert_eq!(supervisor.receive(), SupervisorMessage::Over(7));
    }

    #[test]
    fn what_a_command_left_is_told_once() {
        let (lifetime, supervisor) = pair().unwrap();
        assert!(!supervisor.has_left());
        lifetime.left();
        assert_eq!(supervisor.receive(), SupervisorMessage::Nothing);
        assert!(supervisor.has_left());
        assert!(!supervisor.has_left());
    }

    #[test]
    fn words_that_nobody_reads_keep_nobody_waiting() {
        let (lifetime, supervisor) = pair().unwrap();
        for _ in 0..1_000_000 {
            lifetime.certificates_wanted();
        }
        lifetime.over(1);
        let mut words = 0;
        while supervisor.receive() == SupervisorMessage::CertificatesWanted {
            words += 1;
        }
        assert!(words > 0);
        assert_eq!(supervisor.receive(), SupervisorMessage::Over(1));
    }

    #[test]
    fn a_record_that_is_being_written_keeps_nobody_waiting() {
        let (lifetime, supervisor) = pair().unwrap();
        supervisor.record("audit.jsonl".to_owned());
        assert_eq!(lifetime.record().as_deref(), Some("audit.jsonl"));
        let writing = supervisor.board.record.lock().unwrap();
        assert_eq!(lifetime.record(), None);
        drop(writing);
    }

    #[test]
    fn a_supervisor_that_is_gone_hangs_up() {
        let (mut lifetime, supervisor) = pair().unwrap();
        let hung_up = |end: &LifetimeEnd| {
            let mut polled = [PollFd::new(end.poll().unwrap(), PollFlags::empty())];
            poll(&mut polled, PollTimeout::ZERO).unwrap() == 1
        };
        assert!(!hung_up(&lifetime));
        drop(supervisor);
        assert!(hung_up(&lifetime));
        lifetime.certificates_wanted();
        lifetime.is_lost();
        assert!(lifetime.poll().is_none());
    }

    #[test]
    fn a_run_that_is_lost_is_over() {
        let (lifetime, supervisor) = pair().unwrap();
        drop(lifetime);
        assert_eq!(supervisor.receive(), SupervisorMessage::Over(125));
    }
}
