//! Pieces of several messages to one host, so that a credential split over
//! them is found.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use crate::budget::wide;
use crate::destination::ScanDestination;
use crate::finding::{Action, Finding, Unscanned};
use crate::head::{self, Alone};
use crate::limits;
use crate::pieces::{self, Age, Piece, PieceSource, Side, StreamEntry};
use crate::place::Joined;
use crate::ruleset::Ruleset;
use crate::scan::ScanState;

mod halves;
mod kept;

use halves::ShownIds;
use kept::{KeptPiece, KeptPieces};

/// The last pieces that went to one host, or to those of one domain.
pub struct Window {
    rules: Arc<Ruleset>,
    /// Where the next message goes.
    host: String,
    port: u16,
    /// What findings say of pieces of content.
    joined: Joined,
    state: RandomState,
    sources: Vec<(PieceSource, KeptPieces)>,
    slots: HashMap<u64, Slot, Plain>,
    /// The number of the next message.
    message: u64,
    /// How many pieces were kept.
    count: u64,
    /// The number of the last head.
    head: Option<u64>,
    /// How often it came again.
    again: usize,
    /// The marks of what was recorded lately: its pieces are kept, and say nothing new.
    told: VecDeque<String>,
    /// What of the last look was not looked into.
    missed: Option<Unscanned>,
    /// Where ids of pairs of keys were shown.
    shown: ShownIds,
    /// What fell out of reach with the last message.
    parted: Option<Unscanned>,
}

/// A piece of the message that is looked at.
struct NewPiece {
    source: PieceSource,
    slot: u64,
    /// Stands for its bytes.
    text: u64,
    bytes: Vec<u8>,
}

/// What a slot says in the message that is looked at, together with what is kept.
struct SlotText {
    /// Stands for the first.
    first: u64,
    /// Whether another says something else, or nothing is known of the slot.
    varies: bool,
}

/// What the pieces say that are kept of a slot.
struct Slot {
    /// Stands for the first.
    first: u64,
    /// In how many messages, as far as one and more are told apart.
    count: usize,
    /// The number of the last of them.
    message: u64,
    /// Whether another said something else.
    varies: bool,
}

/// Takes what stands for a slot as it is: it was hashed with a key.
type Plain = BuildHasherDefault<Hashed>;

