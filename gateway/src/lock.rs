//! Locks whose state says what may leave. Where a thread panicked under one, nobody knows
//! what is counted and remembered behind it, and what needs it is refused. Release builds
//! abort on a panic, so none of them goes on with such a lock.

use std::sync::{Mutex, MutexGuard};

use outgate_record::Reason;

use crate::refusal::Refusal;

/// What a lock protects may be half written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a fault of the gateway left its state unreadable, so nothing more is let out; start a new run"
)]
pub(crate) struct Poisoned;

impl Poisoned {
    /// The refusal of what needs the state, for what that would have been refused for.
    pub(crate) fn refusal(self, reason: Reason, subject: &str) -> Refusal {
        Refusal::own(reason, subject, &self.to_string())
    }
}

/// What a lock protects.
///
/// # Errors
/// A thread panicked while it held the lock.
pub(crate) fn held<T>(lock: &Mutex<T>) -> Result<MutexGuard<'_, T>, Poisoned> {
    lock.lock().map_err(|_| Poisoned)
}

/// Has a thread panic while it holds a lock.
#[cfg(test)]
pub(crate) fn poison<T>(lock: &Mutex<T>) {
    let hold = || {
        let _held = lock.lock().unwrap();
        panic!("a fault while the lock is held");
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(hold)).is_err());
    assert!(lock.is_poisoned());
}
