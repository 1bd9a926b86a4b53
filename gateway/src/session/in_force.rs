//! What a session is judged by until the policy changes: rules, the number of
//! their generation, and names as they were resolved under them.

use std::sync::Arc;

use super::Scanned;
use crate::resolve::{Resolver, System};
use crate::rules::Rules;
use crate::scan::Scans;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) rules: Arc<Rules>,
    pub(super) generation: u64,
    /// What looks for credentials.
    pub(super) scans: Arc<Scans>,
    /// Names lead where these rules say, and are resolved anew under others.
    pub(super) resolver: Resolver,
}

impl InForce {
    pub(super) fn new(system: &Arc<System>, (rules, scans): Scanned, generation: u64) -> Self {
        Self {
            resolver: Resolver::new(Arc::clone(system), rules.naming()),
            rules: Arc::new(rules),
            generation,
            scans,
        }
    }
}
