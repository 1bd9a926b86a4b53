//! Whether characters were drawn by chance: they change between small letters,
//! capitals and digits more often than those of words and identifiers do.

/// Whether a text looks drawn by chance. For texts of some twenty characters and
/// more; what has no digit, or letters of one case alone, needs the more changes.
pub(crate) fn is(text: &[u8]) -> bool {
    let of = |class| {
        text.iter()
            .filter(|byte| self::class(**byte) == class)
            .count()
    };
    let (small, capital, digit) = (of(Class::Small), of(Class::Capital), of(Class::Digit));
    let pairs = text.iter().zip(text.iter().skip(1));
    let changes = pairs
        .filter(|(one, other)| {
            let (one, other) = (class(**one), class(**other));
            one != other && one != Class::Other && other != Class::Other
        })
        .count();
    // Changes that are too many for words, of so many characters.
    let (many, of) = match (small.min(capital) >= 2, digit) {
        (true, 1..) => (1, 4),
        (false, 2..) => (1, 3),
        (_, _) => (2, 5),
    };
    small.saturating_add(capital) >= 2
        && small.max(capital) < text.len()
        && changes.saturating_mul(of) >= text.len().saturating_mul(many)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Capital,
    Digit,
    Other,
}

fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Small,
        b'A'..=b'Z' => Class::Capital,
        b'0'..=b'9' => Class::Digit,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn chance_is_told_from_words() {
        for text in [
            "x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEKfLqPmQe",
            "sk-test-4eC39HqLyjWDarjtT1zdp7dc",
            "3f786850e387550fdab836ed7e6dc881de23001b",
        ] {
            assert!(is(text.as_bytes()), "{text}");
        }
        for text in [
            "sk-circle-fade-dot-number-twelve",
            "getElementsByClassNameAndOtherThings",
            "how-we-made-everything-faster-in-2024",
            "THIS_IS_THE_NAME_OF_A_CONSTANT",
            "com/example/project/internal/Main",
            "20240102030405060708",
        ] {
            assert!(!is(text.as_bytes()), "{text}");
        }
    }
}
