//! What a shared gateway does now, as one JSON object: its state, and of each sandbox the
//! numbers, denials by groups, findings, questions, grants and quotas. For the live page and
//! `outgate top`. Texts of others stand in it as they are: who shows them shows text.

use outgate_policy::{DenialGroup, RuleRef, Urgency};
use serde_json::{Value, json};

use super::SharedGateway;
use super::admin;
use super::at_work::SessionAtWork;
use crate::session::Session;
use crate::text::shortened;

/// Sandboxes that are listed, those with alarms and questions first.
const SANDBOXES_MAX: usize = 100;
/// Groups of denials of one of them.
const GROUPS_MAX: usize = 12;
/// Questions, grants and quotas of one of them, each.
const LISTED_MAX: usize = 16;
/// Bytes of all that is listed.
const LISTED_BYTES_MAX: usize = 384 * 1024;
/// Bytes of one text.
const TEXT_BYTES_MAX: usize = 512;

fn cut(text: &str) -> String {
    shortened(text, TEXT_BYTES_MAX)
}

/// The object.
pub(super) fn json(shared: &SharedGateway) -> Value {
    let all = shared.at_work.newest_first();
    let total = all.len();
    let mut listed: Vec<(u8, Value)> = all.iter().filter_map(sandbox).collect();
    // Stable: the newest first among those that matter as much.
    listed.sort_by_key(|(rank, _)| *rank);
    let mut bytes = 0_usize;
    let listed = listed.into_iter().map(|(_, own)| own);
    let listed: Vec<Value> = listed
        .take(SANDBOXES_MAX)
        .take_while(|own| {
            bytes = bytes.saturating_add(own.to_string().len());
            bytes <= LISTED_BYTES_MAX
        })
        .collect();
    json!({
        "gateway": admin::status_value(shared),
        "not_listed": total.saturating_sub(listed.len()),
        "sandboxes": listed,
    })
}

/// One sandbox, and how early it is listed.
fn sandbox(own: &SessionAtWork) -> Option<(u8, Value)> {
    let session = own.session.upgrade()?;
    let questions = session.open_questions().shown();
    let (groups, beyond) = groups(&session);
    let is_alarming = groups.iter().any(|own| own["urgency"] == "alarm");
    let rank = match (is_alarming, questions.is_empty(), groups.is_empty()) {
        (true, _, _) => 0,
        (false, false, _) => 1,
        (false, true, false) => 2,
        (false, true, true) => 3,
    };
    let listed = questions.iter().take(LISTED_MAX).map(|own| {
        json!({
            "id": own.id, "subject": cut(&own.subject), "program": cut(&own.program),
            "left": own.left.as_secs(),
        })
    });
    let (flows, flows_max) = session.flows();
    let value = json!({
        "number": own.number,
        "name": cut(&own.name),
        "uid": own.uid,
        "pid": own.pid,
        "token": own.of_token,
        "seconds": own.since.elapsed().as_secs(),
        "generation": session.generation(),
        "mode": session.rules().enforcement().word(),
        "connections": { "used": flows, "limit": flows_max },
        "counts": session.recorder().audit().live().json(),
        "groups": groups,
        "beyond": beyond,
        "questions": listed.collect::<Vec<_>>(),
        "grants": grants(&session),
        "quotas": quotas(&session),
    });
    Some((rank, value))
}

/// Denials by groups, as the digest at the end of a run has them.
fn groups(session: &Session) -> (Vec<Value>, u64) {
    let Some(denials) = session.recorder().denials() else {
        return (Vec::new(), 0);
    };
    let all = denials.groups();
    let shown = all.iter().take(GROUPS_MAX).map(|group| of_group(group));
    let behind = all.iter().skip(GROUPS_MAX).map(|group| group.count);
    let beyond = behind.fold(denials.beyond(), u64::saturating_add);
    (shown.collect(), beyond)
}

fn of_group(group: &DenialGroup) -> Value {
    let urgency = match group.urgency {
        Urgency::Alarm => "alarm",
        Urgency::Credential => "credential",
        Urgency::Denied => "denied",
        Urgency::Passed => "passed",
    };
    json!({
        "urgency": urgency, "program": group.program, "subject": group.subject,
        "because": group.because, "flags": group.flags, "count": group.count,
    })
}

/// Rules that were granted while it ran.
fn grants(session: &Session) -> Vec<Value> {
    let rules = session.rules();
    let granted = rules.own().rules();
    let granted = granted.filter(|rule| RuleRef::is_grant(&rule.place));
    let shown = |text: &str| {
        cut(&session
            .recorder()
            .masked(text)
            .unwrap_or_else(|| text.to_owned()))
    };
    let granted = granted.take(LISTED_MAX);
    granted
        .map(|rule| json!({ "rule": shown(&rule.text), "place": cut(&rule.place) }))
        .collect()
}

fn quotas(session: &Session) -> Vec<Value> {
    let shown = session.budgets().shown().into_iter().take(LISTED_MAX);
    shown
        .map(|(rule, to, spent, bytes)| {
            json!({ "rule": cut(&rule), "to": cut(&to), "spent": spent, "bytes": bytes })
        })
        .collect()
}
