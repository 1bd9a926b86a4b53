//! Judges what came of cases, from three sides: client, origin and record. Each
//! fault is told with all that was seen.

use std::fmt::Write as _;

use outgate_harness::Lab;

use crate::case::{Carrier, Case, Cut, Want};
use crate::client::Heard;
use crate::readers::{READERS, Reading, Taken};
use crate::replies::Reply;
use crate::stage::{carrier, run};

/// A request as the record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Query values are not recorded.
    pub(crate) path: String,
}

/// What came of one case.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) case: Case,
    /// Its authority.
    pub(crate) host: String,
    pub(crate) heard: Heard,
    /// All responses, and what is left behind them.
    pub(crate) replies: (Vec<Reply>, Vec<u8>),
    /// What carried it to the origin, per connection, and the version of HTTP
    /// that TLS agreed on.
    pub(crate) wires: Vec<(Carrier, Option<String>)>,
    /// What the origin got, per connection.
    pub(crate) arrivals: Vec<Vec<u8>>,
    pub(crate) allowed: Vec<Judged>,
    /// The reasons of what was denied.
    pub(crate) denied: Vec<String>,
}

/// Asserts that every case came out as wanted.
pub(crate) fn check(seen: &[Seen]) {
    let faults: Vec<String> = seen.iter().filter_map(Seen::faults).collect();
    assert!(
        faults.is_empty(),
        "{} of {} cases:\n{}",
        faults.len(),
        seen.len(),
        faults.join("\n")
    );
}

