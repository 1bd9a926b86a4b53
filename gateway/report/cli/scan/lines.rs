//! From offsets to lines and columns, while a stream passes.
//!
//! Remembers the last line ends only: a finding is told soon after its bytes
//! have passed, and one that is told later has an offset instead of a line.

use std::collections::VecDeque;

/// Line ends that are remembered.
const ENDS_MAX: usize = 1 << 18;

/// The line ends of a stream so far.
#[derive(Default)]
pub(crate) struct Lines {
    ends: VecDeque<u64>,
    /// Line ends before those that are remembered.
    before: u64,
    /// Where the first line begins that can still be told.
    first: u64,
    passed: u64,
}

impl Lines {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for (position, byte) in bytes.iter().enumerate() {
            if *byte != b'\n' {
                continue;
            }
            let position = u64::try_from(position).unwrap_or(u64::MAX);
            self.ends.push_back(self.passed.saturating_add(position));
            if self.ends.len() > ENDS_MAX
                && let Some(end) = self.ends.pop_front()
            {
                self.before = self.before.saturating_add(1);
                self.first = end.saturating_add(1);
            }
        }
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.passed = self.passed.saturating_add(count);
    }

    /// Line and column of an offset, both from 1.
    pub(crate) fn place(&self, offset: u64) -> Option<(u64, u64)> {
        if offset < self.first || offset > self.passed {
            return None;
        }
        let above = self.ends.partition_point(|end| *end < offset);
        let begin = match above.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(end) => end.saturating_add(1),
            None => self.first,
        };
        let line = u64::try_from(above)
            .ok()?
            .saturating_add(self.before)
            .saturating_add(1);
        Some((line, offset.saturating_sub(begin).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::{ENDS_MAX, Lines};

    #[test]
    fn offsets_become_lines_however_the_bytes_came() {
        let text = b"one\ntwo\n\nfour";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            for chunk in text.chunks(size) {
                lines.push(chunk);
            }
            for (offset, place) in [
                (0, (1, 1)),
                (2, (1, 3)),
                (3, (1, 4)),
                (4, (2, 1)),
                (8, (3, 1)),
                (9, (4, 1)),
                (12, (4, 4)),
            ] {
                assert_eq!(
                    lines.place(offset),
                    Some(place),
                    "{offset} in pieces of {size}"
                );
            }
            assert_eq!(lines.place(99), None);
        }
    }

    #[test]
    fn what_is_long_past_has_no_line() {
        let mut lines = Lines::default();
        let many = vec![b'\n'; ENDS_MAX + 10];
        lines.push(&many);
        lines.push(b"end");
        assert_eq!(lines.place(3), None);
        let last = u64::try_from(ENDS_MAX + 10).expect("a number");
        assert_eq!(lines.place(last + 1), Some((last + 1, 2)));
    }
}
