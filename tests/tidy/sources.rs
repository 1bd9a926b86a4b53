//! What may stand in which source.

use crate::files::{self, assert_none};
use crate::lexer::{code, words};

/// Lines of a file without its tests.
const LINES_MAX: usize = 500;

/// The only folder with `unsafe`.
const UNSAFE: &str = "launcher/sys";

/// Whose types are written or read as data: the audit record. The policy
/// document and the frames are read by hand.
const SERIALISED: [&str; 3] = [
    "gateway/record/src/members.rs",
    "gateway/record/src/record.rs",
    "gateway/record/src/words.rs",
];

/// What writes to a terminal or ends the program.
const VOICES: [&str; 6] = [
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
    "ExitCode",
];

#[test]
fn every_file_says_what_it_is_for() {
    let silent = |file: &files::File| !file.text.starts_with("//!");
    let faults: Vec<String> = files::sources()
        .into_iter()
        .filter(silent)
        .map(|file| file.path)
        .collect();
    assert_none("files without a first comment", &faults);
}

#[test]
fn no_file_is_too_long() {
    let mut faults = Vec::new();
    for file in files::sources() {
        let body = file.text.split("\n#[cfg(test)]\nmod ").next();
        let lines = body.unwrap_or_default().lines().count();
        if lines > LINES_MAX {
            faults.push(format!("{}: {lines} lines", file.path));
        }
    }
    assert_none("files above 500 lines without tests", &faults);
}

#[test]
fn unsafe_stands_only_behind_its_fence() {
    let mut faults = Vec::new();
    for file in files::sources() {
        if file.is_below(UNSAFE) {
            continue;
        }
        for (line, word) in words(&code(&file.text)) {
            if word == "unsafe" {
                faults.push(format!("{}:{line}", file.path));
            }
        }
    }
    assert_none("unsafe outside launcher/sys", &faults);
}

#[test]
fn every_other_crate_forbids_unsafe() {
    let is_root = |path: &str| {
        let roots = ["/src/lib.rs", "/cli/lib.rs", "/cli/main.rs"];
        roots.iter().any(|root| path.ends_with(root))
    };
    let mut faults = Vec::new();
    for file in files::sources() {
        if !is_root(&file.path) || file.is_below(UNSAFE) {
            continue;
        }
        if !code(&file.text).contains("#![forbid(unsafe_code)]") {
            faults.push(file.path);
        }
    }
    assert_none("crate roots without `#![forbid(unsafe_code)]`", &faults);
}

#[test]
fn only_cli_folders_and_tools_print_and_end_the_program() {
    let mut faults = Vec::new();
    for file in files::sources() {
        if file.is_test()
            || ["/cli/", "/examples/"]
                .iter()
                .any(|part| file.path.contains(part))
        {
            continue;
        }
        for (line, word) in words(&code(&file.text)) {
            if VOICES.contains(&word.as_str()) {
                faults.push(format!("{}:{line}: {word}", file.path));
            }
        }
    }
    assert_none("printing outside cli folders and tools", &faults);
}

#[test]
fn only_the_named_files_serialise() {
    let mut faults = Vec::new();
    for file in files::sources() {
        if file.is_test() || SERIALISED.contains(&file.path.as_str()) {
            continue;
        }
        for (line, word) in words(&code(&file.text)) {
            if word == "Serialize" || word == "Deserialize" {
                faults.push(format!("{}:{line}: {word}", file.path));
            }
        }
    }
    assert_none("serialised types in other files", &faults);
}

#[test]
fn only_origin_dials() {
    // Beside it only the launcher's own sockets and the resolver's library connect.
    let mut faults = Vec::new();
    for file in files::sources() {
        let is_origin =
            file.path.starts_with("gateway/src/origin") || file.is_below("gateway/src/origin");
        if !file.is_below("gateway/src") || is_origin {
            continue;
        }
        let code = code(&file.text);
        for dial in ["TcpStream::connect", "TcpSocket::"] {
            let body = code.split("#[cfg(test)]").next().unwrap_or_default();
            if body.contains(dial) {
                faults.push(format!("{}: {dial}", file.path));
            }
        }
    }
    assert_none("dialling outside origin", &faults);
}

#[test]
fn whatever_is_dialled_was_vetted() {
    // For tunnels, requests, tries of a version and upstream proxies alike: they all go
    // through one file, whose functions take nothing else.
    let mut dials = 0;
    for file in files::sources()
        .into_iter()
        .filter(|file| file.is_below("gateway/src"))
    {
        let code = code(&file.text);
        let body = code.split("#[cfg(test)]").next().unwrap_or_default();
        for function in body.split("fn ").skip(1) {
            if !function.contains("TcpStream::connect") && !function.contains("TcpSocket::") {
                continue;
            }
            dials += 1;
            let takes = function.split('{').next().unwrap_or_default();
            assert_eq!(file.path, "gateway/src/origin/dial.rs");
            assert!(takes.contains("Vetted"), "a dial takes {takes}");
        }
    }
    assert!(dials > 0, "the dial was found");
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    // Put together here, so that this file does not hold them.
    let foreign = [
        concat!("/work", "/main"),
        concat!("/work", "/shared/"),
        concat!("/tmp", "/t-"),
        concat!("/tmp", "/plan"),
        concat!("/tmp", "/bin"),
        concat!("/root", "/"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("Being ", "written"),
    ];
    let mut faults = Vec::new();
    for file in files::all() {
        for (number, line) in file.text.lines().enumerate() {
            for word in foreign.iter().filter(|word| line.contains(**word)) {
                faults.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    assert_none("words that do not belong into the project", &faults);
}
