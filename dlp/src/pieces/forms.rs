//! What senders put around pieces and do to them, undone: what stands between
//! them, what they have in common, their numbers, their codings, their order.
//! Pure; each form is a stream of its own, beside the stream as it is.

use std::borrow::Cow;

use super::codings::{self, decoded};
use super::{PieceSource, StreamEntry};
use crate::escapes::EscapeKind;
use crate::span;

/// Shortest common beginning or end that is no chance, in bytes.
const COMMON_BYTES_MIN: usize = 4;

/// A piece, or what is left of it.
pub(super) type Part<'a> = Cow<'a, [u8]>;

/// Pieces as they are.
pub(super) fn pieces<'a>(stream: &[StreamEntry<'a>]) -> Vec<Part<'a>> {
    let pieces = stream.iter().map(|entry| Cow::Borrowed(entry.bytes));
    pieces.collect()
}

/// A stream in another form; nothing where it stays as it is.
type Form<'a> = Option<Vec<Part<'a>>>;

/// The forms of a stream without words that are not the stream itself.
pub(super) fn all<'a>(pieces: &[Part<'a>]) -> Vec<Vec<Part<'a>>> {
    let single = once(pieces);
    let once = single.as_deref().unwrap_or(pieces);
    let bare = bare(once);
    let common = common(once);
    let mut forms = vec![of_chance(once)];
    for form in [Some(once), bare.as_deref(), common.as_deref()] {
        let Some(form) = form else {
            continue;
        };
        let numbered = changed(form, without_number);
        for form in [Some(form), numbered.as_deref()].into_iter().flatten() {
            for own in said(form) {
                forms.push(self::bare(&own));
                forms.push(Some(own));
            }
        }
        forms.push(numbered);
    }
    forms.extend([bare, common, single]);
    forms.into_iter().flatten().collect()
}

/// What pieces say that are coded once or several times, of each time.
pub(super) fn said<'a>(pieces: &[Part<'a>]) -> Vec<Vec<Part<'a>>> {
    let mut times: Vec<Vec<Part<'a>>> = Vec::new();
    while times.len() < codings::TIMES_MAX
        && let Some(said) = changed(times.last().map_or(pieces, Vec::as_slice), decoded)
    {
        times.push(said);
    }
    times
}

/// Pieces without the fields, the ends and the labels that neighbours have in common.
pub(super) fn bare<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    let mut made: Form<'a> = None;
    for change in [without_fields, apart, without_labels] {
        let changed = change(made.as_deref().unwrap_or(pieces));
        made = changed.or(made);
    }
    made
}

/// Every piece changed in this way.
pub(super) fn changed<'a>(pieces: &[Part<'a>], change: Change) -> Form<'a> {
    each(pieces, |_, piece| change(piece))
}

/// Every piece changed in a way that its place decides about.
fn each<'a>(pieces: &[Part<'a>], change: impl Fn(usize, &Part<'a>) -> Option<Vec<u8>>) -> Form<'a> {
    let mut made: Form<'a> = None;
    for (place, piece) in pieces.iter().enumerate() {
        if let Some(other) = change(place, piece)
            && let Some(own) = made.get_or_insert_with(|| pieces.to_vec()).get_mut(place)
        {
            *own = Cow::Owned(other);
        }
    }
    made
}

/// The pieces right before and right behind a place.
pub(super) fn neighbours<T>(pieces: &[T], place: usize) -> impl Iterator<Item = &T> {
    let places = [place.checked_sub(1), Some(place.saturating_add(1))];
    places
        .into_iter()
        .flatten()
        .filter_map(|other| pieces.get(other))
}

/// What becomes of a piece; nothing where it stays as it is.
pub(super) type Change = fn(&[u8]) -> Option<Vec<u8>>;

/// The last piece first.
pub(super) fn reversed<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    pieces.iter().rev().cloned().collect()
}

/// Each piece once that comes several times, one behind the other.
pub(super) fn once<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    let mut pairs = pieces.iter().zip(pieces.iter().skip(1));
    pairs.any(|(one, other)| one == other).then(|| {
        let mut once = pieces.to_vec();
        once.dedup();
        once
    })
}

/// Every second piece: something else of their kind between them.
pub(super) fn sparse<'a>(pieces: &[Part<'a>]) -> [Vec<Part<'a>>; 2] {
    [0, 1].map(|first| pieces.iter().skip(first).step_by(2).cloned().collect())
}

