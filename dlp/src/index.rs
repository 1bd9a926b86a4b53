//! From the literals of all rules to one search, and back from what it finds
//! to the rules. Literals of strong forms are looked for back to front and with
//! letters moved as well.

use std::collections::HashMap;

use crate::coding::Coding;
use crate::confirm::Rule;
use crate::containers::{MAGICS, Magic};
use crate::detector::{Anchor, Tier};
use crate::prefilter::Prefilter;
use crate::runs::Probe;
use crate::settings::{Mode, Policy};

/// What a literal means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hit {
    /// A rule has it.
    Rule { rule: usize, twist: Twist },
    /// Compressed data or an archive may begin here.
    Container(Magic),
}

/// What was done to bytes so that they are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twist {
    /// Nothing.
    None,
    /// They stand back to front, after a literal of this length.
    Reversed(usize),
    /// Letters are moved by thirteen.
    Rot13,
}

impl Twist {
    /// The bytes as they were, with the literal first; none where nothing was done.
    pub(crate) fn apply(self, bytes: &[u8], at: usize, max: usize) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Reversed(length) => {
                let end = at.saturating_add(length).min(bytes.len());
                let start = end.saturating_sub(max.saturating_add(1));
                let window = bytes.get(start..end).unwrap_or_default();
                Some(window.iter().rev().copied().collect())
            }
            Self::Rot13 => {
                let end = at.saturating_add(max).saturating_add(1).min(bytes.len());
                let window = bytes.get(at..end).unwrap_or_default();
                Some(window.iter().map(|byte| rot13(*byte)).collect())
            }
        }
    }

    /// Its name in a chain.
    pub(crate) fn coding(self) -> Option<Coding> {
        match self {
            Self::None => None,
            Self::Reversed(_) => Some(Coding::Reversed),
            Self::Rot13 => Some(Coding::Rot13),
        }
    }
}

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte.wrapping_add(13),
        b'n'..=b'z' | b'N'..=b'Z' => byte.wrapping_sub(13),
        other => other,
    }
}

/// Shortest literal that is looked for twisted, in bytes.
const TWISTED_BYTES_MIN: usize = 4;

/// The literals of all rules.
pub(crate) struct Index {
    pub(crate) prefilter: Prefilter,
    /// The same for what is coded in base64.
    pub(crate) probe: Probe,
    /// For each literal what it means.
    pub(crate) hits: Vec<Vec<Hit>>,
    /// Rules without literals that somebody asked for.
    pub(crate) searches: Vec<usize>,
    /// How many bytes before a literal a match that must stay may begin.
    pub(crate) before: usize,
    /// The same of any match.
    pub(crate) reach: usize,
}

impl Index {
    pub(crate) fn new(rules: &[Rule], policy: Policy) -> Self {
        let mut literals: HashMap<Vec<u8>, Vec<Hit>> = HashMap::new();
        let mut searches = Vec::new();
        let (mut before, mut reach) = (0, 0);
        for (place, rule) in rules.iter().enumerate() {
            let detector = &rule.detector;
            if rule.mode == Some(Mode::Off) {
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
            for literal in detector.literals.iter() {
                for (bytes, twist) in forms(rule, literal.as_bytes()) {
                    let hit = Hit::Rule { rule: place, twist };
                    literals.entry(bytes).or_default().push(hit);
                }
            }
        }
        for (bytes, magic) in MAGICS {
            let hit = Hit::Container(magic);
            literals.entry(bytes.to_vec()).or_default().push(hit);
        }
        let mut literals: Vec<(Vec<u8>, Vec<Hit>)> = literals.into_iter().collect();
        literals.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (literals, hits): (Vec<_>, Vec<_>) = literals.into_iter().unzip();
        let literals = literals.into_iter().map(Vec::into_boxed_slice);
        let literals: Vec<Box<[u8]>> = literals.collect();
        Self {
            probe: Probe::new(&literals),
            prefilter: Prefilter::new(literals),
            hits,
            searches,
            before,
            reach,
        }
    }
}

/// The forms in which a literal is looked for.
fn forms(rule: &Rule, literal: &[u8]) -> Vec<(Vec<u8>, Twist)> {
    let mut forms = vec![(literal.to_vec(), Twist::None)];
    let is_strong = rule.detector.tier == Tier::Strong && rule.detector.anchor == Anchor::Start;
    if is_strong && literal.len() >= TWISTED_BYTES_MIN {
        let reversed: Vec<u8> = literal.iter().rev().copied().collect();
        forms.push((reversed, Twist::Reversed(literal.len())));
        let moved: Vec<u8> = literal.iter().map(|byte| rot13(*byte)).collect();
        forms.push((moved, Twist::Rot13));
    }
    forms
}
