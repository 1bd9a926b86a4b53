//! Paths that differ in identifiers only, as one pattern.
//!
//! A segment is left open as `*` only after several values of it were seen, and only where
//! they look like identifiers, hashes, dates or versions; a word is left open where so many
//! were seen that nobody would read them all; and below a directory everything is, where
//! even that is too much. Each of these is said with the pattern. Texts in, texts out.

use std::collections::{BTreeMap, BTreeSet};

use crate::shape::segment_shape;

/// Values of a segment from which on it is left open.
const VALUES_MIN: usize = 3;
/// Words at one place from which on they are left open.
const WORDS_MIN: usize = 13;
/// Patterns of one host and method that a person reads.
const PATTERNS_MAX: usize = 40;
/// Patterns of one directory that a person reads, where there are too many in all.
const PATTERNS_OF_DIRECTORY_MAX: usize = 8;
/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 512;

/// How much a pattern leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Openness {
    /// The path as it was asked for.
    Exact,
    /// Identifiers.
    Identifiers,
    /// Words.
    Words,
    /// Everything below a directory.
    Below,
    /// Every path.
    All,
}

/// A pattern, with the paths that it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// As in a rule.
    pub(crate) pattern: String,
    pub(crate) openness: Openness,
    pub(crate) members: BTreeSet<String>,
}

/// The patterns of these paths, in their order.
pub(crate) fn templates(paths: &BTreeSet<String>) -> Vec<Template> {
    let mut by_shape: BTreeMap<Vec<String>, Vec<Vec<&str>>> = BTreeMap::new();
    for path in paths {
        let segments: Vec<&str> = path.split('/').collect();
        let shape = segments.iter().map(|own| segment_shape(own)).collect();
        by_shape.entry(shape).or_default().push(segments);
    }
    let mut found = Vec::new();
    for (shape, own) in &by_shape {
        divide(shape, own, &mut found);
    }
    let found = words(found);
    let mut found = below(found);
    found.sort_by(|one, other| one.pattern.cmp(&other.pattern));
    found
}

/// Makes patterns of paths of one shape: a segment with a few values is no identifier yet,
/// so that each of its values has patterns of its own.
fn divide(shape: &[String], paths: &[Vec<&str>], found: &mut Vec<Template>) {
    let values = |at: usize| -> BTreeSet<&str> {
        paths
            .iter()
            .filter_map(|path| path.get(at).copied())
            .collect()
    };
    let few = (0..shape.len()).find(|at| (2..VALUES_MIN).contains(&values(*at).len()));
    if let Some(at) = few {
        for value in values(at) {
            let own = paths.iter().filter(|path| path.get(at) == Some(&value));
            let own: Vec<Vec<&str>> = own.cloned().collect();
            divide(shape, &own, found);
        }
        return;
    }
    let mut openness = Openness::Exact;
    let segments = shape.iter().enumerate().map(|(at, shape)| {
        let own = values(at);
        match own.first() {
            Some(only) if own.len() == 1 => literal(only),
            Some(_) | None => {
                openness = Openness::Identifiers;
                shape.clone()
            }
        }
    });
    let pattern = segments.collect::<Vec<_>>().join("/");
    found.push(Template {
        pattern,
        openness,
        members: paths.iter().map(|path| path.join("/")).collect(),
    });
}

/// A segment that matches itself only.
fn literal(segment: &str) -> String {
    segment.replace('*', "%2A")
}

/// Leaves words open at places where there are many.
fn words(found: Vec<Template>) -> Vec<Template> {
    let longest = found.iter().map(|own| own.pattern.split('/').count()).max();
    let mut found = found;
    for at in (1..longest.unwrap_or(0)).rev() {
        let mut places: BTreeMap<String, Vec<Template>> = BTreeMap::new();
        for one in found {
            places
                .entry(opened(&one.pattern, at))
                .or_default()
                .push(one);
        }
        found = Vec::new();
        for (pattern, own) in places {
            if own.len() >= WORDS_MIN {
                found.push(joined(pattern, Openness::Words, own));
            } else {
                found.extend(own);
            }
        }
    }
    found
}

