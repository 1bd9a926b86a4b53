//! The report for people: a line for each finding, one line at the end. Nothing
//! of a file but its name reaches the terminal, and that without controls.

use std::io::{IsTerminal, Write};

use outgate_dlp::{Action, Checked, Place};
use outgate_policy::legible;

use super::{Located, Outcome};

/// How many findings weigh how much.
pub(crate) struct Summary {
    pub(crate) refused: usize,
    pub(crate) reported: usize,
}

impl Summary {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let blocks = |located: &&Located| located.action == Action::Block;
        let refused = outcome.findings.iter().filter(blocks).count();
        Self {
            refused,
            reported: outcome.findings.len().saturating_sub(refused),
        }
    }
}

/// Colours of a terminal, or nothing.
struct Paint {
    is_on: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.is_on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Prints every finding and the summary.
pub(crate) fn findings(outcome: &Outcome, summary: &Summary) {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let paint = Paint {
        is_on: colours && std::io::stdout().is_terminal(),
    };
    let mut lines: Vec<String> = Vec::new();
    for located in &outcome.findings {
        lines.push(line(located, &paint));
    }
    for (path, unscanned) in &outcome.unscanned {
        let place = paint.with("1", &legible(path));
        let reason = paint.with("33", &unscanned.to_string());
        lines.push(format!("{place}: {reason}"));
    }
    // The last line ends too.
    lines.push(String::new());
    let text = if lines.len() > 1 {
        lines.join("\n")
    } else {
        String::new()
    };
    out(&text);
    note(&last(outcome, summary));
}

fn line(located: &Located, paint: &Paint) -> String {
    let finding = &located.finding;
    let path = legible(&located.path);
    let place = match (&located.part, located.line) {
        (Some(part), _) => format!("{path}: {}", legible(part)),
        (None, Some((line, column))) => format!("{path}:{line}:{column}"),
        (None, None) => format!("{path}:@{}", finding.offset),
    };
    let code = match located.action {
        Action::Block => "31;1",
        Action::Warn => "33",
    };
    let mut text = format!(
        "{}: {}  {}",
        paint.with("1", &place),
        paint.with(code, &finding.detector),
        finding.name
    );
    let mut facts = Vec::new();
    if finding.place != Place::Content {
        facts.push(format!("in {}", legible(&finding.place.to_string())));
    }
    if let Some(inside) = &finding.inside {
        facts.push(format!("in {}", legible(inside)));
    }
    if !finding.chain.is_empty() {
        let chain: Vec<String> = finding.chain.iter().map(ToString::to_string).collect();
        facts.push(chain.join(">"));
    }
    match finding.checked {
        Checked::Passed => facts.push("checked".to_owned()),
        Checked::Failed => facts.push("checksum wrong".to_owned()),
        Checked::None => {}
    }
    facts.push(finding.mark.clone());
    text.push_str(&paint.with("2", &format!("  [{}]", facts.join(", "))));
    text
}

fn last(outcome: &Outcome, summary: &Summary) -> String {
    let files = counted(outcome.files, "file", "files");
    let size = match outcome.bytes {
        bytes if bytes < 10_000 => format!("{bytes} bytes"),
        bytes if bytes < 10_000_000 => format!("{} kB", bytes / 1000),
        bytes => format!("{} MB", bytes / 1_000_000),
    };
    let mut parts = vec![match (summary.refused, summary.reported) {
        (0, 0) => "nothing found".to_owned(),
        (refused, 0) => format!("{refused} to refuse"),
        (0, reported) => format!("{reported} to look at"),
        (refused, reported) => format!("{refused} to refuse, {reported} to look at"),
    }];
    if outcome.accepted > 0 {
        parts.push(format!("{} accepted by the baseline", outcome.accepted));
    }
    if !outcome.unscanned.is_empty() {
        parts.push(format!("{} not scanned in full", outcome.unscanned.len()));
    }
    if !outcome.unread.is_empty() {
        parts.push(format!("{} not read", outcome.unread.len()));
    }
    format!("{} in {files}, {size}", parts.join(", "))
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Standard output. A closed one leaves nobody to tell.
pub(crate) fn out(text: &str) {
    let mut output = std::io::stdout().lock();
    drop(output.write_all(text.as_bytes()));
    drop(output.flush());
}

/// A line on standard error.
#[expect(clippy::print_stderr, reason = "this is the program's voice")]
pub(crate) fn note(text: &str) {
    eprintln!("outgate: {text}");
}

/// The same for what is wrong.
pub(crate) fn error(text: &str) {
    note(&text.lines().map(legible).collect::<Vec<_>>().join("\n"));
}
