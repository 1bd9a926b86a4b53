//! Several streams of pieces in one buffer that is scanned as a whole, and what is found in
//! it is judged as. Pure; bounded in bytes.

use std::borrow::Cow;

use super::{Age, StreamEntry};
use crate::limits;

/// Between two texts: in no credential and in no run.
const BORDER: &[u8] = b"\x01\n";

/// What a text is judged as, and how far it is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// As what stands in the head of a message, through all codings.
    Head,
    /// The same as it is written alone.
    HeadAsWritten,
    /// The same, of values without what was taken out of them: nothing that looks like what
    /// stands in one of them.
    HeadWoven,
    /// The same, of pieces in an order that somebody may have chosen, or nobody.
    HeadReordered,
    /// As what stands in content, through all codings.
    Content,
    /// The same as it is written alone.
    ContentAsWritten,
    /// The same, of values without what was taken out of them.
    ContentWoven,
    /// The same, of pieces in an order that somebody may have chosen, or nobody.
    ContentReordered,
}

/// Several streams in one buffer, with the places where a piece ends and the next begins.
#[derive(Default)]
pub(crate) struct JoinedText {
    pub(crate) bytes: Vec<u8>,
    pub(crate) borders: Vec<u64>,
    /// The streams that are in it, by the places of their first and last byte.
    spans: Vec<(usize, usize)>,
}

impl JoinedText {
    /// Adds of a stream what counts with its new pieces, where there are some.
    pub(super) fn add_new(&mut self, stream: &[StreamEntry<'_>]) {
        if stream.iter().any(|entry| entry.age == Age::New) {
            self.add(&super::forms::pieces(super::ends::latest(stream)));
        }
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len().saturating_add(bytes) <= limits::JOINED_BYTES_MAX
    }

    /// Adds a stream of pieces, unless it is there already or could not hold anything that
    /// one piece alone does not.
    pub(super) fn add(&mut self, pieces: &[Cow<'_, [u8]>]) {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if pieces.len() < 2 || bytes < limits::JOINED_BYTES_MIN || !self.has_room(bytes) {
            return;
        }
        let start = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let (before, new) = self.bytes.split_at(start);
        let spans = &self.spans;
        let is_known = |span: &(usize, usize)| before.get(span.0..span.1) == Some(new);
        if spans.iter().any(is_known) {
            self.bytes.truncate(start);
            return;
        }
        let mut place = start;
        self.borders.push(crate::budget::wide(place));
        for piece in pieces {
            place = place.saturating_add(piece.len());
            self.borders.push(crate::budget::wide(place));
        }
        self.spans.push((start, place));
        self.bytes.extend_from_slice(BORDER);
    }

    /// Adds the streams of another text that are not there, as far as there is room.
    pub(super) fn append(&mut self, other: &Self) {
        for (start, end) in &other.spans {
            let within = |border: &&u64| {
                let (from, to) = (crate::budget::wide(*start), crate::budget::wide(*end));
                (from..=to).contains(*border)
            };
            let borders = other.borders.iter().filter(within);
            let borders: Vec<usize> = borders
                .filter_map(|border| usize::try_from(*border).ok())
                .collect();
            let pairs = borders.iter().zip(borders.iter().skip(1));
            let pieces = pairs.filter_map(|(from, to)| other.bytes.get(*from..*to));
            let pieces: Vec<Cow<'_, [u8]>> = pieces.map(Cow::Borrowed).collect();
            self.add(&pieces);
        }
    }

    /// The piece in which this place of the text lies, and where in it.
    pub(crate) fn piece(&self, place: u64) -> Option<(&[u8], u64)> {
        let next = self.borders.partition_point(|border| *border <= place);
        let start = *self.borders.get(next.checked_sub(1)?)?;
        let end = *self.borders.get(next)?;
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        Some((self.bytes.get(range)?, place.saturating_sub(start)))
    }
}
