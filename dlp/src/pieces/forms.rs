//! What senders put around pieces and do to them, undone: what stands between
//! them, what they have in common, their numbers, their codings, their order.
//! Pure; each form is a stream of its own, beside the stream as it is.

use std::borrow::Cow;

use super::{Entry, Source};
use crate::validate::base64;

/// Shortest common beginning or end that is no chance, in bytes.
const COMMON_BYTES_MIN: usize = 4;

/// A piece, or what is left of it.
pub(super) type Part<'a> = Cow<'a, [u8]>;

/// Pieces as they are.
pub(super) fn pieces<'a>(stream: &[Entry<'a>]) -> Vec<Part<'a>> {
    let pieces = stream.iter().map(|entry| Cow::Borrowed(entry.bytes));
    pieces.collect()
}

/// The forms of a stream without words that are not the stream itself.
pub(super) fn all<'a>(pieces: &[Part<'a>]) -> Vec<Vec<Part<'a>>> {
    let once = once(pieces);
    let own = changed(&once, decoded);
    let cleaned = clean(&once);
    let common = common(&once);
    let mut made = vec![
        of_chance(&once),
        changed(&once, without_number),
        changed(&cleaned, decoded),
        changed(&common, decoded),
        cleaned,
        common,
    ];
    if own != once {
        made.push(clean(&own));
    }
    made.extend([own, once]);
    let mut forms: Vec<Vec<Part<'a>>> = Vec::new();
    for form in made {
        if form.as_slice() != pieces && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// Every piece changed in this way.
pub(super) fn changed<'a>(pieces: &[Part<'a>], change: Change) -> Vec<Part<'a>> {
    let change = |piece: &Part<'a>| change(piece).map_or_else(|| piece.clone(), Cow::Owned);
    pieces.iter().map(change).collect()
}

/// What becomes of a piece; nothing where it stays as it is.
pub(super) type Change = fn(&[u8]) -> Option<Vec<u8>>;

/// The last piece first.
pub(super) fn reversed<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    pieces.iter().rev().cloned().collect()
}

/// Each piece once that comes several times, one behind the other.
pub(super) fn once<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let mut once = pieces.to_vec();
    once.dedup();
    once
}

/// Every second and every third piece: something else of their kind between them.
pub(super) fn sparse<'a>(pieces: &[Part<'a>]) -> Vec<Vec<Part<'a>>> {
    let from = |step: usize, first: usize| {
        let some = pieces.iter().skip(first).step_by(step);
        some.cloned().collect::<Vec<_>>()
    };
    let ways = [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)];
    ways.into_iter().map(|(step, first)| from(step, first)).collect()
}

/// The pieces that change between letters and digits as often as chance does it: no versions,
/// regions, dates, nor names in several words.
fn of_chance<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let some = pieces.iter().filter(|piece| is_of_chance(piece));
    some.cloned().collect()
}

fn is_of_chance(piece: &[u8]) -> bool {
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
    changes.count().saturating_mul(5) >= piece.len()
}

/// Pieces without the fields and the ends that they have in common, and without numbers.
fn clean<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let pieces = without_labels(&apart(&without_fields(pieces)));
    changed(&pieces, without_number)
}

/// Whether a byte stands between the fields of a piece, and in few credentials.
fn separates(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",;=|:&\"'<>(){}[]".contains(&byte)
}

