//! The memory that the decoders of all streams of a process keep together, so that many
//! streams at once take no more than there is.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits;

/// What all streams have taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What one stream has of it; given back with the stream.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare {
    taken: u64,
}

impl MemoryShare {
    /// Takes so many bytes in all, or gives back what is too much: whether there are as many.
    /// What little most streams need is there for them when others took the rest.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.taken) else {
            TAKEN.fetch_sub(self.taken.saturating_sub(bytes), Ordering::Relaxed);
            self.taken = bytes;
            return true;
        };
        let most = if bytes <= limits::SHARED_LITTLE_BYTES {
            limits::SHARED_BYTES_MAX.saturating_add(limits::SHARED_LITTLE_BYTES_MAX)
        } else {
            limits::SHARED_BYTES_MAX
        };
        let take = |taken: u64| taken.checked_add(more).filter(|taken| *taken <= most);
        let is_there = TAKEN
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok();
        if is_there {
            self.taken = bytes;
        }
        is_there
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.taken, Ordering::Relaxed);
    }
}
