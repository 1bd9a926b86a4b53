//! The policy text of a run with until when the rules hold that were granted for a time: by
//! this process' own clock, since who sent them may be kept from taking them back.

use std::time::{Duration, Instant};

use outgate_handoff::SOURCES_MAX;
use outgate_policy::{RuleRef, Source, printable};
use tokio::time::sleep_until;

use crate::control::ControlError;

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimedTexts {
    pub(crate) sources: Vec<Source>,
    ends: GrantEnds,
}

/// Until when granted rules hold, by their places, which no two share.
#[derive(Debug, Clone, Default)]
pub(super) struct GrantEnds(Vec<(String, Instant)>);

impl GrantEnds {
    /// One more, which holds for so many milliseconds from now on.
    pub(super) fn add(&mut self, place: String, left_ms: u64) -> Result<(), ControlError> {
        let until = Instant::now().checked_add(Duration::from_millis(left_ms));
        match until {
            Some(until) if RuleRef::is_grant(&place) && self.0.len() < SOURCES_MAX => {
                self.0.push((place, until));
                Ok(())
            }
            _ => Err(ControlError::Order {
                what: "an end of what was not granted",
            }),
        }
    }
}

impl TimedTexts {
    pub(super) fn new(sources: Vec<Source>, ends: GrantEnds) -> Self {
        Self { sources, ends }
    }

    /// Without the rules whose time is over, and that in words; nothing where there is none.
    pub(crate) fn expired(&self, now: Instant) -> Option<(Self, String)> {
        let is_over = |place: &str| {
            let mut ends = self.ends.0.iter();
            ends.any(|(of, until)| of == place && *until <= now)
        };
        let (over, sources): (Vec<_>, Vec<_>) = self
            .sources
            .iter()
            .cloned()
            .partition(|source| is_over(&source.place));
        let line = match over.as_slice() {
            [] => return None,
            [one] => format!("the time of `{}` is over", printable(&one.text)),
            more => format!("the time of {} granted rules is over", more.len()),
        };
        let ends = self.ends.0.iter().filter(|(_, until)| *until > now);
        let ends = GrantEnds(ends.cloned().collect());
        Some((Self { sources, ends }, line))
    }

    /// Returns once a rule's time is over.
    pub(crate) async fn end(&self) {
        match self.ends.0.iter().map(|(_, until)| *until).min() {
            Some(until) => sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::SourceKind;

    fn source(place: &str, text: &str) -> Source {
        Source {
            kind: SourceKind::Allow,
            place: place.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn rules_end_by_their_own_time_alone() {
        let mut ends = GrantEnds::default();
        ends.add(RuleRef::granted(1), 10_000).unwrap();
        ends.add(RuleRef::granted_once(2), 20_000).unwrap();
        assert!(ends.add("-a".to_owned(), 1).is_err());
        let sources = vec![
            source("-a", "a.test"),
            source(&RuleRef::granted(1), "b.test"),
            source(&RuleRef::granted_once(2), "c.test"),
        ];
        let texts = TimedTexts::new(sources, ends);
        let now = Instant::now();
        assert!(texts.expired(now).is_none());
        let (left, line) = texts.expired(now + Duration::from_secs(15)).unwrap();
        assert_eq!(line, "the time of `b.test` is over");
        let rules = |texts: &TimedTexts| {
            let sources = texts.sources.iter();
            sources.map(|own| own.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(rules(&left), ["a.test", "c.test"]);
        let (left, line) = texts.expired(now + Duration::from_secs(25)).unwrap();
        assert_eq!(line, "the time of 2 granted rules is over");
        assert_eq!(rules(&left), ["a.test"]);
        assert!(left.expired(now + Duration::from_hours(1)).is_none());
    }
}
