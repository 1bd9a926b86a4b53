//! Many bytes looked at together: what was found out about each as one bit.

/// The lowest bits of eight bytes side by side, the first byte's lowest. The bytes
/// are one or zero.
pub(crate) fn gathered(bytes: u64) -> u64 {
    // Each product ends up in a bit of its own of the highest byte.
    bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_bit() {
        for bits in 0..=u8::MAX {
            let bytes = [0, 1, 2, 3, 4, 5, 6, 7].map(|place| bits >> place & 1);
            assert_eq!(gathered(u64::from_le_bytes(bytes)), u64::from(bits));
        }
    }
}
