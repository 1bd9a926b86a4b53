//! SHA-1 (FIPS 180-4 6.1), by which NSS finds the certificate that a judgement is about.
//! It keeps nothing safe here: the certificate itself stands beside it.

/// Bytes of a block.
const BLOCK_BYTES: usize = 64;

/// The digest of a message.
pub(super) fn digest(message: &[u8]) -> [u8; 20] {
    let bits = u64::try_from(message.len()).unwrap_or(u64::MAX) << 3;
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % BLOCK_BYTES != BLOCK_BYTES - size_of::<u64>() {
        padded.push(0);
    }
    padded.extend(bits.to_be_bytes());
    let start = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let state = padded.chunks_exact(BLOCK_BYTES).fold(start, block);
    let mut digest = [0; 20];
    let bytes = state.into_iter().flat_map(u32::to_be_bytes);
    for (place, byte) in digest.iter_mut().zip(bytes) {
        *place = byte;
    }
    digest
}

/// What the state is after one block (FIPS 180-4 6.1.2).
#[expect(
    clippy::many_single_char_names,
    reason = "the standard calls the words of the state so"
)]
fn block(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    let words = block.chunks_exact(4);
    let words = words.filter_map(|word| word.try_into().ok());
    let mut words: Vec<u32> = words.map(u32::from_be_bytes).collect();
    while words.len() < 80 {
        let back = |by: usize| words.iter().nth_back(by - 1).copied().unwrap_or_default();
        words.push((back(3) ^ back(8) ^ back(14) ^ back(16)).rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for (round, word) in words.into_iter().enumerate() {
        let (mixed, constant) = match round {
            ..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
        let next = next.wrapping_add(constant).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let mut after = state;
    for (own, added) in after.iter_mut().zip([a, b, c, d, e]) {
        *own = own.wrapping_add(added);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_the_standard() {
        let million = vec![b'a'; 1_000_000];
        for (message, expected) in [
            (&b""[..], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (&million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
        ] {
            let text = format!("{:02x?}", digest(message)).replace(['[', ',', ' ', ']'], "");
            assert_eq!(text, expected);
        }
    }
}
