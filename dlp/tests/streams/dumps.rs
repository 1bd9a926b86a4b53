//! Credentials as programs print bytes: a few digits a line, with much between them, and
//! such text in other codings, wherever in it the dump begins.

use crate::encode::plain_base64;
use crate::stage::{sample_of, send, strict};

/// The credential in hexadecimal, so many bytes a line, each as `each` has it.
fn dump(credential: &[u8], a_line: usize, each: impl Fn(u8) -> String) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| each(*byte)).collect::<String>();
    let lines: Vec<String> = credential.chunks(a_line).map(line).collect();
    lines.join("\n")
}

fn dumps(credential: &[u8]) -> Vec<(&'static str, String)> {
    let array = |indent: usize| move |byte: u8| format!("{:indent$}0x{byte:02x},", "");
    vec![
        ("an array", dump(credential, 8, array(1))),
        ("xxd -i", dump(credential, 12, array(2))),
        ("a byte a line", dump(credential, 1, array(12))),
        ("far in", dump(credential, 1, array(24))),
        ("od", dump(credential, 16, |byte| format!(" {byte:02x}"))),
        ("xxd -p", dump(credential, 8, |byte| format!("{byte:02x}"))),
        (
            "capitals",
            dump(credential, 8, |byte| format!("{byte:02X}")),
        ),
    ]
}

fn assert_found(content: &[u8], what: &str) {
    for lengths in [vec![content.len()], vec![1000, 7]] {
        let outcome = send(&strict(), None, content, &lengths);
        let found = outcome.found();
        let found = found.unwrap_or_else(|| panic!("{what} by {lengths:?}: nothing was found"));
        assert_eq!(found.detector, "github-token", "{what}");
    }
}

#[test]
fn a_dump_in_base64_is_read_wherever_it_begins() {
    let credential = sample_of("github-token", 1);
    let words = "lorem ipsum ".repeat(400);
    for (name, dump) in dumps(&credential) {
        for before in (0..3500).step_by(61) {
            let text = format!("{}\n{dump}\n{}", &words[..before], &words[..900]);
            assert_found(&plain_base64(text.as_bytes()), &format!("{name} {before}"));
        }
    }
}

#[test]
fn blanks_before_a_dump_hide_nothing() {
    let credential = sample_of("github-token", 2);
    let words = "dolor sit ".repeat(400);
    let digits = dump(&credential, 64, |byte| format!("{byte:02x} "));
    for blanks in [100, 190, 250, 900] {
        for before in (0..3500).step_by(97) {
            let text = format!("{}\n{:blanks$}{digits}\nend", &words[..before], "");
            let name = format!("{blanks} {before}");
            assert_found(&plain_base64(text.as_bytes()), &name);
        }
    }
}

#[test]
fn a_dump_in_a_document_of_json_is_read_over_its_lines() {
    let credential = sample_of("github-token", 3);
    for (name, dump) in dumps(&credential) {
        for end in ["\\n", "\\r\\n", "\\n\\t"] {
            let text = format!("{{\"text\":\"see:\\n{}\\n\"}}", dump.replace('\n', end));
            assert_found(text.as_bytes(), name);
            assert_found(&plain_base64(text.as_bytes()), name);
        }
    }
}

/// Data that look like numbers, and text that somebody wrote there.
#[test]
fn what_a_dump_shows_beside_its_data_is_no_data() {
    let credential = sample_of("github-token", 4);
    for column in [
        "1234567890:AB",
        ",12,34",
        "..12 34",
        "12:34",
        "\"12\": 34",
        "12;34",
    ] {
        let lines = credential.chunks(16).enumerate().map(|(number, line)| {
            let pairs = dump(line, 16, |byte| format!("{byte:02x} "));
            format!("{:08x}: {pairs:<48} {column}\n", 16 * number)
        });
        assert_found(lines.collect::<String>().as_bytes(), column);
    }
}