/// Pieces without their fields that a neighbour has as well, or that are numbers.
fn without_fields<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let fields = |piece: &Part<'a>| -> Vec<Vec<u8>> {
        let all = piece.split(|byte| separates(*byte));
        let all = all.filter(|field| !field.is_empty());
        all.map(<[u8]>::to_vec).collect()
    };
    let all: Vec<Vec<Vec<u8>>> = pieces.iter().map(fields).collect();
    let mut cleaned = Vec::with_capacity(pieces.len());
    for (place, (piece, own)) in pieces.iter().zip(&all).enumerate() {
        let neighbours = [place.checked_sub(1), Some(place.saturating_add(1))];
        let neighbours = neighbours.into_iter().flatten();
        let others: Vec<&Vec<Vec<u8>>> = neighbours.filter_map(|other| all.get(other)).collect();
        let is_number = |field: &[u8]| field.len() <= 4 && field.iter().all(u8::is_ascii_digit);
        let is_own = |field: &&Vec<u8>| {
            !is_number(field) && !others.iter().any(|other| other.contains(field))
        };
        let left: Vec<u8> = own.iter().filter(is_own).flatten().copied().collect();
        cleaned.push(if own.len() < 2 || left.is_empty() {
            piece.clone()
        } else {
            Cow::Owned(left)
        });
    }
    cleaned
}

/// Pieces without what all of them begin and end with.
fn common<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let Some((first, others)) = pieces.split_first() else {
        return Vec::new();
    };
    let shared = |count: fn(&[u8], &[u8]) -> usize| {
        let counts = others.iter().map(|other| count(first, other));
        counts.min().unwrap_or_default()
    };
    let (begin, end) = (shared(begin), shared(end));
    let cut = |piece: &Part<'a>| cut(piece, begin, end);
    pieces.iter().map(cut).collect()
}

/// Pieces without what they begin and end with as a neighbour does, up to a sign that is no
/// letter, or so much that it is no chance.
fn apart<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let mut made = Vec::with_capacity(pieces.len());
    for (place, piece) in pieces.iter().enumerate() {
        let neighbours = [place.checked_sub(1), Some(place.saturating_add(1))];
        let others = neighbours.into_iter().flatten();
        let others = others.filter_map(|other| pieces.get(other));
        let others = others.filter(|other| *other != piece);
        let (mut from, mut to) = (0, 0);
        for other in others {
            let is_sign = |byte: &u8| !byte.is_ascii_alphanumeric();
            let begins = begin(piece, other);
            let ends = end(piece, other);
            let before = piece.get(..begins).unwrap_or_default();
            let behind = piece.get(piece.len().saturating_sub(ends)..);
            let signs = before.iter().rposition(is_sign);
            let begins = match signs {
                Some(sign) => sign.saturating_add(1),
                None if begins >= COMMON_BYTES_MIN => begins,
                None => 0,
            };
            let signs = behind.unwrap_or_default().iter().position(is_sign);
            let ends = match signs {
                Some(sign) => ends.saturating_sub(sign),
                None if ends >= COMMON_BYTES_MIN => ends,
                None => 0,
            };
            (from, to) = (from.max(begins), to.max(ends));
        }
        made.push(cut(piece, from, to));
    }
    made
}

/// Pieces without the label and number that each of them begins with, as in `part3.`.
fn without_labels<'a>(pieces: &[Part<'a>]) -> Vec<Part<'a>> {
    let label = |piece: &Part<'a>| -> Option<(usize, usize)> {
        let is_label = |byte: &&u8| byte.is_ascii_lowercase();
        let letters = piece.iter().take_while(is_label).count();
        let rest = piece.get(letters..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let sign = rest.get(digits).filter(|byte| !byte.is_ascii_alphanumeric());
        let is_label = (1..=8).contains(&letters) && (1..=4).contains(&digits) && sign.is_some();
        is_label.then_some((letters, letters.saturating_add(digits).saturating_add(1)))
    };
    let labels: Option<Vec<(usize, usize)>> = pieces.iter().map(label).collect();
    let Some(labels) = labels else {
        return pieces.to_vec();
    };
    let names = pieces.iter().zip(&labels);
    let mut names = names.map(|(piece, (letters, _))| piece.get(..*letters));
    let first = names.next().flatten();
    if !names.all(|name| name == first) {
        return pieces.to_vec();
    }
    let all = pieces.iter().zip(labels);
    all.map(|(piece, (_, from))| cut(piece, from, 0)).collect()
}

