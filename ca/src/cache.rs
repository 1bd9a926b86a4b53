//! Leaves that were issued, kept with a bound, so that a host met again costs
//! nothing and a flood of names costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::sign::CertifiedKey;

use crate::authority::{Authority, CaError};
use crate::subject::LeafSubject;

/// Leaves kept: of the last so many new hosts, and of as many before them that
/// were met again. A leaf has about 1 KiB.
const GENERATION_MAX: usize = 512;

/// A leaf is replaced after this time, long before it ends.
const AGE_MAX: Duration = Duration::from_hours(24 * 30);

/// An authority with its leaves.
#[derive(Debug)]
pub struct Leaves {
    authority: Authority,
    kept: Mutex<Generations>,
}

/// Two generations: when the young one is full it becomes the old one, and
/// whoever is met in the old one moves to the young one.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<LeafSubject, Leaf>,
    old: HashMap<LeafSubject, Leaf>,
}

#[derive(Debug, Clone)]
struct Leaf {
    key: Arc<CertifiedKey>,
    issued: Instant,
}

impl Leaves {
    /// No leaves yet.
    pub fn new(authority: Authority) -> Self {
        Self {
            authority,
            kept: Mutex::default(),
        }
    }

    /// The authority behind the leaves.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The leaf of a host: a kept one, or a new one. Callers that ask for one
    /// host at the same time get the same leaf; it is signed once (tens of
    /// microseconds, while the others wait).
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn get(&self, subject: &LeafSubject) -> Result<Arc<CertifiedKey>, CaError> {
        let mut kept = match self.kept.lock() {
            Ok(kept) => kept,
            // Somebody panicked while holding it: what is kept is still true.
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(key) = kept.find(subject) {
            return Ok(key);
        }
        let key = Arc::new(self.authority.issue(subject)?);
        let leaf = Leaf {
            key: Arc::clone(&key),
            issued: Instant::now(),
        };
        kept.insert(subject.clone(), leaf);
        Ok(key)
    }

    /// How many leaves are kept.
    pub fn count(&self) -> usize {
        self.kept
            .lock()
            .map_or(0, |kept| kept.young.len() + kept.old.len())
    }
}

impl Generations {
    fn find(&mut self, subject: &LeafSubject) -> Option<Arc<CertifiedKey>> {
        if let Some(leaf) = self.young.get(subject)
            && leaf.issued.elapsed() < AGE_MAX
        {
            return Some(Arc::clone(&leaf.key));
        }
        let leaf = self.old.remove(subject)?;
        if leaf.issued.elapsed() >= AGE_MAX {
            return None;
        }
        let key = Arc::clone(&leaf.key);
        self.insert(subject.clone(), leaf);
        Some(key)
    }

    fn insert(&mut self, subject: LeafSubject, leaf: Leaf) {
        if self.young.len() >= GENERATION_MAX && !self.young.contains_key(&subject) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(subject, leaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(index: usize) -> LeafSubject {
        LeafSubject::Name(format!("host-{index}.example.org"))
    }

    #[test]
    fn the_same_host_has_the_same_leaf() {
        let leaves = Leaves::new(Authority::for_run("test").unwrap());
        let first = leaves.get(&name(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &leaves.get(&name(1)).unwrap()));
        assert!(!Arc::ptr_eq(&first, &leaves.get(&name(2)).unwrap()));
    }

    #[test]
    fn callers_at_the_same_time_share_one_leaf() {
        let leaves = Leaves::new(Authority::for_run("test").unwrap());
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| leaves.get(&name(7)).unwrap()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(keys.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
    }

    #[test]
    fn a_flood_of_names_keeps_a_bounded_number() {
        let leaves = Leaves::new(Authority::for_run("test").unwrap());
        let often = leaves.get(&name(0)).unwrap();
        for index in 1..3 * GENERATION_MAX {
            leaves.get(&name(index)).unwrap();
            if index % 100 == 0 {
                let again = leaves.get(&name(0)).unwrap();
                assert!(Arc::ptr_eq(&often, &again), "what is used often stays");
            }
        }
        assert!(leaves.count() <= 2 * GENERATION_MAX);
    }
}
