//! `outgate ps`, `kill` and `inspect`: the runs of this user. What a launcher
//! says is shown escaped: a user chose it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use outgate_launcher::runs::{self, Run, Status};
use outgate_launcher::text::shell_word;
use outgate_policy::printable;
use outgate_record::{Kind, Outcome, Record};

use crate::{record, report};

// A run, for `outgate kill` and `outgate inspect`; described where it is used.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name of the run, or the process id that `outgate ps` shows
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// There is no such run, or it did not end.
pub(crate) const FAILED: u8 = 1;
/// Bytes read of a record, from its beginning.
const RECORD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of one line of it.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Lists the runs, and below them what else is a sandbox.
pub(crate) fn ps(others: &[String]) -> ExitCode {
    let runs = match runs::list() {
        Ok(runs) => runs,
        Err(error) => return report::wrong(&format!("the runs of this machine: {error}")),
    };
    report::line(&format!(
        "{:<24} {:>8} {:>8} {:>8} COMMAND",
        "NAME", "PID", "AGE", "GATEWAY"
    ));
    for run in &runs {
        report::line(&row(run));
    }
    for line in others {
        report::line(line);
    }
    ExitCode::SUCCESS
}

fn row(run: &Run) -> String {
    let Some(status) = &run.status else {
        return format!("{:<24} {:>8} does not answer: stopped?", "?", run.pid);
    };
    let gateway = match (status.mode.as_str(), status.gateway.as_str()) {
        ("", "") => "own",
        ("", _) => "shared",
        (mode, _) => mode,
    };
    format!(
        "{:<24} {:>8} {:>8} {gateway:>8} {}",
        printable(&status.name),
        run.pid,
        age(status.started),
        printable(&status.command)
    )
}

/// How long ago, in the two largest units.
fn age(started: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now
        .unwrap_or(Duration::ZERO)
        .as_secs()
        .saturating_sub(started);
    age_of(seconds)
}

/// So many seconds, in the two largest units.
pub(crate) fn age_of(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// The one run of this name or process id; none where nothing runs under it.
fn running(named: &Named) -> Result<Option<Run>, String> {
    let runs = runs::list().map_err(|error| format!("the runs of this machine: {error}"))?;
    let pid = named.name.parse::<u32>().ok();
    let mut found: Vec<Run> = runs
        .into_iter()
        .filter(|run| pid == Some(run.pid) || run.is_called(&named.name))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(run), true) => Ok(Some(run)),
        (Some(run), false) => {
            let pids: Vec<String> = found.iter().map(|run| run.pid.to_string()).collect();
            Err(format!(
                "{} runs are called `{}`; name one by its process id: {} {}",
                found.len().saturating_add(1),
                printable(&named.name),
                pids.join(" "),
                run.pid
            ))
        }
        (None, _) => Ok(None),
    }
}

/// The one run of this name or process id.
pub(crate) fn find(named: &Named) -> Result<Run, String> {
    running(named)?.ok_or_else(|| nothing_runs(named))
}

fn nothing_runs(named: &Named) -> String {
    let name = printable(&named.name);
    format!("no run of yours is called `{name}`; `outgate ps` lists them")
}

/// Ends a run.
pub(crate) fn kill(named: &Named) -> ExitCode {
    let found = find(named);
    let ended = found.and_then(|run| {
        let pid = run.pid;
        run.end()
            .map_err(|error| format!("the run with process id {pid} did not end: {error}"))
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report::wrong(&message);
            ExitCode::from(FAILED)
        }
    }
}

/// Shows a run.
pub(crate) fn inspect(named: &Named) -> ExitCode {
    let found = running(named).and_then(|run| match run {
        Some(run) => Ok(Ok(run)),
        None => ended(named).map(Err).ok_or_else(|| nothing_runs(named)),
    });
    let run = match found {
        Ok(Ok(run)) => run,
        Ok(Err(lines)) => {
            for line in lines {
                report::line(&line);
            }
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            report::wrong(&message);
            return ExitCode::from(FAILED);
        }
    };
    let Some(status) = &run.status else {
        report::wrong(&format!("process {} does not answer: stopped?", run.pid));
        return ExitCode::from(FAILED);
    };
    for line in status_lines(&run, status) {
        report::line(&line);
    }
    ExitCode::SUCCESS
}

