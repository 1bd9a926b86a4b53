//! Values into which something is woven: a separator of any kind between the letters of a
//! credential, or between pieces of it. What it is the value says itself: signs that are none
//! of a word, columns that are the same all the way, or a word that comes again and again.
//! Pure; of values in which nothing comes again only the bytes are counted.

use super::forms::is_of_chance;
use super::words::{Begins, is_begun};
use crate::limits;

/// Fewest bytes that could be a credential with something woven into it.
const VALUE_BYTES_MIN: usize = 16;

/// Longest separator, in bytes.
const SEPARATOR_BYTES_MAX: usize = 12;

/// Longest piece and the separator behind it, in bytes, where all of them are of one length.
const PERIOD_BYTES_MAX: usize = 32;

/// How often a separator comes that is no chance, if it is one byte and if it is more.
const COLUMN_MIN: usize = 6;
const COLUMNS_MIN: usize = 3;

/// How often a separator comes that makes pieces as short as no words are, in count.
const SHORT_MIN: usize = 12;

/// Pieces between which what stands comes again, in count: one sign in a value tells nothing.
const PIECES_MIN: usize = 3;

/// Bytes of a piece that is shorter than words are.
const SHORT_BYTES: usize = 2;

/// One of so many bytes of a value belongs to a word that is woven into it, at least.
const SHARE: usize = 8;

/// Places of pairs of bytes that are counted: few of a value share one.
const PAIRS: usize = 1024;

/// How sure it is that a value was taken apart where somebody put it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seam {
    /// So much comes again that nothing else makes it.
    Sure,
    /// A checksum or a known value has to confirm it.
    Perhaps,
}

/// A value taken apart.
pub(super) type Apart<'a> = (Seam, Vec<&'a [u8]>);

/// The ways to take a value apart.
pub(super) fn forms<'a>(value: &'a [u8], begins: Begins<'_>) -> Vec<Apart<'a>> {
    let mut forms = Vec::new();
    if value.len() < VALUE_BYTES_MIN {
        return forms;
    }
    by_signs(value, &mut forms, begins);
    let words = value.split(u8::is_ascii_whitespace);
    for word in words.filter(|word| word.len() >= VALUE_BYTES_MIN) {
        forms.extend(by_columns(word, begins));
        forms.extend(by_word(word, begins));
    }
    if value.iter().any(u8::is_ascii_whitespace) {
        by_phrase(value, &mut forms, begins);
        by_lines(value, &mut forms, begins);
    }
    forms
}

/// Takes a value of several words apart at what comes again and again in it, blanks and all
/// (`/* … */` between pieces), and then into words.
fn by_phrase<'a>(value: &'a [u8], forms: &mut Vec<Apart<'a>>, begins: Begins<'_>) {
    // Of letters and blanks alone prose is made.
    let is_sign = |pair: &[u8]| pair.iter().any(u8::is_ascii_punctuation);
    let Some((_, parts)) = by_separator(value, is_sign, begins) else {
        return;
    };
    let words = parts.into_iter();
    let words = words.flat_map(|part| part.split(u8::is_ascii_whitespace));
    add(forms, words, begins);
}

/// Takes a value apart into the words of its lines, without the signs at the border of two:
/// of changes (`+`), comments, quotations, and of texts that are put together line by line.
fn by_lines<'a>(value: &'a [u8], forms: &mut Vec<Apart<'a>>, begins: Begins<'_>) {
    let count = value.split(|byte| *byte == b'\n').count();
    let is_sign = |byte: &&u8| !byte.is_ascii_alphanumeric() && **byte != b'_';
    let lines = (1..).zip(value.split(|byte| *byte == b'\n'));
    let lines: Vec<&[u8]> = lines
        .map(|(number, line)| {
            let before = line.iter().take_while(|byte| number > 1 && is_sign(byte));
            let line = line.get(before.count()..).unwrap_or_default();
            let behind = line.iter().rev();
            let behind = behind.take_while(|byte| number < count && is_sign(byte));
            let end = line.len().saturating_sub(behind.count());
            line.get(..end).unwrap_or_default()
        })
        .collect();
    if count >= 2 {
        let words = lines.into_iter();
        add(
            forms,
            words.flat_map(|line| line.split(u8::is_ascii_whitespace)),
            begins,
        );
    }
}

