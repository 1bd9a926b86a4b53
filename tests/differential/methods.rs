//! Contents of a POST that programs may take for another method: whatever makes one of them
//! do so does not get through the gateway where the rules allow POST alone, and what
//! clients write does.

use std::collections::BTreeSet;
use std::fs;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, lab_tests};

use crate::grammar::Random;
use crate::judge::unescaped;
use crate::{assert_none, count, random, readers};

/// Of so many texts of the other tests one content is made: each goes over a connection.
const SHARE: usize = 20;

const NAMES: &[&str] = &[
    "\"_method\"",
    "_method",
    "\"_METHOD\"",
    "\"_met\\hod\"",
    "\"a\"; name=\"_method\"",
    "\"_method\"; name=\"a\"",
    "\"_method[]\"",
    "\"=?UTF-8?B?X21ldGhvZA==?=\"",
    "\"=?UTF-8?Q?=5Fmethod?=\"",
    "\"=?UTF-8?Q?=5Fmet?= =?UTF-8?Q?hod?=\"",
    "a; name*=utf-8''_method",
    "a; name*=utf-8''%5Fmethod",
    "a; name*0=\"_met\"; name*1=\"hod\"",
    "\"_met\r\nhod\"",
    "'_method'",
    "\"_method",
    "\"a\\\"; name=\"_method\"",
    "\"a\"; filename=\"\"; name=\"_method\"",
    "\"%5Fmethod\"",
    "\"a\"",
];
const FIELDS: &[&str] = &[
    "Content-Disposition: form-data; name=",
    "Content-Disposition: form-data; name=",
    "Content-Disposition: form-data; name=",
    "content-disposition:form-data;name=",
    "Content-Disposition : form-data; name=",
    "X-Content-Disposition: form-data; name=",
    "x Content-Disposition: form-data; name=",
    ": Content-Disposition: form-data; name=",
    "X: y; Content-Disposition: form-data; name=",
    "Content-Disposition: form-data;\r\n name=",
    "Content-Disposition: form-data;\r\nname=",
    "Content-Disposition: form-data; pad=\"PAD\"; name=",
    "Content-Disposition: form-data; BLANKSname=",
    "Content-Disposition: attachment; name=",
    "Content-Disposition: form-data; name = ",
    "Content-Disposition: form-data, name=",
    "Content-ID: ",
    "X-Content-ID: ",
];
const LINES: &[&str] = &[
    "",
    "",
    "",
    "\r\n",
    "\r\n \r\nPOST",
    "\r\n\t\r\nPOST",
    "\r\n\u{b}\r\nPOST",
    "\r\nX: a\n\nPOST",
    "\r\nX: a\n\r\nPOST",
    "\r\nX: a\r\rPOST",
    "\r\nContent-Type: text/plain",
    "\r\nContent-Transfer-Encoding: base64",
    "\r\n folded",
    "\r\nX",
    "\r\nContent-Disposition: form-data; name=\"b\"",
];
const BEGINNINGS: &[&str] = &[
    "--b\r\n",
    "--b\r\n",
    "--b\r\n",
    "--b\n",
    "--b \r\n",
    "--b--\r\n--b\r\n",
    "x\r\n--b\r\n",
    "x--b\r\n",
    "\r\n--b\r\n",
    "",
    "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\n",
    "--b\nX: y\n\nx\n--b\r\n",
    "--bc\r\n",
];
const VALUES: &[&str] = &[
    "DELETE",
    "DELETE",
    "delete",
    " DELETE ",
    "\r\nDELETE",
    "\tPUT",
    "REVMRVRF",
    "PUT\r\nx",
    "MERGE",
];
const TYPES: &[&str] = &[
    "multipart/form-data; boundary=b",
    "multipart/form-data; boundary=b",
    "multipart/form-data; boundary=b",
    "multipart/form-data; boundary=\"b\"",
    "multipart/mixed; boundary=b",
    "Multipart/Form-Data; charset=utf-8; Boundary=b",
    "multipart/form-data; boundary=c; boundary=b",
    "multipart/form-data; boundary=b; boundary=c",
    "multipart/form-data; xboundary=c; boundary=b",
    "multipart/form-data; boundary=b, x",
    "multipart/form-data",
];
const KEYS: &[&str] = &[
    "_method",
    "_method",
    "%5fmethod",
    "_Method",
    "[_method]",
    "_method[]",
    ".method",
    "+_method",
    "_method%00",
    "a&_method",
    "a;_method",
    "a=1;_method",
    "=_method",
    "_%6Dethod",
    " method",
    "a%26_method",
];
const MEMBERS: &[&str] = &[
    "\"_method\":\"M\"",
    "\"_method\": \"M\"",
    "\"\\u005fmethod\":\"M\"",
    "\"\\_method\":\"M\"",
    "/*\"*/\"_method\":\"M\"",
    "//\"\n\"_method\":\"M\"",
    "#\"\n\"_method\":\"M\"",
    "'_method':'M'",
    "_method:\"M\"",
    "\"_method\":[\"M\"]",
    "\"_method\"=\"M\"",
    "\"a\":\"b\" \"_method\":\"M\"",
    "\"_method\":\"POST\",\"_method\":\"M\"",
    "\"_method\":/**/\"M\"",
    "\"_method\":\"\\u0044ELETE\"",
    "\"a\":\"\\\\\",\"_method\":\"M\"",
    "\"a\":{\"_method\":\"M\"}",
];
const DOCUMENTS: &[&str] = &[
    "{X}",
    "{X}",
    "{\"a\":1,X}",
    "{\"a\":NaN,X}",
    "/**/{X}",
    " \r\n{X}",
    "\u{feff}{X}",
    "{X}{\"a\":1}",
    "{\"a\":[{}],X,}",
    "[{X}]",
];
const JSON_TYPES: &[&str] = &[
    "application/json",
    "application/json",
    "application/vnd.api+json",
    "text/json; charset=utf-8",
    "application/json5",
];

