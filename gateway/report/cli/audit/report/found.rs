//! What the scan found, what raised an alarm, and what nobody looked into.

use std::collections::BTreeSet;

use super::bounded::Bounded;
use crate::audit::Record;
use outgate_record::{Alarm, Kind, Outcome, Reason};

/// Findings, hosts and reasons that are told apart.
const FINDINGS_MAX: usize = 1024;
const UNSEEN_MAX: usize = 1024;
/// Alarms that are kept.
const ALARMS_MAX: usize = 64;
/// Connections whose end is waited for.
const PENDING_MAX: usize = 8192;
/// Programs that are named.
const NAMED_MAX: usize = 8;

/// One credential on its way to one place, in one form.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) count: u64,
    pub(super) last: u64,
    pub(super) verdict: Outcome,
    pub(super) because: String,
    pub(super) alarm: Alarm,
    pub(super) found: crate::audit::Found,
    /// What would allow it, where anything would.
    pub(super) flag: Option<String>,
    pub(super) programs: BTreeSet<String>,
}

/// Bytes that nobody looked into, to one place for one reason.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    pub(super) count: u64,
    pub(super) up: u64,
    pub(super) down: u64,
    /// Whether anybody counted the bytes.
    pub(super) counted: Counted,
    pub(super) rule: Option<(String, String)>,
    pub(super) programs: BTreeSet<String>,
}

/// Whether bytes are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Counted {
    Yes,
    #[default]
    No,
}

/// Why nobody looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// TLS that passed unopened.
    Unopened,
    /// Straight to its destination.
    Direct,
    /// A Unix socket.
    Unix,
    /// Content that cannot be scanned.
    Unscannable,
}

/// What a record says about findings and about what was not looked into.
#[derive(Debug)]
pub(super) struct Found {
    /// By subject and form.
    pub(super) findings: Bounded<(String, String), Finding>,
    pub(super) findings_in_all: u64,
    pub(super) held_back: u64,
    /// Runs whose data nobody looked through.
    pub(super) blind_runs: u64,
    pub(super) alarms: Vec<Record>,
    pub(super) alarms_in_all: u64,
    pub(super) unseen: Bounded<(Why, String), Unseen>,
    /// Open connections that pass unopened, by run, process and target.
    pending: Bounded<(String, u32, String), u64>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            findings: Bounded::new(FINDINGS_MAX),
            findings_in_all: 0,
            held_back: 0,
            blind_runs: 0,
            alarms: Vec::new(),
            alarms_in_all: 0,
            unseen: Bounded::new(UNSEEN_MAX),
            pending: Bounded::new(PENDING_MAX),
        }
    }
}

impl Found {
    /// Takes a record.
    pub(super) fn add(&mut self, record: &Record) {
        if record.scan.as_deref() == Some("off") {
            self.blind_runs = self.blind_runs.saturating_add(1);
        }
        if record.alarm == Alarm::Raised {
            self.alarms_in_all = self.alarms_in_all.saturating_add(1);
            if self.alarms.len() < ALARMS_MAX {
                self.alarms.push(record.clone());
            }
        }
        let is_misuse = record.kind == Kind::Finding && record.reason() == Reason::Secret.token();
        if record.finding.is_some() || is_misuse {
            self.finding(record);
        }
        if let Some(unscanned) = &record.unscanned
            && record.verdict != Outcome::Deny
        {
            let key = (Why::Unscannable, record.host().to_owned());
            if let Some(unseen) = self.unseen.of(key) {
                unseen.add(record);
                unseen.counted = Counted::Yes;
                unseen.up = unseen.up.saturating_add(unscanned.bytes);
            }
        }
        self.unseen(record);
    }

    /// Nothing follows.
    pub(super) fn settle(&mut self) {
        self.pending = Bounded::new(PENDING_MAX);
    }

    /// What went where nobody looked: connections, and bytes that leave.
    pub(super) fn unseen_sum(&self) -> (u64, u64) {
        let mut sum = (0_u64, 0_u64);
        for (_, unseen) in self.unseen.iter() {
            sum.0 = sum.0.saturating_add(unseen.count);
            sum.1 = sum.1.saturating_add(unseen.up);
        }
        sum
    }

