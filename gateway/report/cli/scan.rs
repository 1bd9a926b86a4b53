//! `outgate scan`: the engine of the gateway's scan, offline, over files, directories,
//! standard input and recorded requests.
//!
//! Reads what it is given and writes the report, nothing else. Values that were
//! found are in no output: engine and reports know only their marks.

pub(crate) mod arguments;
mod baseline;
mod document;
mod har;
mod input;
mod lines;
mod list;
mod progress;
mod report;
mod sarif;
mod setup;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::Scan;
use baseline::Baseline;
use input::{Input, Source};
use outgate_dlp::{Action, Checked, Finding, Unscanned};
use progress::Progress;
use report::Summary;

/// Something was found.
const FOUND: u8 = 1;
/// Wrong use, or something could not be read.
const WRONG: u8 = 2;

/// A finding with its place among the inputs.
pub(crate) struct Located {
    /// The file as it was named, `-` for standard input.
    pub(crate) path: String,
    /// Which part of it: an exchange of an archive.
    pub(crate) part: Option<String>,
    /// Line and column, both from 1, where they can be told.
    pub(crate) line: Option<(u64, u64)>,
    /// What the engine says.
    pub(crate) finding: Finding,
    /// What would follow on the way out.
    pub(crate) action: Action,
}

/// Everything one run of the scan found.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) findings: Vec<Located>,
    /// What could not be looked into: the place, and why.
    pub(crate) unscanned: Vec<(String, Unscanned)>,
    /// What could not be read: a sentence for each.
    pub(crate) unread: Vec<String>,
    /// Findings that a baseline accepts.
    pub(crate) accepted: u64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Most findings that are kept: more are counted by nobody who reads them.
const FINDINGS_MAX: usize = 100_000;

/// Scans files, and obeys the options of `outgate scan`.
pub fn scan(options: &Scan) -> ExitCode {
    match run(options) {
        Ok(status) => status,
        Err(message) => {
            report::error(&message);
            ExitCode::from(WRONG)
        }
    }
}

fn run(options: &Scan) -> Result<ExitCode, String> {
    crate::same_build(options.build.as_deref())?;
    let detectors = setup::detectors(options)?;
    if options.list {
        report::out(&list::text(&detectors, options));
        return Ok(ExitCode::SUCCESS);
    }
    let baseline = match &options.baseline {
        Some(path) => Baseline::read(path)?,
        None => Baseline::fresh()?,
    };
    let rules = setup::ruleset(&detectors, options, baseline.key())?;
    let host = setup::host(options)?;
    let inputs = inputs(options)?;
    let mut outcome = Outcome::default();
    let mut progress = Progress::new(&inputs);
    for input in &inputs {
        let source = Source {
            rules: &rules,
            host: &host,
        };
        source.scan(input, &mut outcome, &mut progress);
    }
    progress.clear();
    finish(options, &detectors, &baseline, outcome)
}

/// What to read, in the order of the arguments; directories by name.
fn inputs(options: &Scan) -> Result<Vec<Input>, String> {
    let standard = [PathBuf::from("-")];
    let paths = if options.paths.is_empty() {
        &standard[..]
    } else {
        &options.paths
    };
    let mut inputs = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            inputs.push(Input::standard(options));
        } else {
            input::collect(path, options, &mut inputs)?;
        }
    }
    Ok(inputs)
}

fn finish(
    options: &Scan,
    detectors: &outgate_dlp::Detectors,
    baseline: &Baseline,
    mut outcome: Outcome,
) -> Result<ExitCode, String> {
    for located in &mut outcome.findings {
        located.action = action(&located.finding, options);
    }
    if let Some(path) = &options.write_baseline {
        let count = baseline.write(path, &outcome.findings)?;
        let findings = if count == 1 { "finding" } else { "findings" };
        let place = path.display();
        report::note(&format!("{count} {findings} accepted in `{place}`"));
        return Ok(ExitCode::SUCCESS);
    }
    let before = outcome.findings.len();
    outcome
        .findings
        .retain(|located| !baseline.accepts(located));
    let accepted = before.saturating_sub(outcome.findings.len());
    outcome.accepted = u64::try_from(accepted).unwrap_or(u64::MAX);
    let summary = Summary::of(&outcome);
    if options.json {
        report::out(&document::text(&outcome, &summary));
    } else if options.sarif {
        report::out(&sarif::text(&outcome, detectors));
    } else {
        report::findings(&outcome, &summary);
    }
    for sentence in &outcome.unread {
        report::error(sentence);
    }
    let refused = options.strict && !outcome.unscanned.is_empty();
    Ok(
        match (
            outcome.findings.is_empty() && !refused,
            outcome.unread.is_empty(),
        ) {
            (true, true) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(FOUND),
            (true, false) => ExitCode::from(WRONG),
        },
    )
}

/// What would follow on the way out: the engine itself only reports here, so that
/// it goes on after a finding.
fn action(finding: &Finding, options: &Scan) -> Action {
    match finding.checked {
        _ if options.strict => Action::Block,
        // At rest nobody sends the changed byte after it.
        Checked::Failed => Action::Warn,
        Checked::Passed | Checked::None => finding.tiered(),
    }
}
