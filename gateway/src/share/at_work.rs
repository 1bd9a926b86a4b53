//! The sessions of a shared gateway that are there now, for who watches. Keeps none of them
//! alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::session::Session;

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct SessionAtWork {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) uid: u32,
    /// The process that registered it.
    pub(super) pid: u32,
    /// Whether it is that of a token.
    pub(super) of_token: bool,
    pub(super) since: Instant,
    pub(super) session: Weak<Session>,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(super) struct SessionsAtWork(Mutex<BTreeMap<u64, SessionAtWork>>);

/// One is there as long as this lives.
#[derive(Debug)]
pub(super) struct AtWorkPlace {
    all: Arc<SessionsAtWork>,
    number: u64,
}

impl Drop for AtWorkPlace {
    fn drop(&mut self) {
        self.all.held().remove(&self.number);
    }
}

impl SessionsAtWork {
    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, SessionAtWork>> {
        // What is shown decides nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, own: SessionAtWork) -> AtWorkPlace {
        let number = own.number;
        self.held().insert(number, own);
        AtWorkPlace {
            all: Arc::clone(self),
            number,
        }
    }

    /// All of them, the newest first.
    pub(super) fn newest_first(&self) -> Vec<SessionAtWork> {
        self.held().values().rev().cloned().collect()
    }
}
