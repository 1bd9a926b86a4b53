//! The alphabets of runs: which bytes belong to one, which may stand between
//! its symbols, and what each symbol is worth.

use crate::coding::Coding;
use crate::limits;

/// An alphabet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Both alphabets of base64 (RFC 4648 4, 5) in one, with ends of lines.
    Base64,
    /// Hexadecimal digits with what stands between pairs of them.
    Hex,
    /// base32 (RFC 4648 6) in capitals.
    Base32,
    /// base32 in small letters.
    Base32Small,
}

/// No symbol, but may stand between symbols.
const BETWEEN: u8 = 0xfe;

/// Ends a run.
const OUTSIDE: u8 = 0xff;

static BASE64: [u8; 256] = base64();
static HEX: [u8; 256] = hex();
static BASE32: [u8; 256] = base32(b'A');
static BASE32_SMALL: [u8; 256] = base32(b'a');

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, which checks it"
)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "runs in the compiler, below 256"
)]
const fn base64() -> [u8; 256] {
    let mut table = [OUTSIDE; 256];
    let mut value = 0;
    while value < 26 {
        table[b'A' as usize + value] = value as u8;
        table[b'a' as usize + value] = value as u8 + 26;
        value += 1;
    }
    let mut value = 0;
    while value < 10 {
        table[b'0' as usize + value] = value as u8 + 52;
        value += 1;
    }
    table[b'+' as usize] = 62;
    table[b'-' as usize] = 62;
    table[b'/' as usize] = 63;
    table[b'_' as usize] = 63;
    table[b'\r' as usize] = BETWEEN;
    table[b'\n' as usize] = BETWEEN;
    table[b'\\' as usize] = BETWEEN;
    table
}

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, which checks it"
)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "runs in the compiler, below 256"
)]
const fn hex() -> [u8; 256] {
    let mut table = [OUTSIDE; 256];
    let mut value = 0;
    while value < 10 {
        table[b'0' as usize + value] = value as u8;
        value += 1;
    }
    let mut value = 0;
    while value < 6 {
        table[b'a' as usize + value] = value as u8 + 10;
        table[b'A' as usize + value] = value as u8 + 10;
        value += 1;
    }
    let between = *b":- ,;xX\\\r\n\t";
    let mut place = 0;
    while place < between.len() {
        table[between[place] as usize] = BETWEEN;
        place += 1;
    }
    table
}

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, which checks it"
)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "runs in the compiler, below 256"
)]
const fn base32(first: u8) -> [u8; 256] {
    let mut table = [OUTSIDE; 256];
    let mut value = 0;
    while value < 26 {
        table[first as usize + value] = value as u8;
        value += 1;
    }
    let mut value = 0;
    while value < 6 {
        table[b'2' as usize + value] = value as u8 + 26;
        value += 1;
    }
    table[b'\r' as usize] = BETWEEN;
    table[b'\n' as usize] = BETWEEN;
    table[b'\\' as usize] = BETWEEN;
    table
}

