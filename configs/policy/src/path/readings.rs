//! The readings of a path: what different servers may take it for.
//!
//! A reading is a list of decoded segments. Structural readings change which
//! segments exist; lenient ones also fold case, drop parameters and trailing
//! slashes. An allow rule must match every structural reading, a deny rule
//! any lenient one. Nothing here knows patterns or rules.
//!
//! A path that begins with `//` is also a network-path reference (RFC 3986 4.2):
//! what parses the target as a reference takes the segment behind the slashes
//! for an authority, and serves the rest. What servers drop from decoded paths
//! ([`crate::dropped`]) is dropped from whole passes of decoding.

use std::collections::BTreeSet;

use super::lenient;
use super::more_queries::Tails;
use super::{TargetError, above_root, unescape};
use crate::dots::{has_blank_dots, has_dots, without_blanks};
use crate::dropped::{Dropping, changes_segments};
use crate::limits::{DECODE_ROUNDS_MAX, READINGS_BYTES_MAX};

/// Decoded segments, joined by [`SEPARATOR`].
pub(crate) type Reading = Vec<u8>;

/// Between two segments of a reading. No segment holds it: an escaped NUL is
/// refused at every depth of decoding.
pub(crate) const SEPARATOR: u8 = 0;

/// All readings of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readings {
    /// The canonical reading first, then the other structural ones.
    structural: Vec<Reading>,
    /// The lenient ones, lower case; empty when they equal the structural ones.
    lenient: Vec<Reading>,
    /// What of it some take for a query.
    tails: Tails,
}

/// Which liberties a server takes, one bit each.
mod liberty {
    pub(super) const ESCAPED_SLASH: u16 = 1;
    pub(super) const BACKSLASH: u16 = 2;
    pub(super) const COLLAPSE_FIRST: u16 = 4;
    pub(super) const COLLAPSE_LAST: u16 = 8;
    /// Parameters do not count where they stand alone or behind dots.
    pub(super) const PARAMETER_DOTS: u16 = 16;
    /// An authority behind `//`, taken away before dots are resolved.
    pub(super) const AUTHORITY_FIRST: u16 = 32;
    /// The same behind `//` that is there once they are.
    pub(super) const AUTHORITY_LAST: u16 = 64;
    /// A decoded `?` or `#` ends the path.
    pub(super) const ENDS: u16 = 128;
    /// Dots that were not seen as such when the path was sent stay: what decodes late
    /// may route by the segments before them.
    pub(super) const DOTS_STAY: u16 = 256;
    /// Three dots are one (Mojolicious, against paths that climb).
    pub(super) const THREE_DOTS: u16 = 512;
    /// Blanks behind dots do not count (WHATWG URL 4.4 drops those at the end, Windows all).
    pub(super) const BLANK_DOTS: u16 = 1024;
    pub(super) const ALL: u16 = 2047;
}

impl Readings {
    /// Every reading of a canonical path.
    ///
    /// # Errors
    /// Some reading holds a control character or an overlong sequence, leads
    /// above the root, or is still escaped after the last round.
    pub(crate) fn of(path: &str) -> Result<Self, TargetError> {
        let mut structural = Vec::with_capacity(1);
        let mut names = Vec::new();
        let mut tails = Tails::default();
        if path.bytes().all(is_plain) && !path.contains("//") {
            structural.push(joined_plain(path));
        } else {
            let segments: Vec<Vec<u8>> = path
                .split('/')
                .skip(1)
                .map(|s| unescape(s.as_bytes()))
                .collect();
            let mut found = FoundReadings::default();
            found.add_rounds(&mut segments.clone(), Pass::AS_IT_IS)?;
            // Before any decoding, the authority ends at a slash that is sent as one.
            if begins_with_authority(&segments) {
                let mut rest = without_authority(&segments).to_vec();
                found.add_rounds(&mut rest, Pass::AS_IT_IS)?;
            }
            structural = found.structural.readings;
            names = found.names.readings;
            tails = found.tails;
        }
        let is_one = names.is_empty() && structural.iter().all(|r| lenient::is_one(r));
        let lenient = if is_one {
            Vec::new()
        } else {
            lenient::of(structural.iter().chain(&names))?
        };
        Ok(Self {
            structural,
            lenient,
            tails,
        })
    }

