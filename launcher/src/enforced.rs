//! What a policy may ask for that this version does not give.

use outgate_policy::{Policy, Switch};

/// A policy must not promise what does not happen.
///
/// # Errors
/// The key that does.
pub fn refuse_unenforced(policy: &Policy) -> Result<(), &'static str> {
    let settings = policy.settings();
    match settings.monitor {
        Switch::On => Err("monitor"),
        Switch::Off => Ok(()),
    }
}