/// What the record of a run says that has ended.
fn ended(named: &Named) -> Option<Vec<String>> {
    let path = record::Record::of_run(&named.name)?.path;
    let mut counts = Counts::default();
    let (mut first, mut last) = (None, None);
    counts
        .read(&path, |record| {
            let words = (
                record.time.clone().into_owned(),
                record.sandbox.clone().into_owned(),
            );
            first.get_or_insert((words.clone(), record.detail().to_owned()));
            last = Some((words.0, record.kind.known()));
            true
        })
        .ok()?;
    let (((began, name), command), (time, kind)) = (first?, last?);
    // A run whose launcher was killed has no last word.
    let last = match kind {
        Some(Kind::Finish) => "ended     ",
        _ => "last seen ",
    };
    let shown = path.to_string_lossy();
    Some(vec![
        format!("name       {}", printable(&name)),
        "state      ended".to_owned(),
        format!("command    {}", printable(&command)),
        format!("began      {}", printable(&began)),
        format!("{last} {}", printable(&time)),
        format!("record     {}", printable(&shown)),
        format!("verdicts   {counts}"),
        format!(
            "denials    outgate why {}",
            shell_word(&printable(&named.name))
        ),
    ])
}

fn status_lines(run: &Run, status: &Status) -> Vec<String> {
    let or = |text: &str, none: &str| match text {
        "" => none.to_owned(),
        text => printable(text),
    };
    let mut lines = vec![
        format!("name       {}", printable(&status.name)),
        format!("process    {} (user {})", run.pid, run.uid),
        format!("age        {}", age(status.started)),
        format!("command    {}", printable(&status.command)),
        format!("directory  {}", printable(&status.directory)),
        format!("policy     {}", printable(&status.places.join(", "))),
        format!("mode       {}", or(&status.mode, "enforced")),
        format!("granted    {}", granted(status)),
        format!("gateway    {}", or(&status.gateway, "its own")),
        format!("held       {} calls", status.held),
        format!(
            "record     {}",
            or(&status.record, "none, or nothing asked so far")
        ),
    ];
    if !status.record.is_empty() {
        lines.push(format!("verdicts   {}", counted(run, status)));
    }
    lines
}

/// What was granted while it runs, in short.
fn granted(status: &Status) -> String {
    match (status.sealing.as_str(), status.granted) {
        ("", 0) => "nothing so far".to_owned(),
        ("", 1) => "1 rule: outgate policy show --of".to_owned(),
        ("", rules) => format!("{rules} rules: outgate policy show --of"),
        (sealing, _) => format!("nothing: {}", printable(sealing)),
    }
}

/// How many decisions of each kind the record holds for this run.
fn counted(run: &Run, status: &Status) -> String {
    let mut counts = Counts::default();
    let path = Path::new(&status.record);
    match counts.read(path, |record| belongs(record, run, status)) {
        Ok(()) => counts.to_string(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "nothing decided so far".to_owned()
        }
        Err(error) => format!("the record cannot be read: {error}"),
    }
}

/// Decisions by kind, and how many of them passed in spite of the rules.
#[derive(Debug, Default)]
struct Counts(BTreeMap<Outcome, u64>, u64);

impl Counts {
    /// Counts those of a record that belong to a run.
    fn read(
        &mut self,
        path: &Path,
        mut belongs: impl FnMut(&Record<'_>) -> bool,
    ) -> io::Result<()> {
        let mut lines = BufReader::new(File::open(path)?.take(RECORD_BYTES_MAX));
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut next = lines.by_ref().take(LINE_BYTES_MAX);
            if !matches!(next.read_until(b'\n', &mut line), Ok(1..)) {
                return Ok(());
            }
            let Some(record) = Record::parse(&line) else {
                continue;
            };
            if belongs(&record) {
                let count = self.0.entry(record.verdict).or_default();
                *count = count.saturating_add(1);
                self.1 = self.1.saturating_add(u64::from(record.is_let_through()));
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |outcome: Outcome| self.0.get(&outcome).copied().unwrap_or(0);
        let (allowed, denied) = (of(Outcome::Allow), of(Outcome::Deny));
        write!(f, "{allowed} allowed, {denied} denied")?;
        match self.1 {
            0 => Ok(()),
            passed => write!(
                f,
                "; {passed} of the allowed let through in spite of the rules"
            ),
        }
    }
}

/// Many runs may share a record: a private gateway's lines name the launcher
/// in `run`, a shared one's the user.
fn belongs(record: &Record<'_>, run: &Run, status: &Status) -> bool {
    if record.sandbox != status.name {
        return false;
    }
    match record.uid {
        Some(uid) => uid == run.uid,
        None => record.run.ends_with(&format!("-{}", status.pid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_two_units() {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        for (seconds, told) in [
            (5, "5s"),
            (125, "2m05s"),
            (7260, "2h01m"),
            (90_000, "1d01h"),
        ] {
            assert_eq!(age(now - seconds), told);
        }
        assert_eq!(age(now + 100), "0s");
    }
}
