//! Header blocks of a client (RFC 7541) read beside the engine, for what it drops
//! and does not show: a fragment of `:path`, a pseudo-field that comes twice or
//! late. Keeps the lengths of fields and what each is, never their values. What it
//! cannot read ends the connection, so that it never knows another table than the
//! engine's.

use std::collections::VecDeque;

/// Bytes of the table (RFC 9113 6.5.2): the engine offers no other size.
const TABLE_BYTES_MAX: usize = 4096;

/// What each field counts beside its name and value (RFC 7541 4.1).
const FIELD_BYTES: usize = 32;

/// Names that are longer are of no interest.
const NAME_BYTES: usize = 10;

/// A block that cannot be read, or not as the engine would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreadableBlock;

/// What a field is, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Path,
    /// Another pseudo-field, as a bit of its own.
    Pseudo(u8),
    Field,
}

impl FieldKind {
    fn of(name: &[u8]) -> Self {
        match name {
            b":path" => Self::Path,
            b":authority" => Self::Pseudo(2),
            b":method" => Self::Pseudo(4),
            b":scheme" => Self::Pseudo(8),
            b":status" => Self::Pseudo(16),
            b":protocol" => Self::Pseudo(32),
            _ => Self::Field,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Path => 1,
            Self::Pseudo(bit) => bit,
            Self::Field => 0,
        }
    }
}

/// The name of a field: what it is, and how long.
#[derive(Debug, Clone, Copy)]
struct FieldName {
    kind: FieldKind,
    length: usize,
}

/// A field without its value.
#[derive(Debug, Clone, Copy)]
struct TableEntry {
    name: FieldName,
    /// Bytes that it takes in the table.
    size: usize,
    has_fragment: bool,
}

/// Lengths of the names of the static table (RFC 7541 A).
const STATIC_LENGTHS: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
    16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10,
    25, 17, 10, 4, 3, 16,
];

/// What was seen of one block.
#[derive(Debug, Default)]
struct BlockSeen {
    pseudo: u8,
    has_field: bool,
    fault: Option<&'static str>,
}

impl BlockSeen {
    fn add(&mut self, entry: TableEntry) {
        let bit = entry.name.kind.bit();
        let fault = if bit == 0 {
            self.has_field = true;
            None
        } else if entry.has_fragment {
            Some("the request target has a fragment")
        } else if self.has_field || self.pseudo & bit != 0 {
            Some("a pseudo-field that comes twice or late")
        } else {
            None
        };
        self.pseudo |= bit;
        self.fault = self.fault.or(fault);
    }
}

/// Reads the blocks of one connection, each whole and in their order.
#[derive(Debug)]
pub(super) struct HeaderBlocks {
    /// The newest in front.
    entries: VecDeque<TableEntry>,
    size: usize,
    size_max: usize,
}

impl HeaderBlocks {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            size_max: TABLE_BYTES_MAX,
        }
    }

    /// What is wrong with the request of this block, if anything is.
    pub(super) fn read(
        &mut self,
        mut block: &[u8],
    ) -> Result<Option<&'static str>, UnreadableBlock> {
        let input = &mut block;
        let mut seen = BlockSeen::default();
        let mut is_first = true;
        while let Some(first) = input.first().copied() {
            if first & 0xe0 == 0x20 {
                let size = integer(input, 0x1f)?;
                if !is_first || size > TABLE_BYTES_MAX {
                    return Err(UnreadableBlock);
                }
                self.size_max = size;
                self.make_room(0);
                continue;
            }
            is_first = false;
            if first & 0x80 != 0 {
                let index = integer(input, 0x7f)?;
                seen.add(self.entry(index)?);
                continue;
            }
            let is_kept = first & 0x40 != 0;
            let index = integer(input, if is_kept { 0x3f } else { 0x0f })?;
            let name = match index {
                0 => text(input)?.name()?,
                index => self.entry(index)?.name,
            };
            let value = text(input)?;
            let has_fragment = name.kind == FieldKind::Path && value.holds(b'#')?;
            let length = if is_kept { value.length()? } else { 0 };
            let entry = TableEntry {
                name,
                size: name.length.saturating_add(length) + FIELD_BYTES,
                has_fragment,
            };
            seen.add(entry);
            if is_kept {
                self.keep(entry);
            }
        }
        Ok(seen.fault)
    }

    /// The field of an index (RFC 7541 2.3.3).
    fn entry(&self, index: usize) -> Result<TableEntry, UnreadableBlock> {
        let place = index.checked_sub(1).ok_or(UnreadableBlock)?;
        let Some(length) = STATIC_LENGTHS.get(place) else {
            let place = place - STATIC_LENGTHS.len();
            return self.entries.get(place).copied().ok_or(UnreadableBlock);
        };
        let kind = match index {
            1 => FieldKind::of(b":authority"),
            2 | 3 => FieldKind::of(b":method"),
            4 | 5 => FieldKind::Path,
            6 | 7 => FieldKind::of(b":scheme"),
            8..=14 => FieldKind::of(b":status"),
            _ => FieldKind::Field,
        };
        let length = usize::from(*length);
        Ok(TableEntry {
            name: FieldName { kind, length },
            size: 0,
            has_fragment: false,
        })
    }

    /// Drops the oldest until so much more has room (RFC 7541 4.3, 4.4).
    fn make_room(&mut self, size: usize) {
        while self.size.saturating_add(size) > self.size_max {
            match self.entries.pop_back() {
                Some(oldest) => self.size = self.size.saturating_sub(oldest.size),
                None => return,
            }
        }
    }

    fn keep(&mut self, entry: TableEntry) {
        self.make_room(entry.size);
        if self.size.saturating_add(entry.size) <= self.size_max {
            self.size += entry.size;
            self.entries.push_front(entry);
        }
    }
}

