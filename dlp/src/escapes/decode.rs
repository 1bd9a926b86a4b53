//! Bytes with escapes to bytes without, piece by piece. An escape that is not
//! one stays as it is.

use super::EscapeKind;
use super::fold;
use super::lines::Joiner;
use super::references;
use crate::span;

/// Longest escape, in bytes: what is longer is none.
const ESCAPE_BYTES_MAX: usize = 24;

/// Begins a control sequence of a terminal.
pub(crate) const ESCAPE: u8 = 0x1b;

/// Decodes one kind of escape.
pub(crate) struct EscapeDecoder {
    kind: EscapeKind,
    /// The beginning of an escape whose end has not come.
    waiting: Vec<u8>,
    /// Of a form: whether the name of a value is being read.
    in_name: bool,
    /// Of lines.
    joiner: Joiner,
    /// Of wide characters: what two zeros are.
    zeros: Zeros,
}

/// What two zeros among wide characters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zeros {
    /// A character that is zero.
    Character,
    /// Nothing.
    Nothing,
}

/// What stands at a place.
#[derive(Clone, Copy)]
pub(crate) enum EscapeToken {
    /// So many bytes stand for this character.
    Character(usize, u32),
    /// So many bytes stand for this byte.
    Byte(usize, u8),
    /// So many bytes stand for nothing.
    Nothing(usize),
    /// No escape.
    Plain,
    /// It cannot be said yet.
    More,
}

impl EscapeDecoder {
    /// A decoder at the start.
    pub(crate) fn new(kind: EscapeKind) -> Self {
        let waiting = Vec::new();
        Self {
            kind,
            waiting,
            in_name: true,
            joiner: Joiner::default(),
            zeros: Zeros::Character,
        }
    }

    /// The same, but of wide characters no zero is left.
    pub(crate) fn without_zeros(self) -> Self {
        Self {
            zeros: Zeros::Nothing,
            ..self
        }
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.in_name = true;
        self.joiner = Joiner::default();
    }

    /// Whether an escape has begun.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many bytes wait for the end of an escape.
    pub(crate) fn waiting(&self) -> u64 {
        crate::budget::wide(self.waiting.len())
    }

    /// Decodes the next bytes, and says where in what it made an escape stood.
    pub(crate) fn push(&mut self, input: &[u8], made: &mut Vec<u8>, places: &mut Vec<usize>) {
        if self.kind == EscapeKind::Form {
            self.values(input, made, places);
        } else if self.kind == EscapeKind::Lines {
            for byte in input {
                self.joiner.push(*byte, &mut self.waiting, made, places);
            }
        } else if self.waiting.is_empty() {
            self.run(input, made, places);
        } else {
            let mut joined = std::mem::take(&mut self.waiting);
            joined.extend_from_slice(input);
            self.run(&joined, made, places);
        }
    }

    /// The end: what waits was no escape, or the half of the last character.
    pub(crate) fn finish(&mut self, made: &mut Vec<u8>) {
        if self.kind == EscapeKind::Wide {
            self.waiting.clear();
        }
        made.append(&mut self.waiting);
    }

    fn run(&mut self, input: &[u8], made: &mut Vec<u8>, places: &mut Vec<usize>) {
        let mut rest = input;
        while let Some(place) = self.next(rest) {
            let (plain, escape) = rest.split_at_checked(place).unwrap_or((rest, &[]));
            made.extend_from_slice(plain);
            let here = made.len();
            let used = match self.token(escape) {
                EscapeToken::Byte(used, byte) => {
                    made.push(byte);
                    places.push(here);
                    used
                }
                EscapeToken::Character(used, value) => {
                    character(value, made);
                    // What folds to nothing else is not changed.
                    if self.kind != EscapeKind::Fold {
                        places.push(here);
                    }
                    used
                }
                EscapeToken::Nothing(used) => {
                    places.push(here);
                    used
                }
                EscapeToken::More if escape.len() < ESCAPE_BYTES_MAX => {
                    self.waiting.extend_from_slice(escape);
                    return;
                }
                EscapeToken::Plain | EscapeToken::More => {
                    made.extend(escape.first());
                    1
                }
            };
            rest = span::from(escape, used.max(1));
        }
        made.extend_from_slice(rest);
    }

