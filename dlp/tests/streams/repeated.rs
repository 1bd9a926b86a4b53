//! Pieces of a credential that are sent several times, and what really is the same in every
//! message, which is none of it.

use outgate_dlp::{Piece, PieceSource, Window};

use crate::pieces::{Case, SOURCES, cases, cut, is_refused, piece};
use crate::stage::ELSEWHERE;

/// Under which names the pieces go.
#[derive(Debug, Clone, Copy)]
enum Slots {
    Own,
    Same,
}

/// What else every message says.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    /// A session and a version, which look like pieces, before and behind.
    Constants,
    /// The same, said by the second message first.
    LaterConstants,
}

const BESIDE: [Beside; 3] = [Beside::Nothing, Beside::Constants, Beside::LaterConstants];

/// Sends each piece so many times, one time after the other; answers whether it was refused.
fn is_stopped(
    case: &Case,
    source: PieceSource,
    (slots, beside): (Slots, Beside),
    times: usize,
) -> bool {
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    let names = ["a", "b", "c", "d", "e"];
    let mut count = 0;
    for (part, name) in cut(&case.value, 4).into_iter().zip(names) {
        let slot = match slots {
            Slots::Own => name,
            Slots::Same => "k",
        };
        for _ in 0..times {
            let own = piece(source, slot, part);
            let session = piece(source, "session", b"a8K3pQz71LmW");
            let version = piece(source, "version", b"agent/17.2");
            let has_constants = match beside {
                Beside::Nothing => false,
                Beside::Constants => true,
                Beside::LaterConstants => count > 0,
            };
            let message = if has_constants {
                vec![session, own, version]
            } else {
                vec![own]
            };
            if is_refused(&window.push(&message)) {
                return true;
            }
            count += 1;
        }
    }
    false
}

#[test]
fn what_is_sent_several_times_counts_once() {
    for case in cases() {
        for source in SOURCES {
            for slots in [Slots::Own, Slots::Same] {
                for beside in BESIDE {
                    for times in 1..=4 {
                        let is_stopped = is_stopped(&case, source, (slots, beside), times);
                        let name = case.name;
                        assert!(is_stopped, "{name} {source:?} {slots:?} {beside:?} {times}");
                    }
                }
            }
        }
    }
}

#[test]
fn pieces_that_are_sent_again_and_again_in_turn_count_once() {
    for case in cases() {
        for source in SOURCES {
            let mut window = Window::new(&case.rules, &ELSEWHERE);
            let parts = cut(&case.value, 3);
            let mut is_stopped = false;
            for turn in [&[0][..], &[0, 1, 0, 1, 1, 0], &[2]].concat() {
                let slot = ["a", "b", "c"][turn];
                is_stopped |= is_refused(&window.push(&[piece(source, slot, parts[turn])]));
            }
            assert!(is_stopped, "{} {source:?}", case.name);
        }
    }
}

/// Over several kinds of places, with the head of a client around them.
#[test]
fn what_is_repeated_in_a_head_goes_on_in_another_place() {
    for case in cases() {
        let parts = cut(&case.value, 3);
        let sources = [PieceSource::Query, PieceSource::Field, PieceSource::Path];
        let mut window = Window::new(&case.rules, &ELSEWHERE);
        let mut is_stopped = false;
        for (part, source) in parts.into_iter().zip(sources) {
            for _ in 0..3 {
                let message: [Piece<'_>; 3] = [
                    piece(PieceSource::Client, "user-agent", b"agent/17.2"),
                    piece(PieceSource::Field, "x-session", b"a8K3pQz71LmW"),
                    piece(source, "k", part),
                ];
                is_stopped |= is_refused(&window.push(&message));
            }
        }
        assert!(is_stopped, "{}", case.name);
    }
}