/// The pieces that change between letters and digits as often as chance does it, and come
/// once: no versions, regions, dates, nor names in several words.
fn of_chance<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    let comes_once = |piece: &Part<'a>| pieces.iter().filter(|own| *own == piece).count() == 1;
    let some = pieces
        .iter()
        .filter(|piece| is_of_chance(piece) && comes_once(piece));
    let some: Vec<Part<'a>> = some.cloned().collect();
    (some.len() < pieces.len()).then_some(some)
}

/// Whether a piece changes between kinds of letters as often as chance does it.
pub(crate) fn is_of_chance(piece: &[u8]) -> bool {
    let pairs = piece.iter().zip(piece.iter().skip(1));
    let changes = pairs.filter(|(one, other)| {
        let is_word = one.is_ascii_uppercase() && other.is_ascii_lowercase();
        let is_same = |is: fn(&u8) -> bool| is(one) && is(other);
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
        is_letter(one)
            && is_letter(other)
            && !is_word
            && !is_same(u8::is_ascii_digit)
            && !is_same(u8::is_ascii_lowercase)
            && !is_same(u8::is_ascii_uppercase)
    });
    let count = changes.count();
    count >= 2 && count.saturating_mul(5) >= piece.len()
}

/// Whether a byte stands between the fields of a piece, and in few credentials.
pub(super) fn separates(byte: u8) -> bool {
    SEPARATORS.get(usize::from(byte)).copied().unwrap_or(false)
}

const SEPARATORS: [bool; 256] = separators();

#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "at compile time, where nothing else can be called: a byte is a place of 256"
)]
const fn separators() -> [bool; 256] {
    let mut all = [false; 256];
    let mut signs: &[u8] = b" \t\r\n,;=|:&\"'`<>(){}[]";
    while let [sign, rest @ ..] = signs {
        all[*sign as usize] = true;
        signs = rest;
    }
    // Between the two ends of a long piece.
    all[super::GAP as usize] = true;
    all
}

/// Pieces without their fields that a neighbour has as well, or that are numbers.
fn without_fields<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    each(pieces, |place, piece| {
        if !piece.iter().any(|byte| separates(*byte)) {
            return None;
        }
        let is_number = |field: &[u8]| field.len() <= 4 && field.iter().all(u8::is_ascii_digit);
        let is_shared = |field: &[u8]| {
            let mut others = neighbours(pieces, place).flat_map(|other| fields(other));
            others.any(|other| other == field)
        };
        let own = fields(piece).filter(|field| !is_number(field) && !is_shared(field));
        let left: Vec<u8> = own.flatten().copied().collect();
        (!left.is_empty() && left.len() < piece.len()).then_some(left)
    })
}

/// What stands between separators.
fn fields(piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = piece.split(|byte| separates(*byte));
    all.filter(|field| !field.is_empty())
}

/// Pieces without what all of them begin and end with.
fn common<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    let (first, others) = pieces.split_first()?;
    let shared = |count: fn(&[u8], &[u8]) -> usize| {
        let counts = others.iter().map(|other| count(first, other));
        counts.min().unwrap_or_default()
    };
    let (begin, end) = (shared(begin), shared(end));
    each(pieces, |_, piece| cut(piece, begin, end))
}

/// Pieces without what they begin and end with as a neighbour does, up to a sign that is no
/// letter, or so much that it is no chance.
fn apart<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    let is_sign = |byte: &u8| !byte.is_ascii_alphanumeric();
    each(pieces, |place, piece| {
        let (mut from, mut to) = (0, 0);
        for other in neighbours(pieces, place).filter(|other| *other != piece) {
            let (begins, ends) = (begin(piece, other), end(piece, other));
            let before = span::upto(piece, begins);
            let behind = piece.get(piece.len().saturating_sub(ends)..);
            let behind = behind.unwrap_or_default();
            from = from.max(match before.iter().rposition(is_sign) {
                Some(sign) => sign.saturating_add(1),
                None if begins >= COMMON_BYTES_MIN => begins,
                None => 0,
            });
            to = to.max(match behind.iter().position(is_sign) {
                Some(sign) => ends.saturating_sub(sign),
                None if ends >= COMMON_BYTES_MIN => ends,
                None => 0,
            });
        }
        cut(piece, from, to)
    })
}

