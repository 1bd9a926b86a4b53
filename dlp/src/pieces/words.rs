//! The words of values that could be of a credential: what was cut into one value, with
//! separators, words of prose or marks of a text between. Pure; looks into so many of the
//! last bytes, and copies none.

use super::codings::is_coded_word;
use super::forms::{is_dense, is_of_chance, separates};
use super::{PieceLook, StreamEntry};
use crate::limits;
use crate::span;

/// Whether a credential of a strong form begins with these bytes.
pub(crate) type Begins<'a> = &'a dyn Fn(&[u8]) -> bool;

/// The words of entries as entries, in their order.
pub(super) fn of<'a>(entries: &[StreamEntry<'a>], begins: Begins<'_>) -> Vec<StreamEntry<'a>> {
    let mut bytes = 0_usize;
    let some = entries.iter().rev().take_while(|entry| {
        bytes = bytes.saturating_add(entry.bytes.len());
        bytes <= limits::WORDS_READ_BYTES_MAX
    });
    let from = entries.len().saturating_sub(some.count());
    let entries = span::from(entries, from);
    let mut words = Vec::new();
    for entry in entries {
        add(&mut words, entry, begins);
    }
    words
}

/// The same without the signs around words; nothing where there are none.
pub(super) fn bare<'a>(words: &[StreamEntry<'a>]) -> Vec<StreamEntry<'a>> {
    let bare = words.iter().map(|word| StreamEntry {
        bytes: trimmed(word.bytes),
        ..*word
    });
    let bare: Vec<StreamEntry<'a>> = bare.collect();
    let mut pairs = bare.iter().zip(words);
    let is_other = pairs.any(|(bare, word)| bare.bytes.len() < word.bytes.len());
    if is_other { bare } else { Vec::new() }
}

/// The same with words apart that a sign joins which credentials have as well, the likeliest
/// one or the next; nothing where there are none.
pub(super) fn apart<'a>(words: &[StreamEntry<'a>], place: usize) -> Vec<StreamEntry<'a>> {
    let mut apart: Vec<StreamEntry<'a>> = Vec::with_capacity(words.len());
    let mut is_other = false;
    for word in words {
        let signs = signs(word.bytes);
        let own = signs.get(place).copied().flatten();
        is_other |= own.is_some();
        let Some(sign) = own.or_else(|| signs.first().copied().flatten()) else {
            apart.push(*word);
            continue;
        };
        let parts = word.bytes.split(|byte| *byte == sign);
        let parts = parts.filter(|part| is_part(part));
        apart.extend(parts.map(|bytes| StreamEntry { bytes, ..*word }));
    }
    if is_other { apart } else { Vec::new() }
}

/// Signs that join words of prose to what looks like chance.
pub(super) const JOINS: [Joins; 4] = [
    Joins::Any,
    Joins::By(b'-'),
    Joins::By(b'_'),
    Joins::By(b'.'),
];

/// What joins words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    Any,
    /// This sign alone: what is joined may have others.
    By(u8),
}

impl Joins {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Any => !byte.is_ascii_alphanumeric(),
            Self::By(sign) => byte == sign,
        }
    }
}

/// The same without words of prose that a sign joins to what looks like chance, as in
/// `part-of-a8K3pQz7.txt`; nothing where there are none.
pub(super) fn cores<'a>(
    words: &[StreamEntry<'a>],
    joins: Joins,
    begins: Begins<'_>,
) -> Vec<StreamEntry<'a>> {
    let mut is_other = false;
    let cores = words.iter().map(|word| {
        let bytes = core(word.bytes, joins, begins);
        if bytes.len() == word.bytes.len() {
            return *word;
        }
        is_other = true;
        let look = look(bytes, begins);
        StreamEntry {
            bytes,
            look,
            ..*word
        }
    });
    let cores: Vec<StreamEntry<'a>> = cores.collect();
    if is_other { cores } else { Vec::new() }
}

