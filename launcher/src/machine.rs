//! What this machine lacks, before a run starts: what nothing replaces refuses it,
//! and what the command has to do without is said.

use crate::probe;
use crate::run_error::RunError;
use crate::voice::Voice;

/// Whether this machine has what a run needs.
///
/// # Errors
/// [`RunError::Lacking`], with the call or the file system that is not there.
pub(crate) fn check(voice: &mut dyn Voice) -> Result<(), RunError> {
    probe::required().map_err(|reason| RunError::Lacking { reason })?;
    if let Some(lack) = probe::replaced() {
        voice.say(&format!("outgate: {lack}"));
    }
    Ok(())
}
