//! Where in a layer escapes stand: looks closely where the classes of bytes say that
//! one may begin, so that text without escapes costs nothing.

use outgate_lanes::{KINDS, Pair};

use crate::decode::classes::Classes;
use crate::escapes::decode;
use crate::escapes::{EscapeKind, EscapeToken, fold, references};
use crate::span::{self, Offset};

/// Bytes on one side of an escape that must be text: the longer part of the
/// shortest credential that it could stand in.
const TEXT_BYTES: usize = 6;

/// What the escapes of ASCII begin with, in kinds of which halves of bytes tell much.
pub(crate) const PAIRS: [Pair; KINDS] = [
    (
        |byte| byte == b'%',
        |byte| byte.is_ascii_hexdigit() || matches!(byte, b'u' | b'U'),
    ),
    (|byte| byte == b'\\', |byte| matches!(byte, b'0'..=b'7')),
    (
        |byte| byte == b'\\',
        |byte| matches!(byte, b'u' | b'U' | b'x'),
    ),
    (|byte| byte == b'\\', |byte| byte == b'/'),
    (
        |byte| matches!(byte, b'&' | decode::ESCAPE),
        |byte| matches!(byte, b'#' | b'[' | b'(' | b')'),
    ),
    (|byte| byte == b'&', |byte| byte.is_ascii_alphabetic()),
    // Small letters are frequent behind it in sources, and of what is written with them more
    // than half begin with a digit.
    (
        |byte| byte == b'=',
        |byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'),
    ),
    (
        |byte| byte == b'=',
        |byte| matches!(byte, b'\r' | b'\n' | b'\\'),
    ),
];

/// Backslashes before the letter of an escaped end of line: of text in JSON in JSON, four
/// times.
const BACKSLASHES_MAX: usize = 8;

/// Bytes in which another escape of quoted-printable stands behind one of no text: of
/// compressed data more than half are escaped.
const QUOTED_NEAR_BYTES: usize = 8;

/// Who looks for escapes.
pub(crate) trait Seeker {
    /// Whether it makes a difference that an escape of a kind stands there.
    fn wants(&mut self, kind: EscapeKind, at: u64) -> bool;

    /// One does.
    fn found(&mut self, kind: EscapeKind, at: u64);

    /// A place was given that is not among the bytes.
    fn lose(&mut self);
}

/// Every escape that begins in `from..to`, in offsets of the layer of which `bytes` are
/// those from `base` on: quoted-printable after the others of ASCII, and what is wide or
/// folds last, so that what one kind has begun is not begun anew for a later one. Whether
/// one is wanted may be asked before those in front of it are given.
pub(crate) fn find(
    bytes: &[u8],
    classes: &Classes,
    base: u64,
    range: (u64, u64),
    seeker: &mut impl Seeker,
) {
    let look = |at: u64, seeker: &mut dyn Seeker| -> Option<(EscapeKind, u64)> {
        let place = Offset(at).within(base, bytes.len());
        let Some((before, here)) = place.ok().and_then(|place| bytes.split_at_checked(place))
        else {
            seeker.lose();
            return None;
        };
        let kind = shape(here)?;
        // The letter before the zero is part of it.
        let back = u64::from(kind == EscapeKind::Wide);
        let at = at.saturating_sub(back);
        let is_one = seeker.wants(kind, at) && is_among_text(kind, before, here);
        is_one.then_some((kind, at))
    };
    let mut quoted = Vec::new();
    classes.escapes(range, &mut |at| match look(at, seeker) {
        Some((EscapeKind::Quoted, at)) => quoted.push(at),
        Some((kind, at)) => seeker.found(kind, at),
        None => {}
    });
    for at in quoted {
        seeker.found(EscapeKind::Quoted, at);
    }
    classes.uncommon(range, &mut |at| {
        if let Some((kind, at)) = look(at, seeker) {
            seeker.found(kind, at);
        }
    });
}

/// The kind of escape that begins with the first of `here`.
fn shape(here: &[u8]) -> Option<EscapeKind> {
    Some(match here.first()? {
        b'%' | b'\\' | b'&' => escape(here)?,
        &decode::ESCAPE if is_of(decode::terminal(here)) => EscapeKind::Terminal,
        b'=' if is_quoted(here) => EscapeKind::Quoted,
        // Once it is removed the line goes on.
        b'=' if is_before_escaped_end(here) => EscapeKind::Escape,
        0 if is_wide(here) => EscapeKind::Wide,
        0xc2 if is_control(here) => EscapeKind::Latin,
        // Most of those that are there are letters of other languages.
        0xc2.. if fold::may_begin(*here.first_chunk()?) => EscapeKind::Fold,
        _ => return None,
    })
}

/// Whether it stands in text: among other bytes it could stand in no credential.
fn is_among_text(kind: EscapeKind, before: &[u8], here: &[u8]) -> bool {
    let behind = match kind {
        // Three letters with zeros between are.
        EscapeKind::Wide => return true,
        EscapeKind::Fold if !fold::begins(here) => return false,
        // What was looked at counts for nothing, nor does the escape itself.
        EscapeKind::Fold => 2 * fold::NEAR_BYTES,
        _ => TEXT_BYTES + 2,
    };
    let last = before.len().saturating_sub(TEXT_BYTES);
    let is_behind = fold::is_utf8(here.get(..behind).unwrap_or(here));
    let is_before = || fold::is_utf8(span::from(before, last));
    // What was made text is text on both sides, and other bytes often look like one of it.
    if kind == EscapeKind::Latin {
        is_behind && is_before()
    } else {
        is_behind || is_before()
    }
}