    fn finding(&mut self, record: &Record) {
        self.findings_in_all = self.findings_in_all.saturating_add(1);
        if record.verdict == Outcome::Deny {
            self.held_back = self.held_back.saturating_add(1);
        }
        let found = record
            .finding
            .clone()
            .unwrap_or_else(|| crate::audit::Found {
                name: "placeholder of a secret".into(),
                detector: "secret".into(),
                ..crate::audit::Found::default()
            });
        let form = format!(
            "{} {} {}",
            found.chain.join(">"),
            found.detector,
            found.mark
        );
        let Some(finding) = self.findings.of((record.subject(), form)) else {
            return;
        };
        finding.count = finding.count.saturating_add(1);
        finding.last = finding.last.max(record.at());
        finding.verdict = record.verdict;
        record.detail().clone_into(&mut finding.because);
        finding.alarm = record.alarm;
        finding.found = found;
        finding.flag = record.flag.as_deref().map(str::to_owned);
        name(&mut finding.programs, record);
    }

    fn unseen(&mut self, record: &Record) {
        let flow = || {
            let pid = record.pid.unwrap_or(0);
            (record.run.to_string(), pid, record.target.to_string())
        };
        let (why, counted) = match (record.kind.as_str(), record.verdict) {
            ("tunnel", Outcome::Allow) => (Why::Unopened, Counted::Yes),
            ("unix", Outcome::Allow) => (Why::Unix, Counted::Yes),
            ("connect", Outcome::Allow) if !record.is_looked_into() && !record.is_monitored() => {
                (Why::Direct, Counted::No)
            }
            ("flow", _) => {
                self.ended(record, flow());
                return;
            }
            _ => return,
        };
        if counted == Counted::Yes
            && let Some(open) = self.pending.of(flow())
        {
            *open = open.saturating_add(1);
        }
        if let Some(unseen) = self.unseen.of((why, record.target.to_string())) {
            unseen.add(record);
            unseen.counted = counted;
        }
    }

    /// A connection ended; whether one that nobody looked into.
    fn ended(&mut self, record: &Record, flow: (String, u32, String)) {
        let Some(open) = self.pending.take(&flow) else {
            return;
        };
        if open > 1
            && let Some(left) = self.pending.of(flow)
        {
            *left = open.saturating_sub(1);
        }
        let why = if record.target.starts_with('/') {
            Why::Unix
        } else {
            Why::Unopened
        };
        let traffic = record.traffic().unwrap_or_default();
        if let Some(unseen) = self.unseen.of((why, record.target.to_string())) {
            unseen.up = unseen.up.saturating_add(traffic.up);
            unseen.down = unseen.down.saturating_add(traffic.down);
        }
    }
}

impl Unseen {
    fn add(&mut self, record: &Record) {
        self.count = self.count.saturating_add(1);
        if let Some(rule) = &record.rule {
            self.rule = Some((rule.text.to_string(), rule.place.to_string()));
        }
        name(&mut self.programs, record);
    }
}

fn name(programs: &mut BTreeSet<String>, record: &Record) {
    let program = record.program();
    if programs.len() < NAMED_MAX && !program.is_empty() {
        programs.insert(program.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use outgate_record::Word;

    use super::*;

    fn record(kind: &str, detail: &str, up: Option<u64>) -> Record {
        Record {
            kind: Word::read(kind.to_owned().into()),
            verdict: if up.is_some() {
                Outcome::Note
            } else {
                Outcome::Allow
            },
            target: "a.test:443".into(),
            detail: Some(detail.to_owned().into()),
            run: "r".into(),
            pid: Some(7),
            bytes_up: up,
            bytes_down: up.map(|_| 1),
            duration_ms: up.map(|_| 1),
            ..Record::default()
        }
    }

    #[test]
    fn only_what_passed_unopened_counts_as_not_looked_into() {
        let mut found = Found::default();
        // A flow that was opened, then one that was not, then one that was.
        for record in [
            record("flow", "", Some(1000)),
            record("connect", "gateway", None),
            record("tunnel", "uninspected", None),
            record("flow", "", Some(20)),
            record("flow", "", Some(4000)),
        ] {
            found.add(&record);
        }
        assert_eq!(found.unseen_sum(), (1, 20));
        found.add(&record("connect", "direct", None));
        assert_eq!(found.unseen_sum(), (2, 20));
        let (_, unseen) = found.unseen.iter().nth(1).unwrap();
        assert_eq!(unseen.counted, Counted::No);
    }
}
