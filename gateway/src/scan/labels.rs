//! What may leave in the labels of names. A name that a rule spells out carries
//! nothing; below a wildcard every label is the command's to choose, and whoever
//! serves the names reads it. So labels never seen before are counted, in bytes,
//! for each domain that somebody registered: a known one in a new place is as new
//! as any other, or its place would carry for nothing. Keeps hashes, and no name.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use crate::limits;

/// What the names of one sandbox carried.
#[derive(Debug, Default)]
pub(super) struct Labels {
    state: RandomState,
    domains: HashMap<u64, Carried>,
    /// Domains beyond the limit count together.
    others: Carried,
}

#[derive(Debug, Default)]
struct Carried {
    /// Labels, each with all that stands to its right.
    places: HashSet<u64>,
    bytes: usize,
}

/// A domain below which nothing more may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LabelsSpent;

impl Labels {
    /// Counts the labels of a name, `below` the domain. What does not leave is
    /// not counted.
    ///
    /// # Errors
    /// The labels that are new are more than may still leave.
    pub(super) fn take(&mut self, domain: &str, below: &str) -> Result<(), LabelsSpent> {
        let key = self.state.hash_one(domain);
        let is_known = self.domains.contains_key(&key);
        let carried = if is_known || self.domains.len() < limits::LABEL_DOMAINS_MAX {
            self.domains.entry(key).or_default()
        } else {
            &mut self.others
        };
        let labels = below.rsplit('.').filter(|label| !label.is_empty());
        let mut place = key;
        let placed = labels.map(|label| {
            place = self.state.hash_one((place, label));
            (place, label.len())
        });
        let new: HashMap<u64, usize> = placed
            .filter(|(place, _)| !carried.places.contains(place))
            .collect();
        let bytes = carried.bytes.saturating_add(new.values().sum());
        if bytes > limits::LABEL_BYTES_MAX {
            return Err(LabelsSpent);
        }
        carried.bytes = bytes;
        carried.places.extend(new.into_keys());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_count_once_and_only_until_the_budget_is_spent() {
        let mut labels = Labels::default();
        for _ in 0..10_000 {
            assert_eq!(labels.take("a.test", "www.static"), Ok(()));
        }
        let mut passed = 0;
        let mut number = 0;
        while labels.take("a.test", &format!("{number:016}")).is_ok() {
            passed += 16;
            number += 1;
        }
        assert_eq!(passed, (limits::LABEL_BYTES_MAX - 9) / 16 * 16);
        // What was named before may be named again, and other domains stay free.
        assert_eq!(labels.take("a.test", "0000000000000000"), Ok(()));
        assert_eq!(labels.take("a.test", "static"), Ok(()));
        assert_eq!(labels.take("b.test", "0123456789abcdef"), Ok(()));
    }

    #[test]
    fn orders_of_known_labels_are_not_free() {
        let mut labels = Labels::default();
        let words: Vec<String> = (0..8).map(|number| format!("w{number}x")).collect();
        for word in &words {
            assert_eq!(labels.take("a.test", word), Ok(()));
        }
        let mut passed = 0;
        for number in 0..8 * 8 * 8 * 8 {
            let digits = [number / 512, number / 64 % 8, number / 8 % 8, number % 8];
            let name = digits.map(|digit| words[digit].as_str()).join(".");
            passed += usize::from(labels.take("a.test", &name).is_ok());
        }
        // Each name that passes has at least its first label in a new place.
        assert!(passed <= limits::LABEL_BYTES_MAX / 3, "{passed}");
        assert!(passed > limits::LABEL_BYTES_MAX / 6, "{passed}");
        assert_eq!(labels.take("b.test", "w0x.w1x"), Ok(()));
    }

    #[test]
    fn many_domains_do_not_make_many_budgets() {
        let mut labels = Labels::default();
        let mut passed = 0;
        for number in 0..3 * limits::LABEL_DOMAINS_MAX {
            let label = format!("{number:032}");
            if labels.take(&format!("d{number}.test"), &label).is_ok() {
                passed += 32;
            }
        }
        assert_eq!(
            passed,
            limits::LABEL_DOMAINS_MAX * 32 + limits::LABEL_BYTES_MAX
        );
        assert!(labels.domains.len() <= limits::LABEL_DOMAINS_MAX);
    }
}
