//! Bytes of forms: where pairs begin and end, and whether they may spell a key for a
//! method. Text only.

/// A pair without the blanks and zeros that it begins with.
pub(super) fn without_blanks(pair: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| *byte <= b' ' || *byte == b'+';
    let begin = pair.iter().position(|byte| !is_blank(byte));
    pair.get(begin.unwrap_or(pair.len())..).unwrap_or_default()
}

/// Whether a pair of a form is over with this byte, for some reader.
pub(super) fn ends_pair(byte: u8) -> bool {
    matches!(byte, b'&' | b';' | b'?' | b'\r' | b'\n')
}

/// Where the next pair begins that may be about a method, or the one that is not over. A key
/// without a value asks for nothing, so what is looked at is what stands before each sign
/// of equality, back to the beginning of its pair or to the sign before.
pub(super) fn from_next_key(bytes: &[u8]) -> &[u8] {
    let begin_of = |before: &[u8]| {
        let end = before.iter().rposition(|byte| ends_pair(*byte));
        end.map_or(0, |end| end.saturating_add(1))
    };
    for value in memchr::memchr_iter(b'=', bytes) {
        let before = bytes.get(..value).unwrap_or_default();
        let border = |byte: &u8| ends_pair(*byte) || *byte == b'=';
        let begin = before.iter().rposition(border);
        let key = before.get(begin.map_or(0, |begin| begin.saturating_add(1))..);
        if key.is_some_and(may_hold_key) {
            return bytes.get(begin_of(before)..).unwrap_or_default();
        }
    }
    bytes.get(begin_of(bytes)..).unwrap_or_default()
}

/// The key and the value of a pair that has one. Some leave signs of equality before it
/// away.
pub(super) fn pair_of(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = pair.iter().position(|byte| *byte != b'=')?;
    let pair = pair.get(begin..)?;
    pair.split_at_checked(memchr::memchr(b'=', pair)?)
}

/// Whether a value, with the sign of equality before it, may be no more than a word once
/// it is decoded.
pub(super) fn may_be_method(value: &[u8]) -> bool {
    let mut rest = value.iter().skip(1);
    rest.all(|byte| {
        byte.is_ascii_alphanumeric()
            || !byte.is_ascii_graphic()
            || matches!(byte, b'%' | b'#' | b'&' | b';' | b'+' | b'\\' | b'-')
    })
}

/// Whether bytes may hold one of the keys.
pub(super) fn may_hold_key(bytes: &[u8]) -> bool {
    spells(bytes, b"method") || spells(bytes, b"verb")
}

/// Whether bytes may spell a key with this word in it: in all spellings its letters stand
/// in their order, each as it is or behind a sign that it is coded with, whatever readers
/// leave out between them.
pub(super) fn spells(bytes: &[u8], word: &[u8]) -> bool {
    let mut left = word;
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let next = after.first().copied().unwrap_or_default();
        let is_sign = match byte {
            b'%' => !next.is_ascii() || next.is_ascii_hexdigit() || b"%uU".contains(&next),
            b'#' | b'\\' => true,
            // They begin overlong sequences (RFC 3629 3).
            0xc0 | 0xc1 | 0xe0 | 0xf0 => next == b'%' || !next.is_ascii(),
            _ => false,
        };
        match left {
            [] => return true,
            [letter, more @ ..] if is_sign || byte.eq_ignore_ascii_case(letter) => left = more,
            _ => {}
        }
        rest = after;
    }
    left.is_empty()
}

/// Bytes as a reader of keys takes them: what is not ASCII is written as forms do.
pub(super) fn text(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii() {
            text.push(char::from(*byte));
        } else {
            write!(text, "%{byte:02X}").ok();
        }
    }
    text
}