    /// The same readings, and those of another path that some take this one for: they count
    /// for rules that deny, and for none that allows.
    pub(super) fn or_of(mut self, other: &Self) -> Self {
        let both = self.lenient().chain(other.lenient());
        let mut lenient: Vec<Reading> = Vec::new();
        for reading in both {
            if !lenient.iter().any(|known| known == reading) {
                lenient.push(reading.to_vec());
            }
        }
        self.lenient = lenient;
        self
    }

    /// The canonical reading.
    pub(crate) fn canonical(&self) -> &[u8] {
        self.structural.first().map_or(&[], Vec::as_slice)
    }

    /// The structural readings beside the canonical one.
    pub(crate) fn other_structural(&self) -> impl Iterator<Item = &[u8]> {
        self.structural.iter().skip(1).map(Vec::as_slice)
    }

    /// What stands behind the signs that may end it.
    pub(crate) fn tails(&self) -> &Tails {
        &self.tails
    }

    /// Every reading, in lower case.
    pub(crate) fn lenient(&self) -> impl Iterator<Item = &[u8]> {
        let readings = if self.lenient.is_empty() {
            &self.structural
        } else {
            &self.lenient
        };
        readings.iter().map(Vec::as_slice)
    }
}

/// Bytes of a path that every server reads alike.
fn is_plain(byte: u8) -> bool {
    !matches!(byte, b'%' | b';' | b'&' | b'\\')
}

fn joined_plain(path: &str) -> Reading {
    path.bytes()
        .skip(1)
        .map(|byte| if byte == b'/' { SEPARATOR } else { byte })
        .collect()
}

/// Readings in their order and without repetition.
#[derive(Debug, Default)]
pub(super) struct UniqueReadings {
    readings: Vec<Reading>,
    known: BTreeSet<Reading>,
    bytes: usize,
}

impl UniqueReadings {
    /// All of them, in the order in which they came.
    pub(super) fn into_readings(self) -> Vec<Reading> {
        self.readings
    }

    pub(super) fn add(&mut self, reading: Reading) -> Result<(), TargetError> {
        if self.known.contains(&reading) {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(reading.len());
        if self.bytes > READINGS_BYTES_MAX {
            return Err(TargetError::new(format!(
                "the readings of the path have more than {READINGS_BYTES_MAX} bytes"
            )));
        }
        self.known.insert(reading.clone());
        self.readings.push(reading);
        Ok(())
    }
}

/// What is dropped while a path is decoded, and what its readings are then.
#[derive(Debug, Clone, Copy)]
struct Pass {
    dropping: Option<Dropping>,
    are: Are,
}

/// What readings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Are {
    Structural,
    /// The same segments by other names, which lead nowhere else: lenient ones.
    Names,
}

impl Pass {
    const AS_IT_IS: Self = Self {
        dropping: None,
        are: Are::Structural,
    };

    /// The same, once something was dropped.
    fn having_dropped(self, before: &[Vec<u8>], without: &[Vec<u8>]) -> Self {
        let are = if changes_segments(before, without) {
            Are::Structural
        } else {
            self.are
        };
        Self { are, ..self }
    }
}

/// The readings found so far.
#[derive(Debug, Default)]
struct FoundReadings {
    structural: UniqueReadings,
    names: UniqueReadings,
    tails: Tails,
}

impl FoundReadings {
    /// Adds the readings of the once decoded segments, and of each further round; and of
    /// all that are left from any round on where bytes are dropped from then on.
    fn add_rounds(&mut self, segments: &mut [Vec<u8>], mut pass: Pass) -> Result<(), TargetError> {
        for _ in 0..=DECODE_ROUNDS_MAX {
            check_decoded(segments)?;
            pass = self.drop_from(segments, pass)?;
            self.add_liberties(segments, pass.are)?;
            self.tails.add(segments)?;
            // Whoever ends the path here decodes no more than what is before.
            if let Some(mut before) = ended(segments) {
                self.add_rounds(&mut before, pass)?;
            }
            let mut changed = false;
            for segment in segments.iter_mut().filter(|s| s.contains(&b'%')) {
                let decoded = unescape(segment);
                changed |= decoded != *segment;
                *segment = decoded;
            }
            if !changed {
                return Ok(());
            }
        }
        Err(TargetError::new(format!(
            "the path is escaped more than {} times",
            DECODE_ROUNDS_MAX + 1
        )))
    }

