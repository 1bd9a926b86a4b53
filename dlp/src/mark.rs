//! Keyed fingerprints of values: the same value has the same mark under one
//! key, and nobody without the key learns anything from it.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Bytes of a mark: enough that two values of one run do not meet.
const BYTES: usize = 8;

/// The mark of a value. The key stands on both sides, so that a known mark
/// cannot be extended to that of a longer value.
pub(crate) fn mark(key: &[u8; 32], value: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(value);
    hash.update(key);
    let mut text = String::with_capacity(BYTES * 2);
    for byte in hash.finalize().iter().take(BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_depends_on_key_and_value() {
        let one = mark(&[1; 32], b"value");
        assert_eq!(one.len(), 16);
        assert_eq!(one, mark(&[1; 32], b"value"));
        assert_ne!(one, mark(&[2; 32], b"value"));
        assert_ne!(one, mark(&[1; 32], b"values"));
    }
}
