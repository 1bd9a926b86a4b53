//! `outgate ps`, `kill` and `inspect`: the runs of this user. What a launcher
//! says is shown escaped: a user chose it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outgate_launcher::runs::{self, Run, Status};
use outgate_policy::printable;
use serde_json::Value;

use crate::args::Named;
use crate::report;

/// There is no such run, or it did not end.
const FAILED: u8 = 1;
/// Bytes read of a record, from its beginning.
const RECORD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of one line of it.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Lists the runs.
pub(crate) fn ps() -> ExitCode {
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
    ExitCode::SUCCESS
}

fn row(run: &Run) -> String {
    let Some(status) = &run.status else {
        return format!("{:<24} {:>8} does not answer: stopped?", "?", run.pid);
    };
    let gateway = if status.gateway.is_empty() {
        "own"
    } else {
        "shared"
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
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// The one run of this name or process id.
fn find(named: &Named) -> Result<Run, String> {
    let runs = runs::list().map_err(|error| format!("the runs of this machine: {error}"))?;
    let pid = named.name.parse::<u32>().ok();
    let mut found: Vec<Run> = runs
        .into_iter()
        .filter(|run| pid == Some(run.pid) || run.is_called(&named.name))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(run), true) => Ok(run),
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
        (None, _) => Err(format!(
            "no run of yours is called `{}`; `outgate ps` lists them",
            printable(&named.name)
        )),
    }
}

/// Ends a run.
pub(crate) fn kill(named: &Named) -> ExitCode {
    let ended = find(named).and_then(|run| {
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
    let run = match find(named) {
        Ok(run) => run,
        Err(message) => {
            report::wrong(&message);
            return ExitCode::from(FAILED);
        }
    };
    let Some(status) = &run.status else {
        report::wrong(&format!("process {} does not answer: stopped?", run.pid));
        return ExitCode::from(FAILED);
    };
    for line in told(&run, status) {
        report::line(&line);
    }
    ExitCode::SUCCESS
}

fn told(run: &Run, status: &Status) -> Vec<String> {
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

/// How many decisions of each kind the record holds for this run.
fn counted(run: &Run, status: &Status) -> String {
    let file = match File::open(&status.record) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return "nothing decided so far".to_owned();
        }
        Err(error) => return format!("the record cannot be read: {error}"),
    };
    let mut lines = BufReader::new(file.take(RECORD_BYTES_MAX));
    let mut line = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    loop {
        line.clear();
        let read = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            break;
        }
        let Ok(record) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        if belongs(&record, run, status) {
            let verdict = text(&record, "verdict").to_owned();
            let count = counts.entry(verdict).or_default();
            *count = count.saturating_add(1);
        }
    }
    let of = |verdict: &str| counts.get(verdict).copied().unwrap_or(0);
    format!("{} allowed, {} denied", of("allow"), of("deny"))
}

fn text<'a>(record: &'a Value, member: &str) -> &'a str {
    record
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Many runs may share a record: a private gateway's lines name the launcher
/// in `run`, a shared one's the user.
fn belongs(record: &Value, run: &Run, status: &Status) -> bool {
    if text(record, "sandbox") != status.name {
        return false;
    }
    match record.get("uid").and_then(Value::as_u64) {
        Some(uid) => uid == u64::from(run.uid),
        None => text(record, "run").ends_with(&format!("-{}", status.pid)),
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
