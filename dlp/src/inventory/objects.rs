//! Files of objects: TOML of cargo, JSON of docker, Google and Azure.

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::formats::pair;
use super::{HeldValues, host_of, password_of};
use crate::detector::Registry;
use crate::secret::SecretBytes;

/// What issues and takes tokens of Google.
const GOOGLE: [&str; 2] = ["oauth2.googleapis.com", "accounts.google.com"];
/// What issues and takes tokens of Microsoft.
const MICROSOFT: [&str; 3] = [
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.windows.net",
];
/// Deepest object that is looked into.
const DEPTH_MAX: usize = 16;

/// Every text of a TOML document with the keys that lead to it.
fn each_text(table: &DeTable<'_>, path: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &str)) {
    if path.len() >= DEPTH_MAX {
        return;
    }
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => each_text(inner, path, visit),
            DeValue::String(text) => visit(path, text),
            _ => {}
        }
        path.pop();
    }
}

fn toml(text: &str, visit: &mut dyn FnMut(&[String], &str)) {
    let (table, _faults) = DeTable::parse_recoverable(text);
    each_text(table.get_ref(), &mut Vec::new(), visit);
}

/// `[registries.NAME] token = …`; which host it is for, the configuration says.
pub(super) fn cargo_credentials(text: &str, into: &mut HeldValues<'_>) {
    toml(text, &mut |path, value| {
        if path
            .last()
            .is_some_and(|key| key == "token" || key == "secret-key")
        {
            into.add(value, &[]);
        }
    });
}

/// `index` of registries and `registry` of sources.
pub(super) fn cargo_config(text: &str, into: &mut HeldValues<'_>) {
    toml(text, &mut |path, value| {
        let under = path.first().map(String::as_str);
        let key = path.last().map(String::as_str);
        let names = matches!(
            (under, key),
            (Some("registries" | "registry"), Some("index")) | (Some("source"), Some("registry"))
        );
        if names {
            into.registry(Registry::Cargo, value);
            if let Some(password) = password_of(value) {
                into.bytes(password, &[value]);
            }
        }
        if key == Some("token") {
            into.add(value, &[]);
        }
    });
}

/// `auths`: a pair in base 64, or a token, for each registry of images.
pub(super) fn docker(text: &str, into: &mut HeldValues<'_>) {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return;
    };
    let auths = value.get("auths").and_then(Value::as_object);
    for (place, auth) in auths.into_iter().flatten() {
        let mut hosts = vec![place.as_str()];
        if host_of(place).is_some_and(|host| host == "index.docker.io" || host == "docker.io") {
            hosts.extend(["docker.io", "*.docker.io", "*.docker.com"]);
        }
        if let Some(text) = auth.get("auth").and_then(Value::as_str) {
            for host in &hosts {
                pair(text, host, into);
            }
        }
        for key in ["identitytoken", "registrytoken", "password"] {
            if let Some(text) = auth.get(key).and_then(Value::as_str) {
                into.add(text, &hosts);
            }
        }
    }
    wipe(value);
}

/// Credentials of a user, or the key of a service account.
pub(super) fn google(text: &str, into: &mut HeldValues<'_>) {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return;
    };
    for key in ["refresh_token", "client_secret"] {
        if let Some(text) = value.get(key).and_then(Value::as_str) {
            into.add(text, &GOOGLE);
        }
    }
    if let Some(key) = value.get("private_key").and_then(Value::as_str) {
        super::private_key::read(key, into);
    }
    wipe(value);
}

/// Every text of a document of which the key is known, with that key.
pub(super) fn members(text: &str, visit: &mut dyn FnMut(&str, &str, &[&str])) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        each_member("", &value, visit, 0);
        wipe(value);
    }
}

fn each_member(key: &str, value: &Value, visit: &mut dyn FnMut(&str, &str, &[&str]), depth: usize) {
    match value {
        Value::String(text) => visit(key, text, &[]),
        Value::Array(items) if depth < DEPTH_MAX => {
            for item in items {
                each_member(key, item, visit, depth.saturating_add(1));
            }
        }
        Value::Object(object) if depth < DEPTH_MAX => {
            for (key, inner) in object {
                each_member(key, inner, visit, depth.saturating_add(1));
            }
        }
        _ => {}
    }
}

/// Overwrites every text of a document.
fn wipe(value: Value) {
    match value {
        Value::String(text) => drop(SecretBytes::new(text.into_bytes())),
        Value::Array(items) => items.into_iter().for_each(wipe),
        Value::Object(object) => object.into_iter().for_each(|(_, value)| wipe(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every `secret`, `accessToken` and `refreshToken` of the cache. Access tokens
/// are for the host of their `target` or `resource`.
pub(super) fn azure(text: &str, into: &mut HeldValues<'_>) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        tokens(&value, into, 0);
        wipe(value);
    }
}

fn tokens(value: &Value, into: &mut HeldValues<'_>, depth: usize) {
    match value {
        Value::Array(items) if depth < DEPTH_MAX => {
            for item in items {
                tokens(item, into, depth.saturating_add(1));
            }
        }
        Value::Object(object) if depth < DEPTH_MAX => {
            let text = |key: &str| object.get(key).and_then(Value::as_str);
            let place = text("target").or(text("resource")).unwrap_or_default();
            let place = place.split(' ').next().unwrap_or_default();
            let mut hosts = MICROSOFT.to_vec();
            hosts.push(place);
            for key in ["secret", "accessToken", "refreshToken", "client_secret"] {
                if let Some(token) = text(key) {
                    into.add(token, &hosts);
                }
            }
            for inner in object.values() {
                tokens(inner, into, depth.saturating_add(1));
            }
        }
        _ => {}
    }
}
