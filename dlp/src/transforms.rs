//! The forms in which the literals of detectors are looked for: as they are, and
//! those of strong forms back to front and with letters moved as well.
//!
//! Pure, and built into the build script as well.

use crate::detector::{Anchor, Detector, Tier};

/// What was done to bytes so that they are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    /// Nothing.
    None,
    /// They stand back to front, after a literal of this length.
    Reversed(usize),
    /// Letters are moved by thirteen.
    Rot13,
}

impl Transform {
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
}

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' | b'A'..=b'M' => byte.wrapping_add(13),
        b'n'..=b'z' | b'N'..=b'Z' => byte.wrapping_sub(13),
        other => other,
    }
}

/// Shortest literal that is looked for transformed, in bytes.
const TRANSFORMED_BYTES_MIN: usize = 4;

/// The forms in which a literal of a detector is looked for.
pub(crate) fn forms(detector: &Detector, literal: &[u8]) -> Vec<(Vec<u8>, Transform)> {
    let mut forms = vec![(literal.to_vec(), Transform::None)];
    if is_transformed(detector) && literal.len() >= TRANSFORMED_BYTES_MIN {
        let reversed: Vec<u8> = literal.iter().rev().copied().collect();
        forms.push((reversed, Transform::Reversed(literal.len())));
        let moved: Vec<u8> = literal.iter().map(|byte| rot13(*byte)).collect();
        // Without letters it is the same, and what follows it is another's.
        if moved != literal {
            forms.push((moved, Transform::Rot13));
        }
    }
    forms
}

/// Whether it is looked for in these forms too.
pub(crate) fn is_transformed(detector: &Detector) -> bool {
    detector.tier == Tier::Strong && detector.anchor == Anchor::Start
}
