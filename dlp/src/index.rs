//! From the literals of all rules to one search, and back from what it finds
//! to the rules. Literals of strong forms are looked for back to front and with
//! letters moved as well.

use crate::coding::Coding;
use crate::confirm::DetectorRule;
use crate::detector::{Anchor, Tier};
use crate::limits;
use crate::magic::{MAGICS, Magic, sealed};
use crate::prefilter::Prefilter;
use crate::settings::{DetectorMode, ScanPolicy};
pub(crate) use crate::transforms::{Transform, forms};

/// What a literal means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LiteralMeaning {
    /// A rule has it.
    Rule { rule: usize, transform: Transform },
    /// Compressed data or an archive may begin here.
    Container(Magic),
}

impl Transform {
    /// Its name in a chain.
    pub(crate) fn coding(self) -> Option<Coding> {
        match self {
            Self::None => None,
            Self::Reversed(_) => Some(Coding::Reversed),
            Self::Rot13 => Some(Coding::Rot13),
        }
    }
}

/// The literals of all rules.
pub(crate) struct LiteralIndex {
    pub(crate) prefilter: Prefilter,
    /// For each literal what it means.
    pub(crate) hits: Vec<Vec<LiteralMeaning>>,
    /// What credentials of strong forms begin with, in order.
    beginnings: Vec<Vec<u8>>,
    /// Rules without literals that somebody asked for.
    pub(crate) searches: Vec<usize>,
    /// How many bytes before a literal a match that must stay may begin.
    pub(crate) before: usize,
    /// The same of any match.
    pub(crate) reach: usize,
}

impl LiteralIndex {
    pub(crate) fn new(rules: &[DetectorRule], policy: ScanPolicy) -> Self {
        let mut literals: Vec<(Vec<u8>, LiteralMeaning)> = Vec::new();
        let mut searches = Vec::new();
        let mut beginnings: Vec<Vec<u8>> = Vec::new();
        let (mut before, mut reach) = (0, 0);
        for (place, rule) in rules.iter().enumerate() {
            let detector = &rule.detector;
            if rule.mode == Some(DetectorMode::Off) {
                continue;
            }
            if detector.anchor == Anchor::Scan {
                searches.extend(rule.mode.map(|_| place));
                continue;
            }
            reach = rule.before().max(reach);
            if rule.can_block(policy) {
                before = before.max(rule.before());
            }
            if rule.can_block_transformed(policy) {
                // Back to front the literal comes last.
                let longest = detector.max.min(limits::INSIDE_BYTES_MAX);
                reach = reach.max(longest);
                before = before.max(longest);
            }
            for literal in detector.literals.iter() {
                let begins = detector.tier == Tier::Strong && detector.anchor == Anchor::Start;
                beginnings.extend(begins.then(|| literal.as_bytes().to_vec()));
                for (bytes, transform) in forms(detector, literal.as_bytes()) {
                    let hit = LiteralMeaning::Rule {
                        rule: place,
                        transform,
                    };
                    literals.push((bytes, hit));
                }
            }
        }
        for (magic, kind) in MAGICS.into_iter().chain(sealed()) {
            let hit = LiteralMeaning::Container(kind);
            literals.push((magic.to_vec(), hit));
        }
        // Those that are the same stay in the order of their rules.
        literals.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (literals, hits) = by_literal(literals);
        beginnings.sort();
        beginnings.dedup();
        Self {
            prefilter: Prefilter::new(literals),
            hits,
            beginnings,
            searches,
            before,
            reach,
        }
    }

    /// Whether a credential of a strong form may begin with these bytes, or these with one.
    pub(crate) fn begins(&self, bytes: &[u8]) -> bool {
        let next = self
            .beginnings
            .partition_point(|own| own.as_slice() < bytes);
        let own = |place: usize| self.beginnings.get(place);
        let goes_on = |own: &Vec<u8>| own.starts_with(bytes);
        let is_over = |own: &Vec<u8>| bytes.starts_with(own);
        bytes.len() >= limits::BEGINNING_BYTES_MIN && own(next).is_some_and(goes_on)
            || next.checked_sub(1).and_then(own).is_some_and(is_over)
    }

    /// The length of the last literal of a strong form with which these bytes begin.
    pub(crate) fn literal(&self, bytes: &[u8]) -> usize {
        let next = self
            .beginnings
            .partition_point(|own| own.as_slice() <= bytes);
        let last = next
            .checked_sub(1)
            .and_then(|last| self.beginnings.get(last));
        let is_over = |own: &&Vec<u8>| bytes.starts_with(own);
        last.filter(is_over).map_or(0, Vec::len)
    }
}

/// Each literal once, with all that it means.
fn by_literal(
    literals: Vec<(Vec<u8>, LiteralMeaning)>,
) -> (Vec<Box<[u8]>>, Vec<Vec<LiteralMeaning>>) {
    let (mut once, mut hits): (Vec<Box<[u8]>>, Vec<Vec<LiteralMeaning>>) = (Vec::new(), Vec::new());
    for (literal, hit) in literals {
        if once.last().is_some_and(|last| **last == *literal)
            && let Some(same) = hits.last_mut()
        {
            same.push(hit);
            continue;
        }
        once.push(literal.into_boxed_slice());
        hits.push(vec![hit]);
    }
    (once, hits)
}
