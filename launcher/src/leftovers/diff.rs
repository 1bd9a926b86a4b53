//! One leftover as a unified difference, with what a terminal would obey neutralised and what
//! may be a credential masked. Pure.

use outgate_policy::printable;

use super::file::{FileContent, text};
use super::kinds::Contents;
use super::limits::{DIFF_LINES_MAX, DIFF_SHOWN_MAX};
use super::{Leftover, Was};

/// Lines around what differs.
const CONTEXT: usize = 3;

/// Words of a name behind which a credential may stand.
const CREDENTIALS: [&str; 9] = [
    "token",
    "auth",
    "passw",
    "secret",
    "key",
    "credential",
    "bearer",
    "cookie",
    "pwd",
];

/// The difference that a run made, line by line.
pub fn diff(left: &Leftover) -> Vec<String> {
    let path = printable(&left.path().to_string_lossy());
    let (before, old) = match &left.was {
        Was::Absent => ("/dev/null", Vec::new()),
        Was::Unknown => ("(not known)", Vec::new()),
        Was::Known { content, .. } => (path.as_str(), lines(content)),
    };
    let mut out = vec![format!("--- {before}"), format!("+++ {path}")];
    if let Was::Known { mode, .. } = left.was
        && mode & 0o7777 != left.state.mode & 0o7777
    {
        out.push(format!(
            "mode {:o} -> {:o}",
            mode & 0o7777,
            left.state.mode & 0o7777
        ));
    }
    let new = lines(&left.is);
    let is_secret = left.kind().contents == Contents::Secret;
    for line in hunks(&old, &new) {
        if out.len() >= DIFF_SHOWN_MAX {
            out.push("(more is not shown)".to_owned());
            break;
        }
        let line = if is_secret { masked(&line) } else { line };
        out.push(printable(&line));
    }
    out
}

fn lines(content: &FileContent) -> Vec<String> {
    match content {
        FileContent::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(str::to_owned).collect()
        }
        FileContent::Link(target) => vec![format!("(a link to {})", text(target))],
        FileContent::Unknown(why) => vec![format!("({why})")],
    }
}

/// A line of settings without the value, if its name is that of a credential.
fn masked(line: &str) -> String {
    let small = line.to_lowercase();
    if !CREDENTIALS.iter().any(|word| small.contains(word)) && !line.contains('@') {
        return line.to_owned();
    }
    match line.find(['=', ':']) {
        Some(at) => format!("{}…", line.get(..=at).unwrap_or_default()),
        None => format!("{}…", line.get(..1).unwrap_or_default()),
    }
}

/// What is done with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// Hunks of a unified difference.
fn hunks(old: &[String], new: &[String]) -> Vec<String> {
    let edits = edits(old, new);
    let mut out = Vec::new();
    let mut at = 0;
    let (mut before, mut after) = (0_usize, 0_usize);
    let is_near = |place: usize| {
        let begin = place.saturating_sub(CONTEXT);
        let end = place
            .saturating_add(CONTEXT)
            .saturating_add(1)
            .min(edits.len());
        let near = edits.get(begin..end).unwrap_or_default();
        near.iter().any(|(edit, _)| *edit != Edit::Keep)
    };
    let mut is_open = false;
    while let Some((edit, line)) = edits.get(at) {
        if is_near(at) {
            if !is_open {
                let (old_line, new_line) = (before.saturating_add(1), after.saturating_add(1));
                out.push(format!("@@ -{old_line} +{new_line} @@"));
                is_open = true;
            }
            let sign = match edit {
                Edit::Keep => ' ',
                Edit::Remove => '-',
                Edit::Add => '+',
            };
            out.push(format!("{sign}{line}"));
        } else {
            is_open = false;
        }
        match edit {
            Edit::Keep => {
                before = before.saturating_add(1);
                after = after.saturating_add(1);
            }
            Edit::Remove => before = before.saturating_add(1),
            Edit::Add => after = after.saturating_add(1),
        }
        at = at.saturating_add(1);
    }
    out
}

