//! The report as one JSON document. Its keys are promised: new ones may come,
//! none is renamed or removed within a version.

use outgate_dlp::{Action, Checked};
use serde_json::{Value, json};

use super::report::Summary;
use super::{Located, Outcome};

/// Version of the document.
const VERSION: u64 = 1;

/// The whole document.
pub(crate) fn text(outcome: &Outcome, summary: &Summary) -> String {
    let findings: Vec<Value> = outcome.findings.iter().map(finding).collect();
    let unscanned: Vec<Value> = outcome
        .unscanned
        .iter()
        .map(|(path, unscanned)| {
            json!({
                "path": path,
                "reason": unscanned.reason.to_string(),
                "bytes": unscanned.bytes,
            })
        })
        .collect();
    let value = json!({
        "version": VERSION,
        "findings": findings,
        "unscanned": unscanned,
        "unread": outcome.unread,
        "summary": {
            "files": outcome.files,
            "bytes": outcome.bytes,
            "refused": summary.refused,
            "reported": summary.reported,
            "accepted": outcome.accepted,
        },
    });
    format!("{value:#}\n")
}

fn finding(located: &Located) -> Value {
    let finding = &located.finding;
    let chain: Vec<String> = finding.chain.iter().map(ToString::to_string).collect();
    json!({
        "path": located.path,
        "part": located.part,
        "line": located.line.map(|(line, _)| line),
        "column": located.line.map(|(_, column)| column),
        "offset": finding.offset,
        "place": finding.place.to_string(),
        "detector": finding.detector,
        "name": finding.name,
        "tier": finding.tier.word(),
        "chain": chain,
        "inside": finding.inside,
        "checked": checked(finding.checked),
        "action": action(located.action),
        "issuers": finding.issuers,
        "mark": finding.mark,
    })
}

/// What a check said, in a word.
pub(crate) fn checked(checked: Checked) -> Option<&'static str> {
    match checked {
        Checked::Passed => Some("passed"),
        Checked::Failed => Some("failed"),
        Checked::None => None,
    }
}

/// What would follow, in a word.
pub(crate) fn action(action: Action) -> &'static str {
    match action {
        Action::Block => "refuse",
        Action::Warn => "report",
    }
}
