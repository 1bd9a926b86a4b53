//! Which bytes a match of a pattern can have: most places of a literal are told from a
//! match by a byte that no match has, without the pattern itself.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::detector_shape;

/// A set of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Members([bool; 256]);

impl Members {
    /// Those of a pattern; all where it cannot be read.
    pub(super) fn of(pattern: &str) -> Self {
        let mut members = Self([false; 256]);
        match detector_shape::parse(pattern) {
            Ok(shape) => members.add(&shape),
            Err(_) => members.range(0, u8::MAX),
        }
        members
    }

    /// Whether all of these bytes are among them.
    pub(super) fn have(&self, bytes: &[u8]) -> bool {
        let has = |byte: &u8| self.0.get(usize::from(*byte)).copied().unwrap_or_default();
        bytes.iter().all(has)
    }

    fn add(&mut self, shape: &Hir) {
        match shape.kind() {
            // These stand between bytes.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                for byte in &*literal.0 {
                    self.range(*byte, *byte);
                }
            }
            HirKind::Class(Class::Bytes(class)) => {
                for range in class.ranges() {
                    self.range(range.start(), range.end());
                }
            }
            HirKind::Class(Class::Unicode(class)) => {
                for range in class.ranges() {
                    let end = |letter: char| u8::try_from(letter).unwrap_or(u8::MAX);
                    // What has several bytes has some of these.
                    let start = end(range.start()).min(0x80);
                    let last = end(range.end());
                    self.range(start, if last < 0x80 { last } else { u8::MAX });
                }
            }
            HirKind::Repetition(repetition) => self.add(&repetition.sub),
            HirKind::Capture(capture) => self.add(&capture.sub),
            HirKind::Concat(shapes) | HirKind::Alternation(shapes) => {
                for shape in shapes {
                    self.add(shape);
                }
            }
        }
    }

    fn range(&mut self, first: u8, last: u8) {
        let range = usize::from(first)..=usize::from(last);
        self.0.get_mut(range).unwrap_or_default().fill(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_match_are_among_its_members() {
        for (pattern, has, has_not) in [
            (r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "patAz09.f", " -_/\"é"),
            (r"(?i)ab(c|d+)?$", "aAbBcCdD", "e $"),
            (r"^\bx\s", "x \t\n", "y"),
            (r"[^a-y]", "z\u{ff}Aé", "ay"),
            (r"(", "anything", ""),
        ] {
            let members = Members::of(pattern);
            for byte in has.bytes() {
                assert!(members.have(&[byte]), "{pattern} {byte}");
            }
            for byte in has_not.bytes() {
                assert!(!members.have(&[byte]), "{pattern} {byte}");
            }
        }
    }
}
