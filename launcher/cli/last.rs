//! `outgate why last`: explains what a run was denied from its record, and what the scan
//! found and let pass: by groups, one by one, or as a policy.
//! Reads the record as a stranger would: whatever it holds may have been chosen
//! by a command, so nothing of it reaches the terminal unescaped.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;

use outgate_policy::{
    DenialGroup, DenialReason, Denied as RecordedDenial, Digest, Urgency, printable,
};
use outgate_record::{Alarm, Kind, Outcome, Reason, Record as Line, Word};

use crate::record::{NoRecord, Record};
use crate::report;
use crate::suggested::{self, DeniedRun};
use crate::why_options::{Why, repair};

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
    /// Denied by rules, and let through by a run that monitors.
    Monitored,
}

impl Course {
    /// Nothing of what was allowed or noted, unless something was found in it or rules deny it.
    fn of(record: &Line<'_>) -> Option<Self> {
        let found = record.finding.is_some() || record.unscanned.is_some();
        match (record.alarm, record.verdict) {
            (Alarm::Raised, _) => Some(Self::Alarm),
            (Alarm::None, Outcome::Deny) => Some(Self::Denied),
            (Alarm::None, _) if record.is_let_through() => Some(Self::Monitored),
            (Alarm::None, Outcome::Allow | Outcome::Note) => found.then_some(Self::Passed),
        }
    }
}

/// One denial, in words.
#[derive(Debug, PartialEq, Eq)]
struct Denied {
    course: Course,
    subject: String,
    because: String,
    reason: Option<Reason>,
    /// The place of the rule that decided.
    place: String,
    flag: Option<String>,
    executable: String,
    pid: u32,
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
    connection: Option<Line<'static>>,
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
        let denied = DeniedRun {
            program: run.named(),
            name: &run.name,
            time: &run.time,
            digest: &run.digest,
            credentials: &run.credentials,
        };
        for line in suggested::policy(denied) {
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
            lines(&denial_lines(only));
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
        lines(&denial_lines(denied));
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

fn in_words(group: &DenialGroup) -> Vec<String> {
    let label = match group.urgency {
        Urgency::Alarm => "ALARM     ",
        Urgency::Credential => "secret    ",
        Urgency::Denied => "denied    ",
        Urgency::Passed => "monitored ",
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
    let is_plain = group.urgency >= Urgency::Denied && !group.flags.is_empty();
    if is_plain {
        lines.extend(group.flags.iter().map(|flag| format!("to allow  {flag}")));
    } else {
        lines.push(format!("because   {}", group.because));
    }
    lines
}

fn denial_lines(denied: &Denied) -> Vec<String> {
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
            Course::Monitored => format!("monitored {subject}{often}"),
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
    let repair = match (&denied.flag, denied.reason.and_then(denial)) {
        (Some(flag), _) => Some(format!("add {flag}")),
        (None, Some(reason)) => Some(repair(reason, &denied.place)),
        // The gateway itself refuses such a thing; its words say why.
        (None, None) => None,
    };
    lines.extend(repair.map(|text| format!("to allow  {text}")));
    lines
}

/// The reason as the policy has it; `None` for what the gateway refuses by itself.
fn denial(reason: Reason) -> Option<DenialReason> {
    DenialReason::of(reason.token())
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
    let records = || bytes.split(|byte| *byte == b'\n').filter_map(Line::parse);
    let is_named = |one: &Line<'_>| name.is_none_or(|name| one.sandbox == name);
    // A gateway's record holds the lines of many runs, one among the other.
    let latest = bytes
        .rsplit(|byte| *byte == b'\n')
        .filter_map(Line::parse)
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

/// What tells a run from every other.
fn id(record: &Line<'_>) -> (String, String) {
    (record.run.to_string(), record.sandbox.to_string())
}

impl Run {
    /// The command, for people.
    pub(crate) fn named(&self) -> &str {
        match self.program.as_str() {
            "" => "an unnamed command",
            program => program,
        }
    }

    fn add(&mut self, record: Line<'static>) {
        if self.time.is_empty() {
            self.time = printable(&record.time);
            self.name = printable(&record.sandbox);
        }
        if record.kind == Kind::Start {
            self.program = printable(record.detail());
        }
        let Some(course) = Course::of(&record) else {
            return;
        };
        if matches!(course, Course::Passed | Course::Monitored) {
            self.settle();
            self.tell(&record);
            return;
        }
        let follows = self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.pid == record.pid && leads(connection, &record));
        match record.kind.known() {
            Some(Kind::Tunnel | Kind::Request | Kind::Finding | Kind::Canary) if follows => {
                let connection = self.connection.take();
                // An https:// rule is what one would write, not one for TLS alone.
                let flag = connection
                    .filter(|_| record.kind == Kind::Tunnel)
                    .and_then(|one| flag(&one));
                self.tell_with(&record, flag);
            }
            Some(Kind::Connect) => {
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

    fn tell(&mut self, record: &Line<'_>) {
        self.tell_with(record, None);
    }

    /// Notes a denial, with a better flag than its own.
    fn tell_with(&mut self, record: &Line<'_>, better: Option<String>) {
        let place = record.rule.as_ref().map(|rule| printable(&rule.place));
        let denied = Denied {
            course: Course::of(record).unwrap_or(Course::Denied),
            subject: printable(&record.subject()),
            because: printable(record.detail()),
            reason: record.reason.as_ref().and_then(Word::known),
            place: place.unwrap_or_default(),
            flag: better.or_else(|| flag(record)),
            executable: printable(record.executable()),
            pid: record.pid.unwrap_or(0),
            time: printable(&record.time),
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
    fn group(&mut self, record: &Line<'_>, denied: &Denied) {
        let is_found = record.kind == Kind::Finding || record.kind == Kind::Canary;
        let is_of_credential = is_found || denied.reason.is_some_and(Reason::is_of_credential);
        let urgency = match denied.course {
            Course::Alarm => Urgency::Alarm,
            Course::Passed => Urgency::Credential,
            Course::Denied if is_of_credential => Urgency::Credential,
            Course::Denied => Urgency::Denied,
            Course::Monitored => Urgency::Passed,
        };
        let passed = format!("(passed) {}", denied.subject);
        self.digest.add(&RecordedDenial {
            urgency,
            program: &denied.executable,
            subject: match denied.course {
                Course::Passed => &passed,
                Course::Denied | Course::Alarm | Course::Monitored => &denied.subject,
            },
            because: &denied.because,
            flag: denied.flag.as_deref(),
        });
        let is_kept = urgency < Urgency::Denied && self.credentials.len() < CREDENTIALS_MAX;
        if is_kept && denied.course != Course::Passed {
            self.credentials.insert(denied.subject.clone());
        }
    }
}

/// Whether a denied connection is the one in which something else was denied.
fn leads(connection: &Line<'_>, record: &Line<'_>) -> bool {
    let (to, target) = (&*connection.target, &*record.target);
    let authority = target.split_once("://").map_or(target, |(_, rest)| rest);
    authority == to
        || to
            .rsplit_once(':')
            .is_some_and(|(host, _)| host == authority)
}

fn flag(record: &Line<'_>) -> Option<String> {
    record.flag.as_deref().map(printable)
}
