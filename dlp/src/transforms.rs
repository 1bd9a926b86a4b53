//! The forms in which the literals of detectors are looked for: as they are, and
//! those of strong forms back to front and with letters moved as well, and long ones of
//! others back to front, which no chance makes.
//!
//! Pure, and built into the build script as well.

use crate::detector::{Anchor, Detector, Text, Tier};

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
    /// Whether chance makes no form of it: it stands back to front with a long literal.
    pub(crate) const fn is_certain(self) -> bool {
        match self {
            Self::Reversed(literal) => literal >= CERTAIN_BYTES_MIN,
            Self::None | Self::Rot13 => false,
        }
    }

    /// The bytes as they were, each with the place of the literal in them, which matches may
    /// begin so many bytes before; none where nothing was done.
    pub(crate) fn apply(
        self,
        bytes: &[u8],
        at: usize,
        (max, before): (usize, usize),
    ) -> Option<Vec<(Vec<u8>, usize)>> {
        match self {
            Self::None => None,
            Self::Reversed(length) => Some(reversed(bytes, (at, length), (max, before))),
            Self::Rot13 => {
                let end = at.saturating_add(max).saturating_add(1).min(bytes.len());
                let window = bytes.get(at..end).unwrap_or_default();
                Some(vec![(window.iter().map(|byte| rot13(*byte)).collect(), 0)])
            }
        }
    }
}

/// What stands around a literal from the last byte to the first, and, of a form that begins
/// before its literal and may have lines, each line for itself.
fn reversed(
    bytes: &[u8],
    (at, length): (usize, usize),
    (max, before): (usize, usize),
) -> Vec<(Vec<u8>, usize)> {
    let literal_end = at.saturating_add(length);
    let behind = if before > 0 { max.saturating_add(1) } else { 0 };
    let end = literal_end.saturating_add(behind).min(bytes.len());
    let start = literal_end.saturating_sub(max.saturating_add(1));
    let window = bytes.get(start..end).unwrap_or_default();
    let place = end.saturating_sub(literal_end);
    let mut made = vec![(window.iter().rev().copied().collect(), place)];
    if before > 0 && window.contains(&b'\n') {
        let (mut lines, mut place) = (Vec::with_capacity(window.len()), 0);
        for line in window.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let from = start.saturating_add(lines.len());
            let to = from.saturating_add(text.len());
            if (from..to).contains(&at) {
                let behind = to.saturating_sub(literal_end);
                place = lines.len().saturating_add(behind);
            }
            lines.extend(text.iter().rev());
            lines.extend(line.get(text.len()..).unwrap_or_default());
        }
        made.push((lines, place));
    }
    made
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

/// Shortest literal that is looked for back to front whatever its form, in bytes: as it would
/// be by chance in hardly any text.
const TURNED_BYTES_MIN: usize = 7;

/// Shortest literal of which chance makes no form back to front, in bytes.
const CERTAIN_BYTES_MIN: usize = 5;

/// The forms in which a literal of a detector is looked for.
pub(crate) fn forms(detector: &Detector, literal: &[u8]) -> Vec<(Vec<u8>, Transform)> {
    let mut forms = vec![(literal.to_vec(), Transform::None)];
    let reversed = || literal.iter().rev().copied().collect();
    let turned = Transform::Reversed(literal.len());
    if is_transformed(detector) && literal.len() >= TRANSFORMED_BYTES_MIN {
        forms.push((reversed(), turned));
        let moved: Vec<u8> = literal.iter().map(|byte| rot13(*byte)).collect();
        // Without letters it is the same, and what follows it is another's.
        if moved != literal {
            forms.push((moved, Transform::Rot13));
        }
    } else if is_turned(detector, literal) {
        forms.push((reversed(), turned));
    }
    forms
}

/// Whether a literal of a form that is not looked for with letters moved is looked for back to
/// front.
fn is_turned(detector: &Detector, literal: &[u8]) -> bool {
    detector.tier != Tier::Context
        && detector.anchor != Anchor::Scan
        && literal.len() >= TURNED_BYTES_MIN
}

/// Whether a detector has a literal that is long enough to be certain back to front.
pub(crate) fn is_certain(detector: &Detector) -> bool {
    let mut literals = detector.literals.iter();
    let is_long = |literal: &Text| {
        let is_sought = is_transformed(detector) || is_turned(detector, literal.as_bytes());
        is_sought && literal.len() >= CERTAIN_BYTES_MIN
    };
    literals.any(is_long)
}

/// Whether it is looked for in these forms too.
pub(crate) fn is_transformed(detector: &Detector) -> bool {
    detector.tier == Tier::Strong && detector.anchor == Anchor::Start
}
