//! How far two words are apart, for what is meant by a typing error.

/// Number of single-character changes between two words.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (index, a) in left.chars().take(64).enumerate() {
        let mut diagonal = index;
        let mut previous = index + 1;
        for (slot, b) in row.iter_mut().skip(1).zip(right.chars()) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *slot;
            *slot = replaced.min(previous + 1).min(*slot + 1);
            previous = *slot;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
