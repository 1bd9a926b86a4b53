//! The `[[arguments]]` tables of a policy document: what a program is started with besides.

use super::keys;
use super::reader::{DocumentReader, Item};
use crate::grant::Arguments;
use crate::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_WORDS_MAX, ARGUMENTS_MAX, NOTE_BYTES_MAX};

/// Reads `[[arguments]]`.
pub(crate) fn arguments(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for item in reader.array("arguments", value) {
        let mut table = Arguments {
            program: String::new(),
            first: Vec::new(),
            unless: Vec::new(),
            text: String::new(),
            place: reader.at(item.span().start).place(),
        };
        reader.table(
            "arguments",
            item,
            keys::ARGUMENTS,
            |reader, key, value| match key {
                "program" => table.program = text(reader, key, value),
                "text" => table.text = text(reader, key, value),
                "first" => table.first = list(reader, key, value),
                _ => table.unless = list(reader, key, value),
            },
        );
        if let Some((message, hint)) = fault(&table) {
            reader.fault(item, &message, hint);
        } else if reader.draft.policy.arguments.len() < ARGUMENTS_MAX {
            reader.draft.policy.arguments.push(table);
        } else {
            let message = format!("the policy has more than {ARGUMENTS_MAX} tables of arguments");
            reader.fault(item, &message, "take some out");
        }
    }
}

fn text(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) -> String {
    let text = reader.string(key, value);
    text.map(|(_, text)| text.to_owned()).unwrap_or_default()
}

fn list(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) -> Vec<String> {
    let all = reader.strings(key, value);
    all.into_iter().map(|(_, text)| text.to_owned()).collect()
}

/// What is wrong with a table, and what to do.
fn fault(table: &Arguments) -> Option<(String, &'static str)> {
    let is_name = !table.program.is_empty() && !table.program.contains('/');
    if !is_name || table.first.is_empty() {
        let message = "a program and its first arguments are missing".to_owned();
        return Some((
            message,
            "write `program = \"NAME\"` and `first = [\"WORD\"]`",
        ));
    }
    let words = || table.first.iter().chain(&table.unless);
    let is_word = |word: &String| {
        !word.is_empty() && word.len() <= ARGUMENT_BYTES_MAX && !word.chars().any(char::is_control)
    };
    if words().count() > ARGUMENT_WORDS_MAX || !words().all(is_word) {
        let message = format!(
            "arguments are at most {ARGUMENT_WORDS_MAX} words of 1 to {ARGUMENT_BYTES_MAX} bytes"
        );
        return Some((message, "take some out"));
    }
    let is_line = !table.text.chars().any(char::is_control) && table.text.len() <= NOTE_BYTES_MAX;
    (!is_line).then(|| {
        let message = format!("a text is one line of at most {NOTE_BYTES_MAX} bytes");
        (message, "write `text = \"\u{2026}\"`")
    })
}
