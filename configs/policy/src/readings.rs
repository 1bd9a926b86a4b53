//! The readings of a path: what different servers may take it for.
//!
//! A reading is a list of decoded segments. Structural readings change which
//! segments exist; lenient ones also fold case, drop parameters and trailing
//! slashes. An allow rule must match every structural reading, a deny rule
//! any lenient one. Nothing here knows patterns or rules.

use crate::limits::DECODE_ROUNDS_MAX;
use crate::path::{TargetError, above_root, unescape};

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
}

/// Which liberties a server takes, one bit each.
mod liberty {
    pub(super) const ESCAPED_SLASH: u8 = 1;
    pub(super) const BACKSLASH: u8 = 2;
    pub(super) const COLLAPSE_FIRST: u8 = 4;
    pub(super) const COLLAPSE_LAST: u8 = 8;
    pub(super) const PARAMETER_DOTS: u8 = 16;
    pub(super) const ALL: u8 = 31;
}

impl Readings {
    /// Every reading of a canonical path.
    ///
    /// # Errors
    /// Some reading holds a control character or an overlong sequence, leads
    /// above the root, or is still escaped after the last round.
    pub(crate) fn of(path: &str) -> Result<Self, TargetError> {
        let mut structural = Vec::with_capacity(1);
        let mut segments: Vec<Vec<u8>> = Vec::new();
        if path.bytes().all(is_plain) && !path.contains("//") {
            structural.push(joined_plain(path));
        } else {
            segments.extend(path.split('/').skip(1).map(|s| unescape(s.as_bytes())));
            add_rounds(&mut structural, &mut segments)?;
        }
        let lenient = if structural.iter().all(|r| is_lenient_already(r)) {
            Vec::new()
        } else {
            lenient_of(&structural)
        };
        Ok(Self {
            structural,
            lenient,
        })
    }

    /// The canonical reading.
    pub(crate) fn canonical(&self) -> &[u8] {
        self.structural.first().map_or(&[], Vec::as_slice)
    }

    /// The structural readings beside the canonical one.
    pub(crate) fn other_structural(&self) -> impl Iterator<Item = &[u8]> {
        self.structural.iter().skip(1).map(Vec::as_slice)
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
    !matches!(byte, b'%' | b';' | b'\\')
}

fn joined_plain(path: &str) -> Reading {
    path.bytes()
        .skip(1)
        .map(|byte| if byte == b'/' { SEPARATOR } else { byte })
        .collect()
}

/// Adds the readings of the once decoded segments, and of each further round.
fn add_rounds(structural: &mut Vec<Reading>, segments: &mut [Vec<u8>]) -> Result<(), TargetError> {
    for _ in 0..=DECODE_ROUNDS_MAX {
        check_decoded(segments)?;
        add_structural(structural, segments)?;
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

/// Adds the reading under every combination of liberties that makes a difference.
fn add_structural(out: &mut Vec<Reading>, segments: &[Vec<u8>]) -> Result<(), TargetError> {
    let relevant = relevant_liberties(segments);
    for liberties in 0..=liberty::ALL {
        if liberties & !relevant != 0 {
            continue;
        }
        let reading = read(segments, liberties)?;
        if !out.contains(&reading) {
            out.push(reading);
        }
    }
    Ok(())
}

fn relevant_liberties(segments: &[Vec<u8>]) -> u8 {
    let mut relevant = 0;
    let holds = |byte: u8| segments.iter().any(|s| s.contains(&byte));
    if holds(b'/') {
        relevant |= liberty::ESCAPED_SLASH;
    }
    if holds(b'\\') {
        relevant |= liberty::BACKSLASH;
    }
    let inner_empty = segments.iter().rev().skip(1).any(Vec::is_empty);
    if relevant != 0 || inner_empty {
        relevant |= liberty::COLLAPSE_FIRST | liberty::COLLAPSE_LAST;
    }
    if holds(b';') {
        relevant |= liberty::PARAMETER_DOTS;
    }
    relevant
}

/// One reading: split, collapse, resolve dots, collapse.
fn read(segments: &[Vec<u8>], liberties: u8) -> Result<Reading, TargetError> {
    let takes = |liberty: u8| liberties & liberty != 0;
    let splits = |byte: &u8| {
        (*byte == b'/' && takes(liberty::ESCAPED_SLASH))
            || (*byte == b'\\' && takes(liberty::BACKSLASH))
    };
    let mut parts: Vec<&[u8]> = segments.iter().flat_map(|s| s.split(splits)).collect();
    if takes(liberty::COLLAPSE_FIRST) {
        collapse(&mut parts);
    }
    let mut kept: Vec<&[u8]> = Vec::with_capacity(parts.len());
    let last = parts.len().saturating_sub(1);
    for (index, part) in parts.into_iter().enumerate() {
        let dots = if takes(liberty::PARAMETER_DOTS) {
            part.split(|byte| *byte == b';').next().unwrap_or(part)
        } else {
            part
        };
        match dots {
            b"." => {}
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
    if takes(liberty::COLLAPSE_LAST) {
        collapse(&mut kept);
    }
    Ok(kept.join(&SEPARATOR))
}

/// Drops empty segments, except the last one, which is a trailing slash.
fn collapse(parts: &mut Vec<&[u8]>) {
    let trailing = parts.last().is_some_and(|part| part.is_empty());
    parts.retain(|part| !part.is_empty());
    if trailing {
        parts.push(b"");
    }
}

/// Whether folding, stripping and dropping would leave the reading as it is.
fn is_lenient_already(reading: &[u8]) -> bool {
    let plain = |byte: &u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(*byte, b'-' | b'_' | SEPARATOR)
    };
    (reading.iter().all(plain) && reading.last() != Some(&SEPARATOR)) || reading.is_empty()
}

fn lenient_of(structural: &[Reading]) -> Vec<Reading> {
    let mut out: Vec<Reading> = Vec::with_capacity(structural.len() * 2);
    let mut add = |reading: &[u8]| {
        for form in [reading, without_trailing_slash(reading)] {
            if !out.iter().any(|known| known == form) {
                out.push(form.to_vec());
            }
        }
    };
    for reading in structural {
        let folded = fold_case(reading);
        add(&folded);
        let mut parts: Vec<&[u8]> = folded.split(|b| *b == SEPARATOR).map(stripped).collect();
        add(&parts.join(&SEPARATOR));
        collapse(&mut parts);
        add(&parts.join(&SEPARATOR));
    }
    out
}

/// Lower case, of every script, character by character; bytes that are not
/// UTF-8 stay. Folding a part of a text gives a part of the folded text.
pub(crate) fn fold_case(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let folded: String = chunk.valid().chars().flat_map(char::to_lowercase).collect();
        out.extend_from_slice(folded.as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    out
}

/// A segment without parameters, and without the dots and spaces at its end
/// that some file systems ignore.
fn stripped(segment: &[u8]) -> &[u8] {
    let mut head = segment
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or(segment);
    while let [rest @ .., b'.' | b' '] = head {
        head = rest;
    }
    head
}

fn without_trailing_slash(reading: &[u8]) -> &[u8] {
    match reading {
        [head @ .., SEPARATOR] => head,
        _ => reading,
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
                &["|a|x/../b", "|a|b"],
                &["|a|x/../b", "|a|b"],
            ),
        ]);
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let path = "/a;/..;%252F//%255C%2525%2F.%5C;b".repeat(20);
        if let Ok(readings) = Readings::of(&path) {
            assert!(readings.structural.len() <= 32 * (DECODE_ROUNDS_MAX + 1));
        }
    }
}
