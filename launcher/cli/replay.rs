//! `outgate policy test --replay`: every decision of old runs judged by an edited policy,
//! through the one decision function: what would change, by groups, both ways. What a
//! record does not hold is said and counted, never guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use outgate_policy::{
    PastEvent, PastVerdict, Policy, Process, Recall, printable, shape, shape_merged,
};
use outgate_record::{Kind, Record};

use crate::past::{self, Past, PastOutcome};
use crate::report;

/// Exit status when something that was allowed is now denied.
const NARROWED: u8 = 1;
/// Groups of changes that are kept, and of one direction that are told.
const GROUPS_MAX: usize = 10_000;
const GROUPS_TOLD: usize = 50;
/// Programs of a group that are named.
const PROGRAMS_TOLD: usize = 3;

/// Which way a decision changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// It was allowed.
    NowDenied,
    /// It was allowed, and the user said that it may be denied.
    NowDeniedAsSaid,
    /// It was denied.
    NowAllowed,
    /// Nobody can say.
    Unknown,
}

/// What tells groups apart: the way, the shape of what it is about, what decided before,
/// and what decides now.
type Key = (Change, String, String, String);

/// Decisions that change alike.
#[derive(Debug)]
struct Group {
    subject: String,
    programs: BTreeSet<String>,
    count: u64,
    /// Of connections: where they went, as the requests in them are told by themselves.
    authority: Option<String>,
}

/// What became of all of them.
#[derive(Debug, Default)]
struct Replay {
    decisions: u64,
    same: u64,
    groups: BTreeMap<Key, Group>,
    beyond: u64,
    runs: BTreeSet<String>,
    refusals: BTreeMap<String, u64>,
    /// Where requests and TLS changed.
    authorities: BTreeSet<(Change, String)>,
}

