//! One number as programs print it: its digits, what they may be digits of, and the bytes
//! that it stands for in each of the readings.

use crate::span;
/// Longest number, in characters with its prefix: sixteen bytes in hexadecimal.
pub(super) const CHARACTERS_MAX: usize = 40;

/// Longest number of bytes that one stands for.
const BYTES_MAX: usize = 16;

/// Which digits stand in a number: a bit for each kind.
mod kind {
    pub(super) const BINARY: u8 = 1;
    pub(super) const OCTAL: u8 = 2;
    pub(super) const DECIMAL: u8 = 4;
    pub(super) const HEX: u8 = 8;
    /// Letters that are no digits.
    pub(super) const OTHER: u8 = 16;
}

/// The sign before a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    None,
    Minus,
}

/// Characters that stand together, letters and digits.
#[derive(Clone, Copy)]
pub(super) struct NumberWord {
    text: [u8; CHARACTERS_MAX],
    length: usize,
    kinds: u8,
    is_negative: bool,
    /// Where it begins in the outermost stream.
    outer: u64,
}

impl NumberWord {
    /// No character yet.
    pub(super) const NONE: Self = Self {
        text: [0; CHARACTERS_MAX],
        length: 0,
        kinds: 0,
        is_negative: false,
        outer: 0,
    };

    /// The first character is to come, which stands there.
    pub(super) fn begin(&mut self, outer: u64, sign: Sign) {
        self.length = 0;
        self.kinds = 0;
        self.is_negative = sign == Sign::Minus;
        self.outer = outer;
    }

    /// One more character.
    pub(super) fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
        }
        self.length = self.length.saturating_add(1);
        self.kinds |= match byte {
            b'0' | b'1' => kind::BINARY,
            b'2'..=b'7' => kind::OCTAL,
            b'8' | b'9' => kind::DECIMAL,
            b'a'..=b'f' | b'A'..=b'F' => kind::HEX,
            _ => kind::OTHER,
        };
    }

    /// Whether there is no character.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where it begins in the outermost stream.
    pub(super) fn outer(&self) -> u64 {
        self.outer
    }

    /// Forgets all characters.
    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or(&self.text)
    }

    /// A number that stands for the word where others are compared with it.
    pub(super) fn mixed(&self) -> u32 {
        self.text().iter().fold(1, |mixed: u32, byte| {
            (mixed.rotate_left(5) ^ u32::from(*byte)).wrapping_mul(0x9e37_79b1)
        })
    }

    /// The number that it is, if it is one: with a prefix that tells its radix, or a suffix
    /// that tells its type, or neither.
    pub(super) fn number(&self) -> Option<Number> {
        if self.length > CHARACTERS_MAX {
            return None;
        }
        let text = self.text();
        let (radix, digits) = match text {
            [b'0', b'x' | b'X', rest @ ..] => (Some(Radix::Hex), rest),
            [b'0', b'o' | b'O', rest @ ..] => (Some(Radix::Octal), rest),
            [b'0', b'b' | b'B', rest @ ..] if is_binary(rest) => (Some(Radix::Binary), rest),
            all => (None, all),
        };
        let is_suffix = |byte: &u8| b"uUlLnhH".contains(byte);
        let digits = if radix.is_some() || self.kinds & kind::OTHER != 0 {
            let end = digits.iter().rposition(|byte| !is_suffix(byte))?;
            digits.get(..=end)?
        } else {
            digits
        };
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let has_digit = digits.iter().any(u8::is_ascii_digit);
        if !has_digit && radix.is_none() && !digits.len().is_multiple_of(2) {
            return None;
        }
        let mut number = Number {
            digits: Self::NONE.text,
            length: digits.len(),
            kinds: 0,
            radix,
            is_negative: self.is_negative,
            outer: self.outer,
        };
        for (place, byte) in number.digits.iter_mut().zip(digits) {
            *place = *byte;
            number.kinds |= match byte {
                b'0' | b'1' => kind::BINARY,
                b'2'..=b'7' => kind::OCTAL,
                b'8' | b'9' => kind::DECIMAL,
                _ => kind::HEX,
            };
        }
        Some(number)
    }
}

/// Whether so many digits as stand for text in binary are all there is.
fn is_binary(digits: &[u8]) -> bool {
    digits.len() >= 6 && digits.iter().all(|byte| matches!(byte, b'0' | b'1'))
}

/// The digits of a number.
#[derive(Clone, Copy)]
pub(super) struct Number {
    digits: [u8; CHARACTERS_MAX],
    length: usize,
    kinds: u8,
    radix: Option<Radix>,
    is_negative: bool,
    outer: u64,
}

impl Number {
    /// How many digits it has.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Its digits.
    pub(super) fn digits(&self) -> &[u8] {
        span::upto(&self.digits, self.length)
    }

    /// Where it begins in the outermost stream.
    pub(super) fn outer(&self) -> u64 {
        self.outer
    }

    /// Whether it may say where in a file its line begins.
    pub(super) fn may_be_offset(&self) -> bool {
        let is_of_hex = matches!(self.radix, None | Some(Radix::Hex));
        (4..=16).contains(&self.length) && is_of_hex && !self.is_negative
    }

