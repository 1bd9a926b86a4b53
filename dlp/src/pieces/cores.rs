//! The cores of values: what is left of them without what all of them have around it, without
//! the fields at either end that vary as well, and without letters that are stuck to it. A
//! credential that was coded as a whole (RFC 4648) and cut up is read from them. Pure; what
//! cores stand for is put together only where it is a text, so that values of chance cost
//! little.

use std::borrow::Cow;

use super::ends::last_of;
use super::text::JoinedText;
use super::{Age, StreamEntry, forms};
use crate::limits;
use crate::span;

/// Fields that are taken off a value at both ends together, in count.
const FIELDS_MAX: usize = 3;

/// Values whose common ends are stuck to what they hold, in count: the last ones.
const STUCK_VALUES: usize = 3;

/// Adds what the cores of the last values of a stream are the coding of.
pub(super) fn add(text: &mut JoinedText, stream: &[StreamEntry<'_>]) {
    let Some(values) = recent(stream) else {
        return;
    };
    let whole = apart(&values);
    for front in 0..=FIELDS_MAX {
        for back in 0..=FIELDS_MAX.saturating_sub(front) {
            let has_fields = whole
                .last()
                .is_some_and(|new| core(new, front, back).is_some());
            if has_fields {
                let cores = whole.iter();
                let cores = cores.map(|value| core(value, front, back).unwrap_or_default());
                add_cores(text, &cores.collect::<Vec<_>>());
            }
        }
    }
}

/// Adds the cores of the last values as they stand, where some of them are none of the words
/// that are read otherwise: too short, or of small letters alone.
pub(super) fn add_words(text: &mut JoinedText, stream: &[StreamEntry<'_>]) {
    let Some(values) = recent(stream) else {
        return;
    };
    let whole = apart(&values);
    let is_word = |core: &&[u8]| core.len() < limits::WORD_BYTES_MIN || !forms::is_dense(core);
    let is_within = whole.last().map(|core| core.len()) < values.last().map(|all| all.len());
    if is_within && whole.iter().any(is_word) {
        let parts: Vec<Cow<'_, [u8]>> = whole.into_iter().map(Cow::Borrowed).collect();
        text.add(super::ends::last(&parts, |part| part.len()));
    }
}

/// The last values, where the last of them is new.
fn recent<'a>(stream: &[StreamEntry<'a>]) -> Option<Vec<&'a [u8]>> {
    let stream = last_of(stream, limits::JOINED_REPEATED_BYTES_MAX, |entry| {
        entry.bytes.len()
    });
    let new = stream.iter().rposition(|entry| entry.age == Age::New)?;
    let stream = span::upto(stream, new.saturating_add(1));
    let values: Vec<&[u8]> = stream.iter().map(|entry| entry.bytes).collect();
    (values.len() >= 2).then_some(values)
}

/// Values without what they begin and end with as a neighbour does, up to a sign.
fn apart<'a>(values: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let is_sign = |byte: &u8| !byte.is_ascii_alphanumeric();
    let own = values.iter().enumerate().map(|(place, value)| {
        let (mut from, mut to) = (0, 0);
        for other in forms::neighbours(values, place).filter(|other| *other != value) {
            let before = span::upto(value, forms::begin(value, other));
            let behind = forms::end(value, other);
            let behind = span::from(value, value.len().saturating_sub(behind));
            let sign = before.iter().rposition(is_sign);
            from = from.max(sign.map_or(0, |sign| sign.saturating_add(1)));
            let sign = behind.iter().position(is_sign);
            to = to.max(sign.map_or(0, |sign| behind.len().saturating_sub(sign)));
        }
        value
            .get(from..value.len().saturating_sub(to))
            .unwrap_or_default()
    });
    own.collect()
}

/// A value without so many fields at either end, and without what is around it; nothing where
/// it has no more than that.
fn core(value: &[u8], front: usize, back: usize) -> Option<&[u8]> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
    let mut rest = value;
    for _ in 0..front {
        let from = rest.iter().position(is_letter)?;
        let field = span::from(rest, from);
        let end = field.iter().position(|byte| !is_letter(byte))?;
        rest = span::from(field, end.saturating_add(1));
    }
    for _ in 0..back {
        let to = rest.iter().rposition(is_letter)?.saturating_add(1);
        let field = span::upto(rest, to);
        let end = field.iter().rposition(|byte| !is_letter(byte))?;
        rest = span::upto(field, end);
    }
    let is_symbol = |byte: &u8| Radix::Base64.number(*byte).is_some();
    let from = rest.iter().position(is_symbol)?;
    let to = rest.iter().rposition(is_symbol)?;
    rest.get(from..=to)
}

