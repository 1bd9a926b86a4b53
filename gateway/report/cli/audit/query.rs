//! `outgate audit query`: the records that somebody asks for, as lines or as
//! they are.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use super::Record;
use super::arguments::{Filter, Query};
use super::filter::Wanted;
use super::kept::Kept;
use super::lines::{self, Paint};
use super::search::{self, Hit, Hits, Sought};
use super::voice;
use crate::records::{self, Go, Line};

/// Nothing was found.
const NOTHING: u8 = 1;

/// What becomes of a line that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// A line for people.
    Line(Paint),
    /// The record as it is.
    Json,
    /// The same in ASCII, for a terminal.
    Ascii,
}

impl Shown {
    pub(super) fn of(filter: &Filter) -> Self {
        match (filter.json, io::stdout().is_terminal()) {
            (true, true) => Self::Ascii,
            (true, false) => Self::Json,
            (false, _) if voice::is_coloured() => Self::Line(Paint::Colours),
            (false, _) => Self::Line(Paint::Plain),
        }
    }

    /// The line as it is printed.
    pub(super) fn text(self, line: &[u8], record: &Record) -> String {
        match self {
            Self::Line(paint) => lines::line(record, paint),
            Self::Json => String::from_utf8_lossy(line).into_owned(),
            Self::Ascii => lines::json(&String::from_utf8_lossy(line)),
        }
    }
}

/// Prints what was asked for.
pub(crate) fn query(options: &Query, records: Option<&Path>) -> Result<ExitCode, String> {
    let wanted = Wanted::of(&options.filter, SystemTime::now())?;
    let files = records::files(&options.files.paths, records)?;
    let shown = Shown::of(&options.filter);
    let mut kept = options.count.map(Kept::new);
    let mut found: u64 = 0;
    let mut day = String::new();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut unread: u64 = 0;
    let mut take = |hits: Hits| {
        unread = unread.saturating_add(hits.unread);
        for Hit { day: own, mut text } in hits.found {
            found = found.saturating_add(1);
            if let Some(heading) = heading(&mut day, own).filter(|_| !options.filter.json) {
                text = format!("{heading}\n{text}");
            }
            match &mut kept {
                Some(kept) => kept.push(text),
                None if wrote(&writeln!(out, "{text}")) == Go::Stop => return Go::Stop,
                None => {}
            }
        }
        Go::On
    };
    let sought = Sought {
        wanted: &wanted,
        shown,
    };
    if search::search(&files, sought, &mut take)?.is_none() {
        records::each(&files, |line: Line<'_>| {
            Ok(take(search::hits(line.bytes, sought)))
        })?;
    }
    if let Some(note) = kept.as_ref().and_then(Kept::note) {
        voice::note(&note);
    }
    for text in kept.into_iter().flat_map(Kept::into_lines) {
        if wrote(&writeln!(out, "{text}")) == Go::Stop {
            break;
        }
    }
    // Whoever read may have had enough.
    out.flush().ok();
    if unread > 0 {
        voice::note(&format!(
            "{unread} lines are no records; `outgate audit verify` says more"
        ));
    }
    Ok(if found > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOTHING)
    })
}

/// The day of a record, where it is another one.
fn heading(day: &mut String, own: String) -> Option<String> {
    if own == *day {
        return None;
    }
    *day = own;
    Some(format!("-- {} --", outgate_policy::printable(day)))
}

fn wrote(result: &io::Result<()>) -> Go {
    if result.is_ok() { Go::On } else { Go::Stop }
}
