//! Pieces of several messages to one host, so that a credential split over
//! them is found.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::destination::Destination;
use crate::finding::{Action, Finding};
use crate::head;
use crate::limits;
use crate::pieces::{self, Age, Entry, Piece, Side, Source};
use crate::place::Joined;
use crate::ruleset::Ruleset;

/// The last pieces that went to one host.
pub struct Window {
    rules: Arc<Ruleset>,
    host: String,
    port: u16,
    /// What findings say of pieces of content.
    joined: Joined,
    state: RandomState,
    sources: Vec<(Source, Kept)>,
    slots: HashMap<u64, Slot>,
    /// The number of the next message.
    message: u64,
    /// How often the last head came again.
    again: usize,
    /// The marks of what was recorded lately: its pieces are kept, and say nothing new.
    told: VecDeque<String>,
}

/// The last pieces of one source.
#[derive(Default)]
struct Kept {
    pieces: VecDeque<Own>,
    bytes: usize,
}

/// A piece that is kept.
#[derive(Clone)]
struct Own {
    message: u64,
    slot: u64,
    bytes: Vec<u8>,
    /// How often it came, one time after the other, while its slot said nothing else.
    times: usize,
    is_dense: bool,
}

/// What the pieces say that are kept of a slot.
struct Slot {
    /// Stands for the first.
    first: u64,
    /// How many came, as far as one and more are told apart.
    count: usize,
    /// Whether another said something else.
    varies: bool,
}

