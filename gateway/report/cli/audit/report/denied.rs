//! What was denied, told once for each thing: how often, by whom, why, and what
//! would allow it. A connection that was denied because of what was in it is told
//! by what was in it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::bounded::Bounded;
use crate::audit::Record;
use outgate_policy::{Denied as DigestedDenial, Digest, Urgency};
use outgate_record::{Kind, Outcome};

/// Denied things that are told apart.
const DENIALS_MAX: usize = 2048;
/// Processes whose denied connection may still be told by something else.
const PENDING_MAX: usize = 1024;
/// Programs that are named.
const NAMED_MAX: usize = 8;

/// One denied thing.
#[derive(Debug, Default)]
pub(super) struct Denied {
    pub(super) count: u64,
    pub(super) last: u64,
    pub(super) because: String,
    pub(super) flag: Option<String>,
    /// The rule that denied, and its place.
    pub(super) rule: Option<(String, String)>,
    pub(super) programs: BTreeSet<String>,
}

/// All that was denied.
#[derive(Debug)]
pub(super) struct Denials {
    pub(super) told: Bounded<String, Denied>,
    /// What rules deny, and runs that monitor let through.
    pub(super) passed: Bounded<String, Denied>,
    /// All of both, by groups.
    pub(super) digest: Digest,
    /// Denied connections by run and process.
    pending: BTreeMap<(String, u32), Record>,
}

impl Default for Denials {
    fn default() -> Self {
        Self {
            told: Bounded::new(DENIALS_MAX),
            passed: Bounded::new(DENIALS_MAX),
            digest: Digest::default(),
            pending: BTreeMap::new(),
        }
    }
}

impl Denials {
    /// Takes a record; what was not denied, and what was found, is for others.
    /// Gives back what counts from now on: the record itself, unless something more
    /// telling may follow, and a connection before it that nothing followed.
    pub(super) fn add(&mut self, record: &Record) -> Vec<Record> {
        if record.is_let_through() {
            group(&mut self.digest, (Urgency::Passed, record), None);
            if let Some(passed) = self.passed.of(record.subject()) {
                passed.add(record, None);
            }
        }
        if record.verdict != Outcome::Deny {
            return vec![record.clone()];
        }
        let key = (record.run.to_string(), record.pid.unwrap_or(0));
        let before = self.pending.remove(&key);
        let (leading, alone) = match before {
            Some(connection) if may_follow(record) && leads(&connection, record) => {
                (Some(connection), None)
            }
            before => (None, before),
        };
        let mut counted = Vec::new();
        if let Some(connection) = alone {
            self.tell(&connection, None);
            counted.push(connection);
        }
        if record.kind == Kind::Connect && self.pending.len() < PENDING_MAX {
            self.pending.insert(key, record.clone());
            return counted;
        }
        if record.finding.is_none() && record.unscanned.is_none() {
            // An https:// rule is what one would write, not one for TLS alone.
            let flag = leading.filter(|_| record.kind == Kind::Tunnel);
            self.tell(
                record,
                flag.and_then(|connection| connection.flag.map(Cow::into_owned)),
            );
        }
        if record.finding.is_none() && record.unscanned.is_some() {
            group(&mut self.digest, (Urgency::Denied, record), None);
        }
        counted.push(record.clone());
        counted
    }

    /// Nothing more telling follows.
    pub(super) fn settle(&mut self) -> Vec<Record> {
        let left: Vec<Record> = std::mem::take(&mut self.pending).into_values().collect();
        for record in &left {
            self.tell(record, None);
        }
        left
    }

    /// Everything that would have to be allowed, each once, the most frequent first.
    pub(super) fn flags(&self) -> Vec<&str> {
        let mut flags: Vec<&str> = Vec::new();
        for (_, denied) in self.told.by(|denied| denied.count) {
            if let Some(flag) = denied.flag.as_deref()
                && !flags.contains(&flag)
            {
                flags.push(flag);
            }
        }
        flags
    }

    fn tell(&mut self, record: &Record, flag: Option<String>) {
        let better = flag.as_deref();
        group(&mut self.digest, (Urgency::Denied, record), better);
        if let Some(denied) = self.told.of(record.subject()) {
            denied.add(record, flag);
        }
    }
}

/// Adds a record to the digest, perhaps with a better flag than its own.
fn group(digest: &mut Digest, (urgency, record): (Urgency, &Record), better: Option<&str>) {
    digest.add(&DigestedDenial {
        urgency,
        program: record.executable(),
        subject: &record.subject(),
        because: record.detail(),
        flag: better.or(record.flag.as_deref()),
    });
}

impl Denied {
    fn add(&mut self, record: &Record, flag: Option<String>) {
        self.count = self.count.saturating_add(1);
        self.last = self.last.max(record.at());
        record.detail().clone_into(&mut self.because);
        let flag = flag.or_else(|| record.flag.as_deref().map(str::to_owned));
        self.flag = flag.or_else(|| self.flag.take());
        let rule = record.rule.as_ref();
        self.rule = rule.map(|rule| (rule.text.to_string(), rule.place.to_string()));
        let program = record.program();
        if self.programs.len() < NAMED_MAX && !program.is_empty() {
            self.programs.insert(program.to_owned());
        }
    }
}

/// Whether a record may say more of a denied connection.
fn may_follow(record: &Record) -> bool {
    matches!(
        record.kind.as_str(),
        "tunnel" | "request" | "finding" | "canary"
    )
}

/// Whether a denied connection is the one in which something else was denied.
fn leads(connection: &Record, record: &Record) -> bool {
    let authority = record
        .target
        .split_once("://")
        .map_or(&*record.target, |(_, rest)| rest);
    authority == connection.target || record.host() == connection.host()
}

#[cfg(test)]
mod tests {
    use outgate_record::Word;

    use super::*;

    fn denied(kind: &str, target: &str, flag: &str) -> Record {
        Record {
            kind: Word::read(kind.to_owned().into()),
            verdict: Outcome::Deny,
            target: target.to_owned().into(),
            flag: Some(flag.to_owned().into()),
            run: "r".into(),
            pid: Some(7),
            ..Record::default()
        }
    }

    #[test]
    fn the_words_of_a_request_stand_for_its_connection() {
        let mut denials = Denials::default();
        let mut counted = 0;
        for record in [
            denied("connect", "a.test:80", "-a a"),
            Record {
                method: Some("PUT".into()),
                ..denied("request", "http://a.test", "-a 'PUT http://a.test'")
            },
            denied("connect", "b.test:443", "-a https://b.test"),
            denied("tunnel", "b.test:443", "-a tls://b.test"),
            denied("connect", "c.test:443", "-a https://c.test"),
            denied("connect", "d.test:443", "-a https://d.test"),
            denied("connect", "d.test:443", "-a https://d.test"),
        ] {
            counted += denials.add(&record).len();
        }
        counted += denials.settle().len();
        assert_eq!(counted, 5, "a connection counts unless something else does");
        let told: Vec<(&str, u64, &str)> = denials
            .told
            .iter()
            .map(|(subject, denied)| {
                let flag = denied.flag.as_deref().unwrap();
                (subject.as_str(), denied.count, flag)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("PUT http://a.test", 1, "-a 'PUT http://a.test'"),
                ("TLS to b.test:443", 1, "-a https://b.test"),
                ("connection to c.test:443", 1, "-a https://c.test"),
                ("connection to d.test:443", 2, "-a https://d.test"),
            ]
        );
    }
}
