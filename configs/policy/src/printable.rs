//! Text of others, made safe for terminals, fields and records of people: the one place
//! that says what is.

/// Text of others as ASCII without controls, so that it may reach a terminal.
pub fn printable(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|c| {
            let plain = c.is_ascii_graphic() || c == ' ';
            let escape = (!plain).then(|| c.escape_default());
            plain
                .then_some(c)
                .into_iter()
                .chain(escape.into_iter().flatten())
        })
        .collect()
}

/// Names of the user's own files, in their letters: without controls and without what turns
/// or hides the letters beside it (Unicode UAX #9).
pub fn legible(text: &str) -> String {
    let safe = |letter: char| {
        let is_hidden = letter.is_control() || is_hiding(letter);
        if is_hidden { '\u{fffd}' } else { letter }
    };
    text.chars().map(safe).collect()
}

/// Whether a character shows nothing, ends a line, or turns around what stands beside it. What
/// chooses between forms of the letter before (U+FE00 to U+FE0F) does neither.
fn is_hiding(letter: char) -> bool {
    matches!(letter,
        '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(printable("a b~"), "a b~");
        assert_eq!(
            printable("\u{1b}[2J\u{e9}\n\u{202e}"),
            "\\u{1b}[2J\\u{e9}\\n\\u{202e}"
        );
        assert_eq!(
            legible("h\u{e9}\u{1b}[2J\u{202e}x\u{9b}"),
            "h\u{e9}\u{fffd}[2J\u{fffd}x\u{fffd}"
        );
        assert_eq!(legible("naïve/文件"), "naïve/文件");
        for hides in [
            '\u{61c}',
            '\u{2060}',
            '\u{206a}',
            '\u{3164}',
            '\u{e0041}',
            '\u{fff9}',
        ] {
            assert_eq!(legible(&format!("a{hides}b")), "a\u{fffd}b", "{hides:?}");
        }
    }
}
