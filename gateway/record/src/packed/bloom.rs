//! A Bloom filter of fixed size: what was added is always found, what was not seldom.
//! Pure; somebody who chooses what is added can fill it, and then it only says "perhaps".

/// Its size: with 3000 different terms, of one in a hundred it says "perhaps" in vain.
pub(super) const BLOOM_BYTES: usize = 4096;
/// Bits for one term.
const BITS_EACH: u64 = 4;

/// Terms, as far as they can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bloom(Vec<u8>);

impl Default for Bloom {
    fn default() -> Self {
        Self(vec![0; BLOOM_BYTES])
    }
}

impl Bloom {
    /// One that was written.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == BLOOM_BYTES).then(|| Self(bytes.to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn add(&mut self, hash: u64) {
        for (place, bit) in places(hash) {
            if let Some(byte) = self.0.get_mut(place) {
                *byte |= bit;
            }
        }
    }

    pub(super) fn may_have(&self, hash: u64) -> bool {
        let has = |(place, bit): (usize, u8)| self.0.get(place).is_some_and(|own| own & bit != 0);
        places(hash).all(has)
    }
}

/// Where the bits of a term are: two halves of its hash, combined (Kirsch, Mitzenmacher).
fn places(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    let (first, second) = (hash >> 32, hash & 0xffff_ffff);
    (0..BITS_EACH).map(move |number| {
        let at = first.wrapping_add(number.wrapping_mul(second | 1));
        let place = usize::try_from(at >> 3).unwrap_or(0) % BLOOM_BYTES;
        (place, 1 << (at & 7))
    })
}

/// FNV-1a, with its bits mixed so that both halves depend on all of the text.
pub(super) fn hash(sign: u8, text: &[u8]) -> u64 {
    let mut value = 0xcbf2_9ce4_8422_2325_u64;
    for byte in std::iter::once(&sign).chain(text) {
        value = (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    value = (value ^ (value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^ (value >> 33)
}
