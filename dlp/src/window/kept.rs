//! The pieces that a window keeps of one source, and what of them falls out of reach: what
//! comes later is not read together with it.

use std::collections::VecDeque;

use crate::budget::wide;
use crate::detector::Tier;
use crate::finding::{Finding, Unscanned, UnscannedReason};
use crate::head::{self, NOBODY};
use crate::limits;
use crate::pieces::{self, PieceLook};
use crate::place::PlaceKind;
use crate::ruleset::Ruleset;

/// The last pieces of one source.
#[derive(Default)]
pub(super) struct KeptPieces {
    dense: Pieces,
    /// Words and numbers: many of them push nothing out that could be of a credential.
    words: Pieces,
    /// Bytes of all pieces that were kept and are no words.
    through: u64,
}

#[derive(Default)]
struct Pieces {
    own: VecDeque<KeptPiece>,
    bytes: usize,
}

impl KeptPieces {
    pub(super) fn all(&self) -> impl Iterator<Item = &KeptPiece> {
        self.dense.own.iter().chain(&self.words.own)
    }

    /// The first piece of a slot.
    pub(super) fn find(&mut self, slot: u64) -> Option<&mut KeptPiece> {
        let mut all = self.dense.own.iter_mut().chain(&mut self.words.own);
        all.find(|own| own.slot == slot)
    }

    /// Keeps a piece.
    pub(super) fn keep(&mut self, mut piece: KeptPiece) {
        let pieces = match piece.look {
            PieceLook::Word => &mut self.words,
            PieceLook::Beginning | PieceLook::Dense | PieceLook::Chance => {
                self.through = self.through.saturating_add(wide(piece.bytes.len()));
                &mut self.dense
            }
        };
        piece.through = self.through;
        pieces.bytes = pieces.bytes.saturating_add(piece.bytes.len());
        pieces.own.push_back(piece);
    }

    /// The pieces behind which more was kept than the next one is read together with, and
    /// that have not been told.
    pub(super) fn passed(&mut self) -> impl Iterator<Item = &[u8]> {
        let reach = wide(limits::WINDOW_BYTES_MAX);
        let through = self.through;
        let passed = self.dense.own.iter_mut();
        let passed = passed.take_while(move |own| through.saturating_sub(own.through) > reach);
        passed.filter_map(|own| {
            let is_told = std::mem::replace(&mut own.is_told, true);
            (!is_told).then_some(own.bytes.as_slice())
        })
    }

    /// Lets the oldest piece go where there are too many: of those that take more room.
    pub(super) fn excess(&mut self) -> Option<KeptPiece> {
        let count = |pieces: &Pieces| pieces.own.len();
        let bytes = self.dense.bytes.saturating_add(self.words.bytes);
        let pieces = count(&self.dense).saturating_add(count(&self.words));
        let takes_more = if bytes > limits::WINDOW_KEPT_BYTES_MAX {
            self.dense.bytes > self.words.bytes
        } else if pieces > limits::WINDOW_PIECES_MAX {
            count(&self.dense) > count(&self.words)
        } else {
            return None;
        };
        let from = if takes_more {
            &mut self.dense
        } else {
            &mut self.words
        };
        let own = from.own.pop_front()?;
        from.bytes = from.bytes.saturating_sub(own.bytes.len());
        Some(own)
    }
}

/// A piece that is kept.
#[derive(Clone)]
pub(super) struct KeptPiece {
    pub(super) message: u64,
    /// Its place among all.
    pub(super) place: u64,
    pub(super) slot: u64,
    pub(super) bytes: Vec<u8>,
    /// How often it came, one time after the other, while its slot said nothing else.
    pub(super) times: usize,
    pub(super) look: PieceLook,
    /// How many bytes of pieces had been kept with it.
    pub(super) through: u64,
    /// Whether it was said that nothing more is read together with it.
    pub(super) is_told: bool,
}

/// Adds what is to be told of a piece that fell out of reach. One that holds a credential by
/// itself was judged where it stood.
pub(super) fn part(rules: &Ruleset, piece: &[u8], told: &mut Option<Unscanned>) {
    let reason = if begins(rules, piece) {
        UnscannedReason::Begun
    } else if is_drawn(piece) {
        UnscannedReason::Parted
    } else {
        return;
    };
    let alone = || head::whole(rules, (&NOBODY, PlaceKind::Content), piece).findings;
    let is_strong = |finding: &Finding| finding.tier == Tier::Strong;
    if reason == UnscannedReason::Begun && alone().iter().any(is_strong) {
        return;
    }
    let told = told.get_or_insert(Unscanned { reason, bytes: 0 });
    told.bytes = told.bytes.saturating_add(wide(piece.len()));
    if reason == UnscannedReason::Begun {
        told.reason = reason;
    }
}

/// Whether all of a literal of a strong form stands in a piece where a word begins, and
/// behind it what chance made.
fn begins(rules: &Ruleset, piece: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
    let begins_word = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| piece.get(before));
        // In base 64 these stand before anything.
        !before.is_some_and(|before| is_letter(before) || matches!(before, b'+' | b'/'))
    };
    let mut places = (0..piece.len()).filter(|at| begins_word(*at));
    places.any(|at| {
        let word = piece.get(at..).unwrap_or_default();
        let literal = rules.literal(word);
        let rest = word.get(literal..).unwrap_or_default();
        let rest = rest.split(|byte| !is_letter(byte)).next();
        let is_drawn =
            |rest: &[u8]| rest.len() >= limits::SIGNED_BYTES_MIN && pieces::is_of_chance(rest);
        literal >= limits::BEGUN_BYTES_MIN && rest.is_some_and(is_drawn)
    })
}

/// Whether chance drew a piece out of small letters, capitals and digits: no hash and no
/// number.
fn is_drawn(piece: &[u8]) -> bool {
    let has = |is_one: fn(&u8) -> bool| piece.iter().any(is_one);
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && piece.iter().all(u8::is_ascii_graphic)
        && pieces::is_of_chance(piece)
}
