//! Pieces of a credential that are coded each by itself, behind a word of the value.

use outgate_dlp::{Piece, PieceSource, UnscannedReason, Window};

use crate::encode::{URL, base64, gzip, plain_base64};
use crate::pieces::{Case, SOURCES, cases, cut, is_refused, piece};
use crate::stage::{Dice, ELSEWHERE};

type Code = (&'static str, fn(&[u8]) -> Vec<u8>);

/// How a piece is coded.
const CODES: [Code; 4] = [
    ("base64", plain_base64),
    ("base64 of addresses", |bytes| base64(bytes, URL, "")),
    ("hex", |bytes| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>().into_bytes()
    }),
    ("base64 twice", |bytes| plain_base64(&plain_base64(bytes))),
];

/// What stands around what is coded.
const AROUND: [(&str, &str); 8] = [
    ("Bearer ", ""),
    ("Basic ", ""),
    ("Negotiate ", ""),
    ("k=", "; path=/"),
    ("data ", ""),
    ("data:", ","),
    ("Mozilla/5.0 (X11; ", ")"),
    ("{\"part\": \"", "\"}"),
];

/// What stands around a piece before it is coded.
const INSIDE: [(&str, &str); 5] = [
    ("", ""),
    ("u:", ""),
    ("x-access-token:", ""),
    ("", ":"),
    ("part=", ";"),
];

fn wrapped(part: &[u8], (before, behind): (&str, &str)) -> Vec<u8> {
    [before.as_bytes(), part, behind.as_bytes()].concat()
}

/// Sends a value in each message; whether one of them was refused.
fn is_stopped(case: &Case, source: PieceSource, values: &[Vec<u8>]) -> bool {
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    let mut refused = values
        .iter()
        .map(|value| is_refused(&window.push(&[piece(source, "k", value)])));
    refused.any(|is_refused| is_refused)
}

#[test]
fn pieces_that_are_coded_each_behind_a_word_are_put_together() {
    let mut missed = Vec::new();
    for case in cases() {
        for source in SOURCES {
            for (name, code) in CODES {
                for around in AROUND {
                    for inside in INSIDE {
                        for count in [2, 3] {
                            let parts = cut(&case.value, count).into_iter();
                            let values =
                                parts.map(|part| wrapped(&code(&wrapped(part, inside)), around));
                            let values: Vec<Vec<u8>> = values.collect();
                            if !is_stopped(&case, source, &values) {
                                let what = (case.name, source, name, around, inside, count);
                                missed.push(format!("{what:?}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

#[test]
fn pieces_in_both_halves_of_what_is_coded_are_put_together() {
    for case in cases() {
        for source in SOURCES {
            for count in [2, 4] {
                let parts = cut(&case.value, count);
                let pairs = parts.chunks(2).map(|pair| pair.join(&b':'));
                let values = pairs.map(|pair| wrapped(&plain_base64(&pair), ("Basic ", "")));
                let values: Vec<Vec<u8>> = values.collect();
                let is_stopped = is_stopped(&case, source, &values);
                assert!(is_stopped, "{} {source:?} {count}", case.name);
            }
        }
    }
}

#[test]
fn what_is_coded_behind_words_makes_nothing_by_chance() {
    for case in cases() {
        let mut dice = Dice(11);
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        for _ in 0..200 {
            let length = 6 + dice.roll(40);
            let words = dice.words(length);
            let user = format!(
                "Basic {}",
                text(&plain_base64(&wrapped(&words, ("user:", ""))))
            );
            let noise = format!("Bearer {}", text(&plain_base64(&dice.bytes(30))));
            for value in [user, noise] {
                let found = window.push(&[piece(PieceSource::Field, "k", value.as_bytes())]);
                assert!(!is_refused(&found), "{value}: {found:?}");
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn what_is_made_of_pieces_beyond_the_bound_is_told() {
    for case in cases() {
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        let bombs: Vec<Vec<u8>> = (0..16)
            .map(|fill| plain_base64(&gzip(&vec![fill; 700_000])))
            .collect();
        let words: Vec<Vec<u8>> = (0..16).map(|seed| Dice(seed).words(700)).collect();
        for (values, is_told) in [(&words, false), (&bombs, true), (&words, false)] {
            let pieces: Vec<Piece<'_>> = values.iter().map(|own| Piece::of_content(own)).collect();
            assert!(window.push(&pieces).is_empty(), "{}", case.name);
            let missed = window.missed().map(|missed| missed.reason);
            let told = is_told.then_some(UnscannedReason::Exhausted);
            assert_eq!(missed, told, "{}", case.name);
            assert_eq!(window.missed(), None, "{}: told once", case.name);
        }
    }
}
