//! Symbols of four, five or six bits to bytes, from one of the places where a
//! byte may begin.

/// How many bytes before a piece the first byte it makes may have begun: the
/// symbols of one byte, with what may stand between them.
pub(super) const LAG: u64 = 64;

/// Decodes one phase of a run.
pub(super) struct Phase {
    bits: u32,
    skip: usize,
    rest: u32,
    filled: u32,
}

impl Phase {
    /// A phase that leaves out the first `skip` symbols.
    pub(super) fn new(bits: u32, skip: usize) -> Self {
        Self {
            bits,
            skip,
            rest: 0,
            filled: 0,
        }
    }

    /// Appends the bytes that `symbols` complete.
    pub(super) fn push(&mut self, symbols: &[u8], made: &mut Vec<u8>) {
        let skipped = self.skip.min(symbols.len());
        self.skip = self.skip.saturating_sub(skipped);
        let mut symbols = symbols.get(skipped..).unwrap_or_default();
        if self.bits == 6 && self.skip == 0 {
            symbols = self.by_fours(symbols, made);
        }
        for symbol in symbols {
            self.one(*symbol, made);
        }
    }

    /// Most of base64: four symbols are three bytes.
    fn by_fours<'a>(&mut self, mut symbols: &'a [u8], made: &mut Vec<u8>) -> &'a [u8] {
        while self.filled != 0
            && let Some((first, rest)) = symbols.split_first()
        {
            self.one(*first, made);
            symbols = rest;
        }
        let (groups, rest) = symbols.as_chunks::<4>();
        let start = made.len();
        made.resize(start.saturating_add(groups.len().saturating_mul(3)), 0);
        let space = made.get_mut(start..).unwrap_or_default();
        for (group, bytes) in groups.iter().zip(space.as_chunks_mut::<3>().0) {
            let [a, b, c, d] = group.map(u32::from);
            let [_, one, two, three] = ((a << 18) | (b << 12) | (c << 6) | d).to_be_bytes();
            *bytes = [one, two, three];
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_what_the_whole_makes() {
        let symbols: Vec<u8> = (0..200_u8)
            .map(|value| value.wrapping_mul(37) & 0x0f)
            .collect();
        for (bits, phases) in [(6, 4), (5, 8), (4, 2)] {
            for skip in 0..phases {
                let mut whole = Vec::new();
                Phase::new(bits, skip).push(&symbols, &mut whole);
                for split in 1..20 {
                    let mut phase = Phase::new(bits, skip);
                    let mut made = Vec::new();
                    for piece in symbols.chunks(split) {
                        phase.push(piece, &mut made);
                    }
                    assert_eq!(made, whole, "{bits} {skip} {split}");
                }
            }
        }
    }

    #[test]
    fn symbols_become_bytes() {
        let mut made = Vec::new();
        // "Z2hw" of base64.
        Phase::new(6, 0).push(&[25, 54, 33, 48], &mut made);
        assert_eq!(made, b"ghp");
    }
}
