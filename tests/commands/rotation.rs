//! Records in many files, plain and compressed: rotated by a real run, verified and searched
//! as one, and attacked by whoever may write their directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::{Identity, Sandbox, lab_tests};
use outgate_record::{BlockHead, pack_block};

use crate::audit::{ALLOWED, CONNECT, DENIED, FINISH, FLOW, START, chained};
use crate::{Desk, call};

/// Puts lines into a file of the directory `all`, compressed where its name says so.
fn put(desk: &Desk, name: &str, lines: &[String]) {
    let all = desk.directory.join("all");
    fs::create_dir_all(&all).expect("a directory");
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let bytes = if Path::new(name).extension().is_some_and(|end| end == "gz") {
        pack_block(text.as_bytes()).expect("a block")
    } else {
        text.into_bytes()
    };
    fs::write(all.join(name), bytes).expect("a file");
}

const FIRST: &str = "20261121T120000.000Z-1.jsonl.gz";
const SECOND: &str = "20261121T120000.000Z-1.part000002.jsonl.gz";
const THIRD: &str = "20261121T120000.000Z-1.part000003.jsonl";

/// A record of three files, of which the last one is not compressed. `removed` is a member
/// that its last file begins with.
fn three(removed: &str) -> Desk {
    let removed = format!("{removed}{CONNECT}");
    let members = [
        START, CONNECT, ALLOWED, DENIED, FLOW, &removed, DENIED, FINISH,
    ];
    let lines = chained("r-1", &members);
    let desk = Desk::new();
    let mut rest = lines.as_slice();
    for name in [FIRST, SECOND, THIRD] {
        let (own, more) = rest.split_at(rest.len().min(3));
        put(&desk, name, own);
        rest = more;
    }
    desk
}

fn verified(desk: &Desk) -> (i32, String) {
    let said = desk.call(&["audit", "verify", "all"]);
    (said.status, said.stdout + &said.stderr)
}

#[test]
fn a_record_of_many_files_is_verified_as_one_and_every_change_is_found() {
    let desk = three("");
    let (status, said) = verified(&desk);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("r-1: 8 records\n"), "{said}");
    let file = |desk: &Desk, name: &str| desk.directory.join("all").join(name);
    for (name, missing) in [(FIRST, "records 1 to 3"), (SECOND, "records 4 to 6")] {
        let desk = three("");
        fs::remove_file(file(&desk, name)).expect("removed");
        let (status, said) = verified(&desk);
        assert!(
            status == 1 && said.contains(missing),
            "{name} {status}: {said}"
        );
    }
    let desk = three("");
    fs::remove_file(file(&desk, THIRD)).expect("removed");
    let (status, said) = verified(&desk);
    assert!(status == 1 && said.contains("its end is missing"), "{said}");
    // Two files in each other's place.
    let desk = three("");
    let (one, two) = (file(&desk, FIRST), file(&desk, SECOND));
    let other = file(&desk, "other");
    for (from, to) in [(&one, &other), (&two, &one), (&other, &two)] {
        fs::rename(from, to).expect("renamed");
    }
    assert_eq!(verified(&desk).0, 1);
    // A line changed, and the file compressed anew.
    let desk = three("");
    let changed = chained("r-1", &[START, CONNECT, DENIED]);
    put(&desk, FIRST, &changed);
    let (status, said) = verified(&desk);
    assert!(
        status == 1 && said.contains("record 3 of r-1 was changed"),
        "{said}"
    );
    // Bits and ends.
    let good = fs::read(&two).expect("a file");
    for place in [0, 17, 5000, good.len() - 20, good.len() - 1] {
        let desk = three("");
        let mut bytes = good.clone();
        bytes.truncate(place);
        fs::write(file(&desk, SECOND), bytes).expect("written");
        assert_ne!(verified(&desk).0, 0, "cut at {place}");
    }
}