/// A word without such words at either end. A sign at its very end is its own.
fn core<'w>(word: &'w [u8], joins: Joins, begins: Begins<'_>) -> &'w [u8] {
    let is_word = |part: &[u8]| !part.is_empty() && !is_part(part);
    let mut rest = word;
    while let Some(sign) = rest.iter().position(|byte| joins.has(*byte))
        && let Some((part, behind)) = rest.split_at_checked(sign)
        && is_word(part)
        && !begins(rest)
    {
        rest = behind.get(1..).unwrap_or_default();
    }
    while let Some(sign) = rest.iter().rposition(|byte| joins.has(*byte))
        && let Some((before, part)) = rest.split_at_checked(sign)
        && is_word(part.get(1..).unwrap_or_default())
    {
        rest = before;
    }
    if is_part(rest) { rest } else { word }
}

/// A word without the marks of emphasis around it.
fn trimmed(word: &[u8]) -> &[u8] {
    let is_other = |byte: &u8| !matches!(byte, b'*' | b'~');
    let from = word.iter().position(is_other);
    let to = word.iter().rposition(is_other);
    match (from, to) {
        (Some(from), Some(to)) => span::within(word, from..to.saturating_add(1)),
        _ => word,
    }
}

/// Adds the words of a value that are none of prose.
fn add<'a>(words: &mut Vec<StreamEntry<'a>>, entry: &StreamEntry<'a>, begins: Begins<'_>) {
    for bytes in split(entry.bytes) {
        let look = look(bytes, begins);
        if look == PieceLook::Word {
            continue;
        }
        words.push(StreamEntry {
            bytes,
            look,
            is_whole: bytes.len() == entry.bytes.len(),
            ..*entry
        });
    }
}

/// The parts of a text that are no words of prose.
pub(super) fn parts<'t>(text: &'t [u8], begins: Begins<'t>) -> impl Iterator<Item = &'t [u8]> {
    split(text).filter(move |part| look(part, begins) != PieceLook::Word)
}

/// What a word of a value looks like.
fn look(word: &[u8], begins: Begins<'_>) -> PieceLook {
    // At the beginning of a sentence as well.
    let mut rest = word.iter().skip(1);
    if rest.all(u8::is_ascii_lowercase) {
        return if is_coded_word(word) {
            PieceLook::Beginning
        } else {
            PieceLook::Word
        };
    }
    if is_part(word) {
        // Behind its beginning a token is chance.
        let mut parts = word.split(|byte| matches!(byte, b'-' | b'_'));
        let is_long = |part: &[u8]| part.len() >= limits::SIGNED_BYTES_MIN;
        let is_chance = is_of_chance(word) || parts.any(|part| is_long(part) && is_of_chance(part));
        return if is_chance {
            PieceLook::Chance
        } else {
            PieceLook::Dense
        };
    }
    // Names of forms stand in prose: what they begin is confirmed or nothing.
    if begins(word) || is_coded_word(word) {
        PieceLook::Beginning
    } else {
        PieceLook::Word
    }
}

/// Whether a word begins a credential and holds more of it than its form says.
pub(super) fn is_begun(word: &[u8], begins: Begins<'_>) -> bool {
    let tail = word.rsplit(|byte| matches!(byte, b'-' | b'_')).next();
    let is_long = tail.is_some_and(|tail| tail.len() >= limits::SIGNED_BYTES_MIN && is_dense(tail));
    is_long && begins(word)
}

fn is_part(word: &[u8]) -> bool {
    word.len() >= limits::WORD_BYTES_MIN && is_dense(word)
}

/// What stands between separators; the padding of base64 belongs to what is before it.
fn split(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let from = rest.iter().position(|byte| !separates(*byte))?;
        rest = rest.get(from..)?;
        let ends = rest.iter().position(|byte| separates(*byte));
        let end = ends.unwrap_or(rest.len());
        let padding = rest.iter().skip(end).take_while(|byte| **byte == b'=');
        let padded = end.saturating_add(padding.count());
        let goes_on = rest.get(padded).is_some_and(|byte| !separates(*byte));
        let (word, behind) = rest.split_at_checked(if goes_on { end } else { padded })?;
        rest = behind;
        // The end of a sentence is that of no credential.
        Some(word.strip_suffix(b".").unwrap_or(word))
    })
}

