//! Patterns of paths, and how they match readings.
//!
//! `*` stands for any part of one segment, `**` for any number of segments.
//! A pattern that no request can match is refused here, with a hint. Nothing
//! in this file knows hosts, methods or effects.

use crate::glob::Glob;
use crate::host::shown;
use crate::limits::ANY_DEPTH_MAX;
use crate::path::readings::{Readings, SEPARATOR};
use crate::path::{hex_value, unescape};
use crate::unnamed;

/// A fault of a pattern: where in it (in bytes), what, and the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternError {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) hint: String,
}

pub(crate) fn fault(
    offset: usize,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> PatternError {
    PatternError {
        offset,
        message: message.into(),
        hint: hint.into(),
    }
}

/// One segment of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternSegment {
    /// `**`.
    AnyDepth,
    /// Anything else.
    One(Glob),
}

/// Whether `*` alone stands for an empty segment too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Star {
    NeedsBytes,
    MayBeEmpty,
}

/// A pattern of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// As written.
    written: Vec<PatternSegment>,
    /// With escaped slashes and backslashes as separators, and ended at an escaped
    /// `?` or `#`, where that differs: the forms in which it meets readings that
    /// take them so.
    others: Vec<Vec<PatternSegment>>,
    /// Lower case, without trailing slash, and where servers leave a name or an ending to be
    /// guessed, without it too: the forms that deny.
    denying: Vec<Vec<PatternSegment>>,
}

impl PathPattern {
    /// Makes a pattern from text that begins with `/`; `None` when it matches every path.
    ///
    /// # Errors
    /// Segments that no canonical path has, misplaced `**`, invalid escapes.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, PatternError> {
        check_path_text(text)?;
        let mut written = Vec::new();
        let mut split = Vec::new();
        let mut any_depths = 0;
        let mut offset = 1;
        let count = text.split('/').count().saturating_sub(1);
        for (index, segment) in text.split('/').skip(1).enumerate() {
            if segment == "**" {
                any_depths += 1;
                if any_depths > ANY_DEPTH_MAX {
                    return Err(fault(
                        offset,
                        format!("the path has more than {ANY_DEPTH_MAX} `**`"),
                        "one `**` at the end covers everything below",
                    ));
                }
                written.push(PatternSegment::AnyDepth);
                split.push(PatternSegment::AnyDepth);
            } else {
                if segment.is_empty() && index + 1 < count {
                    return Err(fault(
                        offset,
                        "an empty segment (`//`) can never match every reading of a path",
                        "write one slash",
                    ));
                }
                check_segment(segment, offset)?;
                written.push(PatternSegment::One(Glob::decoded(segment)));
                let separated = segment
                    .replace("%2F", "/")
                    .replace("%2f", "/")
                    .replace("%5C", "/")
                    .replace("%5c", "/")
                    .replace('\\', "/");
                split.extend(
                    separated
                        .split('/')
                        .map(|s| PatternSegment::One(Glob::decoded(s))),
                );
            }
            offset += segment.len() + 1;
        }
        if matches!(written.as_slice(), [PatternSegment::AnyDepth]) {
            return Ok(None);
        }
        let mut others: Vec<Vec<PatternSegment>> = Vec::new();
        for form in [ended(&written), ended(&split), split] {
            if form != written && !others.contains(&form) {
                others.push(form);
            }
        }
        let mut denying: Vec<Vec<PatternSegment>> = std::iter::once(&written)
            .chain(&others)
            .map(|form| denying_form(form))
            .collect();
        let unnamed: Vec<_> = denying
            .iter()
            .flat_map(|form| unnamed_forms(form))
            .collect();
        denying.extend(unnamed);
        Ok(Some(Self {
            written,
            others,
            denying,
        }))
    }

    /// Whether a rule that grants by it grants no path that one with the other does not: true
    /// only where that is plain.
    pub(crate) fn grants_within(&self, other: &Self) -> bool {
        let is_plain = self.others.is_empty() && other.others.is_empty();
        self == other || is_plain && is_within(&self.written, &other.written, Star::NeedsBytes)
    }

    /// The same of rules that deny.
    pub(crate) fn denies_within(&self, other: &Self) -> bool {
        let is_there = |form: &Vec<PatternSegment>| {
            let mut wider = other.denying.iter();
            wider.any(|other| is_within(form, other, Star::MayBeEmpty))
        };
        self == other || self.denying.iter().all(is_there)
    }

    /// Whether it stands for one path alone, however that is spelt.
    pub(crate) fn is_literal(&self) -> bool {
        let mut forms = self.others.iter().chain([&self.written]);
        forms.all(|form| {
            form.iter().all(|segment| match segment {
                PatternSegment::AnyDepth => false,
                PatternSegment::One(glob) => glob.is_literal(),
            })
        })
    }

    /// A path that it may match, with this text in the place of what is open.
    pub(crate) fn example(text: &str, open: &str) -> String {
        text.replace("**", open).replace('*', open)
    }

    /// A pattern of paths in the file system: no escapes, no readings.
    pub(crate) fn file(text: &str) -> Self {
        let written = text
            .split('/')
            .skip(1)
            .map(|segment| match segment {
                "**" => PatternSegment::AnyDepth,
                _ => PatternSegment::One(Glob::raw(segment)),
            })
            .collect();
        Self {
            written,
            others: Vec::new(),
            denying: Vec::new(),
        }
    }

    /// Whether the pattern matches an absolute path of the file system.
    pub(crate) fn matches_file(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let segments: Vec<&[u8]> = path.as_bytes().split(|b| *b == b'/').collect();
        matches(&self.written, &segments, Star::NeedsBytes)
    }

    /// Whether the canonical reading matches, and every other structural one.
    pub(crate) fn matches_all(&self, readings: &Readings) -> bool {
        let fits = |form: &[PatternSegment], reading: &[u8]| {
            matches_reading(form, reading, Star::NeedsBytes)
        };
        fits(&self.written, readings.canonical())
            && readings.other_structural().all(|reading| {
                fits(&self.written, reading) || self.others.iter().any(|form| fits(form, reading))
            })
    }

    /// Whether any reading matches, as a rule that denies is meant.
    pub(crate) fn matches_any(&self, readings: &Readings) -> bool {
        readings.lenient().any(|reading| {
            self.denying
                .iter()
                .any(|form| matches_reading(form, reading, Star::MayBeEmpty))
        })
    }
}

