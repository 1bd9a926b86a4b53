//! The table and its JSON. A row says what was compared, both sides, what
//! outgate adds, and whether the target is met. Prints nothing itself.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::comparison::Comparison;
use crate::machine::{Machine, load};
use crate::statistics::{Estimate, Spread, differences, estimate, spread};

/// What a row must not exceed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At most this many microseconds more than bare.
    Added(f64),
    /// At most this share more than bare, in percent.
    Percent(f64),
    /// At most this share more than bare, in percent, beside the cost of the
    /// start, in microseconds.
    PercentAndStart(f64, f64),
    /// None: the row explains another.
    None,
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// The interval of doubt holds the target.
    Unclear,
    /// There is no target.
    Open,
}

impl Verdict {
    /// For the table; empty without a target.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unclear => "unclear",
            Self::Open => "",
        }
    }
}

/// Two sides that were measured in turns, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    /// Every sample bare.
    pub(crate) bare: Vec<f64>,
    /// Every sample inside.
    pub(crate) inside: Vec<f64>,
    /// `inside - bare` of what was measured one after the other: of single runs,
    /// or of the medians of two blocks.
    pub(crate) added: Vec<f64>,
}

impl Sides {
    /// Sides of runs that were measured one by one in turns.
    pub(crate) fn pairs(bare: Vec<f64>, inside: Vec<f64>) -> Self {
        let added = differences(&bare, &inside);
        Self {
            bare,
            inside,
            added,
        }
    }

    /// Adds a block of each side.
    pub(crate) fn add_blocks(&mut self, bare: Vec<f64>, inside: Vec<f64>) {
        self.added
            .push(spread(&inside).median - spread(&bare).median);
        self.bare.extend(bare);
        self.inside.extend(inside);
    }
}

struct Row {
    cells: [String; 6],
    verdict: Verdict,
    json: Value,
}

/// Everything measured so far.
pub(crate) struct Report {
    machine: Machine,
    heading: &'static str,
    rows: Vec<Row>,
    comparisons: String,
    notes: Vec<String>,
    finished: Vec<Value>,
    met: u32,
    missed: Vec<String>,
    unclear: u32,
}

