//! The summary as one JSON document, whose form is `summary.schema.json`. Its keys are promised:
//! new ones may come, none is renamed or removed within a version.

use outgate_policy::{DenialGroup, Urgency, printable};
use outgate_record::Alarm;
use serde_json::{Value, json};

use super::{
    ENTRIES_MAX, Fate, alarms, credentials, groups, is_monitored, reached, without_commands,
};
use crate::audit::report::Gathered;

/// Version of the document.
const VERSION: u64 = 1;

/// The whole document.
pub(in crate::audit::report) fn json(gathered: &Gathered) -> String {
    let model = &gathered.model;
    let (denied, passed) = (
        groups(model, Urgency::Denied),
        groups(model, Urgency::Passed),
    );
    let (credentials, reached) = (credentials(model), reached(model));
    let left = |all: usize| all.saturating_sub(ENTRIES_MAX);
    let runs = model
        .runs
        .iter()
        .take(ENTRIES_MAX)
        .map(|((_, _, name), run)| {
            json!({
                "name": printable(name),
                "command": printable(&run.command),
                "mode": if run.mode.is_empty() { "enforced" } else { &run.mode },
                "end": printable(&run.end),
            })
        });
    let value = json!({
        "version": VERSION,
        "enforced": !is_monitored(gathered),
        "records": {
            "read": model.records,
            "unread": model.unread,
            "lost": model.lost,
            "faults": gathered.judge.faults_in_all,
        },
        "totals": {
            "allowed": model.sum.allowed,
            "denied": model.sum.denied,
            "monitored": model.sum.passed,
            "findings": model.found.findings_in_all,
            "alarms": model.found.alarms_in_all,
            "bytes_up": model.sum.up,
            "bytes_down": model.sum.down,
        },
        "runs": runs.collect::<Vec<_>>(),
        "reached": reached.iter().take(ENTRIES_MAX).map(|one| json!({
            "host": printable(one.host),
            "allowed": one.requests,
            "monitored": one.passed,
            "bytes_up": one.up,
            "bytes_down": one.down,
            "programs": one.programs.iter().map(|name| printable(name)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "denied": denied.iter().take(ENTRIES_MAX).map(|group| entry(group)).collect::<Vec<_>>(),
        "monitored": passed.iter().take(ENTRIES_MAX).map(|group| entry(group)).collect::<Vec<_>>(),
        "findings": credentials.iter().take(ENTRIES_MAX).map(|one| json!({
            "subject": printable(one.subject),
            "name": printable(one.name),
            "detector": printable(one.detector),
            "count": one.count,
            "held_back": one.fate == Fate::Held,
            "alarm": one.alarm == Alarm::Raised,
        })).collect::<Vec<_>>(),
        "alarms": alarms(model).map(|(what, by)| json!({
            "what": what,
            "program": by,
        })).collect::<Vec<_>>(),
        "left_out": {
            "runs": left(model.runs.len()),
            "reached": left(reached.len()),
            "denied": left(denied.len()),
            "monitored": left(passed.len()),
            "findings": left(credentials.len()),
            "in_no_group": model.denials.digest.beyond(),
        },
    });
    without_commands(&format!("{value:#}"))
}

fn entry(group: &DenialGroup) -> Value {
    json!({
        "subject": group.subject,
        "because": group.because,
        "program": group.program,
        "count": group.count,
        "to_allow": group.flags,
    })
}
