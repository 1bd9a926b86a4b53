//! The report as SARIF 2.1.0, which code hosts and editors show beside the code.

use std::collections::BTreeMap;

use outgate_dlp::{Action, Detectors};
use serde_json::{Value, json};

use super::{Located, Outcome};

/// The whole document.
pub(crate) fn text(outcome: &Outcome, detectors: &Detectors) -> String {
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    for located in &outcome.findings {
        let id: &str = &located.finding.detector;
        let detector = detectors.find(id);
        rules.entry(id).or_insert_with(|| {
            json!({
                "id": id,
                "name": located.finding.name,
                "shortDescription": { "text": located.finding.name },
                "fullDescription": { "text": detector.map(|detector| detector.cost.as_ref()) },
                "helpUri": detector.map(|detector| detector.reference.as_ref()),
            })
        });
    }
    let ids: Vec<&str> = rules.keys().copied().collect();
    let results: Vec<Value> = outcome
        .findings
        .iter()
        .map(|located| result(located, &ids))
        .collect();
    let notices: Vec<Value> = outcome
        .unscanned
        .iter()
        .map(|(path, unscanned)| json!({ "level": "warning", "message": { "text": format!("{path}: {unscanned}") } }))
        .chain(outcome.unread.iter().map(|text| json!({ "level": "error", "message": { "text": text } })))
        .collect();
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "outgate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().collect::<Vec<_>>(),
            } },
            "results": results,
            "invocations": [{
                "executionSuccessful": outcome.unread.is_empty(),
                "toolExecutionNotifications": notices,
            }],
        }],
    });
    format!("{value:#}\n")
}

fn result(located: &Located, ids: &[&str]) -> Value {
    let finding = &located.finding;
    let id: &str = &finding.detector;
    let region = match located.line {
        Some((line, column)) => json!({ "startLine": line, "startColumn": column }),
        None => json!({ "byteOffset": finding.offset }),
    };
    let (text, logical) = match &finding.inside {
        Some(inside) => (
            format!("{} ({finding}) in {inside}", finding.name),
            json!([{ "fullyQualifiedName": inside }]),
        ),
        None => (format!("{} ({finding})", finding.name), json!([])),
    };
    let level = match located.action {
        Action::Block => "error",
        Action::Warn => "warning",
    };
    json!({
        "ruleId": id,
        "ruleIndex": ids.iter().position(|known| *known == id),
        "level": level,
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&located.path) },
            "region": region,
        }, "logicalLocations": logical }],
        "fingerprints": { "outgate/mark": finding.mark },
    })
}

/// A path as a relative reference (RFC 3986 4.2), or a file URI.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let spelt = path.trim_start_matches("./").bytes().map(|byte| {
        if safe(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    format!("{scheme}{}", spelt.collect::<Vec<_>>().concat())
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_become_references() {
        for (path, expected) in [
            ("./src/a b.rs", "src/a%20b.rs"),
            ("/tmp/x#y", "file:///tmp/x%23y"),
            ("naïve", "na%C3%AFve"),
            ("-", "-"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}
