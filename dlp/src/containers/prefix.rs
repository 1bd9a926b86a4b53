//! Bits and prefix codes of deflate (RFC 1951 3.2) and of Brotli (RFC 7932 3), as far as
//! it takes to tell whether bytes may be compressed. Slow, and for few bytes.

use crate::limits;

/// Why something was not read to its end.
pub(super) enum End {
    /// There are no more bytes: it may be one.
    Short,
    /// It is none.
    Wrong,
}

/// What was read.
pub(super) type Read<T> = Result<T, End>;

/// Bits, the first in the lowest place of each byte.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    /// The first of these bytes, as many as are looked at.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let bytes = bytes.get(..limits::HEADER_BYTES_MAX).unwrap_or(bytes);
        Self { bytes, at: 0 }
    }

    /// The next bit.
    pub(super) fn bit(&mut self) -> Read<u32> {
        let byte = self.bytes.get(self.at >> 3).ok_or(End::Short)?;
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
            return Err(End::Short);
        }
        Ok(())
    }

    /// How many bytes there are up to the end of so many and one more.
    pub(super) fn plain(&self, length: u32) -> usize {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        length.saturating_add(1).saturating_add(self.at >> 3)
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
            (self.bit()? == 0).then_some(()).ok_or(End::Wrong)?;
        }
        Ok(())
    }
}

/// Longest code, in bits.
pub(super) const LENGTH_MAX: usize = 15;

/// A prefix code: how many codes there are of each length, and the symbols in order.
pub(super) struct Code {
    counts: [u32; LENGTH_MAX + 1],
    symbols: Vec<u32>,
}

impl Code {
    /// Of symbols with lengths, in order of the symbols.
    pub(super) fn of(lengths: &[(u32, usize)]) -> Self {
        let mut counts = [0_u32; LENGTH_MAX + 1];
        let mut symbols = Vec::new();
        for length in 1..=LENGTH_MAX {
            let alike = lengths.iter().filter(|(_, known)| *known == length);
            let before = symbols.len();
            symbols.extend(alike.map(|(symbol, _)| *symbol));
            if let Some(count) = counts.get_mut(length) {
                *count = u32::try_from(symbols.len().saturating_sub(before)).unwrap_or_default();
            }
        }
        Self { counts, symbols }
    }

    /// One symbol, which takes no bits.
    pub(super) fn single(symbol: u32) -> Self {
        Self {
            counts: [0; LENGTH_MAX + 1],
            symbols: vec![symbol],
        }
    }

    /// The next symbol.
    pub(super) fn next(&self, bits: &mut Bits<'_>) -> Read<u32> {
        if let [symbol] = self.symbols.as_slice() {
            return Ok(*symbol);
        }
        let (mut code, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for count in self.counts.iter().skip(1) {
            code |= bits.bit()?;
            if code < first.saturating_add(*count) {
                let place = index.saturating_add(code).saturating_sub(first);
                let place = usize::try_from(place).unwrap_or(usize::MAX);
                return self.symbols.get(place).copied().ok_or(End::Wrong);
            }
            index = index.saturating_add(*count);
            first = first.saturating_add(*count) << 1;
            code <<= 1;
        }
        Err(End::Wrong)
    }
}
