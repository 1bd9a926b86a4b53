//! `outgate why last`: explains the last denials of a run from its record, and
//! what the scan found and let pass.
//! Reads the record as a stranger would: whatever it holds may have been chosen
//! by a command, so nothing of it reaches the terminal unescaped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outgate_launcher::record::records_directory;
use outgate_policy::{Reason, printable};
use serde_json::Value;

use crate::report;
use crate::why::{Why, repair};

/// Bytes of a record that are read, from its end: some hundred thousand
/// decisions, which take less than a second.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Denials told at most.
const DENIALS_MAX: usize = 1000;

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Denied,
    /// Denied, and somebody should look now.
    Alarm,
    /// Found, and let pass.
    Passed,
}

impl Course {
    /// Nothing of what was allowed or noted, unless something was found in it.
    fn of(record: &Value) -> Option<Self> {
        let found = ["finding", "unscanned"].iter();
        let found = found.filter_map(|member| record.get(member)).count() > 0;
        match text(record, "verdict").as_str() {
            _ if record.get("alarm") == Some(&Value::Bool(true)) => Some(Self::Alarm),
            "deny" => Some(Self::Denied),
            _ if found => Some(Self::Passed),
            _ => None,
        }
    }
}

/// One denial, in words.
#[derive(Debug, PartialEq, Eq)]
struct Denied {
    course: Course,
    subject: String,
    because: String,
    reason: String,
    /// The place of the rule that decided.
    place: String,
    flag: Option<String>,
    executable: String,
    pid: u64,
    time: String,
    /// How often in a row.
    count: usize,
}

/// What a record says about its latest run.
#[derive(Debug, Default)]
struct Run {
    name: String,
    program: String,
    time: String,
    /// The latest last.
    denials: Vec<Denied>,
    /// A denied connection that something more telling may follow.
    connection: Option<Value>,
}

/// Prints the last denials of the latest run.
pub(crate) fn last(arguments: &Why) -> ExitCode {
    let path = match arguments.audit.clone().map_or_else(newest, Ok) {
        Ok(path) => path,
        Err((message, hint)) => return report::wrong_with_hint(&message, hint),
    };
    let run = match read(&path, arguments.name.as_deref()) {
        Ok(run) => run,
        Err(error) => {
            return report::wrong(&format!("the record `{}`: {error}", path.display()));
        }
    };
    let name = match run.program.as_str() {
        "" => "an unnamed command",
        program => program,
    };
    report::line(&format!("run       {name} ({}), {}", run.name, run.time));
    report::line(&format!("record    {}", path.display()));
    let count = arguments.count.clamp(1, DENIALS_MAX);
    for denied in run.denials.iter().rev().take(count) {
        report::line("");
        for line in told(denied) {
            report::line(&line);
        }
    }
    if run.denials.is_empty() {
        report::line("\nnothing was denied in it");
    } else if run.denials.len() > count {
        let rest = run.denials.len() - count;
        report::line(&format!(
            "\nand {rest} before; -n {} shows all",
            run.denials.len()
        ));
    }
    ExitCode::SUCCESS
}

fn told(denied: &Denied) -> Vec<String> {
    let often = match denied.count {
        1 => String::new(),
        count => format!(" ({count} times in a row)"),
    };
    let subject = &denied.subject;
    let mut lines = vec![
        match denied.course {
            Course::Denied => format!("denied    {subject}{often}"),
            Course::Alarm => format!("ALARM     {subject}{often}"),
            Course::Passed => format!("passed    {subject}{often}"),
        },
        format!("because   {}", denied.because),
        format!("at        {}", denied.time),
    ];
    if !denied.executable.is_empty() {
        lines.push(format!(
            "asked by  {} (process {})",
            denied.executable, denied.pid
        ));
    }
    let repair = match (&denied.flag, Reason::of(&denied.reason)) {
        (Some(flag), _) => Some(format!("add {flag}")),
        (None, Some(reason)) => Some(repair(reason, &denied.place)),
        // The gateway itself refuses such a thing; its words say why.
        (None, None) => None,
    };
    lines.extend(repair.map(|text| format!("to allow  {text}")));
    lines
}

/// The newest record in the state directory.
fn newest() -> Result<PathBuf, (String, &'static str)> {
    const HINT: &str = "a run leaves one once something was decided; `--audit FILE` reads another";
    let variable = |name: &str| std::env::var_os(name);
    let directory = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let Some(directory) = directory else {
        return Err(("there is no state directory".to_owned(), HINT));
    };
    let missing = || format!("there is no record in `{}`", directory.display());
    let entries = std::fs::read_dir(&directory).map_err(|_| (missing(), HINT))?;
    // Their names begin with the time.
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .max()
        .ok_or_else(|| (missing(), HINT))
}

