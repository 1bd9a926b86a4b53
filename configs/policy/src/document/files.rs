//! The `[filesystem]` table of a policy document, and its `[[note]]` tables. Values
//! only: nothing here opens or looks at a file.

use super::keys;
use super::moved::moved;
use super::not_for_projects;
use super::reader::{DocumentReader, Item};
use crate::author::{Access, Author};
use crate::grant::Note;
use crate::limits::{DENIAL_NOTE_BYTES_MAX, MADE_BYTES_MAX, NOTE_BYTES_MAX, NOTES_MAX};
use crate::printable::printable;

/// Reads `[filesystem]`.
pub(crate) fn filesystem(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    if reader.author != Author::Project
        && let Some(table) = value.get_ref().as_table()
        && let Some(value) = table.get("moved")
    {
        // Before the places that it is about.
        moved(reader, value);
    }
    reader.table(
        "filesystem",
        value,
        keys::FILESYSTEM,
        |reader, key, value| {
            let access = match key {
                "read" => Access::Read,
                "deny" => Access::Deny,
                _ => Access::Write,
            };
            if reader.author == Author::Project && access != Access::Deny {
                return not_for_projects(reader, &format!("filesystem.{key}"), value);
            }
            match key {
                "new" => return new_files(reader, value),
                "moved" => return,
                _ => {}
            }
            for (at, path) in reader.strings(key, value) {
                reader.draft.path(at, access, path, reader.author);
            }
        },
    );
    // They are about this document alone.
    reader.draft.moves.clear();
}

/// Files that are made where they are absent: each path, and the text it begins with.
fn new_files(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let Some(table) = reader.expect_table("new", value) else {
        return;
    };
    for (path, value) in table {
        let at = reader.at(path.span().start);
        let path: &str = path.get_ref();
        let Some((_, text)) = reader.string(path, value) else {
            continue;
        };
        if path.ends_with('/') {
            let hint = "write it under `write`, with its `/`";
            reader.fault(value, "a directory is made without a text", hint);
        } else if text.len() > MADE_BYTES_MAX {
            let message = format!(
                "the text has {} bytes, more than {MADE_BYTES_MAX}",
                text.len()
            );
            reader.fault(
                value,
                &message,
                "what is larger is for the program to write",
            );
        } else {
            reader.draft.new_file(at, (path, text), reader.author);
        }
    }
}

/// What the operator says with every denial.
pub(crate) fn denial_note(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    let Some((_, text)) = reader.string("denial_note", value) else {
        return;
    };
    if text.trim().is_empty() || printable(text) != text || text.len() > DENIAL_NOTE_BYTES_MAX {
        let message = format!(
            "a note on denials is one line of at most {DENIAL_NOTE_BYTES_MAX} bytes in printable ASCII"
        );
        let hint = "write `denial_note = \"Ask #platform before adding hosts\"`";
        return reader.fault(value, &message, hint);
    }
    reader.draft.policy.settings.denial_note = Some(text.into());
}

/// Reads `[[note]]`.
pub(crate) fn note(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for item in reader.array("note", value) {
        let start = reader.at(item.span().start);
        let mut note = Note {
            text: String::new(),
            unless: Vec::new(),
            place: start.place(),
        };
        reader.table("note", item, keys::NOTE, |reader, key, value| {
            if key == "text" {
                let text = reader.string(key, value);
                note.text = text.map(|(_, text)| text.to_owned()).unwrap_or_default();
            } else {
                let all = reader.strings(key, value);
                note.unless = all.into_iter().map(|(_, text)| text.to_owned()).collect();
            }
        });
        let is_line = !note.text.is_empty() && !note.text.chars().any(char::is_control);
        if !is_line || note.text.len() > NOTE_BYTES_MAX {
            let message = format!("a note is one line of at most {NOTE_BYTES_MAX} bytes");
            reader.fault(item, &message, "write `text = \"…\"`");
        } else if reader.draft.policy.notes.len() < NOTES_MAX {
            reader.draft.policy.notes.push(note);
        } else {
            let message = format!("the policy has more than {NOTES_MAX} notes");
            reader.fault(item, &message, "take some out");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;
    use crate::compile::tests::context;
    use crate::source::{Source, SourceKind};

    fn note(sources: &[(SourceKind, &str)]) -> Result<Option<String>, String> {
        let sources = sources.iter().map(|(kind, text)| Source {
            kind: *kind,
            place: "a.toml".to_owned(),
            text: (*text).to_owned(),
        });
        let policy = compile(&sources.collect::<Vec<_>>(), &context());
        let policy = policy.map_err(|errors| errors.to_string())?;
        Ok(policy.settings().denial_note.as_deref().map(str::to_owned))
    }

    #[test]
    fn a_note_on_denials_is_one_short_line_of_the_users() {
        const ONE: &str = "denial_note = \"Ask #platform\"";
        let user = SourceKind::Document;
        assert_eq!(note(&[(user, "")]), Ok(None));
        assert_eq!(note(&[(user, ONE)]), Ok(Some("Ask #platform".to_owned())));
        let other = (user, "denial_note = \"Ask Ann\"");
        assert_eq!(note(&[(user, ONE), other]), Ok(Some("Ask Ann".to_owned())));
        let longest = format!("denial_note = \"{}\"", "x".repeat(200));
        assert_eq!(note(&[(user, &longest)]), Ok(Some("x".repeat(200))));
        for wrong in [
            &format!("denial_note = \"{}\"", "x".repeat(201)),
            "denial_note = \"\"",
            "denial_note = \"  \"",
            "denial_note = \"a\\nb\"",
            "denial_note = \"\\u001b[2J\"",
            "denial_note = \"\\u202eb\"",
            "denial_note = [\"a\"]",
        ] {
            assert!(note(&[(user, wrong)]).is_err(), "{wrong}");
        }
        assert!(
            note(&[(SourceKind::Project, ONE)])
                .unwrap_err()
                .contains("only narrows")
        );
    }
}