/// How many bytes two pieces begin with alike.
fn begin(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// How many bytes two pieces end with alike.
fn end(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// A piece without so much of either end, where something is left.
fn cut<'a>(piece: &Part<'a>, from: usize, to: usize) -> Part<'a> {
    let left = piece.get(from..piece.len().saturating_sub(to));
    match left {
        Some(left) if !left.is_empty() && left.len() < piece.len() => Cow::Owned(left.to_vec()),
        _ => piece.clone(),
    }
}

/// Whether bytes look more like a piece of a credential than like a word or a number.
pub(crate) fn is_dense(piece: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| piece.iter().any(is);
    let has_digit = has(u8::is_ascii_digit);
    let has_small = has(u8::is_ascii_lowercase);
    // A capital at the beginning is that of a word.
    let has_capital = piece.iter().skip(1).any(u8::is_ascii_uppercase);
    let mixes = [has_digit, has_small, has_capital];
    let is_word = !has(u8::is_ascii_whitespace);
    is_word && mixes.iter().filter(|has| **has).count() >= 2
}

/// A piece without what separates words.
pub(super) fn bare(piece: &[u8]) -> Option<Vec<u8>> {
    let is_word = |byte: &u8| !byte.is_ascii_whitespace() && !b",;\"'|".contains(byte);
    let word = || piece.iter().copied().filter(is_word).collect();
    (!piece.iter().all(is_word)).then(word)
}

/// A piece without the number by which its sender would put it in order.
pub(super) fn without_number(piece: &[u8]) -> Option<Vec<u8>> {
    let digits = piece.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = piece.split_at(digits.count());
    let separates = |byte: &u8| b"-_.:,;=/| ".contains(byte);
    match rest.split_first() {
        Some((first, rest)) if (1..=4).contains(&number.len()) && separates(first) => {
            Some(rest.trim_ascii_start().to_vec())
        }
        _ => None,
    }
}

/// What a piece says that is coded by itself, in text.
pub(super) fn decoded(piece: &[u8]) -> Option<Vec<u8>> {
    let is_text = |bytes: &Vec<u8>| {
        let is_sign = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        !bytes.is_empty() && bytes.iter().all(is_sign)
    };
    if let Some(plain) = unescaped(piece) {
        return Some(plain).filter(is_text);
    }
    let is_symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    if piece.len() < 2 || !piece.iter().all(is_symbol) {
        return None;
    }
    let digits = [&b"0x"[..], b"x"].iter().find_map(|sign| piece.strip_prefix(*sign));
    let from_hex = hex(digits.unwrap_or(piece)).filter(is_text);
    from_hex.or_else(|| base64::decode(piece).filter(is_text))
}

/// A piece as its place means it: in targets and cookies escapes stand for bytes (RFC 3986
/// 2.1).
pub(crate) fn plain(source: Source, piece: &[u8]) -> Cow<'_, [u8]> {
    let is_escaped = match source {
        Source::Path
        | Source::Query
        | Source::QueryName
        | Source::Cookie
        | Source::CookieName => true,
        Source::Field
        | Source::FieldName
        | Source::Content
        | Source::ContentName
        | Source::Beside => false,
    };
    let plain = is_escaped.then(|| unescaped(piece)).flatten();
    plain.map_or(Cow::Borrowed(piece), Cow::Owned)
}

/// Bytes for their escapes; nothing where there are none.
fn unescaped(piece: &[u8]) -> Option<Vec<u8>> {
    if !piece.contains(&b'%') {
        return None;
    }
    let mut plain = Vec::with_capacity(piece.len());
    let mut rest = piece;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        match digits.and_then(hex).as_deref() {
            Some([byte]) => {
                plain.push(*byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            _ => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    (plain.len() < piece.len()).then_some(plain)
}

/// What hexadecimal stands for.
fn hex(piece: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = piece.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    };
    rest.is_empty()
        .then(|| pairs.iter().map(byte).collect())
        .flatten()
}
