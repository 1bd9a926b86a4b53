//! Calls that wait for a thread, and how many threads there are for them. A call
//! that no thread takes in time is refused: a file system that does not answer
//! keeps the threads that ask it, and holds up nobody else for ever.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::limits::{CALLS_MAX, THREADS_MAX, WAIT_MAX};

/// What threads take from.
#[derive(Debug)]
pub(super) struct CallQueue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<(Instant, T)>,
    threads: usize,
    idle: usize,
    end: QueueEnd,
}

/// Whether anything will come any more.
#[derive(Debug, PartialEq, Eq)]
enum QueueEnd {
    Open,
    Closed,
}

/// Whether another thread should be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hands {
    Enough,
    Wanted,
}

impl<T> CallQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                waiting: VecDeque::new(),
                threads: 0,
                idle: 0,
                end: QueueEnd::Open,
            }),
            filled: Condvar::new(),
        }
    }

    /// Never held for longer than a few instructions: nobody works under it.
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call behind the others. `Wanted` has counted the other thread already.
    ///
    /// # Errors
    /// The call, where too many wait.
    pub(super) fn put(&self, call: T, now: Instant) -> Result<Hands, T> {
        let mut state = self.lock();
        if state.waiting.len() >= CALLS_MAX {
            return Err(call);
        }
        state.waiting.push_back((now, call));
        let wanted = state.idle < state.waiting.len() && state.threads < THREADS_MAX;
        if wanted {
            state.threads = state.threads.saturating_add(1);
        }
        drop(state);
        self.filled.notify_one();
        Ok(if wanted { Hands::Wanted } else { Hands::Enough })
    }

    /// Counts a thread that is there from the beginning.
    pub(super) fn join(&self) {
        let mut state = self.lock();
        state.threads = state.threads.saturating_add(1);
    }

    /// Counts one less. Where none is left, whoever waits would do so in vain.
    pub(super) fn leave(&self) -> Vec<T> {
        let mut state = self.lock();
        state.threads = state.threads.saturating_sub(1);
        if state.threads > 0 {
            return Vec::new();
        }
        state.waiting.drain(..).map(|(_, call)| call).collect()
    }

    /// The call that waits longest, as soon as there is one; `None` when nobody
    /// can put one any more.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some((_, call)) = state.waiting.pop_front() {
                return Some(call);
            }
            if state.end == QueueEnd::Closed {
                return None;
            }
            state.idle = state.idle.saturating_add(1);
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle = state.idle.saturating_sub(1);
        }
    }

    /// A call that has waited for too long.
    pub(super) fn overdue(&self, now: Instant) -> Option<T> {
        let mut state = self.lock();
        let (since, _) = state.waiting.front()?;
        if now.saturating_duration_since(*since) < WAIT_MAX {
            return None;
        }
        state.waiting.pop_front().map(|(_, call)| call)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Nothing comes any more: the threads end.
    pub(super) fn close(&self) {
        self.lock().end = QueueEnd::Closed;
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_wanted_while_all_are_busy_and_only_so_many() {
        let queue = CallQueue::new();
        let now = Instant::now();
        for call in 0..THREADS_MAX {
            assert_eq!(queue.put(call, now), Ok(Hands::Wanted), "{call}");
        }
        for call in THREADS_MAX..CALLS_MAX {
            assert_eq!(queue.put(call, now), Ok(Hands::Enough), "{call}");
        }
        assert_eq!(queue.put(7, now), Err(7));
        assert_eq!(queue.take(), Some(0));
        assert_eq!(queue.put(CALLS_MAX, now), Ok(Hands::Enough));
        assert!(queue.leave().is_empty());
        assert_eq!(queue.put(7, now), Err(7));
    }

    #[test]
    fn calls_wait_for_so_long_and_in_vain_for_nobody() {
        let queue = CallQueue::new();
        let now = Instant::now();
        for call in 0..3 {
            assert!(queue.put(call, now).is_ok());
        }
        assert_eq!(queue.overdue(now), None);
        let later = now.checked_add(WAIT_MAX).unwrap();
        assert_eq!(queue.overdue(later), Some(0));
        assert!(!queue.is_empty());
        assert!(queue.leave().is_empty());
        assert!(queue.leave().is_empty());
        assert_eq!(queue.leave(), [1, 2]);
        assert!(queue.is_empty());
        queue.close();
        assert_eq!(queue.take(), None);
    }
}
