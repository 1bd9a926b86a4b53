//! Typed access to the values of a document, with faults that name the key.
//!
//! Knows TOML values and places; must not know what any key means.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{Key, names};
use super::switch_of;
use crate::author::Author;
use crate::draft::Draft;
use crate::edits::distance;
use crate::host::shown;
use crate::location::{At, Location};
use crate::quantity::QuantityError;
use crate::settings::{Settings, Switch};

/// A value with its place.
pub(crate) type Item<'a> = &'a Spanned<DeValue<'a>>;

/// A document being read into a draft.
pub(crate) struct DocumentReader<'d, 'c, 'a> {
    pub(crate) draft: &'d mut Draft<'c>,
    pub(crate) location: &'a Location<'a>,
    pub(crate) author: Author,
    /// Whether the syntax has faults: then missing keys may be their consequence.
    pub(crate) broken: bool,
}

/// A text with its place.
pub(crate) type Text<'a, 't> = (At<'a>, &'t str);

impl<'a> DocumentReader<'_, '_, 'a> {
    /// The place at an offset.
    pub(crate) fn at(&self, offset: usize) -> At<'a> {
        At {
            location: self.location,
            offset,
            verbatim: true,
        }
    }

    /// The place of a string, such that offsets into its value can be added
    /// where the document writes the value as it is.
    pub(crate) fn at_string(&self, item: Item<'_>) -> At<'a> {
        let span = item.span();
        let written = self.location.text().get(span.clone()).unwrap_or("");
        let value = item.get_ref().as_str().unwrap_or("");
        let inner = written.get(1..written.len().saturating_sub(1));
        let verbatim = inner == Some(value);
        At {
            location: self.location,
            offset: span.start + usize::from(verbatim),
            verbatim,
        }
    }

    /// Reports a fault of a value.
    pub(crate) fn fault(&mut self, item: Item<'_>, message: &str, hint: &str) {
        let at = self.at(item.span().start);
        self.draft
            .fault(at.error(0, message.to_owned(), Some(hint.to_owned())));
    }

    /// Reports a key that must be there.
    pub(crate) fn missing(&mut self, item: Item<'_>, key: &str, example: &str) {
        if !self.broken && item.get_ref().is_table() {
            self.fault(
                item,
                &format!("`{key}` is missing"),
                &format!("add `{example}`"),
            );
        }
    }

    /// Reports a value of the wrong kind.
    fn wrong_kind(&mut self, key: &str, item: Item<'_>, expected: &str, example: &str) {
        // Broken syntax makes values of kinds that nobody wrote.
        if !self.broken {
            let found = kind(item.get_ref());
            let message = format!("`{key}` must be {expected}, not {found}");
            self.fault(item, &message, &format!("write `{example}`"));
        }
    }

    /// Calls `read` for each known key of a table and reports the others.
    pub(crate) fn each<'t>(
        &mut self,
        table: &'t DeTable<'t>,
        name: &str,
        known: &[Key],
        mut read: impl FnMut(&mut Self, &str, Item<'t>),
    ) {
        let known = names(known);
        for (key, value) in table {
            let text: &str = key.get_ref();
            if known.contains(&text) {
                if is_single(name, text) {
                    let at = self.at(value.span().start);
                    self.draft.note(&format!("{name}.{text}"), at);
                }
                read(self, text, value);
                continue;
            }
            let place = if name.is_empty() {
                String::new()
            } else {
                format!(" in `{name}`")
            };
            let hint = match nearest(text, &known) {
                Some(other) => format!("did you mean `{other}`?"),
                None => format!("known are {}", listed(&known)),
            };
            let at = self.at(key.span().start);
            let message = format!("unknown key `{}`{place}", shown(text));
            self.draft.fault(at.error(0, message, Some(hint)));
        }
    }

    /// The same for a value that must be a table.
    pub(crate) fn table<'t>(
        &mut self,
        name: &str,
        item: Item<'t>,
        known: &[Key],
        read: impl FnMut(&mut Self, &str, Item<'t>),
    ) {
        if let Some(table) = self.expect_table(name, item) {
            self.each(table, name, known, read);
        }
    }

    pub(crate) fn expect_table<'t>(
        &mut self,
        name: &str,
        item: Item<'t>,
    ) -> Option<&'t DeTable<'t>> {
        let table = item.get_ref().as_table();
        if table.is_none() {
            self.wrong_kind(name, item, "a table", &format!("{name} = {{ … }}"));
        }
        table
    }

    /// The items of a value that must be an array.
    pub(crate) fn array<'t>(&mut self, name: &str, item: Item<'t>) -> Vec<Item<'t>> {
        let Some(array) = item.get_ref().as_array() else {
            self.wrong_kind(name, item, "a list", &format!("[[{name}]]"));
            return Vec::new();
        };
        array.iter().collect()
    }

    /// A value that must be a text.
    pub(crate) fn string<'t>(&mut self, key: &str, item: Item<'t>) -> Option<Text<'a, 't>> {
        if let Some(text) = item.get_ref().as_str() {
            return Some((self.at_string(item), text));
        }
        let written = match item.get_ref() {
            DeValue::Integer(_) | DeValue::Boolean(_) | DeValue::Float(_) => {
                self.location.text().get(item.span()).unwrap_or("…")
            }
            DeValue::String(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                "…"
            }
        };
        self.wrong_kind(
            key,
            item,
            "a text",
            &format!("{key} = \"{}\"", shown(written)),
        );
        None
    }

    /// A value that must be a list of texts.
    pub(crate) fn strings<'t>(&mut self, key: &str, item: Item<'t>) -> Vec<Text<'a, 't>> {
        let Some(array) = item.get_ref().as_array() else {
            let example = match item.get_ref().as_str() {
                Some(text) => format!("{key} = [\"{}\"]", shown(text)),
                None => format!("{key} = [\"…\"]"),
            };
            self.wrong_kind(key, item, "a list of texts", &example);
            return Vec::new();
        };
        let mut out = Vec::with_capacity(array.len());
        for item in array {
            if let Some(text) = item.get_ref().as_str() {
                out.push((self.at_string(item), text));
            } else {
                let written = self.location.text().get(item.span()).unwrap_or("…");
                let example = format!("{key} = [\"{}\"]", shown(written));
                let message = format!(
                    "every item of `{key}` must be a text, not {}",
                    kind(item.get_ref())
                );
                if !self.broken {
                    self.fault(item, &message, &format!("write `{example}`"));
                }
            }
        }
        out
    }

    /// A value that must be one of a few words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &str,
        item: Item<'_>,
        words: &[(&str, T)],
    ) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let Some(text) = item.get_ref().as_str() else {
            let first = known.first().unwrap_or(&"…");
            let example = format!("{key} = \"{first}\"");
            self.wrong_kind(key, item, &format!("one of {}", listed(&known)), &example);
            return None;
        };
        word(self.draft, key, (self.at_string(item), text), words)
    }

    /// A switch of the top level: `true` or `false`.
    pub(crate) fn switch(
        &mut self,
        key: &str,
        item: Item<'_>,
        set: impl FnOnce(&mut Settings, Switch),
    ) {
        match switch_of(item.get_ref()) {
            Some(switch) => set(&mut self.draft.policy.settings, switch),
            None => self.wrong_kind(key, item, "true or false", &format!("{key} = true")),
        }
    }

    /// A value that must be a positive integer.
    pub(crate) fn count(&mut self, key: &str, item: Item<'_>) -> Option<u64> {
        let DeValue::Integer(number) = item.get_ref() else {
            self.wrong_kind(key, item, "a number", &format!("{key} = 512"));
            return None;
        };
        let count = u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|count| *count > 0);
        if count.is_none() {
            let message = format!(
                "`{key}` of {} is not a positive number",
                shown(number.as_str())
            );
            self.fault(
                item,
                &message,
                &format!("leave `{key}` away for the default"),
            );
        }
        count
    }

    /// A value that must be a quantity written as text.
    pub(crate) fn quantity<T>(
        &mut self,
        key: &str,
        item: Item<'_>,
        example: &str,
        parse: fn(&str) -> Result<T, QuantityError>,
    ) -> Option<T> {
        let Some(text) = item.get_ref().as_str() else {
            self.wrong_kind(
                key,
                item,
                "a text with a unit",
                &format!("{key} = \"{example}\""),
            );
            return None;
        };
        match parse(text) {
            Ok(value) => Some(value),
            Err((message, hint)) => {
                let at = self.at_string(item);
                self.draft
                    .fault(at.error(0, message, Some(hint.to_owned())));
                None
            }
        }
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn listed(words: &[&str]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        let separator = match index {
            0 => "",
            _ if index + 1 == words.len() => " and ",
            _ => ", ",
        };
        out.push_str(separator);
        out.push('`');
        out.push_str(word);
        out.push('`');
    }
    out
}

/// One of the words that a key may have.
pub(crate) fn word<T: Copy>(
    draft: &mut Draft<'_>,
    key: &str,
    (at, text): Text<'_, '_>,
    words: &[(&str, T)],
) -> Option<T> {
    let found = words.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("`{}` is no value of `{key}`", shown(text));
        let hint = format!("known are {}", listed(&known));
        draft.fault(at.error(0, message, Some(hint)));
    }
    found.map(|(_, value)| *value)
}

/// Whether a key has one value, whose place is kept: rules, paths and the like
/// keep their own.
fn is_single(table: &str, key: &str) -> bool {
    match table {
        "" => matches!(key, "strict" | "monitor" | "denial_note"),
        "dns" | "tls" | "inspect" | "limits" | "audit" | "environment" => key != "set",
        _ => false,
    }
}

/// The known word that a typing error would most likely have turned into `text`.
fn nearest<'w>(text: &str, known: &[&'w str]) -> Option<&'w str> {
    known
        .iter()
        .map(|word| (distance(text, word), *word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min()
        .map(|(_, word)| word)
}
