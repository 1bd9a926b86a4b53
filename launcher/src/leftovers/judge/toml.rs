//! TOML to items: the names under which a value stands, and the value. Pure.

use toml::{Table, Value};

/// One value of a document.
#[derive(Debug)]
pub(super) struct TomlItem {
    /// Its names from the outside in, each between full stops: `.ui.editor.`.
    name: String,
    pub(super) text: String,
}

impl TomlItem {
    /// Whether one of the words stands in its names.
    pub(super) fn is_named(&self, words: &[&str]) -> bool {
        super::holds(&self.name, words)
    }
}

/// The items of a document; `None` where it is none: whoever reads it may take it for one.
pub(super) fn items(text: &str) -> Option<Vec<TomlItem>> {
    let mut items = Vec::new();
    if is_one_word(text.trim()) {
        return Some(items);
    }
    let table: Table = text.trim_start_matches('\u{feff}').parse().ok()?;
    // Nesting is bounded by the parser.
    let mut open: Vec<(String, Value)> = vec![(String::new(), Value::Table(table))];
    while let Some((name, value)) = open.pop() {
        match value {
            Value::Table(table) if !table.is_empty() => {
                let members = table.into_iter().rev();
                open.extend(members.map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            Value::Array(list) if list.iter().any(Value::is_table) => {
                open.extend(list.into_iter().rev().map(|value| (name.clone(), value)));
            }
            value => items.push(TomlItem {
                text: format!("{} = {value}", name.trim_start_matches('.')),
                name: format!("{name}."),
            }),
        }
    }
    Some(items)
}

/// Whether a text is one name, as `rust-toolchain` may be.
fn is_one_word(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !text.is_empty() && text.bytes().all(is_sign)
}