/// The pattern with this segment open; as it is where that would be another path to some
/// server, or where there is nothing to open.
fn opened(pattern: &str, at: usize) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+~*".contains(&byte);
    let count = pattern.split('/').count();
    let segments = pattern.split('/').enumerate().map(|(own, segment)| {
        let is_plain = segment.bytes().all(plain) && !segment.ends_with('.');
        // Nobody opens `**`, nor the name of a directory's own page.
        if own == at && at < count && is_plain && !segment.is_empty() && segment != "**" {
            "*"
        } else {
            segment
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Leaves everything below directories open where there are too many patterns.
fn below(found: Vec<Template>) -> Vec<Template> {
    let (long, found): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|own| own.pattern.len() > PATTERN_BYTES_MAX);
    let mut directories: BTreeMap<String, Vec<Template>> = BTreeMap::new();
    for one in long {
        directories.entry(kept(&one.pattern)).or_default().push(one);
    }
    let mut out = found;
    for (pattern, own) in directories {
        let openness = openness_of(&pattern);
        out.push(joined(pattern, openness, own));
    }
    if out.len() <= PATTERNS_MAX {
        return out;
    }
    let mut directories: BTreeMap<String, Vec<Template>> = BTreeMap::new();
    for one in out {
        let first = one.pattern.split('/').nth(1).unwrap_or_default().to_owned();
        directories.entry(first).or_default().push(one);
    }
    let mut out = Vec::new();
    for (first, own) in directories {
        let is_open = first.contains('*') || first.is_empty();
        if own.len() > PATTERNS_OF_DIRECTORY_MAX && !is_open {
            out.push(joined(format!("/{first}/**"), Openness::Below, own));
        } else {
            out.extend(own);
        }
    }
    if out.len() <= PATTERNS_MAX {
        return out;
    }
    vec![joined("/**".to_owned(), Openness::All, out)]
}

/// The part of a long pattern that is kept, and everything below it.
fn kept(pattern: &str) -> String {
    let end = pattern.floor_char_boundary(PATTERN_BYTES_MAX);
    let head = pattern.get(..end).unwrap_or_default();
    let directory = head.rsplit_once('/').map_or("", |(directory, _)| directory);
    format!("{directory}/**")
}

fn openness_of(pattern: &str) -> Openness {
    if pattern == "/**" {
        Openness::All
    } else {
        Openness::Below
    }
}

fn joined(pattern: String, openness: Openness, own: Vec<Template>) -> Template {
    let openness = own.iter().map(|one| one.openness).fold(openness, Ord::max);
    Template {
        pattern,
        openness,
        members: own.into_iter().flat_map(|one| one.members).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        let found = templates(&paths);
        let patterns: Vec<&str> = found.iter().map(|own| own.pattern.as_str()).collect();
        assert_eq!(patterns, expected);
    }

    #[test]
    fn identifiers_are_left_open_after_several_values() {
        check(&["/u/1"], &["/u/1"]);
        check(&["/u/1", "/u/2"], &["/u/1", "/u/2"]);
        check(&["/u/1", "/u/2", "/u/33"], &["/u/*"]);
        check(
            &["/u/me", "/u/you", "/u/them"],
            &["/u/me", "/u/them", "/u/you"],
        );
        check(
            &["/p/toy-1.0.0.tgz", "/p/toy-1.0.1.tgz", "/p/toy-2.0.0.tgz"],
            &["/p/toy-*.tgz"],
        );
        check(
            &["/d/2026-01-01", "/d/2026-01-02", "/d/2026-11-03", "/d/"],
            &["/d/", "/d/*"],
        );
        // Two owners stay two owners.
        check(
            &["/1/x/7", "/1/x/8", "/1/x/9", "/2/x/7", "/2/x/8", "/2/x/9"],
            &["/1/x/*", "/2/x/*"],
        );
        check(&["/a*b", "/"], &["/", "/a%2Ab"]);
    }

    #[test]
    fn words_are_left_open_where_nobody_would_read_them() {
        let names: BTreeSet<String> = ('a'..='m').map(|letter| format!("/p/{letter}/x")).collect();
        let found = templates(&names);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].pattern.as_str(), found[0].openness),
            ("/p/*/x", Openness::Words)
        );
        let fewer = names.into_iter().skip(1).collect();
        assert_eq!(templates(&fewer).len(), 12);
    }

    #[test]
    fn too_many_patterns_become_directories() {
        let mut paths = BTreeSet::new();
        for word in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            for depth in 1..=5 {
                paths.insert(format!("/v1/{word}{}", "/x".repeat(depth)));
            }
        }
        paths.insert("/other".to_owned());
        let found = templates(&paths);
        let patterns: Vec<_> = found.iter().map(|own| own.pattern.as_str()).collect();
        assert_eq!(patterns, ["/other", "/v1/**"]);
        assert_eq!(found[1].openness, Openness::Below);
        let long = format!("/a/{}/{}", "b".repeat(400), "c".repeat(400));
        let found = templates(&BTreeSet::from([long]));
        assert_eq!(found[0].pattern, format!("/a/{}/**", "b".repeat(400)));
    }

    proptest! {
        #[test]
        fn each_path_is_a_member_of_one_pattern(
            paths in prop::collection::btree_set("(/[a-c0-3*.%-]{0,3}){1,4}", 0..60)
        ) {
            let found = templates(&paths);
            let members: Vec<&String> = found.iter().flat_map(|own| &own.members).collect();
            prop_assert_eq!(members.len(), paths.len());
            prop_assert_eq!(members.into_iter().collect::<BTreeSet<_>>(), paths.iter().collect());
            prop_assert!(found.len() <= PATTERNS_MAX);
        }
    }
}