impl Alphabet {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Base64, Self::Hex, Self::Base32, Self::Base32Small];

    /// The coding that has it.
    pub(super) fn coding(self) -> Coding {
        match self {
            Self::Base64 => Coding::Base64,
            Self::Hex => Coding::Hex,
            Self::Base32 | Self::Base32Small => Coding::Base32,
        }
    }

    /// Bits of a symbol.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Base64 => 6,
            Self::Hex => 4,
            Self::Base32 | Self::Base32Small => 5,
        }
    }

    /// Places at which bytes may begin.
    pub(super) fn phases(self) -> usize {
        match self {
            Self::Base64 => 4,
            Self::Hex => 2,
            Self::Base32 | Self::Base32Small => 8,
        }
    }

    /// Fewest symbols worth decoding.
    pub(super) fn symbols_min(self) -> usize {
        match self {
            Self::Base64 => limits::BASE64_SYMBOLS_MIN,
            Self::Hex | Self::Base32 | Self::Base32Small => limits::DIGITS_MIN,
        }
    }

    fn table(self) -> &'static [u8; 256] {
        match self {
            Self::Base64 => &BASE64,
            Self::Hex => &HEX,
            Self::Base32 => &BASE32,
            Self::Base32Small => &BASE32_SMALL,
        }
    }

    fn has(self, byte: u8) -> bool {
        value(self.table(), byte) != OUTSIDE
    }

    /// How many bytes from the first on belong to a run.
    pub(super) fn extent(self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| !self.has(*byte));
        end.unwrap_or(bytes.len())
    }

    /// How many bytes before the end belong to a run.
    pub(super) fn tail(self, bytes: &[u8]) -> usize {
        let begin = bytes.iter().rposition(|byte| !self.has(*byte));
        begin.map_or(bytes.len(), |place| {
            bytes.len().saturating_sub(place).saturating_sub(1)
        })
    }

    /// How many symbols there are, counted as far as it matters.
    pub(super) fn count(self, run: &[u8]) -> usize {
        let table = self.table();
        let symbols = run.iter().filter(|byte| value(table, **byte) < BETWEEN);
        symbols.take(self.symbols_min()).count()
    }

    /// The next stretch of bytes of the alphabet from `from` on that is long
    /// enough for a run. Looks at whole blocks first: every such stretch has one.
    pub(super) fn next(self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let least = self.symbols_min();
        let mut place = from;
        while let Some(rest) = bytes.get(place..).filter(|rest| !rest.is_empty()) {
            let mut padded = [0; BLOCK_BYTES];
            let block = rest.first_chunk::<BLOCK_BYTES>().unwrap_or_else(|| {
                for (to, from) in padded.iter_mut().zip(rest) {
                    *to = *from;
                }
                &padded
            });
            let Some(whole) = self.whole(block) else {
                place = place.saturating_add(BLOCK_BYTES);
                continue;
            };
            let at = place.saturating_add(whole);
            let before = bytes.get(from..at).unwrap_or_default();
            let start = at.saturating_sub(self.tail(before));
            let stop = at.saturating_add(self.extent(bytes.get(at..).unwrap_or_default()));
            if stop.saturating_sub(start) >= least {
                return Some((start, stop));
            }
            place = stop.saturating_add(1);
        }
        None
    }

    /// The first eight bytes of a block that all belong to the alphabet.
    fn whole(self, block: &[u8; BLOCK_BYTES]) -> Option<usize> {
        let marks = match self {
            Self::Base64 => block.map(is_base64),
            Self::Hex => block.map(is_hex),
            Self::Base32 => block.map(is_base32),
            Self::Base32Small => block.map(is_base32_small),
        };
        let mut eights = 0_u32;
        for (place, eight) in marks.as_chunks::<8>().0.iter().enumerate() {
            let is_whole = u64::from_le_bytes(*eight) == u64::from_le_bytes([1; 8]);
            eights |= u32::from(is_whole) << place;
        }
        // Longer runs have three in a row, and so two within a block.
        if self.symbols_min() >= limits::DIGITS_MIN {
            eights &= eights >> 1;
        }
        let place = usize::try_from(eights.trailing_zeros()).ok()?;
        (eights != 0).then_some(place * 8)
    }

    /// Reads symbols.
    pub(super) fn reader(self) -> Reader {
        Reader {
            alphabet: self,
            last: 0,
            has_zero: false,
        }
    }
}

/// Bytes looked at together.
const BLOCK_BYTES: usize = 64;

// The tables once more, without branches or look-ups, so that the compiler takes
// many bytes at once.

fn is_base64(byte: u8) -> u8 {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let digit = byte.wrapping_sub(b'/') < 11;
    let sign = u8::from(byte == b'+') | u8::from(byte == b'-') | u8::from(byte == b'_');
    u8::from(letter) | u8::from(digit) | sign | is_end(byte)
}

fn is_base32(byte: u8) -> u8 {
    let letter = byte.wrapping_sub(b'A') < 26;
    u8::from(letter) | u8::from(byte.wrapping_sub(b'2') < 6) | is_end(byte)
}

fn is_base32_small(byte: u8) -> u8 {
    let letter = byte.wrapping_sub(b'a') < 26;
    u8::from(letter) | u8::from(byte.wrapping_sub(b'2') < 6) | is_end(byte)
}

fn is_hex(byte: u8) -> u8 {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 6;
    let digit = byte.wrapping_sub(b'0') < 11;
    let sign = u8::from(byte == b' ') | u8::from(byte == b',') | u8::from(byte == b'-');
    let mark = u8::from(byte == b';') | u8::from(byte | 0x20 == b'x') | u8::from(byte == b'\t');
    u8::from(letter) | u8::from(digit) | sign | mark | is_end(byte)
}

