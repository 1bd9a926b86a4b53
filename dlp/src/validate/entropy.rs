//! Shannon entropy of a short text: tells random characters from words and
//! from placeholders.

/// Bits per byte, from 0 to 8. Nothing has none.
pub(crate) fn bits(text: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
    }
    let total = counts.iter().copied().map(f64::from).sum::<f64>();
    let mut bits = 0.0;
    for count in counts.into_iter().filter(|count| *count > 0) {
        let share = f64::from(count) / total;
        bits -= share * share.log2();
    }
    bits
}

/// Length of a window, in bytes.
const WINDOW_BYTES: usize = 32;
/// Distance of windows, in bytes.
const STEP_BYTES: usize = 8;

/// Bits per byte of the densest part of a text: what is dull behind or before a
/// credential does not make it a placeholder.
pub(crate) fn densest(text: &[u8]) -> f64 {
    let windows = text.windows(WINDOW_BYTES).step_by(STEP_BYTES);
    windows.map(bits).fold(bits(text), f64::max)
}

#[cfg(test)]
mod tests {
    use super::{bits, densest};

    #[test]
    fn filling_does_not_hide_what_is_dense() {
        let dense = "kV8pq2LmzzR41xQw7tYb3NfHs6";
        let filled = [dense, &"a".repeat(300)].concat();
        assert!(bits(filled.as_bytes()) < 1.0);
        assert!(densest(filled.as_bytes()) > 3.5);
        assert!(densest(&[b'a'; 300]) < 0.1);
    }

    #[test]
    fn entropy_is_that_of_the_textbook() {
        for (text, expected) in [
            ("", 0.0),
            ("aaaaaaaa", 0.0),
            ("abab", 1.0),
            ("abcd", 2.0),
            ("0123456789abcdef", 4.0),
            ("aabb cc", 1.950_212_064_914_747),
        ] {
            let found = bits(text.as_bytes());
            assert!((found - expected).abs() < 1e-9, "{text}: {found}");
        }
    }
}
