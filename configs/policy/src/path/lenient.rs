//! The lenient readings of a path: what programs behind a server take it for, and
//! what a rule that denies therefore is about as well.
//!
//! Case is folded; parameters, streams of NTFS (`::$DATA`), sessions in brackets
//! (`(S(x))` of ASP.NET), blanks around segments, dots and slashes at the end, and the endings of names, from any dot
//! on (`.json` for Rails and Spring, `.a.b` for connect), are dropped; `+` is a blank to whoever takes a path for a form;
//! behind the name of a script comes what it serves (CGI's `PATH_INFO`, RFC 3875 4.1.5),
//! and before it the script. Nothing here knows patterns or rules.

use super::TargetError;
use super::readings::{
    Reading, SEPARATOR, UniqueReadings, begins_with_authority, collapse, without_authority,
};
use crate::fold::fold_case;

/// Letters and digits of an ending by which a server knows a program, at most.
const ENDING_BYTES_MAX: usize = 8;

/// Segments of a path behind which one may be a program, and of which one may have an
/// ending, that are looked at each by itself, at most: the first ones.
const SEGMENTS_MAX: usize = 12;

/// Endings of one name that are looked at, at most: the first ones, and the last.
const ENDINGS_MAX: usize = 4;

/// Whether a structural reading has no other lenient reading than itself.
pub(crate) fn is_one(reading: &[u8]) -> bool {
    let plain = |byte: &u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(*byte, b'-' | b'_' | SEPARATOR)
    };
    let holds_programs = || reading.windows(3).any(|part| part == b"cgi");
    let is_plain = reading.iter().all(plain) && reading.last() != Some(&SEPARATOR);
    (is_plain && !holds_programs()) || reading.is_empty()
}

/// The lenient readings of all others, in lower case and without repetition.
///
/// # Errors
/// They have more bytes than are kept.
pub(crate) fn of<'r>(
    others: impl Iterator<Item = &'r Reading>,
) -> Result<Vec<Reading>, TargetError> {
    let mut found = LenientReadings::default();
    for reading in others {
        let folded = fold_case(reading);
        found.add_reading(&folded)?;
        if folded.contains(&b'+') {
            let plus = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
            let blanks: Vec<u8> = folded.iter().map(plus).collect();
            found.add_reading(&blanks)?;
        }
    }
    Ok(found.0.into_readings())
}

/// The lenient readings found so far.
#[derive(Debug, Default)]
struct LenientReadings(UniqueReadings);

impl LenientReadings {
    /// Adds a structural reading in lower case: as it is, and as programs clean it.
    fn add_reading(&mut self, folded: &[u8]) -> Result<(), TargetError> {
        self.add(folded.split(|byte| *byte == SEPARATOR).collect())?;
        let mut parts: Vec<&[u8]> = folded
            .split(|byte| *byte == SEPARATOR)
            .map(stripped)
            .collect();
        self.add(parts.clone())?;
        // A segment of parameters alone leaves two slashes as well.
        if begins_with_authority(&parts) {
            let mut rest = without_authority(&parts).to_vec();
            self.add(rest.clone())?;
            collapse(&mut rest);
            self.add(rest)?;
        }
        collapse(&mut parts);
        self.add(parts)
    }

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

    /// Adds it, up to each script and behind it.
    fn add_with_scripts(&mut self, parts: &[&[u8]]) -> Result<(), TargetError> {
        self.add_with_endings(parts)?;
        for (at, _) in parts.iter().enumerate() {
            let name = parts.get(at).copied().filter(|_| at < SEGMENTS_MAX);
            for stem in stems(name.unwrap_or_default()) {
                let mut parts = parts.to_vec();
                if let Some(part) = parts.get_mut(at) {
                    *part = stem;
                }
                self.keep_either_end(&parts)?;
            }
        }
        let scripts = (0..parts.len()).filter(|at| is_script(parts, *at));
        for at in scripts.take(SEGMENTS_MAX) {
            self.add_with_endings(parts.get(..=at).unwrap_or_default())?;
            let behind = parts.get(at + 1..).unwrap_or_default();
            if !behind.is_empty() {
                self.add_with_endings(behind)?;
            }
        }
        Ok(())
    }

    /// Adds it as it is, without the last ending and without all of them.
    fn add_with_endings(&mut self, parts: &[&[u8]]) -> Result<(), TargetError> {
        self.keep_either_end(parts)?;
        let whole = match parts {
            [head @ .., b""] if !head.is_empty() => head,
            _ => parts,
        };
        if let [head @ .., last] = whole {
            for stem in stems(last) {
                let parts = [head, &[stem]].concat();
                self.keep_either_end(&parts)?;
            }
        }
        let without = |which: fn(&[u8]) -> Option<&[u8]>| -> Vec<&[u8]> {
            let parts = parts.iter();
            parts.map(|part| which(part).unwrap_or(part)).collect()
        };
        let (last, all) = (
            without(|part| stems(part).next()),
            without(|part| stems(part).last()),
        );
        self.keep_either_end(&last)?;
        self.keep_either_end(&all)?;
        Ok(())
    }

