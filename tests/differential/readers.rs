//! Programs in seven languages that tell what the parsers there make of a text.
//!
//! Each gets all texts at once on its standard input, and writes one line for
//! each: entries between tabs, fields between blanks, all bytes escaped but
//! letters and digits.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::judge::unescaped;

/// What the texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Path,
    Query,
}

/// A key and a value of a query.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// What parsers made of one text: the parser, and what it found.
pub(crate) type Found<T> = Vec<(String, T)>;

/// What stands in an entry behind the name of the parser.
pub(crate) trait Entry: Sized {
    fn of(fields: &[Vec<u8>]) -> Self;
}

impl Entry for Vec<u8> {
    fn of(fields: &[Vec<u8>]) -> Self {
        fields[0].clone()
    }
}

impl Entry for Pair {
    fn of(fields: &[Vec<u8>]) -> Self {
        (fields[0].clone(), fields[1].clone())
    }
}

/// Where the pinned parsers were installed by `tools/install`.
fn tools() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    std::env::var_os("OUTGATE_READER_TOOLS")
        .map_or_else(|| target.join("reader-tools"), PathBuf::from)
}

/// The programs, and whether they know of paths and queries: all do.
fn programs() -> Vec<(&'static str, Vec<String>)> {
    let tools = tools();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/readers");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let tool = |name: &str| tools.join(name).to_string_lossy().into_owned();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    let classes = format!("{}:/usr/share/java/*", tool("java"));
    vec![
        ("node", vec![file("readers.js")]),
        ("/usr/bin/python3", vec![file("readers.py")]),
        (
            "php",
            words(&["-n", "-d", "max_input_vars=1000", &file("readers.php")]),
        ),
        ("ruby", vec![file("readers.rb")]),
        ("perl", vec![file("readers.pl")]),
        (
            "java",
            words(&[
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Dsun.net.httpserver.nodelay=true",
                "-cp",
                &classes,
                "Readers",
            ]),
        ),
        ("go", Vec::new()),
    ]
}

/// Asks every program about every text.
pub(crate) fn ask<T: Entry + Send>(kind: Kind, texts: &[String]) -> Vec<(String, Found<T>)> {
    let letter = match kind {
        Kind::Path => "P",
        Kind::Query => "Q",
    };
    let mut input = String::new();
    for text in texts {
        for part in [letter, " ", text, "\n"] {
            input.push_str(part);
        }
    }
    let mut out: Vec<(String, Found<T>)> = texts
        .iter()
        .map(|text| (text.clone(), Vec::new()))
        .collect();
    let answers: Vec<(&str, String)> = std::thread::scope(|scope| {
        let running: Vec<_> = programs()
            .into_iter()
            .map(|(program, arguments)| {
                let input = input.as_bytes();
                scope.spawn(move || (program, run(program, &arguments, input)))
            })
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("a program that answers"))
            .collect()
    });
    for (program, answer) in answers {
        let lines: Vec<&str> = answer.lines().collect();
        assert_eq!(lines.len(), texts.len(), "lines of {program}");
        let entries: usize = lines.iter().map(|line| line.matches(' ').count()).sum();
        assert!(
            texts.is_empty() || entries > 0,
            "{program} reads nothing at all"
        );
        for (line, (_, found)) in lines.into_iter().zip(&mut out) {
            for entry in line.split('\t').filter(|entry| !entry.is_empty()) {
                let fields: Vec<Vec<u8>> = entry
                    .split(' ')
                    .map(|field| unescaped(field.as_bytes()))
                    .collect();
                let name = String::from_utf8_lossy(&fields[0]).into_owned();
                found.push((name, T::of(&fields[1..])));
            }
        }
    }
    out
}

/// Runs one program, the texts on its standard input.
pub(crate) fn run(program: &str, arguments: &[String], input: &[u8]) -> String {
    let tools = tools();
    let compiled = tools.join("go/readers");
    let path = if program == "go" {
        compiled.as_os_str()
    } else {
        program.as_ref()
    };
    let mut child = Command::new(path)
        .args(arguments)
        .env("READER_TOOLS", &tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{program}: {error}; tests/differential/tools/install installs it")
        });
    let mut stdin = child.stdin.take().expect("its input");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            stdin.write_all(input).expect("a program that reads");
        });
        child.wait_with_output().expect("its output")
    });
    assert!(
        output.status.success(),
        "{program} ends with {}",
        output.status
    );
    String::from_utf8(output.stdout).expect("ASCII")
}