/// The kind of escape that begins here.
fn escape(here: &[u8]) -> Option<EscapeKind> {
    match here {
        [b'%', ..] if is_of(decode::percent(here)) => Some(EscapeKind::Percent),
        // Ends of lines and quotes are escaped everywhere, and split nothing.
        [b'\\', b'u' | b'U' | b'x' | b'0'..=b'7' | b'/', ..] if is_of(decode::escape(here)) => {
            Some(EscapeKind::Escape)
        }
        [b'&', ..] if references::begins(here) => Some(EscapeKind::Reference),
        _ => None,
    }
}

/// Whether decoding takes it for an escape too: otherwise it would stand in the
/// next layer as it stands here, and so on without end.
fn is_of(token: EscapeToken) -> bool {
    !matches!(token, EscapeToken::Plain | EscapeToken::More)
}

/// Whether quoted-printable stands here: a character of text, a line that goes on, or one
/// of several bytes that are no text.
fn is_quoted(here: &[u8]) -> bool {
    match here {
        [_, b'7', b'F', ..] | [_, b'a'..=b'f', ..] => false,
        [_, b'\n', ..]
        | [_, b'\r', b'\n', ..]
        | [_, b'2'..=b'7', b'0'..=b'9' | b'A'..=b'F', ..] => true,
        [_, high, low, rest @ ..] if is_byte(*high, *low) => {
            let near = rest.get(..QUOTED_NEAR_BYTES).unwrap_or(rest);
            let mut others = near.windows(3);
            others.any(|other| matches!(other, [b'=', high, low] if is_byte(*high, *low)))
        }
        _ => false,
    }
}

/// Whether these are the digits of a byte, both as quoted-printable has them or both small.
fn is_byte(high: u8, low: u8) -> bool {
    let all = |is_letter: fn(&u8) -> bool| {
        let is_digit = |digit: &u8| digit.is_ascii_digit() || is_letter(digit);
        is_digit(&high) && is_digit(&low)
    };
    all(|digit| (b'A'..=b'F').contains(digit)) || all(|digit| (b'a'..=b'f').contains(digit))
}

/// Whether an end of line stands behind the sign that is escaped as in JSON, perhaps several
/// times: quoted-printable in a document.
fn is_before_escaped_end(here: &[u8]) -> bool {
    let [_, rest @ ..] = here else {
        return false;
    };
    let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let is_end = matches!(rest.get(backslashes), Some(b'r' | b'n'));
    (1..=BACKSLASHES_MAX).contains(&backslashes) && is_end
}

/// Whether a character of control above 127 stands here: text has none, and of bytes that
/// were each made a character (ISO 8859-1) every eighth is one.
fn is_control(here: &[u8]) -> bool {
    matches!(here, [_, 0x80..=0x9f, ..])
}

/// Whether text with a zero after (or before) each character begins with this zero: three
/// characters, at least two of them no space, since numbers of four bytes make two now and
/// then, and not all the same, as in code for machines. Text that begins with three that
/// are is told from a later zero, and decoded from before it.
fn is_wide(here: &[u8]) -> bool {
    match here {
        [_, one, 0, two, 0, three, ..] if *one != 0 => {
            let is_same = one == two && two == three;
            let all = [one, two, three];
            let graphic = all.iter().filter(|byte| byte.is_ascii_graphic());
            let is_text = |byte: &&u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
            !is_same && graphic.count() >= 2 && all.iter().all(is_text)
        }
        // Of four bytes each, or more.
        [_, 0, 0, one, rest @ ..] if one.is_ascii_graphic() => {
            let zeros = rest.iter().take_while(|byte| **byte == 0).count();
            let is_text = rest.get(zeros).is_some_and(u8::is_ascii_graphic);
            matches!(zeros, 3 | 7) && is_text
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_text_is_told_from_its_first_letters_that_differ() {
        let wide = |text: &str| -> Vec<u8> { text.bytes().flat_map(|byte| [0, byte]).collect() };
        for text in ["ghp", "gg_", "g__", "g g", "g\ng"] {
            assert!(is_wide(&wide(text)), "{text:?}");
        }
        let late = wide("aaab");
        assert!(!is_wide(&late) && is_wide(&late[2..]));
        for text in ["$$$", "g  ", "   ", "g\u{1}p"] {
            assert!(!is_wide(&wide(text)), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_an_escape_begins_with_a_pair_of_one(
            first in prop_oneof![Just(b'%'), Just(b'\\'), Just(b'&'), Just(b'='), Just(0x1b)],
            rest in prop_oneof![
                proptest::collection::vec(any::<u8>(), 1..12),
                "[0-9a-fA-Fux#/]{1,4}[0-9a-f;]{0,6}".prop_map(String::into_bytes),
                "[a-zA-Z]{2,8};".prop_map(String::into_bytes),
                "\\[[0-9;]{0,5}[mKH]".prop_map(String::into_bytes),
                "(amp|lowbar|hyphen|period|sol|plus|equals|num|colon);".prop_map(String::into_bytes),
                "\r?\n[a-z]{3}".prop_map(String::into_bytes),
            ],
        ) {
            let here = [&[first], rest.as_slice()].concat();
            let second = rest[0];
            let is_pair = PAIRS.iter().any(|(one, two)| one(first) && two(second));
            prop_assert!(is_pair || shape(&here).is_none(), "{:?}", here);
        }
    }
}