    /// Keeps it as it is and without a slash at its end.
    fn keep_either_end(&mut self, parts: &[&[u8]]) -> Result<(), TargetError> {
        self.0.add(parts.join(&SEPARATOR))?;
        match parts {
            [head @ .., b""] if !head.is_empty() => self.0.add(head.join(&SEPARATOR)),
            _ => Ok(()),
        }
    }
}

/// A segment without parameters, without the name of a stream in a file, without the dots
/// and spaces at its end that some file systems ignore, and without the blanks before it that
/// some frameworks trim (CodeIgniter's segments, Spring's `trimTokens`).
fn stripped(segment: &[u8]) -> &[u8] {
    let head = segment.split(|byte| *byte == b';').next();
    let mut head = head.unwrap_or(segment);
    let stream = head.windows(2).position(|pair| pair == b":$");
    if let Some((name, _)) = stream.and_then(|at| head.split_at_checked(at)) {
        head = name.strip_suffix(b":").unwrap_or(name);
    }
    while let [rest @ .., b'.' | b' '] = head {
        head = rest;
    }
    head.trim_ascii_start()
}

/// `(S(lit3py55t21z5v55vlm25s55))`, also with several letters in it: a session that
/// ASP.NET takes out of the path before anything is looked for.
fn is_session(segment: &[u8]) -> bool {
    segment.starts_with(b"(") && segment.ends_with(b"))")
}

/// Whether a segment may be the name of a program that a server runs with the rest of
/// the path for it: any name with an ending, since each server knows others, and
/// whatever stands in a directory of such programs.
fn is_script(parts: &[&[u8]], at: usize) -> bool {
    let is_program = |name: &[u8]| {
        let dot = name.iter().rposition(|byte| *byte == b'.');
        let ending = dot.and_then(|dot| name.get(dot + 1..)).unwrap_or_default();
        dot != Some(0)
            && ending.first().is_some_and(u8::is_ascii_alphabetic)
            && ending.len() <= ENDING_BYTES_MAX
            && ending.iter().all(u8::is_ascii_alphanumeric)
    };
    let holds_programs = |name: &[u8]| name.windows(3).any(|part| part == b"cgi");
    let before = at.checked_sub(1).and_then(|at| parts.get(at));
    let name = parts.get(at).copied().unwrap_or_default();
    is_program(name) || (!name.is_empty() && before.is_some_and(|name| holds_programs(name)))
}

/// The name without its endings, where both are there: up to each of its first dots and
/// its last, the longest first.
fn stems(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dots = || {
        let at = name.iter().enumerate();
        let at = at.filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
        // What begins with dots has no name before them, nor has what may be a path.
        at.filter(|at| {
            let stem = || name.iter().take(*at);
            stem().any(|byte| *byte != b'.') && !stem().any(|byte| b"/\\".contains(byte))
        })
    };
    let last = dots().next_back();
    let mut first: Vec<usize> = dots().take(ENDINGS_MAX).collect();
    first.reverse();
    let last = last.filter(|last| !first.contains(last));
    let all = last.into_iter().chain(first);
    all.filter_map(|at| name.get(..at))
}

#[cfg(test)]
mod tests {
    use crate::limits::READINGS_BYTES_MAX;
    use crate::path::readings::Readings;

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
            ("/%20admin/k", "|admin|k"),
            ("/+admin/+k", "|admin|k"),
            ("/%20%20admin%20/%20k", "|admin|k"),
            ("/a/Admin.JSON", "|a|admin"),
            ("/admin.json/", "|admin"),
            ("/admin.a.b", "|admin.a"),
            ("/admin.a.b", "|admin"),
            ("/Admin.a.b/keys", "|admin|keys"),
            ("/admin..x", "|admin"),
            ("/admin.a..b.c.d.e.f/keys", "|admin|keys"),
            ("/admin.a..b.c.d.e.f/keys", "|admin.a..b.c.d.e|keys"),
            ("/x.y/admin.a.b/keys.c.d", "|x|admin|keys"),
            ("/admin.%2Fx", "|admin"),
            ("/admin%FF.a%FE.b/keys", "|admin|keys"),
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
            // Whatever the program is called.
            ("/app.wsgi/admin", "|admin"),
            ("/a.phar/b.lua/admin/x", "|admin|x"),
            ("/cgi-bin/app/admin", "|admin"),
            ("/fcgi/app/admin", "|admin"),
            // Endings of each name.
            ("/admin/reset.x/y", "|admin|reset|y"),
            ("/admin.json/reset.x/y", "|admin|reset|y"),
            ("/v1.2/admin.json/x", "|v1.2|admin|x"),
            // A blank as forms write it, and streams of files.
            ("/my+files/x", "|my files|x"),
            ("/admin+/x", "|admin|x"),
            ("/admin::$DATA", "|admin"),
            ("/admin:$i30:$INDEX_ALLOCATION/x", "|admin|x"),
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
            ("/v1.2/a", &["|v1.2|a", "|v1|a"]),
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
