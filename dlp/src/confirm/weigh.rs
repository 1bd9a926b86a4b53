//! What follows from a match for what the operator decided: whether it is refused or recorded.

use super::DetectorRule;
use crate::detector::Validator;
use crate::finding::{self, Action, Checked};
use crate::limits;
use crate::settings::{DetectorMode, ScanPolicy};
use crate::transforms::{self, Transform};

impl DetectorRule {
    pub(super) fn action(&self, checked: Checked, policy: ScanPolicy) -> Action {
        match (policy, self.mode) {
            (ScanPolicy::Monitor | ScanPolicy::MonitorForms, _)
            | (_, Some(DetectorMode::Warn | DetectorMode::Off)) => Action::Warn,
            // What is said of one detector holds against what is said of all.
            (ScanPolicy::Strict, None) | (_, Some(DetectorMode::Block)) => Action::Block,
            (ScanPolicy::Tiered, None) => finding::weigh(self.detector.tier, checked),
        }
    }

    /// The same of what stands back to front or with letters moved. Chance makes some of
    /// these forms, but none with a right checksum, nor around a long literal back to front;
    /// where rules are strict nobody asks.
    pub(crate) fn transformed(
        &self,
        (checked, transform): (Checked, Transform),
        policy: ScanPolicy,
    ) -> Action {
        let is_certain =
            checked == Checked::Passed || transform.is_certain() || policy == ScanPolicy::Strict;
        if is_certain {
            self.action(checked, policy)
        } else {
            Action::Warn
        }
    }

    /// Whether random symbols make a match now and then: nothing of it is checked, and its
    /// literal is short. What somebody wants to be refused is.
    pub(crate) fn may_be_chance(&self, checked: Checked) -> bool {
        let mut literals = self.detector.literals.iter();
        let is_short = literals.any(|literal| literal.len() <= limits::CHANCE_LITERAL_BYTES_MAX);
        checked != Checked::Passed && is_short && self.mode != Some(DetectorMode::Block)
    }

    /// Whether a match could have to stay that stands back to front or with letters moved.
    pub(crate) fn can_block_transformed(&self, policy: ScanPolicy) -> bool {
        let can_pass = !matches!(
            self.detector.validator,
            Validator::None | Validator::Entropy | Validator::Placeholder | Validator::CrcTailHex
        );
        let is_certain = transforms::is_certain(&self.detector);
        let may_be = can_pass || policy == ScanPolicy::Strict;
        (is_certain || may_be && transforms::is_transformed(&self.detector))
            && self.action(Checked::Passed, policy) == Action::Block
    }

    /// Whether any match could have to stay here.
    pub(crate) fn can_block(&self, policy: ScanPolicy) -> bool {
        [Checked::Passed, Checked::None, Checked::Failed]
            .into_iter()
            .any(|checked| self.action(checked, policy) == Action::Block)
    }
}
