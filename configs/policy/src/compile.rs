//! Sources to a policy, collecting every fault.

use crate::error::PolicyErrors;
use crate::policy::Policy;
use crate::source::{Context, Source};

/// Makes a policy from its sources, merged in order.
///
/// # Errors
/// Every fault of every source, with its place.
pub fn compile(_sources: &[Source], _context: &Context) -> Result<Policy, PolicyErrors> {
    todo!()
}

/// The presets and files that a document extends, in order.
///
/// # Errors
/// The document is not TOML, or its `extends` is not a list of texts.
pub fn extends(_source: &Source) -> Result<Vec<String>, PolicyErrors> {
    todo!()
}