/// Whether every list of segments that one form matches is matched by another.
fn is_within(form: &[PatternSegment], other: &[PatternSegment], star: Star) -> bool {
    let Some((first, rest)) = other.split_first() else {
        return form.is_empty();
    };
    let PatternSegment::One(wide) = first else {
        return rest.is_empty()
            || (0..=form.len()).any(|skip| {
                form.get(skip..)
                    .is_some_and(|form| is_within(form, rest, star))
            });
    };
    match form.split_first() {
        Some((PatternSegment::One(narrow), form)) => {
            // A star alone may need something to stand for.
            let is_empty = wide.is_star() && star == Star::NeedsBytes && narrow.matches(b"");
            let fits = narrow.is_within(wide) && (!is_empty || narrow.is_star());
            fits && is_within(form, rest, star)
        }
        Some((PatternSegment::AnyDepth, _)) | None => false,
    }
}

/// The pattern up to the first `?` or `#` in it, if there is one.
fn ended(form: &[PatternSegment]) -> Vec<PatternSegment> {
    let mut out = Vec::with_capacity(form.len());
    for segment in form {
        let head = match segment {
            PatternSegment::AnyDepth => None,
            PatternSegment::One(glob) => glob.up_to(|byte| matches!(byte, b'?' | b'#')),
        };
        if let Some(head) = head {
            out.push(PatternSegment::One(head));
            break;
        }
        out.push(segment.clone());
    }
    out
}

fn denying_form(form: &[PatternSegment]) -> Vec<PatternSegment> {
    let mut form: Vec<PatternSegment> = form
        .iter()
        .map(|segment| match segment {
            PatternSegment::AnyDepth => PatternSegment::AnyDepth,
            PatternSegment::One(glob) => PatternSegment::One(glob.folded()),
        })
        .collect();
    let empty = PatternSegment::One(Glob::raw(""));
    if form.len() > 1 && form.last() == Some(&empty) {
        form.pop();
    }
    form
}