#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    /// An empty window for pieces of messages that go to `destination`.
    pub fn new(rules: &Arc<Ruleset>, destination: &ScanDestination<'_>) -> Self {
        Self::of(rules, destination, Joined::Messages)
    }

    /// An empty window for such pieces; of those of content findings say that they are
    /// `joined`.
    pub fn of(rules: &Arc<Ruleset>, destination: &ScanDestination<'_>, joined: Joined) -> Self {
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            port: destination.port,
            joined,
            state: RandomState::new(),
            sources: Vec::new(),
            slots: HashMap::default(),
            message: 0,
            count: 0,
            head: None,
            again: 0,
            told: VecDeque::new(),
            missed: None,
            shown: ShownIds::default(),
            parted: None,
        }
    }

    /// Judges what comes by other rules, together with what came before them.
    pub fn judge_by(&mut self, rules: &Arc<Ruleset>) {
        if !Arc::ptr_eq(&self.rules, rules) {
            self.rules = Arc::clone(rules);
        }
    }

    /// What comes goes to this host, below the domain of those before it.
    pub fn go_to(&mut self, destination: &ScanDestination<'_>) {
        if self.host != destination.host {
            destination.host.clone_into(&mut self.host);
        }
        self.port = destination.port;
    }

    /// The last head came again, to the letter: it counts with the next message.
    pub fn again(&mut self) {
        self.again = self.again.saturating_add(1).min(limits::AGAIN_MAX);
    }

    /// Takes the pieces of the next message, and says what they make together
    /// with the last ones. Pieces of a message that must not leave are forgotten:
    /// they did not arrive, and sent once more they are found once more.
    pub fn push(&mut self, pieces: &[Piece<'_>]) -> Vec<Finding> {
        self.repeat();
        let new = self.new_pieces(pieces);
        self.shown
            .note(&self.rules, &self.host, (self.message, &new));
        let findings;
        (findings, self.missed) = self.read(&new);
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
        if is_head(&new) {
            self.head = Some(self.message);
        }
        for piece in new {
            self.keep(piece);
        }
        self.message = self.message.saturating_add(1);
        findings
    }

    /// What these pieces would make together with the last ones; nothing of it
    /// is kept.
    pub fn look(&mut self, pieces: &[Piece<'_>]) -> Vec<Finding> {
        self.repeat();
        let findings;
        (findings, self.missed) = self.read(&self.new_pieces(pieces));
        findings
    }

    /// What of the pieces that came last was not looked into together with those before
    /// them, since too much is made of them, and what came before and is not read together
    /// with what comes next any more.
    pub fn missed(&mut self) -> Option<Unscanned> {
        let parted = self.parted.take();
        self.missed.take().or(parted)
    }

    /// The pieces that say something, as they are kept.
    fn new_pieces(&self, pieces: &[Piece<'_>]) -> Vec<NewPiece> {
        let some = pieces.iter().filter(|piece| !piece.bytes.is_empty());
        let new = some.map(|piece| {
            let bytes = pieces::ends(pieces::plain(piece.source, piece.bytes));
            NewPiece {
                source: piece.source,
                slot: self.slot(piece),
                text: self.state.hash_one(&bytes),
                bytes,
            }
        });
        new.collect()
    }

    fn read(&self, new: &[NewPiece]) -> (Vec<Finding>, Option<Unscanned>) {
        let said = self.said(new);
        let told = |finding: &Finding| {
            finding.action == Action::Block || !self.told.contains(&finding.mark)
        };
        let about = (self.message, self.joined, new);
        let mut findings = self.shown.find(&self.rules, &self.host, about);
        // What says the same once more is there already.
        let is_varied = |piece: &&NewPiece| said.get(&piece.slot).is_none_or(|said| said.varies);
        if !new.iter().any(|piece| is_varied(&piece)) {
            findings.retain(told);
            return (findings, None);
        }
        let head = self.head.filter(|_| !is_head(new));
        let mut entries = self.entries(&said, head);
        let places = self.count..;
        let varied = places.zip(new).filter(|(_, piece)| is_varied(piece));
        entries.extend(varied.map(|(place, piece)| StreamEntry {
            source: piece.source,
            slot: piece.slot,
            place,
            bytes: &piece.bytes,
            age: Age::New,
            look: self.rules.look(&piece.bytes),
            is_whole: true,
        }));
        let destination = ScanDestination {
            host: &self.host,
            port: self.port,
        };
        let alone = Alone::new(&self.rules, &entries);
        let (mut left, mut missed) = (limits::WINDOW_BYTES_MADE, None);
        for (side, text) in pieces::streams(&entries, &|word| self.rules.begins(word)) {
            let mut state = ScanState::default();
            state.budget.bind(Some(left));
            let joined = match side {
                Side::Head | Side::HeadAsWritten | Side::HeadWoven | Side::HeadReordered => {
                    Joined::Heads
                }
                Side::Content
                | Side::ContentAsWritten
                | Side::ContentWoven
                | Side::ContentReordered => self.joined,
            };
            head::join(
                &alone,
                (&destination, &mut state),
                (joined, side, text),
                &mut findings,
            );
            left = left.saturating_sub(state.budget.cost());
            if state.budget.is_broken_off() {
                missed = missed.or(state.unscanned());
            }
        }
        findings.retain(told);
        (findings, missed)
    }

    /// What the slots of a message say.
    fn said(&self, new: &[NewPiece]) -> HashMap<u64, SlotText, Plain> {
        let mut said: HashMap<u64, SlotText, Plain> = HashMap::default();
        for piece in new {
            let one = said.entry(piece.slot).or_insert_with(|| {
                let known = self.slots.get(&piece.slot);
                SlotText {
                    first: known.map_or(piece.text, |known| known.first),
                    varies: known.is_none_or(|known| known.varies),
                }
            });
            one.varies |= one.first != piece.text;
        }
        said
    }

    /// What is kept, with a message that says this, in the order in which it came. What the
    /// head said to which content belongs, the content says with it.
    fn entries(
        &self,
        said: &HashMap<u64, SlotText, Plain>,
        head: Option<u64>,
    ) -> Vec<StreamEntry<'_>> {
        let age = |slot: &u64| match (said.get(slot), self.slots.get(slot)) {
            (Some(said), _) if said.varies => Age::Old,
            (Some(_), _) => Age::Constant,
            (None, Some(slot)) if slot.varies || slot.count < 2 => Age::Old,
            (None, Some(slot)) if head.is_some_and(|head| slot.message >= head) => Age::Constant,
            (None, Some(_)) => Age::Repeated,
            (None, None) => Age::Old,
        };
        let mut all: Vec<((u64, usize, u64), StreamEntry<'_>)> = Vec::new();
        for (rank, (source, kept)) in self.sources.iter().enumerate() {
            for own in kept.all() {
                let entry = StreamEntry {
                    source: *source,
                    slot: own.slot,
                    place: own.place,
                    bytes: &own.bytes,
                    age: age(&own.slot),
                    look: own.look,
                    is_whole: true,
                };
                // Within a message the sources stand as they first came.
                let place = (own.message, rank, own.place);
                let times = match entry.age {
                    Age::Constant | Age::Repeated => 1,
                    Age::Old | Age::New => own.times,
                };
                all.extend(std::iter::repeat_n((place, entry), times));
            }
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, entry)| entry).collect()
    }

    /// What stands for a slot of a source.
    fn slot(&self, piece: &Piece<'_>) -> u64 {
        let name = pieces::plain(piece.source, piece.slot);
        self.state.hash_one((piece.source, name))
    }

    /// Keeps the last head once more, as often as it came again.
    fn repeat(&mut self) {
        let times = std::mem::take(&mut self.again);
        let Some(last) = self.head.filter(|_| times > 0) else {
            return;
        };
        self.head = Some(self.message.saturating_add(wide(times)).saturating_sub(1));
        let of_last = |(source, kept): &(PieceSource, KeptPieces)| {
            let own = kept.all().filter(|own| own.message == last);
            let own: Vec<KeptPiece> = own.cloned().collect();
            own.into_iter()
                .map(|own| (*source, own))
                .collect::<Vec<_>>()
        };
        let last: Vec<(PieceSource, KeptPiece)> = self.sources.iter().flat_map(of_last).collect();
        for _ in 0..times {
            for (source, own) in &last {
                self.keep(NewPiece {
                    source: *source,
                    slot: own.slot,
                    text: self.state.hash_one(&own.bytes),
                    bytes: own.bytes.clone(),
                });
            }
            self.message = self.message.saturating_add(1);
        }
    }

    fn keep(&mut self, piece: NewPiece) {
        let NewPiece {
            source,
            slot,
            text,
            bytes,
        } = piece;
        let at = self.sources.iter().position(|(own, _)| *own == source);
        let at = at.unwrap_or_else(|| {
            self.sources.push((source, KeptPieces::default()));
            self.sources.len().saturating_sub(1)
        });
        let Some((_, kept)) = self.sources.get_mut(at) else {
            return;
        };
        let said = self.slots.entry(slot).or_insert(Slot {
            first: text,
            count: 0,
            message: self.message,
            varies: false,
        });
        if said.count == 0 || said.message != self.message {
            said.count = said.count.saturating_add(1);
            said.message = self.message;
        }
        let is_again = !said.varies && said.first == text;
        said.varies |= said.first != text;
        // What is the same in every message takes no room.
        if is_again && let Some(own) = kept.find(slot) {
            own.times = own.times.saturating_add(1).min(limits::AGAIN_MAX);
            return;
        }
        kept.keep(KeptPiece {
            message: self.message,
            place: self.count,
            slot,
            times: 1,
            look: self.rules.look(&bytes),
            through: 0,
            is_told: false,
            bytes,
        });
        self.count = self.count.saturating_add(1);
        for passed in kept.passed() {
            kept::part(&self.rules, passed, &mut self.parted);
        }
        while let Some(mut own) = kept.excess() {
            own.bytes.fill(0);
            if kept.all().all(|other| other.slot != own.slot) {
                self.slots.remove(&own.slot);
            }
        }
    }
}

impl<'a> ScanDestination<'a> {
    /// The domain that somebody registered to which the host belongs (public-suffix list), as
    /// whoever has one can give it any names; of an address, and of a name above all
    /// domains, the host itself.
    pub fn registered(&self) -> &'a str {
        if self.host.parse::<IpAddr>().is_ok() {
            return self.host;
        }
        psl::domain_str(self.host).unwrap_or(self.host)
    }
}

/// Whether a message is a head.
fn is_head(new: &[NewPiece]) -> bool {
    !new.is_empty() && new.iter().all(|piece| piece.source.is_head())
}
