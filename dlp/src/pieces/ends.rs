//! The ends of streams: as much of them as counts.

use super::{Age, StreamEntry};
use crate::limits;
use crate::span;

/// Of a stream all that is new, and before it as much as counts.
pub(super) fn latest<'a, 'b>(stream: &'a [StreamEntry<'b>]) -> &'a [StreamEntry<'b>] {
    let new = stream.iter().position(|entry| entry.age == Age::New);
    let mut from = new.unwrap_or(stream.len());
    let mut bytes = 0_usize;
    while let Some(before) = from.checked_sub(1) {
        bytes = bytes.saturating_add(stream.get(before).map_or(0, |entry| entry.bytes.len()));
        if bytes > limits::WINDOW_BYTES_MAX {
            break;
        }
        from = before;
    }
    span::from(stream, from)
}

/// Of pieces the last, as many as a credential may be cut into.
pub(super) fn last<T>(pieces: &[T], length: impl Fn(&T) -> usize) -> &[T] {
    last_of(pieces, limits::JOINED_FORMS_BYTES_MAX, length)
}

/// Of pieces the last of so many bytes.
pub(super) fn last_of<T>(pieces: &[T], most: usize, length: impl Fn(&T) -> usize) -> &[T] {
    let mut bytes = 0_usize;
    let some = pieces.iter().rev().take_while(|piece| {
        bytes = bytes.saturating_add(length(piece));
        bytes <= most
    });
    let from = pieces.len().saturating_sub(some.count());
    span::from(pieces, from)
}