/// The lines of both: those at the beginning and the end that are the same, and between them
/// the longest common sequence, where there are few enough to look for one.
fn edits<'t>(old: &'t [String], new: &'t [String]) -> Vec<(Edit, &'t str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (
        old.get(head..).unwrap_or_default(),
        new.get(head..).unwrap_or_default(),
    );
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let old_middle = old_rest
        .get(..old_rest.len().saturating_sub(tail))
        .unwrap_or_default();
    let new_middle = new_rest
        .get(..new_rest.len().saturating_sub(tail))
        .unwrap_or_default();
    let keep = |lines: &'t [String]| lines.iter().map(|line| (Edit::Keep, line.as_str()));
    let mut out: Vec<(Edit, &str)> = keep(old.get(..head).unwrap_or_default()).collect();
    out.extend(middle(old_middle, new_middle));
    out.extend(keep(old_rest.get(old_middle.len()..).unwrap_or_default()));
    out
}

fn middle<'t>(old: &'t [String], new: &'t [String]) -> Vec<(Edit, &'t str)> {
    let removed = |lines: &'t [String]| lines.iter().map(|line| (Edit::Remove, line.as_str()));
    let added = |lines: &'t [String]| lines.iter().map(|line| (Edit::Add, line.as_str()));
    if old.len() > DIFF_LINES_MAX || new.len() > DIFF_LINES_MAX {
        return removed(old).chain(added(new)).collect();
    }
    // Lengths of the longest common sequences of what is left from each pair of lines on.
    let mut table = vec![vec![0_u16; new.len().saturating_add(1)]; old.len().saturating_add(1)];
    let at = |table: &[Vec<u16>], i: usize, j: usize| {
        table
            .get(i)
            .and_then(|row| row.get(j))
            .copied()
            .unwrap_or(0)
    };
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let (down, right) = (i.saturating_add(1), j.saturating_add(1));
            let length = if a == b {
                at(&table, down, right).saturating_add(1)
            } else {
                at(&table, down, j).max(at(&table, i, right))
            };
            if let Some(cell) = table.get_mut(i).and_then(|row| row.get_mut(j)) {
                *cell = length;
            }
        }
    }
    let mut out = Vec::new();
    let (mut i, mut j) = (0_usize, 0_usize);
    while let (Some(a), Some(b)) = (old.get(i), new.get(j)) {
        let (down, right) = (i.saturating_add(1), j.saturating_add(1));
        if a == b {
            out.push((Edit::Keep, a.as_str()));
            (i, j) = (down, right);
        } else if at(&table, down, j) >= at(&table, i, right) {
            out.push((Edit::Remove, a.as_str()));
            i = down;
        } else {
            out.push((Edit::Add, b.as_str()));
            j = right;
        }
    }
    out.extend(removed(old.get(i..).unwrap_or_default()));
    out.extend(added(new.get(j..).unwrap_or_default()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str) -> Vec<String> {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        hunks(&lines(old), &lines(new))
    }

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        for (old, new, shown) in [
            ("abc", "abc", &[][..]),
            ("", "ab", &["@@ -1 +1 @@", "+a", "+b"]),
            ("ab", "", &["@@ -1 +1 @@", "-a", "-b"]),
            (
                "abcdefg",
                "abcdXefg",
                &["@@ -2 +2 @@", " b", " c", " d", "+X", " e", " f", " g"],
            ),
            ("axb", "ayb", &["@@ -1 +1 @@", " a", "-x", "+y", " b"]),
        ] {
            assert_eq!(of(old, new), shown, "{old} {new}");
        }
    }

    #[test]
    fn values_behind_names_of_credentials_are_not_shown() {
        for (line, shown) in [
            ("+//r.test/:_authToken=abc", "+//r.test/:…"),
            ("+registry = https://r.test/", "+registry = https://r.test/"),
            ("+url = https://u:p@r.test/", "+url =…"),
            ("+\"GH_TOKEN\": \"abc\"", "+\"GH_TOKEN\":…"),
        ] {
            assert_eq!(masked(line), shown);
        }
    }
}
