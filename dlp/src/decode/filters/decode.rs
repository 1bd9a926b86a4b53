//! Bytes with escapes to bytes without, piece by piece. An escape that is not
//! one stays as it is.

use super::Kind;
use super::fold;
use super::lines::Joiner;
use super::references;

/// Longest escape, in bytes: what is longer is none.
const ESCAPE_BYTES_MAX: usize = 24;

/// Decodes one kind of escape.
pub(crate) struct Decoder {
    kind: Kind,
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
pub(super) enum Token {
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

impl Decoder {
    /// A decoder at the start.
    pub(crate) fn new(kind: Kind) -> Self {
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
        if self.kind == Kind::Form {
            self.values(input, made, places);
        } else if self.kind == Kind::Lines {
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
        if self.kind == Kind::Wide {
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
                Token::Byte(used, byte) => {
                    made.push(byte);
                    places.push(here);
                    used
                }
                Token::Character(used, value) => {
                    character(value, made);
                    // What folds to nothing else is not changed.
                    if self.kind != Kind::Fold {
                        places.push(here);
                    }
                    used
                }
                Token::Nothing(used) => {
                    places.push(here);
                    used
                }
                Token::More if escape.len() < ESCAPE_BYTES_MAX => {
                    self.waiting.extend_from_slice(escape);
                    return;
                }
                Token::Plain | Token::More => {
                    made.extend(escape.first());
                    1
                }
            };
            rest = escape.get(used.max(1)..).unwrap_or_default();
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
            Kind::Percent => memchr::memchr(b'%', bytes),
            Kind::Escape => memchr::memchr(b'\\', bytes),
            Kind::Reference => memchr::memchr(b'&', bytes),
            Kind::Quoted => memchr::memchr(b'=', bytes),
            Kind::Wide => memchr::memchr(0, bytes),
            Kind::Latin => memchr::memchr2(0xc2, 0xc3, bytes),
            Kind::Fold => fold::next(bytes),
            Kind::Lines | Kind::Form => None,
        }
    }