    /// The values of a form (application/x-www-form-urlencoded).
    fn values(&mut self, mut input: &[u8], made: &mut Vec<u8>, places: &mut Vec<usize>) {
        while !input.is_empty() {
            let end = if self.in_name { b'=' } else { b'&' };
            let place = memchr::memchr(end, input);
            let (now, rest) = input
                .split_at_checked(place.unwrap_or(input.len()))
                .unwrap_or((input, &[]));
            if !self.in_name {
                made.extend_from_slice(now);
            }
            if place.is_some() {
                self.in_name = !self.in_name;
                places.push(made.len());
            }
            input = rest.get(1..).unwrap_or_default();
        }
    }

    /// Where the next escape may begin.
    fn next(&self, bytes: &[u8]) -> Option<usize> {
        match self.kind {
            EscapeKind::Percent => memchr::memchr(b'%', bytes),
            EscapeKind::Escape => memchr::memchr(b'\\', bytes),
            EscapeKind::Reference => memchr::memchr(b'&', bytes),
            EscapeKind::Quoted => memchr::memchr(b'=', bytes),
            EscapeKind::Terminal => memchr::memchr(ESCAPE, bytes),
            EscapeKind::Wide => memchr::memchr(0, bytes),
            EscapeKind::Latin => memchr::memchr2(0xc2, 0xc3, bytes),
            EscapeKind::Fold => fold::next(bytes),
            EscapeKind::Lines | EscapeKind::Form => None,
        }
    }

    fn token(&self, bytes: &[u8]) -> EscapeToken {
        match self.kind {
            EscapeKind::Percent => percent(bytes),
            EscapeKind::Escape => escape(bytes),
            EscapeKind::Reference => references::token(bytes),
            EscapeKind::Quoted => quoted(bytes),
            EscapeKind::Terminal => terminal(bytes),
            EscapeKind::Wide if self.zeros == Zeros::Nothing => EscapeToken::Nothing(1),
            EscapeKind::Wide => wide(bytes),
            EscapeKind::Latin => latin(bytes),
            EscapeKind::Fold => fold::token(bytes),
            EscapeKind::Lines | EscapeKind::Form => EscapeToken::Plain,
        }
    }
}

/// The value of a hexadecimal digit.
pub(crate) fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// The value of exactly `count` hexadecimal digits from `start` on.
fn digits(bytes: &[u8], start: usize, count: usize) -> Result<u32, EscapeToken> {
    let mut value = 0_u32;
    for place in start..start.saturating_add(count) {
        let byte = bytes.get(place).ok_or(EscapeToken::More)?;
        let digit = digit(*byte).ok_or(EscapeToken::Plain)?;
        value = value.wrapping_shl(4) | digit;
    }
    Ok(value)
}

fn low(value: u32) -> u8 {
    u8::try_from(value & 0xff).unwrap_or_default()
}

/// Appends a character as UTF-8.
fn character(value: u32, made: &mut Vec<u8>) {
    let letter = char::from_u32(value).unwrap_or('?');
    let mut space = [0; 4];
    made.extend_from_slice(letter.encode_utf8(&mut space).as_bytes());
}

pub(crate) fn percent(bytes: &[u8]) -> EscapeToken {
    if let Some(b'u' | b'U') = bytes.get(1) {
        return match digits(bytes, 2, 4) {
            Ok(value) => EscapeToken::Character(6, value),
            Err(other) => other,
        };
    }
    match digits(bytes, 1, 2) {
        Ok(value) => EscapeToken::Byte(3, low(value)),
        Err(other) => other,
    }
}

/// Zeros: one belongs to the character before it or behind it, two are a character that is
/// zero. Of characters four bytes wide those two bytes wide are left.
fn wide(bytes: &[u8]) -> EscapeToken {
    match bytes {
        [_] => EscapeToken::More,
        [_, 0, ..] => EscapeToken::Byte(2, 0),
        _ => EscapeToken::Nothing(1),
    }
}

