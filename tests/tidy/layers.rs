//! Which modules of a crate import which: no top-level module imports itself by way of others.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{self, assert_none};
use crate::lexer::code;

/// Crates whose modules lie in layers.
const LAYERED: [&str; 4] = [
    "ca/src",
    "configs/policy/src",
    "gateway/src",
    "launcher/src",
];

/// Top-level modules, each with those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_lie_in_layers() {
    let mut faults = Vec::new();
    for crate_ in LAYERED {
        let imports = imports(crate_);
        assert!(imports.len() > 1, "{crate_} has modules");
        for module in imports.keys() {
            if reached(&imports, module).contains(module) {
                faults.push(format!("{crate_}/{module}.rs"));
            }
        }
    }
    assert_none("modules that import themselves by way of others", &faults);
}

#[test]
fn imports_are_read_however_they_are_written() {
    let read = |text: &str, own: &[&str]| {
        let own: Vec<String> = own.iter().map(|part| (*part).to_owned()).collect();
        let found = roots(&code(text), &own);
        found.into_iter().collect::<Vec<_>>().join(" ")
    };
    let own = ["a", "b"];
    assert_eq!(read("use crate::x;", &own), "x");
    assert_eq!(read("use crate::{x, y::{self, z}, v as w};", &own), "v x y");
    assert_eq!(read("fn f() { crate::x::g() } // crate::y", &own), "x");
    assert_eq!(read("use super::c;", &own), "a");
    assert_eq!(read("use super::super::{x, y};", &own), "x y");
    assert_eq!(read("use super::x;", &["a"]), "x");
    assert_eq!(read("use other_crate::x;", &own), "");
}

/// The modules that a module imports, and those that they import.
fn reached(imports: &Imports, module: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = imports.get(module).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module.clone()) {
            next.extend(imports.get(module).into_iter().flatten());
        }
    }
    reached
}

/// The imports of a crate, given by its folder of sources.
fn imports(folder: &str) -> Imports {
    let mut imports = Imports::new();
    let own = |file: &files::File| file.is_below(folder) && !file.is_test();
    for file in files::sources().into_iter().filter(own) {
        let below = file.path.trim_start_matches(folder).trim_matches('/');
        let below = below.trim_end_matches(".rs");
        if ["lib", "main"].contains(&below) {
            continue;
        }
        let module: Vec<String> = below.split('/').map(str::to_owned).collect();
        let Some(top) = module.first().cloned() else {
            continue;
        };
        let body = file.text.split("\n#[cfg(test)]\nmod ").next();
        let mut found = roots(&code(body.unwrap_or_default()), &module);
        found.remove(&top);
        imports.entry(top).or_default().append(&mut found);
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for imported in imports.values_mut() {
        // What lies in the root itself is no module.
        imported.retain(|name| modules.contains(name));
    }
    imports
}

/// The first parts of all paths in a code that begin in its crate, in the module `own`.
fn roots(code: &str, own: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (start, word) in ["crate::", "super::"]
        .iter()
        .flat_map(|word| code.match_indices(word))
    {
        let (before, rest) = code.split_at(start);
        let before = before.chars().next_back();
        // The middle of a path was read from its beginning.
        if before.is_some_and(|c| is_part(c) || c == ':') {
            continue;
        }
        let base = if word == "crate::" { &[][..] } else { up(own) };
        path(
            rest.strip_prefix(word).unwrap_or_default(),
            base,
            &mut found,
        );
    }
    found
}

/// The module around a module.
fn up(own: &[String]) -> &[String] {
    own.split_last().map_or(&[], |(_, rest)| rest)
}

/// Reads a path, or a group of them, behind a module.
fn path(text: &str, base: &[String], found: &mut BTreeSet<String>) {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("super::") {
        return path(rest, up(base), found);
    }
    if let Some(group) = text.strip_prefix('{') {
        let mut depth = 1_usize;
        let mut start = 0;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || depth == 1 && c == ',' {
                path(group.get(start..at).unwrap_or_default(), base, found);
                start = at + 1;
            }
            if depth == 0 {
                return;
            }
        }
        return;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let named = text.get(..end).unwrap_or_default();
    let first = base.first().map_or(named, String::as_str);
    if !first.is_empty() {
        found.insert(first.to_owned());
    }
}
