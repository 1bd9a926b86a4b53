//! The report as SARIF 2.1.0, which code hosts and editors show beside the code.

use std::collections::BTreeMap;

use outgate_dlp::{Action, Detectors};
use serde_json::{Value, json};

use super::{Located, Outcome};
use crate::sarif::{self, Reading, message, uri};

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
        .map(|(path, unscanned)| json!({ "level": "warning", "message": message(&format!("{path}: {unscanned}")) }))
        .chain(outcome.unread.iter().map(|text| json!({ "level": "error", "message": message(text) })))
        .collect();
    let reading = if outcome.unread.is_empty() {
        Reading::Whole
    } else {
        Reading::Faulty
    };
    let rules: Vec<Value> = rules.into_values().collect();
    sarif::document(&rules, &results, (reading, &notices))
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
        "message": message(&text),
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&located.path) },
            "region": region,
        }, "logicalLocations": logical }],
        "fingerprints": { "outgate/mark": finding.mark },
    })
}