/// Adds what cores stand for, as they are and without what is stuck to the last of them.
fn add_cores(text: &mut JoinedText, cores: &[&[u8]]) {
    add_coded(text, cores, (0, 0));
    let from = cores.len().saturating_sub(STUCK_VALUES);
    let some = span::from(cores, from);
    let Some((new, others)) = some.split_last() else {
        return;
    };
    let shared = |count: fn(&[u8], &[u8]) -> usize| {
        let counts = others.iter().map(|other| count(new, other));
        counts.min().unwrap_or_default()
    };
    let (begin, end) = (shared(forms::begin), shared(forms::end));
    // By chance a letter more is the same.
    for begin in begin.saturating_sub(1)..=begin {
        for end in end.saturating_sub(1)..=end {
            if begin > 0 || end > 0 {
                add_coded(text, cores, (begin, end));
            }
        }
    }
}

/// Adds what cores stand for without so many letters at either end, by each coding in which
/// the last one is of a text.
fn add_coded(text: &mut JoinedText, cores: &[&[u8]], (begin, end): (usize, usize)) {
    let stuck = cores.last().copied().unwrap_or_default();
    let before = span::upto(stuck, begin);
    let behind = span::from(stuck, stuck.len().saturating_sub(end));
    let bare = |core| {
        let piece = <[u8]>::strip_prefix(core, before)?.strip_suffix(behind)?;
        // What fills a coding up says nothing.
        let end = piece.iter().rposition(|byte| *byte != b'=');
        Some(span::upto(
            piece,
            end.map_or(0, |end| end.saturating_add(1)),
        ))
    };
    let mut pieces: Vec<&[u8]> = Vec::new();
    let mut bytes = 0_usize;
    for core in cores.iter().rev() {
        let Some(piece) = bare(core) else {
            break;
        };
        bytes = bytes.saturating_add(piece.len());
        if piece.is_empty() || bytes > limits::JOINED_FORMS_BYTES_MAX {
            break;
        }
        pieces.push(piece);
    }
    pieces.reverse();
    let Some(new) = pieces.last().filter(|_| pieces.len() >= 2) else {
        return;
    };
    for radix in RADICES {
        if radix.may_be_text(new) {
            let of_radix = |piece: &&&[u8]| piece.iter().all(|byte| radix.number(*byte).is_some());
            let count = pieces.iter().rev().take_while(of_radix).count();
            let from = pieces.len().saturating_sub(count);
            radix.add(text, span::from(&pieces, from));
        }
    }
}

/// A coding of bytes in symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Radix {
    Hex,
    /// In capitals and in small letters.
    Base32,
    /// In either alphabet.
    Base64,
}

const RADICES: [Radix; 3] = [Radix::Hex, Radix::Base32, Radix::Base64];

impl Radix {
    const fn bits(self) -> usize {
        match self {
            Self::Hex => 4,
            Self::Base32 => 5,
            Self::Base64 => 6,
        }
    }

    /// In how many symbols whole bytes are, so that a stream may begin at any of them.
    const fn phases(self) -> usize {
        match self {
            Self::Hex => 2,
            Self::Base32 => 8,
            Self::Base64 => 4,
        }
    }

    /// What a symbol stands for.
    fn number(self, byte: u8) -> Option<u8> {
        let from = |first: u8, number: u8| Some(byte.wrapping_sub(first).wrapping_add(number));
        match (self, byte) {
            (Self::Hex, b'0'..=b'9') => from(b'0', 0),
            (Self::Hex, b'a'..=b'f') => from(b'a', 10),
            (Self::Hex, b'A'..=b'F') => from(b'A', 10),
            (Self::Base32 | Self::Base64, b'A'..=b'Z') => from(b'A', 0),
            (Self::Base32, b'a'..=b'z') => from(b'a', 0),
            (Self::Base32, b'2'..=b'7') => from(b'2', 26),
            (Self::Base64, b'a'..=b'z') => from(b'a', 26),
            (Self::Base64, b'0'..=b'9') => from(b'0', 52),
            (Self::Base64, b'+' | b'-') => Some(62),
            (Self::Base64, b'/' | b'_') => Some(63),
            _ => None,
        }
    }

    /// Whether a piece is one of a text, wherever in a group it begins.
    fn may_be_text(self, piece: &[u8]) -> bool {
        let is_text = |phase: usize| {
            let mut reader = BitReader::default();
            for (place, byte) in piece.iter().enumerate() {
                let Some(number) = self.number(*byte) else {
                    return false;
                };
                let made = (place >= phase).then(|| reader.push(number, self.bits()));
                if made.flatten().is_some_and(|made| !is_text(made)) {
                    return false;
                }
            }
            true
        };
        (0..self.phases()).any(is_text)
    }

