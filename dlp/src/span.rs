//! Places in streams, layers and buffers. A place that is not where the scan's own books
//! have it makes content unscannable: never empty, and never content in which nothing was
//! found. Tests and fuzzers stop at it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A length as a count.
pub(crate) fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A difference of offsets as a length.
pub(crate) fn narrow(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// A place is not where it was said to be: a fault of the scan, not of what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misplaced;

/// A place in a stream, a layer or a run: so many bytes or symbols behind its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offset(pub(crate) u64);

impl Offset {
    /// Where it lies in a buffer of `length` that begins at `base`. Its end lies in it.
    ///
    /// # Errors
    /// It lies before or behind the buffer.
    pub(crate) fn within(self, base: u64, length: usize) -> Result<usize, Misplaced> {
        let place = self.0.checked_sub(base).ok_or(Misplaced)?;
        let place = usize::try_from(place).map_err(|_| Misplaced)?;
        if place > length {
            return Err(Misplaced);
        }
        Ok(place)
    }
}

/// What lies from one offset up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    from: Offset,
    to: Offset,
}

impl Span {
    /// What lies in `from..to`.
    pub(crate) fn new(from: u64, to: u64) -> Self {
        Self {
            from: Offset(from),
            to: Offset(to),
        }
    }

    /// The places of a buffer of `length` that begins at `base`.
    ///
    /// # Errors
    /// Some of it is not there, or it ends before it begins.
    pub(crate) fn places(self, base: u64, length: usize) -> Result<Range<usize>, Misplaced> {
        let from = self.from.within(base, length)?;
        let to = self.to.within(base, length)?;
        if from > to {
            return Err(Misplaced);
        }
        Ok(from..to)
    }

    /// The same of a buffer that begins at `base`.
    ///
    /// # Errors
    /// Some of it is not there, or it ends before it begins.
    pub(crate) fn of<T>(self, buffer: &[T], base: u64) -> Result<&[T], Misplaced> {
        let places = self.places(base, buffer.len())?;
        buffer.get(places).ok_or(Misplaced)
    }

    /// As much of it as is there: for looks at what stands around something.
    pub(crate) fn around<T>(self, buffer: &[T], base: u64) -> &[T] {
        let end = base.saturating_add(wide(buffer.len()));
        let from = self.from.0.clamp(base, end);
        let to = self.to.0.clamp(from, end);
        Self::new(from, to).of(buffer, base).unwrap_or_default()
    }
}

/// Whether a place was lost. Set by whoever looks for one, and read by whoever says what
/// may leave.
#[derive(Debug, Default)]
pub(crate) struct Lost(AtomicBool);

impl Lost {
    /// What was looked for, or nothing, and that it was lost.
    #[track_caller]
    pub(crate) fn found<T: Default>(&self, place: Result<T, Misplaced>) -> T {
        place.unwrap_or_else(|Misplaced| {
            self.set();
            T::default()
        })
    }

    /// A place was lost.
    #[track_caller]
    pub(crate) fn set(&self) {
        debug_assert!(false, "the scan lost its place");
        self.0.store(true, Ordering::Relaxed);
    }

    /// The same, for tests of what follows.
    #[cfg(test)]
    pub(crate) fn pretend(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes over what was lost elsewhere; whether one was.
    pub(crate) fn join(&self, other: &Self) -> bool {
        self.0.fetch_or(other.is_set(), Ordering::Relaxed) | other.is_set()
    }

    /// Whether one was.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What stands from `at` on, which was seen in it.
#[track_caller]
pub fn from<T>(items: &[T], at: usize) -> &[T] {
    within(items, at..items.len().max(at))
}

/// The first so many, which were seen in it.
#[track_caller]
pub fn upto<T>(items: &[T], count: usize) -> &[T] {
    within(items, 0..count)
}

/// What stands at these places, which were seen in it.
#[track_caller]
pub fn within<T>(items: &[T], places: Range<usize>) -> &[T] {
    let part = items.get(places);
    debug_assert!(part.is_some(), "places of something else");
    part.unwrap_or_default()
}

/// The entry of a table at this place, which it has.
#[track_caller]
pub fn entry<T: Copy + Default>(table: &[T], place: usize) -> T {
    let entry = table.get(place);
    debug_assert!(entry.is_some(), "a place of another table");
    entry.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_a_buffer_is_misplaced_and_not_empty() {
        let buffer = b"abcdef";
        let rows: [(u64, u64, bool, &[u8]); 9] = [
            (10, 16, true, b"abcdef"),
            (12, 14, true, b"cd"),
            (10, 10, true, b""),
            (16, 16, true, b""),
            (9, 12, false, b"ab"),
            (12, 17, false, b"cdef"),
            (14, 12, false, b""),
            (0, u64::MAX, false, b"abcdef"),
            (u64::MAX, 0, false, b""),
        ];
        for (from, to, is_there, around) in rows {
            let span = Span::new(from, to);
            assert_eq!(
                span.of(buffer, 10).ok(),
                is_there.then_some(around),
                "{from}..{to}"
            );
            assert_eq!(span.around(buffer, 10), around, "{from}..{to}");
        }
        let lost = Lost::default();
        assert_eq!(lost.found(Span::new(12, 14).of(buffer, 10)), b"cd");
        assert!(!lost.is_set());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the scan lost its place"))]
    fn what_is_misplaced_is_noticed() {
        let lost = Lost::default();
        assert_eq!(lost.found(Span::new(12, 17).of(b"abcdef", 10)), b"");
        assert!(lost.is_set());
    }
}
