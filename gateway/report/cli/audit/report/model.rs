//! What a page says, gathered from records one by one: how much went where, by
//! which program, when. Pure: records in, sums out, everything within bounds.

use std::collections::BTreeSet;

use super::bounded::Bounded;
use super::denied::Denials;
use super::found::Found;
use super::timeline::{Slice, Timeline};
use crate::audit::Record;
use outgate_record::{Alarm, Kind, Outcome};

/// Hosts, programs, and pairs of them that are told apart.
const HOSTS_MAX: usize = 4096;
const PROGRAMS_MAX: usize = 1024;
const PAIRS_MAX: usize = 8192;
/// Runs that are told apart.
const RUNS_MAX: usize = 1024;
/// Leftovers that are told of.
const LEFT_MAX: usize = 256;
/// Budgets that are told of.
const BUDGETS_MAX: usize = 40;
/// Programs that are named with a host.
const NAMED_MAX: usize = 16;

/// Everything of a record that a page shows.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) records: u64,
    /// Lines that are no records.
    pub(super) unread: u64,
    /// Records that could not be written.
    pub(super) lost: u64,
    /// The first and the last time, in milliseconds from 1970 on.
    pub(super) span: Option<(u64, u64)>,
    pub(super) sum: Sum,
    pub(super) hosts: Bounded<String, Peer>,
    pub(super) programs: Bounded<String, Peer>,
    /// What went from a program to a host.
    pub(super) pairs: Bounded<(String, String), Sum>,
    pub(super) runs: Bounded<(String, u64, String), Run>,
    pub(super) timeline: Timeline,
    pub(super) denials: Denials,
    pub(super) found: Found,
    /// Runs whose rules were not enforced: they monitored or learned.
    pub(super) unenforced_runs: u64,
    /// How often other rules came into force.
    pub(super) policies: u64,
    /// Budgets that are nearly spent: when, to whom, and how much.
    pub(super) budgets: Vec<(u64, String, String)>,
    /// What commands wrote that runs later: when, where, and what it is.
    pub(super) left: Vec<(u64, String, String)>,
    pub(super) left_in_all: u64,
}

/// Amounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) allowed: u64,
    pub(super) denied: u64,
    /// Of what was allowed: in spite of the rules.
    pub(super) passed: u64,
    pub(super) connections: u64,
}

impl Sum {
    /// Adds another amount.
    pub(super) fn join(&mut self, other: &Self) {
        self.up = self.up.saturating_add(other.up);
        self.down = self.down.saturating_add(other.down);
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.denied = self.denied.saturating_add(other.denied);
        self.passed = self.passed.saturating_add(other.passed);
        self.connections = self.connections.saturating_add(other.connections);
    }

    /// What a pair, a host or a program is ordered by.
    pub(super) fn weight(&self) -> (u64, u64, u64) {
        let bytes = self.up.saturating_add(self.down);
        (self.up, bytes, self.allowed.saturating_add(self.denied))
    }

    fn add(&mut self, record: &Record) {
        if let Some(traffic) = record.traffic() {
            self.up = self.up.saturating_add(traffic.up);
            self.down = self.down.saturating_add(traffic.down);
            self.connections = self.connections.saturating_add(1);
        }
        self.passed = self
            .passed
            .saturating_add(u64::from(record.is_let_through()));
        match judged(record) {
            Some(Outcome::Allow) => self.allowed = self.allowed.saturating_add(1),
            Some(Outcome::Deny) => self.denied = self.denied.saturating_add(1),
            Some(Outcome::Note) | None => {}
        }
    }
}

/// A host, or a program.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) sum: Sum,
    /// Who it had to do with.
    pub(super) others: BTreeSet<String>,
}

impl Peer {
    fn add(&mut self, record: &Record, other: &str) {
        self.sum.add(record);
        if self.others.len() < NAMED_MAX && !other.is_empty() && !self.others.contains(other) {
            self.others.insert(other.to_owned());
        }
    }
}

