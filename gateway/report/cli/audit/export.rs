//! `outgate audit export`: a record in a form that other programs read.

use std::path::Path;
use std::process::ExitCode;

use super::Record;
use super::arguments::{Export, Format};
use super::har::Archive;
use super::ocsf;
use super::voice::{self, Sheet};
use crate::records::{self, Go};

/// Writes it.
pub(crate) fn export(options: &Export, records: Option<&Path>) -> Result<ExitCode, String> {
    let files = records::files(&options.files.paths, records)?;
    let mut unread: u64 = 0;
    let mut archive = Archive::default();
    let mut sheet = Sheet::new(options.output.as_deref())?;
    records::each(&files, |line| {
        match (Record::parse(line.bytes), options.format) {
            (None, _) => unread = unread.saturating_add(1),
            (Some(record), Format::Har) => archive.add(record),
            (Some(record), Format::Ocsf) => {
                return sheet.line(&ocsf::event(&record).to_string());
            }
        }
        Ok(Go::On)
    })?;
    let left_out = archive.left_out;
    if options.format == Format::Har {
        for line in archive.lines() {
            if sheet.line(&line)? == Go::Stop {
                break;
            }
        }
    }
    sheet.finish()?;
    for (number, what) in [
        (unread, "lines are no records"),
        (
            left_out,
            "requests have no place in one archive; export fewer files",
        ),
    ] {
        if number > 0 {
            voice::note(&format!("{number} {what}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
