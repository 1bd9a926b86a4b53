//! The summary as Markdown, for the page of a pipeline's step (GitHub Flavored Markdown).
//! Whatever comes from a record stands in a code span that no backtick of its own ends, on a
//! line that begins with this program's words: there it is no markup, no link and no mention.

use outgate_policy::{DenialGroup, Urgency, printable};

use super::{
    ENTRIES_MAX, Reached, alarms, credentials, groups, is_monitored, reached, without_commands,
};
use crate::audit::lines::size;
use crate::audit::report::Gathered;
use crate::audit::report::html::counted;
use crate::audit::report::model::Model;

/// Bytes of one text that are shown.
const TEXT_BYTES_MAX: usize = 300;

/// The whole text.
pub(in crate::audit::report) fn markdown(gathered: &Gathered) -> String {
    let model = &gathered.model;
    let mut lines = vec!["## outgate".to_owned(), String::new(), lead(gathered)];
    if is_monitored(gathered) {
        lines.push(String::new());
        lines.push(format!(
            "> **Rules were not enforced.** {} only monitored or learned; what rules deny was let through {}.",
            counted(model.unenforced_runs, "run", "runs"),
            counted(model.sum.passed, "time", "times"),
        ));
    }
    let faults = gathered.judge.faults_in_all;
    if faults > 0 {
        lines.push(String::new());
        lines.push(format!(
            "> **The record was altered**: {}; `outgate audit verify` shows where.",
            counted(faults, "fault", "faults")
        ));
    }
    found(&mut lines, model);
    denied(&mut lines, "Denied", &groups(model, Urgency::Denied));
    let passed = groups(model, Urgency::Passed);
    denied(&mut lines, "Let through in spite of the rules", &passed);
    let beyond = model.denials.digest.beyond();
    if beyond > 0 {
        let beyond = counted(beyond, "denial", "denials");
        lines.push(format!("\n{beyond} in no group."));
    }
    let reached = reached(model);
    section(&mut lines, "Reached", reached.iter().map(host));
    if model.found.blind_runs > 0 {
        lines.push(String::new());
        lines.push("Nobody looked for credentials: the scan was off.".to_owned());
    }
    lines.join("\n")
}

/// Alarms and findings.
fn found(lines: &mut Vec<String>, model: &Model) {
    let alarms = alarms(model).map(|(what, by)| format!("- {} by {}", code(&what), code(&by)));
    section(lines, "Alarms", alarms);
    let credentials = credentials(model);
    let entries = credentials.iter().map(|one| {
        format!(
            "- {}{}: {} in {}",
            one.fate.words(),
            times(one.count),
            code(one.name),
            code(one.subject)
        )
    });
    section(lines, "Credentials on their way out", entries);
}

/// The entry of a host.
fn host(one: &Reached<'_>) -> String {
    let marked = match one.passed {
        0 => String::new(),
        passed => format!(", **{passed} in spite of the rules**"),
    };
    let programs: Vec<String> = one.programs.iter().map(|name| code(name)).collect();
    let by = match programs.as_slice() {
        [] => String::new(),
        programs => format!(", by {}", programs.join(", ")),
    };
    format!(
        "- {}: {} allowed{marked}, {} sent, {} received{by}",
        code(one.host),
        one.requests,
        size(one.up),
        size(one.down)
    )
}

/// All of it in a sentence or two.
fn lead(gathered: &Gathered) -> String {
    let model = &gathered.model;
    let found = &model.found;
    let mut parts = vec![
        format!("{} allowed", model.sum.allowed),
        format!("{} denied", model.sum.denied),
        counted(found.findings_in_all, "finding", "findings"),
        counted(found.alarms_in_all, "alarm", "alarms"),
    ];
    if model.lost > 0 {
        parts.push(format!("{} lost", counted(model.lost, "record", "records")));
    }
    if model.unread > 0 {
        parts.push(format!(
            "{} no records",
            counted(model.unread, "line is", "lines are")
        ));
    }
    format!("{}.", parts.join(", "))
}

/// Groups of denials, and the flags that would allow them in one block to copy.
fn denied(lines: &mut Vec<String>, title: &str, groups: &[&DenialGroup]) {
    section(
        lines,
        title,
        groups.iter().map(|group| {
            let by = match group.program.as_str() {
                "" => String::new(),
                program => format!(", by {}", code(program)),
            };
            format!(
                "- {}{}{by}: {}",
                code(&group.subject),
                times(group.count),
                code(&group.because)
            )
        }),
    );
    let shown = groups.iter().take(ENTRIES_MAX);
    let flags: Vec<String> = shown
        .flat_map(|group| &group.flags)
        .filter(|flag| flag.starts_with('-'))
        .map(|flag| without_commands(&printable(flag)))
        .collect();
    if flags.is_empty() {
        return;
    }
    let fence = "`".repeat(run_of_backticks(&flags.join("\n")).max(2) + 1);
    lines.push(String::new());
    lines.push("To allow this:".to_owned());
    lines.push(String::new());
    lines.push(format!("{fence}text"));
    lines.extend(flags);
    lines.push(fence);
}

fn section(lines: &mut Vec<String>, title: &str, entries: impl Iterator<Item = String>) {
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("### {title}"));
    lines.push(String::new());
    let left = entries.len().saturating_sub(ENTRIES_MAX);
    lines.extend(entries.into_iter().take(ENTRIES_MAX));
    if left > 0 {
        lines.push(format!(
            "- and {left} more: `outgate audit report` shows them"
        ));
    }
}

fn times(count: u64) -> String {
    match count {
        1 => String::new(),
        count => format!(" ({count} times)"),
    }
}

/// A text of anybody's as a code span (CommonMark 6.1).
fn code(text: &str) -> String {
    let text = without_commands(&printable(text));
    let cut = text.get(..TEXT_BYTES_MAX).map(|head| format!("{head}..."));
    let text = cut.unwrap_or(text);
    let fence = "`".repeat(run_of_backticks(&text) + 1);
    // A span has no empty text, and its backticks are not its text's.
    let pad = if text.trim().is_empty() || text.contains('`') {
        " "
    } else {
        ""
    };
    let text = if text.trim().is_empty() { "-" } else { &text };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// The longest run of backticks.
fn run_of_backticks(text: &str) -> usize {
    text.split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or(0)
}