/// The forms of one that denies for paths that leave away the name of its file, which then
/// stands for its directory, or the ending of that name. No name is left away where a
/// pattern is about any directory or any name: it would be about nearly every path.
fn unnamed_forms(form: &[PatternSegment]) -> Vec<Vec<PatternSegment>> {
    let mut out = unnamed_file(form);
    out.extend((1..form.len()).filter_map(|at| behind_front(form, at)));
    out
}

/// What a program is given that stands for its directory, where the pattern names it and
/// more behind it: whatever leads to no file goes there without its name (`php -S`,
/// `FallbackResource` of Apache, `try_files` of nginx).
fn behind_front(form: &[PatternSegment], at: usize) -> Option<Vec<PatternSegment>> {
    let (head, behind) = form.split_at_checked(at)?;
    let (PatternSegment::One(name), head) = head.split_last()? else {
        return None;
    };
    let is_front = !name.is_star() && unnamed::INDEXES.iter().any(|index| name.matches(index));
    let names =
        |segment: &&PatternSegment| matches!(segment, PatternSegment::One(glob) if !glob.is_star());
    let left = [head, behind].concat();
    (is_front && left.iter().any(|segment| names(&segment))).then_some(left)
}

fn unnamed_file(form: &[PatternSegment]) -> Vec<Vec<PatternSegment>> {
    let (head, last, behind) = match form {
        [head @ .., PatternSegment::One(last)] => (head, last, &[][..]),
        [
            head @ ..,
            PatternSegment::One(last),
            PatternSegment::AnyDepth,
        ] => (head, last, &[PatternSegment::AnyDepth][..]),
        _ => return Vec::new(),
    };
    let mut out = Vec::new();
    if let Some(stem) = last.without_ending() {
        out.push([head, &[PatternSegment::One(stem)], behind].concat());
    }
    let stands_for_directory = unnamed::INDEXES.iter().any(|name| last.matches(name));
    if stands_for_directory && !last.is_star() {
        out.push([head, &[PatternSegment::One(Glob::raw(""))]].concat());
        if matches!(head.last(), Some(PatternSegment::One(directory)) if !directory.is_star()) {
            out.push(head.to_vec());
        }
    }
    out
}

fn matches_reading(form: &[PatternSegment], reading: &[u8], star: Star) -> bool {
    // The usual short patterns need no list of segments.
    let count = reading.split(|b| *b == SEPARATOR).count();
    if !form.contains(&PatternSegment::AnyDepth) {
        return form.len() == count
            && form
                .iter()
                .zip(reading.split(|b| *b == SEPARATOR))
                .all(|(segment, text)| matches_segment(segment, text, star));
    }
    let segments: Vec<&[u8]> = reading.split(|b| *b == SEPARATOR).collect();
    matches(form, &segments, star)
}

/// Matches with at most [`ANY_DEPTH_MAX`] levels of recursion.
fn matches(form: &[PatternSegment], segments: &[&[u8]], star: Star) -> bool {
    let (mut form, mut segments) = (form, segments);
    while let Some((first, form_rest)) = form.split_first() {
        if *first == PatternSegment::AnyDepth {
            return form_rest.is_empty()
                || (0..=segments.len()).any(|skip| {
                    segments
                        .get(skip..)
                        .is_some_and(|s| matches(form_rest, s, star))
                });
        }
        let Some((text, segments_rest)) = segments.split_first() else {
            return false;
        };
        if !matches_segment(first, text, star) {
            return false;
        }
        (form, segments) = (form_rest, segments_rest);
    }
    segments.is_empty()
}

fn matches_segment(segment: &PatternSegment, text: &[u8], star: Star) -> bool {
    match segment {
        PatternSegment::AnyDepth => true,
        PatternSegment::One(glob) if glob.is_star() => !text.is_empty() || star == Star::MayBeEmpty,
        PatternSegment::One(glob) => glob.matches(text),
    }
}

