//! The chain of a record, followed from outside: whether each line is the one
//! that came next. Lines in, faults out; reads no file, knows no clock, and
//! believes nothing of a line but what the line after it vouches for.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::{Kind, Record, RemovedRecords, limits, seal};

/// Digits of the hash by which a line names the one before it.
pub type HashDigits = [u8; 64];

/// What the first line names.
pub const NO_HASH: HashDigits = [b'0'; 64];

/// Follows the chains of a record, line by line: every run has its own, and many
/// runs may write into one file, one among the other.
#[derive(Debug, Default)]
pub struct Chains {
    runs: BTreeMap<String, ChainLink>,
    /// The first records that stay, where retention removed those before them.
    removed: BTreeMap<String, u64>,
}

/// How far one chain was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLink {
    /// The number of its last record.
    pub seq: u64,
    /// The hash of its last line, in hexadecimal.
    pub hash: String,
    /// How many of its records were seen.
    pub records: u64,
    /// How many records it says could not be written.
    pub lost: u64,
    /// Whether the run said that it ended.
    pub end: RecordEnd,
    /// What its end is signed by, as its first record says, in hexadecimal.
    pub key: Option<String>,
}

/// Whether the record of a run is complete at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordEnd {
    /// It goes on, was killed, or is cut off.
    Open,
    /// It said that it ended.
    Said,
}

/// What one good line said about the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLine {
    /// The run it belongs to.
    pub run: String,
    /// The hash of this line, in hexadecimal.
    pub hash: String,
    /// Records before it that could not be written, by its own word.
    pub lost: u64,
}

/// Why a line is not the one that came next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// It is not a record.
    #[error("not a record")]
    NoRecord,
    /// The line before it, of the same run, does not have the hash that this
    /// one names.
    #[error("record {seq} of {run} was changed, or the hash that record {} names", seq.saturating_add(1))]
    Changed {
        /// The run.
        run: String,
        /// The record before.
        seq: u64,
    },
    /// Records are not where they should be.
    #[error("{}", missing(run, *from, *to))]
    Missing {
        /// The run.
        run: String,
        /// The first that is missing.
        from: u64,
        /// The last that is missing.
        to: u64,
    },
    /// It stands after one that came later, or twice.
    #[error("record {seq} of {run} stands after record {after}: repeated, or moved")]
    Misplaced {
        /// The run.
        run: String,
        /// Its number.
        seq: u64,
        /// The number of the record before it.
        after: u64,
    },
    /// The end of a run is not what its gateway wrote: nobody else has the key.
    #[error(
        "record {seq} of {run}, its end, is not signed by the key in its first record: changed, or of somebody else's making"
    )]
    Unsigned {
        /// The run.
        run: String,
        /// Its number.
        seq: u64,
    },
    /// More runs than anybody can follow.
    #[error("more than {} runs in one record", limits::CHAINS_MAX)]
    TooMany,
}

fn missing(run: &str, from: u64, to: u64) -> String {
    if from == to {
        format!("record {from} of {run} is missing")
    } else {
        format!("records {from} to {to} of {run} are missing")
    }
}

/// The hash by which the next line names this one, in hexadecimal. `line` comes
/// without its line break.
pub fn line_digits(line: &[u8]) -> HashDigits {
    let mut digits = NO_HASH;
    // Twice as many digits as SHA-256 has bytes.
    HEXLOWER.encode_mut(&Sha256::digest(line), &mut digits);
    digits
}

/// The same as a text.
pub fn line_hash(line: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(line))
}

