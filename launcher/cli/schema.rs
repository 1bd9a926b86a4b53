//! `outgate policy schema`: a JSON Schema of the policy document or of the manifest, for
//! editors, made of the keys that the reader knows.

use std::process::ExitCode;

use clap::Args;
use outgate_policy::{Key, KeyNeed, KeyValue, MANIFEST_KEYS, POLICY_KEYS};
use serde_json::{Map, Value, json};

use crate::report;

const EXAMPLES: &str = "\
Examples:
  outgate policy schema > outgate-policy.schema.json
  outgate policy schema --manifest > outgate.schema.json

Editors that know TOML take it by a line at the top of a file:

  #:schema ./outgate.schema.json";

/// The dialect that the schema is written in.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Print a JSON Schema of the policy document, for editors
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Schema {
    /// That of the manifest, outgate.toml
    #[arg(long)]
    manifest: bool,
}

/// Prints it.
pub(crate) fn schema(options: &Schema) -> ExitCode {
    let (title, beside) = if options.manifest {
        (
            "outgate.toml: a policy and the commands it is for",
            MANIFEST_KEYS,
        )
    } else {
        ("A policy of outgate", &[][..])
    };
    let mut schema = table(&[POLICY_KEYS, beside].concat());
    if let Value::Object(own) = &mut schema {
        own.insert("$schema".to_owned(), json!(DIALECT));
        own.insert("title".to_owned(), json!(title));
    }
    report::line(&format!("{schema:#}"));
    ExitCode::SUCCESS
}

/// A table with these keys and no others.
fn table(keys: &[Key]) -> Value {
    let property = |key: &Key| {
        let mut value = value(key.value);
        if let Value::Object(own) = &mut value {
            own.insert("description".to_owned(), json!(key.about));
        }
        (key.name.to_owned(), value)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let needed = keys.iter().filter(|key| key.need == KeyNeed::Always);
    let needed: Vec<&str> = needed.map(|key| key.name).collect();
    let mut own = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Value::Object(own), false) = (&mut own, needed.is_empty()) {
        own.insert("required".to_owned(), json!(needed));
    }
    own
}

fn value(value: KeyValue) -> Value {
    match value {
        KeyValue::Text => json!({ "type": "string" }),
        KeyValue::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        KeyValue::Switch => json!({ "type": "boolean" }),
        KeyValue::Count => json!({ "type": "integer", "minimum": 1 }),
        KeyValue::Quantity(example) => json!({ "type": "string", "examples": [example] }),
        KeyValue::Word(words) => json!({ "type": "string", "enum": words() }),
        KeyValue::Table(keys) => table(keys),
        KeyValue::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
        KeyValue::Rules(keys) => json!({
            "type": "array",
            "items": { "anyOf": [{ "type": "string" }, table(keys)] },
        }),
        KeyValue::TextMap => json!({
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
        KeyValue::Policies(keys) => json!({
            "type": "object",
            "additionalProperties": table(&[keys, POLICY_KEYS].concat()),
        }),
    }
}
