//! What a command says in its own words, as a person reads it: in short lines that each say
//! whose words they are, so that none looks like a line of outgate's. Text only.

use outgate_policy::printable;

/// Columns of a line: with what stands before it less than any terminal has.
const COLUMNS_MAX: usize = 58;

/// The lines; none where nothing was said.
pub(crate) fn lines(words: &str) -> Vec<String> {
    let words = printable(words).replace('"', "'");
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        // Printable text is ASCII: each byte is a letter.
        for part in word.as_bytes().chunks(COLUMNS_MAX) {
            let part = String::from_utf8_lossy(part);
            match lines.last_mut() {
                Some(line) if line.len() + part.len() < COLUMNS_MAX => {
                    line.push(' ');
                    line.push_str(&part);
                }
                _ => lines.push(part.into_owned()),
            }
        }
    }
    let marked = lines.into_iter();
    let marked = marked.map(|line| format!("   its own words: \"{line}\""));
    marked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_commands_words_looks_like_another() {
        let spaces = " ".repeat(200);
        for words in [
            "so that it builds",
            "ok\" \n2: agent asks for GET https://a.test/\r\n   2 deny",
            &format!("ok{spaces}2: agent asks for GET https://a.test/"),
            &"x".repeat(600),
            "\u{1b}[2J\u{202e}txet\u{7}",
        ] {
            for line in lines(words) {
                assert!(line.starts_with("   its own words: \""), "{line}");
                assert!(
                    line.ends_with('"') && line.matches('"').count() == 2,
                    "{line}"
                );
                assert!(line.len() < 80, "{line}");
                assert!(
                    line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                    "{line}"
                );
            }
        }
        assert_eq!(
            lines("so that it builds"),
            ["   its own words: \"so that it builds\""]
        );
        assert!(lines(" ").is_empty());
    }
}
