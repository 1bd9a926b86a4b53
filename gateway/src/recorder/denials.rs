//! What was refused so far, and what is wrong, for people: which lines they
//! still hear, and what the summary counts. Denials are the command's to make,
//! as many as it likes, so alarms have a limit of their own. Text only; sends
//! nothing.

use std::collections::HashSet;

use outgate_policy::{Denial, DenialGroup, Denied, Digest, Urgency, shape};

use super::recent::RecentDenials;
use crate::limits;
use crate::refusal::Refusal;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct DenialLines {
    count: u64,
    passed: u64,
    alarms: u64,
    told: HashSet<String>,
    alarmed: HashSet<String>,
    digest: Digest,
    recent: RecentDenials,
}

impl DenialLines {
    /// Counts what was refused to a program. Gives the line to be said: one for each
    /// target, whatever ids its path holds, and within a bound.
    pub(super) fn refused(&mut self, program: &str, refusal: &Refusal) -> Option<String> {
        self.count = self.count.saturating_add(1);
        // Why was said when it began, and it is one thing, whoever asked for what.
        let (program, because) = if refusal.is_unrecorded() {
            ("", "nothing more could be recorded")
        } else {
            let because = refusal.alarm_text().unwrap_or(refusal.because());
            (program, because)
        };
        self.digest.add(&Denied {
            urgency: refusal.urgency(),
            program,
            subject: refusal.kind_of_subject(),
            because,
            flag: refusal.hint().as_deref(),
        });
        self.recent.add(refusal);
        if refusal.is_alarm() {
            return self.alarmed(refusal.key(), refusal.notice());
        }
        let key = shape(&refusal.key());
        Some(match audience(&mut self.told, key, limits::NOTICES_MAX)? {
            DenialAudience::Last => {
                "outgate: further denials are only in the audit record".to_owned()
            }
            DenialAudience::Whole => refusal.notice(),
        })
    }

    /// Counts what a program was let do in spite of this denial. Gives the line to be said,
    /// as of what is refused.
    pub(super) fn passed(&mut self, program: &str, denial: &Denial) -> Option<String> {
        self.passed = self.passed.saturating_add(1);
        self.digest.add(&Denied {
            urgency: Urgency::Passed,
            program,
            subject: denial.subject(),
            because: denial.because(),
            flag: denial.hint().as_deref(),
        });
        let key = shape(&format!("passed {}", denial.subject()));
        let to_allow = denial.hint().map(|flag| format!("; to allow: {flag}"));
        Some(match audience(&mut self.told, key, limits::NOTICES_MAX)? {
            DenialAudience::Last => {
                "outgate: further denials are only in the audit record".to_owned()
            }
            DenialAudience::Whole => format!(
                "outgate: monitor: let through {} ({}){}",
                denial.subject(),
                denial.because(),
                to_allow.unwrap_or_default()
            ),
        })
    }

    /// Counts an alarm about what `key` names, beside all refusals. Gives what is to be
    /// said of it, whatever was denied before.
    pub(super) fn alarm(&mut self, key: &str, what: &str) -> Option<String> {
        self.digest.add(&Denied {
            urgency: Urgency::Alarm,
            program: "",
            subject: key,
            because: what,
            flag: None,
        });
        self.alarmed(key.to_owned(), format!("outgate: ALARM: {key}: {what}"))
    }

    fn alarmed(&mut self, key: String, line: String) -> Option<String> {
        self.alarms = self.alarms.saturating_add(1);
        Some(
            match audience(&mut self.alarmed, key, limits::ALARMS_MAX)? {
                DenialAudience::Last => {
                    "outgate: ALARM: further alarms are only in the audit record".to_owned()
                }
                DenialAudience::Whole => line,
            },
        )
    }

    /// How many of each there were, alarms first; nothing where there was none.
    pub(crate) fn words(&self) -> Option<String> {
        let counted = |count: u64, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {what}{plural}"))
        };
        let alarms = counted(self.alarms, "alarm").map(|words| words.to_ascii_uppercase());
        let denials = counted(self.count, "denial");
        let passed = counted(self.passed, "time").map(|times| {
            format!("{times} let through what rules deny, since the run only monitors")
        });
        let all: Vec<String> = alarms.into_iter().chain(denials).chain(passed).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// The last of them.
    pub(crate) fn recent(&self) -> &RecentDenials {
        &self.recent
    }

    /// All of it by groups, what matters most first.
    pub(crate) fn groups(&self) -> Vec<&DenialGroup> {
        self.digest.groups()
    }

    /// How many refusals are in none of the groups.
    pub(crate) fn beyond(&self) -> u64 {
        self.digest.beyond()
    }
}

/// What is heard of something new.
enum DenialAudience {
    Whole,
    /// That there is more.
    Last,
}

fn audience(seen: &mut HashSet<String>, key: String, most: usize) -> Option<DenialAudience> {
    if seen.len() > most || !seen.insert(key) {
        return None;
    }
    Some(if seen.len() > most {
        DenialAudience::Last
    } else {
        DenialAudience::Whole
    })
}

#[cfg(test)]
mod tests {
    use outgate_record::Reason;

    use super::*;

    fn denial(number: usize) -> Refusal {
        Refusal::own(
            Reason::Policy,
            &format!("GET http://{number}.test"),
            "no rule",
        )
    }

    fn alarm(number: usize) -> Refusal {
        denial(number).alarm("a canary")
    }

    #[test]
    fn alarms_are_heard_whatever_was_denied_before() {
        let mut denials = DenialLines::default();
        assert_eq!(denials.words(), None);
        let told = (0..1000).filter_map(|number| denials.refused("", &denial(number)));
        assert_eq!(told.count(), limits::NOTICES_MAX + 1);
        let line = denials.refused("", &alarm(7)).expect("a line");
        assert!(line.starts_with("outgate: ALARM: denied"), "{line}");
        assert_eq!(denials.refused("", &alarm(7)), None, "once");
        let line = denials.alarm("a.test", "so");
        assert_eq!(line.as_deref(), Some("outgate: ALARM: a.test: so"));
        assert_eq!(denials.words().as_deref(), Some("3 ALARMS; 1002 denials"));
    }

    #[test]
    fn alarms_have_a_limit_and_all_are_counted() {
        let mut denials = DenialLines::default();
        let lines: Vec<String> = (0..1000)
            .filter_map(|number| denials.refused("", &alarm(number)))
            .collect();
        assert_eq!(lines.len(), limits::ALARMS_MAX + 1);
        assert!(lines.iter().all(|line| line.starts_with("outgate: ALARM:")));
        assert!(
            denials.refused("", &denial(1)).is_some(),
            "denials are told too"
        );
        assert_eq!(
            denials.words().as_deref(),
            Some("1000 ALARMS; 1001 denials")
        );
    }
}
