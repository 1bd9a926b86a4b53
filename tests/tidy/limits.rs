//! Where bounds stand: those that several folders obey in a `limits` file, others beside the
//! code that they bound. Each says what it counts and why, and nothing waits or queues by a
//! bare number.

use crate::files::{self, File, assert_none};
use crate::lexer::code;

/// How the names of bounds end.
const ENDINGS: [&str; 8] = [
    "_MAX", "_MIN", "_TIME", "_WAIT", "_MS", "_FREE", "_IDLE", "_PAUSE",
];

/// What waits, queues or runs beside others by how much it is given.
const GIVEN: [&str; 6] = [
    "Duration::from_millis(",
    "Duration::from_secs(",
    "Duration::from_mins(",
    "channel(",
    "Semaphore::new(",
    "max_blocking_threads(",
];

/// One bound: its line, who may name it, and whether the line before says something of it.
struct Bound<'t> {
    line: usize,
    name: &'t str,
    seen_by: SeenBy,
    is_told: bool,
}

/// Who may name a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenBy {
    /// Its own file or folder.
    Near,
    /// Any of its crate, or of others.
    All,
}

/// The sources that are built into programs, each without its tests.
fn production() -> Vec<File> {
    let mut files = files::sources();
    files.retain(|file| {
        let mut parts = file.path.split('/');
        !file.is_test() && !parts.any(|part| ["fuzz", "fuzz.rs", "examples"].contains(&part))
    });
    for file in &mut files {
        let body = file.text.split("\n#[cfg(test)]\n").next();
        file.text = body.unwrap_or_default().to_owned();
    }
    files
}

/// The bounds of a source: constants on lines of their own.
fn bounds(text: &str) -> Vec<Bound<'_>> {
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let constant = line.split_once("const ").and_then(|(seen_by, rest)| {
            let (name, _) = rest.split_once(": ")?;
            let is_bound = ENDINGS.iter().any(|ending| name.ends_with(ending));
            let is_own = seen_by.is_empty() || seen_by.starts_with("pub");
            (is_bound && is_own).then_some((seen_by.trim(), name))
        });
        if let Some((seen_by, name)) = constant {
            found.push(Bound {
                line: number,
                name,
                seen_by: if ["pub", "pub(crate)"].contains(&seen_by) {
                    SeenBy::All
                } else {
                    SeenBy::Near
                },
                is_told: before.starts_with("///") || before.starts_with("#["),
            });
            // Several that follow each other are told of together.
            continue;
        }
        before = line;
    }
    found
}

#[test]
fn a_bound_that_others_obey_stands_in_a_limits_file() {
    let (mut faults, mut count) = (Vec::new(), 0);
    for file in production() {
        let is_home = file.path.ends_with("/limits.rs");
        for bound in bounds(&file.text) {
            count += 1;
            if bound.seen_by == SeenBy::All && !is_home {
                faults.push(format!("{}:{}: {}", file.path, bound.line, bound.name));
            }
        }
    }
    assert!(count > 400, "the bounds were found: {count}");
    assert_none(
        "bounds for several folders outside of limits files",
        &faults,
    );
}

#[test]
fn every_bound_says_what_it_is_for() {
    let mut faults = Vec::new();
    for file in production() {
        let untold = bounds(&file.text)
            .into_iter()
            .filter(|bound| !bound.is_told);
        faults.extend(untold.map(|bound| format!("{}:{}: {}", file.path, bound.line, bound.name)));
    }
    assert_none("bounds without a word", &faults);
}

#[test]
fn nothing_waits_or_queues_by_a_bare_number() {
    let mut faults = Vec::new();
    for file in production() {
        if file.path.ends_with("/limits.rs") {
            continue;
        }
        for (number, line) in (1..).zip(code(&file.text).lines()) {
            if line.contains("const ") || line.contains("static ") {
                continue;
            }
            for given in GIVEN {
                let mut places = line.match_indices(given);
                let is_bare = |(at, _): (usize, &str)| {
                    // One at a time is a turn.
                    let behind = line.get(at + given.len()..).unwrap_or_default();
                    behind.starts_with(|c: char| c.is_ascii_digit()) && !behind.starts_with("1)")
                };
                if places.any(is_bare) {
                    faults.push(format!("{}:{number}: {}", file.path, line.trim()));
                }
            }
        }
    }
    assert_none("waits and queues by bare numbers", &faults);
}

#[test]
fn bounds_are_read_as_they_are_written() {
    let text = "/// One.\npub(crate) const A_MAX: usize = 1;\nconst B_MAX: u8 = 2;\n\nconst C_MS: u16 = 3;\n";
    let found: Vec<(&str, SeenBy, bool)> = bounds(text)
        .iter()
        .map(|bound| (bound.name, bound.seen_by, bound.is_told))
        .collect();
    let expected = [
        ("A_MAX", SeenBy::All, true),
        ("B_MAX", SeenBy::Near, true),
        ("C_MS", SeenBy::Near, false),
    ];
    assert_eq!(found, expected);
}
