//! `outgate audit` as a person and as a program meets it, over records that a
//! gateway wrote and over records that somebody altered.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use outgate_harness::{Identity, Sandbox, lab_tests};
use outgate_record::line_hash;

use crate::{Desk, Said, call, outgate};

/// Lines of one run, chained as the gateway chains them; each is given by its
/// members after the common ones.
pub(crate) fn chained(run: &str, members: &[&str]) -> Vec<String> {
    let mut prev = "0".repeat(64);
    let mut lines = Vec::new();
    for (position, members) in members.iter().enumerate() {
        let line = format!(
            r#"{{"v":1,"seq":{},"prev":"{prev}","time":"2026-11-21T12:00:{position:02}.000Z","run":"{run}","sandbox":"s","generation":1,{members}}}"#,
            position + 1
        );
        prev = line_hash(line.as_bytes());
        lines.push(line);
    }
    lines
}

pub(crate) const START: &str = r#""kind":"start","verdict":"note","target":"","detail":"agent""#;
pub(crate) const CONNECT: &str = r#""kind":"connect","verdict":"allow","target":"a.test:80","detail":"gateway","pid":7,"executable":"/usr/bin/curl""#;
pub(crate) const ALLOWED: &str = r#""kind":"request","verdict":"allow","target":"http://a.test","method":"GET","path":"/x","rule":{"id":0,"text":"GET http://a.test/x","place":"-a"},"pid":7,"executable":"/usr/bin/curl""#;
pub(crate) const DENIED: &str = r#""kind":"request","verdict":"deny","target":"http://a.test","method":"PUT","path":"/x","reason":"no-rule","detail":"no rule allows it","flag":"-a 'PUT http://a.test/x'","pid":8,"executable":"/usr/bin/wget""#;
pub(crate) const FLOW: &str = r#""kind":"flow","verdict":"note","target":"a.test:80","pid":7,"executable":"/usr/bin/curl","bytes_up":1500,"bytes_down":20,"duration_ms":7"#;
pub(crate) const FINISH: &str =
    r#""kind":"finish","verdict":"note","target":"","detail":"status 0""#;

pub(crate) fn record() -> Vec<String> {
    chained("r-1", &[START, CONNECT, ALLOWED, DENIED, FLOW, FINISH])
}