    /// How many bytes numbers of so many digits stand for, in whatever radix.
    pub(super) fn width(&self) -> u64 {
        match self.length {
            0 | 7 => 0,
            1..=3 => 1,
            4..=6 => 2,
            8..=11 => 4,
            12..=22 => 8,
            _ => 16,
        }
    }

    /// The ways to read it that may fit where nothing was read before, a bit for each place
    /// in [`READINGS`].
    pub(super) fn ways(&self) -> u32 {
        let is_of = |radix: Radix| self.kinds & radix.others() == 0;
        let mut ways = HEX_WAYS;
        if is_of(Radix::Decimal) {
            ways |= match self.length {
                1..=3 => 1 << 2,
                4 | 5 => 0b11 << 3,
                9 | 10 => 0b11 << 5,
                17..=20 => 0b11 << 7,
                _ => 0,
            };
        }
        if is_of(Radix::Octal) {
            ways |= match self.length {
                1..=4 => 1 << 9,
                6 => 0b11 << 10,
                11 => 0b11 << 12,
                22 => 0b11 << 14,
                _ => 0,
            };
        }
        if is_of(Radix::Binary) && self.length <= 8 {
            ways |= 1 << 16;
        }
        ways
    }

    /// What it is worth.
    pub(super) fn value(&self, radix: Radix) -> Option<u64> {
        let text = std::str::from_utf8(self.digits()).ok()?;
        u64::from_str_radix(text, radix.base()).ok()
    }
}

/// What digits are digits of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Radix {
    Binary,
    Octal,
    Decimal,
    Hex,
}

impl Radix {
    fn base(self) -> u32 {
        match self {
            Self::Binary => 2,
            Self::Octal => 8,
            Self::Decimal => 10,
            Self::Hex => 16,
        }
    }

    fn others(self) -> u8 {
        match self {
            Self::Binary => !kind::BINARY,
            Self::Octal => !(kind::BINARY | kind::OCTAL),
            Self::Decimal => !(kind::BINARY | kind::OCTAL | kind::DECIMAL),
            Self::Hex => kind::OTHER,
        }
    }
}

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The lowest.
    Little,
    /// The highest.
    Big,
}

/// Whether a reading has read numbers before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Here,
    Before,
}

/// One way to read numbers as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberFormat {
    pub(super) radix: Radix,
    /// How many bytes a number stands for; none where its digits tell.
    width: Option<usize>,
    order: ByteOrder,
}

const fn one(radix: Radix, width: Option<usize>, order: ByteOrder) -> NumberFormat {
    NumberFormat {
        radix,
        width,
        order,
    }
}

/// All of them: bytes, and words of two, four and eight.
pub(super) const READINGS: [NumberFormat; 17] = [
    one(Radix::Hex, None, ByteOrder::Big),
    one(Radix::Hex, None, ByteOrder::Little),
    one(Radix::Decimal, Some(1), ByteOrder::Little),
    one(Radix::Decimal, Some(2), ByteOrder::Little),
    one(Radix::Decimal, Some(2), ByteOrder::Big),
    one(Radix::Decimal, Some(4), ByteOrder::Little),
    one(Radix::Decimal, Some(4), ByteOrder::Big),
    one(Radix::Decimal, Some(8), ByteOrder::Little),
    one(Radix::Decimal, Some(8), ByteOrder::Big),
    one(Radix::Octal, Some(1), ByteOrder::Little),
    one(Radix::Octal, Some(2), ByteOrder::Little),
    one(Radix::Octal, Some(2), ByteOrder::Big),
    one(Radix::Octal, Some(4), ByteOrder::Little),
    one(Radix::Octal, Some(4), ByteOrder::Big),
    one(Radix::Octal, Some(8), ByteOrder::Little),
    one(Radix::Octal, Some(8), ByteOrder::Big),
    one(Radix::Binary, Some(1), ByteOrder::Little),
];

/// The places of those that read hexadecimal digits.
const HEX_WAYS: u32 = 0b11;

impl NumberFormat {
    /// Appends the bytes that a number stands for, if this is a way to read it.
    pub(super) fn read(self, number: &Number, since: Since, made: &mut Vec<u8>) -> bool {
        if number.kinds & self.radix.others() != 0 || number.length == 0 {
            return false;
        }
        match self.width {
            None => self.read_digits(number, made),
            Some(width) => {
                let may_be = match self.radix {
                    Radix::Decimal => is_decimal(number, width, since),
                    Radix::Octal => is_octal(number, width, since),
                    Radix::Binary => is_bits(number),
                    Radix::Hex => false,
                };
                may_be && self.read_value(number, width, made)
            }
        }
    }

