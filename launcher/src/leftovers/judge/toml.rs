//! TOML to items, line by line: enough to say under which names something stands. What spans
//! lines belongs to the item that it follows. Pure.

/// One item, or what stands before the first.
#[derive(Debug)]
pub(super) struct TomlItem {
    section: String,
    pub(super) text: String,
}

impl TomlItem {
    /// Whether one of the words stands in its names, or anywhere in it where its names or
    /// values hide some.
    pub(super) fn is_named(&self, words: &[&str]) -> bool {
        let key = self.text.split('=').next().unwrap_or_default();
        let is_hidden = self.text.contains('{') || key.contains('\\');
        super::holds(&self.section, words)
            || self.section.contains('\\')
            || super::holds(if is_hidden { &self.text } else { key }, words)
            || key.contains('\\')
    }
}

/// The items of a document.
pub(super) fn items(text: &str) -> Vec<TomlItem> {
    let mut section = String::new();
    let mut items: Vec<TomlItem> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let is_header = trimmed.starts_with('[') && !line.starts_with([' ', '\t']);
        if is_header {
            trimmed.clone_into(&mut section);
            continue;
        }
        match items.last_mut() {
            Some(item) if !begins(trimmed) => {
                item.text.push('\n');
                item.text.push_str(line);
            }
            _ => items.push(TomlItem {
                section: section.clone(),
                text: trimmed.to_owned(),
            }),
        }
    }
    for item in &mut items {
        let text = format!("{} {}", item.section, item.text);
        text.trim_start().clone_into(&mut item.text);
    }
    items
}

/// Whether a line looks like a key and a value.
fn begins(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        let is_key = |c: char| c.is_alphanumeric() || "-_.\"' \\".contains(c) || !c.is_ascii();
        !key.trim().is_empty() && key.chars().all(is_key)
    })
}
