//! The documents against the project: the map, the commands, the tests that
//! promises name.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::files::{self, assert_none};

/// What has to lie in the root.
const TOP: [&str; 19] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "bench",
    "clippy.toml",
    "configs",
    "deny.toml",
    "gateway",
    "launcher",
    "rustfmt.toml",
    "tests",
];

/// What may lie there too.
const TOP_ALLOWED: [&str; 2] = ["ca", "dlp"];

/// Folders of programs: the map names each of their files. Elsewhere it may
/// name a folder for all that is in it.
const PROGRAMS: [&str; 4] = ["configs/policy/src", "dlp/src", "gateway", "launcher"];

/// Promises of the first section of SECURITY.md.
const PROMISES: usize = 7;

/// Entries of the map: below a heading with a folder in it, every item that
/// begins with a name in backticks.
fn map() -> BTreeSet<String> {
    let mut folder = String::new();
    let mut entries = BTreeSet::new();
    for line in files::text("ARCHITECTURE.md").lines() {
        let quoted = |text: &str| Some(text.split_once('`')?.0.to_owned());
        if let Some(name) = line.strip_prefix("### `").and_then(quoted) {
            folder = name;
        } else if line.starts_with('#') {
            folder.clear();
        } else if let Some(name) = line.strip_prefix("- `").and_then(quoted)
            && !folder.is_empty()
        {
            entries.insert(format!("{folder}/{name}"));
        }
    }
    entries
}

#[test]
fn the_map_names_every_file() {
    let map = map();
    let mut faults = Vec::new();
    for file in files::sources() {
        let is_program = PROGRAMS.iter().any(|folder| file.is_below(folder)) && !file.is_test();
        let in_folder = || {
            let folders = map.iter().filter_map(|entry| entry.strip_suffix('/'));
            folders.into_iter().any(|folder| file.is_below(folder))
        };
        if !map.contains(&file.path) && (is_program || !in_folder()) {
            faults.push(file.path);
        }
    }
    assert_none("files that ARCHITECTURE.md does not name", &faults);
}

#[test]
fn the_map_names_nothing_else() {
    let map = map();
    assert!(map.len() > 50, "the map was found: {} entries", map.len());
    let faults: Vec<String> = map
        .into_iter()
        .filter(|entry| !files::root().join(entry).exists())
        .collect();
    assert_none("entries of ARCHITECTURE.md without a file", &faults);
}

#[test]
fn the_root_holds_what_it_should() {
    let top: BTreeSet<String> = files::top().into_iter().collect();
    let needed: BTreeSet<String> = TOP.iter().map(|name| (*name).to_owned()).collect();
    let missing: Vec<String> = needed.difference(&top).cloned().collect();
    assert_none("missing in the root", &missing);
    let foreign: Vec<String> = top
        .difference(&needed)
        .filter(|name| !TOP_ALLOWED.contains(&name.as_str()))
        .cloned()
        .collect();
    assert_none("not to be in the root", &foreign);
}

/// Lines of the fenced shell blocks of a document.
fn commands(document: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in files::text(document).lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && !line.trim_start().starts_with('#') {
            lines.push(line.trim().to_owned());
        }
    }
    lines
}

#[test]
fn the_commands_of_the_readme_run_in_ci() {
    let script = files::text(".ci/run");
    let commands = commands("README.md");
    let cargo: Vec<&String> = commands
        .iter()
        .filter(|line| line.starts_with("cargo ") && !line.starts_with("cargo install"))
        .collect();
    assert!(cargo.len() >= 2, "the first two commands: {commands:?}");
    for (position, line) in cargo.iter().enumerate() {
        assert!(script.contains(line.as_str()), "`{line}` is not in .ci/run");
        let of_first = commands.iter().position(|other| other == *line);
        assert!(position > 1 || of_first <= Some(1), "`{line}` comes first");
    }
}

#[test]
fn the_script_stops_at_the_first_fault() {
    let path = files::root().join(".ci/run");
    let mode = fs::metadata(path).expect(".ci/run").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "it can be executed");
    let script = files::text(".ci/run");
    assert!(script.starts_with("#!/usr/bin/env bash\n"));
    assert!(script.contains("\nset -euo pipefail\n"));
}

/// Names of tests in the paragraphs of SECURITY.md that begin with `Tests:`.
fn named_tests() -> (usize, BTreeSet<String>) {
    let mut paragraphs = 0;
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in files::text("SECURITY.md").lines() {
        let begins = line.trim_start().starts_with("Tests:");
        paragraphs += usize::from(begins);
        inside = begins || (inside && !line.trim().is_empty());
        if inside {
            let quoted = line.split('`').skip(1).step_by(2);
            names.extend(quoted.map(str::to_owned));
        }
    }
    (paragraphs, names)
}

#[test]
fn every_promise_names_tests_that_exist() {
    let (paragraphs, names) = named_tests();
    assert!(paragraphs >= PROMISES, "{paragraphs} lists of tests");
    let tests: Vec<files::File> = files::sources();
    let exists = |name: &String| {
        let wanted = format!("fn {name}(");
        tests.iter().any(|file| file.text.contains(&wanted))
    };
    let faults: Vec<String> = names.into_iter().filter(|name| !exists(name)).collect();
    assert_none("tests that SECURITY.md names and nobody wrote", &faults);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    for file in files::all() {
        if !file.has_ending("md") {
            continue;
        }
        let folder = files::root().join(&file.path);
        let folder = folder.parent().expect("the folder of a file");
        for link in file.text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            let is_local = !target.is_empty() && !target.contains("://");
            if is_local && !folder.join(target).exists() {
                faults.push(format!("{}: {target}", file.path));
            }
        }
    }
    assert_none("links that lead nowhere", &faults);
}
