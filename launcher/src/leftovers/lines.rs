//! Leftovers in words. Pure; paths are shown without what a terminal would obey.

use std::path::Path;

use outgate_policy::printable;

use super::limits::{LINES_MAX, SHOWN_BYTES_MAX};
use super::{Leftover, LeftoverLook};

/// Lines for the end of a run, five at most. `directory` is where the run began, and `kept`
/// says whether the differences can be shown.
pub fn lines(look: &LeftoverLook, directory: &Path, kept: Option<&Path>) -> Vec<String> {
    let mut last = Vec::new();
    if let Some(why) = &look.unseen {
        let why = printable(why);
        last.push(format!(
            "outgate: leftovers: not all that was writable was looked at: {why}"
        ));
    }
    let shown = if kept.is_some() && !look.left.is_empty() {
        "`outgate leftovers` shows them, and with --revert puts them back"
    } else {
        "they are in the run's record"
    };
    let room = LINES_MAX.saturating_sub(last.len());
    let total = look.left.len();
    let is_many = total > room.saturating_sub(1);
    let single = if is_many {
        room.saturating_sub(1)
    } else {
        total
    };
    let mut lines: Vec<String> = look
        .left
        .iter()
        .take(single)
        .map(|left| line(left, directory))
        .collect();
    if is_many {
        let more = total.saturating_sub(single);
        lines.push(format!("outgate: leftovers: and {more} more; {shown}"));
    } else if total > 0 && kept.is_some() {
        lines.push(format!("outgate: leftovers: {shown}"));
    }
    lines.extend(last);
    lines
}

/// One of them.
fn line(left: &Leftover, directory: &Path) -> String {
    let kind = left.kind();
    format!(
        "outgate: leftover: {} {}: `{}` ({})",
        left.change.word(),
        kind.what,
        shown(left.path(), directory),
        kind.when
    )
}

/// A path as people see it: from where they are, and not longer than a line.
pub(super) fn shown(path: &Path, directory: &Path) -> String {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let text = printable(&below.to_string_lossy());
    if text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    let half = SHOWN_BYTES_MAX / 2;
    let begin = text.get(..half).unwrap_or_default();
    let end = text
        .get(text.len().saturating_sub(half)..)
        .unwrap_or_default();
    format!("{begin}…{end}")
}
