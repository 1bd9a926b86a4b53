//! What was seen, and how often: what a line of a learnt policy stands on. Values only.

use std::collections::BTreeSet;

use crate::limits::SIGHTING_TEXT_BYTES_MAX;
use crate::printable::printable;
use crate::recall::PastEvent;

/// Whether something was allowed when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighted {
    /// It was.
    Allowed,
    /// No rule allowed it.
    Denied,
    /// A connection that spoke what nobody can look into, which only `tcp://` rules let pass.
    Raw,
}

/// Something that a command did or tried.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// What.
    pub event: &'a PastEvent,
    /// What became of it.
    pub sighted: Sighted,
    /// The executable that asked; empty if nobody knows.
    pub executable: &'a str,
    /// When, in a form that sorts.
    pub time: &'a str,
    /// In words.
    pub subject: &'a str,
}

/// How often something was seen, and the first and the last time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// How often it was allowed.
    pub allowed: u64,
    /// How often it was denied.
    pub denied: u64,
    /// Who asked: names of programs, without directories.
    pub programs: BTreeSet<String>,
    /// Time and words of the first.
    pub first: (String, String),
    /// Time and words of the last.
    pub last: (String, String),
}

impl Evidence {
    pub(super) fn of(sighting: &Sighting<'_>) -> Self {
        let bounded = |text: &str| {
            let text = printable(text);
            let end = text.floor_char_boundary(SIGHTING_TEXT_BYTES_MAX);
            match text.get(..end) {
                Some(head) if end < text.len() => format!("{head}..."),
                Some(_) | None => text,
            }
        };
        let seen = (bounded(sighting.time), bounded(sighting.subject));
        let name = sighting.executable.rsplit('/').next().unwrap_or_default();
        let name = bounded(name);
        let (allowed, denied) = match sighting.sighted {
            Sighted::Allowed => (1, 0),
            Sighted::Denied | Sighted::Raw => (0, 1),
        };
        Self {
            allowed,
            denied,
            programs: Some(name)
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect(),
            first: seen.clone(),
            last: seen,
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        if *self == Self::default() {
            *self = other;
            return;
        }
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.denied = self.denied.saturating_add(other.denied);
        self.programs.extend(other.programs);
        if other.first < self.first {
            self.first = other.first;
        }
        if other.last > self.last {
            self.last = other.last;
        }
    }
}
