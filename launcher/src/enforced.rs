//! What a policy may not ask for: that rules are not enforced is for who starts a run to say,
//! and not for a file that a command could write.

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
