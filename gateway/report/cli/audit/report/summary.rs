//! What a pipeline shows of its records: what was reached, denied and found, as Markdown, JSON
//! and SARIF. One list of what there is to say; how each form says it is below. Names and paths
//! are a command's own words: no form lets them be more than text.

mod json;
mod markdown;
mod sarif;

use outgate_policy::{DenialGroup, Urgency, printable};
use outgate_record::{Alarm, Outcome};

use super::Gathered;
use super::model::Model;

pub(super) use json::json;
pub(super) use markdown::markdown;
pub(super) use sarif::sarif;

/// Entries of one kind that are shown: beyond, nobody reads a summary.
const ENTRIES_MAX: usize = 200;

/// One host that something was let to.
struct Reached<'m> {
    host: &'m str,
    requests: u64,
    passed: u64,
    up: u64,
    down: u64,
    programs: Vec<&'m str>,
}

/// What became of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Held,
    Passed,
}

impl Fate {
    fn words(self) -> &'static str {
        match self {
            Self::Held => "held back",
            Self::Passed => "let pass",
        }
    }
}

/// One credential on its way out, in one form.
struct Credential<'m> {
    subject: &'m str,
    name: &'m str,
    detector: &'m str,
    count: u64,
    fate: Fate,
    alarm: Alarm,
}

/// The hosts that something was let to, by what went there.
fn reached(model: &Model) -> Vec<Reached<'_>> {
    let hosts = model.hosts.by(|host| host.sum.weight());
    let hosts = hosts.into_iter().filter(|(_, host)| host.sum.allowed > 0);
    hosts
        .map(|(host, peer)| Reached {
            host,
            requests: peer.sum.allowed,
            passed: peer.sum.passed,
            up: peer.sum.up,
            down: peer.sum.down,
            programs: peer.others.iter().map(String::as_str).collect(),
        })
        .collect()
}

/// The groups of what was denied, or let through in spite of the rules.
fn groups(model: &Model, urgency: Urgency) -> Vec<&DenialGroup> {
    let groups = model.denials.digest.groups().into_iter();
    groups.filter(|group| group.urgency == urgency).collect()
}

/// Findings, those that were let pass first.
fn credentials(model: &Model) -> Vec<Credential<'_>> {
    let by = model.found.findings.by(|one| {
        (
            one.alarm == Alarm::Raised,
            one.verdict != Outcome::Deny,
            one.count,
        )
    });
    by.into_iter()
        .map(|((subject, _), one)| Credential {
            subject,
            name: &one.found.name,
            detector: &one.found.detector,
            count: one.count,
            fate: match one.verdict {
                Outcome::Deny => Fate::Held,
                Outcome::Allow | Outcome::Note => Fate::Passed,
            },
            alarm: one.alarm,
        })
        .collect()
}

/// Alarms in words: what, and by whom.
fn alarms(model: &Model) -> impl Iterator<Item = (String, String)> + '_ {
    model.found.alarms.iter().map(|record| {
        let what = format!("{}: {}", record.subject(), record.detail());
        (printable(&what), printable(record.executable()))
    })
}

/// Whether rules were not enforced.
fn is_monitored(gathered: &Gathered) -> bool {
    let model = &gathered.model;
    model.unenforced_runs > 0 || model.sum.passed > 0
}

/// Text that no runner of pipelines takes for one of its commands: those stand behind `##`
/// wherever they are in a line. What stands at its beginning is this program's word.
fn without_commands(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        if letter == '#' && before == '#' {
            safe.push_str("\\u0023");
            before = ' ';
            continue;
        }
        safe.push(letter);
        before = letter;
    }
    safe
}

#[cfg(test)]
mod tests;
