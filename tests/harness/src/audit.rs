//! Reads an audit file as a stranger would: one JSON value per line.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Every record of `file`, in order; empty when there is no file.
///
/// # Panics
/// When a line is not JSON.
pub fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in record {line}"))
        })
        .collect()
}

/// The text of a member of a record; empty when it has none.
pub fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Records of one kind.
pub fn of_kind<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| text(record, "kind") == kind)
        .collect()
}
