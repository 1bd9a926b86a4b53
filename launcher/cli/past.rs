//! Records as events that a policy can judge again: which lines are decisions of rules, and
//! what of each a record holds. Reads lines within bounds, as a stranger would.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use outgate_launcher::record::records_directory;
use outgate_policy::{MaskedValues, PastEvent};
use outgate_record::{Kind, Outcome, Reason, Record, Word};
use outgate_report::records::{self as lines, Go, Shape};

use crate::report;

/// Lines of all records that are read: they take a minute or two.
const LINES_MAX: u64 = 20_000_000;
/// Bytes of a text of a record from which on it may have been cut where it was written.
const WHOLE_BYTES_MAX: usize = 2000;
/// How a denial of a shared gateway begins: no policy of the run lifts it.
const OF_GATEWAY: &str = "the gateway's policy: ";

/// What a record says was decided, by rules.
#[derive(Debug)]
pub(crate) enum Past {
    /// A decision of rules, and what is known of the event.
    Decision(PastOutcome, Result<PastEvent, &'static str>),
    /// A refusal for another reason than rules: which, as the record has it.
    Refusal(String),
    /// A connection that was closed since nobody can look into what it spoke.
    Unspoken(Result<PastEvent, &'static str>),
    /// No decision about what leaves.
    Other,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PastOutcome {
    Allowed,
    /// No rule allowed it.
    Denied,
    /// A rule denied it.
    DeniedByRule,
    /// For the address that a name led to.
    DeniedAddress,
    /// For another method that it asked for, perhaps in its content.
    DeniedOverride,
}

impl Past {
    /// What a record says.
    pub(crate) fn of(record: &Record<'_>) -> Self {
        let kind = match record.kind.known() {
            Some(
                kind @ (Kind::Connect | Kind::Request | Kind::Tunnel | Kind::Unix | Kind::Listen),
            ) => kind,
            Some(Kind::Flow)
                if record
                    .reason
                    .as_ref()
                    .is_some_and(|own| *own == Reason::Protocol) =>
            {
                return Self::Unspoken(event(record, Kind::Connect));
            }
            Some(
                Kind::Start
                | Kind::Finish
                | Kind::Dns
                | Kind::Flow
                | Kind::Policy
                | Kind::Finding
                | Kind::Canary
                | Kind::Leftover
                | Kind::Budget
                | Kind::Proposal,
            )
            | None => return Self::Other,
        };
        let outcome = match record.verdict {
            Outcome::Note => return Self::Other,
            // Nothing leaves by it: what is sent in it is decided by itself.
            Outcome::Allow if kind == Kind::Connect && record.is_looked_into() => {
                return Self::Other;
            }
            // What a run that monitors let through is a denial of its rules.
            Outcome::Allow if kind == Kind::Connect && record.is_monitored() => {
                return Self::Other;
            }
            Outcome::Allow if !record.is_monitored() => PastOutcome::Allowed,
            Outcome::Allow | Outcome::Deny if record.detail().starts_with(OF_GATEWAY) => {
                return Self::Refusal("the shared gateway's policy".to_owned());
            }
            Outcome::Allow | Outcome::Deny => match record.reason.as_ref().and_then(Word::known) {
                Some(Reason::NoRule | Reason::Process | Reason::NeedsInspection) => {
                    PastOutcome::Denied
                }
                Some(Reason::DenyRule | Reason::OnlyRule) => PastOutcome::DeniedByRule,
                Some(Reason::SpecialUse) => PastOutcome::DeniedAddress,
                Some(Reason::Override) => PastOutcome::DeniedOverride,
                Some(_) | None => return Self::Refusal(record.reason().to_owned()),
            },
        };
        Self::Decision(outcome, event(record, kind))
    }
}

/// The event of a record.
fn event(record: &Record<'_>, kind: Kind) -> Result<PastEvent, &'static str> {
    const CUT: &str = "its target is cut or masked in the record";
    let path = record.path.as_deref();
    if record.target.len() > WHOLE_BYTES_MAX || path.is_some_and(|own| own.len() > WHOLE_BYTES_MAX)
    {
        return Err(CUT);
    }
    match kind {
        Kind::Connect => PastEvent::connection(&record.target, dialled(record)),
        Kind::Tunnel => PastEvent::tunnel(&record.target),
        Kind::Unix => Ok(PastEvent::unix(&record.target)),
        Kind::Listen => PastEvent::listen(&record.target),
        _ => PastEvent::request(
            record.method.as_deref().ok_or(CUT)?,
            &record.target,
            path,
            match record.values.as_deref() {
                Some("plain") => MaskedValues::Plain,
                Some(_) | None => MaskedValues::Any,
            },
        ),
    }
}

/// The addresses that a connection went to.
pub(crate) fn dialled(record: &Record<'_>) -> Vec<IpAddr> {
    let pins = record.pin().split(' ');
    let addresses = pins.filter_map(|pin| pin.parse::<SocketAddr>().ok());
    addresses
        .map(|address| address.ip().to_canonical())
        .collect()
}

/// The files of the record that a run left in the state directory, by the end of its name.
pub(crate) fn of_run(mark: &str) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let entries = records.and_then(|records| std::fs::read_dir(records).ok());
    let paths = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    // Names have the time, the mark, and of all files but the first their number.
    let run = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        let run = name.split_once(".part").map_or(name, |(run, _)| run);
        run.ends_with(mark).then(|| run.to_owned())
    };
    let mut files: Vec<(String, PathBuf)> =
        paths.filter_map(|path| Some((run(&path)?, path))).collect();
    files.sort();
    let newest = files.last().map(|(run, _)| run.clone());
    files.retain(|(run, _)| Some(run) == newest.as_ref());
    files.into_iter().map(|(_, path)| path).collect()
}

/// What to name where no record was found.
const PLACES_HINT: &str =
    "name a record, a directory of them, or `last`: the record of the latest run";

/// The same, and says how many lines were none.
///
/// # Errors
/// What is wrong with the records, and what to do.
pub(crate) fn read(
    records: &[PathBuf],
    take: impl FnMut(Record<'static>),
) -> Result<(), (String, &'static str)> {
    match each(records, take) {
        Ok(0) => Ok(()),
        Ok(lines) => {
            report::warning(&format!("{lines} lines of the records are none"));
            Ok(())
        }
        Err(message) => Err((message, PLACES_HINT)),
    }
}

/// Shows each record of these files to `take`, in order; how many lines were none.
///
/// # Errors
/// A file that cannot be read, or that holds no record, in words.
fn each(paths: &[PathBuf], mut take: impl FnMut(Record<'static>)) -> Result<u64, String> {
    let variable = |name: &str| std::env::var_os(name);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let files = lines::files(paths, records.as_deref())?;
    let mut beyond = 0_u64;
    let mut left = LINES_MAX;
    for file in &files {
        let mut found = 0_u64;
        let mut first = None;
        lines::each(std::slice::from_ref(file), |line| {
            let record = match line.shape {
                Shape::Whole | Shape::Cut => Record::parse(line.bytes),
                Shape::TooLong => None,
            };
            match record {
                Some(record) => {
                    found = found.saturating_add(1);
                    take(record);
                }
                None if line.length > 1 => {
                    first.get_or_insert_with(|| place(line.file, line.number));
                    beyond = beyond.saturating_add(1);
                }
                None => {}
            }
            left = left.saturating_sub(1);
            Ok(if left == 0 { Go::Stop } else { Go::On })
        })?;
        if left == 0 {
            return Err(format!(
                "more than {LINES_MAX} lines of records; name fewer"
            ));
        }
        if let Some(first) = first.filter(|_| found == 0) {
            return Err(format!("{first}: no record of outgate stands there"));
        }
    }
    Ok(beyond)
}

fn place(file: &Path, line: u64) -> String {
    format!("{}:{line}", file.display())
}
