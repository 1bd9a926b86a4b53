//! Streams of pieces: a token, a known value and a canary, cut into the places that a
//! sender chooses, in one message and over several, with what stands between them.

use std::sync::Arc;

use outgate_dlp::{
    Action, Detectors, Finding, KnownBuilder, KnownNature, KnownValue, Piece, PieceSource, Ruleset,
    ScanSettings, SecretBytes, Tier, Window,
};

use crate::encode::plain_base64;
use crate::stage::{Dice, ELSEWHERE, sample_of};

pub(crate) const SOURCES: [PieceSource; 12] = [
    PieceSource::Method,
    PieceSource::Client,
    PieceSource::Path,
    PieceSource::Query,
    PieceSource::QueryName,
    PieceSource::Field,
    PieceSource::FieldName,
    PieceSource::Cookie,
    PieceSource::CookieName,
    PieceSource::Content,
    PieceSource::ContentName,
    PieceSource::Beside,
];

/// A secret and the rules that find it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) value: Vec<u8>,
    pub(crate) rules: Arc<Ruleset>,
}

pub(crate) fn cases() -> Vec<Case> {
    let shipped = || Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let knowing = |value: &[u8], nature: KnownNature| {
        let mut builder = KnownBuilder::new([7; 32]);
        let about = KnownValue {
            label: "~/.netrc".to_owned(),
            others: Vec::new(),
            issuers: Vec::new(),
            tier: Tier::Strong,
            nature,
        };
        let added = builder.add(&SecretBytes::new(value.to_vec()), about);
        added.expect("a value");
        let rules = shipped().expect("the shipped detectors");
        Arc::new(rules.with_known(Arc::new(builder.build()), Vec::new()))
    };
    let own = b"correct-Horse7battery-Staple91".to_vec();
    let planted = b"pl4nted-Value82kQ-never-sent55".to_vec();
    vec![
        Case {
            name: "token",
            value: sample_of("github-token", 11),
            rules: Arc::new(shipped().expect("the shipped detectors")),
        },
        Case {
            name: "known value",
            rules: knowing(&own, KnownNature::Sent),
            value: own,
        },
        Case {
            name: "canary",
            rules: knowing(&planted, KnownNature::Canary),
            value: planted,
        },
    ]
}

pub(crate) fn is_refused(found: &[Finding]) -> bool {
    found.iter().any(|finding| finding.action == Action::Block)
}

pub(crate) fn piece<'a>(source: PieceSource, slot: &'a str, bytes: &'a [u8]) -> Piece<'a> {
    Piece {
        source,
        slot: slot.as_bytes(),
        bytes,
    }
}

/// Cuts a value into so many pieces.
pub(crate) fn cut(value: &[u8], count: usize) -> Vec<&[u8]> {
    value.chunks(value.len().div_ceil(count)).collect()
}

/// What stands around each piece of a message.
#[derive(Debug, Clone, Copy)]
enum Around {
    Nothing,
    /// A constant before and behind, in slots of their own.
    Constants,
    /// A word of its own kind before each.
    Words,
    /// Its number in front of it, in the piece.
    Number,
    /// Each in base64.
    Coded,
    /// Sent twice, as after a time-out.
    Again,
}

const AROUND: [Around; 6] = [
    Around::Nothing,
    Around::Constants,
    Around::Words,
    Around::Number,
    Around::Coded,
    Around::Again,
];

pub(crate) const WORDS: [&str; 5] = ["open", "list", "next", "state", "page"];

/// Sends the pieces in one message each; answers whether one of them was refused.
fn is_stopped(case: &Case, source: PieceSource, around: Around, count: usize) -> bool {
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    for (number, part) in cut(&case.value, count).into_iter().enumerate() {
        let word = WORDS[number % WORDS.len()].as_bytes();
        let numbered = [format!("{number}-").as_bytes(), part].concat();
        let coded = plain_base64(part);
        let message = match around {
            Around::Nothing | Around::Again => vec![piece(source, "d", part)],
            Around::Constants => vec![
                piece(source, "v", b"v1"),
                piece(source, "d", part),
                piece(source, "k", b"fixed"),
            ],
            Around::Words => vec![piece(source, "w", word), piece(source, "d", part)],
            Around::Number => vec![piece(source, "d", &numbered)],
            Around::Coded => vec![piece(source, "d", &coded)],
        };
        if is_refused(&window.push(&message)) {
            return true;
        }
        if matches!(around, Around::Again) {
            window.again();
        }
    }
    false
}

