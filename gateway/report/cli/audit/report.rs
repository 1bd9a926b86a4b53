//! `outgate audit report`: a record as one page that a person wants to look at.
//! Reads a record once, keeps what the page shows within bounds, and writes it.

mod bounded;
mod charts;
mod denied;
mod found;
mod html;
mod left;
mod model;
mod monitored;
mod page;
mod sections;
mod summary;
mod timeline;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use model::Model;

use super::Record;
use super::arguments::{FailOn, Files, Report, Summary, SummaryFormat};
use super::verify::{Chain, Judge, is_written};
use super::voice::{self, Sheet};
use crate::records::{self, Go};

/// Something was there that a pipeline is to fail on.
const FAILED: u8 = 1;

/// What was read of records, in bounded memory.
struct Gathered {
    files: Vec<PathBuf>,
    judge: Judge,
    chains: Vec<Chain>,
    model: Model,
}

/// Reads records once.
fn gathered(files: &Files, records: Option<&Path>) -> Result<Gathered, String> {
    let files = records::files(&files.paths, records)?;
    let mut judge = Judge::default();
    let mut model = Model::default();
    records::each(&files, |line| {
        judge.look(line);
        match Record::parse(line.bytes) {
            Some(record) => model.add(&record),
            None => model.unread = model.unread.saturating_add(1),
        }
        Ok(Go::On)
    })?;
    let chains = judge.end();
    model.end();
    if model.records == 0 {
        return Err("there is no record to report on: no line is one".to_owned());
    }
    Ok(Gathered {
        files,
        judge,
        chains,
        model,
    })
}

/// Makes the page.
pub(crate) fn report(options: &Report, records: Option<&Path>) -> Result<ExitCode, String> {
    let Gathered {
        files,
        judge,
        chains,
        model,
    } = gathered(&options.files, records)?;
    let about = page::About {
        files: files
            .iter()
            .map(|file| file.display().to_string())
            .collect(),
        goes_on: if files.iter().any(|file| is_written(file)) {
            page::Goes::On
        } else {
            page::Goes::Ended
        },
        judge: &judge,
        chains: &chains,
    };
    let document = page::page(&model, &about);
    let mut sheet = Sheet::new(options.output.as_deref())?;
    sheet.line(document.trim_end())?;
    sheet.finish()?;
    if let Some(path) = &options.output {
        voice::note(&format!("the report is in {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the summary of a pipeline.
pub(crate) fn summary(options: &Summary, records: Option<&Path>) -> Result<ExitCode, String> {
    let gathered = gathered(&options.files, records)?;
    let text = match options.format {
        SummaryFormat::Markdown => summary::markdown(&gathered),
        SummaryFormat::Json => summary::json(&gathered),
        SummaryFormat::Sarif => summary::sarif(&gathered),
    };
    let mut sheet = Sheet::new(options.output.as_deref())?;
    sheet.line(text.trim_end())?;
    sheet.finish()?;
    // Nothing is told by an altered record, least of all that nothing happened.
    let altered = gathered.judge.faults_in_all > 0 && !options.fail_on.is_empty();
    let sum = &gathered.model.sum;
    let found = &gathered.model.found;
    let has = |what: &FailOn| match what {
        FailOn::Denied => sum.denied > 0 || sum.passed > 0,
        FailOn::Finding => found.findings_in_all > 0 || found.alarms_in_all > 0,
    };
    Ok(if altered || options.fail_on.iter().any(has) {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}