/// Runs all cases, also byte by byte, and asserts that each comes out as wanted.
pub(crate) fn hold(lab: &Lab, cases: Vec<Case>) -> Vec<Seen> {
    let singly: Vec<Case> = cases.iter().cloned().map(Case::singly).collect();
    let seen = run(lab, [cases, singly].concat());
    check(&seen);
    seen
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

impl Seen {
    /// Everything that is not as wanted, with all that was seen.
    pub(crate) fn faults(&self) -> Option<String> {
        let faults: Vec<String> = [self.laws(), self.wanted()].concat();
        (!faults.is_empty()).then(|| {
            let mut text = format!("=== {}\n  {}\n", self.case.name, faults.join("\n  "));
            for step in &self.case.steps {
                if let crate::case::Step::Send(bytes) | crate::case::Step::SendSingly(bytes) = step
                {
                    let bytes = bytes.escape_ascii().to_string();
                    writeln!(text, "  said    {}", shown(&bytes)).ok();
                }
            }
            let heard = self.heard.bytes.escape_ascii().to_string();
            writeln!(text, "  heard   {} [{}]", shown(&heard), self.heard.end).ok();
            for bytes in &self.arrivals {
                let bytes = bytes.escape_ascii().to_string();
                writeln!(text, "  arrived {}", shown(&bytes)).ok();
            }
            writeln!(text, "  allowed {:?}", self.allowed).ok();
            writeln!(text, "  denied  {:?}", self.denied).ok();
            text
        })
    }

    /// The first response's own words.
    pub(crate) fn reply(&self) -> &Reply {
        self.replies
            .0
            .first()
            .unwrap_or_else(|| panic!("no response: {self:?}"))
    }

    /// What arrived first, as text.
    pub(crate) fn arrived(&self) -> String {
        let first = self.arrivals.first();
        String::from_utf8_lossy(first.map_or(&[], Vec::as_slice)).into_owned()
    }

    /// What holds whatever was said: every reader takes what arrived for the
    /// requests that were judged, and without a judged request nothing arrives.
    pub(crate) fn laws(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let judged = &self.allowed;
        if judged.is_empty() && !self.arrivals.is_empty() {
            faults.push("a connection arrived although nothing was allowed".to_owned());
        }
        for (wire, version) in &self.wires {
            if *wire != carrier() {
                faults.push(format!("a connection arrived over {wire:?}"));
            }
            // Without a word about it, it is HTTP/1.1.
            let streams = |version: &Option<String>| version.as_deref() == Some("h2");
            if streams(version) != streams(&self.heard.version) {
                let agreed = &self.heard.version;
                faults.push(format!(
                    "the client speaks {agreed:?}, the origin {version:?}"
                ));
            }
        }
        let mut contents: Option<Vec<Vec<u8>>> = None;
        for (name, read) in READERS {
            let mut readings: Vec<Reading> =
                self.arrivals.iter().map(|bytes| read(bytes)).collect();
            // Who knows no transfer codings stops at the first chunk size.
            let knows_codings = name != "first length";
            if !knows_codings {
                let stop = readings.iter().position(|one| one.fault.is_some());
                readings.truncate(stop.map_or(readings.len(), |at| at + 1));
            }
            let taken: Vec<&Taken> = readings.iter().flat_map(|one| &one.requests).collect();
            if taken.len() > judged.len() {
                faults.push(format!(
                    "{name}: takes {} requests, {} were judged",
                    taken.len(),
                    judged.len()
                ));
            }
            for (taken, judged) in taken.iter().zip(judged) {
                let judged_host = judged.target.split_once("://").map(|(_, host)| host);
                let host = taken.host == self.host && judged_host == Some(&*self.host);
                let path = path_of(&taken.target) == path_of(&judged.path);
                if !host || !path || taken.method != judged.method {
                    faults.push(format!("{name}: takes {taken:?} for {judged:?}"));
                }
            }
            if !knows_codings {
                continue;
            }
            let all = taken.iter().map(|taken| taken.content.clone()).collect();
            if contents.get_or_insert_with(|| Vec::clone(&all)) != &all {
                faults.push(format!("{name}: other contents"));
            }
            let whole = readings.iter().all(|one| one.fault.is_none());
            let bad = readings
                .iter()
                .filter_map(|one| one.fault)
                .find(|fault| *fault != "incomplete");
            if let Some(fault) = bad {
                faults.push(format!("{name}: {fault}"));
            }
            let may_fail = self.case.want.cut == Cut::Last;
            if whole && !may_fail && taken.len() != judged.len() {
                faults.push(format!(
                    "{name}: {} of {} arrived",
                    taken.len(),
                    judged.len()
                ));
            }
        }
        faults
    }

    fn wanted(&self) -> Vec<String> {
        let Want {
            sent,
            statuses,
            cut,
        } = &self.case.want;
        let mut faults = Vec::new();
        let readings = self.arrivals.iter().map(|bytes| READERS[0].1(bytes));
        let readings: Vec<Reading> = readings.collect();
        let whole: usize = readings.iter().map(|one| one.requests.len()).sum();
        if whole != *sent {
            faults.push(format!("{whole} whole requests arrived instead of {sent}"));
        }
        let is_cut = readings.iter().any(|one| one.fault.is_some());
        if is_cut && *cut == Cut::No {
            faults.push("a request arrived in part".to_owned());
        }
        let finals: Vec<u16> = self.replies.0.iter().map(|reply| reply.status).collect();
        let finals: Vec<u16> = finals.into_iter().filter(|status| *status > 100).collect();
        if let Some(statuses) = statuses {
            if finals != *statuses {
                faults.push(format!("responses {finals:?} instead of {statuses:?}"));
            }
            if !self.replies.1.is_empty() && !finals.contains(&101) {
                faults.push("bytes after the last response".to_owned());
            }
        }
        // Each is recorded, whether the parser, the target or a rule refused it.
        let refused = finals.iter().filter(|status| (400..500).contains(*status));
        let refused = refused.count().min(finals.len().saturating_sub(*sent));
        let silent = usize::from(*sent == 0 && *cut == Cut::No);
        if self.denied.len() < refused.max(silent) {
            faults.push("no record says that it was denied".to_owned());
        }
        if !self.heard.is_ended() {
            faults.push(format!("the connection ended with `{}`", self.heard.end));
        }
        faults
    }
}

fn shown(text: &str) -> &str {
    text.get(..600).unwrap_or(text)
}