impl Chains {
    /// Follows one line, without its line break. After a fault the chain goes on
    /// from this line, so that one fault is told once.
    ///
    /// # Errors
    /// The line is not the one that came next; see [`ChainFault`].
    pub fn follow(&mut self, line: &[u8]) -> Result<FollowedLine, ChainFault> {
        let record: Record<'static> =
            serde_json::from_slice(line).map_err(|_| ChainFault::NoRecord)?;
        let (run, prev, seq) = (&*record.run, &*record.prev, record.seq);
        if run.is_empty() || prev.is_empty() || seq == 0 {
            return Err(ChainFault::NoRecord);
        }
        let lost = record.lost();
        self.remove(record.removed.as_deref().unwrap_or_default());
        let hash = line_hash(line);
        let before = self.runs.get(run);
        if before.is_none() && self.runs.len() >= limits::CHAINS_MAX {
            return Err(ChainFault::TooMany);
        }
        let fault = fault(run, before, prev, (seq, lost));
        let key = match before {
            Some(link) => link.key.clone(),
            None => record.key.as_deref().map(str::to_owned),
        };
        // A session of a shared gateway ends before the gateway does.
        let ends = record.kind == Kind::Finish && record.session.unwrap_or(0) == 0;
        let unsigned = || {
            key.as_deref()
                .is_some_and(|key| !seal::is_signed(line, key))
        };
        let fault = fault.or_else(|| {
            let run = run.to_owned();
            (ends && unsigned()).then_some(ChainFault::Unsigned { run, seq })
        });
        let link = ChainLink {
            seq,
            hash: hash.clone(),
            records: before.map_or(0, |link| link.records).saturating_add(1),
            lost: before.map_or(0, |link| link.lost).saturating_add(lost),
            end: match before {
                _ if ends => RecordEnd::Said,
                Some(link) => link.end,
                None => RecordEnd::Open,
            },
            key,
        };
        let run = run.to_owned();
        self.runs.insert(run.clone(), link);
        match fault {
            Some(fault) => Err(fault),
            None => Ok(FollowedLine { run, hash, lost }),
        }
    }

    /// Takes down what a record says of older ones.
    fn remove(&mut self, member: &str) {
        for own in RemovedRecords::parse(member) {
            let is_known = self.removed.contains_key(&own.run);
            if is_known || self.removed.len() < limits::CHAINS_MAX {
                let before = self.removed.entry(own.run).or_default();
                *before = own.before.max(*before);
            }
        }
    }

    /// Whether a record says that retention removes those of `run` up to this one. What the
    /// lines that were followed say, the later ones too: ask when all were.
    pub fn is_removed(&self, run: &str, last: u64) -> bool {
        self.removed.get(run).is_some_and(|before| last < *before)
    }

    /// Every run and how far its chain was followed.
    pub fn links(&self) -> impl Iterator<Item = (&str, &ChainLink)> {
        self.runs.iter().map(|(run, link)| (run.as_str(), link))
    }
}

