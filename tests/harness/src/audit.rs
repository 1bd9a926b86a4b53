//! Reads an audit file as a stranger would: one JSON value per line, each as the published
//! schema says.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use crate::schema::Schema;

/// What a record may be.
const SCHEMA: &str = include_str!("../../../gateway/record/schema.json");

/// Every record of `file`, in order; empty when there is no file.
///
/// # Panics
/// When a line is not JSON, or not what the schema says.
pub fn records(file: &Path) -> Vec<Value> {
    read(&fs::read_to_string(file).unwrap_or_default())
}

/// The same of a file that is written meanwhile: a reader may meet a write half done (write(2)).
///
/// # Panics
/// When a whole line is not JSON, or not what the schema says.
pub fn records_so_far(file: &Path) -> Vec<Value> {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    read(whole)
}

fn read(text: &str) -> Vec<Value> {
    static READ: OnceLock<Schema> = OnceLock::new();
    let schema = READ.get_or_init(|| Schema::new(SCHEMA));
    let read = |line: &str| {
        let record = serde_json::from_str(line);
        let record = record.unwrap_or_else(|error| panic!("{error} in record {line}"));
        let faults = schema.faults(&record);
        assert!(faults.is_empty(), "{faults:?} in record {line}");
        record
    };
    text.lines().map(read).collect()
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