impl fmt::Debug for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    /// An empty window for pieces of messages that go to `destination`.
    pub fn new(rules: &Arc<Ruleset>, destination: &Destination<'_>) -> Self {
        Self::of(rules, destination, Joined::Messages)
    }

    /// An empty window for such pieces; of those of content findings say that they are
    /// `joined`.
    pub fn of(rules: &Arc<Ruleset>, destination: &Destination<'_>, joined: Joined) -> Self {
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            port: destination.port,
            joined,
            state: RandomState::new(),
            sources: Vec::new(),
            slots: HashMap::new(),
            message: 0,
            again: 0,
            told: VecDeque::new(),
        }
    }

    /// Judges what comes by other rules, together with what came before them.
    pub fn judge_by(&mut self, rules: &Arc<Ruleset>) {
        if !Arc::ptr_eq(&self.rules, rules) {
            self.rules = Arc::clone(rules);
        }
    }

    /// The last message came again, to the letter: it counts with the next.
    pub fn again(&mut self) {
        self.again = self.again.saturating_add(1).min(limits::AGAIN_MAX);
    }

    /// Takes the pieces of the next message, and says what they make together
    /// with the last ones. Pieces of a message that must not leave are forgotten:
    /// they did not arrive, and sent once more they are found once more.
    pub fn push(&mut self, pieces: &[Piece<'_>]) -> Vec<Finding> {
        self.repeat();
        let findings = self.look(pieces);
        if findings
            .iter()
            .any(|finding| finding.action == Action::Block)
        {
            return findings;
        }
        for finding in &findings {
            self.told.push_back(finding.mark.clone());
        }
        let excess = self.told.len().saturating_sub(limits::WINDOW_TOLD_MAX);
        self.told.drain(..excess);
        for (piece, bytes) in some(pieces) {
            let slot = self.slot(piece);
            self.keep(piece.source, slot, bytes);
        }
        self.message = self.message.saturating_add(1);
        findings
    }

    /// What these pieces would make together with the last ones; nothing of it
    /// is kept.
    pub fn look(&self, pieces: &[Piece<'_>]) -> Vec<Finding> {
        let new: Vec<(&Piece<'_>, Vec<u8>)> = some(pieces).collect();
        let new: Vec<(Source, u64, Vec<u8>)> = new
            .into_iter()
            .map(|(piece, bytes)| (piece.source, self.slot(piece), bytes))
            .collect();
        // Of the slots of this message: what stands for their first piece, and whether
        // another says something else.
        let mut said: HashMap<u64, (u64, bool)> = HashMap::new();
        for (_, slot, bytes) in &new {
            let text = self.state.hash_one(bytes);
            let known = self.slots.get(slot);
            let first = || known.map_or((text, true), |known| (known.first, known.varies));
            let one = said.entry(*slot).or_insert_with(first);
            one.1 |= one.0 != text;
        }
        let mut entries = self.entries(&said);
        let varied = new
            .iter()
            .filter(|(_, slot, _)| said.get(slot).is_none_or(|(_, varies)| *varies));
        entries.extend(varied.map(|(source, slot, bytes)| Entry {
            source: *source,
            slot: *slot,
            bytes,
            age: Age::New,
            is_dense: pieces::is_dense(bytes),
        }));
        let destination = Destination {
            host: &self.host,
            port: self.port,
        };
        let mut findings = Vec::new();
        for (side, text) in pieces::streams(&entries) {
            let joined = match side {
                Side::Head | Side::HeadAsWritten => Joined::Heads,
                Side::Content | Side::ContentAsWritten => self.joined,
            };
            head::join(
                &self.rules,
                &destination,
                (joined, side, text),
                &mut findings,
            );
        }
        findings.retain(|finding| {
            finding.action == Action::Block || !self.told.contains(&finding.mark)
        });
        findings
    }

    /// What is kept of slots that do not say the same all the time, with a message that says
    /// this, in the order in which it came.
    fn entries(&self, said: &HashMap<u64, (u64, bool)>) -> Vec<Entry<'_>> {
        let varies = |slot: &u64| match (said.get(slot), self.slots.get(slot)) {
            (Some((_, varies)), _) => *varies,
            (None, Some(slot)) => slot.varies || slot.count < 2,
            (None, None) => true,
        };
        let mut all: Vec<(u64, Entry<'_>)> = Vec::new();
        for (source, kept) in &self.sources {
            let own = kept.pieces.iter().filter(|own| varies(&own.slot));
            all.extend(own.flat_map(|own| {
                let entry = Entry {
                    source: *source,
                    slot: own.slot,
                    bytes: &own.bytes,
                    age: Age::Old,
                    is_dense: own.is_dense,
                };
                std::iter::repeat_n((own.message, entry), own.times)
            }));
        }
        // Stable: within a message the sources stand as they first came.
        all.sort_by_key(|(message, _)| *message);
        all.into_iter().map(|(_, entry)| entry).collect()
    }

    /// What stands for a slot of a source.
    fn slot(&self, piece: &Piece<'_>) -> u64 {
        self.state.hash_one((piece.source, piece.slot))
    }

    /// Keeps the last message once more, as often as it came again.
    fn repeat(&mut self) {
        let times = std::mem::take(&mut self.again);
        let Some(last) = self.message.checked_sub(1) else {
            return;
        };
        let of_last = |(source, kept): &(Source, Kept)| {
            let own = kept.pieces.iter().filter(|own| own.message == last);
            let own: Vec<Own> = own.cloned().collect();
            own.into_iter()
                .map(|own| (*source, own))
                .collect::<Vec<_>>()
        };
        let last: Vec<(Source, Own)> = self.sources.iter().flat_map(of_last).collect();
        for _ in 0..times {
            for (source, own) in &last {
                self.keep(*source, own.slot, own.bytes.clone());
            }
            self.message = self.message.saturating_add(1);
        }
    }

    fn keep(&mut self, source: Source, slot: u64, bytes: Vec<u8>) {
        let at = self.sources.iter().position(|(own, _)| *own == source);
        let at = at.unwrap_or_else(|| {
            self.sources.push((source, Kept::default()));
            self.sources.len().saturating_sub(1)
        });
        let Some((_, kept)) = self.sources.get_mut(at) else {
            return;
        };
        let text = self.state.hash_one(&bytes);
        let said = self.slots.entry(slot).or_insert(Slot {
            first: text,
            count: 0,
            varies: false,
        });
        said.varies |= said.first != text;
        // What is the same in every message takes no room.
        if said.count > 0
            && !said.varies
            && let Some(own) = kept.pieces.iter_mut().find(|own| own.slot == slot)
        {
            own.times = own.times.saturating_add(1).min(limits::AGAIN_MAX);
            said.count = 2;
            return;
        }
        said.count = said.count.saturating_add(1);
        kept.bytes = kept.bytes.saturating_add(bytes.len());
        kept.pieces.push_back(Own {
            message: self.message,
            slot,
            times: 1,
            is_dense: pieces::is_dense(&bytes),
            bytes,
        });
        while kept.bytes > limits::WINDOW_KEPT_BYTES_MAX
            || kept.pieces.len() > limits::WINDOW_PIECES_MAX
        {
            let Some(mut own) = kept.pieces.pop_front() else {
                return;
            };
            kept.bytes = kept.bytes.saturating_sub(own.bytes.len());
            own.bytes.fill(0);
            if kept.pieces.iter().all(|other| other.slot != own.slot) {
                self.slots.remove(&own.slot);
            }
        }
    }
}

/// The pieces that say something, as they are kept.
fn some<'a, 'b>(
    pieces: &'a [Piece<'b>],
) -> impl Iterator<Item = (&'a Piece<'b>, Vec<u8>)> + use<'a, 'b> {
    let some = pieces.iter().filter(|piece| !piece.bytes.is_empty());
    some.map(|piece| (piece, pieces::ends(piece.bytes)))
}
