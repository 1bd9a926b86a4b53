//! Hashes of known values under the key of a run: fingerprints that nobody can
//! reverse, and quick ones that say where to look. Knows neither values nor forms.

use sha2::{Digest, Sha256};

/// Size of a filter, as a power of two, in bits.
const FILTER_LOG_MIN: u32 = 12;
const FILTER_LOG_MAX: u32 = 21;

/// The fingerprint of a window.
pub(super) fn print(key: &[u8; 32], text: &[u8]) -> [u8; 16] {
    let digest = Sha256::new()
        .chain_update(key)
        .chain_update(text)
        .finalize();
    digest.first_chunk::<16>().copied().unwrap_or_default()
}

fn word(key: &[u8; 32], place: usize) -> u64 {
    let bytes = key.get(place..).and_then(|rest| rest.first_chunk::<8>());
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// A quick hash of four bytes under the key.
pub(super) fn quick(key: &[u8; 32], bytes: u32) -> u32 {
    let mixed = (u64::from(bytes) ^ word(key, 0)).wrapping_mul(word(key, 8) | 1);
    let [.., a, b, c, d] = (mixed ^ (mixed >> 29))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(32)
        .to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A quick hash of eight bytes under the key.
pub(super) fn quick_long(key: &[u8; 32], bytes: [u8; 8]) -> u32 {
    let mixed = (u64::from_le_bytes(bytes) ^ word(key, 16)).wrapping_mul(word(key, 24) | 1);
    let [a, b, c, d, ..] = (mixed ^ (mixed >> 31))
        .wrapping_mul(0x94d0_49bb_1331_11eb)
        .to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// How four bytes become a place in the filter: with one multiplication, since
/// this is done for all that is scanned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    turn: u32,
    factor: u32,
}

impl Mix {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let word = word(key, 12);
        Self {
            turn: u32::try_from(word >> 32).unwrap_or_default(),
            factor: u32::try_from(word & 0xffff_ffff).unwrap_or_default() | 1,
        }
    }

    /// Where in the greatest filter four bytes stand.
    pub(super) fn place(self, bytes: u32) -> u32 {
        (bytes ^ self.turn).wrapping_mul(self.factor) >> 32_u32.saturating_sub(FILTER_LOG_MAX)
    }
}

/// Which four bytes any anchor may have: a bit for each of their places.
pub(super) struct AnchorFilter {
    bits: Vec<u64>,
    mix: Mix,
    /// By how much a place is halved until it is one of this filter.
    shift: u32,
}

impl AnchorFilter {
    /// A filter with so many bits for each anchor, which have these places.
    pub(super) fn new(mix: Mix, places: &[u32], share: usize) -> Self {
        let wanted = places.len().saturating_mul(share);
        let log = wanted.next_power_of_two().trailing_zeros();
        let log = log.clamp(FILTER_LOG_MIN, FILTER_LOG_MAX);
        let mut filter = Self {
            bits: vec![0; 1 << log.saturating_sub(6)],
            mix,
            shift: FILTER_LOG_MAX.saturating_sub(log),
        };
        for place in places {
            let (word, bit) = filter.bit(*place);
            if let Some(word) = filter.bits.get_mut(word) {
                *word |= bit;
            }
        }
        filter
    }

    fn bit(&self, place: u32) -> (usize, u64) {
        let place = place >> self.shift;
        let word = usize::try_from(place >> 6).unwrap_or_default();
        (word, 1_u64 << (place & 63))
    }

    /// Whether an anchor may have these bytes.
    #[inline]
    pub(super) fn holds(&self, bytes: u32) -> bool {
        let (word, bit) = self.bit(self.mix.place(bytes));
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}
