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
const TOP_ALLOWED: [&str; 3] = ["ca", "dlp", "docs"];

/// Lines of ARCHITECTURE.md at most: it is read from its first to its last line.
const MAP_LINES_MAX: usize = 250;

/// Words of its glossary at most.
const GLOSSARY_MAX: usize = 40;

/// Promises of the first section of SECURITY.md.
const PROMISES: usize = 7;

/// Rows of docs/FIRST-MINUTE.md.
const FIRST_MINUTES: usize = 27;

/// Sections of docs/EXTENDING.md that say how many files of production something touches.
const BOUNDED_SECTIONS: usize = 5;

/// What the map names in backticks and means as a file or a folder.
fn places(map: &str) -> BTreeSet<String> {
    let quoted = map
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let endings = [".rs", "/", "/src"];
    let is_place = |name: &&str| endings.iter().any(|ending| name.ends_with(ending));
    let no_command = |name: &&str| !name.contains([' ', '*', '#', ':']);
    quoted
        .filter(is_place)
        .filter(no_command)
        .map(|name| name.trim_end_matches('/').to_owned())
        .collect()
}

#[test]
fn the_map_leads_to_what_exists() {
    let map = files::text("ARCHITECTURE.md");
    let places = places(&map);
    assert!(
        places.len() > 50,
        "the map was found: {} places",
        places.len()
    );
    let known: BTreeSet<String> = files::all().into_iter().map(|file| file.path).collect();
    let exists = |place: &String| {
        let within = format!("/{place}/");
        known
            .iter()
            .any(|path| format!("/{path}/").contains(&within))
    };
    let faults: Vec<String> = places.into_iter().filter(|place| !exists(place)).collect();
    assert_none("places in maps that do not exist", &faults);
}

#[test]
fn the_page_of_kernels_explains_every_row_of_the_check() {
    let page = files::text("docs/KERNEL.md");
    let probe = files::text("launcher/src/probe.rs");
    let names = probe.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("name: \"")?;
        Some(name.trim_end_matches(['"', ',']).to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    assert!(names.len() >= 9, "the rows were found: {names:?}");
    let faults: Vec<String> = names
        .into_iter()
        .filter(|name| !page.contains(&format!("\n| `{name}` |")))
        .collect();
    assert_none(
        "rows of `outgate check` without a line in docs/KERNEL.md",
        &faults,
    );
}

#[test]
fn adding_something_touches_no_more_files_than_its_page_says() {
    let page = files::text("docs/EXTENDING.md");
    let known: BTreeSet<String> = files::all().into_iter().map(|file| file.path).collect();
    let (mut faults, mut bounded) = (Vec::new(), 0);
    for section in page.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        let named = section.split('`').skip(1).step_by(2);
        let is_path = |name: &&str| name.contains('/') && !name.contains([' ', '*', ':', '{']);
        for path in named.filter(is_path) {
            let path = path.trim_end_matches('/');
            let within = format!("{path}/");
            let exists = |own: &String| own == path || own.starts_with(&within);
            if !known.iter().any(exists) {
                faults.push(format!("{name}: {path} does not exist"));
            }
        }
        let Some((_, rest)) = section.split_once("Production files at most: ") else {
            continue;
        };
        bounded += 1;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        let most: usize = digits.and_then(|digits| digits.parse().ok()).expect(name);
        let steps = rest.split("\nBeside them").next().unwrap_or_default();
        let production = steps.split('`').skip(1).step_by(2).filter(|name| {
            name.contains('/')
                && [".rs", ".json", "src/"]
                    .iter()
                    .any(|end| name.ends_with(end))
        });
        let count = production.collect::<BTreeSet<_>>().len();
        if count == 0 || count > most {
            faults.push(format!("{name}: {count} files, at most {most}"));
        }
    }
    assert_eq!(bounded, BOUNDED_SECTIONS, "the bounds were found");
    assert_none("what docs/EXTENDING.md says", &faults);
}

#[test]
fn the_map_leads_to_every_crate_and_suite() {
    let places = places(&files::text("ARCHITECTURE.md"));
    let mut faults = BTreeSet::new();
    for file in files::sources() {
        let path = file.path.as_str();
        let folder = match path.split_once("/src/") {
            Some((crate_, _)) if !file.is_test() => format!("{crate_}/src"),
            _ => match path
                .strip_prefix("tests/")
                .and_then(|rest| rest.split_once('/'))
            {
                Some((suite, _)) => suite.to_owned(),
                None => continue,
            },
        };
        if !places.contains(&folder) {
            faults.insert(folder);
        }
    }
    let faults: Vec<String> = faults.into_iter().collect();
    assert_none(
        "crates and suites that ARCHITECTURE.md does not name",
        &faults,
    );
}

#[test]
fn the_map_is_read_at_one_sitting() {
    let map = files::text("ARCHITECTURE.md");
    let lines = map.lines().count();
    assert!(lines <= MAP_LINES_MAX, "ARCHITECTURE.md: {lines} lines");
    let glossary = map.split_once("## Glossary").map_or("", |(_, rest)| rest);
    let words = glossary
        .lines()
        .filter(|line| line.starts_with("| "))
        .count();
    // The head of the table is one of them.
    assert!((10..=GLOSSARY_MAX + 1).contains(&words), "{words} words");
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
fn every_row_of_the_first_minute_names_tests_that_exist() {
    let text = files::text("docs/FIRST-MINUTE.md");
    let rows = text.lines().skip_while(|line| *line != "|---|---|").skip(1);
    let tests: Vec<files::File> = files::sources();
    let mut faults = Vec::new();
    let mut count = 0;
    for row in rows.filter(|line| line.starts_with("| ")) {
        count += 1;
        let (tried, named) = row.rsplit_once(" | ").expect("two columns");
        let names: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        let exists = |name: &&&str| {
            let wanted = format!("fn {name}(");
            tests.iter().any(|file| file.text.contains(&wanted))
        };
        if names.is_empty() {
            faults.push(format!("{tried}: no test"));
        }
        let missing = names.iter().filter(|name| !exists(name));
        faults.extend(missing.map(|name| format!("{tried}: {name}")));
    }
    assert!(count >= FIRST_MINUTES, "{count} rows");
    let defects = (1..=14).map(|number| format!("D{number}"));
    let is_there = |name: &String| {
        [")", ":"]
            .iter()
            .any(|end| text.contains(&format!("{name}{end}")))
    };
    faults.extend(defects.filter(|name| !is_there(name)));
    assert_none("rows of docs/FIRST-MINUTE.md without a test", &faults);
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
