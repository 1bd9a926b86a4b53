//! What records are about, counted: for whoever watches a shared gateway. Names nothing
//! that a command chose: every label is a word of a closed set.

use std::sync::atomic::{AtomicU64, Ordering};

use outgate_handoff::Parent;
use outgate_record::{Kind, Outcome, Reason, Record, Token};

/// Counters with one place for each word of a set.
#[derive(Debug)]
struct WordCounts<T: Token>(Vec<(T, AtomicU64)>);

impl<T: Token> Default for WordCounts<T> {
    fn default() -> Self {
        Self(T::ALL.iter().map(|one| (*one, AtomicU64::new(0))).collect())
    }
}

impl<T: Token> WordCounts<T> {
    fn add(&self, word: T) {
        if let Some((_, count)) = self.0.iter().find(|(one, _)| *one == word) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn all(&self) -> impl Iterator<Item = (T, u64)> {
        let counts = self.0.iter();
        counts.map(|(word, count)| (*word, count.load(Ordering::Relaxed)))
    }
}

/// How often each was recorded since the start.
#[derive(Debug, Default)]
pub(crate) struct RecordCounts {
    allowed: WordCounts<Kind>,
    denied: WordCounts<Kind>,
    noted: WordCounts<Kind>,
    reasons: WordCounts<Reason>,
    blocked: AtomicU64,
    warned: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    written: AtomicU64,
    failed: AtomicU64,
}

/// What of a credential was done about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FindingCounts {
    pub(crate) blocked: u64,
    pub(crate) warned: u64,
}

impl RecordCounts {
    /// Counts what a record says.
    pub(super) fn add(&self, record: &Record<'_, Parent>) {
        let Some(kind) = record.kind.known() else {
            return;
        };
        match record.verdict {
            Outcome::Allow => self.allowed.add(kind),
            Outcome::Deny => self.denied.add(kind),
            Outcome::Note => self.noted.add(kind),
        }
        let reason = record.reason.as_ref().and_then(outgate_record::Word::known);
        if let (Outcome::Deny, Some(reason)) = (record.verdict, reason) {
            self.reasons.add(reason);
        }
        if let Some(found) = &record.finding {
            let count = match &*found.action {
                "block" => &self.blocked,
                _ => &self.warned,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        let bytes = [(&self.up, record.bytes_up), (&self.down, record.bytes_down)];
        for (count, bytes) in bytes {
            count.fetch_add(bytes.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Counts records that were put into the file, or could not be.
    pub(super) fn put<E>(&self, result: &Result<(), E>) {
        let count = match result {
            Ok(()) => &self.written,
            Err(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Decisions and notes, by what they are about.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Kind, Outcome, u64)> {
        let of = |counts: &WordCounts<Kind>, verdict| {
            let all: Vec<_> = counts.all().collect();
            all.into_iter()
                .map(move |(kind, count)| (kind, verdict, count))
        };
        of(&self.allowed, Outcome::Allow)
            .chain(of(&self.denied, Outcome::Deny))
            .chain(of(&self.noted, Outcome::Note))
    }

    /// Denials, by why.
    pub(crate) fn denials(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.reasons.all()
    }

    pub(crate) fn findings(&self) -> FindingCounts {
        FindingCounts {
            blocked: self.blocked.load(Ordering::Relaxed),
            warned: self.warned.load(Ordering::Relaxed),
        }
    }

    /// Bytes of connections that ended, from and to commands.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let (up, down) = (&self.up, &self.down);
        (up.load(Ordering::Relaxed), down.load(Ordering::Relaxed))
    }

    /// How often records were put into the file, and could not be.
    pub(crate) fn writes(&self) -> (u64, u64) {
        let (written, failed) = (&self.written, &self.failed);
        (
            written.load(Ordering::Relaxed),
            failed.load(Ordering::Relaxed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Event;

    #[test]
    fn what_records_say_is_counted_by_closed_words_alone() {
        let counts = RecordCounts::default();
        let before = counts.events().count() + counts.denials().count();
        for number in 0..1000 {
            let target = format!("host-{number}.test:443");
            let event = Event::new(Kind::Connect, Outcome::Deny, &target);
            counts.add(&event.reason(Reason::NoRule, &target).record());
            let event = Event::new(Kind::Flow, Outcome::Note, &target);
            counts.add(&event.traffic(2, 3, 1).record());
        }
        assert_eq!(counts.events().count() + counts.denials().count(), before);
        let denied = counts
            .events()
            .find(|(kind, verdict, _)| (*kind, *verdict) == (Kind::Connect, Outcome::Deny));
        assert_eq!(denied.unwrap().2, 1000);
        let reason = counts
            .denials()
            .find(|(reason, _)| *reason == Reason::NoRule);
        assert_eq!(reason.unwrap().1, 1000);
        assert_eq!(counts.bytes(), (2000, 3000));
    }
}
