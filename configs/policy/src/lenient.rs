//! The lenient readings of a path: what programs behind a server take it for, and
//! what a rule that denies therefore is about as well.
//!
//! Case is folded; parameters, sessions in brackets (`(S(x))` of ASP.NET), dots and
//! slashes at the end, and the ending of the last name (`.json` for Rails and Spring)
//! are dropped; behind the name of a script comes what it serves (CGI's `PATH_INFO`,
//! RFC 3875 4.1.5), and before it the script. Nothing here knows patterns or rules.

use std::collections::BTreeSet;

use crate::limits::READINGS_BYTES_MAX;
use crate::path::TargetError;
use crate::readings::{
    Reading, SEPARATOR, begins_with_authority, collapse, fold_case, without_authority,
};

/// Endings of programs that a server runs with the rest of the path for them.
const SCRIPTS: [&[u8]; 17] = [
    b"php", b"phtml", b"php5", b"php7", b"cgi", b"fcgi", b"pl", b"py", b"rb", b"asp", b"aspx",
    b"ashx", b"asmx", b"jsp", b"jspx", b"cfm", b"dll",
];

/// Whether a structural reading has no other lenient reading than itself.
pub(crate) fn is_one(reading: &[u8]) -> bool {
    let plain = |byte: &u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(*byte, b'-' | b'_' | SEPARATOR)
    };
    (reading.iter().all(plain) && reading.last() != Some(&SEPARATOR)) || reading.is_empty()
}

/// The lenient readings of all structural ones, in lower case and without repetition.
///
/// # Errors
/// They have more bytes than are kept.
pub(crate) fn of(structural: &[Reading]) -> Result<Vec<Reading>, TargetError> {
    let mut found = Found::default();
    for reading in structural {
        let folded = fold_case(reading);
        found.add(folded.split(|byte| *byte == SEPARATOR).collect())?;
        let mut parts: Vec<&[u8]> = folded
            .split(|byte| *byte == SEPARATOR)
            .map(stripped)
            .collect();
        found.add(parts.clone())?;
        // A segment of parameters alone leaves two slashes as well.
        if begins_with_authority(&parts) {
            let mut rest = without_authority(&parts).to_vec();
            found.add(rest.clone())?;
            collapse(&mut rest);
            found.add(rest)?;
        }
        collapse(&mut parts);
        found.add(parts)?;
    }
    Ok(found.readings)
}

/// The lenient readings found so far.
#[derive(Debug, Default)]
struct Found {
    readings: Vec<Reading>,
    known: BTreeSet<Reading>,
    bytes: usize,
}

impl Found {
    /// Adds a reading, and what programs make of it.
    fn add(&mut self, parts: Vec<&[u8]>) -> Result<(), TargetError> {
        let with_sessions = parts.iter().any(|part| is_session(part));
        self.add_with_scripts(&parts)?;
        if with_sessions {
            let mut parts = parts;
            parts.retain(|part| !is_session(part));
            self.add_with_scripts(&parts)?;
        }
        Ok(())
    }

    /// Adds it, up to the first script and behind the first and the last one.
    fn add_with_scripts(&mut self, parts: &[&[u8]]) -> Result<(), TargetError> {
        self.add_with_endings(parts)?;
        let first = parts.iter().position(|part| is_script(part));
        let last = parts.iter().rposition(|part| is_script(part));
        if let Some(first) = first {
            self.add_with_endings(parts.get(..=first).unwrap_or_default())?;
        }
        for at in [first, last].into_iter().flatten() {
            let behind = parts.get(at + 1..).unwrap_or_default();
            if !behind.is_empty() {
                self.add_with_endings(behind)?;
            }
        }
        Ok(())
    }