pub(crate) fn text(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

fn verify(text: &str, more: &[&str]) -> (i32, String) {
    let desk = Desk::new();
    desk.write("record.jsonl", text);
    let said = desk.call(&[&["audit", "verify", "record.jsonl"], more].concat());
    (said.status, said.stdout + &said.stderr)
}

#[test]
fn a_record_is_sound_until_something_of_it_is_altered() {
    let good = record();
    let (status, said) = verify(&text(&good), &[]);
    assert_eq!(status, 0, "{said}");
    assert!(said.ends_with("sound: as it was written\n"), "{said}");
    let alter = |alter: &dyn Fn(&mut Vec<String>)| {
        let mut lines = good.clone();
        alter(&mut lines);
        text(&lines)
    };
    let names: [(&str, String, &str); 8] = [
        (
            "a byte changed",
            alter(&|lines| lines[2] = lines[2].replace("allow", "deny")),
            "record.jsonl:4: record 3 of ",
        ),
        (
            "a line removed",
            alter(&|lines| drop(lines.remove(2))),
            "record.jsonl:3: record 3 of ",
        ),
        (
            "the first line removed",
            alter(&|lines| drop(lines.remove(0))),
            "record.jsonl:1: record 1 of ",
        ),
        (
            "two lines exchanged",
            alter(&|lines| lines.swap(2, 3)),
            "record.jsonl:3: record 3 of ",
        ),
        (
            "a line twice",
            alter(&|lines| lines.insert(3, lines[2].clone())),
            "repeated, or moved",
        ),
        (
            "a line added",
            alter(&|lines| lines.insert(2, "{\"run\":\"x\"}".to_owned())),
            "record.jsonl:3: not a record",
        ),
        (
            "the end cut off",
            alter(&|lines| drop(lines.pop())),
            "its end is missing after ",
        ),
        (
            "cut inside a line",
            text(&good).split_at(text(&good).len() - 20).0.to_owned(),
            "cut off: the record ends inside this line",
        ),
    ];
    for (what, altered, place) in names {
        let (status, said) = verify(&altered, &[]);
        assert_eq!(status, 1, "{what}: {said}");
        assert!(said.contains(place), "{what}: {said}");
        assert!(said.ends_with("NOT as it was written\n"), "{what}: {said}");
    }
    let cut = alter(&|lines| drop(lines.pop()));
    assert_eq!(verify(&cut, &["--open-end"]).0, 0);
    // A head that was seen earlier finds what no chain can show.
    let (_, said) = verify(&text(&good), &[]);
    let head = said.lines().find_map(|line| line.strip_prefix("  head "));
    let head = head.expect("a head").to_owned();
    assert_eq!(verify(&text(&good), &["--head", &head]).0, 0);
    let (status, said) = verify(&cut, &["--open-end", "--head", &head]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("no line has the hash"), "{said}");
}

#[test]
fn a_record_in_several_files_is_one_chain() {
    let good = record();
    let desk = Desk::new();
    let (first, second) = good.split_at(3);
    fs::create_dir(desk.directory.join("r")).expect("a folder");
    desk.write("r/a.jsonl", &text(first));
    desk.write("r/a.part0002.jsonl", &text(second));
    assert_eq!(desk.call(&["audit", "verify", "r"]).status, 0);
    let both = ["audit", "verify", "r/a.jsonl", "r/a.part0002.jsonl"];
    assert_eq!(desk.call(&both).status, 0);
    let said = desk.call(&["audit", "verify", "r/a.part0002.jsonl", "r/a.jsonl"]);
    assert_eq!(said.status, 1, "{}", said.stdout);
    let said = desk.call(&["audit", "verify", "r/a.part0002.jsonl"]);
    assert!(said.stdout.contains("records 1 to 3 of"), "{}", said.stdout);
}

fn query(words: &[&str]) -> Said {
    let desk = Desk::new();
    desk.write("record.jsonl", &text(&record()));
    desk.call(&[&["audit", "query", "record.jsonl"], words].concat())
}

#[test]
fn what_is_asked_for_is_shown_and_nothing_else() {
    for (words, lines) in [
        (&["--verdict", "deny"][..], 1),
        (&["--verdict", "note"], 3),
        (&["--host", "a.test"], 4),
        (&["--host", "b.test"], 0),
        (&["--program", "wget"], 1),
        (&["--program", "/usr/bin/curl", "--kind", "request"], 1),
        (&["--kind", "request", "--kind", "flow"], 3),
        (&["--rule", "GET http://a.test"], 1),
        (&["--since", "2026-11-21T12:00:04"], 2),
        (&["--until", "2026-11-21T12:00:01"], 2),
        (&["--name", "other"], 0),
        (&["-n", "2"], 2),
    ] {
        let said = query(words);
        let shown = said.stdout.lines().filter(|line| !line.starts_with("--"));
        assert_eq!(shown.count(), lines, "{words:?}: {}", said.stdout);
        assert_eq!(said.status, i32::from(lines == 0), "{words:?}");
        assert_eq!(said.stderr, "", "{words:?}");
    }
    let said = query(&["--verdict", "deny"]);
    assert_eq!(
        said.stdout,
        "-- 2026-11-21 --\n\
         12:00:03.000  deny   wget: PUT http://a.test/x  (no rule allows it)\n"
    );
    let said = query(&["--verdict", "deny", "--json"]);
    let lines = record();
    assert_eq!(said.stdout.trim_end(), lines[3], "as it is");
    for wrong in [&["--since", "noon"][..], &["--verdict", "maybe"]] {
        let said = query(wrong);
        assert_eq!((said.status, said.stdout.as_str()), (2, ""), "{wrong:?}");
    }
}

#[test]
fn tail_follows_into_the_next_file_and_past_a_truncation() {
    let desk = Desk::new();
    let runs = desk.directory.join("state/outgate/runs");
    fs::create_dir_all(&runs).expect("a folder");
    let lines = record();
    let name = "20261121T120000.000Z-7";
    fs::write(runs.join(format!("{name}.jsonl")), text(&lines[..2])).expect("a file");
    let mut child = Command::new(outgate())
        .args(["audit", "tail", "-f", "--json", "-n", "1"])
        .env("XDG_STATE_HOME", desk.directory.join("state"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("outgate starts");
    let mut shown = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || shown.next().expect("a line").expect("text");
    assert_eq!(next(), lines[1]);
    let path = runs.join(format!("{name}.jsonl"));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("the file");
    // A line that is not whole yet is not shown.
    let (begin, end) = lines[2].split_at(30);
    file.write_all(begin.as_bytes()).expect("written");
    file.write_all(format!("{end}\n").as_bytes())
        .expect("written");
    assert_eq!(next(), lines[2]);
    let part = runs.join(format!("{name}.part0002.jsonl"));
    fs::write(&part, format!("{}\n", lines[3])).expect("a file");
    assert_eq!(next(), lines[3]);
    fs::write(&part, format!("{FINISH_ALONE}\n")).expect("a file");
    assert_eq!(next(), FINISH_ALONE);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// Shorter than what was there.
const FINISH_ALONE: &str = r#"{"v":1,"seq":5,"run":"r","kind":"finish"}"#;

lab_tests! {
    fn the_record_of_a_real_run_is_sound_and_searched(lab) {
        for identity in Identity::all() {
            let state = lab.folder("state", identity);
            let fetch = ["curl", "-sS", "http://192.0.2.7/x?token=secret"].map(str::to_owned);
            let outcome = Sandbox::plain(lab, identity).allow("POST http://192.0.2.7/x").run(&fetch);
            assert!(outcome.stdout.contains("outgate denied GET"), "{outcome}");
            let said = call(&["audit", "verify"], &lab.directory, &state);
            assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
            let said = call(&["audit", "query", "--verdict", "deny"], &lab.directory, &state);
            assert!(said.stdout.contains("curl: GET http://192.0.2.7/x?token=*"), "{}", said.stdout);
            let said = call(&["audit", "tail", "-n", "1", "--json"], &lab.directory, &state);
            assert!(said.stdout.contains(r#""kind":"finish""#), "{}", said.stdout);
        }
    }

    fn the_last_line_of_a_record_is_as_sound_as_the_others(lab) {
        for identity in Identity::all() {
            let file = lab.folder("records", identity).join("own.jsonl");
            let fetch = ["curl", "-sS", "http://192.0.2.7/x"].map(str::to_owned);
            let outcome = Sandbox::plain(lab, identity).allow("POST http://192.0.2.7/x")
                .option("--audit", &file.to_string_lossy()).run(&fetch);
            let lines: Vec<String> = fs::read_to_string(&file).expect("a record").lines().map(str::to_owned).collect();
            let key = outcome.stderr.lines().find_map(|line| line.strip_prefix("outgate: the record is signed by the key "));
            let key = key.unwrap_or_else(|| panic!("{outcome}"));
            let (status, said) = verify(&text(&lines), &["--key", key]);
            assert_eq!(status, 0, "{said}");
            assert!(said.contains(&format!("  key {key}\n")), "{said}");
            let (last, rest) = lines.split_last().expect("a line");
            assert!(last.contains(r#""kind":"finish""#), "{last}");
            // Whatever becomes of it, in each of its members and in what it is signed with.
            let (said_before, signature) = last.split_once(r#","signature":""#).expect("a signature");
            let altered = |line: &str| text(&[rest, &[line.to_owned()]].concat());
            let mut made: Vec<String> = [
                (r#""time":"20"#, r#""time":"19"#), ("status ", "status 1"), (r#""kind":"finish""#, r#""kind":"finish" "#),
                (r#""verdict":"note""#, r#""verdict":"allow""#), (r#""sandbox":""#, r#""sandbox":"x"#),
            ].iter().map(|(from, to)| last.replacen(from, to, 1)).collect();
            made.push(format!("{said_before}}}"));
            made.push(format!("{said_before},\"signature\":\"{}", signature.replace(['0', '1', '2', '3'], "4")));
            made.push(last.replacen(r#","signature""#, r#","note":1,"signature""#, 1));
            for line in made {
                assert_ne!(&line, last);
                let (status, said) = verify(&altered(&line), &[]);
                assert_eq!(status, 1, "{line}: {said}");
                assert!(said.contains("its end, is not signed by the key in its first record"), "{line}: {said}");
            }
            // Another run's record, whole, is not this one's.
            let other = chained("r-2", &[START, ALLOWED, FINISH]);
            assert_eq!(verify(&text(&other), &["--key", key]).0, 1);
        }
    }
}