    /// Drops what this pass drops; of one that drops nothing, begins those that do.
    fn drop_from(&mut self, segments: &mut [Vec<u8>], pass: Pass) -> Result<Pass, TargetError> {
        if let Some(dropping) = pass.dropping {
            let Some(without) = dropping.of(segments) else {
                return Ok(pass);
            };
            let pass = pass.having_dropped(segments, &without);
            segments.clone_from_slice(&without);
            return Ok(pass);
        }
        for dropping in Dropping::ALL {
            if let Some(mut without) = dropping.of(segments) {
                let next = Pass {
                    dropping: Some(dropping),
                    are: Are::Names,
                };
                let next = next.having_dropped(segments, &without);
                self.add_rounds(&mut without, next)?;
            }
        }
        Ok(pass)
    }

    /// Adds the reading under every combination of liberties that makes a difference.
    fn add_liberties(&mut self, segments: &[Vec<u8>], are: Are) -> Result<(), TargetError> {
        let relevant = relevant_liberties(segments);
        for liberties in 0..=liberty::ALL {
            if liberties & !relevant == 0 {
                let reading = read(segments, liberties)?;
                match are {
                    Are::Structural => self.structural.add(reading)?,
                    Are::Names => self.names.add(reading)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether the path of these segments begins with two slashes and a name behind them.
pub(crate) fn begins_with_authority<S: AsRef<[u8]>>(segments: &[S]) -> bool {
    segments
        .first()
        .is_some_and(|first| first.as_ref().is_empty())
        && segments.iter().any(|segment| !segment.as_ref().is_empty())
}

/// The segments behind the first that is not empty: all others may be leading
/// slashes to a parser, and that one an authority.
pub(crate) fn without_authority<S: AsRef<[u8]>>(segments: &[S]) -> &[S] {
    let authority = segments
        .iter()
        .position(|segment| !segment.as_ref().is_empty());
    authority
        .and_then(|at| segments.get(at + 1..))
        .unwrap_or(segments)
}

/// The segments up to a decoded `?` or `#`, where there is one.
fn ended(segments: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let ends = |byte: &u8| matches!(byte, b'?' | b'#');
    let at = segments
        .iter()
        .position(|segment| segment.iter().any(ends))?;
    let mut before = segments.get(..=at)?.to_vec();
    let last = before.last_mut()?;
    last.truncate(last.iter().position(ends)?);
    Some(before)
}

fn check_decoded(segments: &[Vec<u8>]) -> Result<(), TargetError> {
    for segment in segments {
        if segment.iter().any(u8::is_ascii_control) {
            return Err(TargetError::new(
                "the path holds an escaped control character",
            ));
        }
        let overlong = |pair: &[u8]| {
            matches!(
                pair,
                [0xc0 | 0xc1, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
            )
        };
        if segment.windows(2).any(overlong) {
            return Err(TargetError::new(
                "the path holds an overlong UTF-8 sequence",
            ));
        }
    }
    Ok(())
}

fn relevant_liberties(segments: &[Vec<u8>]) -> u16 {
    let mut relevant = 0;
    let holds = |byte: u8| segments.iter().any(|s| s.contains(&byte));
    if holds(b'/') {
        relevant |= liberty::ESCAPED_SLASH;
    }
    if holds(b'\\') {
        relevant |= liberty::BACKSLASH;
    }
    let inner_empty = segments.iter().rev().skip(1).any(Vec::is_empty);
    let parameters_alone = segments.iter().any(|s| s.first() == Some(&b';'));
    if relevant != 0 || inner_empty || parameters_alone {
        relevant |= liberty::COLLAPSE_FIRST | liberty::COLLAPSE_LAST;
        relevant |= authorities(segments);
    }
    if holds(b';') {
        relevant |= liberty::PARAMETER_DOTS;
    }
    // Those that were sent as they are are resolved by now.
    if segments.iter().any(|segment| has_dots(segment)) {
        relevant |= liberty::DOTS_STAY;
    }
    if holds(b'?') || holds(b'#') {
        relevant |= liberty::ENDS;
    }
    let is_three = |part: &[u8]| part == b"...";
    let parts = |segment: &Vec<u8>| {
        segment
            .split(|byte| matches!(byte, b'/' | b'\\'))
            .any(is_three)
    };
    if segments.iter().any(parts) {
        relevant |= liberty::THREE_DOTS;
    }
    if segments.iter().any(|segment| has_blank_dots(segment)) {
        relevant |= liberty::BLANK_DOTS;
    }
    relevant
}

/// Where the path may begin with `//` under some liberties.
fn authorities(segments: &[Vec<u8>]) -> u16 {
    let leads = |segment: &Vec<u8>| matches!(segment.as_slice(), [] | [b'/' | b'\\' | b';', ..]);
    let dots = |segment: &Vec<u8>| {
        segment.starts_with(b".")
            || segment
                .windows(2)
                .any(|w| matches!(w, [b'/' | b'\\', b'.']))
    };
    if segments.first().is_some_and(leads) {
        liberty::AUTHORITY_FIRST | liberty::AUTHORITY_LAST
    } else if segments.iter().any(dots) {
        liberty::AUTHORITY_LAST
    } else {
        0
    }
}

/// One reading: end, split, take the authority away, collapse, resolve dots, and
/// once more what resolving dots may have uncovered.
fn read(segments: &[Vec<u8>], liberties: u16) -> Result<Reading, TargetError> {
    let takes = |liberty: u16| liberties & liberty != 0;
    let splits = |byte: &u8| {
        (*byte == b'/' && takes(liberty::ESCAPED_SLASH))
            || (*byte == b'\\' && takes(liberty::BACKSLASH))
    };
    let mut parts: Vec<&[u8]> = Vec::with_capacity(segments.len());
    for segment in segments {
        let end = segment.iter().position(|byte| matches!(byte, b'?' | b'#'));
        let end = end.filter(|_| takes(liberty::ENDS));
        let head = end.and_then(|end| segment.get(..end)).unwrap_or(segment);
        parts.extend(head.split(splits));
        if end.is_some() {
            break;
        }
    }
    if takes(liberty::PARAMETER_DOTS) {
        // A segment of parameters alone is an empty one without them.
        let only_parameters = |part: &&mut &[u8]| part.first() == Some(&b';');
        for part in parts.iter_mut().filter(only_parameters) {
            *part = b"";
        }
    }
    if takes(liberty::AUTHORITY_FIRST) {
        drop_authority(&mut parts);
    }
    if takes(liberty::COLLAPSE_FIRST) {
        collapse(&mut parts);
    }
    let mut kept = if takes(liberty::DOTS_STAY) {
        parts
    } else {
        without_dots(parts, liberties)?
    };
    if takes(liberty::AUTHORITY_LAST) {
        drop_authority(&mut kept);
    }
    if takes(liberty::COLLAPSE_LAST) {
        collapse(&mut kept);
    }
    Ok(kept.join(&SEPARATOR))
}

fn drop_authority(parts: &mut Vec<&[u8]>) {
    if begins_with_authority(parts) {
        *parts = without_authority(parts).to_vec();
    }
}

/// Resolves dot segments (RFC 3986 5.2.4), which may have parameters.
fn without_dots(parts: Vec<&[u8]>, liberties: u16) -> Result<Vec<&[u8]>, TargetError> {
    let mut kept: Vec<&[u8]> = Vec::with_capacity(parts.len());
    let last = parts.len().saturating_sub(1);
    for (index, part) in parts.into_iter().enumerate() {
        let dots = if liberties & liberty::PARAMETER_DOTS != 0 {
            part.split(|byte| *byte == b';').next().unwrap_or(part)
        } else {
            part
        };
        let dots = if liberties & liberty::BLANK_DOTS != 0 {
            without_blanks(dots)
        } else {
            dots
        };
        match dots {
            b"." => {}
            b"..." if liberties & liberty::THREE_DOTS != 0 => {}
            b".." => {
                kept.pop().ok_or_else(above_root)?;
            }
            _ => {
                kept.push(part);
                continue;
            }
        }
        if index == last {
            kept.push(b"");
        }
    }
    Ok(kept)
}

/// Drops empty segments, except the last one, which is a trailing slash.
pub(crate) fn collapse(parts: &mut Vec<&[u8]>) {
    let trailing = parts.last().is_some_and(|part| part.is_empty());
    parts.retain(|part| !part.is_empty());
    if trailing {
        parts.push(b"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reading: &[u8]) -> String {
        let text = String::from_utf8_lossy(reading).replace('\0', "|");
        format!("|{text}")
    }

    fn check(rows: &[(&str, &[&str], &[&str])]) {
        for (path, structural, lenient) in rows {
            let readings = Readings::of(path).expect(path);
            let found: Vec<String> = readings.structural.iter().map(|r| shown(r)).collect();
            assert_eq!(&found, structural, "structural readings of {path}");
            let found: Vec<String> = readings.lenient().map(shown).collect();
            assert_eq!(&found, lenient, "lenient readings of {path}");
        }
    }

    #[test]
    fn what_ends_a_path_ends_it_before_the_rest_is_decoded() {
        let readings = Readings::of("//x/%253f%2F%252e%252e/admin%3Fx").expect("readings");
        assert!(readings.lenient().any(|reading| shown(reading) == "|admin"));
        let readings = Readings::of("/%253f%2F%252e%252e/a%3F/%253f").expect("readings");
        assert!(readings.lenient().any(|reading| shown(reading) == "|a"));
    }

    #[test]
    fn what_is_dropped_is_dropped_before_dots_are_resolved() {
        let all = |path: &str| -> (Vec<String>, Vec<String>) {
            let readings = Readings::of(path).expect(path);
            let structural = readings.structural.iter().map(|r| shown(r)).collect();
            (structural, readings.lenient().map(shown).collect())
        };
        for (path, structural, lenient) in [
            ("/%FFadmin/keys", None, "|admin|keys"),
            ("/adm%C3in/keys", None, "|admin|keys"),
            ("/adm%E2%80%8Bin/keys", None, "|admin|keys"),
            ("/%EF%BB%BFadmin/keys", None, "|admin|keys"),
            ("/pub/.%FF./admin", Some("|admin"), "|admin"),
            ("/pub/.%25FF./admin", Some("|admin"), "|admin"),
            ("/pub/%FF../admin", Some("|admin"), "|admin"),
            ("/pub/.%C2%AD./admin", Some("|admin"), "|admin"),
            ("/pub/x%2F.%FF./%FF../admin", Some("|admin"), "|admin"),
            ("/pub/x%5C.%FF.%5C..%5Cadmin", Some("|admin"), "|admin"),
            ("/pub/%25%FF2e%25%FF2e/admin", Some("|admin"), "|admin"),
            ("/pub/.%FF./ad%FFmin", Some("|admin"), "|admin"),
            ("/%FF/x/admin", Some("|x|admin"), "|admin"),
            ("/pub/%FF/x", Some("|pub|x"), "|pub|x"),
            ("/a%FFb", None, "|a\u{fffd}b"),
            ("/a%FFb", None, "|ab"),
        ] {
            let (found, all) = all(path);
            assert!(
                structural.is_none_or(|one| found.iter().any(|r| r == one)),
                "{path}: {found:?}"
            );
            assert!(
                structural.is_some() || found.len() == 1,
                "{path}: {found:?}"
            );
            assert!(all.iter().any(|r| r == lenient), "{path}: {all:?}");
        }
        for path in ["/.%FF./x", "/%E2%80%8B../x", "/a/.%FF./..", "/%25%FF2e./x"] {
            assert!(Readings::of(path).is_err(), "{path}");
        }
    }

    #[test]
    fn three_dots_are_one_to_some() {
        let readings = Readings::of("/pub//.../..%2F").expect("readings");
        let mut all = readings.other_structural();
        assert!(all.any(|reading| shown(reading) == "|"));
    }

    #[test]
    fn blanks_behind_dots_do_not_count_to_some() {
        for (path, other) in [
            ("/pub/..%20", "|"),
            ("/pub/..%20%20/x", "|x"),
            ("/pub/a%2F.%20/x", "|pub|a|x"),
            ("/pub/..%2520", "|"),
            ("/pub/..%20%3Fa", "|"),
        ] {
            let readings = Readings::of(path).expect(path);
            let mut all = readings.other_structural();
            assert!(all.any(|reading| shown(reading) == other), "{path}");
        }
        assert!(Readings::of("/..%20").is_err());
        check(&[("/a%20/b", &["|a |b"], &["|a |b", "|a|b"])]);
    }

    #[test]
    fn plain_paths_have_one_reading() {
        check(&[
            ("/", &["|"], &["|"]),
            ("/a/b-c_d", &["|a|b-c_d"], &["|a|b-c_d"]),
            ("/a%20b", &["|a b"], &["|a b"]),
            ("/a/", &["|a|"], &["|a|", "|a"]),
            ("/A", &["|A"], &["|a"]),
        ]);
    }

    #[test]
    fn disputed_paths_have_all_readings() {
        check(&[
            ("/a%2Fb", &["|a/b", "|a|b"], &["|a/b", "|a|b"]),
            ("/a//b", &["|a||b", "|a|b"], &["|a||b", "|a|b"]),
            ("//x/b", &["||x|b", "|x|b", "|b"], &["||x|b", "|x|b", "|b"]),
            ("//x", &["||x", "|x", "|"], &["||x", "|x", "|"]),
            ("//", &["||", "|"], &["||", "|"]),
            (
                "///x/b",
                &["|||x|b", "|x|b", "|b"],
                &["|||x|b", "|x|b", "|b"],
            ),
            (
                "//x//y/b",
                &["||x||y|b", "|x|y|b", "||y|b", "|y|b", "|b"],
                &["||x||y|b", "|x|y|b", "||y|b", "|y|b", "|b"],
            ),
            ("/a%3Fb", &["|a?b", "|a"], &["|a?b", "|a"]),
            (
                "/x/..;/a",
                &["|x|..;|a", "|a"],
                &["|x|..;|a", "|x||a", "|x|a", "|a"],
            ),
            ("/a;v=1/b", &["|a;v=1|b"], &["|a;v=1|b", "|a|b"]),
            ("/%2561", &["|%61", "|a"], &["|%61", "|a"]),
            ("/a%5Cb", &["|a\\b", "|a|b"], &["|a\\b", "|a|b"]),
            ("/a.", &["|a."], &["|a.", "|a"]),
            ("/%C3%84", &["|Ä"], &["|ä"]),
            (
                "/a%252Fb",
                &["|a%2Fb", "|a/b", "|a|b"],
                &["|a%2fb", "|a/b", "|a|b"],
            ),
            (
                "/a/x%2F..%2Fb",
                &["|a|x/../b", "|a|b", "|a|x|..|b"],
                &["|a|x/../b", "|a|b", "|a|x|..|b", "|a|x||b", "|a|x|b"],
            ),
            (
                "/a%2F../",
                &["|a/..|", "|", "|a|..|"],
                &[
                    "|a/..|", "|a/..", "|a/|", "|a/", "|", "|a|..|", "|a|..", "|a||", "|a|", "|a",
                ],
            ),
        ]);
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let path = "/a;/..;%252F//%255C%2525%2F.%5C;b".repeat(20);
        if let Ok(readings) = Readings::of(&path) {
            assert!(readings.structural.iter().map(Vec::len).sum::<usize>() <= READINGS_BYTES_MAX);
        }
    }
}
