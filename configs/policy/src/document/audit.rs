//! The `[audit]` table of a policy document: where decisions are recorded, what a
//! full disk means, and how long one file of the record gets. Values only; what
//! they mean is decided where the record is written.

use super::keys;
use super::reader::{DocumentReader, Item};
use crate::limits;
use crate::quantity::{QuantityError, parse_size};
use crate::settings::AuditFull;

/// The words for what a full disk means.
pub(super) const FULL: [(&str, AuditFull); 2] =
    [("deny", AuditFull::Deny), ("drop", AuditFull::Drop)];

/// Reads the table.
pub(crate) fn audit(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    reader.table(
        "audit",
        value,
        keys::AUDIT,
        |reader, key, value| match key {
            "file" => audit_file(reader, key, value),
            "full" => {
                if let Some(full) = reader.word(key, value, &FULL) {
                    reader.draft.policy.settings.audit_full = full;
                }
            }
            _ => {
                if let Some(bytes) = reader.quantity(key, value, "64M", rotation) {
                    reader.draft.policy.settings.audit_file_bytes = Some(bytes);
                }
            }
        },
    );
}

/// The size of a file that is worth having one.
fn rotation(text: &str) -> Result<u64, QuantityError> {
    let bytes = parse_size(text)?;
    if bytes < limits::AUDIT_FILE_BYTES_MIN {
        let message = format!(
            "a file of a record has {} bytes at least",
            limits::AUDIT_FILE_BYTES_MIN
        );
        return Err((message, "write \"64M\", or leave it out"));
    }
    Ok(bytes)
}

fn audit_file(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) {
    let Some((at, text)) = reader.string(key, value) else {
        return;
    };
    match crate::expand::expand(text, reader.draft.context) {
        Ok(path) => reader.draft.policy.audit_file = Some(path),
        Err(crate::expand::PathFault::Unknown(name)) => {
            let message = format!("the {name} directory is unknown here");
            reader
                .draft
                .fault(at.error(0, message, Some("write the path itself".to_owned())));
        }
        Err(crate::expand::PathFault::Wrong(message, hint)) => {
            reader
                .draft
                .fault(at.error(0, message, Some(hint.to_owned())));
        }
    }
}