/// One run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) command: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) end: String,
    /// How it was meant, where its rules were not enforced.
    pub(super) mode: String,
    pub(super) sum: Sum,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            records: 0,
            unread: 0,
            lost: 0,
            span: None,
            sum: Sum::default(),
            hosts: Bounded::new(HOSTS_MAX),
            programs: Bounded::new(PROGRAMS_MAX),
            pairs: Bounded::new(PAIRS_MAX),
            runs: Bounded::new(RUNS_MAX),
            timeline: Timeline::default(),
            denials: Denials::default(),
            found: Found::default(),
            unenforced_runs: 0,
            policies: 0,
            budgets: Vec::new(),
            left: Vec::new(),
            left_in_all: 0,
        }
    }
}

/// What a record says about something that was to leave, if it does. The question
/// before a connection is asked again by what is in it.
fn judged(record: &Record) -> Option<Outcome> {
    match (record.kind.as_str(), record.verdict) {
        ("connect", Outcome::Allow) if record.is_looked_into() => None,
        ("connect", Outcome::Allow) if record.is_monitored() => None,
        // Nothing leaves by listening.
        (_, Outcome::Note) | ("listen", Outcome::Allow) => None,
        (_, verdict) => Some(verdict),
    }
}

impl Model {
    /// Takes one record.
    pub(super) fn add(&mut self, record: &Record) {
        self.records = self.records.saturating_add(1);
        self.lost = self.lost.saturating_add(record.lost());
        if record.at() > 0 {
            let (first, last) = self.span.unwrap_or((record.at(), record.at()));
            self.span = Some((first.min(record.at()), last.max(record.at())));
        }
        let mode = record.mode.as_deref().unwrap_or_default();
        if !mode.is_empty() {
            self.unenforced_runs = self.unenforced_runs.saturating_add(1);
        }
        if record.kind == Kind::Policy {
            self.policies = self.policies.saturating_add(1);
        }
        if record.kind == Kind::Budget
            && record.verdict == Outcome::Note
            && self.budgets.len() < BUDGETS_MAX
        {
            let told = (
                record.at(),
                record.target.to_string(),
                record.detail().to_owned(),
            );
            self.budgets.push(told);
        }
        if record.kind == Kind::Leftover {
            self.left_in_all = self.left_in_all.saturating_add(1);
            if self.left.len() < LEFT_MAX {
                self.left.push((
                    record.at(),
                    record.target.to_string(),
                    record.detail().to_owned(),
                ));
            }
        }
        self.found.add(record);
        for counted in self.denials.add(record) {
            self.count(&counted);
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) {
        for counted in self.denials.settle() {
            self.count(&counted);
        }
        self.found.settle();
    }

    fn count(&mut self, record: &Record) {
        self.run(record);
        self.sum.add(record);
        self.peers(record);
        let one = |is: bool| u64::from(is);
        let verdict = judged(record);
        let what = Slice {
            allowed: one(verdict == Some(Outcome::Allow)),
            denied: one(verdict == Some(Outcome::Deny)),
            findings: one(record.finding.is_some()),
            alarms: one(record.alarm == Alarm::Raised),
        };
        if what != Slice::default() {
            self.timeline.add(record.at(), what);
        }
    }

    fn run(&mut self, record: &Record) {
        let session = record.session.unwrap_or(0);
        let key = (record.run.to_string(), session, record.sandbox.to_string());
        let Some(run) = self.runs.of(key) else {
            return;
        };
        run.sum.add(record);
        if run.first == 0 {
            run.first = record.at();
        }
        run.last = run.last.max(record.at());
        match record.kind.as_str() {
            "start" => {
                record.detail().clone_into(&mut run.command);
                let mode = record.mode.as_deref().unwrap_or_default();
                mode.clone_into(&mut run.mode);
            }
            "finish" => record.detail().clone_into(&mut run.end),
            _ => {}
        }
    }

    fn peers(&mut self, record: &Record) {
        let host = record.host();
        let program = record.program();
        if host.is_empty() || record.kind == Kind::Dns {
            return;
        }
        if let Some(peer) = self.hosts.of(host.to_owned()) {
            peer.add(record, program);
        }
        if program.is_empty() {
            return;
        }
        if let Some(peer) = self.programs.of(record.executable().to_owned()) {
            peer.add(record, host);
        }
        if let Some(sum) = self.pairs.of((program.to_owned(), host.to_owned())) {
            sum.add(record);
        }
    }
}