    /// Pairs of hexadecimal digits.
    fn read_digits(self, number: &Number, made: &mut Vec<u8>) -> bool {
        let is_plain = matches!(number.radix, None | Some(Radix::Hex)) && !number.is_negative;
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
        let start = made.len();
        match number.digits() {
            [only] if self.order == ByteOrder::Big && number.radix.is_some() => {
                made.extend(digit(only).to_le_bytes().first());
            }
            digits if is_plain && digits.len().is_multiple_of(2) => {
                let is_word = matches!(digits.len(), 4 | 8 | 16);
                if digits.len() > 2 * BYTES_MAX || self.order == ByteOrder::Little && !is_word {
                    return false;
                }
                let (pairs, _) = digits.as_chunks();
                for [high, low] in pairs {
                    let value = digit(high) << 4 | digit(low);
                    made.extend(value.to_le_bytes().first());
                }
                if self.order == ByteOrder::Little {
                    made.get_mut(start..).unwrap_or_default().reverse();
                }
            }
            _ => {}
        }
        made.len() > start
    }

    fn read_value(self, number: &Number, width: usize, made: &mut Vec<u8>) -> bool {
        let Some(value) = number.value(self.radix) else {
            return false;
        };
        let bits = u32::try_from(width.saturating_mul(8)).unwrap_or(u64::BITS);
        let most = u64::MAX >> u64::BITS.saturating_sub(bits);
        // Of what is negative the lowest bytes are those of two's complement.
        if value > most || number.is_negative && value > (most >> 1).saturating_add(1) {
            return false;
        }
        let value = if number.is_negative {
            value.wrapping_neg()
        } else {
            value
        };
        let bytes = value.to_le_bytes();
        let bytes = bytes.get(..width).unwrap_or_default();
        match self.order {
            ByteOrder::Little => made.extend_from_slice(bytes),
            ByteOrder::Big => made.extend(bytes.iter().rev()),
        }
        true
    }
}

/// Whether a number may be one of a list of bytes or words in decimal: those of text have
/// so many digits.
fn is_decimal(number: &Number, width: usize, since: Since) -> bool {
    let fits = match width {
        1 => 1..=3,
        2 => 4..=5,
        4 => 9..=10,
        _ => 17..=20,
    };
    let is_one = match since {
        Since::Here => fits.contains(&number.length),
        Since::Before => number.length <= *fits.end(),
    };
    number.radix.is_none() && is_one
}

/// The same in octal, in which they have as many digits as there may be, or a prefix.
fn is_octal(number: &Number, width: usize, since: Since) -> bool {
    let is_marked = number.radix == Some(Radix::Octal);
    let is_one = match width {
        1 => number.length == 3 || number.length == 4 && number.digits().starts_with(b"0"),
        2 => number.length == 6,
        4 => number.length == 11,
        _ => number.length == 22,
    };
    let is_short = width == 1 && number.length < 3;
    let is_one = is_one || is_short && (is_marked || since == Since::Before);
    is_one && matches!(number.radix, None | Some(Radix::Octal)) && !number.is_negative
}

/// Whether a number may be a byte in binary.
fn is_bits(number: &Number) -> bool {
    match number.radix {
        Some(Radix::Binary) => number.length <= 8,
        None => number.length == 8,
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str, radix: Radix, width: Option<usize>, order: ByteOrder) -> Option<Vec<u8>> {
        let mut own = NumberWord::NONE;
        let digits = word.strip_prefix('-');
        own.begin(0, digits.map_or(Sign::None, |_| Sign::Minus));
        digits
            .unwrap_or(word)
            .bytes()
            .for_each(|byte| own.push(byte));
        let mut made = Vec::new();
        let reading = one(radix, width, order);
        let is_one = reading.read(&own.number()?, Since::Here, &mut made);
        is_one.then_some(made)
    }

    #[test]
    fn numbers_stand_for_bytes() {
        use ByteOrder::{Big, Little};
        use Radix::{Binary, Decimal, Hex, Octal};
        for (word, radix, width, order, expected) in [
            ("6768", Hex, None, Big, Some(&b"gh"[..])),
            ("6867", Hex, None, Little, Some(b"gh")),
            ("0x5f706867", Hex, None, Little, Some(b"ghp_")),
            ("0x67", Hex, None, Big, Some(b"g")),
            ("0xA", Hex, None, Big, Some(b"\n")),
            ("103", Decimal, Some(1), Little, Some(b"g")),
            ("103u", Decimal, Some(1), Little, Some(b"g")),
            ("-117", Decimal, Some(1), Little, Some(b"\x8b")),
            ("256", Decimal, Some(1), Little, None),
            ("1601202279", Decimal, Some(4), Little, Some(b"ghp_")),
            ("1734897759", Decimal, Some(4), Big, Some(b"ghp_")),
            ("147", Octal, Some(1), Little, Some(b"g")),
            ("0147", Octal, Some(1), Little, Some(b"g")),
            ("0o147", Octal, Some(1), Little, Some(b"g")),
            ("064147", Octal, Some(2), Little, Some(b"gh")),
            ("01100111", Binary, Some(1), Little, Some(b"g")),
            ("0b1100111", Binary, Some(1), Little, Some(b"g")),
            ("678", Hex, None, Big, None),
            ("abc", Hex, None, Big, None),
            ("6768x", Hex, None, Big, None),
            ("189", Octal, Some(1), Little, None),
        ] {
            let made = read(word, radix, width, order);
            assert_eq!(made.as_deref(), expected, "{word} {radix:?} {order:?}");
        }
    }
}
