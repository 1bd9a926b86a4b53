//! The alphabets of runs: which bytes belong to one, which may stand between
//! its symbols, and what each symbol is worth.

use crate::bits::gathered;
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
        let mut place = 0_usize;
        while let Some(rest) = bytes.get(place..).filter(|rest| !rest.is_empty()) {
            let block = Block::new(self, rest);
            if !block.is_whole() {
                let more = usize::try_from(block.members().trailing_ones());
                return place.saturating_add(more.unwrap_or_default());
            }
            place = place.saturating_add(BLOCK_BYTES);
        }
        bytes.len()
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
    /// enough for a run. Looks at whole blocks first, and closely only at those
    /// that such a stretch can lie in.
    pub(super) fn next(self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let least = self.symbols_min();
        let mut place = from;
        while let Some(rest) = bytes.get(place..).filter(|rest| !rest.is_empty()) {
            let block = Block::new(self, rest);
            if !block.may_have(least) {
                place = place.saturating_add(BLOCK_BYTES);
                continue;
            }
            let members = block.members();
            let behind = place.saturating_add(BLOCK_BYTES);
            let more = || self.extent(bytes.get(behind..).unwrap_or_default());
            // The first may have begun before, and the last go on behind.
            let first = usize::try_from(members.trailing_ones()).unwrap_or_default();
            if first > 0 {
                let before = bytes.get(from..place).unwrap_or_default();
                let start = place.saturating_sub(self.tail(before));
                let goes_on = if first == BLOCK_BYTES { more() } else { 0 };
                let stop = place.saturating_add(first).saturating_add(goes_on);
                if stop.saturating_sub(start) >= least {
                    return Some((start, stop));
                }
            }
            let others = members & u64::MAX.checked_shl(members.trailing_ones()).unwrap_or(0);
            let long = begins(others, least).trailing_zeros();
            let last = u64::BITS.saturating_sub(others.leading_ones());
            // What has few bytes here is seen from the next block.
            let start = if long < u64::BITS { long } else { last };
            let length = others.checked_shr(start).unwrap_or(0).trailing_ones();
            let start = place.saturating_add(usize::try_from(start).unwrap_or_default());
            let stop = start.saturating_add(usize::try_from(length).unwrap_or_default());
            if length >= 8 {
                let goes_on = if stop == behind { more() } else { 0 };
                let stop = stop.saturating_add(goes_on);
                if stop.saturating_sub(start) >= least {
                    return Some((start, stop));
                }
            }
            place = behind;
        }
        None
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

/// For each byte of some whether it belongs to an alphabet: one or zero.
struct Block([u64; BLOCK_BYTES / 8]);

impl Block {
    /// The first of these bytes; what is missing belongs to none.
    fn new(alphabet: Alphabet, bytes: &[u8]) -> Self {
        let mut padded = [0; BLOCK_BYTES];
        let block: &[u8; BLOCK_BYTES] = bytes.first_chunk().unwrap_or_else(|| {
            if let Some(space) = padded.get_mut(..bytes.len()) {
                space.copy_from_slice(bytes);
            }
            &padded
        });
        let marks = match alphabet {
            Alphabet::Base64 => block.map(is_base64),
            Alphabet::Hex => block.map(is_hex),
            Alphabet::Base32 => block.map(is_base32),
            Alphabet::Base32Small => block.map(is_base32_small),
        };
        let mut eights = [0; BLOCK_BYTES / 8];
        for (eight, marks) in eights.iter_mut().zip(marks.as_chunks::<8>().0) {
            *eight = u64::from_le_bytes(*marks);
        }
        Self(eights)
    }

    /// Whether a stretch of so many bytes can lie here, wherever it begins: then
    /// eight bytes side by side belong to it, and twice as many if it is long.
    fn may_have(&self, length: usize) -> bool {
        let mut eights = 0_u32;
        for (place, eight) in self.0.iter().enumerate() {
            eights |= u32::from(*eight == ONES) << place;
        }
        if length >= limits::DIGITS_MIN {
            eights &= eights >> 1;
        }
        eights != 0
    }

    /// Whether all belong to it.
    fn is_whole(&self) -> bool {
        self.0.iter().all(|eight| *eight == ONES)
    }

    /// A bit for each that does.
    fn members(&self) -> u64 {
        let eights = self.0.iter().enumerate();
        eights.fold(0, |members, (place, eight)| {
            members | gathered(*eight) << (place * 8)
        })
    }
}

/// Eight bytes of one.
const ONES: u64 = 0x0101_0101_0101_0101;

/// A bit for each place from which on so many bits are set.
fn begins(bits: u64, length: usize) -> u64 {
    let (mut all, mut have) = (bits, 1);
    while have < length {
        let more = have.min(length.saturating_sub(have));
        all &= all >> more;
        have = have.saturating_add(more);
    }
    all
}

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
    use proptest::prelude::*;

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
        for (alphabet, symbol, least) in [(Alphabet::Base64, "Q", 20), (Alphabet::Hex, "a", 32)] {
            for before in 0..140 {
                for length in (18..40).chain([63, 64, 65, 127, 128, 129, 200]) {
                    // A word right before it, which is no run.
                    let mut text = "!".repeat(before);
                    text.push_str(&symbol.repeat(before % 19));
                    text.push('!');
                    let start = text.len();
                    text.push_str(&symbol.repeat(length));
                    let expected = (length >= least).then_some((start, start + length));
                    let found = alphabet.next(text.as_bytes(), 0);
                    assert_eq!(found, expected, "{before} {length} at the end");
                    text.push('!');
                    let found = alphabet.next(text.as_bytes(), 0);
                    assert_eq!(found, expected, "{before} {length}");
                    let later = alphabet.next(text.as_bytes(), start + length);
                    assert_eq!(later, None, "{before} {length}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn runs_are_found_as_one_by_one(text in "[Qa! ]{0,60}(Q{0,70}[!a ]{0,3}){0,6}", from in 0_usize..50) {
            let (bytes, from) = (text.as_bytes(), from.min(text.len()));
            for alphabet in Alphabet::ALL {
                let (mut found, mut at) = (Vec::new(), from);
                while let Some((start, stop)) = alphabet.next(bytes, at) {
                    found.push((start, stop));
                    at = stop;
                }
                let mut plain = Vec::new();
                let mut begin = from;
                for place in from..=bytes.len() {
                    if !bytes.get(place).is_some_and(|byte| alphabet.has(*byte)) {
                        if place - begin >= alphabet.symbols_min() {
                            plain.push((begin, place));
                        }
                        begin = place + 1;
                    }
                }
                prop_assert_eq!(&found, &plain, "{:?}", alphabet);
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
