//! `outgate audit report`: a record as one page that a person wants to look at.
//! Reads a record once, keeps what the page shows within bounds, and writes it.

mod bounded;
mod charts;
mod denied;
mod found;
mod html;
mod left;
mod model;
mod page;
mod sections;
mod timeline;

use std::path::Path;
use std::process::ExitCode;

use model::Model;

use super::Record;
use super::arguments::Report;
use super::verify::{Judge, is_written};
use super::voice::{self, Sheet};
use crate::records::{self, Go};

/// Makes the page.
pub(crate) fn report(options: &Report, records: Option<&Path>) -> Result<ExitCode, String> {
    let files = records::files(&options.files.paths, records)?;
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
