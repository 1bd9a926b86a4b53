//! Two texts of which the second has more: the lines that differ, as `diff -u` shows them
//! without context. Text only.

/// Lines that are compared one by one; beyond them, all that differ are shown as changed.
const COMPARED_MAX: usize = 4_000_000;

/// The lines that differ, each with `-` or `+` before it, below the number of the line where
/// they begin.
pub(crate) fn added(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other);
    let head = same.count();
    let (old, new) = (
        old.get(head..).unwrap_or(&[]),
        new.get(head..).unwrap_or(&[]),
    );
    let same = old.iter().rev().zip(new.iter().rev());
    let tail = same.take_while(|(one, other)| one == other).count();
    let cut = |lines: &[&str]| lines.len().saturating_sub(tail);
    let old = old.get(..cut(old)).unwrap_or(&[]);
    let new = new.get(..cut(new)).unwrap_or(&[]);
    let mut out = Vec::new();
    let mut line = head.saturating_add(1);
    let mut is_open = false;
    for step in steps(old, new) {
        if let Step::Same = step {
            is_open = false;
            line = line.saturating_add(1);
            continue;
        }
        if !is_open {
            out.push(format!("@@ line {line} @@"));
            is_open = true;
        }
        match step {
            Step::Gone(text) => out.push(format!("-{text}")),
            Step::New(text) => {
                out.push(format!("+{text}"));
                line = line.saturating_add(1);
            }
            Step::Same => {}
        }
    }
    out
}

/// One step from the first text to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'t> {
    Same,
    Gone(&'t str),
    New(&'t str),
}

/// The steps along a longest common subsequence.
fn steps<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Step<'t>> {
    let width = new.len().saturating_add(1);
    let cells = old.len().saturating_add(1).saturating_mul(width);
    if cells > COMPARED_MAX {
        let gone = old.iter().map(|text| Step::Gone(text));
        return gone.chain(new.iter().map(|text| Step::New(text))).collect();
    }
    // The length of the longest common subsequence from each pair of lines on.
    let mut table = vec![0_u32; cells];
    let at = |row: usize, column: usize| row.saturating_mul(width).saturating_add(column);
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let cell = |row: usize, column: usize| table.get(at(row, column)).copied().unwrap_or(0);
            let length = if one == other {
                cell(row + 1, column + 1).saturating_add(1)
            } else {
                cell(row + 1, column).max(cell(row, column + 1))
            };
            if let Some(own) = table.get_mut(at(row, column)) {
                *own = length;
            }
        }
    }
    let cell = |row: usize, column: usize| table.get(at(row, column)).copied().unwrap_or(0);
    let (mut row, mut column) = (0, 0);
    let mut steps = Vec::new();
    loop {
        match (old.get(row), new.get(column)) {
            (None, None) => return steps,
            (Some(one), Some(other)) if one == other => {
                steps.push(Step::Same);
                row += 1;
                column += 1;
            }
            (Some(one), other)
                if other.is_none() || cell(row + 1, column) >= cell(row, column + 1) =>
            {
                steps.push(Step::Gone(one));
                row += 1;
            }
            (_, Some(other)) => {
                steps.push(Step::New(other));
                column += 1;
            }
            (Some(one), None) => {
                steps.push(Step::Gone(one));
                row += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_shown_where_it_stands() {
        assert_eq!(added("a\nb\n", "a\nb\n"), Vec::<String>::new());
        assert_eq!(added("a\nb\n", "a\nx\nb\n"), ["@@ line 2 @@", "+x"]);
        assert_eq!(
            added("a\nb\nc\n", "x\na\nb,\nc\ny\n"),
            [
                "@@ line 1 @@",
                "+x",
                "@@ line 3 @@",
                "-b",
                "+b,",
                "@@ line 5 @@",
                "+y"
            ]
        );
        assert_eq!(added("", "a\n"), ["@@ line 1 @@", "+a"]);
    }
}
