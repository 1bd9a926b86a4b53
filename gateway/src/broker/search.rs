//! Looks for a set of texts in bytes that come in pieces. What may be the
//! beginning of one at the end of a piece is held back until it is certain.
//! Knows neither secrets nor messages.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use outgate_dlp::span;

/// A set of texts to look for.
#[derive(Debug)]
pub(super) struct TextSearch {
    needles: Vec<Vec<u8>>,
    automaton: AhoCorasick,
    /// The bytes with which one of them begins.
    first: [bool; 256],
    longest: usize,
}

/// One found: which, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchHit {
    pub(super) index: usize,
    pub(super) range: Range<usize>,
}

impl TextSearch {
    /// Of those that begin at the same place the longest is found.
    ///
    /// # Errors
    /// More text than an automaton can hold.
    pub(super) fn new(needles: Vec<Vec<u8>>) -> Result<Self, String> {
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&needles)
            .map_err(|error| error.to_string())?;
        let mut first = [false; 256];
        for byte in needles.iter().filter_map(|needle| needle.first()) {
            if let Some(slot) = first.get_mut(usize::from(*byte)) {
                *slot = true;
            }
        }
        let longest = needles.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Self {
            needles,
            automaton,
            first,
            longest,
        })
    }

    /// What is looked for.
    pub(super) fn needles(&self) -> impl Iterator<Item = &[u8]> {
        self.needles.iter().map(Vec::as_slice)
    }

    /// The first one at or behind `from`.
    pub(super) fn find(&self, bytes: &[u8], from: usize) -> Option<SearchHit> {
        let input = Input::new(bytes).range(from.min(bytes.len())..);
        let found = self.automaton.find(input)?;
        Some(SearchHit {
            index: found.pattern().as_usize(),
            range: found.range(),
        })
    }

    /// Where the end of these bytes may be the beginning of one; their length
    /// where it cannot.
    pub(super) fn undecided(&self, bytes: &[u8], from: usize) -> usize {
        let reach = self.longest.saturating_sub(1);
        let start = bytes.len().saturating_sub(reach).max(from);
        (start..bytes.len())
            .find(|at| {
                let rest = span::from(bytes, *at);
                let begins = rest
                    .first()
                    .and_then(|byte| self.first.get(usize::from(*byte)));
                begins == Some(&true)
                    && self
                        .needles
                        .iter()
                        .any(|needle| needle.len() > rest.len() && needle.starts_with(rest))
            })
            .unwrap_or(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(needles: &[&str]) -> TextSearch {
        let needles = needles.iter().map(|needle| needle.as_bytes().to_vec());
        TextSearch::new(needles.collect()).unwrap()
    }

    #[test]
    fn only_what_may_go_on_is_undecided() {
        let search = search(&["secret", "recipe"]);
        for (text, at) in [
            ("", 0),
            ("abc", 3),
            ("abcs", 3),
            ("abcsecre", 3),
            ("abcsecreX", 9),
            ("secsec", 3),
            ("sere", 2),
            ("secret", 6),
        ] {
            assert_eq!(search.undecided(text.as_bytes(), 0), at, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn pieces_hold_what_the_whole_holds(
            text in "[abc]{0,60}",
            cuts in proptest::collection::vec(1_usize..9, 1..60),
        ) {
            let search = search(&["abca", "bb", "cabcab", "aa"]);
            let whole: Vec<usize> = {
                let (mut at, mut found) = (0, Vec::new());
                while let Some(hit) = search.find(text.as_bytes(), at) {
                    at = hit.range.end;
                    found.push(hit.index);
                }
                found
            };
            let (mut carry, mut found) = (Vec::new(), Vec::new());
            let (mut rest, mut cuts) = (text.as_bytes(), cuts.into_iter().cycle());
            loop {
                let cut = cuts.next().unwrap().min(rest.len());
                carry.extend_from_slice(&rest[..cut]);
                rest = &rest[cut..];
                let mut at = 0;
                loop {
                    let sure = if rest.is_empty() { carry.len() } else { search.undecided(&carry, at) };
                    match search.find(&carry, at) {
                        // A match that may still become a longer one waits.
                        Some(hit) if hit.range.start < sure => {
                            at = hit.range.end;
                            found.push(hit.index);
                        }
                        _ => {
                            carry.drain(..sure.max(at));
                            break;
                        }
                    }
                }
                if rest.is_empty() {
                    break;
                }
            }
            proptest::prop_assert_eq!(found, whole);
        }
    }
}