/// Whether a byte is of no word and in no credential: signs that few have, and what is
/// written in other scripts, symbols and pictures.
const fn is_sign(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'='))
}

/// Takes a value apart at all signs, and at each of the two that come most often.
fn by_signs<'a>(value: &'a [u8], forms: &mut Vec<Apart<'a>>, begins: Begins<'_>) {
    let is_any = |byte: &u8| !byte.is_ascii_alphanumeric();
    if !value.iter().any(is_any) {
        return;
    }
    add(forms, value.split(|byte| is_sign(*byte)), begins);
    let before = forms.len();
    add(forms, value.split(is_any), begins);
    // Of signs that credentials have as well no one is told from another.
    for (seam, _) in forms.iter_mut().skip(before) {
        *seam = Seam::Perhaps;
    }
    if value.iter().any(|byte| !byte.is_ascii()) {
        add(forms, value.split(|byte| !byte.is_ascii()), begins);
    }
    let mut counts = [0_usize; 128];
    for byte in value.iter().filter(|byte| is_any(byte)) {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
    }
    for _ in 0..2 {
        let most = (0..=127_u8).max_by_key(|byte| counts.get(usize::from(*byte)));
        let Some(most) = most else {
            return;
        };
        let count = counts.get_mut(usize::from(most)).map(std::mem::take);
        if count.unwrap_or_default() == 0 {
            return;
        }
        add(forms, value.split(|byte| *byte == most), begins);
    }
}

/// Adds a value that was taken apart, without words of prose.
fn add<'a>(forms: &mut Vec<Apart<'a>>, parts: impl Iterator<Item = &'a [u8]>, begins: Begins<'_>) {
    let is_prose = |part: &[u8]| part.len() > 2 && part.iter().all(u8::is_ascii_lowercase);
    let parts = parts.filter(|part| !part.is_empty() && !is_prose(part));
    let parts: Vec<&[u8]> = parts.collect();
    if parts.len() >= 2 {
        forms.push((seam(&parts, begins), parts));
    }
}

/// How sure it is that these are pieces of one value.
fn seam(parts: &[&[u8]], begins: Begins<'_>) -> Seam {
    let is_short = parts.iter().all(|part| part.len() <= SHORT_BYTES);
    let long = || parts.iter().filter(|part| part.len() > SHORT_BYTES);
    let is_piece = |part: &&[u8]| is_of_chance(part) || is_begun(part, begins);
    let are_pieces = long().count() >= PIECES_MIN && long().all(is_piece);
    if is_short && parts.len() >= SHORT_MIN || are_pieces {
        Seam::Sure
    } else {
        Seam::Perhaps
    }
}

/// Takes a word apart whose bytes are the same, again and again, at the same distance.
fn by_columns<'a>(word: &'a [u8], begins: Begins<'_>) -> Option<Apart<'a>> {
    let periods = 2..=PERIOD_BYTES_MAX.min(word.len() / 2);
    let all = periods.filter_map(|period| same_columns(word, period));
    // The most of it that is the same: of two separators in each other the whole.
    let share = |columns: &Vec<bool>| count(columns).saturating_mul(1024) / columns.len().max(1);
    let mut best: Option<Vec<bool>> = None;
    for columns in all {
        if best
            .as_ref()
            .is_none_or(|best| share(&columns) > share(best))
        {
            best = Some(columns);
        }
    }
    let columns = best?;
    let mut parts: Vec<&[u8]> = Vec::new();
    for chunk in word.chunks(columns.len()) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let at = chunk.len().saturating_sub(rest.len());
            let is_woven = columns.get(at).copied().unwrap_or_default();
            let same = columns.iter().skip(at).take_while(|is| **is == is_woven);
            let (part, behind) = rest.split_at(same.count().min(rest.len()));
            parts.extend((!is_woven).then_some(part));
            rest = behind;
        }
    }
    let is_often = word.len() / columns.len().max(1) >= SHORT_MIN;
    let is_short = columns.len().saturating_sub(count(&columns)) <= SHORT_BYTES;
    let seam = if is_often && is_short {
        Seam::Sure
    } else {
        seam(&parts, begins)
    };
    Some((seam, parts))
}