/// Whether there is more in a value than itself: words or parts.
pub(super) fn is_more(words: &[StreamEntry<'_>], begins: Begins<'_>) -> bool {
    let is_more = |word: &StreamEntry<'_>| {
        let [first, _] = signs(word.bytes);
        let has_core = || core(word.bytes, Joins::Any, begins).len() < word.bytes.len();
        !word.is_whole || first.is_some() || has_core()
    };
    words.iter().any(is_more)
}

/// The signs that separate several pieces in a word, the one between the most of them first.
fn signs(word: &[u8]) -> [Option<u8>; 2] {
    const SIGNS: [u8; 8] = *b"/.-_+~@#";
    let mut best: [(usize, Option<u8>); 2] = [(1, None); 2];
    if word.len() <= 2 * limits::SIGNED_BYTES_MIN {
        return [None; 2];
    }
    for sign in SIGNS.into_iter().filter(|sign| word.contains(sign)) {
        let parts = word.split(|byte| *byte == sign);
        let is_long = |part: &&[u8]| part.len() >= limits::SIGNED_BYTES_MIN && is_dense(part);
        let count = parts.filter(is_long).count();
        let [first, next] = best;
        if count > first.0 {
            best = [(count, Some(sign)), first];
        } else if count > next.0 {
            best = [first, (count, Some(sign))];
        }
    }
    best.map(|(_, sign)| sign)
}

#[cfg(test)]
mod tests {
    use super::super::{Age, PieceSource};
    use super::*;

    fn words(value: &str) -> Vec<(String, PieceLook)> {
        let entry = StreamEntry {
            source: PieceSource::Content,
            slot: 0,
            place: 0,
            bytes: value.as_bytes(),
            age: Age::New,
            look: PieceLook::Word,
            is_whole: true,
        };
        let begins = |bytes: &[u8]| bytes.starts_with(b"glpat-");
        let words = of(&[entry], &begins).into_iter();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        words.map(|word| (text(word.bytes), word.look)).collect()
    }

    #[test]
    fn words_of_prose_are_none_of_a_credential() {
        for (value, expected) in [
            (
                "begins with a8K3pQz7 and ends",
                &[("a8K3pQz7", PieceLook::Chance)][..],
            ),
            (
                "a8K3pQz7, abcdefg1 | x",
                &[
                    ("a8K3pQz7", PieceLook::Chance),
                    ("abcdefg1", PieceLook::Dense),
                ],
            ),
            (
                "as in the tag glpat- or in version17 of it",
                &[
                    ("glpat-", PieceLook::Beginning),
                    ("version17", PieceLook::Dense),
                ],
            ),
            ("Nothing in here, but 17 Words.", &[]),
            (
                "k=a8K3pQz7==; k=b8K3pQz7=",
                &[
                    ("a8K3pQz7==", PieceLook::Chance),
                    ("b8K3pQz7=", PieceLook::Chance),
                ],
            ),
            ("a8K3pQz7", &[("a8K3pQz7", PieceLook::Chance)]),
            ("a8K3pQz7==", &[("a8K3pQz7==", PieceLook::Chance)]),
            ("<p>a8K3pQz7</p>", &[("a8K3pQz7", PieceLook::Chance)]),
        ] {
            let expected: Vec<(String, PieceLook)> = expected
                .iter()
                .map(|(word, look)| ((*word).to_owned(), *look))
                .collect();
            assert_eq!(words(value), expected, "{value}");
        }
    }

    #[test]
    fn a_sign_between_several_pieces_separates_them() {
        for (word, expected) in [
            ("a8K3pQz7/b8K3pQz7", Some(b'/')),
            ("ghp_a8K3pQz7.b8K3pQz7", Some(b'.')),
            ("ghp_a8K3pQz7", None),
            ("curl/7.88.1", None),
            ("a8K3pQz7/.b8K3pQz7.c8K3pQz7", Some(b'.')),
            ("a8K3pQz7", None),
        ] {
            assert_eq!(signs(word.as_bytes())[0], expected, "{word}");
        }
    }
}
