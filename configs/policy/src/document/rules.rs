//! The rules, pins and secrets of a policy document.
//!
//! Split off [`crate::document`] for length; the same duties and limits.

use toml::de::DeValue;

use super::inspect::MODES;
use super::keys;
use super::not_for_projects;
use super::reader::{DocumentReader, Item};
use crate::author::Author;
use crate::draft::RuleExtras;
use crate::draft::secret::{self, SecretParts};
use crate::effect::Effect;
use crate::expand::expand;
use crate::host::shown;
use crate::net::Net;
use crate::quantity::parse_size;
use crate::rule_host::parse_range;

/// The items of a list of rules, with their offsets.
pub(crate) fn rule_items<'t>(
    reader: &mut DocumentReader<'_, '_, '_>,
    effect: Effect,
    value: Item<'t>,
) -> Vec<(usize, Effect, Item<'t>)> {
    let items = reader.array(effect.as_str(), value);
    items
        .into_iter()
        .map(|item| (item.span().start, effect, item))
        .collect()
}

/// Adds one rule: a text, or a table with one.
pub(crate) fn rule(reader: &mut DocumentReader<'_, '_, '_>, effect: Effect, item: Item<'_>) {
    if let DeValue::String(text) = item.get_ref() {
        let at = reader.at_string(item);
        reader.draft.rule(at, effect, text, RuleExtras::default());
        return;
    }
    if !item.get_ref().is_table() {
        if !reader.broken {
            let name = effect.as_str();
            let message = format!("every item of `{name}` must be a rule or a table with one");
            let hint = format!("write `{name} = [\"GET api.example.org/repos/**\"]`");
            reader.fault(item, &message, &hint);
        }
        return;
    }
    let known = match effect {
        Effect::Deny => keys::DENY,
        Effect::Allow | Effect::Only => keys::GRANT,
    };
    let mut text = None;
    let mut extras = RuleExtras::default();
    let mut sound = true;
    reader.table(effect.as_str(), item, known, |reader, key, value| {
        let before = reader.draft.faults();
        match key {
            "rule" => text = reader.string(key, value),
            "process" => extras.keys.process = executables(reader, value),
            "addresses" => extras.addresses = ranges(reader, value),
            "budget" | "budget_each" | "inspect" if reader.author == Author::Project => {
                not_for_projects(reader, key, value);
            }
            "budget" => extras.keys.budget = reader.quantity(key, value, "10M", parse_size),
            "budget_each" => {
                extras.keys.budget_each = reader.quantity(key, value, "64K", parse_size);
            }
            "inspect" => extras.keys.inspect = reader.word(key, value, &MODES),
            _ => drop(reader.string(key, value)),
        }
        sound &= reader.draft.faults() == before;
    });
    match text {
        // A rule whose limits are wrong is not added without them.
        Some((at, text)) if sound => reader.draft.rule(at, effect, text, extras),
        Some((at, text)) => reader.draft.check_rule(at, effect, text),
        None => reader.missing(item, "rule", "rule = \"GET api.example.org/repos/**\""),
    }
}

fn executables(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) -> Vec<Box<str>> {
    let mut out: Vec<Box<str>> = Vec::new();
    let list = reader.strings("process", value);
    if list.is_empty() {
        reader.fault(
            value,
            "`process` is empty, so the rule applies to nobody",
            "remove it to apply the rule to every process",
        );
    }
    for (at, text) in list {
        let absolute = text.starts_with('/') || text.starts_with("~/");
        match expand(text, reader.draft.context) {
            Ok(path) if absolute => out.push(path.into()),
            _ => reader.draft.fault(at.error(
                0,
                format!(
                    "`{}` is not the absolute path of an executable",
                    shown(text)
                ),
                Some(
                    "write the path that `/proc/PID/exe` shows, such as `/usr/bin/git`".to_owned(),
                ),
            )),
        }
    }
    out
}

fn ranges(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) -> Vec<Net> {
    let mut out = Vec::new();
    for (at, text) in reader.strings("addresses", value) {
        match parse_range(text) {
            Ok(net) => out.extend(reader.draft.check_special_range(at, net)),
            Err(error) => reader
                .draft
                .fault(at.error(error.offset, error.message, error.hint)),
        }
    }
    out
}

/// Adds the pins of a document.
pub(crate) fn pins(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for item in reader.array("pin", value) {
        let mut host = None;
        let mut address = None;
        reader.table("pin", item, keys::PIN, |reader, key, value| match key {
            "host" => host = reader.string(key, value),
            _ => address = reader.string(key, value),
        });
        match (host, address) {
            (Some(host), Some(address)) => reader.draft.pin(host, address),
            (None, _) => reader.missing(item, "host", "host = \"api.example.org\""),
            (_, None) => reader.missing(item, "address", "address = \"192.0.2.7:443\""),
        }
    }
}

/// Adds the secrets of a document.
pub(crate) fn secrets(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) {
    for item in reader.array("secret", value) {
        let (mut name, mut from, mut hosts, mut places) = (None, None, Vec::new(), None);
        reader.table(
            "secret",
            item,
            keys::SECRET,
            |reader, key, value| match key {
                "name" => name = reader.string(key, value),
                "from" => from = reader.string(key, value),
                "hosts" => hosts = reader.strings(key, value),
                _ => places = Some(reader.strings(key, value)),
            },
        );
        let (Some(name), Some(from)) = (name, from) else {
            if name.is_none() {
                reader.missing(item, "name", "name = \"GH_TOKEN\"");
            }
            if from.is_none() {
                reader.missing(item, "from", "from = \"env:GH_TOKEN\"");
            }
            continue;
        };
        if hosts.is_empty() {
            reader.missing(item, "hosts", "hosts = [\"api.github.com\"]");
        }
        for binding in hosts {
            let places = places.clone();
            let parts = SecretParts {
                name,
                value: from,
                binding,
                places,
            };
            secret::add(reader.draft, parts);
        }
    }
}
