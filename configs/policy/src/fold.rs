//! Case folding, for what some compare without regard to case.

/// Lower case, of every script, character by character, one for all that any change
/// of case makes equal: `ſ` is `s`, dotless `ı` is `i`. Bytes that are not UTF-8
/// stay. Folding a part of a text gives a part of the folded text.
pub(crate) fn fold_case(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let folded: String = chunk.valid().chars().flat_map(folded).collect();
        out.extend_from_slice(folded.as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    out
}

fn folded(character: char) -> impl Iterator<Item = char> {
    // A dotted capital is in lower case an `i`, to some with a dot of its own.
    let plain = if character == 'İ' { 'i' } else { character };
    let upper = plain.to_lowercase().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_change_of_case_makes_equal_is_folded_to_one() {
        for (text, folded) in [
            ("ſecret", "secret"),
            ("admın", "admin"),
            ("admİn", "admin"),
            ("ADMIN", "admin"),
            ("\u{212a}eys", "keys"),
            ("straẞe", "strasse"),
            ("straße", "strasse"),
            ("ςΣσ", "σσσ"),
            ("ﬁle", "file"),
        ] {
            assert_eq!(fold_case(text.as_bytes()), folded.as_bytes(), "{text}");
        }
        // Every character is folded to what its other cases are folded to.
        for character in '\0'..=char::MAX {
            let own = fold_case(character.to_string().as_bytes());
            let upper: String = character.to_uppercase().collect();
            assert_eq!(fold_case(upper.as_bytes()), own, "{character:?}");
            if character != 'İ' {
                let lower: String = character.to_lowercase().collect();
                assert_eq!(fold_case(lower.as_bytes()), own, "{character:?}");
            }
        }
    }
}
