//! The one decision: total, deterministic, without side effects.

use crate::facts::Facts;
use crate::policy::Policy;
use crate::verdict::Verdict;

impl Policy {
    /// Judges one event. The only maker of a permit.
    pub fn evaluate(&self, _facts: &Facts<'_>) -> Verdict {
        todo!()
    }
}