#[test]
fn what_retention_removed_is_told_from_what_is_missing() {
    let says = "\"removed\":\"r-1:4\",";
    let desk = three(says);
    fs::remove_file(desk.directory.join("all").join(FIRST)).expect("removed");
    let (status, said) = verified(&desk);
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("5 records, those up to 3 removed as asked"),
        "{said}"
    );
    // One more than was said.
    fs::remove_file(desk.directory.join("all").join(SECOND)).expect("removed");
    let (status, said) = verified(&desk);
    assert!(
        status == 1 && said.contains("records 1 to 6 of r-1 are missing"),
        "{said}"
    );
    // What was said of one run is not said of another.
    let desk = three("\"removed\":\"r-2:4\",");
    fs::remove_file(desk.directory.join("all").join(FIRST)).expect("removed");
    assert_eq!(verified(&desk).0, 1);
    // And not where nobody said so.
    let desk = three(says);
    fs::remove_file(desk.directory.join("all").join(SECOND)).expect("removed");
    assert_eq!(verified(&desk).0, 1);
}

#[test]
fn a_summary_that_hides_records_from_a_search_is_found() {
    let desk = three("");
    let path = desk.directory.join("all").join(SECOND);
    let query = ["audit", "query", "--json", "--verdict", "deny", "all"];
    assert_eq!(desk.call(&query).stdout.lines().count(), 2);
    let mut block = fs::read(&path).expect("a file");
    // The filter alone: lengths and times stay.
    for byte in block.iter_mut().skip(41).take(4096) {
        *byte = 0;
    }
    assert!(BlockHead::parse(&block).is_ok());
    fs::write(&path, block).expect("written");
    assert_eq!(desk.call(&query).stdout.lines().count(), 1);
    let (status, said) = verified(&desk);
    assert!(
        status == 1 && said.contains("its summary is not of its lines"),
        "{said}"
    );
}

#[test]
fn a_search_finds_the_same_in_every_form_of_a_record() {
    let desk = three("");
    let whole: Vec<String> = chained(
        "r-1",
        &[
            START, CONNECT, ALLOWED, DENIED, FLOW, CONNECT, DENIED, FINISH,
        ],
    );
    let text: String = whole.iter().flat_map(|line| [line, "\n"]).collect();
    desk.write("plain.jsonl", &text);
    // As other programs write JSON, and as they compress it.
    desk.write(
        "spaced.jsonl",
        &text.replace("\":", "\": ").replace(",\"", ", \""),
    );
    let packed = Command::new("gzip")
        .args(["-k", "plain.jsonl"])
        .current_dir(&desk.directory)
        .status();
    assert!(packed.expect("gzip").success());
    for asked in [
        &["--verdict", "deny"][..],
        &["--host", "a.test"],
        &["--host", "*.test", "--host", "b.example"],
        &["--program", "wget"],
        &["--program", "/usr/bin/curl", "--verdict", "allow"],
        &["--kind", "flow", "--kind", "finish"],
        &["--rule", "GET http://a.test"],
        &["--name", "s"],
        &[
            "--since",
            "2026-11-21T12:00:03",
            "--until",
            "2026-11-21T12:00:06",
        ],
        &["--until", "2026-11-20"],
        &["--verdict", "monitor"],
        &[],
    ] {
        let find = |place: &str| {
            let said = desk.call(&[&["audit", "query"], asked, &[place]].concat());
            assert_eq!(said.stderr, "", "{asked:?} {place}");
            (said.status, said.stdout)
        };
        let plain = find("plain.jsonl");
        for place in ["all", "plain.jsonl.gz", "spaced.jsonl"] {
            assert_eq!(find(place), plain, "{asked:?} {place}");
        }
    }
}

/// Files of records in a directory, by name.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn cleared(folder: PathBuf) -> PathBuf {
    for name in names(&folder) {
        fs::remove_file(folder.join(name)).expect("removed");
    }
    folder
}

