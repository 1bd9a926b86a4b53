//! The `[filesystem]` table of a policy document, and its `[[note]]` tables. Values
//! only: nothing here opens or looks at a file.

use super::keys;
use super::moved::moved;
use super::not_for_projects;
use super::reader::{DocumentReader, Item};
use crate::author::{Access, Author};
use crate::grant::Note;
use crate::limits::{MADE_BYTES_MAX, NOTE_BYTES_MAX, NOTES_MAX};

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
