//! The alphabets of runs: which bytes belong to one, which may stand between
//! its symbols, and what each symbol is worth.

use crate::coding::Coding;
use crate::limits;
use crate::span;

use super::lane::RunExtent;
use super::name;

/// An alphabet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Both alphabets of base64 (RFC 4648 4, 5) in one, with ends of lines.
    Base64,
    /// Hexadecimal digits with what stands between pairs of them.
    Hex,
    /// base32 (RFC 4648 6) in capitals.
    Base32,
    /// base32 in small letters.
    Base32Small,
}

/// Numbers of the first symbols of words among the first bytes of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Starts {
    numbers: [u8; limits::STARTS_MAX],
    count: usize,
    /// The word that the run begins with is not among them.
    is_none: bool,
}

impl Starts {
    /// Nothing begins anywhere.
    pub(super) const NONE: Self = Self {
        numbers: [0; limits::STARTS_MAX],
        count: 0,
        is_none: true,
    };

    fn add(&mut self, number: u8) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count = self.count.saturating_add(1);
        }
    }

    /// All numbers: of the first symbol, and of those that words begin with.
    pub(super) fn all(self) -> impl Iterator<Item = usize> {
        let first = (!self.is_none).then_some(0).into_iter();
        let words = self.numbers.into_iter().take(self.count);
        first.chain(words.map(usize::from))
    }

    /// Where in what a phase stands for, in bytes: a run may begin with it, or a word.
    pub(super) fn offsets(self, phase: usize, alphabet: Alphabet) -> impl Iterator<Item = usize> {
        let phases = alphabet.phases();
        let bits = usize::try_from(alphabet.bits()).unwrap_or_default();
        let is_here = move |number: &usize| number.checked_rem(phases) == Some(phase);
        let offset = move |number: usize| number.saturating_sub(phase).saturating_mul(bits) / 8;
        self.all().filter(is_here).map(offset)
    }
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
    // The letters are those of escaped ends of lines.
    let between = *b":- ,;xX\\\r\n\tnrt";
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
    // Those of escaped ends of lines, where they are no symbols.
    let ends = *b"nrt";
    let mut place = 0;
    while place < ends.len() {
        if table[ends[place] as usize] == OUTSIDE {
            table[ends[place] as usize] = BETWEEN;
        }
        place += 1;
    }
    table
}

impl Alphabet {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Base64, Self::Hex, Self::Base32, Self::Base32Small];

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
    pub(crate) fn symbols_min(self) -> usize {
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

    /// Where in a run compressed data without a mark may begin: text that stands before them
    /// may look as if it belonged to it.
    pub(super) fn starts(self, run: &[u8], extent: RunExtent) -> Starts {
        let mut starts = Starts::NONE;
        let few = run.get(..limits::STARTS_BYTES).unwrap_or(run);
        if self == Self::Base64 && memchr::memchr3(b'\r', b'\n', b'\\', few).is_none() {
            starts.is_none = name::is_name(run, extent);
            return starts;
        }
        let (mut symbols, mut is_between, mut last) = (0_u8, false, 0_u8);
        let mut asked = 0_usize;
        for (place, byte) in run.iter().enumerate() {
            let is_behind = symbols > 0 && place >= limits::STARTS_BYTES;
            if is_behind || asked > limits::STARTS_ASKED_MAX {
                break;
            }
            let is_end = last == b'\\' && matches!(byte, b'n' | b'r' | b't');
            last = *byte;
            if is_end || value(self.table(), *byte) >= BETWEEN {
                is_between = true;
                continue;
            }
            let is_first = symbols == 0;
            if is_first || is_between {
                asked = asked.saturating_add(1);
                let word = span::from(run, place);
                let is_name = self == Self::Base64 && name::is_name(word, extent);
                match (is_first, is_name) {
                    (_, true) => {}
                    (true, false) => starts.is_none = false,
                    (false, false) => starts.add(symbols),
                }
            }
            symbols = symbols.saturating_add(1);
            is_between = false;
        }
        starts
    }

    /// Whether a byte belongs to a run.
    pub(crate) fn has(self, byte: u8) -> bool {
        value(self.table(), byte) != OUTSIDE
    }

    /// What a byte is worth that is a symbol.
    pub(super) fn symbol(self, byte: u8) -> Option<u8> {
        Some(value(self.table(), byte)).filter(|value| *value < BETWEEN)
    }

    /// How many bytes before the end belong to a run.
    pub(crate) fn tail(self, bytes: &[u8]) -> usize {
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

    /// Reads symbols.
    pub(super) fn reader(self) -> SymbolReader {
        SymbolReader {
            alphabet: self,
            last: 0,
            has_zero: false,
        }
    }
}

fn value(table: &[u8; 256], byte: u8) -> u8 {
    table.get(usize::from(byte)).copied().unwrap_or(OUTSIDE)
}

/// Reads the symbols of one run.
pub(super) struct SymbolReader {
    alphabet: Alphabet,
    last: u8,
    /// A zero that is a digit unless an `x` follows.
    has_zero: bool,
}

impl SymbolReader {
    /// Appends the values of the symbols in `bytes`. A backslash takes the letter
    /// of an escaped end of line with it; `0x` is no digit.
    pub(super) fn read(&mut self, bytes: &[u8], symbols: &mut Vec<u8>) {
        let table = self.alphabet.table();
        let is_hex = self.alphabet == Alphabet::Hex;
        let is_plain = !is_hex && self.last != b'\\' && memchr::memchr(b'\\', bytes).is_none();
        if is_plain {
            let mut rest = bytes;
            while !rest.is_empty() {
                let end = memchr::memchr2(b'\r', b'\n', rest);
                let (line, behind) = rest
                    .split_at_checked(end.unwrap_or(rest.len()))
                    .unwrap_or_default();
                self.line(line, symbols);
                rest = behind.get(1..).unwrap_or_default();
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

    /// Appends the values of bytes that are all symbols.
    fn line(&self, line: &[u8], symbols: &mut Vec<u8>) {
        if self.alphabet == Alphabet::Base64 {
            let start = symbols.len();
            symbols.resize(start.saturating_add(line.len()), 0);
            outgate_lanes::symbols(line, symbols.get_mut(start..).unwrap_or_default());
        } else {
            let table = self.alphabet.table();
            symbols.extend(line.iter().map(|byte| value(table, *byte)));
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