lab_tests! {
    fn the_record_of_a_real_run_is_rotated_compressed_and_sound(lab) {
        for identity in Identity::all() {
            let folder = cleared(lab.folder("rotated", identity));
            let place = folder.to_string_lossy().into_owned();
            // One of ours that is no record, and one that is a link to elsewhere.
            let other = lab.folder("other", identity).join("precious.jsonl");
            fs::write(&other, "mine").expect("a file");
            let link = folder.join("20200101T000000.000Z-1.jsonl");
            std::os::unix::fs::symlink(&other, &link).expect("a link");
            fs::write(folder.join("notes.txt"), "mine").expect("a file");
            let run = || {
                let fetch = ["curl", "-sS", "-o", "/dev/null", "http://192.0.2.7/x[1-500]"].map(str::to_owned);
                Sandbox::plain(lab, identity).allow("POST http://192.0.2.7/x")
                    .option("--audit", &place).option("--audit-rotate", "64K").option("--audit-keep", "3").run(&fetch)
            };
            for _ in 0..2 {
                let outcome = run();
                assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            }
            let names = names(&folder);
            assert!(names.iter().any(|name| name.ends_with(".jsonl.gz")), "{names:?}");
            assert!(names.contains(&"notes.txt".to_owned()), "{names:?}");
            // Three records, some in two forms at the most, and the notes.
            assert!(names.len() <= 7, "{names:?}");
            assert_eq!(fs::read_to_string(&other).expect("a file"), "mine");
            fs::remove_file(&link).ok();
            let said = call(&["audit", "verify", &place], &lab.directory, &lab.directory);
            assert_eq!(said.status, 0, "{identity:?} {names:?} {}{}", said.stdout, said.stderr);
            assert!(said.stdout.contains("removed as asked"), "{}", said.stdout);
            let said = call(&["audit", "query", "--json", "--verdict", "deny", &place], &lab.directory, &lab.directory);
            assert!(said.stdout.contains("\"path\":\"/x500\""), "{}", said.stderr);
            let oldest = names.iter().find(|name| name.contains("Z-") && !name.starts_with("2020")).expect("a record");
            fs::remove_file(folder.join(oldest)).expect("removed");
            let said = call(&["audit", "verify", &place], &lab.directory, &lab.directory);
            assert_eq!(said.status, 1, "a file that nobody said was to go {}", said.stdout);
        }
    }

    fn a_directory_of_records_that_the_command_may_write_is_refused(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let inside = work.join("records");
            let outcome = lab.sandbox(identity).option("--audit", &inside.to_string_lossy())
                .option("--audit-rotate", "1d").run(&["true".to_owned()]);
            assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
            assert!(outcome.stderr.contains("record") && !inside.exists(), "{identity:?} {outcome}");
        }
    }
}

#[test]
fn rotation_without_a_directory_is_refused_in_words() {
    let desk = Desk::new();
    desk.write("own.jsonl", "");
    for (words, says) in [
        (&["--audit-rotate", "1M"][..], "--audit"),
        (
            &["--audit", "own.jsonl", "--audit-rotate", "1M"],
            "is a file",
        ),
        (
            &["--audit", "r", "--audit-rotate", "1"],
            "write a size as 64M",
        ),
        (&["--audit", "r", "--audit-keep", "9"], "--audit-rotate"),
        (
            &["--audit", "r", "--audit-rotate", "1d", "--audit-keep", "1"],
            "2..",
        ),
    ] {
        for command in [&["run"][..], &["gateway", "--listen", "sock"]] {
            let said = desk.call(
                &[
                    command,
                    words,
                    &["--", "true"][..if command.len() == 1 { 2 } else { 0 }],
                ]
                .concat(),
            );
            assert!(
                said.status == 2 && said.stderr.contains(says),
                "{words:?} {} {}",
                said.status,
                said.stderr
            );
        }
    }
}
