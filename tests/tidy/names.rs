//! What types are called: whoever reads two crates side by side meets no name twice.

use std::collections::BTreeMap;

use crate::files::{self, File, assert_none};
use crate::lexer::code;

/// Of a hundred types of the crates, how many may have a namesake somewhere.
const NAMESAKES_MAX: usize = 25;

/// Words that declare a type.
const DECLARES: [&str; 3] = ["struct", "enum", "union"];

/// A type: its file, who sees it, and its name.
struct Declared {
    path: String,
    is_public: bool,
    name: String,
}

/// The types of the crates and programs, without those of tests.
fn types() -> Vec<Declared> {
    let mut found = Vec::new();
    let is_other = |file: &File| {
        let mut parts = file.path.split('/');
        file.is_test() || parts.any(|part| ["fuzz", "fuzz.rs", "examples"].contains(&part))
    };
    for file in files::sources().into_iter().filter(|file| !is_other(file)) {
        let body = file.text.split("\n#[cfg(test)]\n").next();
        for line in code(body.unwrap_or_default()).lines() {
            found.extend(declared(line).map(|(is_public, name)| Declared {
                path: file.path.clone(),
                is_public,
                name: name.to_owned(),
            }));
        }
    }
    found
}

/// The type that a line declares, and whether other crates may see it.
fn declared(line: &str) -> Option<(bool, &str)> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let (is_public, keyword) = if first.starts_with("pub") {
        (first == "pub", words.next()?)
    } else {
        (false, first)
    };
    let name = words.next().filter(|_| DECLARES.contains(&keyword))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some((is_public, name.get(..end.unwrap_or(name.len()))?))
}

#[test]
fn no_two_public_types_share_a_name() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Programs show their types to nobody.
    let types = types().into_iter();
    for one in types.filter(|one| one.is_public && !one.path.contains("/cli/")) {
        names.entry(one.name).or_default().push(one.path);
    }
    assert!(names.len() > 200, "the types were found: {}", names.len());
    let faults: Vec<String> = names
        .into_iter()
        .filter(|(_, paths)| paths.len() > 1)
        .map(|(name, paths)| format!("{name}: {}", paths.join(", ")))
        .collect();
    assert_none("public types of one name", &faults);
}

#[test]
fn few_types_have_a_namesake() {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for one in types() {
        *names.entry(one.name).or_default() += 1;
    }
    let all: usize = names.values().sum();
    let twins: usize = names.values().filter(|count| **count > 1).sum();
    assert!(all > 1000, "the types were found: {all}");
    assert!(
        twins * 100 <= all * NAMESAKES_MAX,
        "{twins} of {all} types have a namesake"
    );
}

#[test]
fn types_are_read_as_they_are_declared() {
    assert_eq!(declared("pub struct One<T> {"), Some((true, "One")));
    assert_eq!(declared("    pub(crate) enum Two {"), Some((false, "Two")));
    assert_eq!(declared("struct Three(u8);"), Some((false, "Three")));
    assert_eq!(declared("let struct_ = 1;"), None);
    assert_eq!(declared("impl One {}"), None);
}