    /// Adds it as it is, without a slash at its end, and without the last ending.
    fn add_with_endings(&mut self, parts: &[&[u8]]) -> Result<(), TargetError> {
        self.keep(parts.join(&SEPARATOR))?;
        let parts = match parts {
            [head @ .., b""] if !head.is_empty() => {
                self.keep(head.join(&SEPARATOR))?;
                head
            }
            _ => parts,
        };
        let [head @ .., last] = parts else {
            return Ok(());
        };
        if let Some(stem) = without_ending(last) {
            let mut reading = head.join(&SEPARATOR);
            if !head.is_empty() {
                reading.push(SEPARATOR);
            }
            reading.extend_from_slice(stem);
            self.keep(reading)?;
        }
        Ok(())
    }

    fn keep(&mut self, reading: Reading) -> Result<(), TargetError> {
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

/// `(S(lit3py55t21z5v55vlm25s55))`, also with several letters in it: a session that
/// ASP.NET takes out of the path before anything is looked for.
fn is_session(segment: &[u8]) -> bool {
    segment.starts_with(b"(") && segment.ends_with(b"))")
}

/// Whether the segment is the name of a program that a server runs.
fn is_script(segment: &[u8]) -> bool {
    let at = segment.iter().rposition(|byte| *byte == b'.');
    let ending = at.and_then(|at| segment.get(at + 1..));
    at != Some(0) && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
}

/// The name without its last ending, where both are there.
fn without_ending(name: &[u8]) -> Option<&[u8]> {
    let at = name.iter().rposition(|byte| *byte == b'.')?;
    let (stem, ending) = (name.get(..at)?, name.get(at + 1..)?);
    let is_ending = !ending.is_empty() && !ending.iter().any(|byte| b"/\\".contains(byte));
    (is_ending && !stem.is_empty()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readings::Readings;

    fn lenient(path: &str) -> Vec<String> {
        let readings = Readings::of(path).expect(path);
        let shown = |reading: &[u8]| format!("|{}", String::from_utf8_lossy(reading));
        let texts = readings.lenient().map(shown);
        texts.map(|text| text.replace('\0', "|")).collect()
    }

    #[test]
    fn what_programs_leave_out_is_read_without_it() {
        for (path, without) in [
            ("/admin.json", "|admin"),
            ("/a/Admin.JSON", "|a|admin"),
            ("/admin.json/", "|admin"),
            ("/admin.a.b", "|admin.a"),
            ("/admin.json;x=1", "|admin"),
            ("/index.php/admin", "|admin"),
            ("/x/index.php/admin/keys", "|admin|keys"),
            ("/index.php/admin.json", "|admin"),
            ("/admin.php/x", "|admin.php"),
            ("/admin.php/x", "|admin"),
            ("/a.php/b.php/admin", "|admin"),
            ("/a.php/admin/b.php", "|admin|b"),
            ("/index.php;x/admin", "|admin"),
            ("/index.php%2Fadmin", "|admin"),
            ("/(S(lit3py55t21z5v55vlm25s55))/admin", "|admin"),
            ("/a/(A(x)S(y))/Admin/", "|a|admin"),
            ("/(S(x))/index.aspx/admin", "|admin"),
        ] {
            let found = lenient(path);
            assert!(
                found.iter().any(|reading| reading == without),
                "{path}: {found:?}"
            );
        }
    }

    #[test]
    fn names_that_are_endings_stay() {
        for (path, want) in [
            ("/.env", &["|.env"][..]),
            ("/a/.git/b", &["|a|.git|b"]),
            ("/v1.2/a", &["|v1.2|a"]),
            ("/.php/a", &["|.php|a"]),
            ("/(a)/b", &["|(a)|b"]),
        ] {
            assert_eq!(lenient(path), want, "{path}");
        }
    }

    #[test]
    fn their_number_is_bounded() {
        for path in [
            "/a.php;/(S(x))/..;%252F//%255C%2525%2F.%5C;b.c".repeat(20),
            format!("/{}", "a.php/".repeat(1300)),
        ] {
            if let Ok(readings) = Readings::of(&path) {
                assert!(readings.lenient().map(<[u8]>::len).sum::<usize>() <= READINGS_BYTES_MAX);
            }
        }
    }
}
