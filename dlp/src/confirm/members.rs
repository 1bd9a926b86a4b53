//! Which bytes a match of a pattern can have, and which it has in any case: most places of
//! a literal are told from a match by a byte that no match has, or by one that is missing,
//! without the pattern itself.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::detector_shape;

/// A set of bytes.
type Bytes = [bool; 256];

/// What is known of the bytes of all matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatchBytes {
    /// A match has no others.
    can: Bytes,
    /// A match has each of them.
    must: Vec<u8>,
}

impl MatchBytes {
    /// Those of a pattern; all where it cannot be read. What the literals have that lead
    /// to it is there in any case.
    pub(super) fn of<'l>(pattern: &str, literals: impl IntoIterator<Item = &'l [u8]>) -> Self {
        let mut members = Self {
            can: [false; 256],
            must: Vec::new(),
        };
        let Ok(shape) = detector_shape::parse(pattern) else {
            members.range(0, u8::MAX);
            return members;
        };
        members.add(&shape);
        let must = (0..=u8::MAX).zip(must(&shape));
        let must = must.filter_map(|(byte, is_one)| is_one.then_some(byte));
        members.must.extend(must);
        for literal in literals {
            members.must.retain(|byte| !literal.contains(byte));
        }
        members
    }

    /// Whether all of these bytes are among those that a match can have.
    pub(super) fn have(&self, bytes: &[u8]) -> bool {
        let has = |byte: &u8| self.can.get(usize::from(*byte)).copied();
        bytes.iter().all(|byte| has(byte).unwrap_or_default())
    }

    /// Whether some byte that each match has is not among these.
    pub(super) fn miss(&self, bytes: &[u8]) -> bool {
        let mut must = self.must.iter();
        must.any(|byte| memchr::memchr(*byte, bytes).is_none())
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
        self.can.get_mut(range).unwrap_or_default().fill(true);
    }
}

/// The bytes that each match has.
fn must(shape: &Hir) -> Bytes {
    let mut bytes = [false; 256];
    let mut take = |byte: u8| {
        if let Some(is_one) = bytes.get_mut(usize::from(byte)) {
            *is_one = true;
        }
    };
    match shape.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => {}
        HirKind::Literal(literal) => literal.0.iter().copied().for_each(take),
        HirKind::Class(Class::Bytes(class)) => {
            if let [only] = class.ranges()
                && only.start() == only.end()
            {
                take(only.start());
            }
        }
        HirKind::Repetition(repetition) if repetition.min == 0 => {}
        HirKind::Repetition(repetition) => return must(&repetition.sub),
        HirKind::Capture(capture) => return must(&capture.sub),
        HirKind::Concat(shapes) => {
            let all = shapes.iter().map(must);
            return all.fold(bytes, |all, one| both(all, one, |all, one| all | one));
        }
        HirKind::Alternation(shapes) => {
            let all = shapes.iter().map(must);
            let first = all.reduce(|all, one| both(all, one, |all, one| all & one));
            return first.unwrap_or(bytes);
        }
    }
    bytes
}

fn both(mut one: Bytes, other: Bytes, act: fn(bool, bool) -> bool) -> Bytes {
    for (one, other) in one.iter_mut().zip(other) {
        *one = act(*one, other);
    }
    one
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
            let members = MatchBytes::of(pattern, []);
            for byte in has.bytes() {
                assert!(members.have(&[byte]), "{pattern} {byte}");
            }
            for byte in has_not.bytes() {
                assert!(!members.have(&[byte]), "{pattern} {byte}");
            }
        }
    }

    #[test]
    fn what_every_match_has_is_known() {
        for (pattern, literals, must) in [
            (r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", &[&b"pat"[..]][..], "."),
            (r"[a-z]+://[^:@/]+:[^@]+@", &[b"://"], "@"),
            (r"(?i)ab(c|dc+)?$", &[], ""),
            (r"(?-i)ab(c|dc+)x?(y|y){2}[=]", &[], "=abcy"),
            (r"(", &[], ""),
        ] {
            let members = MatchBytes::of(pattern, literals.iter().copied());
            assert_eq!(members.must, must.as_bytes(), "{pattern}");
            assert!(!members.miss(b"pat ://@=abcy."), "{pattern}");
            assert_eq!(members.miss(b"-"), !must.is_empty(), "{pattern}");
        }
    }
}
