//! Recordings of real programs, read: what a user holds, and what the programs sent.
//! The values stand in them by name and are made anew here, as are all texts that
//! follow from them. `record/write.py` says how they are written.

use std::fs;

use outgate_dlp::sample;
use outgate_harness::tools::project;

use crate::credential::crc32;

/// What one program sent, and who used it.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The file's name, without its ending.
    pub(crate) name: String,
    /// The values of the credentials that its user holds.
    pub(crate) values: Vec<String>,
    /// Variables of the environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Files of the home directory.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) requests: Vec<Request>,
}

/// A request as it was sent, with its content out of its chunks.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) host: String,
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
    /// Whether a credential stands in it that its user holds.
    pub(crate) holds: bool,
}

/// A value by its name, and whether its user holds it: a browser's does not.
#[derive(Debug)]
struct Value {
    name: String,
    text: String,
    is_held: bool,
}

impl Recording {
    /// All there are, with values that follow from a seed.
    pub(crate) fn all(seed: u64) -> Vec<Self> {
        let folder = project().join("tests/scan/day");
        let entries = fs::read_dir(folder).expect("the recordings");
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            Self::read(&name, &fs::read_to_string(path).expect("a text"), seed)
        };
        paths.iter().map(read).collect()
    }

    fn read(name: &str, text: &str, seed: u64) -> Self {
        let mut blocks = text.split("\n==== ");
        let about = blocks.next().expect("who it is");
        let mut values: Vec<Value> = Vec::new();
        let mut recording = Self {
            name: name.to_owned(),
            values: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            requests: Vec::new(),
        };
        for line in about.lines() {
            if let Some(rest) = line.strip_prefix("value ") {
                let (name, template) = rest.split_once(' ').expect("a template");
                let seed = seed.wrapping_add(values.len() as u64 + 1);
                let held = format!("«{name}»");
                let inner = format!("‹{name}›");
                values.push(Value {
                    name: name.to_owned(),
                    text: String::from_utf8(sample(template, seed)).expect("letters"),
                    is_held: about.contains(&held) || about.contains(&inner),
                });
            } else if let Some(rest) = line.strip_prefix("env ") {
                let (name, text) = rest.split_once('=').expect("a value");
                let text = filled(text, &values).0;
                recording.environment.push((name.to_owned(), text));
            } else if let Some(path) = line.strip_prefix("file ") {
                recording.files.push((path.to_owned(), String::new()));
            } else if let Some(text) = line.strip_prefix('\t') {
                let (_, file) = recording.files.last_mut().expect("a file");
                file.push_str(&filled(text, &values).0);
                file.push('\n');
            } else {
                assert!(line.starts_with("# "), "{name}: {line}");
            }
        }
        let last = blocks.clone().count();
        for (position, block) in blocks.enumerate() {
            let block = if position + 1 == last {
                block.strip_suffix('\n').unwrap_or(block)
            } else {
                block
            };
            recording.requests.push(request(block, &values));
        }
        let held = values.into_iter().filter(|value| value.is_held);
        recording.values = held.map(|value| value.text).collect();
        recording
    }

    /// The hosts it goes to, each once.
    pub(crate) fn hosts(&self) -> Vec<&str> {
        let all = self.requests.iter().map(|request| request.host.as_str());
        let mut hosts: Vec<&str> = all.collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

impl Request {
    /// The bytes on the wire, over plain HTTP to a host.
    pub(crate) fn to(&self, host: &str) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut chunked = false;
        for line in self.head.split('\n') {
            let lower = line.to_lowercase();
            if lower.starts_with("host:") {
                lines.push(format!("Host: {host}"));
            } else if lower.starts_with("content-length:") {
                lines.push(format!("Content-Length: {}", self.content.len()));
            } else {
                chunked |= lower.starts_with("transfer-encoding:");
                lines.push(line.to_owned());
            }
        }
        let mut bytes = lines.join("\r\n").into_bytes();
        bytes.extend(b"\r\n\r\n");
        if chunked && self.content.is_empty() {
            bytes.extend(b"0\r\n\r\n");
        } else if chunked {
            bytes.extend(format!("{:x}\r\n", self.content.len()).into_bytes());
            bytes.extend(&self.content);
            bytes.extend(b"\r\n0\r\n\r\n");
        } else {
            bytes.extend(&self.content);
        }
        bytes
    }

    /// The first line, for whoever reads of a failure.
    pub(crate) fn line(&self) -> String {
        let line = self.head.lines().next().unwrap_or_default();
        format!(
            "{} {}",
            self.host,
            line.chars().take(120).collect::<String>()
        )
    }
}

