//! Where in a layer escapes stand. A quick look at every byte, so that text
//! without escapes costs nothing beside it.

use super::Kind;
use super::decode::{self, Token, digit};
use super::{fold, references};
use crate::budget::narrow;
use crate::layer::View;

/// Bytes on one side of an escape that must be text: the longer part of the
/// shortest credential that it could stand in.
const TEXT_BYTES: usize = 6;

/// Every escape that begins in `from..to`, in offsets of the layer, kind by kind:
/// what one kind has begun is not begun anew for another that comes after it.
pub(super) fn find(view: &View<'_>, from: u64, to: u64, found: &mut impl FnMut(Kind, u64)) {
    let mut look = |at: u64| {
        let place = narrow(at.saturating_sub(view.base));
        let (before, here) = view.bytes.split_at_checked(place).unwrap_or_default();
        if let Some(kind) = kind(before, here) {
            // The letter before the zero is part of it.
            let back = u64::from(kind == Kind::Wide);
            found(kind, at.saturating_sub(back));
        }
    };
    let range = (from, to);
    let is_equals = |at: u64| view.bytes.get(narrow(at.saturating_sub(view.base))) == Some(&b'=');
    for equals in [false, true] {
        view.classes.escapes(range, &mut |at| {
            if is_equals(at) == equals {
                look(at);
            }
        });
    }
    view.classes.uncommon(range, &mut look);
}

/// Whether an escape begins with the first of `here`.
pub(crate) fn begins(before: &[u8], here: &[u8]) -> bool {
    kind(before, here).is_some()
}

/// Whether an escape may begin with these bytes, which are not all of it.
pub(crate) fn may_begin(bytes: [u8; 4]) -> bool {
    match bytes {
        [0, 0, zero, _] => zero == 0,
        [0, one, zero, two] => zero == 0 && one.is_ascii_graphic() && two.is_ascii_graphic(),
        [first, second, ..] if first >= 0xc2 => fold::may_begin([first, second]),
        _ => true,
    }
}

/// The kind of escape that begins with the first of `here`. Among bytes that are
/// no text, none does: it could stand in no credential.
fn kind(before: &[u8], here: &[u8]) -> Option<Kind> {
    let kind = match here.first()? {
        b'%' | b'\\' | b'&' => escape(here)?,
        b'=' if is_quoted(here) => Kind::Quoted,
        0 if is_wide(here) => Kind::Wide,
        0xc2.. if fold::begins(here) => Kind::Fold,
        _ => return None,
    };
    let last = before.len().saturating_sub(TEXT_BYTES);
    let behind = match kind {
        // What was looked at counts for nothing, nor does the escape itself.
        Kind::Fold => 2 * fold::NEAR_BYTES,
        _ => TEXT_BYTES + 2,
    };
    let is_among_text = fold::is_utf8(here.get(..behind).unwrap_or(here))
        || fold::is_utf8(before.get(last..).unwrap_or_default());
    is_among_text.then_some(kind)
}

/// The first three bytes of everything that can be found here, as sets: more of
/// them may be given than are found, never less.
pub(crate) fn openings() -> Vec<[Vec<u8>; 3]> {
    let all = |test: fn(&u8) -> bool| (0..=255).filter(test).collect::<Vec<u8>>();
    let (any, digits) = (all(|_| true), all(u8::is_ascii_hexdigit));
    let (graphic, letters) = (all(u8::is_ascii_graphic), all(u8::is_ascii_alphanumeric));
    let capitals = all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte));
    let mut openings = vec![
        [b"%".to_vec(), digits.clone(), digits.clone()],
        [
            b"\\".to_vec(),
            b"uUx".to_vec(),
            [digits.as_slice(), b"{"].concat(),
        ],
        [b"\\".to_vec(), b"01234567/".to_vec(), any.clone()],
        [b"&".to_vec(), b"#".to_vec(), b"0123456789xX".to_vec()],
        [b"&".to_vec(), references::initials(), letters],
        [b"=".to_vec(), b"234567".to_vec(), capitals],
        [b"=".to_vec(), b"\n".to_vec(), any.clone()],
        (*b"=\r\n").map(|byte| vec![byte]),
        [vec![0], graphic, vec![0]],
        [vec![0], vec![0], vec![0]],
    ];
    openings.extend(fold::openings().map(|[lead, second]| [lead, second, any.clone()]));
    openings
}

/// The kind of escape that begins here.
fn escape(here: &[u8]) -> Option<Kind> {
    let is_digit = |place: usize| here.get(place).is_some_and(|byte| digit(*byte).is_some());
    match here {
        [b'%', ..] if is_digit(1) && is_digit(2) => Some(Kind::Percent),
        // Ends of lines and quotes are escaped everywhere, and split nothing.
        [b'\\', b'u' | b'U' | b'x' | b'0'..=b'7' | b'/', ..] if is_escape(here) => {
            Some(Kind::Escape)
        }
        [b'&', ..] if references::begins(here) => Some(Kind::Reference),
        _ => None,
    }
}

/// Whether decoding takes it for an escape too: otherwise it would stand in the
/// next layer as it stands here, and so on without end.
fn is_escape(here: &[u8]) -> bool {
    !matches!(decode::escape(here), Token::Plain | Token::More)
}

/// Whether quoted-printable stands here: a character of text, or a line that
/// goes on.
fn is_quoted(here: &[u8]) -> bool {
    match here {
        [_, b'\n', ..] | [_, b'\r', b'\n', ..] => true,
        [_, high @ b'2'..=b'7', low, ..] => {
            (low.is_ascii_digit() || (b'A'..=b'F').contains(low)) && (*high, *low) != (b'7', b'F')
        }
        _ => false,
    }
}

/// Whether text with a zero after (or before) each letter begins with this zero.
fn is_wide(here: &[u8]) -> bool {
    match here {
        [_, one, 0, two, ..] if *one != 0 => one.is_ascii_graphic() && two.is_ascii_graphic(),
        [_, 0, 0, one, 0, ..] => one.is_ascii_graphic(),
        _ => false,
    }
}

/// Whether a character that folds can begin with this byte. Ranges only, and
/// without those of Latin letters and of most of East Asia.
pub(crate) fn is_lead(byte: u8) -> bool {
    matches!(byte, 0xc2 | 0xc4..=0xd8 | 0xe1..=0xe3 | 0xef | 0xf0 | 0xf3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_begins_may_begin(
            before in proptest::collection::vec(any::<u8>(), 0..9),
            here in prop_oneof![
                proptest::collection::vec(any::<u8>(), 4..20),
                "[%&\\\\=][0-9a-fxu#n/\n]{3,12}".prop_map(String::into_bytes),
                "[\u{430}\u{445}\u{200b}\u{ff41}][a-z\u{1}\u{3}]{2,12}".prop_map(String::into_bytes),
                "[\0][a-z\0]{4,12}".prop_map(String::into_bytes),
            ],
        ) {
            let few = here.first_chunk::<4>().copied().expect("four bytes");
            prop_assert!(!begins(&before, &here) || may_begin(few), "{:?}", here);
        }
    }
}