#[test]
fn pieces_over_messages_are_put_together_in_every_place() {
    for case in cases() {
        for source in SOURCES {
            for around in AROUND {
                for count in [2, 3, 5, 8] {
                    let is_stopped = is_stopped(&case, source, around, count);
                    assert!(is_stopped, "{} {source:?} {around:?} {count}", case.name);
                }
            }
        }
    }
}

#[test]
fn letters_one_by_one_are_pieces() {
    for case in cases() {
        for source in SOURCES {
            let count = case.value.len();
            let is_stopped = is_stopped(&case, source, Around::Nothing, count);
            assert!(is_stopped, "{} {source:?}", case.name);
        }
    }
}

/// The same letter twice is the same request twice.
#[test]
fn a_message_that_comes_again_counts_again() {
    for case in cases() {
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        let mut last = 0;
        let mut is_stopped = false;
        for letter in &case.value {
            if *letter == last {
                window.again();
            } else {
                let message = [piece(PieceSource::Query, "d", std::slice::from_ref(letter))];
                is_stopped |= is_refused(&window.push(&message));
            }
            last = *letter;
        }
        is_stopped |= is_refused(&window.push(&[piece(PieceSource::Query, "d", b"-")]));
        assert!(is_stopped, "{}", case.name);
    }
}

#[test]
fn pieces_in_one_message_are_put_together_whatever_stands_beside_them() {
    for case in cases() {
        for source in SOURCES {
            for count in [2, 3, 5] {
                let parts = cut(&case.value, count);
                let slots = ["a", "b", "c", "d", "e"];
                let mut message = vec![piece(source, "p", b"aws")];
                for (slot, part) in slots.into_iter().zip(parts) {
                    message.push(piece(source, slot, part));
                }
                message.push(piece(source, "r", b"us-east-1"));
                let mut window = Window::new(&case.rules, &ELSEWHERE);
                let found = window.push(&message);
                assert!(is_refused(&found), "{} {source:?} {count}", case.name);
            }
        }
    }
}

#[test]
fn pieces_in_places_of_several_kinds_are_put_together() {
    for case in cases() {
        let mut dice = Dice(41);
        for _ in 0..60 {
            let parts = cut(&case.value, 2 + dice.roll(3));
            let mut window = Window::new(&case.rules, &ELSEWHERE);
            let mut is_stopped = false;
            for part in parts {
                let source = SOURCES[dice.roll(SOURCES.len())];
                is_stopped |= is_refused(&window.push(&[piece(source, "x", part)]));
            }
            assert!(is_stopped, "{}", case.name);
        }
    }
}

#[test]
fn many_words_between_two_pieces_hide_nothing() {
    for case in cases() {
        let (one, two) = case.value.split_at(case.value.len() / 2);
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        assert!(!is_refused(&window.push(&[piece(
            PieceSource::Query,
            "a",
            one
        )])));
        for number in 0..150 {
            let slot = format!("w{number}");
            let word = WORDS[number % WORDS.len()].as_bytes();
            let found = window.push(&[piece(PieceSource::Query, &slot, word)]);
            assert!(!is_refused(&found), "{}", case.name);
        }
        let found = window.push(&[piece(PieceSource::Query, "b", two)]);
        assert!(is_refused(&found), "{}", case.name);
    }
}

/// A credential that is whole in one piece is judged where it stands, not here.
#[test]
fn what_stands_in_one_piece_is_not_found_in_several() {
    for case in cases() {
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        for number in 0..20 {
            let slot = format!("{number}");
            let message = [
                piece(PieceSource::Field, "authorization", &case.value),
                piece(PieceSource::Query, &slot, b"abcd1234"),
                piece(PieceSource::Content, "text", b"a9Zq3LmT"),
            ];
            assert_eq!(window.push(&message), [], "{}", case.name);
        }
    }
}

#[test]
fn ordinary_values_make_nothing() {
    let case = &cases()[0];
    let mut dice = Dice(7);
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    for _ in 0..2000 {
        let text = |dice: &mut Dice, most: usize| -> Vec<u8> {
            let letters = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
            let length = 1 + dice.roll(most);
            (0..length)
                .map(|_| letters[dice.roll(letters.len())])
                .collect()
        };
        let values: Vec<Vec<u8>> = (0..4).map(|_| text(&mut dice, 40)).collect();
        let slots = ["a", "b", "c", "d"];
        let pieces: Vec<Piece<'_>> = slots
            .iter()
            .zip(&values)
            .map(|(slot, value)| piece(SOURCES[dice.roll(SOURCES.len())], slot, value))
            .collect();
        assert_eq!(window.push(&pieces), []);
    }
}