fn count(columns: &[bool]) -> usize {
    columns.iter().filter(|is_same| **is_same).count()
}

/// Which bytes of each so many are always the same; nothing where too few are, or all.
fn same_columns(word: &[u8], period: usize) -> Option<Vec<bool>> {
    let is_same = |column: usize| {
        let mut own = word.iter().skip(column).step_by(period);
        let first = own.next();
        own.all(|byte| Some(byte) == first)
    };
    if !(0..period).any(is_same) {
        return None;
    }
    let columns: Vec<bool> = (0..period).map(is_same).collect();
    let count = count(&columns);
    let least = if count == 1 { COLUMN_MIN } else { COLUMNS_MIN };
    let is_some = (1..period).contains(&count) && count <= SEPARATOR_BYTES_MAX;
    (is_some && word.len() / period >= least).then_some(columns)
}

/// Takes a word apart at a shorter one that comes again and again in it.
fn by_word<'a>(word: &'a [u8], begins: Begins<'_>) -> Option<Apart<'a>> {
    by_separator(word, |_| true, begins)
}

/// The same at one in which such a pair of bytes is.
fn by_separator<'a>(
    word: &'a [u8],
    has: impl Fn(&[u8]) -> bool,
    begins: Begins<'_>,
) -> Option<Apart<'a>> {
    let separator = separator(word, has)?;
    let mut parts = Vec::new();
    let mut from = 0_usize;
    for at in memchr::memmem::find_iter(word, separator) {
        parts.push(word.get(from..at).unwrap_or_default());
        from = at.saturating_add(separator.len());
    }
    parts.push(word.get(from..).unwrap_or_default());
    parts.retain(|part| !part.is_empty());
    (parts.len() >= 2).then(|| (seam(&parts, begins), parts))
}

/// What comes so often in a word that it may be woven into it, around a pair that may be.
fn separator(word: &[u8], may_be: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let place = |pair: &[u8]| match pair {
        [one, other] => (usize::from(*one) * 31 + usize::from(*other)) % PAIRS,
        _ => 0,
    };
    let mut counts = [0_u16; PAIRS];
    let mut most = (0_u16, 0_usize);
    for (at, pair) in word.windows(2).enumerate().filter(|(_, pair)| may_be(pair)) {
        if let Some(count) = counts.get_mut(place(pair)) {
            *count = count.saturating_add(1);
            if *count > most.0 {
                most = (*count, at);
            }
        }
    }
    let (times, at) = most;
    let least = word.len() / (SHARE * SEPARATOR_BYTES_MAX);
    if usize::from(times) < least.max(2) {
        return None;
    }
    let pair = word.get(at..at.checked_add(2)?)?;
    let places: Vec<usize> = memchr::memmem::find_iter(word, pair).collect();
    // As much as all of them have around it, but for a few that are there by chance.
    let agree = |offset: isize| {
        let byte = |place: &usize| word.get(place.checked_add_signed(offset)?).copied();
        let own = byte(&at)?;
        let same = places.iter().filter(|place| byte(place) == Some(own));
        let same = same.count();
        (same >= 2 && same.saturating_mul(4) >= places.len().saturating_mul(3)).then_some(())
    };
    let (mut from, mut to) = (0_isize, 2_isize);
    let length = |from: isize, to: isize| to.saturating_sub(from).unsigned_abs();
    while length(from, to) < SEPARATOR_BYTES_MAX && agree(to).is_some() {
        to = to.saturating_add(1);
    }
    while length(from, to) < SEPARATOR_BYTES_MAX && agree(from.saturating_sub(1)).is_some() {
        from = from.saturating_sub(1);
    }
    let separator = word.get(at.checked_add_signed(from)?..at.checked_add_signed(to)?)?;
    let times = memchr::memmem::find_iter(word, separator).count();
    let is_much = times.saturating_mul(separator.len()).saturating_mul(SHARE) >= word.len();
    let least = if separator.len() > 2 { 2 } else { COLUMNS_MIN };
    (is_much && times >= least).then_some(separator)
}

