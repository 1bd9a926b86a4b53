//! `outgate why last`: explains what a run was denied from its record, and what the scan
//! found and let pass: by groups, one by one, or as a policy.
//! Reads the record as a stranger would: whatever it holds may have been chosen
//! by a command, so nothing of it reaches the terminal unescaped.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;

use outgate_policy::{Denied as Told, Digest, Group, Reason, Urgency, printable};
use serde_json::Value;

use crate::record::{NoRecord, Record};
use crate::report;
use crate::suggested;
use crate::why::{Why, repair};

/// Bytes of a record that are read, from its end: some hundred thousand
/// decisions, which take less than a second.
const READ_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Denials told one by one at most.
const DENIALS_MAX: usize = 1000;
/// Groups of denials told: two lines each, what somebody reads.
const GROUPS_TOLD: usize = 12;
/// Requests kept that were refused for a credential.
const CREDENTIALS_MAX: usize = 256;

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
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) time: String,
    /// All denials, by groups.
    pub(crate) digest: Digest,
    /// What was refused for a credential, as questions to a policy.
    pub(crate) credentials: BTreeSet<String>,
    /// The latest last.
    denials: Vec<Denied>,
    /// How many were before them.
    forgotten: u64,
    /// A denied connection that something more telling may follow.
    connection: Option<Value>,
}

/// Prints what a run was denied.
pub(crate) fn last(arguments: &Why, found: Result<Record, NoRecord>) -> ExitCode {
    let record = match found {
        Ok(record) => record,
        Err((message, hint)) => return report::wrong_with_hint(&message, hint),
    };
    let path = arguments.audit.as_ref().unwrap_or(&record.path);
    let name = arguments.name.as_deref();
    let run = match read(path, name) {
        Ok(run) => run,
        Err(error) => {
            return report::wrong(&format!("the record `{}`: {error}", path.display()));
        }
    };
    if arguments.as_policy {
        for line in suggested::policy(&run) {
            report::line(&line);
        }
        return ExitCode::SUCCESS;
    }
    let program = run.named();
    report::line(&format!("run       {program} ({}), {}", run.name, run.time));
    report::line(&format!(
        "record    {}",
        printable(&path.display().to_string())
    ));
    match (arguments.all, arguments.count, run.denials.as_slice()) {
        (_, _, []) => report::line("\nnothing was denied in it"),
        (true, _, _) => one_by_one(&run, DENIALS_MAX),
        (false, Some(count), _) => one_by_one(&run, count.clamp(1, DENIALS_MAX)),
        (false, None, [only]) => {
            report::line("");
            lines(&told(only));
        }
        (false, None, _) => by_groups(&run),
    }
    ExitCode::SUCCESS
}

fn lines(lines: &[String]) {
    for line in lines {
        report::line(line);
    }
}

/// The last denials, the latest first.
fn one_by_one(run: &Run, count: usize) {
    for denied in run.denials.iter().rev().take(count) {
        report::line("");
        lines(&told(denied));
    }
    let rest = run.denials.len().saturating_sub(count);
    if rest > 0 {
        report::line(&format!("\nand {rest} before; --all tells each"));
    }
    if run.forgotten > 0 {
        report::line(&format!(
            "\nand {} more before, which only the record has",
            run.forgotten
        ));
    }
}

/// What was denied, by groups.
fn by_groups(run: &Run) {
    let groups = run.digest.groups();
    for group in groups.iter().take(GROUPS_TOLD) {
        report::line("");
        lines(&in_words(group));
    }
    let left = groups.len().saturating_sub(GROUPS_TOLD);
    if left > 0 {
        let plural = if left == 1 { "" } else { "s" };
        report::line(&format!(
            "\n... and {left} more group{plural}: outgate why last --all"
        ));
    }
    if run.digest.beyond() > 0 {
        report::line(&format!(
            "\n... and {} denials in no group",
            run.digest.beyond()
        ));
    }
    report::line("\n--all tells each, --as-policy prints a policy file to read and keep");
}

fn in_words(group: &Group) -> Vec<String> {
    let label = match group.urgency {
        Urgency::Alarm => "ALARM     ",
        Urgency::Credential => "secret    ",
        Urgency::Denied => "denied    ",
    };
    let often = match group.count {
        1 => String::new(),
        count => format!("{count} times: "),
    };
    let by = match group.program.as_str() {
        "" => String::new(),
        program => format!("   (asked by {program})"),
    };
    let mut lines = vec![format!("{label}{often}{}{by}", group.subject)];
    let is_plain = group.urgency == Urgency::Denied && !group.flags.is_empty();
    if is_plain {
        lines.extend(group.flags.iter().map(|flag| format!("to allow  {flag}")));
    } else {
        lines.push(format!("because   {}", group.because));
    }
    lines
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
pub(crate) fn record(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    (!text(&value, "run").is_empty()).then_some(value)
}

/// What tells a run from every other.
fn id(record: &Value) -> (String, String) {
    (text(record, "run"), text(record, "sandbox"))
}

impl Run {
    /// The command, for people.
    pub(crate) fn named(&self) -> &str {
        match self.program.as_str() {
            "" => "an unnamed command",
            program => program,
        }
    }

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
                // An https:// rule is what one would write, not one for TLS alone.
                let flag = connection
                    .filter(|_| kind == "tunnel")
                    .and_then(|one| flag(&one));
                self.tell_with(&record, flag);
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
        self.tell_with(record, None);
    }

    /// Notes a denial, with a better flag than its own.
    fn tell_with(&mut self, record: &Value, better: Option<String>) {
        let rule = record.get("rule").unwrap_or(&Value::Null);
        let denied = Denied {
            course: Course::of(record).unwrap_or(Course::Denied),
            subject: subject(record),
            because: text(record, "detail"),
            reason: text(record, "reason"),
            place: text(rule, "place"),
            flag: better.or_else(|| flag(record)),
            executable: text(record, "executable"),
            pid: record.get("pid").and_then(Value::as_u64).unwrap_or(0),
            time: text(record, "time"),
            count: 1,
        };
        self.group(record, &denied);
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
                    self.forgotten = self.forgotten.saturating_add(1);
                }
                self.denials.push(denied);
            }
        }
    }
}

impl Run {
    /// Adds a denial to the digest.
    fn group(&mut self, record: &Value, denied: &Denied) {
        let is_of_credential = ["finding", "canary"].contains(&text(record, "kind").as_str())
            || ["secret", "credential", "names"].contains(&denied.reason.as_str());
        let urgency = match denied.course {
            Course::Alarm => Urgency::Alarm,
            Course::Passed => Urgency::Credential,
            Course::Denied if is_of_credential => Urgency::Credential,
            Course::Denied => Urgency::Denied,
        };
        let passed = format!("(passed) {}", denied.subject);
        self.digest.add(&Told {
            urgency,
            program: &denied.executable,
            subject: match denied.course {
                Course::Passed => &passed,
                Course::Denied | Course::Alarm => &denied.subject,
            },
            because: &denied.because,
            flag: denied.flag.as_deref(),
        });
        let is_kept = urgency != Urgency::Denied && self.credentials.len() < CREDENTIALS_MAX;
        if is_kept && denied.course != Course::Passed {
            self.credentials.insert(denied.subject.clone());
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
pub(crate) fn text(record: &Value, member: &str) -> String {
    let text = record.get(member).and_then(Value::as_str);
    printable(text.unwrap_or_default())
}