/// What stands in ends of lines, written and escaped.
fn is_end(byte: u8) -> u8 {
    u8::from(byte == b'\r') | u8::from(byte == b'\n') | u8::from(byte == b'\\')
}

/// Whether all of these bytes could belong to one run.
pub(super) fn is_run(bytes: &[u8]) -> bool {
    // The others have no byte that these have not.
    [Alphabet::Base64, Alphabet::Hex]
        .into_iter()
        .any(|alphabet| bytes.iter().all(|byte| alphabet.has(*byte)))
}

fn value(table: &[u8; 256], byte: u8) -> u8 {
    table.get(usize::from(byte)).copied().unwrap_or(OUTSIDE)
}

/// Reads the symbols of one run.
pub(super) struct Reader {
    alphabet: Alphabet,
    last: u8,
    /// A zero that is a digit unless an `x` follows.
    has_zero: bool,
}

impl Reader {
    /// Appends the values of the symbols in `bytes`. A backslash takes the letter
    /// of an escaped end of line with it; `0x` is no digit.
    pub(super) fn read(&mut self, bytes: &[u8], symbols: &mut Vec<u8>) {
        let table = self.alphabet.table();
        let is_hex = self.alphabet == Alphabet::Hex;
        let is_plain = !is_hex && self.last != b'\\' && memchr::memchr(b'\\', bytes).is_none();
        if is_plain {
            let values = bytes.iter().map(|byte| value(table, *byte));
            if memchr::memchr2(b'\r', b'\n', bytes).is_none() {
                symbols.extend(values);
            } else {
                symbols.extend(values.filter(|value| *value < BETWEEN));
            }
            self.last = bytes.last().copied().unwrap_or(self.last);
            return;
        }
        for byte in bytes {
            if self.has_zero && !matches!(byte, b'x' | b'X') {
                symbols.push(0);
            }
            self.has_zero = is_hex && *byte == b'0';
            let is_end = self.last == b'\\' && matches!(byte, b'n' | b'r' | b't');
            let value = value(table, *byte);
            if value < BETWEEN && !is_end && !self.has_zero {
                symbols.push(value);
            }
            self.last = *byte;
        }
    }

    /// The end of the run.
    pub(super) fn finish(&mut self, symbols: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_zero) {
            symbols.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_is_what_the_tables_say() {
        let tests = [is_base64, is_hex, is_base32, is_base32_small];
        for (alphabet, test) in Alphabet::ALL.into_iter().zip(tests) {
            for byte in 0..=255 {
                assert_eq!(test(byte) == 1, alphabet.has(byte), "{alphabet:?} {byte}");
            }
        }
    }

    #[test]
    fn runs_are_found_whole_wherever_they_stand() {
        for before in 0..40 {
            for length in 18..40 {
                let mut text = "!".repeat(before);
                text.push_str(&"Q".repeat(length));
                text.push('!');
                let found = Alphabet::Base64.next(text.as_bytes(), 0);
                let expected = (length >= 20).then_some((before, before + length));
                assert_eq!(found, expected, "{before} {length}");
            }
        }
    }

    #[test]
    fn symbols_are_read_through_ends_of_lines_and_prefixes() {
        let read = |alphabet: Alphabet, text: &[u8]| {
            let mut symbols = Vec::new();
            let mut reader = alphabet.reader();
            for byte in text.chunks(1) {
                reader.read(byte, &mut symbols);
            }
            reader.finish(&mut symbols);
            symbols
        };
        assert_eq!(
            read(Alphabet::Base64, br"AB\nC\r\nD\/-"),
            [0, 1, 2, 3, 63, 62]
        );
        assert_eq!(read(Alphabet::Base64, b"AB\r\nC"), [0, 1, 2]);
        assert_eq!(read(Alphabet::Hex, br"0x67, 0x6f"), [6, 7, 6, 15]);
        assert_eq!(
            read(Alphabet::Hex, br"\x67\x6F:01-2"),
            [6, 7, 6, 15, 0, 1, 2]
        );
        assert_eq!(read(Alphabet::Base32, b"AZ27"), [0, 25, 26, 31]);
    }
}
