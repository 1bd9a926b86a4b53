//! The effective policy as one JSON value.

use outgate_policy::{
    Arguments, Inspect, Movable, Note, PathGrant, Policy, RuleRef, ShownKey, ShownValue,
};
use serde_json::{Value, json};

use super::{hosts, is_absent, kind, limit_values, path, setting_values};

fn arguments_json(policy: &Policy) -> Vec<Value> {
    let table = |table: &Arguments| {
        json!({ "program": table.program, "first": table.first, "unless": table.unless,
            "text": table.text, "place": *table.place })
    };
    policy.arguments().iter().map(table).collect()
}

/// What the policy says about detectors, as one JSON value.
fn scan_json(policy: &Policy) -> Value {
    let detectors: Vec<Value> = policy
        .settings()
        .inspect_detectors
        .iter()
        .map(|own| {
            let form = own.form.as_ref();
            json!({
                "id": own.id, "mode": own.mode.map(Inspect::word), "place": *own.place,
                "description": form.map(|form| &form.description),
                "pattern": form.map(|form| &form.pattern),
                "literals": form.map(|form| &form.literals),
                "issuers": form.map(|form| &form.issuers),
                "tenants": form.map(|form| form.tenants.word()),
            })
        })
        .collect();
    let allowances: Vec<Value> = policy
        .settings()
        .inspect_scopes
        .iter()
        .map(|own| json!({ "detector": own.detector, "hosts": hosts(own), "place": *own.place }))
        .collect();
    json!({ "detectors": detectors, "allowances": allowances })
}

/// The rules as JSON.
fn rules_json(policy: &Policy) -> Vec<Value> {
    let rule = |rule: RuleRef| {
        let (process, addresses) = policy.limits_of(&rule);
        let mut all = json!({
            "id": rule.id, "effect": rule.effect.as_str(), "rule": *rule.text,
            "place": *rule.place, "process": process, "addresses": addresses,
        });
        if let Some(all) = all.as_object_mut() {
            all.extend(policy.shown_keys(&rule).iter().map(key_json));
        }
        all
    };
    policy.rules().map(rule).collect()
}

/// A key of a rule: what it says, or null.
fn key_json(key: &ShownKey) -> (String, Value) {
    let value = key.value.as_ref().map(|value| match value {
        ShownValue::Bytes(bytes, _) => json!(bytes),
        ShownValue::Word(word) => json!(word),
    });
    (key.name.to_owned(), json!(value))
}

fn notes_json(policy: &Policy) -> Vec<Value> {
    let note =
        |note: &Note| json!({ "text": note.text, "unless": note.unless, "place": *note.place });
    policy.notes().iter().map(note).collect()
}

/// The places that variables move.
fn movable_json(policy: &Policy) -> Vec<Value> {
    let movable = |own: &Movable| json!({ "from": own.from, "to": own.to, "place": *own.place });
    policy.filesystem().movable.iter().map(movable).collect()
}

/// The policy as one JSON value.
pub(crate) fn json(policy: &Policy) -> String {
    let grants = |list: &[PathGrant]| -> Vec<Value> {
        let grant = |grant: &PathGrant| {
            json!({ "path": path(grant), "place": *grant.place, "optional": grant.optional,
                "absent": is_absent(grant) })
        };
        list.iter().map(grant).collect()
    };
    let files = policy.filesystem();
    let pins: Vec<Value> = policy
        .pins()
        .map(|(host, address)| {
            let place = policy.place(&format!("pin.{host}"));
            json!({ "host": host, "address": address, "place": place })
        })
        .collect();
    let secrets: Vec<Value> = policy
        .secrets()
        .iter()
        .map(|secret| {
            let from = format!("{}{}", kind(secret), secret.source());
            let hosts: Vec<&str> = secret.bindings().collect();
            json!({ "name": secret.name(), "from": from, "hosts": hosts, "positions": secret.positions(),
                "place": secret.place() })
        })
        .collect();
    let listen: Vec<Value> = policy
        .listen()
        .iter()
        .map(|grant| json!({ "address": grant.address.to_string(), "ports": grant.shown_ports(), "place": *grant.place }))
        .collect();
    let values = |prefix: &str, values: Vec<(&'static str, String)>| -> Value {
        let one = |(key, value): (&str, String)| {
            let place = policy.place(&format!("{prefix}{key}"));
            (key.to_owned(), json!({ "value": value, "place": place }))
        };
        values.into_iter().map(one).collect()
    };
    let environment = policy.environment();
    let warnings: Vec<String> = policy.warnings().iter().map(ToString::to_string).collect();
    let value = json!({
        "rules": rules_json(policy),
        "pins": pins,
        "secrets": secrets,
        "scan": scan_json(policy),
        "listen": listen,
        "files": {
            "read": grants(&files.read), "write": grants(&files.write), "deny": grants(&files.deny),
            "movable": movable_json(policy),
        },
        "environment": {
            "pass": environment.pass, "place": policy.place("environment.pass"),
            "set": environment.set,
        },
        "arguments": arguments_json(policy),
        "limits": values("limits.", limit_values(policy)),
        "settings": values("", setting_values(policy)),
        "notes": notes_json(policy),
        "warnings": warnings,
    });
    format!("{value:#}")
}
