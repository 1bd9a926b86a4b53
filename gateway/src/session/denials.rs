//! What was refused so far, and what is wrong, for people: which lines they
//! still hear, and what the summary counts. Denials are the command's to make,
//! as many as it likes, so alarms have a limit of their own. Text only; sends
//! nothing.

use std::collections::HashSet;

use crate::limits;
use crate::refusal::Refusal;

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Denials {
    count: u64,
    alarms: u64,
    told: HashSet<String>,
    alarmed: HashSet<String>,
    hints: Vec<String>,
}

impl Denials {
    /// Counts a refusal. Gives the line to be said: one for each target, and
    /// within a bound.
    pub(super) fn refused(&mut self, refusal: &Refusal) -> Option<String> {
        self.count = self.count.saturating_add(1);
        if refusal.is_alarm() {
            return self.alarm(refusal.key(), refusal.notice());
        }
        match heard(&mut self.told, refusal.key(), limits::NOTICES_MAX)? {
            Heard::Last => Some("outgate: further denials are only in the audit record".to_owned()),
            Heard::Whole => {
                if let Some(hint) = refusal.hint()
                    && !self.hints.contains(&hint)
                {
                    self.hints.push(hint);
                }
                Some(refusal.notice())
            }
        }
    }

    /// Counts an alarm about what `key` names. Gives what is to be said of it:
    /// `line`, whatever was denied before.
    pub(super) fn alarm(&mut self, key: String, line: String) -> Option<String> {
        self.alarms = self.alarms.saturating_add(1);
        Some(match heard(&mut self.alarmed, key, limits::ALARMS_MAX)? {
            Heard::Last => "outgate: ALARM: further alarms are only in the audit record".to_owned(),
            Heard::Whole => line,
        })
    }

    /// How many of each there were, alarms first; nothing where there was none.
    pub(super) fn words(&self) -> Option<String> {
        let counted = |count: u64, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {what}{plural}"))
        };
        let alarms = counted(self.alarms, "alarm").map(|words| words.to_ascii_uppercase());
        let denials = counted(self.count, "denial");
        let all: Vec<String> = alarms.into_iter().chain(denials).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Options that would allow what was refused.
    pub(super) fn hints(&self) -> &[String] {
        &self.hints
    }
}

/// What is heard of something new.
enum Heard {
    Whole,
    /// That there is more.
    Last,
}

fn heard(told: &mut HashSet<String>, key: String, most: usize) -> Option<Heard> {
    if told.len() > most || !told.insert(key) {
        return None;
    }
    Some(if told.len() > most {
        Heard::Last
    } else {
        Heard::Whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(number: usize) -> Refusal {
        Refusal::own("policy", &format!("GET http://{number}.test"), "no rule")
    }

    fn alarm(number: usize) -> Refusal {
        denial(number).alarm("a canary")
    }

    #[test]
    fn alarms_are_heard_whatever_was_denied_before() {
        let mut denials = Denials::default();
        assert_eq!(denials.words(), None);
        let told = (0..1000).filter_map(|number| denials.refused(&denial(number)));
        assert_eq!(told.count(), limits::NOTICES_MAX + 1);
        let line = denials.refused(&alarm(7)).expect("a line");
        assert!(line.starts_with("outgate: ALARM: denied"), "{line}");
        assert_eq!(denials.refused(&alarm(7)), None, "once");
        let line = denials.alarm("a.test".to_owned(), "a line".to_owned());
        assert_eq!(line.as_deref(), Some("a line"));
        assert_eq!(denials.words().as_deref(), Some("3 ALARMS; 1002 denials"));
    }

    #[test]
    fn alarms_have_a_limit_and_all_are_counted() {
        let mut denials = Denials::default();
        let lines: Vec<String> = (0..1000)
            .filter_map(|number| denials.refused(&alarm(number)))
            .collect();
        assert_eq!(lines.len(), limits::ALARMS_MAX + 1);
        assert!(lines.iter().all(|line| line.starts_with("outgate: ALARM:")));
        assert!(
            denials.refused(&denial(1)).is_some(),
            "denials are told too"
        );
        assert_eq!(
            denials.words().as_deref(),
            Some("1000 ALARMS; 1001 denials")
        );
    }
}