/// Pieces without a label and a number that a neighbour begins with as well, as in `part3.`.
fn without_labels<'a>(pieces: &[Part<'a>]) -> Form<'a> {
    each(pieces, |place, piece| {
        let (name, length) = label(piece)?;
        let mut others = neighbours(pieces, place).filter_map(|other| label(other));
        let is_shared = others.any(|(other, _)| other == name);
        is_shared.then(|| cut(piece, length, 0)).flatten()
    })
}

/// The name of a label with a number at the beginning of a piece, and the length of all of
/// it with the sign behind it.
fn label(piece: &[u8]) -> Option<(&[u8], usize)> {
    let letters = piece.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (name, rest) = piece.split_at_checked(letters.count())?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = rest
        .get(digits)
        .filter(|byte| !byte.is_ascii_alphanumeric());
    let is_label = (1..=8).contains(&name.len()) && (1..=4).contains(&digits) && sign.is_some();
    is_label.then_some((name, name.len().saturating_add(digits).saturating_add(1)))
}

/// How many bytes two pieces begin with alike.
pub(super) fn begin(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// How many bytes two pieces end with alike.
pub(super) fn end(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// A piece without so much of either end, where something is left.
fn cut(piece: &[u8], from: usize, to: usize) -> Option<Vec<u8>> {
    let left = piece.get(from..piece.len().saturating_sub(to))?;
    (!left.is_empty() && left.len() < piece.len()).then(|| left.to_vec())
}

/// Whether bytes look more like a piece of a credential than like a word or a number.
pub(crate) fn is_dense(piece: &[u8]) -> bool {
    let (mut has_digit, mut has_small, mut has_capital) = (false, false, false);
    for (place, byte) in piece.iter().enumerate() {
        match byte {
            b'0'..=b'9' => has_digit = true,
            b'a'..=b'z' => has_small = true,
            // A capital at the beginning is that of a word.
            b'A'..=b'Z' => has_capital |= place > 0,
            _ if byte.is_ascii_whitespace() => return false,
            _ => {}
        }
    }
    let mixes = [has_digit, has_small, has_capital];
    mixes.iter().filter(|has| **has).count() >= 2
}

/// A piece without what separates words.
pub(super) fn without_signs(piece: &[u8]) -> Option<Vec<u8>> {
    let is_word = |byte: &u8| {
        let is_sign = matches!(byte, b',' | b';' | b'"' | b'\'' | b'|');
        !byte.is_ascii_whitespace() && !is_sign
    };
    // Prose is no list of pieces: its words would make anything.
    let is_prose = |field: &[u8]| field.len() >= 3 && field.iter().all(u8::is_ascii_lowercase);
    let word = || piece.iter().copied().filter(is_word).collect();
    let is_more = !piece.iter().all(is_word);
    let fields = || piece.split(|byte| !is_word(byte));
    (is_more && !fields().any(is_prose)).then(word)
}

/// A piece without the number by which its sender would put it in order.
pub(super) fn without_number(piece: &[u8]) -> Option<Vec<u8>> {
    let digits = piece.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = piece.split_at(digits.count());
    let separates = |byte: &u8| {
        matches!(
            byte,
            b'-' | b'_' | b'.' | b':' | b',' | b';' | b'=' | b'/' | b'|' | b' '
        )
    };
    match rest.split_first() {
        Some((first, rest)) if (1..=4).contains(&number.len()) && separates(first) => {
            Some(rest.trim_ascii_start().to_vec())
        }
        _ => None,
    }
}

/// A piece as its place means it: in targets and cookies escapes stand for bytes (RFC 3986
/// 2.1).
pub(crate) fn plain(source: PieceSource, piece: &[u8]) -> Cow<'_, [u8]> {
    let is_escaped = match source {
        PieceSource::Path
        | PieceSource::Query
        | PieceSource::QueryName
        | PieceSource::Cookie
        | PieceSource::CookieName => true,
        PieceSource::Method
        | PieceSource::Field
        | PieceSource::Client
        | PieceSource::FieldName
        | PieceSource::Content
        | PieceSource::ContentName
        | PieceSource::Beside => false,
    };
    let plain = is_escaped
        .then(|| codings::unescaped_of(EscapeKind::Percent, piece))
        .flatten();
    plain.map_or(Cow::Borrowed(piece), Cow::Owned)
}
