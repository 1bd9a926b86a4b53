//! The detectors of a ruleset: those we ship, and the user's own.
//!
//! The shipped ones are constants of the program; a set of them is made by
//! copying a few references.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use crate::detector::{Anchor, Detector, Scope};
use crate::limits::DETECTORS_MAX;
use crate::shapes::{is_asked_for, is_shape};
use crate::shipped::{self, has_form};
use crate::validate::jwt;

/// The detectors of a ruleset, each with an id of its own.
#[derive(Debug, Clone, Default)]
pub struct Detectors {
    list: Cow<'static, [Detector]>,
}

/// What is wrong with a set of detectors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DetectorError {
    /// Two detectors have one id.
    Twice {
        /// The id.
        id: String,
    },
    /// There are more than are read.
    Many {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for DetectorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice { id } => write!(formatter, "two detectors have the id `{id}`"),
            Self::Many { count } => {
                write!(
                    formatter,
                    "{count} detectors; at most {DETECTORS_MAX} are read"
                )
            }
        }
    }
}

impl Error for DetectorError {}

impl Detectors {
    /// A set of the given detectors.
    ///
    /// # Errors
    /// When two have the same id, or there are too many.
    pub fn new(list: Vec<Detector>) -> Result<Self, DetectorError> {
        let mut set = Self::default();
        set.add(list)?;
        Ok(set)
    }

    /// Those that are part of the program.
    pub fn shipped() -> Self {
        let list = Cow::Borrowed(shipped::shipped());
        Self { list }
    }

    /// Adds more, such as a user's own.
    ///
    /// # Errors
    /// When an id is there already, or there are too many.
    pub fn add(&mut self, more: Vec<Detector>) -> Result<(), DetectorError> {
        let count = self.list.len().saturating_add(more.len());
        if count > DETECTORS_MAX {
            return Err(DetectorError::Many { count });
        }
        for detector in more {
            if self.find(&detector.id).is_some() {
                let id = detector.id.into_owned();
                return Err(DetectorError::Twice { id });
            }
            self.list.to_mut().push(detector);
        }
        Ok(())
    }

    /// Every detector, in order, the shipped ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Detector> {
        self.list.iter()
    }

    /// The one with an id.
    pub fn find(&self, id: &str) -> Option<&Detector> {
        self.iter().find(|detector| detector.id == id)
    }

    /// Whether modes and allowances may name this id: a detector's or a shape's.
    pub fn knows(&self, id: &str) -> bool {
        self.find(id).is_some() || is_shape(id)
    }

    /// Whether what this id finds is looked for only where somebody asks.
    pub fn is_asked_for(&self, id: &str) -> bool {
        let scans = |detector: &Detector| detector.anchor == Anchor::Scan;
        self.find(id).map_or_else(|| is_asked_for(id), scans)
    }

    /// Hosts that a credential may go to by its form alone, as host patterns.
    pub fn issuers_of(&self, secret: &[u8]) -> Vec<String> {
        let mut issuers = Vec::new();
        for detector in self.iter().filter(|detector| has_form(detector, secret)) {
            issuers.extend(detector.issuers.iter().map(ToString::to_string));
            if detector.scope == Scope::Claims {
                issuers.extend(jwt::hosts(secret));
            }
        }
        issuers
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{DetectorError, Detectors};

    #[test]
    fn no_id_stands_twice() {
        let mut set = Detectors::shipped();
        let count = set.len();
        assert!(count >= 135, "{count} detectors");
        let again = set.find("github-token").cloned().into_iter().collect();
        let id = "github-token".to_owned();
        assert_eq!(set.add(again), Err(DetectorError::Twice { id }));
        assert_eq!(set.len(), count);
    }
}
