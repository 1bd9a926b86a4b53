//! Hashes of known values under the key of a run: fingerprints that nobody can
//! reverse, and quick ones that say where to look. Knows neither values nor forms.

use sha2::{Digest, Sha256};

/// Bits of the filter for each anchor in it.
const FILTER_SHARE: usize = 64;

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

/// Which hashes any anchor has: a bit for each.
pub(super) struct Filter {
    bits: Vec<u64>,
    mask: u32,
}

impl Filter {
    pub(super) fn of(anchors: impl ExactSizeIterator<Item = u32>) -> Self {
        let wanted = anchors.len().saturating_mul(FILTER_SHARE);
        let size = wanted.next_power_of_two().clamp(1 << 12, 1 << 21);
        let mut filter = Self {
            bits: vec![0; size / 64],
            mask: u32::try_from(size.saturating_sub(1)).unwrap_or(u32::MAX),
        };
        for anchor in anchors {
            let (place, bit) = filter.place(anchor);
            if let Some(word) = filter.bits.get_mut(place) {
                *word |= bit;
            }
        }
        filter
    }

    fn place(&self, hash: u32) -> (usize, u64) {
        let position = hash & self.mask;
        let place = usize::try_from(position >> 6).unwrap_or_default();
        (place, 1u64 << (position & 63))
    }

    pub(super) fn holds(&self, hash: u32) -> bool {
        let (place, bit) = self.place(hash);
        self.bits.get(place).is_some_and(|word| word & bit != 0)
    }
}
