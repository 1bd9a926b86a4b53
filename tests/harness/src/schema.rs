//! As much of JSON Schema (draft 2020-12) as our schemas use. A keyword that is not known
//! here is a fault of the schema: nothing that it says is passed over.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value};

/// A schema, and what it refers to.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    patterns: BTreeMap<String, Regex>,
}

/// Keywords that only describe.
const ABOUT: [&str; 4] = ["$schema", "$defs", "title", "description"];

impl Schema {
    /// Reads a schema.
    ///
    /// # Panics
    /// When it is not JSON, or has a pattern that is none.
    pub fn new(text: &str) -> Self {
        let root = serde_json::from_str(text).expect("a schema is JSON");
        let mut patterns = BTreeMap::new();
        collect(&root, &mut patterns);
        Self { root, patterns }
    }

    /// What of a value is not as the schema says, each with the place of it.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(&self.root, value, "", &mut faults);
        faults
    }

    fn matches(&self, text: &str, pattern: &Value) -> bool {
        let pattern = pattern.as_str().and_then(|text| self.patterns.get(text));
        pattern.is_some_and(|pattern| pattern.is_match(text))
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
        let Some(keywords) = schema.as_object() else {
            return faults.push(format!("{place}: the schema is no object"));
        };
        for (keyword, said) in keywords {
            let holds = match keyword.as_str() {
                word if ABOUT.contains(&word) => true,
                "type" => is_of(value, said),
                "const" => value == said,
                "enum" => said.as_array().is_some_and(|all| all.contains(value)),
                "minimum" => at_most(said, value),
                "maximum" => at_most(value, said),
                "minLength" => value.as_str().is_none_or(|text| reaches(text.len(), said)),
                "minItems" => value.as_array().is_none_or(|all| reaches(all.len(), said)),
                "pattern" => value.as_str().is_none_or(|text| self.matches(text, said)),
                "required" => has(value, said),
                "additionalProperties" => said == false && has_no_other(value, keywords),
                // Looked at with `if`.
                "then" | "else" => keywords.contains_key("if"),
                _ => self.descend((keyword, said), keywords, (value, place), faults),
            };
            if !holds {
                faults.push(format!(
                    "{place}: `{keyword}` {said} does not hold of {value}"
                ));
            }
        }
    }

    /// Looks at what has schemas inside; whether the keyword is one of those.
    fn descend(
        &self,
        (keyword, said): (&str, &Value),
        keywords: &Map<String, Value>,
        (value, place): (&Value, &str),
        faults: &mut Vec<String>,
    ) -> bool {
        match keyword {
            "properties" => {
                for (name, member) in said.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        self.check(member, value, &format!("{place}/{name}"), faults);
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    self.check(said, item, &format!("{place}/items"), faults);
                }
            }
            "$ref" => {
                let target = said.as_str().and_then(|text| text.strip_prefix('#'));
                let Some(target) = target.and_then(|target| self.root.pointer(target)) else {
                    return false;
                };
                self.check(target, value, place, faults);
            }
            "if" => {
                let mut against = Vec::new();
                self.check(said, value, place, &mut against);
                let branch = if against.is_empty() { "then" } else { "else" };
                if let Some(branch) = keywords.get(branch) {
                    self.check(branch, value, place, faults);
                }
            }
            _ => return false,
        }
        true
    }
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

fn at_most(less: &Value, more: &Value) -> bool {
    match (less.as_i64(), more.as_i64()) {
        (Some(less), Some(more)) => less <= more,
        // Beyond what fits there is only what is large.
        (Some(_), None) => more.is_u64(),
        (None, _) => false,
    }
}

fn reaches(length: usize, least: &Value) -> bool {
    least
        .as_u64()
        .is_some_and(|least| u64::try_from(length).is_ok_and(|length| length >= least))
}

/// All patterns of a schema, ready.
fn collect(schema: &Value, patterns: &mut BTreeMap<String, Regex>) {
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let ready = Regex::new(pattern).expect("a pattern");
        patterns.insert(pattern.to_owned(), ready);
    }
    for part in schema
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, part)| part)
    {
        collect(part, patterns);
    }
}

fn has(value: &Value, names: &Value) -> bool {
    let mut names = names.as_array().into_iter().flatten();
    names.all(|name| name.as_str().is_some_and(|name| value.get(name).is_some()))
}

fn has_no_other(value: &Value, keywords: &Map<String, Value>) -> bool {
    let described = keywords.get("properties").and_then(Value::as_object);
    let described: BTreeSet<_> = described
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    let mut members = value.as_object().into_iter().flatten();
    members.all(|(name, _)| described.contains(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_as_a_schema_says_is_a_fault() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": { "type": "integer", "minimum": 1, "maximum": 9 },
                "t": { "type": "string", "pattern": "^[a-z]+$", "minLength": 2 },
                "k": { "enum": ["x", "y"] },
                "l": { "type": "array", "items": { "$ref": "#/$defs/one" }, "minItems": 1 },
            },
            "required": ["k"],
            "additionalProperties": false,
            "if": { "properties": { "k": { "const": "x" } } },
            "then": { "required": ["n"] },
            "else": { "required": ["t"] },
            "$defs": { "one": { "const": 1 } },
        });
        let schema = Schema::new(&schema.to_string());
        for good in [
            json!({ "k": "x", "n": 9 }),
            json!({ "k": "y", "t": "ab", "l": [1, 1] }),
        ] {
            assert_eq!(schema.faults(&good), Vec::<String>::new());
        }
        for bad in [
            json!([]),
            json!({ "n": 1 }),
            json!({ "k": "x" }),
            json!({ "k": "y", "n": 1 }),
            json!({ "k": "x", "n": 0 }),
            json!({ "k": "x", "n": 10 }),
            json!({ "k": "x", "n": "1" }),
            json!({ "k": "x", "n": u64::MAX }),
            json!({ "k": "z", "t": "ab" }),
            json!({ "k": "y", "t": "a1" }),
            json!({ "k": "y", "t": "a" }),
            json!({ "k": "x", "n": 1, "l": [] }),
            json!({ "k": "x", "n": 1, "l": [2] }),
            json!({ "k": "x", "n": 1, "other": 1 }),
        ] {
            assert_ne!(schema.faults(&bad), Vec::<String>::new(), "{bad}");
        }
        let unknown = Schema::new(r#"{"maxLength":1}"#);
        assert_eq!(unknown.faults(&json!("a")).len(), 1);
    }
}
