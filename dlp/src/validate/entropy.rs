//! Shannon entropy of a short text: tells random characters from words and
//! from placeholders.

use std::sync::LazyLock;

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

/// Whether a text, or some part of it, has so many bits per byte: what is dull
/// behind or before a credential does not make it a placeholder.
pub(crate) fn is_dense(text: &[u8], least: f64) -> bool {
    bits(text) >= least || has_window(text, least)
}

/// Whether a window has so many bits per byte. Counts what comes in and what falls
/// out, since a text that is looked at again and again may be long.
fn has_window(text: &[u8], least: f64) -> bool {
    /// `n log2 n` of every count.
    static TERMS: LazyLock<[f64; WINDOW_BYTES + 1]> = LazyLock::new(|| {
        let mut terms = [0.0; WINDOW_BYTES + 1];
        for (count, term) in (0_u32..).zip(&mut terms).skip(1) {
            *term = f64::from(count) * f64::from(count).log2();
        }
        terms
    });
    let term = |count: u8| TERMS.get(usize::from(count)).copied().unwrap_or_default();
    let mut counts = [0_u8; 256];
    let mut sum = 0.0;
    let mut change = |byte: u8, by: i8| {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            let before = *count;
            *count = before.saturating_add_signed(by);
            sum += term(*count) - term(before);
        }
        sum
    };
    let length = f64::from(u32::try_from(WINDOW_BYTES).unwrap_or(u32::MAX));
    for (place, byte) in text.iter().enumerate() {
        let before = place.checked_sub(WINDOW_BYTES);
        if let Some(old) = before.and_then(|place| text.get(place)) {
            change(*old, -1);
        }
        let sum = change(*byte, 1);
        let end = place.saturating_add(1);
        let is_whole = end.checked_sub(WINDOW_BYTES);
        if is_whole.is_some_and(|start| start.is_multiple_of(STEP_BYTES))
            && length.log2() - sum / length >= least
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{STEP_BYTES, WINDOW_BYTES, bits, has_window, is_dense};

    #[test]
    fn filling_does_not_hide_what_is_dense() {
        let dense = "kV8pq2LmzzR41xQw7tYb3NfHs6";
        let filled = [dense, &"a".repeat(300)].concat();
        assert!(bits(filled.as_bytes()) < 1.0);
        assert!(is_dense(filled.as_bytes(), 3.5));
        assert!(!is_dense(&[b'a'; 300], 0.1));
    }

    #[test]
    fn windows_have_the_entropy_of_what_is_in_them() {
        let mut dice = crate::detector_sample::SampleDice::new(9);
        for length in [0, 31, 32, 33, 40, 200, 1000] {
            let text: Vec<u8> = dice.bytes(length).iter().map(|byte| byte % 23).collect();
            let windows = text.windows(WINDOW_BYTES).step_by(STEP_BYTES);
            let most = windows.map(bits).fold(0.0, f64::max);
            assert_eq!(has_window(&text, most - 1e-9), most > 0.0, "{length}");
            assert!(!has_window(&text, most + 1e-9), "{length}");
        }
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