/// Refuses characters that no target has or that are probably another kind of glob.
fn check_path_text(text: &str) -> Result<(), PatternError> {
    for (offset, character) in text.char_indices() {
        let (message, hint) = match character {
            '#' => (
                "a path holds no `#`",
                "leave the fragment away; it is never sent",
            ),
            '[' | ']' | '{' | '}' => (
                "brackets and braces are no patterns here",
                "write one rule for each alternative, or the character itself as an escape such as `%5B`",
            ),
            '^' | '$' | '|' | '(' | ')' if text.contains(".*") => (
                "this looks like a regular expression",
                "`*` stands for any part of one segment, `**` for any number of segments",
            ),
            c if c.is_control() || c == ' ' => (
                "a path holds no spaces and no control characters",
                "write a space as `%20`",
            ),
            _ => continue,
        };
        return Err(fault(offset, format!("{message}: `{}`", shown(text)), hint));
    }
    check_escapes(text)
}

pub(crate) fn check_escapes(text: &str) -> Result<(), PatternError> {
    for (offset, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(offset + 1..offset + 3);
        let value = digits.and_then(|digits| match digits {
            [high, low] => Some(hex_value(*high)? << 4 | hex_value(*low)?),
            _ => None,
        });
        match value {
            None => {
                return Err(fault(
                    offset,
                    "`%` is not followed by two hexadecimal digits",
                    "write a percent sign itself as `%25`",
                ));
            }
            Some(value) if value.is_ascii_control() => {
                return Err(fault(
                    offset,
                    "an escaped control character can never match: such targets are refused",
                    "remove it",
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_segment(segment: &str, offset: usize) -> Result<(), PatternError> {
    if segment.contains("**") {
        return Err(fault(
            offset,
            format!(
                "`**` must be a whole segment, not a part of `{}`",
                shown(segment)
            ),
            "`*` stands for any part of one segment; `/**` at the end for everything below",
        ));
    }
    let decoded = unescape(segment.as_bytes());
    if matches!(decoded.as_slice(), b"." | b"..") {
        return Err(fault(
            offset,
            "a dot segment can never match: paths are resolved before they are judged",
            "write the resolved path",
        ));
    }
    if unescape(&decoded) != decoded {
        return Err(fault(
            offset,
            format!(
                "`{}` is escaped twice and can never match every reading",
                shown(segment)
            ),
            "escape it once, or put `*` in its place",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RequestTarget;
    use proptest::prelude::*;

    /// Pattern, target, whether it is matched as an allow rule and as a deny rule.
    fn check(rows: &[(&str, &str, bool, bool)]) {
        for (pattern, path, all, any) in rows {
            let pattern_value = PathPattern::parse(pattern)
                .expect(pattern)
                .expect("a restriction");
            let target = RequestTarget::parse(path).expect(path);
            let readings = target.readings().expect("a path");
            assert_eq!(
                pattern_value.matches_all(readings),
                *all,
                "allow {pattern} {path}"
            );
            assert_eq!(
                pattern_value.matches_any(readings),
                *any,
                "deny {pattern} {path}"
            );
        }
    }

    #[test]
    fn stars_stay_in_their_segment() {
        check(&[
            ("/repos/*/issues", "/repos/a/issues", true, true),
            ("/repos/*/issues", "/repos/a/b/issues", false, false),
            ("/repos/*/issues", "/repos//issues", false, true),
            ("/v*/x-*-y", "/v2/x-a-y", true, true),
            ("/v*/x-*-y", "/v2/x-y", false, false),
            ("/a*b*b", "/abb", true, true),
            ("/a*b*b", "/ab", false, false),
            ("/a/*", "/a/", false, true),
            ("/a/*", "/a", false, false),
            ("/%2A", "/*", true, true),
            ("/%2A", "/a", false, false),
        ]);
    }

    #[test]
    fn double_stars_cross_segments() {
        check(&[
            ("/a/**", "/a", true, true),
            ("/a/**", "/a/", true, true),
            ("/a/**", "/a/b/c", true, true),
            ("/a/**", "/ab", false, false),
            ("/**/b", "/b", true, true),
            ("/**/b", "/a/a/b", true, true),
            ("/**/b", "/a/b/c", false, false),
            ("/a/**/z/**", "/a/b/z", true, true),
            ("/a/**/z/**", "/a/b", false, false),
        ]);
    }

    #[test]
    fn an_allow_needs_all_readings_and_a_deny_any() {
        check(&[
            ("/admin/**", "/ADMIN/x", false, true),
            ("/admin/**", "/admin;a=b/x", false, true),
            ("/admin/**", "/x/..;/admin/x", false, true),
            ("/admin/**", "/x%2F..%2Fadmin/x", false, true),
            ("/admin/**", "/%2561dmin", false, true),
            ("/admin/**", "/x//admin", false, false),
            ("/admin/**", "//admin", false, true),
            ("/admin/**", "//x/admin/keys", false, true),
            ("/admin/**", "//x:80/admin", false, true),
            ("/admin/**", "//u@[::1]/admin", false, true),
            ("/admin/**", "///x/admin", false, true),
            ("/admin/**", "//x//admin", false, true),
            ("/admin/**", "//x//y/admin", false, true),
            ("/admin/**", "/%2fx/admin", false, true),
            ("/admin/**", "/%252fx/admin", false, true),
            ("/admin/**", "/\\x/admin", false, true),
            ("/admin/**", "/%5c%5cx/admin", false, true),
            ("/admin/**", "//x%2fy/admin", false, true),
            ("/admin/**", "//x%2fy/a%2f..%2fadmin", false, true),
            ("/admin/**", "/.//x/admin", false, true),
            ("/admin/**", "/a/..//x/admin", false, true),
            ("/admin/**", "/a%2f..%2f/x/admin", false, true),
            ("/admin/**", "/;//x/admin", false, true),
            ("/admin/**", "/;/x/admin", false, true),
            ("/admin/**", "//x;y/ADMIN;z/k", false, true),
            ("/admin/**", "//x/admin?q", false, true),
            ("/admin/**", "/x/;y//..;/admin", false, true),
            ("/admin", "/admin%3fx", false, true),
            ("/admin", "/admin%2523x", false, true),
            ("/admin/**", "//x/y/admin", false, false),
            ("/admin/**", "/x/admin", false, false),
            ("/", "//x", false, true),
            ("/*/x", "//b/x", false, true),
            ("/wiki/C%23", "/wiki/C%23", true, true),
            ("/wiki/C%23", "/wiki/C", false, true),
            ("/a/*/b", "/a/x%3f/b", false, true),
            ("/admin", "/admin/", false, true),
            ("/admin/", "/admin", false, true),
            ("/public/*", "/admin/secret/..%2f..%2fpublic/x", false, true),
            ("/public/**", "/public/..;/admin", false, true),
            ("/a%2Fb", "/a%2fb", true, true),
            ("/a%2Fb", "/a/b", false, true),
            ("/a/b", "/a%2fb", false, true),
            ("/caf%C3%A9", "/caf%c3%a9", true, true),
            ("/café", "/CAF%C3%89", false, true),
        ]);
    }

    #[test]
    fn a_deny_of_a_file_is_about_paths_that_lead_to_it_without_its_name() {
        check(&[
            ("/secret/index.html", "/secret/", false, true),
            ("/secret/index.html", "/secret", false, true),
            ("/secret/index.html", "/secret/index", false, true),
            ("/secret/index.html", "/SECRET/;x", false, true),
            ("/secret/index.html", "/secret%2F", false, true),
            ("/secret/index.html", "/secret/x", false, false),
            ("/secret/Index.HTM", "/secret/", false, true),
            ("/secret/index.*", "/secret/", false, true),
            ("/secret/index.php/**", "/secret/", false, true),
            ("/secret/index.php/**", "/secret/index/x", false, true),
            // What leads to no file goes to the program of its directory.
            ("/secret/index.php/**", "/secret/x", false, true),
            ("/secret/index.php/**", "/SECRET/x/y", false, true),
            ("/secret/index.php/**", "/x", false, false),
            ("/index.php/admin/**", "/admin/keys", false, true),
            ("/**/index.php/admin/**", "/x/admin/keys", false, true),
            ("/index.php/admin/**", "/public", false, false),
            // Not where nothing else is named, nor to a file alone.
            ("/index.php/**", "/x", false, false),
            ("/*/index.php/**", "/x/y", false, false),
            ("/index.php", "/x", false, false),
            ("/secret/index.php", "/secret/x", false, false),
            ("/secret/*.html", "/secret/", false, true),
            ("/secret/*.html", "/secret/x", false, false),
            ("/secret/*.pem", "/secret/", false, false),
            ("/secret/default.aspx", "/secret/", false, true),
            ("/index.html", "/", false, true),
            ("/index.html", "/x", false, false),
            ("/index.html", "/x/", false, false),
            ("/**/index.html", "/a/b/", false, true),
            ("/**/index.html", "/a/b", false, false),
            ("/a/*/index.html", "/a/b/", false, true),
            ("/a/*/index.html", "/a/b", false, false),
            ("/a/key.html", "/a/key", false, true),
            ("/a/key.html", "/a/key/", false, true),
            ("/a/key.html", "/a/keys", false, false),
            ("/a/key*.json", "/a/key1", false, true),
            ("/a/key.*", "/a/key", false, true),
            ("/a/*.json", "/a/key", false, false),
            ("/a/*.*", "/a/key", false, false),
            ("/lodash.merge", "/lodash", false, false),
            ("/v1.2", "/v1", false, false),
            ("/.html", "/", false, false),
        ]);
    }

    #[test]
    fn a_deny_of_a_path_is_about_one_in_the_query() {
        check(&[
            // A path in a query, as CodeIgniter and its like take it.
            ("/admin/**", "/?/admin/keys", false, true),
            ("/admin/**", "/?/ADMIN%2Fkeys&a=1", false, true),
            ("/admin/keys", "/?/admin/keys?a=1", false, true),
            ("/admin/keys", "/?/admin/keys&a=1", false, true),
            ("/admin/**", "/index.php?/admin/keys", false, true),
            ("/index.php/admin/**", "/index.php?/admin/keys", false, true),
            ("/app/admin/**", "/app/?/admin/keys", false, true),
            ("/admin/**", "/?a=/admin/keys", false, false),
            ("/admin/**", "/x/?/admin/keys", false, false),
            ("/admin/**", "/?/public/admin", false, false),
            ("/a/*", "/a/b?/admin/keys", true, true),
        ]);
    }

    #[test]
    fn patterns_that_never_match_are_refused() {
        for text in [
            "/a//b",
            "/a/./b",
            "/../a",
            "/%2e%2e",
            "/a**",
            "/**a",
            "/***",
            "/a#b",
            "/[a-z]",
            "/{a,b}",
            "/a b",
            "/%",
            "/%zz",
            "/%00",
            "/%2561",
            "/**/**/**/**/**",
            "/^x.*$",
        ] {
            assert!(PathPattern::parse(text).is_err(), "{text}");
        }
        assert_eq!(PathPattern::parse("/**"), Ok(None));
    }

    /// The definition of a match, in the plainest words.
    fn is_match(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                is_match(rest, text)
                    || text
                        .split_first()
                        .is_some_and(|(_, text)| is_match(pattern, text))
            }
            ([p, pattern @ ..], [t, text @ ..]) => p == t && is_match(pattern, text),
            ([], []) => true,
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_match_as_defined(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let found = Glob::raw(&pattern).matches(text.as_bytes());
            prop_assert_eq!(found, is_match(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn a_deny_matches_all_that_an_allow_of_the_same_path_matches(
            pattern in "(/(a|b|A|\\*|a\\*b|\\*\\*|a%2Fb)){1,4}/?",
            path in "(/|//|a|b|A|%2F|%5C|;|\\.\\.|%61){0,8}",
        ) {
            let target = RequestTarget::parse(&format!("/{path}"));
            if let (Ok(Some(pattern)), Ok(target)) = (PathPattern::parse(&pattern), target)
                && let Some(readings) = target.readings()
                && pattern.matches_all(readings)
            {
                prop_assert!(pattern.matches_any(readings), "{target}");
            }
        }
    }

    #[test]
    fn file_patterns_take_paths_as_they_are() {
        let pattern = PathPattern::file("/run/user/*/agent.sock");
        assert!(pattern.matches_file("/run/user/1000/agent.sock"));
        assert!(!pattern.matches_file("/run/user/1000/x/agent.sock"));
        assert!(!pattern.matches_file("/run/user/1000/Agent.sock"));
    }
}