/// Bytes of one message's values that are looked through.
pub(super) const BYTES_MAX: usize = limits::WOVEN_BYTES_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "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";

    fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(b"ghp_")
    }

    /// A token with something behind each so many letters of it.
    fn woven(every: usize, separators: &[&str]) -> String {
        let pieces = TOKEN.as_bytes().chunks(every);
        let pieces = pieces.map(|piece| std::str::from_utf8(piece).unwrap());
        let mut made = String::new();
        for (number, piece) in pieces.enumerate() {
            if number > 0 {
                made.push_str(separators[(number - 1) % separators.len()]);
            }
            made.push_str(piece);
        }
        made
    }

    fn is_told(value: &str) -> bool {
        let forms = forms(value.as_bytes(), &begins);
        let mut joined = forms.iter().map(|(_, parts)| parts.concat());
        joined.any(|joined| joined == TOKEN.as_bytes())
    }

    #[test]
    fn what_is_woven_into_a_value_is_taken_out() {
        for separators in [
            &["."][..],
            &["!"],
            &["*"],
            &["^"],
            &["\u{20ac}"],
            &["\u{1f642}"],
            &["\u{2028}"],
            &["\u{3000}"],
            &[".", "!"],
            &["#", "\u{b7}", "?"],
            &["XY"],
            &["and"],
            &["--xx--"],
            &["QQQQ"],
        ] {
            for every in [1, 2, 3, 5, 8, 10] {
                let value = woven(every, separators);
                assert!(is_told(&value), "{value}");
            }
        }
        for every in 1..6 {
            assert!(is_told(&woven(every, &["x"])), "{every}");
        }
    }

    #[test]
    fn what_stands_at_the_border_of_lines_and_words_is_taken_out() {
        for separator in [
            "\n+",
            "\n-",
            "\n> ",
            "+\n",
            " \\\n  ",
            "\n# ",
            "\n// ",
            "\" +\n    \"",
            "\r\n ",
            "/* hey */",
            " <br> ",
            "<br/>",
        ] {
            for every in [6, 8, 10, 12, 16] {
                let value = format!("my key is {} please check it", woven(every, &[separator]));
                let forms = forms(value.as_bytes(), &begins);
                let mut joined = forms.iter().map(|(_, parts)| parts.concat());
                let is_told =
                    joined.any(|joined| memchr::memmem::find(&joined, TOKEN.as_bytes()).is_some());
                assert!(is_told, "{value:?}");
            }
        }
    }

    #[test]
    fn ordinary_values_are_left_as_they_are() {
        for value in [
            "The function parse_header in src/lib.rs fails on empty input, and so on.",
            "k3Jd8sQpL0vXz7Rt2BnYw5HgMc9FaE0yoVNxT6qUbIi1ZlPe4WmDuKjSrOfGhCAa",
            "applicationconfigurationvalues",
            "0123456789abcdef0123456789abcdef",
        ] {
            let sure = forms(value.as_bytes(), &begins).into_iter();
            let sure = sure.filter(|(seam, _)| *seam == Seam::Sure);
            assert_eq!(sure.count(), 0, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_made_that_was_not_there(value in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            for (_, parts) in forms(&value, &begins) {
                let mut rest = value.as_slice();
                for part in parts {
                    let at = memchr::memmem::find(rest, part).expect("a part");
                    rest = &rest[at + part.len()..];
                }
            }
        }
    }
}
