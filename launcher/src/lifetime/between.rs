//! What the thread that serves the end of a run and the supervisor tell each other.
//! Neither ever waits for the other: what one says lies there until the other looks.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};

/// Processes that serve the supervisor: the gateway, the holder of the sealed namespace,
/// and the one that looks paths up.
const HELPERS: usize = 3;

/// What is said by being there to read.
#[derive(Debug, Default)]
struct Board {
    /// How the run ended, once that was said.
    status: AtomicU8,
    held: AtomicU64,
    helpers: [AtomicU32; HELPERS],
    record: Mutex<String>,
}

/// The end of the thread that serves the end of a run.
#[derive(Debug)]
pub(crate) struct LifetimeEnd {
    /// Hangs up when the supervisor is gone. None once that is known.
    socket: Option<UnixStream>,
    board: Arc<Board>,
}

/// The end of the supervisor.
#[derive(Debug)]
pub(crate) struct SupervisorEnd {
    socket: UnixStream,
    board: Arc<Board>,
}

/// What the supervisor is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
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
    let lifetime = LifetimeEnd {
        socket: Some(ours),
        board: Arc::clone(&board),
    };
    let socket = theirs;
    Ok((lifetime, SupervisorEnd { socket, board }))
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
        if let Some(socket) = &self.socket {
            // Where there is no room, so many words wait that this one is among them.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            let _ = send(socket.as_raw_fd(), &[0], flags);
        }
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
    pub(crate) fn receive(&self) -> Word {
        let mut words = [0_u8; 64];
        match recv(self.socket.as_raw_fd(), &mut words, MsgFlags::MSG_DONTWAIT) {
            Ok(1..) => Word::CertificatesWanted,
            Err(Errno::EAGAIN | Errno::EINTR) => Word::Nothing,
            Ok(_) | Err(_) => Word::Over(self.board.status.load(Ordering::Acquire)),
        }
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
        assert_eq!(supervisor.receive(), Word::Nothing);
        lifetime.certificates_wanted();
        lifetime.over(7);
        assert_eq!(supervisor.receive(), Word::CertificatesWanted);
        assert_eq!(supervisor.receive(), Word::Over(7));
        assert_eq!(supervisor.receive(), Word::Over(7));
    }

    #[test]
    fn words_that_nobody_reads_keep_nobody_waiting() {
        let (lifetime, supervisor) = pair().unwrap();
        for _ in 0..1_000_000 {
            lifetime.certificates_wanted();
        }
        lifetime.over(1);
        let mut words = 0;
        while supervisor.receive() == Word::CertificatesWanted {
            words += 1;
        }
        assert!(words > 0);
        assert_eq!(supervisor.receive(), Word::Over(1));
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
        assert_eq!(supervisor.receive(), Word::Over(125));
    }
}