/// A character of ISO 8859-1 above 127 in UTF-8: the byte with its number.
fn latin(bytes: &[u8]) -> EscapeToken {
    match bytes {
        [_] => EscapeToken::More,
        [lead, second @ 0x80..=0xbf, ..] => {
            EscapeToken::Byte(2, lead.wrapping_shl(6) | second & 0x3f)
        }
        _ => EscapeToken::Plain,
    }
}

/// A control sequence: `ESC [`, parameters, and a letter; or a character set that is chosen.
pub(crate) fn terminal(bytes: &[u8]) -> EscapeToken {
    let behind = bytes.get(2..).unwrap_or_default();
    match bytes.get(1) {
        None => EscapeToken::More,
        Some(b'[') => {
            let is_within = |byte: &&u8| (b' '..=b'?').contains(*byte);
            let within = behind.iter().take_while(is_within).count();
            match behind.get(within) {
                None => EscapeToken::More,
                Some(b'@'..=b'~') => EscapeToken::Nothing(within.saturating_add(3)),
                Some(_) => EscapeToken::Plain,
            }
        }
        Some(b'(' | b')') if behind.is_empty() => EscapeToken::More,
        Some(b'(' | b')') => EscapeToken::Nothing(3),
        Some(_) => EscapeToken::Plain,
    }
}

fn quoted(bytes: &[u8]) -> EscapeToken {
    match (bytes.get(1), bytes.get(2)) {
        (Some(b'\n'), _) => EscapeToken::Nothing(2),
        (Some(b'\r'), Some(b'\n')) => EscapeToken::Nothing(3),
        (Some(b'\r') | None, None) => EscapeToken::More,
        _ => match digits(bytes, 1, 2) {
            Ok(value) => EscapeToken::Byte(3, low(value)),
            Err(other) => other,
        },
    }
}

pub(crate) fn escape(bytes: &[u8]) -> EscapeToken {
    let coded = |used: usize, start: usize, count: usize| match digits(bytes, start, count) {
        Ok(value) => EscapeToken::Character(used, value),
        Err(other) => other,
    };
    let Some(letter) = bytes.get(1) else {
        return EscapeToken::More;
    };
    match letter {
        b'u' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'u' => utf16(bytes),
        b'U' => coded(10, 2, 8),
        b'x' => match digits(bytes, 2, 2) {
            Ok(value) => EscapeToken::Byte(4, low(value)),
            Err(other) => other,
        },
        b'0'..=b'7' => octal(bytes),
        b'n' => EscapeToken::Byte(2, b'\n'),
        b'r' => EscapeToken::Byte(2, b'\r'),
        b't' => EscapeToken::Byte(2, b'\t'),
        // Every gzip has one of these in its mark, and JSON writes it so (RFC 8259 7).
        b'b' => EscapeToken::Byte(2, 0x08),
        b'f' => EscapeToken::Byte(2, 0x0c),
        // And these as C and shells have them.
        b'a' => EscapeToken::Byte(2, 0x07),
        b'v' => EscapeToken::Byte(2, 0x0b),
        b'e' | b'E' => EscapeToken::Byte(2, 0x1b),
        b'\\' | b'/' | b'"' | b'\'' => EscapeToken::Byte(2, *letter),
        // A line that goes on.
        b'\n' => EscapeToken::Nothing(2),
        _ => EscapeToken::Plain,
    }
}

/// `\u0041`, and `\ud835\udc54`: two halves that are one character (RFC 8259 7).
fn utf16(bytes: &[u8]) -> EscapeToken {
    let first = match digits(bytes, 2, 4) {
        Ok(value) => value,
        Err(other) => return other,
    };
    let alone = EscapeToken::Character(6, first);
    if !(0xd800..0xdc00).contains(&first) {
        return alone;
    }
    match bytes.get(6..).unwrap_or_default() {
        [] | [b'\\'] => EscapeToken::More,
        [b'\\', b'u', ..] => match digits(bytes, 8, 4) {
            Ok(second @ 0xdc00..=0xdfff) => {
                let high = first.wrapping_sub(0xd800) << 10;
                let both = high | second.wrapping_sub(0xdc00);
                EscapeToken::Character(12, both.wrapping_add(0x1_0000))
            }
            Err(EscapeToken::More) => EscapeToken::More,
            _ => alone,
        },
        _ => alone,
    }
}

