//! Text with `*` for any run of bytes, as a value of a query or a segment of a path has it.
//! Matching alone; knows no path, no query and no rule.

use crate::fold::fold_case;
use crate::path::unescape;
use crate::unnamed;

/// Text with `*` for any run of bytes: the literal parts between the stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Vec<u8>>,
}

impl Glob {
    /// Splits at raw stars, then decodes, so that `%2A` is a star itself.
    pub(crate) fn decoded(text: &str) -> Self {
        Self {
            parts: text
                .split('*')
                .map(|part| unescape(part.as_bytes()))
                .collect(),
        }
    }

    /// Splits at raw stars; there are no escapes.
    pub(crate) fn raw(text: &str) -> Self {
        Self {
            parts: text
                .split('*')
                .map(|part| part.as_bytes().to_vec())
                .collect(),
        }
    }

    /// Whether it has no star.
    pub(crate) fn is_literal(&self) -> bool {
        self.parts.len() == 1
    }

    pub(crate) fn folded(&self) -> Self {
        Self {
            parts: self.parts.iter().map(|part| fold_case(part)).collect(),
        }
    }

    /// What stands before the first such byte; `None` if there is none.
    pub(crate) fn up_to(&self, ends: impl Fn(u8) -> bool) -> Option<Self> {
        let find = |part: &Vec<u8>| part.iter().position(|byte| ends(*byte));
        let (index, at) = self
            .parts
            .iter()
            .enumerate()
            .find_map(|(index, part)| Some((index, find(part)?)))?;
        let mut parts: Vec<Vec<u8>> = self.parts.iter().take(index + 1).cloned().collect();
        parts.last_mut()?.truncate(at);
        Some(Self { parts })
    }

    pub(crate) fn holds(&self, byte: u8) -> bool {
        self.parts.iter().any(|part| part.contains(&byte))
    }

    /// The same without an ending that servers complete names with; `None` where there is
    /// none, and where nothing but the ending is named.
    pub(crate) fn without_ending(&self) -> Option<Self> {
        let mut parts = self.parts.clone();
        let last = parts.last_mut()?;
        if let Some(dot) = unnamed::ending(last) {
            last.truncate(dot);
        } else if last.is_empty() && parts.len() > 1 {
            // `name.*` is about all endings.
            parts.pop();
            let before = parts.last_mut()?;
            before.pop_if(|byte| *byte == b'.')?;
        } else {
            return None;
        }
        let is_named = parts.iter().flatten().any(|byte| *byte != b'.');
        is_named.then_some(Self { parts })
    }

    /// Whether it matches everything.
    pub(crate) fn is_star(&self) -> bool {
        self.parts.len() > 1 && self.parts.iter().all(Vec::is_empty)
    }

    /// Whether everything that it matches is matched by another: true only where that is
    /// plain.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        // What no glob names stands for whatever its stars stand for.
        let is_free = |byte: &u8| !self.holds(*byte) && !other.holds(*byte);
        let free = (0..=u8::MAX).find(is_free);
        free.is_some_and(|free| other.matches(&self.parts.join(&free)))
    }

    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = self.parts.split_first() else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return text == first.as_slice();
        };
        let Some(mut text) = text
            .strip_prefix(first.as_slice())
            .and_then(|text| text.strip_suffix(last.as_slice()))
        else {
            return false;
        };
        for part in middle.iter().filter(|part| !part.is_empty()) {
            let found = text.windows(part.len()).position(|w| w == part.as_slice());
            let Some(after) = found.and_then(|at| text.get(at + part.len()..)) else {
                return false;
            };
            text = after;
        }
        true
    }
}
