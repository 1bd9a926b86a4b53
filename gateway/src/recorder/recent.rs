//! The last refusals of a run, for the command itself: what was refused, why, and what would
//! allow it, as far as that may be shown. Text only.

use std::collections::VecDeque;

use outgate_policy::DenialReason;

use crate::refusal::Refusal;
use crate::text::shortened;

/// Refusals that are kept: about two screens.
const DENIALS_MAX: usize = 50;
/// Bytes of each of their texts: a denial with its shown path is shorter.
const TEXT_BYTES_MAX: usize = 768;

/// A refusal as its command may read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecentDenial {
    pub(crate) subject: String,
    pub(crate) because: String,
    /// The word for fields and records.
    pub(crate) reason: &'static str,
    /// The option that would allow it.
    pub(crate) hint: Option<String>,
    /// The narrowest rule, where no rule decides it.
    pub(crate) narrowest: Option<String>,
    pub(crate) note: Option<String>,
}

/// See the head of this file: each subject once.
#[derive(Debug, Default)]
pub(crate) struct RecentDenials(VecDeque<RecentDenial>);

impl RecentDenials {
    /// Adds one that may be shown as it is.
    pub(super) fn add(&mut self, refusal: &Refusal) {
        let whole = |text: &String| text.len() <= TEXT_BYTES_MAX;
        let narrowest = match refusal {
            Refusal::Policy(denial) if denial.reason() == DenialReason::NoRule => {
                denial.narrowest()
            }
            Refusal::Policy(_) | Refusal::Own(_) => None,
        };
        let cut = |text: &str| shortened(text, TEXT_BYTES_MAX);
        let recent = RecentDenial {
            subject: cut(refusal.subject()),
            because: cut(refusal.because()),
            reason: refusal.reason().token(),
            hint: refusal.hint().filter(whole),
            narrowest: narrowest.filter(whole),
            note: refusal.note().map(str::to_owned),
        };
        self.0.retain(|own| own.subject != recent.subject);
        if self.0.len() >= DENIALS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(recent);
    }

    /// All of them.
    pub(super) fn newest_first(&self) -> Vec<RecentDenial> {
        self.0.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use outgate_record::Reason;

    use super::*;

    #[test]
    fn the_last_of_many_are_kept_and_each_subject_once() {
        let mut recent = RecentDenials::default();
        for number in 0..1000 {
            let subject = format!("GET http://a.test/{number}{}", "x".repeat(4096));
            recent.add(&Refusal::own(Reason::Policy, &subject, "so"));
            recent.add(&Refusal::own(Reason::Policy, "GET http://same.test/", "so"));
        }
        let kept = recent.newest_first();
        assert_eq!(kept.len(), DENIALS_MAX);
        assert_eq!(kept[0].subject, "GET http://same.test/");
        assert!(kept[1].subject.starts_with("GET http://a.test/999x"));
        assert!(kept.iter().all(|own| own.narrowest.is_none()));
        let longest = kept.iter().map(|own| own.subject.len()).max();
        assert_eq!(longest, Some(TEXT_BYTES_MAX));
    }
}