/// `\u{41}`.
fn braced(bytes: &[u8]) -> EscapeToken {
    let mut value = 0_u32;
    for place in 3..11 {
        match bytes.get(place) {
            None => return EscapeToken::More,
            Some(b'}') if place > 3 => {
                return EscapeToken::Character(place.saturating_add(1), value);
            }
            Some(byte) => match digit(*byte) {
                Some(digit) => value = value.wrapping_shl(4) | digit,
                None => return EscapeToken::Plain,
            },
        }
    }
    EscapeToken::Plain
}

/// One to three octal digits.
fn octal(bytes: &[u8]) -> EscapeToken {
    let mut value = 0_u32;
    for place in 1..4 {
        match bytes.get(place) {
            None => return EscapeToken::More,
            Some(byte @ b'0'..=b'7') => value = value.wrapping_shl(3) | u32::from(byte & 7),
            Some(_) => return EscapeToken::Byte(place, low(value)),
        }
    }
    EscapeToken::Byte(4, low(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(kind: EscapeKind, input: &[u8], split: usize) -> Vec<u8> {
        let mut decoder = EscapeDecoder::new(kind);
        let mut made = Vec::new();
        for piece in input.chunks(split) {
            decoder.push(piece, &mut made, &mut Vec::new());
        }
        decoder.finish(&mut made);
        made
    }

    #[test]
    fn escapes_are_decoded_however_they_are_cut() {
        for (kind, input, expected) in [
            (
                EscapeKind::Percent,
                &b"a%67hp%5f%zz%"[..],
                &b"aghp_%zz%"[..],
            ),
            (EscapeKind::Percent, b"%2567", b"%67"),
            (EscapeKind::Percent, b"%u0067hp%U005F%u00", b"ghp_%u00"),
            (
                EscapeKind::Terminal,
                b"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[Kx\x1b(B\x1b[?25hy\x1bz\x1b[1",
                b"ghp_xy\x1bz\x1b[1",
            ),
            (
                EscapeKind::Escape,
                br"\u0067hp\x5f\/\147\u{67}\q\",
                br"ghp_/gg\q\",
            ),
            (EscapeKind::Escape, br"\U00000067\n\\", b"g\n\\"),
            (
                EscapeKind::Escape,
                br"\ud835\udc54x\ud835\u0041\udc54\ud835x",
                "\u{1d454}x?A??x".as_bytes(),
            ),
            (
                EscapeKind::Reference,
                b"&#103;hp&lowbar;&#x67;&amp;&nix;&",
                b"ghp_g&&nix;&",
            ),
            (EscapeKind::Quoted, b"gh=70=5Fa=\r\nb=\nc=3D=", b"ghp_abc=="),
            (EscapeKind::Wide, b"g\0h\0p\0_\0", b"ghp_"),
            (
                EscapeKind::Wide,
                b"\x1f\0\x8b\0\x08\0\0\0\0\0\xff\0",
                b"\x1f\x8b\x08\0\0\xff",
            ),
            (
                EscapeKind::Wide,
                b"\0\x1f\0\x8b\0\x08\0\0\0\0\0\xff",
                b"\x1f\x8b\x08\0\0\xff",
            ),
            (EscapeKind::Wide, b"g\0\0\0h\0\0\0p\0\0\0", b"g\0h\0p\0"),
            (
                EscapeKind::Latin,
                "\u{1f}\u{8b}\u{8}\u{ff}\u{c0}\u{bf}\u{100}a".as_bytes(),
                b"\x1f\x8b\x08\xff\xc0\xbf\xc4\x80a",
            ),
            (
                EscapeKind::Fold,
                "g\u{200b}h\u{0440}\u{ff3f}é".as_bytes(),
                "ghp_é".as_bytes(),
            ),
        ] {
            for split in 1..=input.len() {
                let made = decoded(kind, input, split);
                assert_eq!(made, expected, "{kind:?} by {split}");
            }
        }
    }
}