/// What is wrong between a line and the one before it.
fn fault(
    run: &str,
    before: Option<&ChainLink>,
    prev: &str,
    (seq, lost): (u64, u64),
) -> Option<ChainFault> {
    let run = run.to_owned();
    let (after, named) = match before {
        Some(link) => (link.seq, link.hash.as_bytes()),
        None => (0, NO_HASH.as_slice()),
    };
    let expected = after.saturating_add(lost).saturating_add(1);
    if seq <= after {
        return Some(ChainFault::Misplaced { run, seq, after });
    }
    if seq != expected {
        return Some(ChainFault::Missing {
            run,
            from: after.saturating_add(1),
            to: seq.saturating_sub(1),
        });
    }
    (prev.as_bytes() != named).then_some(ChainFault::Changed { run, seq: after })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of one run, chained.
    fn lines(run: &str, count: u64) -> Vec<String> {
        let mut prev = "0".repeat(64);
        let mut lines = Vec::new();
        for seq in 1..=count {
            let kind = if seq == count { "finish" } else { "connect" };
            let line =
                format!(r#"{{"v":1,"seq":{seq},"prev":"{prev}","run":"{run}","kind":"{kind}"}}"#);
            prev = line_hash(line.as_bytes());
            lines.push(line);
        }
        lines
    }

    fn faults(lines: &[String]) -> Vec<ChainFault> {
        let mut chains = Chains::default();
        let followed = lines.iter().map(|line| chains.follow(line.as_bytes()));
        followed.filter_map(Result::err).collect()
    }

    #[test]
    fn runs_that_share_a_file_are_followed_apart() {
        let mut chains = Chains::default();
        for (one, other) in lines("a", 3).iter().zip(&lines("b", 3)) {
            assert!(chains.follow(one.as_bytes()).is_ok());
            assert!(chains.follow(other.as_bytes()).is_ok());
        }
        let ended =
            |(_, link): &(&str, &ChainLink)| link.end == RecordEnd::Said && link.records == 3;
        assert_eq!(chains.links().filter(ended).count(), 2);
    }

    #[test]
    fn every_change_is_told_once_and_where() {
        let run = || "a".to_owned();
        let good = lines("a", 5);
        assert_eq!(faults(&good), []);
        let mut changed = good.clone();
        changed[2] = changed[2].replace("connect", "request");
        assert_eq!(
            faults(&changed),
            [ChainFault::Changed { run: run(), seq: 3 }]
        );
        let mut removed = good.clone();
        removed.remove(1);
        assert_eq!(
            faults(&removed),
            [ChainFault::Missing {
                run: run(),
                from: 2,
                to: 2
            }]
        );
        let first = &good[2..];
        assert_eq!(
            faults(first),
            [ChainFault::Missing {
                run: run(),
                from: 1,
                to: 2
            }]
        );
        let mut twice = good.clone();
        twice.insert(3, good[2].clone());
        assert_eq!(
            faults(&twice),
            [ChainFault::Misplaced {
                run: run(),
                seq: 3,
                after: 3
            }]
        );
        let mut swapped = good.clone();
        swapped.swap(1, 2);
        assert!(matches!(
            faults(&swapped).first(),
            Some(ChainFault::Missing { from: 2, to: 2, .. })
        ));
        let mut broken = good.clone();
        broken[4].truncate(20);
        assert_eq!(faults(&broken), [ChainFault::NoRecord]);
    }

    #[test]
    fn a_run_in_the_name_of_another_is_found() {
        let mut lines = lines("a", 3);
        lines[1] = lines[1].replace(r#""run":"a""#, r#""run":"b""#);
        let found = faults(&lines);
        let of = |name: &str| {
            let is = |fault: &&ChainFault| matches!(fault, ChainFault::Missing { run, .. } if run == name);
            found.iter().filter(is).count()
        };
        assert_eq!((of("a"), of("b"), found.len()), (1, 1, 2));
    }

    #[test]
    fn what_a_record_says_was_removed_is_removed_and_no_more() {
        let mut chains = Chains::default();
        let line = |seq, prev: &str, removed: &str| {
            format!(r#"{{"v":1,"seq":{seq},"prev":"{prev}","run":"a"{removed}}}"#)
        };
        let first = line(5, &"1".repeat(64), "");
        assert!(chains.follow(first.as_bytes()).is_err());
        assert!(!chains.is_removed("a", 4));
        let next = line(6, &line_hash(first.as_bytes()), r#","removed":"a:5 b:3""#);
        assert!(chains.follow(next.as_bytes()).is_ok());
        assert!(chains.is_removed("a", 4) && !chains.is_removed("a", 5));
        assert!(chains.is_removed("b", 2) && !chains.is_removed("c", 1));
    }

    #[test]
    fn lost_records_are_no_fault_where_the_next_one_says_so() {
        let mut prev = "0".repeat(64);
        let mut chains = Chains::default();
        for (seq, lost) in [(1, ""), (5, r#","lost":3"#), (6, "")] {
            let line = format!(r#"{{"v":1,"seq":{seq},"prev":"{prev}","run":"a"{lost}}}"#);
            prev = line_hash(line.as_bytes());
            assert!(chains.follow(line.as_bytes()).is_ok(), "{line}");
        }
        assert_eq!(chains.links().next().unwrap().1.lost, 3);
    }
}
