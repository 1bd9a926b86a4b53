//! What content makes together with what went before, and what of it was not read together.

use outgate_dlp::{ScanReport, UnscannedReason};

use super::WholeContent;
use crate::body::Stopped;
use crate::lock::Poisoned;

impl WholeContent {
    /// What of a document was not read together, where it is to be told.
    pub(super) fn judge_apart(
        &mut self,
        is_told: impl Fn(UnscannedReason) -> bool,
    ) -> Result<(), Stopped> {
        let missed = self.json.as_mut().and_then(|json| json.missed(is_told));
        let Some(missed) = missed else {
            return Ok(());
        };
        let judged = self.scan.pass_unscanned(&self.asked(), &missed);
        judged.map_err(|refusal| self.stop(refusal))
    }

    /// What content makes together with what went before, if anybody knows that.
    pub(super) fn judge_split(
        &mut self,
        split: Result<ScanReport, Poisoned>,
    ) -> Result<(), Stopped> {
        match split {
            Ok(split) => {
                self.judge(&split.findings)?;
                let Some(missed) = split.unscanned else {
                    return Ok(());
                };
                let judged = self.scan.pass_unscanned(&self.asked(), &missed);
                judged.map_err(|refusal| self.stop(refusal))
            }
            Err(poisoned) => {
                self.held.clear();
                Err(self.stop(self.asked().refusal_of(poisoned)))
            }
        }
    }
}
