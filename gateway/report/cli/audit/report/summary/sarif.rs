//! The summary as SARIF 2.1.0: a result for each group of denials, each finding and each alarm,
//! for annotations.

use outgate_policy::{DenialGroup, Urgency, printable};
use serde_json::{Value, json};

use super::{ENTRIES_MAX, alarms, credentials, groups, without_commands};
use crate::audit::report::Gathered;
use crate::sarif::{self, Reading, fingerprint, message, uri};

/// What results are about: id, what it is, and how it is shown.
const RULES: [(&str, &str, &str); 4] = [
    ("alarm", "A planted credential left its place", "error"),
    ("finding", "A credential was on its way out", "error"),
    ("denied", "The rules deny it", "error"),
    (
        "monitored",
        "The rules deny it, and the run only monitored",
        "warning",
    ),
];

/// The whole document.
pub(in crate::audit::report) fn sarif(gathered: &Gathered) -> String {
    let model = &gathered.model;
    let place = gathered
        .files
        .first()
        .map(|file| uri(&file.to_string_lossy()));
    let place = place.unwrap_or_default();
    let result = |id: &str, subject: &str, text: &str| {
        let index = RULES.iter().position(|(own, _, _)| *own == id);
        let level = RULES.iter().find(|(own, _, _)| *own == id);
        json!({
            "ruleId": id,
            "ruleIndex": index,
            "level": level.map(|(_, _, level)| *level),
            "message": message(text),
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": place },
                    "region": { "startLine": 1 },
                },
                "logicalLocations": [{ "fullyQualifiedName": subject }],
            }],
            "partialFingerprints": { "outgate/group/v1": fingerprint(&[id, subject]) },
        })
    };
    let mut results: Vec<Value> = Vec::new();
    for (what, by) in alarms(model) {
        results.push(result("alarm", &what, &format!("{what} (by {by})")));
    }
    for one in credentials(model).iter().take(ENTRIES_MAX) {
        let (subject, name) = (printable(one.subject), printable(one.name));
        let fate = one.fate.words();
        let text = format!("{name} in {subject}: {fate}, {} in all", one.count);
        results.push(result("finding", &format!("{subject}: {name}"), &text));
    }
    for (id, urgency) in [("denied", Urgency::Denied), ("monitored", Urgency::Passed)] {
        for group in groups(model, urgency).iter().take(ENTRIES_MAX) {
            results.push(result(id, &group.subject, &words(group)));
        }
    }
    let rules = RULES.map(|(id, what, level)| {
        json!({
            "id": id,
            "shortDescription": { "text": what },
            "defaultConfiguration": { "level": level },
        })
    });
    let faults = gathered.judge.faults_in_all;
    let altered = format!("the record was altered: {faults} faults");
    let notices: Vec<Value> = (faults > 0)
        .then(|| json!({ "level": "error", "message": message(&altered) }))
        .into_iter()
        .collect();
    let reading = if faults == 0 && model.unread == 0 {
        Reading::Whole
    } else {
        Reading::Faulty
    };
    without_commands(&sarif::document(&rules, &results, (reading, &notices)))
}

fn words(group: &DenialGroup) -> String {
    let by = match group.program.as_str() {
        "" => String::new(),
        program => format!(" by {program}"),
    };
    let to_allow = match group.flags.as_slice() {
        [] => String::new(),
        flags => format!("; to allow: {}", flags.join(" ")),
    };
    format!(
        "{}{by}: {}, {} in all{to_allow}",
        group.subject, group.because, group.count
    )
}
