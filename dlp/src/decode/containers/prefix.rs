//! Bits and prefix codes of deflate (RFC 1951 3.2) and of Brotli (RFC 7932 3), as far as
//! it takes to tell whether bytes may be compressed. For few bytes.

use crate::limits;

/// Why something was not read to its end.
pub(super) enum PrefixEnd {
    /// There are no more bytes: it may be one.
    Short,
    /// It is none.
    Wrong,
}

/// What was read.
pub(super) type Read<T> = Result<T, PrefixEnd>;

/// Bits, the first in the lowest place of each byte.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    /// The first of these bytes, as many as are looked at.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let bytes = bytes.get(..limits::HEADER_BYTES_MAX).unwrap_or(bytes);
        Self { bytes, at: 0 }
    }

    /// The next bit.
    pub(super) fn bit(&mut self) -> Read<u32> {
        let byte = self.bytes.get(self.at >> 3).ok_or(PrefixEnd::Short)?;
        let bit = byte >> (self.at & 7) & 1;
        self.at = self.at.saturating_add(1);
        Ok(u32::from(bit))
    }

    /// The next `count` bits, at most 24, as a number.
    pub(super) fn take(&mut self, count: u32) -> Read<u32> {
        let count = count.min(24);
        let taken = self.peek() & (1_u32 << count).saturating_sub(1);
        self.skip(count)?;
        Ok(taken)
    }

    /// The next 24 bits, zeros behind the end.
    pub(super) fn peek(&self) -> u32 {
        let here = self.bytes.get(self.at >> 3..).unwrap_or_default();
        let four = here.first_chunk().copied().unwrap_or_else(|| {
            let mut four = [0; 4];
            for (to, from) in four.iter_mut().zip(here) {
                *to = *from;
            }
            four
        });
        u32::from_le_bytes(four) >> (self.at & 7)
    }

    pub(super) fn skip(&mut self, count: u32) -> Read<()> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.at = self.at.saturating_add(count);
        if self.at > self.bytes.len().saturating_mul(8) {
            return Err(PrefixEnd::Short);
        }
        Ok(())
    }

    /// Which byte the next bit is in.
    pub(super) fn place(&self) -> usize {
        self.at >> 3
    }

    /// How many bytes there are up to the end of so many and one more.
    pub(super) fn plain(&self, length: u32) -> usize {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        length.saturating_add(1).saturating_add(self.place())
    }

    /// The next `count` bits as a code of deflate, whose highest bit comes first.
    pub(super) fn code(&mut self, count: u32) -> Read<u32> {
        let taken = self.take(count)?;
        Ok(taken.reverse_bits() >> 32_u32.saturating_sub(count))
    }

    /// Goes to the next whole byte.
    pub(super) fn pad(&mut self) -> Read<()> {
        self.at = self.at.next_multiple_of(8);
        self.skip(0)
    }

    /// Goes to the next whole byte: what is left of this one has to be zero.
    pub(super) fn align(&mut self) -> Read<()> {
        while self.at & 7 != 0 {
            (self.bit()? == 0).then_some(()).ok_or(PrefixEnd::Wrong)?;
        }
        Ok(())
    }
}

/// Longest code, in bits.
pub(super) const LENGTH_MAX: usize = 15;

/// Most symbols of a code: the lengths of inserts and copies of Brotli (RFC 7932 5).
pub(super) const SYMBOLS_MAX: usize = 704;

/// A prefix code: how many codes there are of each length, and the symbols in order.
pub(super) struct Code {
    counts: [u16; LENGTH_MAX + 1],
    symbols: [u16; SYMBOLS_MAX],
    /// The only symbol, which takes no bits.
    only: Option<u32>,
}

impl Code {
    /// Of the lengths of the codes of all symbols, zero for those that have none.
    pub(super) fn of(lengths: &[u8]) -> Self {
        let mut counts = [0_u16; LENGTH_MAX + 1];
        for length in lengths {
            if let Some(count) = counts.get_mut(usize::from(*length)) {
                *count = count.saturating_add(1);
            }
        }
        counts[0] = 0;
        let (mut places, mut sum) = ([0_u16; LENGTH_MAX + 1], 0_u16);
        for (place, count) in places.iter_mut().zip(counts) {
            *place = sum;
            sum = sum.saturating_add(count);
        }
        let mut symbols = [0_u16; SYMBOLS_MAX];
        for (symbol, length) in (0..).zip(lengths) {
            if *length > 0
                && let Some(place) = places.get_mut(usize::from(*length))
                && let Some(known) = symbols.get_mut(usize::from(*place))
            {
                *known = symbol;
                *place = place.saturating_add(1);
            }
        }
        Self {
            counts,
            symbols,
            only: None,
        }
    }

    /// One symbol, which takes no bits.
    pub(super) fn single(symbol: u32) -> Self {
        Self {
            counts: [0; LENGTH_MAX + 1],
            symbols: [0; SYMBOLS_MAX],
            only: Some(symbol),
        }
    }

    /// The next symbol.
    pub(super) fn next(&self, bits: &mut BitReader<'_>) -> Read<u32> {
        if let Some(symbol) = self.only {
            return Ok(symbol);
        }
        let mut ahead = bits.peek();
        let (mut code, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for (length, count) in (1_u32..).zip(self.counts.iter().skip(1)) {
            let count = u32::from(*count);
            code |= ahead & 1;
            ahead >>= 1;
            if code < first.saturating_add(count) {
                bits.skip(length)?;
                let place = index.saturating_add(code).saturating_sub(first);
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                let symbol = self.symbols.get(place).ok_or(PrefixEnd::Wrong)?;
                return Ok(u32::from(*symbol));
            }
            index = index.saturating_add(count);
            first = first.saturating_add(count) << 1;
            code <<= 1;
        }
        Err(PrefixEnd::Wrong)
    }
}
