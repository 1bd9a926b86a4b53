//! A held call that is answered exactly once; dropping it unanswered denies.
//! Knows nothing of what the call wants.

use std::sync::Arc;

use nix::errno::Errno;
use outgate_sys::seccomp::{
    HeldCall, NotificationListener, NotificationResponse, OnExec, Placement,
};
use std::os::fd::BorrowedFd;

/// Holding one proves that the call was not answered yet.
#[derive(Debug)]
pub struct Notification {
    listener: Arc<NotificationListener>,
    held: HeldCall,
    answered: Answered,
}

/// Whom an answer reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerReached {
    /// Who called.
    Caller,
    /// Nobody: the caller died, or its process executes another program.
    Nobody,
}

#[derive(Debug, PartialEq, Eq)]
enum Answered {
    No,
    Yes,
}

impl Notification {
    /// Takes responsibility for a received call.
    pub fn new(listener: &Arc<NotificationListener>, held: HeldCall) -> Self {
        Self {
            listener: Arc::clone(listener),
            held,
            answered: Answered::No,
        }
    }

    /// The call as the kernel described it.
    pub fn held(&self) -> &HeldCall {
        &self.held
    }

    /// Argument `index` as the kernel uses an `int`: its low 32 bits.
    pub fn int(&self, index: usize) -> i32 {
        let value = self.held.arguments.get(index).copied().unwrap_or(0);
        let [a, b, c, d, ..] = value.to_le_bytes();
        i32::from_le_bytes([a, b, c, d])
    }

    /// Argument `index` as an address or a size.
    pub fn word(&self, index: usize) -> u64 {
        self.held.arguments.get(index).copied().unwrap_or(0)
    }

    /// Whether the caller still waits: what was copied, duplicated and read of it
    /// before is its own. A process that executes another program first ends its
    /// other threads, and with them their calls.
    pub fn holds(&self) -> bool {
        self.listener.holds(self.held.cookie)
    }

    /// The call returns `value`.
    pub fn succeed(self, value: i64) {
        self.end(NotificationResponse::Value(value));
    }

    /// Ends a call whose effect is made: it returns 0 or fails. Where nobody
    /// waits for it any more, the effect is to be undone.
    pub fn conclude(self, result: Result<(), Errno>) -> AnswerReached {
        self.end(match result {
            Ok(()) => NotificationResponse::Value(0),
            Err(errno) => NotificationResponse::Errno(errno as i32),
        })
    }

    /// The call fails with `errno`.
    pub fn fail(self, errno: Errno) {
        self.end(NotificationResponse::Errno(errno as i32));
    }

    /// The kernel restarts the call or returns `EINTR`, as the signal that
    /// waits for the caller demands (signal(7), `SA_RESTART`).
    pub fn interrupt(self) {
        const ERESTARTSYS: i32 = 512;
        self.end(NotificationResponse::Errno(ERESTARTSYS));
    }

    /// The kernel performs the call. Only for calls that give no way out
    /// whatever their arguments are: opening a file, or binding, which Landlock judges; or whose
    /// arguments in registers were judged.
    pub fn pass(self) {
        self.end(NotificationResponse::Continue);
    }

    /// Ends the call with a copy of `descriptor` as its result.
    pub fn give(mut self, descriptor: BorrowedFd<'_>, on_exec: OnExec) {
        let placed =
            self.listener
                .add_descriptor(self.held.cookie, descriptor, Placement::Answer, on_exec);
        match placed {
            Ok(_) => self.answered = Answered::Yes,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::EPERM as i32);
                self.end(NotificationResponse::Errno(errno));
            }
        }
    }

    /// Puts a copy of `descriptor` into the caller, and says its number there.
    ///
    /// # Errors
    /// As `Listener::add_descriptor`.
    pub fn add(&self, descriptor: BorrowedFd<'_>, on_exec: OnExec) -> Result<i32, Errno> {
        let cookie = self.held.cookie;
        self.listener
            .add_descriptor(cookie, descriptor, Placement::Lowest, on_exec)
            .map_err(|error| error.raw_os_error().map_or(Errno::EPERM, Errno::from_raw))
    }

    /// Replaces descriptor `number` of the caller with a copy of `descriptor`.
    ///
    /// # Errors
    /// As `Listener::add_descriptor`.
    pub fn replace(
        &self,
        number: u32,
        descriptor: BorrowedFd<'_>,
        on_exec: OnExec,
    ) -> std::io::Result<()> {
        let placement = Placement::Replace(number);
        self.listener
            .add_descriptor(self.held.cookie, descriptor, placement, on_exec)
            .map(drop)
    }

    fn end(mut self, answer: NotificationResponse) -> AnswerReached {
        self.answered = Answered::Yes;
        // A caller that died meanwhile needs no answer.
        match self.listener.answer(self.held.cookie, answer) {
            Ok(()) => AnswerReached::Caller,
            Err(_) => AnswerReached::Nobody,
        }
    }
}

impl Drop for Notification {
    fn drop(&mut self) {
        if self.answered == Answered::No {
            // EPERM, which the policy never uses: a defect stays visible.
            let answer = NotificationResponse::Errno(Errno::EPERM as i32);
            drop(self.listener.answer(self.held.cookie, answer));
        }
    }
}