impl Report {
    /// Without rows yet.
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            heading: "",
            rows: Vec::new(),
            comparisons: String::new(),
            notes: Vec::new(),
            finished: Vec::new(),
            met: 0,
            missed: Vec::new(),
            unclear: 0,
        }
    }

    /// Starts a section.
    pub(crate) fn begin(&mut self, heading: &'static str) {
        self.heading = heading;
    }

    /// Adds a row of times.
    pub(crate) fn times(&mut self, what: &str, sides: &Sides, target: Target) {
        let (bare, inside, added) = (
            spread(&sides.bare),
            spread(&sides.inside),
            estimate(&sides.added),
        );
        let ratio = 1.0 + added.median / bare.median;
        let (words, verdict) = judge(target, added, bare.median);
        self.push(Row {
            cells: [
                what.to_owned(),
                side(bare),
                side(inside),
                format!("{} {}", signed(added.median), doubt(added)),
                percent(ratio),
                words.clone(),
            ],
            verdict,
            json: json!({
                "section": self.heading, "what": what, "unit": "us",
                "bare": spread_json(bare), "inside": spread_json(inside),
                "added": {"median": added.median, "low": added.low, "high": added.high},
                "ratio": ratio, "samples": sides.inside.len(), "pairs": sides.added.len(),
                "target": words, "verdict": verdict.word(),
            }),
        });
    }

    /// Adds a row that is not a time: both sides and the target in words.
    pub(crate) fn facts(&mut self, what: &str, sides: [String; 2], target: &str, verdict: Verdict) {
        let [bare, inside] = sides;
        let json = json!({
            "section": self.heading, "what": what, "bare": bare, "inside": inside,
            "target": target, "verdict": verdict.word(),
        });
        self.push(Row {
            cells: [
                what.to_owned(),
                bare,
                inside,
                String::new(),
                String::new(),
                target.to_owned(),
            ],
            verdict,
            json,
        });
    }

    /// Adds a line below the section.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds a scenario that several were measured in.
    pub(crate) fn compare(&mut self, comparison: &Comparison) {
        for verdict in comparison.verdicts() {
            self.count(verdict, comparison.what());
        }
        self.comparisons.push_str(&comparison.text());
        self.finished.push(comparison.json(self.heading));
    }

    fn count(&mut self, verdict: Verdict, what: &str) {
        match verdict {
            Verdict::Met => self.met = self.met.saturating_add(1),
            Verdict::Unclear => self.unclear = self.unclear.saturating_add(1),
            Verdict::Missed => self.missed.push(what.to_owned()),
            Verdict::Open => {}
        }
    }

    fn push(&mut self, row: Row) {
        let what = row.cells.first().cloned().unwrap_or_default();
        self.count(row.verdict, &what);
        self.finished.push(row.json.clone());
        self.rows.push(row);
    }

    /// The lines above the table.
    pub(crate) fn head(&self) -> String {
        self.machine.text()
    }

    /// The rows since the last call, as a table.
    pub(crate) fn section(&mut self) -> String {
        let titles = ["", "bare", "inside", "added", "", "target"].map(str::to_owned);
        let mut widths = titles.clone().map(|cell| cell.chars().count());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = format!("\n{}\n", self.heading);
        if !self.rows.is_empty() {
            line(&mut text, &widths, &titles, "");
        }
        for row in self.rows.drain(..) {
            line(&mut text, &widths, &row.cells, row.verdict.word());
        }
        text.push_str(&std::mem::take(&mut self.comparisons));
        for note in self.notes.drain(..) {
            text.push_str("  - ");
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    /// The lines below the table.
    pub(crate) fn foot(&self) -> String {
        let Self {
            met,
            missed,
            unclear,
            ..
        } = self;
        let mut text = format!(
            "\n{met} targets met, {} missed, {unclear} unclear; load now {}\n",
            missed.len(),
            load()
        );
        for what in missed {
            text.push_str("  missed: ");
            text.push_str(what);
            text.push('\n');
        }
        text
    }

    /// Every figure.
    pub(crate) fn json(&self) -> String {
        format!(
            "{:#}\n",
            json!({"machine": self.machine.json(), "rows": self.finished})
        )
    }

    /// Whether no target is missed.
    pub(crate) fn holds(&self) -> bool {
        self.missed.is_empty()
    }
}

fn line(text: &mut String, widths: &[usize; 6], cells: &[String; 6], verdict: &str) {
    let mut line = String::from(" ");
    for (index, (width, cell)) in widths.iter().zip(cells).enumerate() {
        // Words to the left, figures to the right. Writing to a string never fails.
        let _ = if index == 0 || index == 5 {
            write!(line, " {cell:<width$}  ")
        } else {
            write!(line, " {cell:>width$}  ")
        };
    }
    line.push_str(verdict);
    text.push_str(line.trim_end());
    text.push('\n');
}

fn judge(target: Target, added: Estimate, bare: f64) -> (String, Verdict) {
    let (words, limit) = match target {
        Target::Added(limit) => (format!("<= {}", signed(limit)), limit),
        Target::Percent(percent) => (format!("<= +{percent} %"), bare * percent / 100.0),
        Target::PercentAndStart(percent, start) => (
            format!("<= start +{percent} %"),
            start + bare * percent / 100.0,
        ),
        Target::None => return (String::new(), Verdict::Open),
    };
    let verdict = if added.high <= limit {
        Verdict::Met
    } else if added.low > limit {
        Verdict::Missed
    } else {
        Verdict::Unclear
    };
    (words, verdict)
}

fn spread_json(spread: Spread) -> Value {
    json!({"p10": spread.low, "median": spread.median, "p90": spread.high})
}

fn side(spread: Spread) -> String {
    format!(
        "{} ({}..{})",
        time(spread.median),
        bare_number(spread.low, spread.median),
        bare_number(spread.high, spread.median)
    )
}

fn doubt(estimate: Estimate) -> String {
    format!(
        "[{}..{}]",
        bare_number(estimate.low, estimate.median),
        bare_number(estimate.high, estimate.median)
    )
}

fn percent(ratio: f64) -> String {
    if ratio < 2.0 {
        format!("{:+.1} %", (ratio - 1.0) * 100.0)
    } else {
        format!("x {ratio:.2}")
    }
}

/// A time with its unit.
fn time(micros: f64) -> String {
    format!("{} {}", bare_number(micros, micros), unit(micros))
}

fn signed(micros: f64) -> String {
    if micros < 0.0 {
        format!("-{}", time(-micros))
    } else {
        format!("+{}", time(micros))
    }
}

fn unit(micros: f64) -> &'static str {
    if micros.abs() < 1000.0 { "us" } else { "ms" }
}

/// A time without its unit, in the unit and precision that suit `scale`.
fn bare_number(micros: f64, scale: f64) -> String {
    if scale.abs() < 99.95 {
        format!("{micros:.1}")
    } else if scale.abs() < 1000.0 {
        format!("{micros:.0}")
    } else {
        format!("{:.2}", micros / 1000.0)
    }
}
