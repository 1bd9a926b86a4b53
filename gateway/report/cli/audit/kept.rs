//! The last lines of many, until all were read: no more than somebody asked for,
//! and no more bytes than a bound, whoever wrote the lines. Pure.

use std::collections::VecDeque;

/// Bytes of lines that are kept at most: some hundred thousand records.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// The last lines.
#[derive(Debug)]
pub(super) struct Kept {
    lines: VecDeque<String>,
    /// Lines that were asked for.
    count: usize,
    bytes: usize,
    bytes_max: usize,
    /// How many lines there were.
    seen: usize,
}

impl Kept {
    /// None yet, and never more than `count`.
    pub(super) fn new(count: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            count,
            bytes: 0,
            bytes_max: BYTES_MAX,
            seen: 0,
        }
    }

    /// Adds a line, which may end the keeping of earlier ones.
    pub(super) fn push(&mut self, line: String) {
        self.seen = self.seen.saturating_add(1);
        self.bytes = self.bytes.saturating_add(cost(&line));
        self.lines.push_back(line);
        while self.lines.len() > self.count || self.bytes > self.bytes_max {
            let Some(line) = self.lines.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(cost(&line));
        }
    }

    /// What to say of lines that were asked for and are not kept.
    pub(super) fn note(&self) -> Option<String> {
        let wanted = self.seen.min(self.count);
        let missing = wanted.saturating_sub(self.lines.len());
        let bound = self.bytes_max / (1024 * 1024);
        (missing > 0).then(|| {
            format!(
                "{missing} records before these are left out: {bound} MiB at most; ask for \
                 fewer with `-n`"
            )
        })
    }

    /// The lines, in their order.
    pub(super) fn into_lines(self) -> impl Iterator<Item = String> {
        self.lines.into_iter()
    }
}

fn cost(line: &str) -> usize {
    line.len().saturating_add(size_of::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_within_both_bounds() {
        let of = |count: usize, bytes: usize| {
            let mut kept = Kept::new(count);
            kept.bytes_max = bytes;
            for number in 0..10 {
                kept.push(format!("{number}"));
            }
            let note = kept.note();
            (kept.into_lines().collect::<String>(), note.is_some())
        };
        let each = cost("0");
        assert_eq!(of(3, 10 * each), ("789".to_owned(), false));
        assert_eq!(of(100, 10 * each), ("0123456789".to_owned(), false));
        assert_eq!(of(100, 2 * each), ("89".to_owned(), true));
        assert_eq!(of(3, 3 * each - 1), ("89".to_owned(), true));
        assert_eq!(of(0, each), (String::new(), false));
        assert_eq!(of(3, 1), (String::new(), true));
    }
}