fn byte(input: &mut &[u8]) -> Result<u8, UnreadableBlock> {
    let (first, rest) = input.split_first().ok_or(UnreadableBlock)?;
    *input = rest;
    Ok(*first)
}

/// A number (RFC 7541 5.1) of five bytes at most, as the engine takes it.
fn integer(input: &mut &[u8], mask: u8) -> Result<usize, UnreadableBlock> {
    let mut value = usize::from(byte(input)? & mask);
    if value < usize::from(mask) {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let next = byte(input)?;
        value += usize::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(UnreadableBlock)
}

/// A text as it is coded (RFC 7541 5.2).
#[derive(Debug)]
struct CodedText<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

fn text<'a>(input: &mut &'a [u8]) -> Result<CodedText<'a>, UnreadableBlock> {
    let is_huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(input, 0x7f)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(UnreadableBlock)?;
    *input = rest;
    Ok(CodedText { bytes, is_huffman })
}

impl CodedText<'_> {
    fn name(&self) -> Result<FieldName, UnreadableBlock> {
        let (mut name, mut length) = ([0; NAME_BYTES], 0);
        self.each(|byte| {
            if let Some(place) = name.get_mut(length) {
                *place = byte;
            }
            length += 1;
        })?;
        Ok(FieldName {
            kind: FieldKind::of(name.get(..length).unwrap_or_default()),
            length,
        })
    }

    fn holds(&self, wanted: u8) -> Result<bool, UnreadableBlock> {
        let mut found = false;
        self.each(|byte| found |= byte == wanted)?;
        Ok(found)
    }

    fn length(&self) -> Result<usize, UnreadableBlock> {
        if !self.is_huffman {
            return Ok(self.bytes.len());
        }
        let mut length = 0;
        self.each(|_| length += 1)?;
        Ok(length)
    }

    /// Gives each byte that it stands for.
    fn each(&self, mut give: impl FnMut(u8)) -> Result<(), UnreadableBlock> {
        if !self.is_huffman {
            self.bytes.iter().copied().for_each(give);
            return Ok(());
        }
        let (mut bits, mut count) = (0_u64, 0_u32);
        for byte in self.bytes {
            bits = bits << 8 | u64::from(*byte);
            count += 8;
            while let Some((symbol, length)) = symbol(bits, count) {
                give(symbol);
                count -= length;
                bits &= (1 << count) - 1;
            }
            // Longer than every code of a byte: the one that ends a text.
            if count >= CODE_BITS_MAX {
                return Err(UnreadableBlock);
            }
        }
        // What is left are less than eight ones.
        let is_padding = count < 8 && bits == (1 << count) - 1;
        is_padding.then_some(()).ok_or(UnreadableBlock)
    }
}

/// The byte whose code stands in front of `count` bits, and the length of its code.
fn symbol(bits: u64, count: u32) -> Option<(u8, u32)> {
    for length in CODE_BITS_MIN..=count.min(CODE_BITS_MAX) {
        let codes = CODES.get(usize::try_from(length).ok()?)?;
        // Lower than the first: the front of it was a shorter code.
        let place = (bits >> (count - length)).checked_sub(codes.first)?;
        if place < codes.count {
            let place = usize::try_from(codes.before + place).ok()?;
            return SYMBOLS.get(place).map(|symbol| (*symbol, length));
        }
    }
    None
}

/// Bits of the shortest and of the longest code of a byte (RFC 7541, appendix B).
const CODE_BITS_MIN: u32 = 5;
const CODE_BITS_MAX: u32 = 30;

/// Bits of the code of each byte (RFC 7541 B). Codes of one length follow each
/// other in the order of their bytes, shorter ones come first.
const CODE_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The codes of one length.
#[derive(Debug, Clone, Copy)]
struct Codes {
    first: u64,
    count: u64,
    /// How many are shorter.
    before: u64,
}

#[expect(
    clippy::indexing_slicing,
    reason = "the compiler computes it and would stop at a wrong index"
)]
const CODES: [Codes; 31] = {
    let mut all = [Codes {
        first: 0,
        count: 0,
        before: 0,
    }; 31];
    let (mut length, mut code, mut before) = (1, 0, 0);
    while length < all.len() {
        code <<= 1;
        let (mut symbol, mut count) = (0, 0);
        while symbol < CODE_BITS.len() {
            count += (CODE_BITS[symbol] as usize == length) as u64;
            symbol += 1;
        }
        all[length] = Codes {
            first: code,
            count,
            before,
        };
        code += count;
        before += count;
        length += 1;
    }
    all
};

/// Bytes in the order of their codes.
#[expect(
    clippy::indexing_slicing,
    reason = "the compiler computes it and would stop at a wrong index"
)]
const SYMBOLS: [u8; 256] = {
    let mut all = [0; 256];
    let (mut length, mut place) = (0, 0);
    while length < CODES.len() {
        let (mut symbol, mut next) = (0_u8, 0);
        while next < CODE_BITS.len() {
            if CODE_BITS[next] as usize == length {
                all[place] = symbol;
                place += 1;
            }
            symbol = symbol.wrapping_add(1);
            next += 1;
        }
        length += 1;
    }
    all
};

#[cfg(test)]
mod tests;
