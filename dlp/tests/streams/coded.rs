//! Pieces of a credential that are coded each by itself, alone and within a text.

use outgate_dlp::{PieceSource, Window};

use crate::encode::plain_base64;
use crate::pieces::{Case, SOURCES, cases, cut, is_refused, piece};
use crate::stage::ELSEWHERE;

type Code = fn(&[u8]) -> String;

fn each(bytes: &[u8], one: impl Fn(u8) -> String) -> String {
    bytes.iter().map(|byte| one(*byte)).collect()
}

fn base64(bytes: &[u8]) -> String {
    String::from_utf8(plain_base64(bytes)).expect("a text")
}

fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let letter = |bits: &[u8]| {
        let number = (0..5).fold(0, |sum, bit| sum << 1 | bits.get(bit).unwrap_or(&0));
        char::from(LETTERS[usize::from(number)])
    };
    bits.chunks(5).map(letter).collect()
}

fn padded(text: String) -> String {
    let padding = text.len().next_multiple_of(8) - text.len();
    text + &"=".repeat(padding)
}

const CODES: [(&str, Code); 17] = [
    ("base64", base64),
    ("base64 unpadded", |bytes| {
        base64(bytes).trim_end_matches('=').to_owned()
    }),
    ("base64 twice", |bytes| base64(base64(bytes).as_bytes())),
    ("base64 three times", |bytes| {
        base64(base64(base64(bytes).as_bytes()).as_bytes())
    }),
    ("hexadecimal", |bytes| {
        each(bytes, |byte| format!("{byte:02x}"))
    }),
    ("hexadecimal in base64", |bytes| {
        base64(each(bytes, |byte| format!("{byte:02X}")).as_bytes())
    }),
    ("base32", base32),
    ("base32 padded", |bytes| padded(base32(bytes))),
    ("base32 of small letters", |bytes| {
        base32(bytes).to_lowercase()
    }),
    ("percent", |bytes| {
        each(bytes, |byte| format!("%{byte:02x}"))
    }),
    ("\\x", |bytes| each(bytes, |byte| format!("\\x{byte:02x}"))),
    ("\\u", |bytes| each(bytes, |byte| format!("\\u{byte:04x}"))),
    ("octal", |bytes| each(bytes, |byte| format!("\\{byte:03o}"))),
    ("references", |bytes| {
        each(bytes, |byte| format!("&#{byte};"))
    }),
    ("quoted-printable", |bytes| {
        each(bytes, |byte| format!("={byte:02X}"))
    }),
    ("a list of bytes", |bytes| {
        let all: Vec<String> = bytes.iter().map(u8::to_string).collect();
        format!("[{}]", all.join(", "))
    }),
    ("reversed", |bytes| {
        bytes.iter().rev().map(|byte| char::from(*byte)).collect()
    }),
];

/// Whether the pieces, one in each message, are refused.
fn is_stopped(case: &Case, source: PieceSource, texts: &[String]) -> bool {
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    let mut refused = texts.iter().map(|text| {
        let message = [piece(source, "d", text.as_bytes())];
        is_refused(&window.push(&message))
    });
    refused.any(|is_refused| is_refused)
}

fn texts(case: &Case, code: Code, count: usize, around: fn(String) -> String) -> Vec<String> {
    let parts = cut(&case.value, count).into_iter();
    parts.map(|part| around(code(part))).collect()
}

#[test]
fn pieces_coded_by_themselves_are_put_together() {
    for case in cases() {
        for (name, code) in CODES {
            for source in SOURCES {
                for count in [2, 3, 4] {
                    let texts = texts(&case, code, count, |text| text);
                    let is_stopped = is_stopped(&case, source, &texts);
                    assert!(is_stopped, "{} {source:?} {name} {count}", case.name);
                }
            }
        }
    }
}

#[test]
fn pieces_coded_by_themselves_are_put_together_behind_words() {
    let arounds: [fn(String) -> String; 5] = [
        |text| format!("Bearer {text}"),
        |text| format!("here is part {text} of it"),
        |text| format!("Mozilla/5.0 ({text})"),
        |text| format!("{{\"a\":\"{text}\"}}"),
        |text| format!("username=\"{text}\", realm=\"x\""),
    ];
    // Their own signs separate words.
    let is_word =
        |name: &str| !matches!(name, "references" | "quoted-printable" | "a list of bytes");
    for case in cases() {
        for (name, code) in CODES.into_iter().filter(|(name, _)| is_word(name)) {
            for around in arounds {
                for source in [
                    PieceSource::Field,
                    PieceSource::Client,
                    PieceSource::Cookie,
                    PieceSource::Content,
                ] {
                    for count in [2, 3] {
                        let texts = texts(&case, code, count, around);
                        let is_stopped = is_stopped(&case, source, &texts);
                        let name = format!("{} {source:?} {name}", case.name);
                        assert!(is_stopped, "{name} {count} {texts:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn coded_halves_of_basic_are_put_together() {
    let arounds: [fn(String) -> String; 2] = [
        |text| format!("Basic {}", base64(format!("u:{text}").as_bytes())),
        |text| format!("Basic {}", base64(format!("{text}:x").as_bytes())),
    ];
    let is_word =
        |name: &str| !matches!(name, "references" | "quoted-printable" | "a list of bytes");
    for case in cases() {
        for (name, code) in CODES.into_iter().filter(|(name, _)| is_word(name)) {
            for around in arounds {
                for count in [2, 3] {
                    let texts = texts(&case, code, count, around);
                    let is_stopped = is_stopped(&case, PieceSource::Field, &texts);
                    assert!(is_stopped, "{} {name} {count} {texts:?}", case.name);
                }
            }
        }
    }
}
