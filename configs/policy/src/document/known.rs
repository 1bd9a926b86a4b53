//! The keys of the `[inspect]` table about what the user holds and what a thief
//! would take: known values, where they may go, and canaries.
//!
//! Split off [`crate::document`] for length; the same duties and limits. Names of
//! variables and files stay text: nothing here reads one.

use super::reader::{DocumentReader, Item};
use super::tls::absolute;
use crate::host::Host;
use crate::limits;
use crate::settings::{KnownHosts, Precaution};

const WORDS: [(&str, Precaution); 2] = [("on", Precaution::On), ("off", Precaution::Off)];

/// Reads one key.
pub(crate) fn key(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) {
    match key {
        "known" => {
            if let Some(known) = reader.word(key, value, &WORDS) {
                reader.draft.policy.settings.known = known;
            }
        }
        "canaries" => {
            if let Some(canaries) = reader.word(key, value, &WORDS) {
                reader.draft.policy.settings.canaries = canaries;
            }
        }
        "known_file" => {
            let path = reader.string(key, value);
            let path = path.and_then(|(at, text)| absolute(reader, at, text));
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
    let known = ["name", "hosts"];
    reader.table("inspect.value", item, &known, |reader, key, value| {
        if key == "name" {
            name = reader.string(key, value);
            return;
        }
        for (at, text) in reader.strings(key, value) {
            match Host::parse(text) {
                Ok(host) => hosts.push(host),
                Err(error) => {
                    let hint = "name each host; a secret is never bound to a wildcard";
                    let fault = at.error(0, error.to_string(), Some(hint.to_owned()));
                    reader.draft.fault(fault);
                }
            }
        }
    });
    let Some((at, name)) = name else {
        return reader.missing(item, "name", "name = \"MYCORP_TOKEN\"");
    };
    if name.is_empty() {
        let hint = "name the variable or the file that holds it, as the denial does";
        let fault = at.error(0, "`name` is empty".to_owned(), Some(hint.to_owned()));
        return reader.draft.fault(fault);
    }
    let all = &mut reader.draft.policy.settings.known_hosts;
    if all.len() >= limits::KNOWN_HOSTS_MAX {
        let message = format!("more than {} `inspect.value`", limits::KNOWN_HOSTS_MAX);
        let fault = at.error(0, message, None);
        return reader.draft.fault(fault);
    }
    all.push(KnownHosts {
        name: name.to_owned(),
        hosts,
    });
}
