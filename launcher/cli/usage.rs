//! What a person means who writes a command line that nobody understands: text in, text out.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::ErrorKind;
use outgate_policy::printable;

/// Words of a command line that are shown at most.
const WORDS_SHOWN_MAX: usize = 8;

/// The words of the command line; `help` first asks for help about what follows.
pub(crate) fn words(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = all.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// What to write in the place of a command line that clap refused. `is_program` tells whether
/// a word is one that could be run.
pub(crate) fn advice(
    error: &clap::Error,
    words: &[OsString],
    is_program: impl Fn(&str) -> bool,
) -> Option<String> {
    let first = words.get(1)?.to_str()?;
    let run = |before: &str| {
        Some(format!(
            "To run a program: outgate run {before}{}",
            shown(words.get(1..)?)
        ))
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument if first == "run" => Some(
            "Name the program and its arguments, best behind `--`: outgate run -- make test"
                .to_owned(),
        ),
        // What `run` is left out of: an option first, or a program.
        ErrorKind::UnknownArgument if first.starts_with('-') => run(""),
        ErrorKind::InvalidSubcommand if is_program(first) => run("-- "),
        _ => None,
    }
}

/// Words as they were typed, as far as that fits into a line.
fn shown(words: &[OsString]) -> String {
    let mut line = String::new();
    for word in words.iter().take(WORDS_SHOWN_MAX) {
        let word = word.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
        let separator = if line.is_empty() { "" } else { " " };
        // Writing to a text cannot fail.
        let _ = if !word.is_empty() && word.chars().all(is_plain) {
            write!(line, "{separator}{word}")
        } else {
            write!(
                line,
                "{separator}'{}'",
                printable(&word).replace('\'', r"'\''")
            )
        };
    }
    if words.len() > WORDS_SHOWN_MAX {
        line.push_str(" ...");
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn whoever_leaves_out_a_word_is_told_it() {
        for (line, wanted) in [
            ("make test", Some("outgate run -- make test")),
            (
                "-P github -- git 'a b'",
                Some("outgate run -P github -- git 'a b'"),
            ),
            ("--auto claude", Some("outgate run --auto claude")),
            ("run", Some("outgate run -- make test")),
            ("run -P github", Some("outgate run -- make test")),
            ("rnu -- x", None),
            ("run --alow x -- true", None),
            ("kill", None),
        ] {
            let mut all = vec![OsString::from("outgate")];
            // No blank stands in these quotes but one.
            let line = line.replace("'a b'", "a_b");
            all.extend(
                line.split(' ')
                    .map(|word| OsString::from(word.replace('_', " "))),
            );
            let error = Arguments::try_parse_from(&all).unwrap_err();
            let advice = advice(&error, &all, |word| word == "make");
            let ends = |wanted: &str| advice.as_deref().is_some_and(|said| said.ends_with(wanted));
            assert!(wanted.map_or(advice.is_none(), ends), "{line}: {advice:?}");
        }
    }

    #[test]
    fn help_is_asked_for_in_words_too() {
        for (line, wanted) in [
            ("outgate help", "outgate --help"),
            ("outgate help run", "outgate run --help"),
            ("outgate help policy check", "outgate policy check --help"),
            ("outgate run help", "outgate run help"),
            ("outgate", "outgate"),
        ] {
            let words = words(line.split(' ').map(OsString::from));
            assert_eq!(words.join(OsString::from(" ").as_os_str()), wanted);
        }
    }
}