/// A kind of content, and one of it.
type Made = (String, Vec<u8>);

/// One that may be read in several ways.
fn made(random: &mut Random) -> Made {
    let value = random.one(VALUES);
    match random.below(8) {
        0 => {
            let content = format!("{}={value}", random.one(KEYS));
            (
                "application/x-www-form-urlencoded".to_owned(),
                content.into_bytes(),
            )
        }
        1 | 2 => {
            let member = random.one(MEMBERS).replace('M', value.trim());
            let content = random.one(DOCUMENTS).replace('X', &member);
            (random.one(JSON_TYPES).to_owned(), content.into_bytes())
        }
        _ => (random.one(TYPES).to_owned(), parts(random, value)),
    }
}

fn parts(random: &mut Random, value: &str) -> Vec<u8> {
    let field = random.one(FIELDS).replace("PAD", &"A".repeat(4100));
    let field = field.replace("BLANKS", &" ".repeat(4100));
    let (begin, name, line) = (random.one(BEGINNINGS), random.one(NAMES), random.one(LINES));
    let content = format!("{begin}{field}{name}{line}\r\n\r\n{value}\r\n--b--\r\n");
    let content = match random.below(12) {
        0 => content.replace("\r\n", "\n"),
        1 => content.replace("\r\n", "\r"),
        _ => content,
    };
    content.into_bytes()
}

fn escaped(bytes: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    bytes.iter().map(escape).collect()
}

fn program(arguments: &[&str], input: &str) -> Vec<String> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/differential/readers/methods.py"
    );
    let mut all = vec![script.to_owned()];
    all.extend(arguments.iter().map(|one| (*one).to_owned()));
    let answer = readers::run("/usr/bin/python3", &all, input.as_bytes());
    answer.lines().map(str::to_owned).collect()
}

/// Which of these get through, by their places.
fn through(lab: &Lab, origin: &Origin, contents: &[Made]) -> BTreeSet<usize> {
    let folder = lab.folder("work", Identity::Own);
    let script = format!(
        "for r; do {} fetch 127.0.0.1 8080 \"$r\"; done; true",
        lab.tool("probe")
    );
    let mut arrived = BTreeSet::new();
    // As many as arguments of one command.
    for (chunk, contents) in contents.chunks(500).enumerate() {
        let mut command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
        for (place, (kind, content)) in contents.iter().enumerate() {
            let file = folder.join(format!("request-{place}"));
            let length = content.len();
            let place = chunk * 500 + place;
            let mut request = format!(
                "POST /public/{place} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
            )
            .into_bytes();
            request.extend_from_slice(content);
            fs::write(&file, request).expect("a file");
            command.push(format!("@{}", file.display()));
        }
        let before = origin.arrivals().len();
        let sandbox = lab.sandbox(Identity::Own);
        let sandbox = sandbox.option("-a", "POST http://127.0.0.1:8080/public/**");
        let outcome = sandbox.run(&command);
        let lines = origin.arrivals();
        let lines = lines.iter().skip(before);
        let places =
            lines.filter_map(|one| one.line().split(['/', ' ']).nth(3)?.parse::<usize>().ok());
        let before = arrived.len();
        arrived.extend(places);
        assert!(arrived.len() > before, "nothing arrives: {outcome}");
    }
    arrived
}

lab_tests! {
    fn no_program_takes_another_method_than_the_rules_judged(lab) {
        let mut random = random();
        let made: Vec<Made> = (0..(count() / SHARE).max(1)).map(|_| made(&mut random)).collect();
        // One that everybody takes for what it is, so that something arrives.
        let plain = ("application/x-www-form-urlencoded".to_owned(), b"a=1".to_vec());
        let made: Vec<Made> = made.into_iter().chain([plain]).collect();
        let lines = made.iter().map(|(kind, content)| {
            format!("{} {}\n", escaped(kind.as_bytes()), escaped(content))
        });
        let found = program(&["read"], &lines.collect::<String>());
        assert_eq!(found.len(), made.len());
        let origin = Origin::start(8080);
        let arrived = through(lab, &origin, &made);
        let taken = found.iter().filter(|line| !line.is_empty()).count();
        eprintln!("{taken} of {} contents are taken for another method, {} arrive", made.len(), arrived.len());
        assert!(taken > 0, "no program takes any of them for another method");
        let faults = arrived.into_iter().filter(|place| !found[*place].is_empty());
        let faults = faults.map(|place| {
            let (kind, content) = &made[place];
            let shown: String = content.escape_ascii().to_string().chars().take(300).collect();
            format!("{}: {kind}: {shown}", found[place])
        });
        assert_none(&faults.collect());
    }

    fn what_clients_write_asks_for_nothing(lab) {
        let mut random = random();
        let seed = random.below(1 << 30).to_string();
        let share = (count() / SHARE / 8).clamp(1, 50).to_string();
        let lines = program(&["write", &share, &seed], "");
        let made: Vec<Made> = lines.iter().map(|line| {
            let (kind, content) = line.split_once(' ').expect("a kind and its content");
            let kind = String::from_utf8(unescaped(kind.as_bytes())).expect("text");
            (kind, unescaped(content.as_bytes()))
        }).collect();
        let origin = Origin::start(8080);
        let arrived = through(lab, &origin, &made);
        let faults = (0..made.len()).filter(|place| !arrived.contains(place)).map(|place| {
            let (kind, content) = &made[place];
            format!("refused: {kind}: {}", content.escape_ascii())
        });
        assert_none(&faults.collect());
    }
}
