//! The keys of the `[inspect]` table about what the user holds and what a thief
//! would take: known values, where they may go, and canaries.
//!
//! Split off [`crate::document`] for length; the same duties and limits. Names of
//! variables and files stay text: nothing here reads one.

use super::keys;
use super::reader::{DocumentReader, Item, Text};
use super::tls::absolute;
use crate::draft::Draft;
use crate::host::Host;
use crate::limits;
use crate::settings::{KnownHosts, Precaution};

/// The words for whether a precaution is taken.
pub(crate) const PRECAUTIONS: [(&str, Precaution); 2] =
    [("on", Precaution::On), ("off", Precaution::Off)];

/// Reads one key.
pub(crate) fn key(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) {
    match key {
        "known" => {
            if let Some(known) = reader.word(key, value, &PRECAUTIONS) {
                reader.draft.policy.settings.known = known;
            }
        }
        "canaries" => {
            if let Some(canaries) = reader.word(key, value, &PRECAUTIONS) {
                reader.draft.policy.settings.canaries = canaries;
            }
        }
        "known_file" => {
            let path = reader.string(key, value);
            let path = path.and_then(|path| absolute(reader.draft, path));
            if path.is_some() {
                reader.draft.policy.settings.known_file = path;
            }
        }
        _ => {
            for item in reader.array("inspect.value", value) {
                bound(reader, item);
            }
        }
    }
}

/// Where one known value may go.
fn bound(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) {
    let mut name = None;
    let mut hosts = Vec::new();
    reader.table("inspect.value", item, keys::VALUE, |reader, key, value| {
        if key == "name" {
            name = reader.string(key, value);
            return;
        }
        let names = reader.strings(key, value);
        hosts = names
            .into_iter()
            .filter_map(|name| host(reader.draft, name))
            .collect();
    });
    match name {
        Some(name) => bind(reader.draft, name, hosts),
        None => reader.missing(item, "name", "name = \"MYCORP_TOKEN\""),
    }
}

/// A host that a known value may go to.
pub(crate) fn host(draft: &mut Draft<'_>, (at, text): Text<'_, '_>) -> Option<Host> {
    match Host::parse(text) {
        Ok(host) => Some(host),
        Err(error) => {
            let hint = "name each host; a secret is never bound to a wildcard";
            draft.fault(at.error(0, error.to_string(), Some(hint.to_owned())));
            None
        }
    }
}

/// Lets a known value go to these hosts.
pub(crate) fn bind(draft: &mut Draft<'_>, (at, name): Text<'_, '_>, hosts: Vec<Host>) {
    if name.is_empty() {
        let hint = "name the variable or the file that holds it, as the denial does";
        let fault = at.error(0, "`name` is empty".to_owned(), Some(hint.to_owned()));
        return draft.fault(fault);
    }
    let all = &mut draft.policy.settings.known_hosts;
    if all.len() >= limits::KNOWN_HOSTS_MAX {
        let message = format!("more than {} `inspect.value`", limits::KNOWN_HOSTS_MAX);
        let fault = at.error(0, message, None);
        return draft.fault(fault);
    }
    all.push(KnownHosts {
        name: name.to_owned(),
        hosts,
    });
}
