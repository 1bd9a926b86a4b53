//! Which modules of a crate import which: no top-level module imports itself by way of others.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{self, assert_none};
use crate::lexer::code;

/// Crates whose modules lie in layers.
const LAYERED: [&str; 13] = [
    "ca/src",
    "configs/policy/src",
    "dlp/src",
    "gateway/cli",
    "gateway/handoff/src",
    "gateway/record/src",
    "gateway/report/cli",
    "gateway/src",
    "launcher/cli",
    "launcher/src",
    "launcher/sys/lanes/src",
    "launcher/sys/src",
    "tests/harness/src",
];

/// Modules of the gateway that judge, carry, send and answer requests, and know no filter.
const CARRIERS: [&str; 10] = [
    "body",
    "content",
    "exchange",
    "filter",
    "forward",
    "http1",
    "http2",
    "origin",
    "replies",
    "websocket",
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
fn no_module_of_the_gateway_imports_one_above_its_layer() {
    let layers = layers(&files::text("ARCHITECTURE.md"));
    let imports = imports("gateway/src");
    let mut faults = Vec::new();
    for (module, imported) in &imports {
        let Some(own) = layers.get(module) else {
            faults.push(format!("{module}.rs stands in no layer"));
            continue;
        };
        let above = |other: &&String| layers.get(*other).is_some_and(|layer| layer > own);
        for other in imported.iter().filter(above) {
            faults.push(format!("{module}.rs imports {other}.rs"));
        }
    }
    let gone = layers
        .keys()
        .filter(|module| !imports.contains_key(*module));
    faults.extend(gone.map(|module| format!("{module}.rs does not exist")));
    assert_none("layers of the gateway in ARCHITECTURE.md", &faults);
}

#[test]
fn what_carries_requests_knows_no_filter() {
    let imports = imports("gateway/src");
    let mut filters = imports.get("filters").cloned().unwrap_or_default();
    assert!(filters.remove("filter") && filters.remove("session"));
    assert!(filters.len() >= 4, "the filters were found: {filters:?}");
    let mut faults = Vec::new();
    for carrier in CARRIERS {
        let imported = imports.get(carrier).expect(carrier);
        let known = imported.intersection(&filters);
        faults.extend(known.map(|filter| format!("{carrier}.rs imports {filter}.rs")));
    }
    assert_none("modules that know a filter by name", &faults);
}

/// The modules of the table of layers in the map, each with the number of its layer.
fn layers(map: &str) -> BTreeMap<String, usize> {
    let table = map.split_once("| layer |").map_or("", |(_, rest)| rest);
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut layers = BTreeMap::new();
    for (layer, row) in rows.enumerate() {
        for module in row.split('`').skip(1).step_by(2) {
            let before = layers.insert(module.to_owned(), layer);
            assert!(before.is_none(), "{module} stands in two layers");
        }
    }
    assert!(layers.len() > 20, "the table was found");
    layers
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
    // Targets for fuzzing call their modules and are called by nobody.
    let is_target =
        |file: &files::File| file.path.split('/').any(|p| p == "fuzz" || p == "fuzz.rs");
    // The crate that tests share is one like any other.
    let is_shared = folder.starts_with("tests/");
    let is_test = |file: &files::File| file.is_test() && !is_shared;
    let own = |file: &files::File| file.is_below(folder) && !is_test(file) && !is_target(file);
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