/// Judges records by `policy`; `may_change` allows what may be denied now.
pub(crate) fn replay(records: &[PathBuf], policy: &Policy, may_change: &Policy) -> ExitCode {
    let recall = Recall::new(policy);
    let excused = Recall::new(may_change);
    let mut replay = Replay::default();
    let read = past::read(records, |record| {
        let run = format!("{} {}", record.run, record.sandbox);
        if replay.runs.len() < GROUPS_MAX {
            replay.runs.insert(run);
        }
        match Past::of(&record) {
            Past::Other => {}
            Past::Unspoken(_) => {
                let count = replay.refusals.entry("protocol".to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            Past::Refusal(reason) => {
                let count = replay.refusals.entry(printable(&reason)).or_default();
                *count = count.saturating_add(1);
            }
            Past::Decision(before, event) => {
                let now = judge(&recall, before, event.as_ref(), &record);
                let may = || match &event {
                    Ok(event) => {
                        let verdict = excused.judge(event, process(&record));
                        matches!(verdict, PastVerdict::Allowed(_))
                    }
                    Err(_) => false,
                };
                replay.add(&record, before, now, may);
            }
        }
    });
    if let Err((message, hint)) = read {
        return report::wrong_with_hint(&message, hint);
    }
    if replay.decisions == 0 {
        let hint = "a record holds some once a run asked for something";
        return report::wrong_with_hint("the records hold no decision", hint);
    }
    replay.tell()
}

fn process<'r>(record: &'r Record<'_>) -> Process<'r> {
    Process {
        executable: record.executable(),
    }
}

/// What the policy says of it now.
fn judge(
    recall: &Recall<'_>,
    before: PastOutcome,
    event: Result<&PastEvent, &&'static str>,
    record: &Record<'_>,
) -> PastVerdict {
    const ASKED: &str = "the other method that it asked for is not in the record";
    let event = match event {
        Ok(event) => event,
        Err(why) => return PastVerdict::Unknown(why),
    };
    match before {
        PastOutcome::Allowed | PastOutcome::Denied | PastOutcome::DeniedByRule => {
            recall.judge(event, process(record))
        }
        PastOutcome::DeniedAddress => recall.judge_special(event, process(record)),
        PastOutcome::DeniedOverride => match recall.judge(event, process(record)) {
            PastVerdict::Allowed(_) => PastVerdict::Unknown(ASKED),
            verdict => verdict,
        },
    }
}

impl Replay {
    fn add(
        &mut self,
        record: &Record<'_>,
        before: PastOutcome,
        now: PastVerdict,
        may_be_denied: impl FnOnce() -> bool,
    ) {
        self.decisions = self.decisions.saturating_add(1);
        let was_allowed = before == PastOutcome::Allowed;
        let (change, now) = match now {
            PastVerdict::Allowed(_) if was_allowed => return self.keep(),
            PastVerdict::Denied(_) if !was_allowed => return self.keep(),
            PastVerdict::Allowed(rule) => {
                let by = format!("allowed by `{}` ({})", rule.text, rule.place);
                (Change::NowAllowed, by)
            }
            PastVerdict::Denied(denial) => {
                let change = if may_be_denied() {
                    Change::NowDeniedAsSaid
                } else {
                    Change::NowDenied
                };
                (change, denial.because().to_owned())
            }
            PastVerdict::Unknown(why) => (Change::Unknown, why.to_owned()),
        };
        let authority = authority(record);
        if record.kind != Kind::Connect && self.authorities.len() < GROUPS_MAX {
            self.authorities.insert((change, authority.clone()));
        }
        let subject = printable(&record.subject());
        let key = (
            change,
            shape(&subject),
            before_in_words(record),
            printable(&now),
        );
        if let Some(group) = self.groups.get_mut(&key) {
            group.count = group.count.saturating_add(1);
            group.subject = shape_merged(&group.subject, &subject);
            if group.programs.len() <= PROGRAMS_TOLD {
                group.programs.insert(printable(record.program()));
            }
            return;
        }
        if self.groups.len() >= GROUPS_MAX {
            self.beyond = self.beyond.saturating_add(1);
            return;
        }
        let group = Group {
            subject,
            programs: BTreeSet::from([printable(record.program())]),
            count: 1,
            authority: (record.kind == Kind::Connect).then_some(authority),
        };
        self.groups.insert(key, group);
    }

    fn keep(&mut self) {
        self.same = self.same.saturating_add(1);
    }

    /// The groups of one way, the largest first; connections whose requests are told are
    /// left out.
    fn of(&self, change: Change) -> Vec<(&Key, &Group)> {
        let is_told = |group: &Group| {
            group
                .authority
                .as_ref()
                .is_some_and(|authority| self.authorities.contains(&(change, authority.clone())))
        };
        let own = self
            .groups
            .iter()
            .filter(|(key, group)| key.0 == change && !is_told(group));
        let mut groups: Vec<_> = own.collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        groups
    }

    fn count(&self, change: Change) -> u64 {
        let own = self.groups.iter().filter(|(key, _)| key.0 == change);
        own.map(|(_, group)| group.count).sum()
    }

    fn tell(&self) -> ExitCode {
        let [denied, said, allowed, unknown] = [
            Change::NowDenied,
            Change::NowDeniedAsSaid,
            Change::NowAllowed,
            Change::Unknown,
        ]
        .map(|change| self.count(change));
        let runs = plural(u64::try_from(self.runs.len()).unwrap_or(u64::MAX), "run");
        report::line(&format!(
            "{} of {runs}: {} as before, {} now denied, {allowed} now allowed, {unknown} cannot \
             be judged again",
            plural(self.decisions, "decision"),
            self.same,
            denied.saturating_add(said),
        ));
        for (change, title) in [
            (Change::NowDenied, "now denied, and allowed before"),
            (
                Change::NowDeniedAsSaid,
                "now denied, as --allow-changes says",
            ),
            (Change::NowAllowed, "now allowed, and denied before"),
            (Change::Unknown, "cannot be judged again"),
        ] {
            self.section(change, title);
        }
        if !self.refusals.is_empty() {
            let list = self.refusals.iter();
            let list: Vec<String> = list.map(|(why, count)| format!("{why} {count}")).collect();
            report::line(&format!(
                "\nrefused for other reasons than rules, and not judged: {}",
                list.join(", ")
            ));
        }
        if self.beyond > 0 {
            report::line(&format!(
                "\n{} more changes were too many to be told apart",
                self.beyond
            ));
        }
        if denied > 0 || self.beyond > 0 {
            return ExitCode::from(NARROWED);
        }
        ExitCode::SUCCESS
    }

    fn section(&self, change: Change, title: &str) {
        let groups = self.of(change);
        if groups.is_empty() {
            return;
        }
        report::line(&format!("\n{title}:"));
        for (key, group) in groups.iter().take(GROUPS_TOLD) {
            let mut line = format!("  {}", group.subject);
            if group.count > 1 {
                write!(line, ", {} times", group.count).ok();
            }
            let programs = group.programs.iter().filter(|name| !name.is_empty());
            let programs: Vec<&str> = programs.take(PROGRAMS_TOLD).map(String::as_str).collect();
            if !programs.is_empty() {
                write!(line, ", by {}", programs.join(", ")).ok();
            }
            report::line(&line);
            report::line(&format!("    before  {}", key.2));
            report::line(&format!("    now     {}", key.3));
        }
        let left = groups.len().saturating_sub(GROUPS_TOLD);
        if left > 0 {
            report::line(&format!("  ... and {left} more groups"));
        }
    }
}

/// What decided when it happened.
fn before_in_words(record: &Record<'_>) -> String {
    let text = match (&record.rule, record.detail(), record.reason()) {
        (Some(rule), _, "") => format!("allowed by `{}` ({})", rule.text, rule.place),
        (None, _, "") => "allowed".to_owned(),
        (_, "", reason) => format!("denied: {reason}"),
        (_, detail, _) => detail.to_owned(),
    };
    printable(&text)
}

/// Where it went: host and port.
fn authority(record: &Record<'_>) -> String {
    let target: &str = &record.target;
    let Some((scheme, rest)) = target.split_once("://") else {
        return target.to_owned();
    };
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    match scheme {
        _ if has_port => rest.to_owned(),
        "https" | "wss" => format!("{rest}:443"),
        _ => format!("{rest}:80"),
    }
}

fn plural(count: u64, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
