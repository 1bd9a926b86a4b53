//! One scenario, a line for each contender: as text and as JSON. Pure.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::report::Verdict;

const COLUMNS: usize = 5;

/// What one contender did.
#[derive(Debug)]
pub(crate) struct Line {
    /// Who.
    pub(crate) name: &'static str,
    /// Its figures, one for each title.
    pub(crate) cells: [String; COLUMNS],
    /// What was asked of it, if anything.
    pub(crate) target: String,
    /// Whether it holds.
    pub(crate) verdict: Verdict,
    /// Its figures for a program.
    pub(crate) json: Value,
}

/// A scenario and its lines.
#[derive(Debug)]
pub(crate) struct Comparison {
    what: &'static str,
    titles: [&'static str; COLUMNS],
    lines: Vec<Line>,
    faults: Vec<String>,
}

impl Comparison {
    /// Without lines yet.
    pub(crate) fn new(what: &'static str, titles: [&'static str; COLUMNS]) -> Self {
        Self {
            what,
            titles,
            lines: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Says that a contender has no figures, and why.
    pub(crate) fn fail(&mut self, name: &str, why: &str) {
        let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = why.chars().take(100).collect();
        self.faults.push(format!("{name} failed: {short}"));
    }

    /// What the scenario is.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Every verdict.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.lines.iter().map(|line| line.verdict)
    }

    /// The table.
    pub(crate) fn text(&self) -> String {
        let mut widths = self.titles.map(str::len);
        for line in &self.lines {
            for (width, cell) in widths.iter_mut().zip(&line.cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = format!("\n  {:<34}", self.what);
        // Writing to a string never fails.
        for (width, title) in widths.iter().zip(self.titles) {
            let _ = write!(text, "  {title:>width$}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        for line in &self.lines {
            let mut row = format!("    {:<32}", line.name);
            for (width, cell) in widths.iter().zip(&line.cells) {
                let _ = write!(row, "  {cell:>width$}");
            }
            let _ = write!(row, "  {}  {}", line.target, line.verdict.word());
            text.push_str(row.trim_end());
            text.push('\n');
        }
        for fault in &self.faults {
            let _ = writeln!(text, "    {fault}");
        }
        text
    }

    /// Every figure.
    pub(crate) fn json(&self, section: &str) -> Value {
        let contenders: Vec<Value> = self
            .lines
            .iter()
            .map(|line| {
                json!({"name": line.name, "figures": line.json, "target": line.target,
                       "verdict": line.verdict.word()})
            })
            .collect();
        json!({"section": section, "what": self.what, "contenders": contenders, "failed": self.faults})
    }
}