    /// Adds the text for which pieces stand, from each place of a group on, where it goes on
    /// from one to the next.
    fn add(self, text: &mut JoinedText, pieces: &[&[u8]]) {
        let all = pieces.concat();
        for phase in 0..self.phases() {
            let mut reader = BitReader::default();
            let symbols = all.iter().skip(phase);
            let numbers = symbols.filter_map(|byte| self.number(*byte));
            let made: Vec<u8> = numbers
                .filter_map(|number| reader.push(number, self.bits()))
                .collect();
            let (from, to) = longest(&made);
            if to.saturating_sub(from) < limits::JOINED_BYTES_MIN {
                continue;
            }
            let mut ends: Vec<usize> = Vec::new();
            let mut symbols = 0_usize;
            for piece in pieces {
                symbols = symbols.saturating_add(piece.len());
                let end = symbols.saturating_sub(phase).saturating_mul(self.bits()) / 8;
                if (from.saturating_add(1)..to).contains(&end) && ends.last() != Some(&end) {
                    ends.push(end);
                }
            }
            ends.push(to);
            let mut start = from;
            let parts = ends.into_iter().map(|end| {
                let part = made.get(start..end).unwrap_or_default();
                start = end;
                Cow::Borrowed(part)
            });
            text.add(&parts.collect::<Vec<_>>());
        }
    }
}

/// Puts the bits of symbols together to bytes.
#[derive(Default)]
struct BitReader {
    rest: u16,
    filled: usize,
}

impl BitReader {
    /// The byte that is full with this symbol.
    fn push(&mut self, number: u8, bits: usize) -> Option<u8> {
        self.rest = (self.rest & 0xff) << bits | u16::from(number);
        self.filled = self.filled.saturating_add(bits);
        let left = self.filled.checked_sub(8)?;
        self.filled = left;
        let [_, byte] = (self.rest >> left).to_be_bytes();
        Some(byte)
    }
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Where in bytes the longest text is.
fn longest(bytes: &[u8]) -> (usize, usize) {
    let (mut best, mut from) = ((0_usize, 0_usize), 0_usize);
    for (place, byte) in bytes.iter().enumerate() {
        let next = place.saturating_add(1);
        if !is_text(*byte) {
            from = next;
        } else if next.saturating_sub(from) > best.1.saturating_sub(best.0) {
            best = (from, next);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::{PieceLook, PieceSource};
    use super::*;

    fn stream<'a>(values: &[&'a [u8]]) -> Vec<StreamEntry<'a>> {
        let places = (0..).zip(values);
        let entries = places.map(|(place, bytes)| StreamEntry {
            source: PieceSource::Query,
            slot: 0,
            place,
            bytes,
            age: if place + 1 == values.len() as u64 {
                Age::New
            } else {
                Age::Old
            },
            look: PieceLook::Dense,
            is_whole: true,
        });
        entries.collect()
    }

    fn coded(values: &[&str]) -> String {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let mut text = JoinedText::default();
        add(&mut text, &stream(&values));
        String::from_utf8(text.bytes).unwrap()
    }

    #[test]
    fn a_core_is_a_value_without_fields_at_its_ends() {
        for (value, front, back, expected) in [
            ("\"a8K3pQz7\"", 0, 0, Some("a8K3pQz7")),
            ("<-a8K3pQz7_>", 0, 0, Some("-a8K3pQz7_")),
            ("a8K3pQz7-1f3a-4c2b", 0, 2, Some("a8K3pQz7")),
            ("12:30 a8K3+pQz7", 2, 0, Some("a8K3+pQz7")),
            ("https://x.org/a8K3pQz7", 3, 0, Some("a8K3pQz7")),
            ("a8K3pQz7", 1, 0, None),
            ("a8K3pQz7", 0, 1, None),
            ("a.b", 1, 1, None),
            ("..", 0, 0, None),
            ("", 0, 0, None),
        ] {
            let core = core(value.as_bytes(), front, back);
            assert_eq!(core, expected.map(str::as_bytes), "{value} {front} {back}");
        }
    }

    #[test]
    fn what_cores_are_the_coding_of_is_put_together() {
        for values in [
            // "a text that was coded", in base 16, 64 and 32.
            &[
                "xx612074657874yy",
                "xx20746861742077yy",
                "xx617320636f646564yy",
            ][..],
            &["v1.YSB0ZXh0.x", "v1.IHRoYXQgd2F.x", "v1.zIGNvZGVk.x"],
            &[
                "7-MEQHIZLYOQQ.9",
                "12-HI2DBOQQHO.17",
                "3-YLTEBRW6.8",
                "4-ZDFMQ.1",
            ],
        ] {
            let text = coded(values);
            assert!(
                text.contains("a text that was coded"),
                "{values:?}: {text:?}"
            );
        }
        for values in [
            &[
                "6c020136-41ac-4b52-9f1f-c465fdd9b25a",
                "0f8fad5b-d9cb-469f-a165-70867728950e",
            ][..],
            &["page=1", "page=2", "page=3"],
            &["2026-01-01T12:30:41Z", "2026-01-01T12:31:02Z"],
            &["a text that is none", "another text that is none"],
        ] {
            assert_eq!(coded(values), "", "{values:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(values in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40), 0..6)) {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            let (mut text, mut words) = (JoinedText::default(), JoinedText::default());
            add(&mut text, &stream(&values));
            add_words(&mut words, &stream(&values));
            for front in 0..4 {
                for back in 0..4 {
                    for value in &values {
                        let core = core(value, front, back).unwrap_or_default();
                        proptest::prop_assert!(core.len() <= value.len());
                    }
                }
            }
        }
    }
}
