//! Symbols of four, five or six bits to bytes, from one of the places where a
//! byte may begin.

use outgate_lanes::{GROUP_BYTES, pack};

use crate::scan::Scan;
use crate::span::Span;

/// How many bytes before a piece the first byte it makes may have begun: the
/// symbols of one byte, with what may stand between them.
pub(super) const LAG: u64 = crate::limits::RUN_LAG_BYTES;

/// Decodes one phase of a run.
pub(super) struct Phase {
    bits: u32,
    rest: u32,
    filled: u32,
}

impl Phase {
    /// At the first symbol of a group.
    pub(super) fn new(bits: u32) -> Self {
        Self {
            bits,
            rest: 0,
            filled: 0,
        }
    }

    /// Appends the bytes that `symbols` complete.
    pub(super) fn push(&mut self, symbols: &[u8], made: &mut Vec<u8>) {
        let mut symbols = symbols;
        match self.bits {
            6 => symbols = self.by_fours(symbols, made),
            5 => symbols = self.by_eights(symbols, made),
            _ => {}
        }
        for symbol in symbols {
            self.one(*symbol, made);
        }
    }

    /// The symbols of a group that has begun; the others are left.
    fn complete<'a>(&mut self, mut symbols: &'a [u8], made: &mut Vec<u8>) -> &'a [u8] {
        while self.filled != 0
            && let Some((first, rest)) = symbols.split_first()
        {
            self.one(*first, made);
            symbols = rest;
        }
        symbols
    }

    /// Most of base32: eight symbols are five bytes.
    fn by_eights<'a>(&mut self, symbols: &'a [u8], made: &mut Vec<u8>) -> &'a [u8] {
        let (groups, rest) = self.complete(symbols, made).as_chunks::<8>();
        for group in groups {
            let symbols = group.iter().copied().map(u64::from);
            let [_, _, _, bytes @ ..] = symbols.fold(0, |all, one| all << 5 | one).to_be_bytes();
            made.extend_from_slice(&bytes);
        }
        rest
    }

    /// Most of base64: four symbols are three bytes.
    fn by_fours<'a>(&mut self, symbols: &'a [u8], made: &mut Vec<u8>) -> &'a [u8] {
        let (groups, rest) = self.complete(symbols, made).as_chunks();
        let start = made.len();
        made.resize(
            start.saturating_add(groups.len().saturating_mul(GROUP_BYTES)),
            0,
        );
        let space = made.get_mut(start..).unwrap_or_default();
        pack(groups, space.as_chunks_mut().0);
        rest
    }

    fn one(&mut self, symbol: u8, made: &mut Vec<u8>) {
        self.rest = (self.rest << self.bits) | u32::from(symbol);
        self.filled = self.filled.saturating_add(self.bits);
        if self.filled >= 8 {
            self.filled = self.filled.saturating_sub(8);
            let [.., low] = (self.rest >> self.filled).to_be_bytes();
            made.push(low);
            self.rest &= (1 << self.filled) - 1;
        }
    }
}

/// Symbols by their numbers, of those from `base` on; where they are not there, the scan is
/// over.
#[track_caller]
pub(super) fn part<'s>(
    scan: &Scan<'_>,
    (symbols, base): (&'s [u8], u64),
    (from, to): (u64, u64),
) -> &'s [u8] {
    let part = Span::new(from, to).of(symbols, base);
    scan.state.budget.lost().found(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_what_the_whole_makes() {
        for bits in [6, 5, 4] {
            let symbols: Vec<u8> = (0..200_u8)
                .map(|value| value.wrapping_mul(37) & ((1 << bits) - 1))
                .collect();
            let mut whole = Vec::new();
            Phase::new(bits).push(&symbols, &mut whole);
            for split in 1..20 {
                let mut phase = Phase::new(bits);
                let mut made = Vec::new();
                for piece in symbols.chunks(split) {
                    phase.push(piece, &mut made);
                }
                assert_eq!(made, whole, "{bits} {split}");
            }
        }
    }

    #[test]
    fn symbols_become_bytes() {
        let mut made = Vec::new();
        // "Z2hw" of base64.
        Phase::new(6).push(&[25, 54, 33, 48], &mut made);
        assert_eq!(made, b"ghp");
        made.clear();
        // "M5UHAX3B" of base32.
        Phase::new(5).push(&[12, 29, 20, 7, 0, 23, 27, 1], &mut made);
        assert_eq!(made, b"ghp_a");
    }
}
