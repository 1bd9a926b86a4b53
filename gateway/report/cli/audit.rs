//! `outgate audit`: records of what was decided, read, searched, verified, shown
//! on a page and written in other forms. Reads records and writes what was asked
//! for; has no part in making them, and never alters one.

pub(crate) mod arguments;
mod export;
mod filter;
mod har;
mod kept;
mod lines;
mod ocsf;
mod prefilter;
mod query;
mod report;
mod search;
mod tail;
mod verify;
mod voice;

use std::process::ExitCode;

use arguments::{Audit, AuditCommand};

/// A record that was read.
pub(crate) type Record = outgate_record::Record<'static>;
/// What the scan found, as a record that was read says it.
pub(crate) type Found = outgate_record::Found<'static>;

/// Bad usage, or something could not be read.
const WRONG: u8 = 2;

/// Reads records, and obeys the options of `outgate audit`.
pub fn audit(options: &Audit) -> ExitCode {
    match run(options) {
        Ok(status) => status,
        Err(message) => {
            voice::error(&message);
            ExitCode::from(WRONG)
        }
    }
}

fn run(options: &Audit) -> Result<ExitCode, String> {
    crate::same_build(options.build.as_deref())?;
    let records = options.records.as_deref();
    match &options.command {
        AuditCommand::Tail(options) => tail::tail(options, records),
        AuditCommand::Query(options) => query::query(options, records),
        AuditCommand::Report(options) => report::report(options, records),
        AuditCommand::Export(options) => export::export(options, records),
        AuditCommand::Summary(options) => report::summary(options, records),
        AuditCommand::Verify(options) => verify::verify(options, records),
    }
}
