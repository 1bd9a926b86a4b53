//! What may stand beside a match: nothing of a word, a short one, or anything. Looks at a
//! window and knows no patterns.

use std::ops::Range;

use super::{Borders, DetectorRule};
use crate::detector::Boundary;
use crate::limits;
use crate::span;

impl DetectorRule {
    pub(super) fn stands_alone(
        &self,
        window: &[u8],
        found: &Range<usize>,
        borders: Borders<'_>,
    ) -> bool {
        let behind = span::from(window, found.end);
        let may_end = match self.detector.boundary {
            _ if borders.has(found.end) => true,
            Boundary::None | Boundary::Before => true,
            Boundary::Word => !is_word(behind.first()),
            Boundary::Near => {
                let before = letters_before(window, found.start);
                let before = if borders.has(found.start) { 0 } else { before };
                let after = letters(behind.iter());
                // Of what stands in long words by chance, pieces hold more than one value
                // does: who cuts a credential up begins or ends with a piece of it.
                let is_chance = borders.are_some() && before > 0 && after > 0;
                !is_chance && before.saturating_add(after) <= limits::NEAR_BYTES_MAX
            }
        };
        may_end && self.may_begin(window, found.start, borders)
    }

    /// How many bytes behind its longest match tell whether it stands alone.
    pub(crate) fn behind(&self) -> usize {
        match self.detector.boundary {
            Boundary::None | Boundary::Before => 0,
            Boundary::Word => 1,
            Boundary::Near => limits::NEAR_BYTES_MAX + 1,
        }
    }

    /// Whether a match may stand behind what stands before `start`.
    pub(super) fn may_begin(&self, window: &[u8], start: usize, borders: Borders<'_>) -> bool {
        let is_short = || letters_before(window, start) <= limits::NEAR_BYTES_MAX;
        match self.detector.boundary {
            Boundary::None => return true,
            _ if borders.has(start) => return true,
            Boundary::Near if is_short() => return true,
            Boundary::Near | Boundary::Before | Boundary::Word => {}
        }
        let before = start.checked_sub(1).and_then(|place| window.get(place));
        let escape = start.checked_sub(2).and_then(|place| window.get(place));
        // `\n` before a credential in a document is the end of a line, not a letter.
        let is_escaped = escape == Some(&b'\\')
            && before.is_some_and(|byte| matches!(byte, b'n' | b'r' | b't' | b'f' | b'b'));
        !is_word(before) || is_escaped
    }
}

fn letters_before(window: &[u8], start: usize) -> usize {
    letters(span::upto(window, start).iter().rev())
}

/// How many letters a word has that stands beside a match, from it on, with what base 64
/// takes for letters; no more than tell that they are too many.
fn letters<'a>(beside: impl Iterator<Item = &'a u8> + Clone) -> usize {
    if !is_word(beside.clone().next()) {
        return 0;
    }
    let is_one = |byte: &&u8| is_word(Some(byte)) || matches!(byte, b'+' | b'-');
    let few = beside.take(limits::NEAR_BYTES_MAX + 1);
    few.take_while(is_one).count()
}

/// A letter, a digit or an underscore.
fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
