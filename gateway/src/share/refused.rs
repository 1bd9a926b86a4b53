//! How many sandboxes were refused, by the limit that refused them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::tenant::Full;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct RefusedSandboxes {
    account: AtomicU64,
    all: AtomicU64,
    barred: AtomicU64,
    ending: AtomicU64,
}

impl RefusedSandboxes {
    pub(super) fn add(&self, full: &Full) {
        let count = match full {
            Full::Account(_) => &self.account,
            Full::All(_) => &self.all,
            Full::Barred(_) => &self.barred,
            Full::Ending => &self.ending,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Each limit, and how often.
    pub(super) fn all(&self) -> [(&'static str, u64); 4] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("user", of(&self.account)),
            ("all", of(&self.all)),
            ("barred", of(&self.barred)),
            ("ending", of(&self.ending)),
        ]
    }
}