fn request(block: &str, values: &[Value]) -> Request {
    let (first, rest) = block.split_once('\n').expect("a line");
    let (head, content) = rest.split_once("\n\n").expect("an empty line");
    let mut words = first.rsplit(' ');
    let host = words.nth(1).expect("a host").to_owned();
    let coding = words.nth(1);
    let (head, in_head) = filled(head, values);
    let (content, in_content) = match coding {
        Some("base64") => (decoded(content), false),
        coding => {
            let (text, holds) = filled(content, values);
            let plain = plain(&text);
            let content = match coding {
                Some("gzip") => gzip(&plain),
                _ => plain,
            };
            (content, holds)
        }
    };
    let head = String::from_utf8(plain(&head)).expect("a head");
    Request {
        host,
        head,
        content,
        holds: in_head || in_content,
    }
}

/// A text with values in place of their names, and whether one is held.
fn filled(text: &str, values: &[Value]) -> (String, bool) {
    let value = |name: &str| {
        let known = values.iter().find(|known| known.name == name);
        known.unwrap_or_else(|| panic!("no value {name}"))
    };
    let (mut out, mut holds) = (String::new(), false);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let (word, tail) = after.split_once('»').expect("an end");
        out.push_str(before);
        if let Some(pair) = word.strip_prefix("b64 ") {
            let inner = pair.replace('‹', "«").replace('›', "»");
            let (inner, is_held) = filled(&inner, values);
            out.push_str(&encoded(inner.as_bytes()));
            holds |= is_held;
        } else if let Some(name) = word.strip_prefix("url ") {
            out.push_str(&percent(&value(name).text));
            holds |= value(name).is_held;
        } else {
            out.push_str(&value(word).text);
            holds |= value(word).is_held;
        }
        rest = tail;
    }
    out.push_str(rest);
    (out, holds)
}

/// `\\`, `\r`, `\t` and `\xNN` to what they stand for.
fn plain(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(u8::try_from(letter).expect("an ASCII letter"));
            continue;
        }
        out.push(match letters.next() {
            Some('\\') => b'\\',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('x') => {
                let digits: String = letters.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).expect("two digits")
            }
            other => panic!("no escape: {other:?}"),
        });
    }
    out
}

/// What RFC 3986 reserves nothing for stays.
fn percent(text: &str) -> String {
    let is_free = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| {
        if is_free(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

/// RFC 1952, of blocks that are stored (RFC 1951 3.2.4).
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    for block in bytes.chunks(usize::from(u16::MAX)) {
        let length = block.len() as u16;
        out.push(0);
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend([1, 0, 0, 0xff, 0xff]);
    out.extend(crc32(bytes).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648 4.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let number = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            if place <= three.len() {
                let digit = (number >> (18 - 6 * place)) & 63;
                text.push(char::from(LETTERS[digit as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut number, mut bits) = (0_u32, 0);
    for letter in text.bytes() {
        let Some(digit) = LETTERS.iter().position(|known| *known == letter) else {
            assert!(matches!(letter, b'=' | b'\n'), "no base 64: {letter}");
            continue;
        };
        number = (number << 6) | digit as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(((number >> bits) & 255) as u8);
        }
    }
    bytes
}

#[test]
fn base64_is_read_as_it_is_written() {
    for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
        assert_eq!(encoded(bytes.as_bytes()), text);
        assert_eq!(decoded(text), bytes.as_bytes());
    }
}

#[test]
fn values_stand_in_every_form_a_client_writes_them_in() {
    let text = "# x\nvalue A {digits:4}+\nenv B=«A»\nfile .f\n\tp=«b64 me:‹A›»\n\
                ==== https h.example 443\nGET /?q=«url A» HTTP/1.1\nHost: h.example\n\na\\x00\\\\\n\n\
                ==== base64 https h.example 443\nPUT / HTTP/1.1\n\nZm9v\n";
    let recording = Recording::read("x", text, 1);
    let value = &recording.values[0];
    assert_eq!(recording.environment, [("B".to_owned(), value.clone())]);
    let pair = encoded(format!("me:{value}").as_bytes());
    assert_eq!(recording.files, [(".f".to_owned(), format!("p={pair}\n"))]);
    let first = &recording.requests[0];
    let target = value.replace('+', "%2B");
    assert!(
        first.head.starts_with(&format!("GET /?q={target} ")),
        "{first:?}"
    );
    assert_eq!(first.content, b"a\0\\\n");
    assert!(first.holds);
    assert_eq!(recording.requests[1].content, b"foo");
    assert!(!recording.requests[1].holds);
}