/// Reads the latest run of a record, or the latest of that name.
fn read(path: &Path, name: Option<&str>) -> io::Result<Run> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let skipped = length.saturating_sub(READ_BYTES_MAX);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    // Where the beginning is left out, the first line is the end of one, which
    // is no JSON.
    let records = || bytes.split(|byte| *byte == b'\n').filter_map(record);
    let is_named = |one: &Value| name.is_none_or(|name| text(one, "sandbox") == name);
    // A gateway's record holds the lines of many runs, one among the other.
    let latest = bytes
        .rsplit(|byte| *byte == b'\n')
        .filter_map(record)
        .find(is_named)
        .map(|record| id(&record))
        .ok_or_else(|| {
            let what = name.map_or(String::new(), |name| format!(" of a run named `{name}`"));
            io::Error::other(format!("it holds no decisions{what}"))
        })?;
    let mut run = Run::default();
    for record in records().filter(|record| id(record) == latest) {
        run.add(record);
    }
    run.settle();
    Ok(run)
}

/// One line of a record; `None` if it is none.
fn record(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    (!text(&value, "run").is_empty()).then_some(value)
}

/// What tells a run from every other.
fn id(record: &Value) -> (String, String) {
    (text(record, "run"), text(record, "sandbox"))
}

impl Run {
    fn add(&mut self, record: Value) {
        if self.time.is_empty() {
            self.time = text(&record, "time");
            self.name = text(&record, "sandbox");
        }
        let kind = text(&record, "kind");
        if kind == "start" {
            self.program = text(&record, "detail");
        }
        let Some(course) = Course::of(&record) else {
            return;
        };
        if course == Course::Passed {
            self.settle();
            self.tell(&record);
            return;
        }
        let follows = self.connection.as_ref().is_some_and(|connection| {
            connection.get("pid") == record.get("pid") && leads(connection, &record)
        });
        match kind.as_str() {
            "tunnel" | "request" | "finding" | "canary" if follows => {
                let connection = self.connection.take();
                self.tell(&record);
                // An https:// rule is what one would write, not one for TLS alone.
                let flag = connection
                    .filter(|_| kind == "tunnel")
                    .and_then(|one| flag(&one));
                if let (Some(denied), Some(flag)) = (self.denials.last_mut(), flag) {
                    denied.flag = Some(flag);
                }
            }
            "connect" => {
                self.settle();
                self.connection = Some(record);
            }
            _ => {
                self.settle();
                self.tell(&record);
            }
        }
    }

    /// Nothing more telling followed.
    fn settle(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.tell(&connection);
        }
    }

    fn tell(&mut self, record: &Value) {
        let rule = record.get("rule").unwrap_or(&Value::Null);
        let denied = Denied {
            course: Course::of(record).unwrap_or(Course::Denied),
            subject: subject(record),
            because: text(record, "detail"),
            reason: text(record, "reason"),
            place: text(rule, "place"),
            flag: flag(record),
            executable: text(record, "executable"),
            pid: record.get("pid").and_then(Value::as_u64).unwrap_or(0),
            time: text(record, "time"),
            count: 1,
        };
        match self.denials.last_mut() {
            Some(before)
                if (before.course, &before.subject) == (denied.course, &denied.subject) =>
            {
                let count = before.count + 1;
                *before = Denied { count, ..denied };
            }
            _ => {
                if self.denials.len() >= DENIALS_MAX {
                    self.denials.remove(0);
                }
                self.denials.push(denied);
            }
        }
    }
}

/// Whether a denied connection is the one in which something else was denied.
fn leads(connection: &Value, record: &Value) -> bool {
    let to = text(connection, "target");
    let target = text(record, "target");
    let authority = target
        .split_once("://")
        .map_or(target.as_str(), |(_, rest)| rest);
    authority == to
        || to
            .rsplit_once(':')
            .is_some_and(|(host, _)| host == authority)
}

/// What was denied, as the sentence names it.
fn subject(record: &Value) -> String {
    let target = text(record, "target");
    match text(record, "kind").as_str() {
        "canary" if record.get("method").is_none() && target.contains("://") => {
            format!("a response from {target}")
        }
        "finding" | "canary" if record.get("method").is_none() => format!("the name {target}"),
        "request" | "finding" | "canary" => format!(
            "{} {target}{}",
            text(record, "method"),
            text(record, "path")
        ),
        "tunnel" => format!("TLS to {target}"),
        "unix" => format!("connection to unix://{target}"),
        "listen" => format!("listening on {target}"),
        "dns" => format!("the name {target}"),
        _ => format!("connection to {target}"),
    }
}

fn flag(record: &Value) -> Option<String> {
    record.get("flag").map(|_| text(record, "flag"))
}

/// The text of a member; empty when it has none.
fn text(record: &Value, member: &str) -> String {
    let text = record.get(member).and_then(Value::as_str);
    printable(text.unwrap_or_default())
}
