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
        let hidden = letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if hidden { '\u{fffd}' } else { letter }
    };
    text.chars().map(safe).collect()
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
    }
}
