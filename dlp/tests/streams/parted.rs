//! Pieces that lie too far apart to be read together: the first of them is told when it
//! falls out of reach, and ordinary values that do so are not.

use std::sync::Arc;

use outgate_dlp::{
    Detectors, Piece, PieceSource, Ruleset, ScanSettings, UnscannableAction, UnscannedReason,
    Window,
};

use crate::pieces::{SOURCES, cases, is_refused, piece};
use crate::stage::{Dice, ELSEWHERE};

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Draws a value of a kind.
type Made = Box<dyn Fn(&mut Dice) -> Vec<u8>>;

fn drawn(dice: &mut Dice, letters: &[u8], length: usize) -> Vec<u8> {
    let some = (0..length).map(|_| letters[dice.roll(letters.len())]);
    some.collect()
}

/// Whether what was not read together is told with one of these reasons.
fn is_told(window: &mut Window, reasons: &[UnscannedReason]) -> bool {
    let missed = window.missed().map(|missed| missed.reason);
    missed.is_some_and(|reason| reasons.contains(&reason))
}

#[test]
fn the_beginning_of_a_form_that_falls_out_of_reach_is_told_as_such() {
    let case = &cases()[0];
    let (one, two) = case.value.split_at(case.value.len() / 2);
    let mut dice = Dice(3);
    for source in SOURCES {
        for in_one_message in [true, false] {
            let junk: Vec<Vec<u8>> = (0..60).map(|_| drawn(&mut dice, LETTERS, 12)).collect();
            let names: Vec<String> = (0..60).map(|number| format!("j{number}")).collect();
            let junk = junk.iter().zip(&names);
            let mut message = vec![piece(source, "first", one)];
            message.extend(junk.map(|(value, name)| piece(source, name, value)));
            message.push(piece(source, "second", two));
            let mut window = Window::new(&case.rules, &ELSEWHERE);
            let (mut is_stopped, mut said) = (false, Vec::new());
            let lots = if in_one_message { message.len() } else { 1 };
            for lot in message.chunks(lots) {
                is_stopped |= is_refused(&window.push(lot));
                let missed = window.missed().map(|missed| missed.reason);
                is_stopped |= missed == Some(UnscannedReason::Begun);
                said.extend(missed);
            }
            assert!(is_stopped, "{source:?} {in_one_message} {said:?}");
        }
    }
    assert!(UnscannableAction::Refuse.refuses(UnscannedReason::Begun));
    assert!(!UnscannableAction::RefuseBombs.refuses(UnscannedReason::Begun));
    assert!(!UnscannedReason::Begun.is_limit());
}

/// Of what has no beginning that could be told, that it was not read with what came later.
#[test]
fn what_looks_like_a_piece_and_falls_out_of_reach_is_counted() {
    for case in &cases()[1..] {
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        let mut dice = Dice(5);
        let mut is_counted = false;
        window.push(&[piece(PieceSource::Query, "a", b"k3Jd8sQpL0vXz7")]);
        for number in 0..60 {
            let value = drawn(&mut dice, b"0123456789abcdef", 12);
            let name = format!("j{number}");
            window.push(&[piece(PieceSource::Query, &name, &value)]);
            is_counted |= is_told(&mut window, &[UnscannedReason::Parted]);
        }
        assert!(is_counted, "{}", case.name);
    }
    for action in [UnscannableAction::Refuse, UnscannableAction::RefuseBombs] {
        assert!(!action.refuses(UnscannedReason::Parted));
    }
}

/// Values of ordinary documents, many times what a window holds.
#[test]
fn ordinary_values_that_fall_out_of_reach_are_not_refused() {
    let rules = Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let rules = Arc::new(rules.expect("the shipped detectors"));
    let mut dice = Dice(9);
    let hex = b"0123456789abcdef";
    let after = |text: &'static str, letters: &'static [u8], length: usize| -> Made {
        Box::new(move |dice| [text.as_bytes(), &drawn(dice, letters, length)].concat())
    };
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let kinds: [(&str, Made); 11] = [
        ("integrity", after("sha512-", base64, 86)),
        ("hash", after("", hex, 64)),
        ("commit", after("", hex, 40)),
        ("call", after("toolu_01", LETTERS, 22)),
        ("id", after("call_", LETTERS, 24)),
        ("short", after("", LETTERS, 11)),
        ("cursor", after("eyJpZCI6", base64, 20)),
        ("version", after("1.0.", b"0123456789", 2)),
        ("release", after("v1.0-", b"betarc0123", 4)),
        (
            "package",
            after("https://registry.test/a/-/a-", b"0123456789.", 6),
        ),
        (
            "image",
            after("data:image/png;base64,iVBORw0KGgo", base64, 600),
        ),
    ];
    for source in [PieceSource::Content, PieceSource::Query, PieceSource::Field] {
        let mut window = Window::new(&rules, &ELSEWHERE);
        for _ in 0..100 {
            for (name, made) in &kinds {
                let values: Vec<Vec<u8>> = (0..8).map(|_| made(&mut dice)).collect();
                let pieces: Vec<Piece<'_>> = values
                    .iter()
                    .map(|value| piece(source, name, value))
                    .collect();
                window.push(&pieces);
                let missed = window.missed().map(|missed| missed.reason);
                let refuses = |reason| UnscannableAction::Refuse.refuses(reason);
                assert!(!missed.is_some_and(refuses), "{name} {missed:?}");
            }
        }
    }
}