    fn token(&self, bytes: &[u8]) -> Token {
        match self.kind {
            Kind::Percent => percent(bytes),
            Kind::Escape => escape(bytes),
            Kind::Reference => references::token(bytes),
            Kind::Quoted => quoted(bytes),
            Kind::Wide if self.zeros == Zeros::Nothing => Token::Nothing(1),
            Kind::Wide => wide(bytes),
            Kind::Latin => latin(bytes),
            Kind::Fold => fold::token(bytes),
            Kind::Lines | Kind::Form => Token::Plain,
        }
    }
}

/// The value of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// The value of exactly `count` hexadecimal digits from `start` on.
fn digits(bytes: &[u8], start: usize, count: usize) -> Result<u32, Token> {
    let mut value = 0_u32;
    for place in start..start.saturating_add(count) {
        let byte = bytes.get(place).ok_or(Token::More)?;
        let digit = digit(*byte).ok_or(Token::Plain)?;
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

fn percent(bytes: &[u8]) -> Token {
    match digits(bytes, 1, 2) {
        Ok(value) => Token::Byte(3, low(value)),
        Err(other) => other,
    }
}

/// Zeros: one belongs to the character before it or behind it, two are a character that is
/// zero. Of characters four bytes wide those two bytes wide are left.
fn wide(bytes: &[u8]) -> Token {
    match bytes {
        [_] => Token::More,
        [_, 0, ..] => Token::Byte(2, 0),
        _ => Token::Nothing(1),
    }
}

/// A character of ISO 8859-1 above 127 in UTF-8: the byte with its number.
fn latin(bytes: &[u8]) -> Token {
    match bytes {
        [_] => Token::More,
        [lead, second @ 0x80..=0xbf, ..] => Token::Byte(2, lead.wrapping_shl(6) | second & 0x3f),
        _ => Token::Plain,
    }
}

fn quoted(bytes: &[u8]) -> Token {
    match (bytes.get(1), bytes.get(2)) {
        (Some(b'\n'), _) => Token::Nothing(2),
        (Some(b'\r'), Some(b'\n')) => Token::Nothing(3),
        (Some(b'\r') | None, None) => Token::More,
        _ => match digits(bytes, 1, 2) {
            Ok(value) => Token::Byte(3, low(value)),
            Err(other) => other,
        },
    }
}

pub(super) fn escape(bytes: &[u8]) -> Token {
    let coded = |used: usize, start: usize, count: usize| match digits(bytes, start, count) {
        Ok(value) => Token::Character(used, value),
        Err(other) => other,
    };
    let Some(letter) = bytes.get(1) else {
        return Token::More;
    };
    match letter {
        b'u' if bytes.get(2) == Some(&b'{') => braced(bytes),
        b'u' => coded(6, 2, 4),
        b'U' => coded(10, 2, 8),
        b'x' => match digits(bytes, 2, 2) {
            Ok(value) => Token::Byte(4, low(value)),
            Err(other) => other,
        },
        b'0'..=b'7' => octal(bytes),
        b'n' => Token::Byte(2, b'\n'),
        b'r' => Token::Byte(2, b'\r'),
        b't' => Token::Byte(2, b'\t'),
        b'\\' | b'/' | b'"' | b'\'' => Token::Byte(2, *letter),
        // A line that goes on.
        b'\n' => Token::Nothing(2),
        _ => Token::Plain,
    }
}

/// `\u{41}`.
fn braced(bytes: &[u8]) -> Token {
    let mut value = 0_u32;
    for place in 3..11 {
        match bytes.get(place) {
            None => return Token::More,
            Some(b'}') if place > 3 => return Token::Character(place.saturating_add(1), value),
            Some(byte) => match digit(*byte) {
                Some(digit) => value = value.wrapping_shl(4) | digit,
                None => return Token::Plain,
            },
        }
    }
    Token::Plain
}

/// One to three octal digits.
fn octal(bytes: &[u8]) -> Token {
    let mut value = 0_u32;
    for place in 1..4 {
        match bytes.get(place) {
            None => return Token::More,
            Some(byte @ b'0'..=b'7') => value = value.wrapping_shl(3) | u32::from(byte & 7),
            Some(_) => return Token::Byte(place, low(value)),
        }
    }
    Token::Byte(4, low(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(kind: Kind, input: &[u8], split: usize) -> Vec<u8> {
        let mut decoder = Decoder::new(kind);
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
            (Kind::Percent, &b"a%67hp%5f%zz%"[..], &b"aghp_%zz%"[..]),
            (Kind::Percent, b"%2567", b"%67"),
            (
                Kind::Escape,
                br"\u0067hp\x5f\/\147\u{67}\q\",
                br"ghp_/gg\q\",
            ),
            (Kind::Escape, br"\U00000067\n\\", b"g\n\\"),
            (
                Kind::Reference,
                b"&#103;hp&lowbar;&#x67;&amp;&nix;&",
                b"ghp_g&&nix;&",
            ),
            (Kind::Quoted, b"gh=70=5Fa=\r\nb=\nc=3D=", b"ghp_abc=="),
            (Kind::Wide, b"g\0h\0p\0_\0", b"ghp_"),
            (
                Kind::Wide,
                b"\x1f\0\x8b\0\x08\0\0\0\0\0\xff\0",
                b"\x1f\x8b\x08\0\0\xff",
            ),
            (
                Kind::Wide,
                b"\0\x1f\0\x8b\0\x08\0\0\0\0\0\xff",
                b"\x1f\x8b\x08\0\0\xff",
            ),
            (Kind::Wide, b"g\0\0\0h\0\0\0p\0\0\0", b"g\0h\0p\0"),
            (
                Kind::Latin,
                "\u{1f}\u{8b}\u{8}\u{ff}\u{c0}\u{bf}\u{100}a".as_bytes(),
                b"\x1f\x8b\x08\xff\xc0\xbf\xc4\x80a",
            ),
            (
                Kind::Fold,
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
