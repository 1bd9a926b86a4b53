//! The filter in words, for `outgate check -v` and for whoever reviews a change
//! to the table. Made from the same rows as the program. Returns text, prints nothing.

use std::fmt::{self, Write as _};

use super::rule::{ArgumentQuestion, FilterAction, FilterRule, Test};
use super::table::{self, Row};
use super::{Arch, FilterOptions};

/// One line per call that is not simply allowed: name, number, what happens,
/// and why; below it, where arguments decide, one line per case, first match
/// first. Calls that `arch` does not have are left out.
pub fn listing(arch: Arch, options: &FilterOptions) -> String {
    let mut text = String::new();
    // Writing to a string has no way to go wrong.
    let _written: fmt::Result = write(&mut text, arch, *options);
    text
}

fn write(text: &mut String, arch: Arch, options: FilterOptions) -> fmt::Result {
    writeln!(text, "system call filter for {}", arch.name())?;
    for group in table::groups(options).into_iter().flatten() {
        writeln!(text, "\n{}", group.title)?;
        for row in group.rows {
            if let Some(number) = row.numbers.on(arch) {
                write_row(text, row, number)?;
            }
        }
    }
    writeln!(text, "\neverything else")?;
    for range in table::unassigned(arch) {
        let (first, last) = (range.start(), range.end());
        writeln!(
            text,
            "  {first} to {last}: refused ENOSYS: no call has these numbers"
        )?;
    }
    writeln!(
        text,
        "  above {}: refused ENOSYS: newer than this filter",
        table::NEWEST
    )?;
    if arch == Arch::X86_64 {
        writeln!(
            text,
            "  x32 calls: process killed: the same calls by other numbers"
        )?;
    }
    writeln!(
        text,
        "  calls of another architecture: process killed: the same calls by other numbers"
    )?;
    writeln!(text, "  all other calls: allowed")
}

fn write_row(text: &mut String, row: &Row, number: u32) -> fmt::Result {
    let Row {
        name, rule, reason, ..
    } = row;
    match rule {
        FilterRule::Do(action) => writeln!(text, "  {name} ({number}): {action}: {reason}"),
        FilterRule::Ask { .. } => {
            writeln!(text, "  {name} ({number}): by its arguments: {reason}")?;
            write_cases(text, rule, "")
        }
    }
}

/// The leaves of a rule in the order they are tried. `known` are the answers
/// that led here and still need saying.
fn write_cases(text: &mut String, rule: &FilterRule, known: &str) -> fmt::Result {
    match rule {
        FilterRule::Do(action) if known.is_empty() => writeln!(text, "      otherwise: {action}"),
        FilterRule::Do(action) => writeln!(text, "      {known}: {action}"),
        FilterRule::Ask { question, yes, no } => {
            let and = if known.is_empty() { "" } else { ", " };
            write_cases(text, yes, &format!("{known}{and}{question}"))?;
            write_cases(text, no, known)
        }
    }
}

impl fmt::Display for FilterAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => formatter.write_str("allowed"),
            Self::Pretend => formatter.write_str("not performed, returns 0"),
            Self::Refuse(errno) => write!(formatter, "refused {}", errno.name),
            Self::Hold => formatter.write_str("held"),
            Self::Kill => formatter.write_str("process killed"),
        }
    }
}

impl fmt::Display for ArgumentQuestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, values) = match &self.test {
            Test::Is { any_of, .. } => ("is", any_of),
            Test::Has(flags) => ("has", flags),
        };
        write!(formatter, "{} {verb}", self.name)?;
        for (index, value) in values.iter().enumerate() {
            let or = if index == 0 { "" } else { " or" };
            write!(formatter, "{or} {}", value.name)?;
        }
        Ok(())
    }
}
